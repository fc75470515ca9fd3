//! `bench commtest`: one volume, exchanged in ever more packets, by all ways of sending and receiving.
//!
//! What a figure is made of, and what differs from the paper's program, says [`options::DESCRIPTION`].
//!
//! | file | what |
//! |---|---|
//! | `packets` | how a volume is cut |
//! | `protocol` | (0,0) to (1,10), and the two programs |
//! | `partners` | SWAP and SENDRECV: who exchanges with whom |
//! | `script` | the calls of a rank, step by step |
//! | `carrier` | what carries packets; `over_mpi`, `channel` |
//! | `measure` | a rank: checks and times |
//! | `plan`, `options` | what ranks do, as the words of a command line |
//! | `start` | runs of ranks, on this host and on an emulated cluster |
//! | `drive` | the command |
//! | `figures` | medians, fits, discrepancies |
//! | `report`, `picture` | tables, CSV, plot |

pub mod carrier;
pub mod channel;
pub mod drive;
pub mod figures;
pub mod measure;
pub mod options;
#[cfg(feature = "mpi")]
mod over_mpi;
pub mod packets;
pub mod partners;
pub mod picture;
pub mod plan;
pub mod protocol;
pub mod report;
pub mod script;
pub mod start;

pub use drive::run;

use std::fs::OpenOptions;
use std::io::Write;

use hier::Communicator;

use self::carrier::Carrier;
use self::channel::Channels;
use self::options::CommTestRank;
use self::plan::{Plan, key};
use crate::error::{Error, Result};
use crate::study::store::entry;

/// Runs one rank.
///
/// # Errors
///
/// [`Error::Usage`] for a plan that cannot be, and over MPI where this program was built without it; those of
/// [`measure::run`].
pub fn run_rank(options: &CommTestRank) -> Result<()> {
    let plan = Plan::of(options)?;
    let partners = plan.pattern.partners(options.ranks).map_err(Error::Usage)?;
    match options.channels {
        Some(slots) => {
            let world = Communicator::world()?;
            expect(options, world.size())?;
            carry(&mut Channels::new(world, slots, &partners)?, &plan, &partners)
        }
        None => over_an_mpi(options, &plan, &partners),
    }
}

#[cfg(feature = "mpi")]
fn over_an_mpi(options: &CommTestRank, plan: &Plan, partners: &[Option<partners::Partners>]) -> Result<()> {
    use mpi::traits::Communicator;
    let (universe, _) = mpi::initialize_with_threading(mpi::Threading::Funneled)
        .ok_or_else(|| Error::Usage("MPI is initialised already".into()))?;
    let world = universe.world();
    let most = plan.packets.iter().copied().max().unwrap_or(1);
    let outcome = expect(options, world.size() as usize)
        .and_then(|()| over_mpi::OverMpi::new(&world, plan.total, most))
        .and_then(|mut carrier| carry(&mut carrier, plan, partners));
    if let Err(error) = outcome {
        eprintln!("bench commtest-rank: rank {}: {error}", world.rank());
        world.abort(1);
    }
    Ok(())
}

#[cfg(not(feature = "mpi"))]
fn over_an_mpi(_: &CommTestRank, _: &Plan, _: &[Option<partners::Partners>]) -> Result<()> {
    Err(crate::across::without_mpi())
}

fn expect(options: &CommTestRank, size: usize) -> Result<()> {
    if size == options.ranks {
        return Ok(());
    }
    Err(Error::Usage(format!(
        "this job has {}, and not {}: was the program built for the MPI of this mpirun?",
        crate::table::ranks(size),
        options.ranks
    )))
}

/// Measures, and writes what is finished.
fn carry<C: Carrier>(carrier: &mut C, plan: &Plan, partners: &[Option<partners::Partners>]) -> Result<()> {
    let mut file = None;
    measure::run(carrier, plan, partners, |protocol, program, packets, times| {
        let path = &plan.lines;
        if file.is_none() {
            let open = OpenOptions::new().create(true).append(true).open(path);
            file = Some(open.map_err(Error::file("cannot open", path))?);
        }
        let line = entry(&key(&plan.prefix, protocol, program, packets), times)?;
        let written = file.as_mut().map_or(Ok(()), |file| file.write_all(line.as_bytes()));
        written.map_err(Error::file("cannot write to", path))
    })
}
