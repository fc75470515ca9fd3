//! `bench simulate-node`: the collectives of one node on machines that are not here. Simulated, not measured.
//!
//! The production protocols of shm-core run on a board whose words have a time: each rank is a coroutine with a clock,
//! and a line that another core has written costs what a machine file says. `docs/NODE_SIMULATION.md` in this crate's
//! folder tells the whole.
//!
//! | file | what |
//! |---|---|
//! | `figures` | the machine file: costs, each with its source |
//! | `places` | where ranks sit, and how far they are apart |
//! | `memory` | the cost model: lines, cells, private buffers |
//! | `engine` | ranks as coroutines under a virtual clock |
//! | `calls` | the collectives of a rank, through the production protocols |
//! | `payload` | what the protocols do with payload: charged, not moved |
//! | `simulate` | one case: what a call takes |
//! | `candidates` | the algorithms that are compared |
//! | `winners` | which algorithm is fastest, by size and ranks |
//! | `trees` | trees that know sockets beside trees that do not |
//! | `against` | simulated beside measured |
//! | `picture` | plots |

pub mod against;
pub mod calls;
pub mod candidates;
pub mod engine;
pub mod figures;
pub mod memory;
pub mod options;
mod payload;
pub mod picture;
pub mod places;
pub mod simulate;
pub mod trees;
pub mod winners;

use std::fs;

use figures::MachineFile;
use options::SimulateNode;
use picture::Series;

use crate::error::{Error, Result};
use crate::out::{say, show};
use crate::table::Table;

/// What stands above everything that this command prints.
const BANNER: &str = "SIMULATION, not measured";

/// Runs the command.
///
/// # Errors
///
/// [`Error::Usage`] for machines, ranks or rules that cannot be; [`Error::File`] and [`Error::Samples`] for files.
pub fn run(options: &SimulateNode) -> Result<()> {
    let default: &[&str] = if options.against.is_some() { &["vm-2"] } else { &["xeon-2x20", "epyc-2x64"] };
    let mut names: Vec<String> = options.machines.clone();
    if names.is_empty() {
        names = default.iter().map(|name| (*name).to_owned()).collect();
    }
    let mut series: Vec<Series> = Vec::new();
    for name in &names {
        let machine = MachineFile::find(name)?;
        say!("{BANNER}: {}, {}\n", machine.name, sources(&machine))?;
        if options.figures {
            say!("{}", list(&machine))?;
        } else if let Some(path) = &options.against {
            show(against::run(&machine, path, options)?)?;
        } else if options.aware {
            show(trees::run(&machine, options, &mut series)?)?;
        } else {
            show(winners::run(&machine, options, &mut series)?)?;
        }
    }
    if let Some(path) = &options.svg {
        let figure = picture::render(&format!("{BANNER}: {}", names.join(", ")), &series);
        fs::write(path, figure).map_err(Error::file("cannot write", path))?;
    }
    Ok(())
}

/// How many figures of a machine came about how.
fn sources(machine: &MachineFile) -> String {
    let mut counts: Vec<(String, usize)> = Vec::new();
    for (_, figure) in machine.figures() {
        match counts.iter_mut().find(|(kind, _)| kind == figure.kind()) {
            Some((_, count)) => *count += 1,
            None => counts.push((figure.kind().to_owned(), 1)),
        }
    }
    let words: Vec<String> = counts.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    format!("figures: {}", words.join(", "))
}

/// Every figure, with its source.
fn list(machine: &MachineFile) -> String {
    let mut table = Table::new(&["figure<", "value", "source<"]);
    for (name, figure) in machine.figures() {
        table.row(vec![name, format!("{}", figure.value), figure.source]);
    }
    table.render()
}
