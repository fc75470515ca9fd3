//! From samples to the rows of a table: one row a series, rank count and case.

use serde::Serialize;

use crate::cores::{Cores, Part, States, parts, ratios};
use crate::plan::{BufferMode, Case, ElementType, Operation, Timing};
use crate::runs::ours;
use crate::samples::{CaseSamples, Count};
use crate::statistics::{Summary, mean, median};

/// How many times one figure is of another, with its range over the turns of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Ratio {
    /// The median of the turns' ratios, each of which is a ratio of medians over blocks.
    pub value: f64,
    /// The least of the turns' ratios.
    pub low: f64,
    /// The greatest of the turns' ratios.
    pub high: f64,
}

impl Ratio {
    /// `above / below`, each a list of blocks for each turn. `None` without samples.
    ///
    /// Each turn is divided by itself first: what disturbs the machine for longer than a turn
    /// disturbs both sides of a ratio, and drops out.
    pub fn of_turns(above: &[Vec<f64>], below: &[Vec<f64>]) -> Option<Ratio> {
        let turns = above.iter().zip(below).map(|(above, below)| median(above) / median(below));
        Ratio::of(&turns.collect::<Vec<_>>())
    }

    /// The median of `ratios` and their range. `None` of none.
    pub(crate) fn of(ratios: &[f64]) -> Option<Ratio> {
        let ratios = Summary::of(ratios);
        (ratios.count > 0).then_some(Ratio { value: ratios.median, low: ratios.min, high: ratios.max })
    }
}

/// What our collectives count, over all ranks, for one call.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Counted {
    /// Payload bytes loaded by all ranks.
    pub loaded: f64,
    /// Payload bytes stored by all ranks.
    pub stored: f64,
    /// Loaded and stored, as a multiple of the message; 0 for an empty one.
    pub multiple: f64,
    /// Line transfers on the critical path.
    pub critical_lines: u64,
    /// Waits that did not succeed at once, all ranks together.
    pub waits: f64,
    /// Times a rank gave its core away.
    pub yields: f64,
    /// Times a rank slept in the kernel.
    pub sleeps: f64,
    /// Wake-up calls.
    pub wakes: f64,
}

/// One case of one series, merged over ranks, blocks and turns. Times are in microseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Whose collectives: `phalanx` or a baseline's name.
    pub series: String,
    /// How many ranks.
    pub ranks: usize,
    /// The collective.
    pub operation: Operation,
    /// The state of the buffers.
    pub buffers: BufferMode,
    /// How the calls were timed.
    pub timing: Timing,
    /// The element type.
    pub element: ElementType,
    /// Message bytes.
    pub bytes: u64,
    /// The root.
    pub root: usize,
    /// Calls in a block.
    pub iterations: u64,
    /// Calls that were timed in all.
    pub calls: u64,
    /// The quickest rank, averaged over all calls.
    pub t_min: f64,
    /// The mean of the ranks, averaged over all calls.
    pub t_avg: f64,
    /// Of each call the slowest rank, averaged over all calls.
    pub t_max: f64,
    /// The same, over the blocks: each the average of its calls.
    pub time: Summary,
    /// The median of each turn.
    pub turns: Vec<f64>,
    /// Message bytes over the median time, in GB/s.
    pub bandwidth: f64,
    /// The blocks of each state of the cores; empty where ranks outnumber cores.
    pub parts: Vec<Part>,
    /// What was counted; ours only.
    pub counted: Option<Counted>,
    /// The algorithm that was chosen; ours only.
    pub algorithm: Option<String>,
    /// This series' time over ours; a baseline's only. Above 1, ours is faster.
    pub ratio: Option<Ratio>,
    /// Our time over the floor's figure of the same run; barriers and 8-byte allreduces only.
    pub to_floor: Option<Ratio>,
}

/// The slowest ranks' time of each block, by turn, in microseconds.
pub fn slowest_by_turn(turns: &[CaseSamples]) -> Vec<Vec<f64>> {
    turns.iter().map(|turn| turn.slowest.iter().map(|ns| ns / 1e3).collect()).collect()
}

impl Row {
    /// The row of `series` for `case`, from what each turn measured.
    pub fn of(series: &str, ranks: usize, case: &Case, turns: &[CaseSamples]) -> Row {
        let pooled = |blocks: fn(&CaseSamples) -> Vec<f64>| -> Vec<f64> { turns.iter().flat_map(blocks).collect() };
        let by_turn = slowest_by_turn(turns);
        let time = Summary::of(&by_turn.concat());
        let calls = turns.iter().map(|turn| turn.iterations * turn.times.first().map_or(0, Vec::len) as u64).sum();
        let choice = turns.iter().find_map(|turn| turn.choice.clone());
        Row {
            series: series.into(),
            ranks,
            operation: case.operation,
            buffers: case.buffers,
            timing: case.timing,
            element: case.element,
            bytes: case.bytes,
            root: case.root,
            iterations: turns.first().map_or(0, |turn| turn.iterations),
            calls,
            t_min: mean(&pooled(CaseSamples::quickest)) / 1e3,
            t_avg: mean(&pooled(CaseSamples::average)) / 1e3,
            t_max: mean(&by_turn.concat()),
            time,
            turns: by_turn.iter().map(|blocks| median(blocks)).collect(),
            bandwidth: if time.median > 0.0 { case.bytes as f64 / time.median / 1e3 } else { 0.0 },
            parts: Vec::new(),
            counted: choice.as_ref().and_then(|(lines, _)| counted(case.bytes, *lines, turns)),
            algorithm: choice.map(|(_, algorithm)| algorithm),
            ratio: None,
            to_floor: None,
        }
    }

    /// The row with its blocks parted by the `states` that the cores had in the run.
    pub fn parted(self, turns: &[CaseSamples], states: &States) -> Row {
        Row { parts: parts(turns, states), ..self }
    }

    /// The row with `us` less in every time that it is compared by.
    pub fn less(&self, us: f64) -> Row {
        let turns = self.turns.iter().map(|turn| turn - us).collect();
        let parts = self.parts.iter().map(|part| part.less(us)).collect();
        Row { time: self.time.less(us), turns, parts, ..self.clone() }
    }

    /// The blocks of this state of the cores.
    pub fn part(&self, cores: Cores) -> Option<&Part> {
        self.parts.iter().find(|part| part.cores == cores)
    }

    /// Whether `other` measured the same thing, in whatever series.
    pub fn is_same_case(&self, other: &Row) -> bool {
        (self.ranks, self.operation, self.buffers, self.timing, self.bytes)
            == (other.ranks, other.operation, other.buffers, other.timing, other.bytes)
    }

    /// Whether `theirs` stands beside this row of ours: the same thing with the buffers that an MPI has for it, or, of
    /// ours with an algorithm forced, the same ones.
    pub fn is_beside(&self, theirs: &Row) -> bool {
        let buffers = if ours::is_forced(&theirs.series) { self.buffers } else { self.buffers.beside() };
        (self.ranks, self.operation, buffers, self.timing, self.bytes)
            == (theirs.ranks, theirs.operation, theirs.buffers, theirs.timing, theirs.bytes)
    }

    /// The time of `theirs` over this row's: turn by turn, and of blocks that were measured in the same state of the
    /// cores, where there are such; of all turns where a row was not measured by states, or nothing of the two is
    /// alike, which the tables by state then do not show.
    pub fn ratio_to(&self, theirs: &Row) -> Option<Ratio> {
        let alike = Ratio::of(&ratios(&theirs.parts, &self.parts));
        if alike.is_some() {
            return alike;
        }
        let each = |row: &Row| row.turns.iter().map(|&us| vec![us]).collect::<Vec<_>>();
        Ratio::of_turns(&each(theirs), &each(self))
    }
}

/// The time of `theirs` over that of `ours` in one state of the cores.
pub fn ratio_while(cores: Cores, theirs: &Row, ours: &Row) -> Option<Ratio> {
    let (theirs, ours) = (theirs.part(cores)?, ours.part(cores)?);
    Ratio::of(&ratios(std::slice::from_ref(theirs), std::slice::from_ref(ours)))
}

/// Adds the counts of all ranks and turns, and divides by the calls.
fn counted(bytes: u64, critical_lines: u64, turns: &[CaseSamples]) -> Option<Counted> {
    let calls: u64 = turns.iter().filter_map(|turn| turn.counts.first()).map(|count| count.calls).sum();
    if calls == 0 {
        return None;
    }
    let per_call = |field: fn(&Count) -> u64| {
        let total: u64 = turns.iter().flat_map(|turn| &turn.counts).map(field).sum();
        total as f64 / calls as f64
    };
    let (loaded, stored) = (per_call(|count| count.loaded), per_call(|count| count.stored));
    Some(Counted {
        loaded,
        stored,
        multiple: if bytes > 0 { (loaded + stored) / bytes as f64 } else { 0.0 },
        critical_lines,
        waits: per_call(|count| count.waits),
        yields: per_call(|count| count.yields),
        sleeps: per_call(|count| count.sleeps),
        wakes: per_call(|count| count.wakes),
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use std::time::Duration;

    use super::*;

    /// A case for tests.
    pub fn case(operation: Operation, bytes: u64) -> Case {
        Case {
            operation,
            buffers: BufferMode::Warm,
            timing: Timing::Stream,
            element: ElementType::F64,
            bytes,
            root: 0,
            blocks: 2,
            block: Duration::from_millis(1),
        }
    }

    /// Samples of two ranks, the second slower by half.
    pub fn samples(ns: f64) -> CaseSamples {
        CaseSamples {
            iterations: 10,
            times: vec![vec![ns, ns], vec![1.5 * ns, 1.5 * ns]],
            slowest: vec![1.5 * ns; 2],
            counts: vec![Count { calls: 20, loaded: 20 * 24, stored: 20 * 8, sleeps: 5, ..Count::default() }; 2],
            choice: Some((3, "line flat".into())),
            looks: Vec::new(),
        }
    }

    #[test]
    fn a_row_merges_ranks_blocks_and_turns() {
        let row = Row::of("phalanx", 2, &case(Operation::Allreduce, 8), &[samples(1000.0), samples(2000.0)]);
        assert_eq!((row.t_min, row.t_avg, row.t_max), (1.5, 1.875, 2.25));
        assert_eq!(row.turns, [1.5, 3.0]);
        assert_eq!((row.time.median, row.calls), (2.25, 40));
        let counted = row.counted.unwrap();
        assert_eq!((counted.loaded, counted.stored, counted.multiple), (48.0, 16.0, 8.0));
        assert_eq!((counted.sleeps, counted.critical_lines), (0.5, 3));
    }

    #[test]
    fn an_mpi_stands_beside_shared_buffers_with_rewritten_ones() {
        let of = |buffers, ns| {
            let case = Case { buffers, timing: Timing::Each, ..case(Operation::Reduce, 8) };
            Row::of("x", 2, &case, &[samples(ns), samples(ns)])
        };
        let theirs = of(BufferMode::Rewritten, 3000.0);
        assert!(of(BufferMode::Shared, 1.0).is_beside(&theirs) && of(BufferMode::Rewritten, 1.0).is_beside(&theirs));
        assert!(!of(BufferMode::Cold, 1.0).is_beside(&theirs));
        let forced = |buffers| Row { series: ours::forced_name("all:stream=1"), ..of(buffers, 1.0) };
        assert!(of(BufferMode::Shared, 1.0).is_beside(&forced(BufferMode::Shared)));
        assert!(!of(BufferMode::Shared, 1.0).is_beside(&forced(BufferMode::Rewritten)));
        assert_eq!(of(BufferMode::Shared, 1000.0).ratio_to(&theirs).unwrap().value, 3.0);
    }

    #[test]
    fn ratios_carry_their_range_over_turns() {
        let ratio = Ratio::of_turns(&[vec![2.0], vec![6.0]], &[vec![1.0], vec![2.0]]).unwrap();
        assert_eq!((ratio.low, ratio.high), (2.0, 3.0));
        assert_eq!(ratio.value, 2.5);
        assert_eq!(Ratio::of_turns(&[], &[vec![1.0]]), None);
    }
}
