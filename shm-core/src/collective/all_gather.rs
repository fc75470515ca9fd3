//! Allgather (MPI 4.1, section 6.7).

use super::ALL_GATHER;
use super::blocks::{Known, Name};
use super::partition::PartitionMut;
use crate::communicator::Communicator;
use crate::element::Element;
use crate::error::Result;
use crate::protocol::Readers;
use crate::protocol::delivery::Sources;
use crate::regime::blocks::{Blocks, Sending};
use crate::regime::route::{Landing, Route};

impl Communicator {
    /// Gathers everybody's `send` in everybody's `recv`, in rank order (MPI_Allgather; MPI 4.1, section 6.7). `recv`
    /// has room for one block of every rank.
    ///
    /// Collective: all ranks must give the same count and element type. Everybody publishes its block and copies
    /// everybody's to its place. What lies in shared memory, and is long enough ([`alloc`](Communicator::alloc)), is
    /// copied from where it lies.
    ///
    /// # Cost
    /// Blocks of up to 1,144 bytes (504 on 3, 4 and more than 16 ranks that share cores) go in a line each: one line
    /// transfer deep.
    /// 2p(p+1)n bytes loaded and stored for blocks of n bytes on p ranks; 2p²n where all of them are copied from where
    /// they lie; 2pn less in place.
    ///
    /// # Errors
    /// [`Blocks`](crate::Error::Blocks): refused, nothing was written. [`RankFailed`](crate::Error::RankFailed),
    /// [`Mismatch`](crate::Error::Mismatch), [`Refused`](crate::Error::Refused): `recv` holds no meaning, and the
    /// communicator cannot be used further.
    ///
    /// ```
    /// let all = shm_core::Communicator::threads(3, |comm| {
    ///     let mut all = [0; 6];
    ///     comm.all_gather_into(&[comm.rank(); 2], &mut all).unwrap();
    ///     all
    /// }).unwrap();
    /// assert_eq!(all, [[0, 0, 1, 1, 2, 2]; 3]);
    /// ```
    pub fn all_gather_into<T: Element>(&self, send: &[T], recv: &mut [T]) -> Result<()> {
        self.check_blocks("receive buffer of an allgather", recv.len(), send.len())?;
        let bytes = size_of_val(send);
        let send_at = (send.as_ptr().cast(), bytes);
        let recv = (recv.as_mut_ptr().cast(), Blocks::Even(bytes));
        self.all_gather_to(name::<T>(), Known::Even(send.len()), send_at, recv)
    }

    /// [`all_gather_into`](Communicator::all_gather_into) where each rank has its block at its place in `buffer`
    /// (MPI_IN_PLACE).
    ///
    /// # Errors
    /// As there; `buffer` must divide evenly among the ranks.
    pub fn all_gather_in_place<T: Element>(&self, buffer: &mut [T]) -> Result<()> {
        let count = buffer.len() / self.size();
        self.check_blocks("buffer of an allgather", buffer.len(), count)?;
        let recv = (buffer.as_mut_ptr().cast(), Blocks::Even(count * size_of::<T>()));
        self.all_gather_to(name::<T>(), Known::Even(count), (std::ptr::null(), 0), recv)
    }

    /// Gathers everybody's `send`, of different lengths, each at its place in everybody's `recv` (MPI_Allgatherv; MPI
    /// 4.1, section 6.7).
    ///
    /// Collective: all ranks must give the same counts and element type; each sends as much as its count says.
    /// Displacements may differ.
    ///
    /// # Cost
    /// As of [`all_gather_into`](Communicator::all_gather_into), with the longest block for n where that decides
    /// between lines and cells.
    ///
    /// # Errors
    /// As there.
    ///
    /// ```
    /// use shm_core::{Communicator, PartitionMut};
    /// let all = Communicator::threads(3, |comm| {
    ///     let mut all = [9; 7];
    ///     let mine = vec![comm.rank(); comm.rank() + 1];
    ///     comm.all_gather_varcount_into(&mine, &mut PartitionMut::new(&mut all, &[1, 2, 3], &[6, 4, 0])).unwrap();
    ///     all
    /// }).unwrap();
    /// assert_eq!(all, [[2, 2, 2, 9, 1, 1, 0]; 3]);
    /// ```
    pub fn all_gather_varcount_into<T: Element>(&self, send: &[T], recv: &mut PartitionMut<'_, T>) -> Result<()> {
        let blocks = self.or_refuse(recv.blocks(self.rank(), self.size()))?;
        let send = (send.as_ptr().cast(), size_of_val(send));
        self.all_gather_to(name::<T>(), Known::of(&blocks, self.size()), send, (recv.as_mut_ptr(), blocks))
    }

    /// [`all_gather_varcount_into`](Communicator::all_gather_varcount_into) where each rank has its block at its place
    /// already (MPI_IN_PLACE). No other rank's block may overlap the own one, from where it is sent.
    ///
    /// # Errors
    /// As there; [`Blocks`](crate::Error::Blocks) also where another block overlaps the own one.
    pub fn all_gather_varcount_in_place<T: Element>(&self, buffer: &mut PartitionMut<'_, T>) -> Result<()> {
        let blocks = self.or_refuse(buffer.blocks(self.rank(), self.size()))?;
        let known = Known::of(&blocks, self.size());
        self.all_gather_to(name::<T>(), known, (std::ptr::null(), 0), (buffer.as_mut_ptr(), blocks))
    }

    /// Everybody's `bytes` bytes at `send` (null where they lie in place) to their places in everybody's `recv`.
    pub(crate) fn all_gather_to(
        &self,
        name: Name,
        known: Known,
        (send, bytes): (*const u8, usize),
        (recv, blocks): (*mut u8, Blocks<'_>),
    ) -> Result<()> {
        let own = blocks.of(self.rank());
        let place = recv.wrapping_add(own.start);
        if send.is_null() {
            let what = "units of the own block of an allgather in place that no other block overlaps";
            self.check_own_apart(what, &blocks)?;
        } else {
            self.check_count("send buffer of an allgather", bytes, own.len(), " by the own count (in bytes)")?;
        }
        let longest = blocks.longest(self.size());
        if self.goes_in_slots(1, longest) {
            let mut engine = self.enter()?;
            let tag = engine.board.chained(name.tag(known));
            return engine.slot_all_gather(send, recv, blocks, tag);
        }
        let route = Route {
            send: Sending::Same(if send.is_null() { place.cast_const() } else { send }, own.len()),
            readers: Some(Readers::All),
            sources: Sources::Others,
            rows: false,
            recv,
            blocks: Landing::Each(blocks),
            own: (!send.is_null()).then_some((send, place, bytes)),
            lends: true,
            even: matches!(known, Known::Even(_)),
            longest,
        };
        self.move_blocks(name, known, 1, None, route)
    }
}

fn name<T: Element>() -> Name {
    Name::of::<T>(ALL_GATHER, 0)
}

#[cfg(test)]
mod tests {
    use crate::{Communicator, Error, PartitionMut};

    /// In one slot of lines, and in slices of cells.
    #[test]
    fn an_own_block_that_others_overlap_is_not_sent_in_place() {
        for count in [2, 2048] {
            Communicator::threads(3, |comm| {
                let me = comm.rank();
                let counts = [count; 3];
                let displs = if me == 0 { [0, count / 2, 2 * count] } else { [0, count, 2 * count] };
                let mut all = vec![me; 3 * count];
                let error = comm.all_gather_varcount_in_place(&mut PartitionMut::new(&mut all, &counts, &displs));
                match (me, error.unwrap_err()) {
                    (0, error) => {
                        let said = format!("overlaps: {} where {count} are needed", count / 2);
                        assert!(matches!(error, Error::Blocks { .. }) && error.to_string().contains(&said), "{error}");
                        assert!(all.iter().all(|&found| found == 0));
                    }
                    (_, error) => assert_eq!(error, Error::Refused { rank: 0 }),
                }
            })
            .unwrap();
        }
    }

    /// Others' blocks, and empty ones, may lie on top of each other; the own one may touch them.
    #[test]
    fn own_blocks_that_lie_apart_are_sent_in_place() {
        let own = Communicator::threads(3, |comm| {
            let me = comm.rank();
            let counts = [2, 0, 2];
            let displs = [[0, 1, 2], [0, 1, 0], [0, 3, 2]][me];
            let mut all = vec![me; 4];
            comm.all_gather_varcount_in_place(&mut PartitionMut::new(&mut all, &counts, &displs)).unwrap();
            all
        });
        let own = own.unwrap();
        assert_eq!([&own[0], &own[2]], [&[0, 0, 2, 2]; 2]);
        assert!(own[1][..2] == [0, 0] || own[1][..2] == [2, 2], "{:?}", own[1]);
        assert_eq!(own[1][2..], [1, 1]);
    }
}
