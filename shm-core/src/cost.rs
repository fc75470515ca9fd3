//! What a call costs on its longest path, counted in cache lines: a pure function.

use crate::plan::{Plan, Step};
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

/// Cache lines that the ranks on the longest chain of waits fetch from other cores, one after the other.
///
/// A line slot counts the lines it fills; a cell its payload's and its stamp's. Fetches that overlap in time (the lines
/// of several ranks that one rank reads in turn) count each.
pub(crate) fn critical_lines(
    choice: &Choice,
    what: Collective,
    bytes: usize,
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
            let step = |chain: Chain, cell: usize| {
                let slices = bytes.div_ceil(cell).max(1) as u64;
                chain.lines(slices, (bytes.div_ceil(LINE) as u64).div_ceil(slices) + 1)
            };
            match what {
                Collective::Broadcast => step(down, choice.down_cell),
                Collective::Reduce => step(up, choice.up_cell),
                _ => step(up, choice.up_cell.min(choice.down_cell)) + step(down, choice.up_cell.min(choice.down_cell)),
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
            let lines = share.div_ceil(LINE) as u64 + rounds;
            lines * (peers + leaders.min(peers))
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
    impl Plan for Path {
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
        assert_eq!(critical_lines(&choice, Collective::Allreduce, 8, 2, up, down), 1);
        assert_eq!(critical_lines(&choice, Collective::Allreduce, 56, 2, up, down), 1);
        assert_eq!(critical_lines(&choice, Collective::Allreduce, 57, 2, up, down), 2);
    }
}
