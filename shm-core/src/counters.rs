//! What a communicator has done so far: exact counts, kept by each rank for itself.

use std::cell::Cell;

/// Counts of one rank of one communicator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Collective calls.
    pub calls: u64,
    /// Payload bytes loaded, from own buffers and from the segment; without the ends of converted buffers
    /// ([`Conversion`](crate::job::Conversion)), which are copied beside the call.
    pub loaded: u64,
    /// Payload bytes stored, to own buffers and to the segment.
    pub stored: u64,
    /// Payload bytes that this rank had the kernel copy from other ranks' private memory, or to it; they are among
    /// those loaded.
    pub reached: u64,
    /// Waits that did not find at the first look what they waited for.
    pub waits: u64,
    /// Times the core was yielded.
    pub yields: u64,
    /// Times this rank slept in the kernel.
    pub sleeps: u64,
    /// Times this rank woke others.
    pub wakes: u64,
}

/// The counts as they grow.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub calls: Cell<u64>,
    pub loaded: Cell<u64>,
    pub stored: Cell<u64>,
    pub reached: Cell<u64>,
    pub waits: Cell<u64>,
    pub yields: Cell<u64>,
    pub sleeps: Cell<u64>,
    pub wakes: Cell<u64>,
}

/// Adds to a count.
#[inline]
pub(crate) fn add(count: &Cell<u64>, by: usize) {
    count.set(count.get() + by as u64);
}

impl Tally {
    pub fn read(&self) -> Counters {
        Counters {
            calls: self.calls.get(),
            loaded: self.loaded.get(),
            stored: self.stored.get(),
            reached: self.reached.get(),
            waits: self.waits.get(),
            yields: self.yields.get(),
            sleeps: self.sleeps.get(),
            wakes: self.wakes.get(),
        }
    }

    pub fn reset(&self) {
        let Self { calls, loaded, stored, reached, waits, yields, sleeps, wakes } = self;
        for count in [calls, loaded, stored, reached, waits, yields, sleeps, wakes] {
            count.set(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use crate::Communicator;
    use crate::operator::User;

    /// In a line, and in slices of cells.
    #[test]
    fn operators_may_ask_the_communicator_that_runs_them() {
        for count in [1, 20_000] {
            Communicator::threads(2, |comm| {
                let found = RefCell::new(Vec::new());
                let sum = User::commutative(|left: &mut [u64], right: &[u64]| {
                    found.borrow_mut().push((comm.members(), comm.counters().calls));
                    comm.reset_counters();
                    left.iter_mut().zip(right).for_each(|(left, right)| *left += right);
                });
                let mut sums = vec![0; count];
                comm.all_reduce_into(&vec![1; count], &mut sums, sum).unwrap();
                assert_eq!(sums, vec![2; count]);
                let found = found.into_inner();
                assert_eq!(found[0], (vec![0, 1], 1), "{count}");
                assert!(found[1..].iter().all(|found| *found == (vec![0, 1], 0)), "{count}");
                assert_eq!(comm.counters().calls, 0);
            })
            .unwrap();
        }
    }
}
