//! The calls that move blocks, of bytes and by pointers: for libraries that have to do with other languages' buffers.
//!
//! Each is one of the safe calls: what must agree, what it costs and what it returns is said there. A length is a
//! number of bytes, and all ranks' elements count as bytes, so that ranks whose elements differ understand each other
//! if the bytes agree. Calls by bytes are not the same calls as those of elements of a type, but for `u8`.

use super::blocks::{Known, Name};
use super::{ALL_GATHER, ALL_TO_ALL, GATHER, SCATTER};
use crate::communicator::Communicator;
use crate::error::Result;
use crate::regime::blocks::Blocks;

fn name(numbers: [u64; 2], root: usize) -> Name {
    Name::of::<u8>(numbers, root)
}

impl Communicator {
    /// [`all_gather_into`](Communicator::all_gather_into), or, where `blocks` are uneven,
    /// [`all_gather_varcount_into`](Communicator::all_gather_varcount_into): `bytes` bytes at `send`, which is null
    /// where they lie in place, where no other block overlaps them.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Safety
    /// So many bytes are at `send`; `recv` has room for all blocks, those of uneven ones have an entry for each rank,
    /// and no block reaches beyond what a pointer can. Nobody else uses this memory during the call, and the two do not
    /// overlap.
    pub unsafe fn all_gather_bytes(
        &self,
        send: *const u8,
        bytes: usize,
        recv: *mut u8,
        blocks: Blocks<'_>,
    ) -> Result<()> {
        self.all_gather_to(name(ALL_GATHER, 0), self.known(&blocks), (send, bytes), (recv, blocks))
    }

    /// [`gather_into`](crate::Process::gather_into) and its siblings: `bytes` bytes at `send`, which is null where the
    /// root has its own in place; `recv` on the root alone. All ranks must agree on `even`: that all send equally much,
    /// and the root's blocks are even.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Safety
    /// As of [`all_gather_bytes`](Communicator::all_gather_bytes).
    pub unsafe fn gather_bytes(
        &self,
        root: usize,
        send: *const u8,
        bytes: usize,
        recv: Option<(*mut u8, Blocks<'_>)>,
        even: bool,
    ) -> Result<()> {
        let each = match recv {
            Some((_, blocks)) => blocks.len(self.rank()),
            None => bytes,
        };
        let known = if even { Known::Even(each) } else { Known::Own };
        self.gather_to(name(GATHER, root), known, (send, bytes), recv)
    }

    /// [`scatter_into`](crate::Process::scatter_into) and its siblings: `send` on the root alone; `bytes` bytes for
    /// `recv`, which is null where the root leaves its own where they are. All ranks must agree on `even`: that all get
    /// equally much, and the root's blocks are even.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Safety
    /// As of [`all_gather_bytes`](Communicator::all_gather_bytes), with all blocks at the root's `send`, and `bytes`
    /// bytes of room at `recv`.
    pub unsafe fn scatter_bytes(
        &self,
        root: usize,
        send: Option<(*const u8, Blocks<'_>)>,
        recv: *mut u8,
        bytes: usize,
        even: bool,
    ) -> Result<()> {
        let each = match send {
            Some((_, blocks)) => blocks.len(self.rank()),
            None => bytes,
        };
        let known = if even { Known::Even(each) } else { Known::Own };
        self.scatter_from(name(SCATTER, root), known, send, (recv, bytes))
    }

    /// [`all_to_all_into`](Communicator::all_to_all_into), or, where `receives` are uneven,
    /// [`all_to_all_varcount_into`](Communicator::all_to_all_varcount_into): no `send` where the blocks lie in place.
    /// All ranks must agree on whether blocks are even, of both buffers.
    ///
    /// # Errors
    /// As there; as of [`all_to_all_varcount_in_place`](Communicator::all_to_all_varcount_in_place) in place.
    ///
    /// # Safety
    /// As of [`all_gather_bytes`](Communicator::all_gather_bytes), with all blocks at `send`.
    pub unsafe fn all_to_all_bytes(
        &self,
        send: Option<(*const u8, Blocks<'_>)>,
        recv: *mut u8,
        receives: Blocks<'_>,
    ) -> Result<()> {
        let known = match receives {
            Blocks::Even(bytes) => Known::Even(bytes),
            Blocks::Uneven { .. } => Known::Own,
        };
        self.all_to_all_by(name(ALL_TO_ALL, 0), known, send, (recv, receives))
    }

    fn known(&self, blocks: &Blocks<'_>) -> Known {
        match blocks {
            Blocks::Even(bytes) => Known::Even(*bytes),
            uneven => Known::of(uneven, self.size()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    /// What rank `from` sends to rank `to`, byte by byte.
    fn byte(from: usize, to: usize, at: usize) -> u8 {
        (100 * from + 10 * to + at) as u8
    }

    /// Blocks of units of three bytes, in reverse order with gaps: rank `r` has `r` units of the longest one.
    fn uneven(longest: usize) -> ([usize; 3], [usize; 3]) {
        ([0, longest, 2 * longest], [3 * longest + 2, 2 * longest + 1, 0])
    }

    #[test]
    fn blocks_of_bytes_by_pointers() {
        for longest in [1, 20, 20_000] {
            Communicator::threads(3, |comm| {
                let me = comm.rank();
                let (counts, displs) = uneven(longest);
                let blocks = Blocks::Uneven { counts: &counts, displs: &displs, unit: 3 };
                let even = Blocks::Even(longest);
                let room = 3 * (3 * longest + 2);
                let fill = |blocks: Blocks<'_>, to: &dyn Fn(usize) -> (usize, usize)| {
                    let mut all = vec![7; room];
                    for rank in 0..3 {
                        let (from, to) = to(rank);
                        all[blocks.of(rank)].iter_mut().enumerate().for_each(|(at, place)| *place = byte(from, to, at));
                    }
                    all
                };
                for (blocks, even) in [(blocks, false), (even, true)] {
                    let own: Vec<u8> = (0..blocks.len(me)).map(|at| byte(me, 9, at)).collect();
                    let gathered = fill(blocks, &|rank| (rank, 9));
                    let mut recv = vec![7; room];
                    // SAFETY: the buffers are as long as the blocks say, and this rank's own.
                    unsafe { comm.all_gather_bytes(own.as_ptr(), own.len(), recv.as_mut_ptr(), blocks) }.unwrap();
                    assert!(recv == gathered);

                    let mut recv = vec![7; room];
                    let at_root = (me == 1).then_some((recv.as_mut_ptr(), blocks));
                    // SAFETY: the same.
                    unsafe { comm.gather_bytes(1, own.as_ptr(), own.len(), at_root, even) }.unwrap();
                    assert!(me != 1 || recv == gathered);

                    let scattered = fill(blocks, &|rank| (2, rank));
                    let mut own = vec![7; blocks.len(me)];
                    let at_root = (me == 2).then_some((scattered.as_ptr(), blocks));
                    // SAFETY: the same.
                    unsafe { comm.scatter_bytes(2, at_root, own.as_mut_ptr(), own.len(), even) }.unwrap();
                    assert!(own.iter().enumerate().all(|(at, &found)| found == byte(2, me, at)));

                    // Uneven: what goes to a rank has that rank's length, and so all that a rank gets has its own.
                    let send = fill(blocks, &|rank| (me, rank));
                    let (counts, displs) = ([counts[me]; 3], [2 * counts[me], 0, counts[me]]);
                    let receives =
                        if even { blocks } else { Blocks::Uneven { counts: &counts, displs: &displs, unit: 3 } };
                    let expected: Vec<(usize, usize)> = (0..3).map(|from| (receives.of(from).start, from)).collect();
                    let mut recv = vec![7; 3 * room];
                    // SAFETY: the same.
                    unsafe { comm.all_to_all_bytes(Some((send.as_ptr(), blocks)), recv.as_mut_ptr(), receives) }
                        .unwrap();
                    for (start, from) in expected {
                        assert!((0..receives.len(from)).all(|at| recv[start + at] == byte(from, me, at)));
                    }
                }
            })
            .unwrap();
        }
    }

    /// Calls by bytes are those of `u8`; other roots and lengths are told.
    #[test]
    fn bytes_are_checked_as_elements_are() {
        Communicator::threads(2, |comm| {
            let mine = [comm.rank() as u8; 4];
            let mut all = [0; 8];
            match comm.rank() {
                0 => comm.all_gather_into(&mine, &mut all).unwrap(),
                // SAFETY: eight bytes for two blocks of four.
                _ => unsafe { comm.all_gather_bytes(mine.as_ptr(), 4, all.as_mut_ptr(), Blocks::Even(4)) }.unwrap(),
            }
            assert_eq!(all, [0, 0, 0, 0, 1, 1, 1, 1]);
            // SAFETY: refused before anything is touched.
            let wrong = unsafe { comm.gather_bytes(5, mine.as_ptr(), 4, None, true) };
            assert!(matches!(wrong, Err(Error::Root { root: 5, .. })));
        })
        .unwrap();
    }
}
