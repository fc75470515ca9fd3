//! The floor as a whole: every figure in turns, as data and as a table.

use std::time::Duration;

use serde::Serialize;

use super::{Kind, Task, start};
use crate::clock::reading_cost;
use crate::error::Result;
use crate::machine::{last_level_cache, second_level_cache, usable_cores};
use crate::progress::Progress;
use crate::scratch::Scratch;
use crate::sizes::show_size;
use crate::statistics::Summary;
use crate::table::{Table, microseconds};

/// What of the floor is measured, and for how long.
#[derive(Clone, Debug)]
pub struct Wish {
    /// Counts of processes for flags and barriers.
    pub ranks: Vec<usize>,
    /// Whether processes are bound to cores where they outnumber them; otherwise they always are.
    pub bound: bool,
    /// How often the whole is gone through.
    pub turns: usize,
    /// Blocks of each figure in a turn.
    pub blocks: usize,
    /// How long a block lasts.
    pub block: Duration,
}

/// A time of one round.
#[derive(Clone, Debug, Serialize)]
pub struct RoundTime {
    /// What was done.
    pub kind: Kind,
    /// By how many processes.
    pub ranks: usize,
    /// Microseconds a round, over the blocks; the slowest process of each block.
    pub time: Summary,
}

/// A bandwidth.
#[derive(Clone, Debug, Serialize)]
pub struct Bandwidth {
    /// Copy or addition.
    pub kind: Kind,
    /// On how many cores at the same time.
    pub cores: usize,
    /// Bytes of each of the two buffers of a core.
    pub bytes: usize,
    /// `cache` or `memory`.
    pub place: &'static str,
    /// GB/s loaded and stored by all cores together, over the blocks.
    pub rate: Summary,
}

/// The floor of this machine.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// What one reading of the clock costs, in nanoseconds.
    pub clock: f64,
    /// Times of rounds between processes.
    pub rounds: Vec<RoundTime>,
    /// Copy and addition.
    pub bandwidth: Vec<Bandwidth>,
}

/// The floor's tasks for rounds between processes, by the wish.
fn round_tasks(wish: &Wish) -> Vec<Task> {
    let cores = usable_cores().len();
    let task = |kind, ranks| Task::rounds(kind, ranks, wish.bound || ranks <= cores, wish.blocks, wish.block);
    let mut tasks = Vec::new();
    if cores >= 2 {
        tasks.push(task(Kind::Exchange, 2));
    }
    for &ranks in &wish.ranks {
        for kind in [Kind::FlagBarrier, Kind::FlagAllreduce, Kind::ThreadBarrier] {
            tasks.push(task(kind, ranks));
        }
    }
    tasks
}

/// The floor's tasks for bandwidth: the buffers of a core fill half its level-2 cache, or those of
/// all cores together four times the last level.
fn bandwidth_tasks(wish: &Wish) -> Vec<(Task, &'static str)> {
    let cores = usable_cores().len();
    let in_cache = second_level_cache() as usize / 4;
    let last_level = last_level_cache() as usize;
    let mut tasks = Vec::new();
    for place in ["cache", "memory"] {
        for kind in [Kind::Copy, Kind::Add] {
            for ranks in if cores > 1 { vec![1, cores] } else { vec![1] } {
                let bytes = if place == "cache" { in_cache } else { (2 * last_level / ranks).max(8 << 20) };
                let task = Task { bytes, ..Task::rounds(kind, ranks, true, wish.blocks, wish.block) };
                tasks.push((task, place));
            }
        }
    }
    tasks
}

/// How many steps of progress [`measure`] takes.
pub fn steps(wish: &Wish) -> usize {
    wish.turns * (round_tasks(wish).len() + bandwidth_tasks(wish).len())
}

/// Measures the floor, all figures in turns.
pub fn measure(wish: &Wish, scratch: &Scratch, progress: &Progress) -> Result<Report> {
    let rounds = round_tasks(wish);
    let widths = bandwidth_tasks(wish);
    let mut times = vec![Vec::new(); rounds.len()];
    let mut rates = vec![Vec::new(); widths.len()];
    for _ in 0..wish.turns {
        for (task, times) in rounds.iter().zip(&mut times) {
            progress.stage(format!("floor: {} of {}", task.kind, task.ranks));
            times.extend(start::run(task, scratch)?.slowest);
            progress.step();
        }
        for ((task, _), rates) in widths.iter().zip(&mut rates) {
            progress.stage(format!("floor: {} on {} cores", task.kind, task.ranks));
            let moved = (task.bytes_moved() * task.ranks) as f64;
            rates.extend(start::run(task, scratch)?.average().iter().map(|ns| moved / ns));
            progress.step();
        }
    }
    let rounds = rounds.iter().zip(&times).map(|(task, times)| RoundTime {
        kind: task.kind,
        ranks: task.ranks,
        time: Summary::of(times).scaled(1e-3),
    });
    let bandwidth = widths.iter().zip(&rates).map(|((task, place), rates)| Bandwidth {
        kind: task.kind,
        cores: task.ranks,
        bytes: task.bytes,
        place,
        rate: Summary::of(rates),
    });
    Ok(Report { clock: reading_cost(), rounds: rounds.collect(), bandwidth: bandwidth.collect() })
}

impl Report {
    /// The report as two tables.
    pub fn render(&self) -> String {
        let mut rounds = Table::new(&["rounds between processes [us]<", "processes", "median", "min", "p25", "p75"]);
        for RoundTime { kind, ranks, time } in &self.rounds {
            let name = match kind {
                Kind::Exchange => "line exchange, spinning",
                Kind::FlagBarrier => "flat flags + sched_yield: barrier",
                Kind::FlagAllreduce => "flat flags + sched_yield: 8-byte allreduce",
                Kind::ThreadBarrier => "process-shared pthread barrier",
                // No rounds, or not of this report.
                _ => "",
            };
            let mut cells = vec![name.to_string(), ranks.to_string()];
            cells.extend([time.median, time.min, time.p25, time.p75].map(microseconds));
            rounds.row(cells);
        }
        let mut widths =
            Table::new(&["bandwidth, loaded + stored [GB/s]<", "cores", "buffers", "median", "min", "p25", "p75"]);
        for Bandwidth { kind, cores, bytes, place, rate } in &self.bandwidth {
            let name = match kind {
                Kind::Add => format!("add f64 in {place} (a += b)"),
                _ => format!("copy in {place} (a = b)"),
            };
            let mut cells = vec![name, cores.to_string(), format!("2 x {}", show_size(*bytes as u64))];
            cells.extend([rate.median, rate.min, rate.p25, rate.p75].map(|rate| format!("{rate:.1}")));
            widths.row(cells);
        }
        let clock = format!("  one reading of the clock: {:.0} ns\n", self.clock);
        [rounds.render(), widths.render(), clock].join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish() -> Wish {
        Wish { ranks: vec![4, 8], bound: true, turns: 2, blocks: 3, block: Duration::from_millis(5) }
    }

    #[test]
    fn every_figure_is_planned_once_a_turn() {
        let tasks = round_tasks(&wish());
        assert!(tasks.len() >= 6);
        assert!(tasks.iter().all(|task| task.kind != Kind::Exchange || task.ranks == 2));
        assert_eq!(steps(&wish()), 2 * (tasks.len() + bandwidth_tasks(&wish()).len()));
    }

    #[test]
    fn a_report_names_every_figure() {
        let report = Report {
            clock: 21.0,
            rounds: vec![RoundTime { kind: Kind::Exchange, ranks: 2, time: Summary::of(&[0.2]) }],
            bandwidth: vec![Bandwidth {
                kind: Kind::Add,
                cores: 2,
                bytes: 1 << 20,
                place: "memory",
                rate: Summary::of(&[12.0]),
            }],
        };
        let text = report.render();
        for word in ["line exchange", "0.200", "add f64 in memory", "2 x 1M", "12.0", "21 ns"] {
            assert!(text.contains(word), "{word} in {text}");
        }
    }
}
