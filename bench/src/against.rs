//! Ours beside the floor, in turns with the bare loops: barrier and 8-byte allreduce, and, of two ranks with a core
//! each, some sizes of broadcast, reduce and allreduce beside bare lines and moves.

use std::time::Duration;

use serde::Serialize;

use crate::cores::{Cores, States, parts, ratios};
use crate::error::Result;
use crate::floor::{Kind, Task, start};
use crate::machine::usable_cores;
use crate::plan::{BufferMode, Case, ElementType, Operation, Plan, Timing};
use crate::progress::Progress;
use crate::rows::{Ratio, slowest_by_turn};
use crate::runs::{Binding, Order, ours};
use crate::samples::CaseSamples;
use crate::scratch::Scratch;
use crate::sizes::show_size;
use crate::statistics::Summary;
use crate::table::{Table, microseconds};

/// How the comparison is made.
#[derive(Clone, Debug)]
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
    /// Which messages are compared with bare lines and moves, too, where two ranks have a core each.
    pub moves: Vec<Moved>,
}

/// A message beside the bare lines or moves that do the same.
#[derive(Clone, Copy, Debug)]
pub struct Moved {
    operation: Operation,
    buffers: BufferMode,
    bytes: u64,
    loops: &'static [Kind],
}

impl Moved {
    /// All that can be compared.
    fn all() -> impl Iterator<Item = Moved> {
        let of = |(sizes, moves): (&'static [u64], &'static [Moves])| {
            moves.iter().flat_map(move |&(operation, buffers, loops)| {
                sizes.iter().map(move |&bytes| Moved { operation, buffers, bytes, loops })
            })
        };
        [(LINES, OF_LINES), (MOVED, MOVES)].into_iter().flat_map(of)
    }

    /// Those of these cases.
    pub fn of(cases: &[Case]) -> Vec<Moved> {
        let is_case = |moved: &Moved, case: &Case| {
            (moved.operation, moved.buffers, moved.bytes) == (case.operation, case.buffers, case.bytes)
        };
        Moved::all().filter(|moved| cases.iter().any(|case| is_case(moved, case))).collect()
    }
}

impl Wish {
    fn has_cores_for_two(&self) -> bool {
        self.ranks == 2 && self.binding == Binding::Core && usable_cores().len() >= 2
    }

    fn task(&self, (kind, bytes): (Kind, usize)) -> Task {
        let bound = self.binding == Binding::Core;
        Task { bytes, ..Task::rounds(kind, self.ranks, bound, self.blocks, self.block) }
    }
}

/// One bare loop beside ours.
#[derive(Clone, Debug, Serialize)]
pub struct Beside {
    /// The loop.
    pub kind: Kind,
    /// Microseconds a round.
    pub time: Summary,
    /// Our time over its time: of blocks in the same state of the cores, where somebody looked; none if no two were.
    pub ratio: Option<Ratio>,
    /// The same for each state of the cores in which both have blocks; empty where they were in one throughout, or
    /// nobody looked.
    pub by_cores: Vec<Alike>,
}

/// Ours and a bare loop in one state of the cores.
#[derive(Clone, Debug, Serialize)]
pub struct Alike {
    /// The state.
    pub cores: Cores,
    /// Microseconds a call, ours.
    pub ours: Summary,
    /// Microseconds a round, the loop.
    pub time: Summary,
    /// Our time over its time.
    pub ratio: Option<Ratio>,
}

impl Beside {
    fn of(kind: Kind, ours: &[CaseSamples], bare: &[CaseSamples], states: &States) -> Beside {
        let (above, below) = (parts(ours, states), parts(bare, states));
        let both = above.iter().flat_map(|above| below.iter().map(move |below| (above, below)));
        let alike = both.filter(|(above, below)| above.cores == below.cores).map(|(above, below)| Alike {
            cores: above.cores,
            ours: above.time,
            time: below.time,
            ratio: Ratio::of(&ratios(std::slice::from_ref(above), std::slice::from_ref(below))),
        });
        let (ours, bare) = (slowest_by_turn(ours), slowest_by_turn(bare));
        Beside {
            kind,
            time: Summary::of(&bare.concat()),
            ratio: match above.is_empty() || below.is_empty() {
                true => Ratio::of_turns(&ours, &bare),
                false => Ratio::of(&ratios(&above, &below)),
            },
            by_cores: if states.are_several() { alike.collect() } else { Vec::new() },
        }
    }
}

/// One of our operations and the bare loops that do the same.
#[derive(Clone, Debug, Serialize)]
pub struct Against {
    /// Ours.
    pub operation: Operation,
    /// In which memory the buffers lie.
    pub buffers: BufferMode,
    /// Bytes of a message.
    pub bytes: u64,
    /// How many ranks.
    pub ranks: usize,
    /// Microseconds a call, ours.
    pub ours: Summary,
    /// The loops, the one that sets the floor first.
    pub beside: Vec<Beside>,
}

/// Sizes of messages that are compared with bare lines, and with the bare moves.
const LINES: &[u64] = &[8];
const MOVED: &[u64] = &[16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20];

/// One of our calls, and the loops that do the same.
type Moves = (Operation, BufferMode, &'static [Kind]);

/// What is compared with which lines.
const OF_LINES: &[Moves] = &[
    (Operation::Broadcast, BufferMode::Rewritten, &[Kind::LineAlone]),
    (Operation::Reduce, BufferMode::Rewritten, &[Kind::LineAlone]),
    (Operation::Allreduce, BufferMode::Rewritten, &[Kind::ExchangeAlone]),
];

/// What is compared with which moves.
const MOVES: &[Moves] = &[
    (Operation::Broadcast, BufferMode::Rewritten, &[Kind::Staged, Kind::StagedByString]),
    (Operation::Broadcast, BufferMode::Shared, &[Kind::Pull]),
    (Operation::Reduce, BufferMode::Rewritten, &[Kind::StagedSum, Kind::StagedSumByString]),
    (Operation::Reduce, BufferMode::Shared, &[Kind::PullSum]),
    (Operation::Allreduce, BufferMode::Rewritten, &[Kind::StagedHalves]),
    (Operation::Allreduce, BufferMode::Shared, &[Kind::Halves]),
    (Operation::Allreduce, BufferMode::View, &[Kind::HalvesView]),
];

/// One of our calls, and the bare loops that it is read against: the one that sets the floor first.
struct Compared {
    operation: Operation,
    buffers: BufferMode,
    timing: Timing,
    bytes: u64,
    loops: Vec<(Kind, usize)>,
}

/// The line exchange sets the floor where two ranks have a core each, flat flags otherwise.
fn compared(wish: &Wish) -> Vec<Compared> {
    let short = |operation, bytes, flags| {
        let exchange = wish.has_cores_for_two().then_some(Kind::Exchange);
        let loops = exchange.into_iter().chain([flags, Kind::ThreadBarrier]).map(|kind| (kind, 0)).collect();
        Compared { operation, buffers: BufferMode::Warm, timing: Timing::Stream, bytes, loops }
    };
    let mut all =
        vec![short(Operation::Barrier, 0, Kind::FlagBarrier), short(Operation::Allreduce, 8, Kind::FlagAllreduce)];
    if wish.has_cores_for_two() {
        // Lines are no buffers of the loops.
        let length = |kind: Kind, bytes: u64| if kind.is_move() { bytes as usize } else { 0 };
        all.extend(wish.moves.iter().map(|&Moved { operation, buffers, bytes, loops }| Compared {
            operation,
            buffers,
            timing: Timing::Each,
            bytes,
            loops: loops.iter().map(|&kind| (kind, length(kind, bytes))).collect(),
        }));
    }
    all
}

fn all_loops(compared: &[Compared]) -> Vec<(Kind, usize)> {
    let mut loops = Vec::new();
    for one in compared.iter().flat_map(|compared| &compared.loops) {
        if !loops.contains(one) {
            loops.push(*one);
        }
    }
    loops
}

/// How many steps of progress [`measure`] takes.
pub fn steps(wish: &Wish) -> usize {
    let compared = compared(wish);
    wish.turns * (all_loops(&compared).len() + compared.len())
}

/// Measures ours and the bare loops in turns: loops, ours, loops, ours.
pub fn measure(wish: &Wish, scratch: &Scratch, progress: &Progress) -> Result<Vec<Against>> {
    let compared = compared(wish);
    let case = |compared: &Compared| Case {
        operation: compared.operation,
        buffers: compared.buffers,
        timing: compared.timing,
        element: ElementType::F64,
        bytes: compared.bytes,
        root: 0,
        blocks: wish.blocks,
        block: wish.block,
    };
    let plan = Plan { cases: compared.iter().map(case).collect(), ..Plan::default() };
    let order = Order { plan: &plan, ranks: wish.ranks, binding: wish.binding, limit: wish.limit };
    let loops = all_loops(&compared);
    let mut bare: Vec<Vec<CaseSamples>> = vec![Vec::new(); loops.len()];
    let mut mine: Vec<Vec<CaseSamples>> = vec![Vec::new(); compared.len()];
    for turn in 1..=wish.turns {
        for (&one, samples) in loops.iter().zip(&mut bare) {
            progress.stage(format!("{} ranks beside the floor, turn {turn}", wish.ranks));
            samples.push(start::run(&wish.task(one), scratch)?);
            progress.step();
        }
        let mut run = ours::run(&order, None, scratch, progress)?;
        for (index, samples) in mine.iter_mut().enumerate() {
            samples.extend(run.cases.remove(&index));
        }
    }
    let sampled = mine.iter().chain(&bare).flatten();
    let states = States::of(&sampled.flat_map(|samples| samples.looks.iter().copied()).collect::<Vec<_>>());
    let against = compared.iter().zip(&mine).map(|(compared, turns)| {
        let beside = compared.loops.iter().map(|one| {
            let place = loops.iter().position(|other| other == one).unwrap_or(0);
            Beside::of(one.0, turns, &bare[place], &states)
        });
        Against {
            operation: compared.operation,
            buffers: compared.buffers,
            bytes: compared.bytes,
            ranks: wish.ranks,
            ours: Summary::of(&slowest_by_turn(turns).concat()),
            beside: beside.collect(),
        }
    });
    Ok(against.collect())
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
        "cores<",
    ]);
    for against in all {
        for beside in &against.beside {
            let name = match (against.operation, against.bytes) {
                (operation, 0) => operation.to_string(),
                (operation, bytes) if against.buffers == BufferMode::Warm => format!("{bytes}-byte {operation}"),
                (operation, bytes) => format!("{operation} {}, {}", show_size(bytes), against.buffers),
            };
            let loops = match beside.kind {
                Kind::Exchange => "bare line exchange",
                Kind::ExchangeAlone => "bare line exchange, timed alone",
                Kind::LineAlone => "bare line one way, timed alone",
                Kind::FlagBarrier | Kind::FlagAllreduce => "flat flags + sched_yield",
                Kind::Pull => "one copies",
                Kind::PullSum => "one sums",
                Kind::Halves => "a half each, stored twice",
                Kind::HalvesView => "a half each, stored once",
                Kind::Staged | Kind::StagedSum | Kind::StagedHalves => "the same by way of pieces",
                Kind::StagedByString | Kind::StagedSumByString => "the same, copied by string",
                _ => "process-shared pthread barrier",
            };
            let whole =
                (if beside.ratio.is_none() { "not alike" } else { "" }, against.ours, beside.time, beside.ratio);
            let by_cores =
                beside.by_cores.iter().map(|alike| (alike.cores.words(), alike.ours, alike.time, alike.ratio));
            let lines = if beside.by_cores.is_empty() { vec![whole] } else { by_cores.collect() };
            for (cores, ours, time, ratio) in lines {
                let mut cells = vec![against.ranks.to_string(), name.clone()];
                cells.extend([ours.median, ours.p25, ours.p75].map(microseconds));
                cells.push(loops.into());
                cells.extend([time.median, time.p25, time.p75].map(microseconds));
                cells.push(ratio.map_or_else(|| "-".into(), |ratio| format!("{:.2}", ratio.value)));
                cells.push(ratio.map_or_else(String::new, |ratio| format!("{:.2}..{:.2}", ratio.low, ratio.high)));
                cells.push(cores.into());
                table.row(cells);
            }
        }
    }
    table.render()
}

#[cfg(test)]
mod tests;
