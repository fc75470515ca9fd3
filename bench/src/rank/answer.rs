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

/// The right result of one call, periodic in the index.
#[derive(Clone, Debug)]
pub struct Answer {
    period: Vec<u32>,
}

impl Answer {
    /// What `operation` gives when every rank contributes its pattern of `turn`, reductions by sums.
    pub fn of_pattern(operation: Operation, ranks: usize, root: usize, turn: usize) -> Answer {
        Answer::by(Combine::Sum, operation, ranks, root, turn)
    }

    /// The same, reductions by `operator`.
    pub fn by(operator: Combine, operation: Operation, ranks: usize, root: usize, turn: usize) -> Answer {
        let at = |index: usize| match operation {
            Operation::Barrier | Operation::Broadcast => contribution(root, index, turn),
            Operation::Reduce | Operation::Allreduce => {
                operator.of((0..ranks).map(|rank| contribution(rank, index, turn)))
            }
        };
        Answer { period: (0..PERIOD).map(at).collect() }
    }

    /// What `operation` gives when every element of every rank is `value`, reductions by `operator`.
    pub fn of_constant(operator: Combine, operation: Operation, ranks: usize, value: u32) -> Answer {
        let result = match operation {
            Operation::Barrier | Operation::Broadcast => value,
            Operation::Reduce | Operation::Allreduce => operator.of(std::iter::repeat_n(value, ranks)),
        };
        Answer { period: vec![result] }
    }

    /// The first element of `buffer` that is wrong, in words.
    pub fn fault<T: Value>(&self, buffer: &[T]) -> Option<String> {
        let expected = |index: usize| T::whole(self.period[index % self.period.len()]);
        buffer.iter().enumerate().find(|&(index, &element)| element != expected(index)).map(|(index, element)| {
            format!("element {index} of {} is {element:?} and should be {:?}", buffer.len(), expected(index))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oracle_is_the_plain_sum() {
        let answer = Answer::of_pattern(Operation::Allreduce, 3, 0, 1);
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
        let by = |operator| Answer::by(operator, Operation::Allreduce, 3, 0, 1);
        assert_eq!((by(Combine::Max).fault(&most), by(Combine::Min).fault(&least)), (None, None));
        assert!(by(Combine::User).fault(&most).is_some());
    }

    #[test]
    fn a_broadcast_gives_the_roots_values() {
        let mut values = vec![0i32; 90];
        fill(&mut values, 2, 0);
        assert_eq!(Answer::of_pattern(Operation::Broadcast, 4, 2, 0).fault(&values), None);
        assert!(Answer::of_pattern(Operation::Broadcast, 4, 1, 0).fault(&values).is_some());
    }

    #[test]
    fn constants() {
        assert_eq!(Answer::of_constant(Combine::Sum, Operation::Reduce, 5, 9).fault(&[45i64; 7]), None);
        assert_eq!(Answer::of_constant(Combine::Max, Operation::Reduce, 5, 9).fault(&[9i64; 7]), None);
        assert!(Answer::of_constant(Combine::Sum, Operation::Broadcast, 5, 9).fault(&[45.0f32]).is_some());
        assert_eq!(Answer::of_constant(Combine::Min, Operation::Broadcast, 5, 9).fault::<f32>(&[]), None);
    }
}
