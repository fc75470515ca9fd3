//! The two halves of an allreduce through shares: what a hierarchy puts its network between (Bayatpour et al., SC17).

use std::num::NonZeroUsize;
use std::ops::Range;

use super::{FROM_LEADERS, TO_LEADERS, same_length, tag_of_call};
use crate::communicator::Communicator;
use crate::element::{Element, type_number};
use crate::error::{Error, Result};
use crate::operator::{Fold, Operator};
use crate::regime::Reduction;
use crate::regime::division::{Division, leader_of};
use crate::select::{Choice, Vector};

impl Communicator {
    /// The rank that leads share `share` of `leaders`: shares are led by ranks spread evenly over the communicator.
    /// Nobody leads a share that there is not (`share` is not below `leaders`): then this is
    /// [`size`](Communicator::size).
    ///
    /// ```
    /// # shm_core::Communicator::threads(1, |comm| {
    /// assert_eq!(comm.leader_of(0, 1), 0);
    /// # }).unwrap();
    /// ```
    #[must_use]
    pub fn leader_of(&self, share: usize, leaders: usize) -> usize {
        leader_of(share, leaders, self.size())
    }

    /// The elements that share `share` of `leaders` is made of, in a vector of `count` elements of `T`.
    ///
    /// Shares are whole cache lines where elements allow, follow one another, and differ by one line at most. A share
    /// that there is not (`share` is not below `leaders`) is empty, at the end.
    ///
    /// # Errors
    /// [`Leaders`](Error::Leaders), [`Tuning`](Error::Tuning); [`Blocks`](Error::Blocks): more elements than any memory
    /// holds.
    pub fn share_of<T: Element>(&self, count: usize, leaders: usize, share: usize) -> Result<Range<usize>> {
        self.share_of_bytes(size_of::<T>(), count, leaders, share)
    }

    /// The same of elements of so many bytes each.
    ///
    /// # Errors
    /// As of [`share_of`](Communicator::share_of).
    pub fn share_of_bytes(&self, element: usize, count: usize, leaders: usize, share: usize) -> Result<Range<usize>> {
        // Shares of as many bytes are computed without overflow.
        let most = usize::MAX / self.size() / element.max(1);
        if count > most && element > 0 {
            let what = "elements of a vector that is divided among leaders";
            let advice = " at most; no memory holds more";
            let (rank, size) = (self.rank(), self.size());
            return Err(Error::Blocks { rank, size, what, found: count, expected: most, advice });
        }
        let bytes = count * element;
        let choice = self.shares(Vector { element, ..Vector::of_bytes(bytes) }, leaders)?;
        let division = Division::new(bytes, element, leaders, choice.up_cell);
        let at = |share: usize| division.start(share.min(leaders)) / element.max(1);
        Ok(at(share)..at(share.saturating_add(1)))
    }

    /// Combines everybody's `send`; each of `leaders` leaders gets its share, at its place in `recv` (a reduce-scatter;
    /// compare MPI 4.1, section 6.10). What else is in `recv` stays as it was.
    ///
    /// Collective: all ranks must give the same leaders, count, type and operator. [`share_of`](Communicator::share_of)
    /// says who gets what. Contributions are combined in rank order.
    ///
    /// # Cost
    /// (3p-1)n bytes loaded and stored for n bytes on p ranks and p leaders; with one leader the same, n of them by
    /// each rank and the rest by the leader.
    ///
    /// # Errors
    /// [`Length`](Error::Length), [`Leaders`](Error::Leaders), [`Tuning`](Error::Tuning): refused, nothing was written.
    /// [`RankFailed`](Error::RankFailed), [`Mismatch`](Error::Mismatch), [`Refused`](Error::Refused): `recv` holds no
    /// meaning, and the communicator cannot be used further.
    ///
    /// ```
    /// use shm_core::{Communicator, operator::Sum};
    /// let shares = Communicator::threads(2, |comm| {
    ///     let mut sum = [0u64; 16];
    ///     comm.reduce_to_leaders(2, &[1; 16], &mut sum, Sum).unwrap();
    ///     (comm.share_of::<u64>(16, 2, comm.rank()).unwrap(), sum)
    /// }).unwrap();
    /// assert_eq!(shares[1], (8..16, [0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 2, 2, 2, 2, 2, 2]));
    /// ```
    pub fn reduce_to_leaders<T: Element, O: Operator<T>>(
        &self,
        leaders: usize,
        send: &[T],
        recv: &mut [T],
        operator: O,
    ) -> Result<()> {
        if let Err(error) = same_length(self.rank(), send, recv) {
            return self.refuse(error);
        }
        self.check_groups(send.len(), &operator)?;
        self.to_leaders(
            leaders,
            send.as_ptr().cast(),
            recv.as_mut_ptr().cast(),
            size_of_val(send),
            Fold::new(&operator),
        )
    }

    /// [`reduce_to_leaders`](Communicator::reduce_to_leaders) with one buffer; what is not the own share holds the own
    /// contribution afterwards.
    ///
    /// # Errors
    /// As there.
    pub fn reduce_to_leaders_in_place<T: Element, O: Operator<T>>(
        &self,
        leaders: usize,
        buffer: &mut [T],
        operator: O,
    ) -> Result<()> {
        self.check_groups(buffer.len(), &operator)?;
        let bytes = size_of_val(buffer);
        let buffer = buffer.as_mut_ptr().cast::<u8>();
        self.to_leaders(leaders, buffer, buffer, bytes, Fold::new(&operator))
    }

    /// Hands everybody each leader's share of `buffer` (an allgather; compare MPI 4.1, section 6.7): the other half of
    /// an allreduce.
    ///
    /// Collective: all ranks must give the same leaders, count and type.
    ///
    /// # Cost
    /// 2pn bytes loaded and stored for n bytes on p ranks.
    ///
    /// # Errors
    /// As [`reduce_to_leaders`](Communicator::reduce_to_leaders).
    pub fn gather_from_leaders<T: Element>(&self, leaders: usize, buffer: &mut [T]) -> Result<()> {
        self.gather_groups_from_leaders(leaders, NonZeroUsize::MIN, buffer)
    }

    /// The same, with shares of whole groups of so many elements, as an operator that takes them for one
    /// [divides](crate::operator::Operator::group) a vector.
    ///
    /// # Errors
    /// As there; [`Blocks`](Error::Blocks): the buffer does not hold whole groups.
    pub fn gather_groups_from_leaders<T: Element>(
        &self,
        leaders: usize,
        group: NonZeroUsize,
        buffer: &mut [T],
    ) -> Result<()> {
        self.check_whole(buffer.len(), group)?;
        let (bytes, element) = (size_of_val(buffer), size_of::<T>().saturating_mul(group.get()));
        let choice = match self.shares(Vector { element, ..Vector::of_bytes(bytes) }, leaders) {
            Ok(choice) => choice,
            Err(error) => return self.refuse(error),
        };
        let mut engine = self.enter()?;
        let tag = tag_of_call(FROM_LEADERS, leaders, type_number::<T>(), 0, buffer.len() / group);
        let tag = engine.board.chained(tag);
        engine.board.begin_at_home(tag)?;
        engine.shares_from_leaders(&choice, buffer.as_mut_ptr().cast(), bytes, element, tag)
    }

    fn to_leaders(&self, leaders: usize, send: *const u8, recv: *mut u8, bytes: usize, fold: Fold<'_>) -> Result<()> {
        let choice = match self.shares(fold.vector(bytes), leaders) {
            Ok(choice) => choice,
            Err(error) => return self.refuse(error),
        };
        let count = fold.count(bytes);
        let mut engine = self.enter()?;
        let tag = engine.board.chained(tag_of_call(TO_LEADERS, leaders, fold.kind, fold.code, count));
        engine.board.begin_at_home(tag)?;
        self.stopping_at_panic(|| engine.shares_to_leaders(&choice, Reduction { send, recv, bytes, fold }, tag))
    }

    /// The parameters of a call with so many leaders.
    fn shares(&self, vector: Vector, leaders: usize) -> Result<Choice> {
        if leaders == 0 || leaders > self.size() {
            return Err(Error::Leaders { rank: self.rank(), leaders, size: self.size() });
        }
        self.selection.choose_shares(leaders, vector)
    }
}

#[cfg(test)]
mod tests {
    use crate::operator::Sum;
    use crate::{Communicator, Error};

    #[test]
    fn halves_make_an_allreduce() {
        for size in 1..=5 {
            Communicator::threads(size, |comm| {
                for leaders in 1..=size {
                    for count in [0usize, 1, 7, 8, 9, 1000, 40_000] {
                        let send: Vec<u64> = (0..count as u64).map(|i| i * 7 + comm.rank() as u64).collect();
                        let mut recv = vec![u64::MAX; count];
                        comm.reduce_to_leaders(leaders, &send, &mut recv, Sum).unwrap();
                        let sum = |i: u64| i * 7 * size as u64 + (size * (size - 1) / 2) as u64;
                        for share in 0..leaders {
                            let own = comm.leader_of(share, leaders) == comm.rank();
                            for i in comm.share_of::<u64>(count, leaders, share).unwrap() {
                                assert_eq!(recv[i], if own { sum(i as u64) } else { u64::MAX });
                            }
                        }
                        comm.gather_from_leaders(leaders, &mut recv).unwrap();
                        assert!(recv.iter().enumerate().all(|(i, &got)| got == sum(i as u64)));
                        let mut both = send.clone();
                        comm.reduce_to_leaders_in_place(leaders, &mut both, Sum).unwrap();
                        comm.gather_from_leaders(leaders, &mut both).unwrap();
                        assert_eq!(both, recv);
                    }
                }
            })
            .unwrap();
        }
    }

    #[test]
    fn shares_and_leaders_that_there_are_not() {
        Communicator::threads(2, |comm| {
            assert_eq!([comm.leader_of(0, 0), comm.leader_of(2, 2), comm.leader_of(1, 2)], [2, 2, 1]);
            for share in [2, 3, usize::MAX] {
                assert_eq!(comm.share_of::<u64>(1000, 2, share).unwrap(), 1000..1000);
            }
            assert_eq!(comm.share_of::<u64>(1000, 2, 1).unwrap(), 496..1000);
            assert!(matches!(comm.share_of::<u64>(1000, 0, 0), Err(Error::Leaders { .. })));
            let most = usize::MAX / 16;
            for count in [most + 1, usize::MAX / 8 + 1, usize::MAX] {
                let error = comm.share_of::<u64>(count, 2, 1).unwrap_err();
                assert!(matches!(error, Error::Blocks { found, expected, .. } if (found, expected) == (count, most)));
            }
            let shares = [0, 1].map(|share| comm.share_of::<u64>(most, 2, share).unwrap());
            assert_eq!((shares[0].start, shares[0].end, shares[1].end), (0, shares[1].start, most));
            assert_eq!(comm.share_of::<()>(usize::MAX, 2, 1).unwrap(), 0..0);
        })
        .unwrap();
    }

    #[test]
    fn too_many_leaders_are_refused_everywhere() {
        Communicator::threads(2, |comm| {
            let error = comm.gather_from_leaders(3, &mut [0u8; 4]).unwrap_err().to_string();
            assert!(error.contains("3 leaders"), "{error}");
        })
        .unwrap();
    }
}
