//! An operator on a type of element, and what it should make of everybody's contributions: a fold in rank order.

use shm_core::operator::Operator;

use crate::sample::{Flavour, Sample};

/// An operator on a type of element, as the checks see it.
pub struct Operation<T: Sample> {
    /// Both names.
    pub name: &'static str,
    /// Whether operands must be combined in rank order.
    pub ordered: bool,
    /// Whether the operator is one of the tests' own.
    pub own: bool,
    /// What the inputs are for.
    pub flavour: Flavour,
    /// The operator.
    pub operator: &'static (dyn Operator<T> + Sync),
    /// What the operator does with the elements of two slices, left in the first.
    pub combine: fn(&mut [T], &[T]),
    /// What a rank contributes: [`samples`](crate::sample::samples), compiled here, since its address is taken here.
    pub samples: fn(Flavour, u64, usize, usize) -> Vec<T>,
}

impl<T: Sample> Operation<T> {
    /// What several ranks contribute, combined in rank order; `of` says what each does.
    pub fn fold(&self, ranks: usize, of: &dyn Fn(usize) -> Vec<T>) -> Vec<T> {
        let mut sums = of(0);
        for rank in 1..ranks {
            (self.combine)(&mut sums, &of(rank));
        }
        sums
    }

    /// What the ranks up to each contribute, combined in rank order: of rank 0, then of both 0 and 1, and so on.
    pub fn prefixes(&self, ranks: usize, of: &dyn Fn(usize) -> Vec<T>) -> Vec<T> {
        let mut sums = of(0);
        let mut all = sums.clone();
        for rank in 1..ranks {
            (self.combine)(&mut sums, &of(rank));
            all.extend_from_slice(&sums);
        }
        all
    }
}
