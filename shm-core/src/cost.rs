//! What a call costs on its longest path, counted in cache lines: a pure function.

use crate::plan::{Plan, Step};
use crate::regime::JOINT_LEAST;
use crate::segment::layout::{LINE, SLOT_PAYLOAD};
use crate::select::{Choice, Collective, Regime};

/// The longest way through a tree, in messages that its ranks fetch one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chain {
    /// Messages fetched along the heaviest path from leaf to root, or root to leaf.
    pub weight: u64,
    /// Messages that the busiest rank fetches.
    pub busiest: u64,
}

impl Chain {
    /// The chain of a step over the tree of a plan's class.
    pub fn of(plan: &dyn Plan, step: Step, class: usize, root: usize, size: usize) -> Self {
        let children: Vec<Vec<usize>> =
            (0..size).map(|rank| plan.links(step, class, root, rank, size).children().to_vec()).collect();
        let busiest = match step {
            Step::Release => u64::from(size > 1),
            Step::Gather => children.iter().map(Vec::len).max().unwrap_or(0) as u64,
        };
        Self { weight: weight(&children, root, step), busiest }
    }

    /// The chain of the flat tree.
    pub fn flat(step: Step, size: usize) -> Self {
        let fetched = match step {
            Step::Release => u64::from(size > 1),
            Step::Gather => size as u64 - 1,
        };
        Self { weight: fetched, busiest: fetched }
    }

    /// Whether the tree has one level.
    fn is_flat(self) -> bool {
        self.weight == self.busiest
    }

    /// Lines along the chain for `slices` slices of `lines` lines each, in a pipeline.
    fn lines(self, slices: u64, lines: u64) -> u64 {
        lines * (self.weight + (slices - 1) * self.busiest)
    }
}

fn weight(children: &[Vec<usize>], rank: usize, step: Step) -> u64 {
    let own = match step {
        Step::Release => 1,
        Step::Gather => children[rank].len() as u64,
    };
    children[rank].iter().map(|&child| own + weight(children, child, step)).max().unwrap_or(0)
}

/// Where the payload of a call lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Payload {
    /// In cells.
    InCells,
    /// In buffers that all ranks lend: it is folded, copied from and stored to there.
    Lent,
}

/// Cache lines that the ranks on the longest chain of waits fetch from other cores, one after the other.
///
/// A line slot counts the lines it fills; a cell its payload's and its stamp's. Fetches that overlap in time (the lines
/// of several ranks that one rank reads in turn) count each; so do lines that a leader takes from their owner to store
/// a result there.
///
/// What is lent whole has one stamp for all its slices: contributions, and a broadcast's message on the first level of
/// its tree. Where ranks pass something on, and in deeper trees, each slice has its own.
pub(crate) fn critical_lines(
    choice: &Choice,
    what: Collective,
    (bytes, payload): (usize, Payload),
    size: usize,
    up: Chain,
    down: Chain,
) -> u64 {
    if size < 2 {
        return 0;
    }
    let peers = size as u64 - 1;
    match choice.regime {
        Regime::Line => {
            let slots = bytes.div_ceil(SLOT_PAYLOAD).max(1) as u64;
            let lines = (bytes + 8 * slots as usize).div_ceil(LINE) as u64;
            match what {
                Collective::Barrier | Collective::Allreduce if choice.flat => peers * lines,
                Collective::Barrier | Collective::Allreduce => (up.weight + down.weight) * lines,
                Collective::Broadcast => down.weight * lines,
                Collective::Reduce => up.weight * lines,
            }
        }
        Regime::Cells => {
            let all = bytes.div_ceil(LINE) as u64;
            // Two ranks that lend do a half each: who stores its part of the other one's result takes its lines, and
            // each hears two words.
            let jointly = |cell: usize| size == 2 && payload == Payload::Lent && bytes > cell.min(JOINT_LEAST - 1);
            let half = all.div_ceil(2);
            let step = |chain: Chain, cell: usize, whole: bool| {
                let slices = bytes.div_ceil(cell).max(1) as u64;
                match whole && payload == Payload::Lent && chain.is_flat() {
                    true => chain.lines(1, all + 1),
                    false => chain.lines(slices, all.div_ceil(slices) + 1),
                }
            };
            match what {
                Collective::Broadcast if jointly(choice.down_cell) => half + 2,
                Collective::Broadcast => step(down, choice.down_cell, true),
                Collective::Reduce if jointly(choice.up_cell) => 2 * half + 2,
                Collective::Reduce => step(up, choice.up_cell, true),
                _ => {
                    let cell = choice.up_cell.min(choice.down_cell);
                    // The result comes into being slice by slice.
                    step(up, cell, true) + step(down, cell, false)
                }
            }
        }
        Regime::Exchange => {
            let slices = bytes.div_ceil(choice.up_cell).max(1) as u64;
            peers * (bytes.div_ceil(LINE) as u64 + slices)
        }
        Regime::Shares => {
            let leaders = choice.leaders as u64;
            let share = bytes.div_ceil(choice.leaders);
            let rounds = share.div_ceil(choice.up_cell).max(1) as u64;
            let lines = share.div_ceil(LINE) as u64;
            let others = leaders.min(peers);
            match (payload, what) {
                (Payload::InCells, _) => (lines + rounds) * (peers + others),
                // A leader reads everybody's part of its share where it lies, stores the result at everybody's, and
                // hears one word of each rank, and of each other leader.
                (Payload::Lent, Collective::Allreduce) => 2 * lines * peers + peers + others,
                // The root alone gets it.
                (Payload::Lent, _) => lines * (peers + 1) + peers + others,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::links::Links;
    use crate::plan::FlatPlan;
    use crate::select::{Tuning, Vector};
    use std::sync::Arc;

    /// Each rank hangs on the one before.
    struct Path;
    // SAFETY: answers hang on the arguments alone; ranks stand in one row, and are asked for root 0.
    unsafe impl Plan for Path {
        fn class(&self, _: Step, _: usize) -> usize {
            0
        }
        fn links(&self, _: Step, _: usize, _: usize, rank: usize, size: usize) -> Links {
            let children: Vec<usize> = (rank + 1..size).take(1).collect();
            Links::new(rank.checked_sub(1), &children, size)
        }
        fn name(&self, _: Step, _: usize) -> String {
            "path".to_owned()
        }
        fn restrict(&self, _: &[usize]) -> Arc<dyn Plan> {
            Arc::new(Path)
        }
    }

    #[test]
    fn chains_of_known_trees() {
        assert_eq!(Chain::of(&Path, Step::Gather, 0, 0, 5), Chain { weight: 4, busiest: 1 });
        assert_eq!(Chain::of(&Path, Step::Release, 0, 0, 5), Chain { weight: 4, busiest: 1 });
        for step in [Step::Gather, Step::Release] {
            assert_eq!(Chain::of(&FlatPlan, step, 0, 2, 5), Chain::flat(step, 5));
        }
    }

    #[test]
    fn a_short_allreduce_of_two_ranks_fetches_one_line() {
        let choice = Tuning::default().select(2, 1).choose(Collective::Allreduce, Vector::of_bytes(8)).unwrap();
        let (up, down) = (Chain::flat(Step::Gather, 2), Chain::flat(Step::Release, 2));
        for (bytes, lines) in [(8, 1), (56, 1), (57, 2)] {
            let found = critical_lines(&choice, Collective::Allreduce, (bytes, Payload::InCells), 2, up, down);
            assert_eq!(found, lines, "{bytes} bytes");
        }
    }

    /// With all buffers in shared memory, what the busiest rank loads and stores beside its own share, in lines, is
    /// what is counted for it, but for the stamps.
    #[test]
    fn lines_of_lent_buffers_are_those_that_are_moved() {
        // Of several slices, and of one.
        [48_000, 2_400].into_iter().for_each(lines_of_so_many_words);
    }

    fn lines_of_so_many_words(words: usize) {
        use crate::job::JobSpec;
        use crate::operator::Sum;

        let all_lines = words as u64 / 8;
        for size in 2..=5 {
            for rules in ["all:direct_from=1,cells", "all:direct_from=1,shares,leaders=0;broadcast:cells"] {
                let mut spec = JobSpec::new(size).unwrap();
                spec.tuning.force(rules).unwrap();
                spec.on_threads(|comm| {
                    let send = comm.alloc_copy(&vec![1u64; words]).unwrap();
                    let mut recv = comm.alloc::<u64>(words).unwrap();
                    let root = comm.process_at_rank(0);
                    // Lines moved, and lines moved to and from the own buffers, by this rank.
                    let moved = |call: &mut dyn FnMut()| {
                        comm.reset_counters();
                        call();
                        let counters = comm.counters();
                        (counters.loaded + counters.stored) / LINE as u64
                    };
                    let (peers, ranks) = (size as u64 - 1, size as u64);
                    let counted = |what| comm.explain_lent(what, 8 * words).unwrap().critical_lines;
                    let told = moved(&mut || root.broadcast_into(&mut recv).unwrap());
                    let all_of = |own: u64| {
                        let mut all = own;
                        comm.all_reduce_into(&[own], std::slice::from_mut(&mut all), Sum).unwrap();
                        all
                    };
                    let lines = counted(Collective::Broadcast);
                    if size == 2 {
                        // Each moves a half, and hears two words; or one of them both, if the other is late.
                        assert_eq!((lines, all_of(told)), (all_lines / 2 + 2, 2 * all_lines), "broadcast on 2");
                    } else {
                        // The others store what they load; one stamp.
                        let expected = if comm.rank() == 0 { 0 } else { 2 * (lines - 1) };
                        assert_eq!(told, expected, "broadcast on {size}");
                    }
                    let reduced = moved(&mut || match comm.rank() {
                        0 => root.reduce_into_root(&send, &mut recv, Sum).unwrap(),
                        _ => root.reduce_into(&send, Sum).unwrap(),
                    });
                    if rules == "all:direct_from=1,cells" && size == 2 {
                        // Each loads the half of its own part, too.
                        let expected = (counted(Collective::Reduce), all_of(reduced));
                        assert_eq!(expected, (all_lines + 2, 3 * all_lines), "reduce on 2");
                        return;
                    }
                    if rules == "all:direct_from=1,cells" {
                        // The root loads its own contribution too, and stores the result: 2n.
                        let expected = counted(Collective::Reduce) - peers + 2 * all_lines;
                        assert_eq!(reduced, if comm.rank() == 0 { expected } else { 0 }, "reduce on {size}");
                        return;
                    }
                    let share = all_lines / ranks;
                    let stamps = 2 * peers;
                    // Each leader loads its own part too; the root's share of the result lies at its own place.
                    let expected = counted(Collective::Reduce) - stamps + share;
                    assert_eq!(reduced, expected, "reduce on {size}");
                    let all = moved(&mut || comm.all_reduce_into(&send, &mut recv, Sum).unwrap());
                    assert_eq!(all, counted(Collective::Allreduce) - stamps + 2 * share, "allreduce on {size}");
                });
            }
        }
    }
}
