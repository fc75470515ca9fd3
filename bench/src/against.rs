//! Ours beside the floor: barrier and 8-byte allreduce, in turns with the bare loops.

use std::time::Duration;

use serde::Serialize;

use crate::error::Result;
use crate::floor::{Kind, Task, start};
use crate::machine::usable_cores;
use crate::plan::{BufferMode, Case, ElementType, Operation, Plan, Timing};
use crate::progress::Progress;
use crate::rows::{Ratio, slowest_by_turn};
use crate::runs::{Binding, Order, ours};
use crate::samples::CaseSamples;
use crate::scratch::Scratch;
use crate::statistics::Summary;
use crate::table::{Table, microseconds};

/// How the comparison is made.
#[derive(Clone, Copy, Debug)]
pub struct Wish {
    /// How many ranks.
    pub ranks: usize,
    /// Where they are bound; resolved. The floor's processes are bound alike.
    pub binding: Binding,
    /// How often floor and ours take turns.
    pub turns: usize,
    /// Blocks of each figure in a turn.
    pub blocks: usize,
    /// How long a block lasts.
    pub block: Duration,
    /// When a run is stopped.
    pub limit: Duration,
}

/// One bare loop beside ours.
#[derive(Clone, Debug, Serialize)]
pub struct Beside {
    /// The loop.
    pub kind: Kind,
    /// Microseconds a round.
    pub time: Summary,
    /// Our time over its time.
    pub ratio: Option<Ratio>,
}

/// One of our operations and the bare loops that do the same.
#[derive(Clone, Debug, Serialize)]
pub struct Against {
    /// Barrier or allreduce.
    pub operation: Operation,
    /// How many ranks.
    pub ranks: usize,
    /// Microseconds a call, ours.
    pub ours: Summary,
    /// The loops, the one that sets the floor first.
    pub beside: Vec<Beside>,
}

const COMPARED: [(Operation, u64); 2] = [(Operation::Barrier, 0), (Operation::Allreduce, 8)];

/// The bare loops that `operation` is read against, the one that sets the floor first: the line
/// exchange where two ranks have a core each, flat flags otherwise.
fn loops(operation: Operation, wish: &Wish) -> Vec<Kind> {
    let mut kinds = Vec::new();
    if wish.ranks == 2 && wish.binding == Binding::Core && usable_cores().len() >= 2 {
        kinds.push(Kind::Exchange);
    }
    kinds.push(if operation == Operation::Barrier { Kind::FlagBarrier } else { Kind::FlagAllreduce });
    kinds.push(Kind::ThreadBarrier);
    kinds
}

fn all_loops(wish: &Wish) -> Vec<Kind> {
    let mut kinds: Vec<Kind> = COMPARED.iter().flat_map(|(operation, _)| loops(*operation, wish)).collect();
    let mut seen = Vec::new();
    kinds.retain(|kind| {
        !seen.contains(kind) && {
            seen.push(*kind);
            true
        }
    });
    kinds
}

/// How many steps of progress [`measure`] takes.
pub fn steps(wish: &Wish) -> usize {
    wish.turns * (all_loops(wish).len() + COMPARED.len())
}

/// Measures ours and the bare loops in turns: loops, ours, loops, ours.
pub fn measure(wish: &Wish, scratch: &Scratch, progress: &Progress) -> Result<Vec<Against>> {
    let case = |(operation, bytes): &(Operation, u64)| Case {
        operation: *operation,
        buffers: BufferMode::Warm,
        timing: Timing::Stream,
        element: ElementType::F64,
        bytes: *bytes,
        root: 0,
        blocks: wish.blocks,
        block: wish.block,
    };
    let plan = Plan { cases: COMPARED.iter().map(case).collect(), ..Plan::default() };
    let order = Order { plan: &plan, ranks: wish.ranks, binding: wish.binding, limit: wish.limit };
    let kinds = all_loops(wish);
    let mut bare: Vec<Vec<CaseSamples>> = vec![Vec::new(); kinds.len()];
    let mut mine: Vec<Vec<CaseSamples>> = vec![Vec::new(); COMPARED.len()];
    for turn in 1..=wish.turns {
        for (kind, samples) in kinds.iter().zip(&mut bare) {
            progress.stage(format!("{} ranks beside the floor, turn {turn}", wish.ranks));
            let bound = wish.binding == Binding::Core;
            samples.push(start::run(&Task::rounds(*kind, wish.ranks, bound, wish.blocks, wish.block), scratch)?);
            progress.step();
        }
        let mut run = ours::run(&order, None, scratch, progress)?;
        for (index, samples) in mine.iter_mut().enumerate() {
            samples.extend(run.cases.remove(&index));
        }
    }
    let bare: Vec<Vec<Vec<f64>>> = bare.iter().map(|turns| slowest_by_turn(turns)).collect();
    Ok(COMPARED
        .iter()
        .zip(&mine)
        .map(|((operation, _), turns)| {
            let ours = slowest_by_turn(turns);
            let beside = loops(*operation, wish).into_iter().map(|kind| {
                let place = kinds.iter().position(|other| *other == kind).unwrap_or(0);
                let times = &bare[place];
                Beside { kind, time: Summary::of(&times.concat()), ratio: Ratio::of_turns(&ours, times) }
            });
            Against {
                operation: *operation,
                ranks: wish.ranks,
                ours: Summary::of(&ours.concat()),
                beside: beside.collect(),
            }
        })
        .collect())
}

impl Against {
    /// Ours over the loop that sets the floor.
    pub fn to_floor(&self) -> Option<Ratio> {
        self.beside.first().and_then(|beside| beside.ratio)
    }
}

/// All comparisons of one rank count as a table.
pub fn render(all: &[Against]) -> String {
    let mut table = Table::new(&[
        "ranks",
        "ours<",
        "median",
        "p25",
        "p75",
        "beside it<",
        "median",
        "p25",
        "p75",
        "ours / it",
        "range over turns<",
    ]);
    for against in all {
        for beside in &against.beside {
            let name = match against.operation {
                Operation::Barrier => "barrier",
                _ => "8-byte allreduce",
            };
            let loops = match beside.kind {
                Kind::Exchange => "bare line exchange",
                Kind::FlagBarrier | Kind::FlagAllreduce => "flat flags + sched_yield",
                _ => "process-shared pthread barrier",
            };
            let mut cells = vec![against.ranks.to_string(), name.into()];
            cells.extend([against.ours.median, against.ours.p25, against.ours.p75].map(microseconds));
            cells.push(loops.into());
            cells.extend([beside.time.median, beside.time.p25, beside.time.p75].map(microseconds));
            cells.push(beside.ratio.map_or_else(|| "-".into(), |ratio| format!("{:.2}", ratio.value)));
            cells.push(beside.ratio.map_or_else(String::new, |ratio| format!("{:.2}..{:.2}", ratio.low, ratio.high)));
            table.row(cells);
        }
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(ranks: usize, binding: Binding) -> Wish {
        let short = Duration::from_millis(1);
        Wish { ranks, binding, turns: 3, blocks: 2, block: short, limit: short }
    }

    #[test]
    fn flags_set_the_floor_where_ranks_outnumber_cores() {
        assert_eq!(loops(Operation::Allreduce, &wish(8, Binding::None))[0], Kind::FlagAllreduce);
        assert_eq!(all_loops(&wish(8, Binding::None)).len(), 3);
        assert_eq!(steps(&wish(8, Binding::None)), 15);
    }

    #[test]
    fn the_table_has_a_line_for_each_loop() {
        let beside = Beside {
            kind: Kind::FlagBarrier,
            time: Summary::of(&[6.0]),
            ratio: Some(Ratio { value: 1.17, low: 1.1, high: 1.2 }),
        };
        let against =
            Against { operation: Operation::Barrier, ranks: 8, ours: Summary::of(&[7.0]), beside: vec![beside; 2] };
        assert_eq!(against.to_floor().unwrap().value, 1.17);
        let text = render(&[against]);
        assert_eq!(text.lines().count(), 3);
        assert!(text.contains("1.17") && text.contains("1.10..1.20"), "{text}");
    }
}
