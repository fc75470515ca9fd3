//! Alltoall (MPI 4.1, section 6.8).

use super::ALL_TO_ALL;
use super::blocks::{Known, Name};
use super::partition::{Partition, PartitionMut};
use crate::communicator::Communicator;
use crate::element::Element;
use crate::error::Result;
use crate::protocol::Readers;
use crate::protocol::delivery::Sources;
use crate::regime::blocks::{Blocks, Sending};
use crate::regime::route::{Landing, Route};

impl Communicator {
    /// Sends block `r` of `send` to rank `r`, whose `recv` has it as block of this rank (MPI_Alltoall; MPI 4.1, section
    /// 6.8). Both buffers have a block for each rank, all of one length.
    ///
    /// Collective: all ranks must give the same count and element type. Everybody publishes rows, a part for each other
    /// rank, and copies its parts out of everybody's. What lies in shared memory, and is long enough
    /// ([`alloc`](Communicator::alloc)), is copied from where it lies. So are, where more than two ranks share cores
    /// that have a second-level cache of 2 MiB and more, private blocks of 128 KiB and more (of 64 KiB where those of a
    /// rank have 1 MiB), up to 32 MiB of all ranks together, if the system lets ranks read each other's memory
    /// (`PHALANX_CMA`); a rank that it does not let gets its blocks through cells. Where one of these ranks can let
    /// nobody at its blocks, or exchanges in place, all private blocks of the call go through cells.
    ///
    /// # Cost
    /// Where the blocks of all other ranks fit in 1,144 bytes (504 on 3, 4 and more than 16 ranks that share cores)
    /// they go in one slot of lines: one line transfer deep. p(4p-2)n bytes loaded and stored for blocks of n bytes on
    /// p ranks; 2p²n where all `send`s are copied from where they lie.
    ///
    /// # Errors
    /// [`Length`](crate::Error::Length), [`Blocks`](crate::Error::Blocks): refused, nothing was written.
    /// [`RankFailed`](crate::Error::RankFailed), [`Mismatch`](crate::Error::Mismatch),
    /// [`Refused`](crate::Error::Refused): `recv` holds no meaning, and the communicator cannot be used further.
    ///
    /// ```
    /// let got = shm_core::Communicator::threads(2, |comm| {
    ///     let mut got = [0; 2];
    ///     comm.all_to_all_into(&[10 * comm.rank(), 10 * comm.rank() + 1], &mut got).unwrap();
    ///     got
    /// }).unwrap();
    /// assert_eq!(got, [[0, 10], [1, 11]]);
    /// ```
    pub fn all_to_all_into<T: Element>(&self, send: &[T], recv: &mut [T]) -> Result<()> {
        self.or_refuse(super::same_length(self.rank(), send, recv))?;
        let count = send.len() / self.size();
        self.check_blocks("send buffer of an alltoall", send.len(), count)?;
        let blocks = Blocks::Even(count * size_of::<T>());
        let send = Some((send.as_ptr().cast(), blocks));
        self.all_to_all_by(name::<T>(), Known::Even(count), send, (recv.as_mut_ptr().cast(), blocks))
    }

    /// [`all_to_all_into`](Communicator::all_to_all_into) with one buffer (MPI_IN_PLACE). It goes through lines or
    /// cells wherever it lies.
    ///
    /// # Errors
    /// As there; `buffer` must divide evenly among the ranks.
    pub fn all_to_all_in_place<T: Element>(&self, buffer: &mut [T]) -> Result<()> {
        let count = buffer.len() / self.size();
        self.check_blocks("buffer of an alltoall", buffer.len(), count)?;
        let recv = (buffer.as_mut_ptr().cast(), Blocks::Even(count * size_of::<T>()));
        self.all_to_all_by(name::<T>(), Known::Even(count), None, recv)
    }

    /// Sends each rank its block of `send`, to the place that its `recv` has for this rank (MPI_Alltoallv; MPI 4.1,
    /// section 6.8).
    ///
    /// Collective: all ranks must give the same element type; what a rank sends to another is as long as what that one
    /// expects of it.
    ///
    /// # Cost
    /// An exchange of lines in which the ranks tell how much they send to whom. Where all rows fit their slots beside
    /// these counts (8p bytes), they go along, and that was all; otherwise what an alltoall costs follows, through
    /// cells wherever buffers lie. Slices follow the longest block: beside one that is much longer than all others,
    /// rows are mostly empty.
    ///
    /// # Errors
    /// As there; [`Mismatch`](crate::Error::Mismatch) with a rank that sends another count than `recv` has for it.
    ///
    /// ```
    /// use shm_core::{Communicator, Partition, PartitionMut};
    /// let got = Communicator::threads(2, |comm| {
    ///     // Rank 0 sends one element to itself and two to rank 1, which sends nothing to rank 0 and one element to itself.
    ///     let (sends, receives) = if comm.rank() == 0 { ([1, 2], [1, 0]) } else { ([0, 1], [2, 1]) };
    ///     let mut got = [9; 3];
    ///     comm.all_to_all_varcount_into(
    ///         &Partition::new(&[1, 2, 3], &sends, &[0, 1]),
    ///         &mut PartitionMut::new(&mut got, &receives, &[0, 2]),
    ///     ).unwrap();
    ///     got
    /// }).unwrap();
    /// assert_eq!(got, [[1, 9, 9], [2, 3, 2]]);
    /// ```
    pub fn all_to_all_varcount_into<T: Element>(
        &self,
        send: &Partition<'_, T>,
        recv: &mut PartitionMut<'_, T>,
    ) -> Result<()> {
        let sends = self.or_refuse(send.blocks(self.rank(), self.size()))?;
        let receives = self.or_refuse(recv.blocks(self.rank(), self.size()))?;
        self.all_to_all_by(name::<T>(), Known::Own, Some((send.as_ptr(), sends)), (recv.as_mut_ptr(), receives))
    }

    /// [`all_to_all_varcount_into`](Communicator::all_to_all_varcount_into) with one buffer (MPI_IN_PLACE): what a rank
    /// sends to another is as long as what it gets from it. No two blocks may overlap.
    ///
    /// # Errors
    /// As there; [`Blocks`](crate::Error::Blocks) also where two blocks overlap.
    pub fn all_to_all_varcount_in_place<T: Element>(&self, buffer: &mut PartitionMut<'_, T>) -> Result<()> {
        let blocks = self.or_refuse(buffer.blocks(self.rank(), self.size()))?;
        self.all_to_all_by(name::<T>(), Known::Own, None, (buffer.as_mut_ptr(), blocks))
    }

    /// Each rank's blocks of `send` (nothing where they lie in `recv`) to the places that their readers have for it.
    pub(crate) fn all_to_all_by(
        &self,
        name: Name,
        known: Known,
        send: Option<(*const u8, Blocks<'_>)>,
        (recv, receives): (*mut u8, Blocks<'_>),
    ) -> Result<()> {
        let (me, size) = (self.rank(), self.size());
        if send.is_none() {
            let what = "units of a block of an all-to-all in place that another block does not overlap";
            self.check_all_apart(what, &receives)?;
        }
        let (buffer, sends) = send.unwrap_or((recv.cast_const(), receives));
        let (from, to) = (sends.of(me), receives.of(me));
        self.check_count("what a rank sends to itself", from.len(), to.len(), " (bytes), as it expects of itself")?;
        let even = matches!(known, Known::Even(_));
        if even && self.goes_in_slots(size - 1, from.len()) {
            let mut engine = self.enter()?;
            let tag = engine.board.chained(name.tag(known));
            return engine.slot_all_to_all(buffer, recv, from.len(), tag);
        }
        let mut route = Route {
            send: Sending::Rows(buffer, sends),
            readers: Some(Readers::All),
            sources: Sources::Others,
            rows: true,
            recv,
            blocks: Landing::Each(receives),
            own: send.is_some().then(|| (buffer.wrapping_add(from.start), recv.wrapping_add(to.start), from.len())),
            // In place the buffer changes while others would read it.
            lends: send.is_some() && even,
            even,
            longest: sends.longest(size),
        };
        if even {
            return self.move_blocks(name, known, size - 1, None, route);
        }
        let mut engine = self.enter()?;
        let tag = engine.board.chained(name.tag(known));
        let most = self.selection.block_lines();
        let heard = engine.exchange_rows(tag, (buffer, sends), (recv, receives), route.own, most)?;
        if heard.has_come {
            return Ok(());
        }
        // The own block is there.
        (route.own, route.longest, route.even) = (None, heard.longest, heard.is_even);
        self.move_noted(&mut engine, (name, tag), size - 1, route)
    }
}

fn name<T: Element>() -> Name {
    Name::of::<T>(ALL_TO_ALL, 0)
}

#[cfg(test)]
mod tests {
    use crate::{Communicator, Error, PartitionMut};

    /// Blocks of a line and of many; in the order of ranks, and in another.
    #[test]
    fn blocks_that_overlap_are_not_exchanged_in_place() {
        for count in [2, 2048] {
            for displs in [[0, count / 2, 2 * count], [2 * count, 0, count / 2]] {
                Communicator::threads(3, |comm| {
                    let me = comm.rank();
                    let displs = if me == 0 { displs } else { [0, count, 2 * count] };
                    let (mut all, counts) = (vec![me; 3 * count], [count; 3]);
                    let mut buffer = PartitionMut::new(&mut all, &counts, &displs);
                    match (me, comm.all_to_all_varcount_in_place(&mut buffer).unwrap_err()) {
                        (0, error) => {
                            let said = format!("overlap: {} where {count} are needed", count / 2);
                            assert!(error.to_string().contains(&said), "{error}");
                            assert!(matches!(error, Error::Blocks { .. }) && all.iter().all(|&found| found == 0));
                        }
                        (_, error) => assert_eq!(error, Error::Refused { rank: 0 }),
                    }
                })
                .unwrap();
            }
        }
    }

    /// Long blocks, where ranks share cores: from all buffers, from some, and from none of those that are sent in
    /// place.
    #[test]
    fn who_exchanges_in_place_meets_others_that_do_not() {
        const COUNT: usize = 70_000;
        let spec = crate::job::JobSpec { cores: 1, ..crate::job::JobSpec::new(3).unwrap() };
        spec.on_threads(|comm| {
            let (me, size) = (comm.rank(), comm.size());
            let row = |call: usize, block: fn(usize, usize) -> usize| {
                (0..size * COUNT).map(move |at| (call + 10 * block(me, at / COUNT) + at % COUNT) as u16)
            };
            for in_place in 0..1 << size {
                let send: Vec<u16> = row(in_place, |me, to| 3 * me + to).collect();
                let mut recv = send.clone();
                match in_place >> me & 1 {
                    1 => comm.all_to_all_in_place(&mut recv).unwrap(),
                    _ => comm.all_to_all_into(&send, &mut recv).unwrap(),
                }
                assert!(recv.into_iter().eq(row(in_place, |me, from| 3 * from + me)), "{in_place:#b}, rank {me}");
            }
        });
    }

    /// Blocks in any order that touch each other, and an empty one within another.
    #[test]
    fn blocks_that_lie_apart_are_exchanged_in_place() {
        let all = Communicator::threads(3, |comm| {
            let me = comm.rank();
            let mut all = std::array::from_fn::<_, 5, _>(|at| 10 * me + at);
            // The block for rank 2 begins within that for rank 1, and is empty.
            let (counts, displs) = if me == 2 { ([0, 0, 1], [2, 1, 0]) } else { ([2, 2, 0], [2, 0, 1]) };
            comm.all_to_all_varcount_in_place(&mut PartitionMut::new(&mut all, &counts, &displs)).unwrap();
            all
        });
        assert_eq!(all.unwrap(), [[12, 13, 2, 3, 4], [10, 11, 0, 1, 14], [20, 21, 22, 23, 24]]);
    }
}
