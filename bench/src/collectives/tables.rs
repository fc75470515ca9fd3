//! The tables of a run, and who stands in them.

use crate::against::{self, Against};
use crate::command::Collectives;
use crate::compare::{self, Comparison, comparisons, comparisons_by_cores, cores_words};
use crate::cores::Cores;
use crate::empty;
use crate::plan::{BufferMode, Operation};
use crate::rows::Row;
use crate::runs::ours;
use crate::table::{self, Width};

/// The names of the baselines' series in `rows`, in their order.
pub fn baselines_in(rows: &[Row]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for row in rows.iter().filter(|row| row.series != ours::NAME) {
        if !names.contains(&row.series) {
            names.push(row.series.clone());
        }
    }
    names
}

/// Every table of the given rank counts.
pub fn all_tables(options: &Collectives, ranks: &[usize], rows: &[Row], against: &[Against], width: Width) -> String {
    let mut text = String::new();
    let comparisons: Vec<Comparison> = comparisons(rows).into_iter().chain(comparisons_by_cores(rows)).collect();
    for &ranks in ranks {
        let binding = options.bind.resolve(ranks).words();
        let compared: Vec<Against> = against.iter().filter(|a| a.ranks == ranks).cloned().collect();
        if !compared.is_empty() {
            text += &format!("beside the machine's floor, {} {binding}, in turns [us]\n", table::ranks(ranks));
            text += &against::render(&compared);
            text.push('\n');
        }
        text += &empty::line(ranks, rows);
        for &operation in Operation::ALL.iter().filter(|&&operation| operation != Operation::Empty) {
            for &mode in BufferMode::ALL {
                let here = |row: &&Row| row.ranks == ranks && row.operation == operation;
                let ours = |row: &&Row| here(row) && row.series == ours::NAME && row.buffers == mode;
                let Some(first) = rows.iter().find(ours) else { continue };
                // One baseline stands in the table of ours, several have one of their own.
                let shown: Vec<&Row> =
                    rows.iter().filter(|row| ours(row) || (here(row) && row.series != ours::NAME)).collect();
                let beside = if options.compares() { Vec::new() } else { baselines_in(rows) };
                text += &format!("{}\n{}", table::title(first, binding), table::results(&shown, &beside, width));
                for cores in std::iter::once(None).chain(Cores::ALL.map(Some)) {
                    let wanted =
                        |c: &&Comparison| (c.ranks, c.operation, c.buffers, c.cores) == (ranks, operation, mode, cores);
                    let compared: Vec<&Comparison> = comparisons.iter().filter(wanted).collect();
                    if options.compares() && !compared.is_empty() {
                        let (buffers, cores) = (beside_words(mode), cores_words(cores, rows, ranks));
                        text += &format!("  beside the peers{buffers}{cores}\n");
                        text += &compare::render(&compared);
                    }
                }
                text.push('\n');
            }
        }
    }
    text
}

/// What has to be said of the peers' buffers.
fn beside_words(mode: BufferMode) -> &'static str {
    if mode.beside() == mode { "" } else { ", whose buffers are private and rewritten" }
}
