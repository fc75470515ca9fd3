//! The oracle: what every rank must hold after a call, found by plain sums.

use super::value::Value;
use crate::plan::{Combine, Operation};

/// The input pattern repeats after this many elements, a prime, so that no slice, cell or share
/// begins with the same values as another.
const PERIOD: usize = 61;

/// What rank `rank` contributes at `index`, in turn `turn` of the checking calls.
pub fn contribution(rank: usize, index: usize, turn: usize) -> u32 {
    ((rank * 31 + index * 7 + turn * 11) % PERIOD) as u32
}

/// Fills `buffer` with what `rank` contributes in `turn`.
pub fn fill<T: Value>(buffer: &mut [T], rank: usize, turn: usize) {
    for (index, element) in buffer.iter_mut().enumerate() {
        *element = T::whole(contribution(rank, index, turn));
    }
}

/// The right result of one call on one rank: in each block periodic in the index.
#[derive(Clone, Debug)]
pub struct Answer {
    /// A period for each block, or one for all.
    periods: Vec<Vec<u32>>,
    /// Elements of a block.
    block: usize,
}

/// The rank that looks at a result.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// Its number.
    pub rank: usize,
    /// All ranks.
    pub ranks: usize,
    /// The root's number.
    pub root: usize,
    /// Elements of a block.
    pub block: usize,
}

impl Answer {
    /// What `operation` gives when every rank contributes its pattern of `turn`, reductions by `operator`.
    pub fn by(operator: Combine, operation: Operation, view: View, turn: usize) -> Answer {
        Answer::of(operator, operation, view, PERIOD, |rank, index| contribution(rank, index, turn))
    }

    /// What `operation` gives when every element of every rank is `value`, reductions by `operator`.
    pub fn of_constant(operator: Combine, operation: Operation, view: View, value: u32) -> Answer {
        Answer::of(operator, operation, view, 1, |_, _| value)
    }

    fn of(
        operator: Combine,
        operation: Operation,
        view: View,
        period: usize,
        sent: impl Fn(usize, usize) -> u32,
    ) -> Answer {
        let View { rank: me, ranks, root, block } = view;
        let combined = |upto: usize, index: usize| operator.of((0..upto).map(|rank| sent(rank, index)));
        let at = |from: usize, index: usize| match operation {
            Operation::Barrier | Operation::Empty | Operation::Broadcast => sent(root, index),
            Operation::Reduce | Operation::Allreduce => combined(ranks, index),
            Operation::Gather | Operation::Allgather => sent(from, index),
            Operation::Scatter => sent(root, me * block + index),
            Operation::Alltoall => sent(from, me * block + index),
            Operation::ReduceScatter => combined(ranks, me * block + index),
            Operation::Scan => combined(me + 1, index),
        };
        let blocks = if operation.receives_blocks() { ranks } else { 1 };
        let periods = (0..blocks).map(|from| (0..period).map(|index| at(from, index)).collect()).collect();
        Answer { periods, block }
    }

    /// The first element of `buffer` that is wrong, in words.
    pub fn fault<T: Value>(&self, buffer: &[T]) -> Option<String> {
        let expected = |index: usize| {
            let (block, index) = match self.periods.len() {
                1 => (0, index),
                _ => (index / self.block, index % self.block),
            };
            let period = &self.periods[block];
            T::whole(period[index % period.len()])
        };
        buffer.iter().enumerate().find(|&(index, &element)| element != expected(index)).map(|(index, element)| {
            format!("element {index} of {} is {element:?} and should be {:?}", buffer.len(), expected(index))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn view(ranks: usize, root: usize) -> View {
        View { rank: 0, ranks, root, block: 1 }
    }

    #[test]
    fn the_oracle_is_the_plain_sum() {
        let answer = Answer::by(Combine::Sum, Operation::Allreduce, view(3, 0), 1);
        let mut sums = vec![0.0f64; 200];
        for rank in 0..3 {
            let mut mine = vec![0.0f64; 200];
            fill(&mut mine, rank, 1);
            sums.iter_mut().zip(&mine).for_each(|(sum, value)| *sum += value);
        }
        assert_eq!(answer.fault(&sums), None);
        sums[100] += 1.0;
        assert!(answer.fault(&sums).unwrap().starts_with("element 100 of 200 is "));
    }

    #[test]
    fn other_operators_by_hand() {
        let (mut most, mut least) = (vec![0; 200], vec![i32::MAX; 200]);
        for rank in 0..3 {
            let mut mine = vec![0; 200];
            fill(&mut mine, rank, 1);
            most.iter_mut().zip(&mine).for_each(|(most, value)| *most = value.max(most).to_owned());
            least.iter_mut().zip(&mine).for_each(|(least, value)| *least = value.min(least).to_owned());
        }
        let by = |operator| Answer::by(operator, Operation::Allreduce, view(3, 0), 1);
        assert_eq!((by(Combine::Max).fault(&most), by(Combine::Min).fault(&least)), (None, None));
        assert!(by(Combine::User).fault(&most).is_some());
    }

    #[test]
    fn a_broadcast_gives_the_roots_values() {
        let mut values = vec![0i32; 90];
        fill(&mut values, 2, 0);
        assert_eq!(Answer::by(Combine::Sum, Operation::Broadcast, view(4, 2), 0).fault(&values), None);
        assert!(Answer::by(Combine::Sum, Operation::Broadcast, view(4, 1), 0).fault(&values).is_some());
    }

    #[test]
    fn constants() {
        assert_eq!(Answer::of_constant(Combine::Sum, Operation::Reduce, view(5, 0), 9).fault(&[45i64; 7]), None);
        assert_eq!(Answer::of_constant(Combine::Max, Operation::Reduce, view(5, 0), 9).fault(&[9i64; 7]), None);
        assert!(Answer::of_constant(Combine::Sum, Operation::Broadcast, view(5, 0), 9).fault(&[45.0f32]).is_some());
        assert_eq!(Answer::of_constant(Combine::Min, Operation::Broadcast, view(5, 0), 9).fault::<f32>(&[]), None);
    }

    #[test]
    fn blocks_by_hand() {
        // Three ranks; blocks of two elements; this one is rank 1, the root rank 2.
        let view = View { rank: 1, ranks: 3, root: 2, block: 2 };
        let is = |operation, expected: &[u32]| {
            let answer = Answer::of(Combine::Sum, operation, view, PERIOD, |rank, index| (10 * rank + index) as u32);
            let expected: Vec<f64> = expected.iter().map(|&value| f64::from(value)).collect();
            assert_eq!(answer.fault(&expected), None, "{operation}");
        };
        is(Operation::Allgather, &[0, 1, 10, 11, 20, 21]);
        is(Operation::Gather, &[0, 1, 10, 11, 20, 21]);
        is(Operation::Scatter, &[22, 23]);
        is(Operation::Alltoall, &[2, 3, 12, 13, 22, 23]);
        is(Operation::ReduceScatter, &[36, 39]);
        is(Operation::Scan, &[10, 12]);
    }
}
