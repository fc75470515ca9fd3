//! Gather (MPI 4.1, section 6.5).

use super::GATHER;
use super::blocks::{Counted, Known, Name};
use super::partition::PartitionMut;
use super::process::Process;
use crate::communicator::Communicator;
use crate::element::Element;
use crate::error::Result;
use crate::protocol::Readers;
use crate::protocol::delivery::Sources;
use crate::regime::blocks::{Blocks, Sending};
use crate::regime::route::{Landing, Route};

impl Process<'_> {
    /// Contributes `send` to what this process gathers: called by all ranks but this one (MPI_Gather; MPI 4.1, section
    /// 6.5).
    ///
    /// Collective: all ranks must give the same root, count and element type. May return before the root has it. What
    /// lies in shared memory ([`alloc`](crate::Communicator::alloc)) is copied from where it lies: its owner then
    /// returns when the root has it. Where ranks share cores blocks of 128 KiB and more (of 64 KiB where all have 512
    /// KiB together) are put by their owners where the root wants them, in private memory too, if the system lets ranks
    /// write to each other's memory (`PHALANX_CMA`): these return no sooner than the root has come. A rank that it does
    /// not let sends its block through cells.
    ///
    /// # Cost
    /// Blocks of up to 1,144 bytes (504 on 3, 4 and more than 16 ranks that share cores) go in a line each: one line
    /// transfer deep.
    /// (4p-2)n bytes loaded and stored for blocks of n bytes on p ranks; 2pn where all of them lie in shared memory, or
    /// are put where the root wants them.
    ///
    /// # Errors
    /// As [`gather_into_root`](Process::gather_into_root).
    pub fn gather_into<T: Element>(&self, send: &[T]) -> Result<()> {
        let name = self.name_of_gather::<T>();
        self.comm().gather_to(name, Known::Even(send.len()), (send.as_ptr().cast(), size_of_val(send)), None)
    }

    /// Gathers everybody's `send` in `recv`, in rank order: called by this process itself. `recv` has room for one
    /// block of every rank.
    ///
    /// # Errors
    /// [`Root`](crate::Error::Root), [`Blocks`](crate::Error::Blocks): refused, nothing was written.
    /// [`RankFailed`](crate::Error::RankFailed), [`Mismatch`](crate::Error::Mismatch),
    /// [`Refused`](crate::Error::Refused): `recv` holds no meaning, and the communicator cannot be used further.
    ///
    /// ```
    /// shm_core::Communicator::threads(3, |comm| {
    ///     let root = comm.process_at_rank(1);
    ///     let mine = [comm.rank() as u8; 2];
    ///     if comm.rank() == root.rank() {
    ///         let mut all = [9; 6];
    ///         root.gather_into_root(&mine, &mut all).unwrap();
    ///         assert_eq!(all, [0, 0, 1, 1, 2, 2]);
    ///     } else {
    ///         root.gather_into(&mine).unwrap();
    ///     }
    /// }).unwrap();
    /// ```
    pub fn gather_into_root<T: Element>(&self, send: &[T], recv: &mut [T]) -> Result<()> {
        let comm = self.comm();
        comm.check_blocks("receive buffer of a gather", recv.len(), send.len())?;
        let bytes = size_of_val(send);
        let recv = Some((recv.as_mut_ptr().cast(), Blocks::Even(bytes)));
        comm.gather_to(self.name_of_gather::<T>(), Known::Even(send.len()), (send.as_ptr().cast(), bytes), recv)
    }

    /// [`gather_into_root`](Process::gather_into_root) where this process has its own block at its place in `buffer`
    /// (MPI_IN_PLACE).
    ///
    /// # Errors
    /// As there; `buffer` must divide evenly among the ranks.
    pub fn gather_into_root_in_place<T: Element>(&self, buffer: &mut [T]) -> Result<()> {
        let comm = self.comm();
        let count = buffer.len() / comm.size();
        comm.check_blocks("buffer of a gather", buffer.len(), count)?;
        let recv = Some((buffer.as_mut_ptr().cast(), Blocks::Even(count * size_of::<T>())));
        comm.gather_to(self.name_of_gather::<T>(), Known::Even(count), (std::ptr::null(), 0), recv)
    }

    /// Contributes `send` to what this process gathers, where contributions have different lengths: called by all ranks
    /// but this one (MPI_Gatherv; MPI 4.1, section 6.5).
    ///
    /// Collective: all ranks must give the same root and element type; the root's count for a rank must be what that
    /// rank sends.
    ///
    /// # Cost
    /// That of a gather; and, before, an exchange of lines in which the ranks tell their lengths, so that nobody runs
    /// ahead.
    ///
    /// # Errors
    /// As [`gather_varcount_into_root`](Process::gather_varcount_into_root).
    pub fn gather_varcount_into<T: Element>(&self, send: &[T]) -> Result<()> {
        self.comm().gather_to(self.name_of_gather::<T>(), Known::Own, (send.as_ptr().cast(), size_of_val(send)), None)
    }

    /// Gathers everybody's `send`, each at its place in `recv`: called by this process itself.
    ///
    /// # Errors
    /// As [`gather_into_root`](Process::gather_into_root); [`Mismatch`](crate::Error::Mismatch) with a rank that sends
    /// another count than `recv` has for it.
    ///
    /// ```
    /// use shm_core::{Communicator, PartitionMut};
    /// Communicator::threads(3, |comm| {
    ///     let root = comm.process_at_rank(0);
    ///     let mine = vec![comm.rank() as u8; comm.rank() + 1];
    ///     if comm.rank() == root.rank() {
    ///         let mut all = [9; 8];
    ///         root.gather_varcount_into_root(&mine, &mut PartitionMut::new(&mut all, &[1, 2, 3], &[7, 0, 3])).unwrap();
    ///         assert_eq!(all, [1, 1, 9, 2, 2, 2, 9, 0]);
    ///     } else {
    ///         root.gather_varcount_into(&mine).unwrap();
    ///     }
    /// }).unwrap();
    /// ```
    pub fn gather_varcount_into_root<T: Element>(&self, send: &[T], recv: &mut PartitionMut<'_, T>) -> Result<()> {
        let comm = self.comm();
        let blocks = comm.or_refuse(recv.blocks(comm.rank(), comm.size()))?;
        let (bytes, recv) = (size_of_val(send), Some((recv.as_mut_ptr(), blocks)));
        comm.gather_to(self.name_of_gather::<T>(), Known::Own, (send.as_ptr().cast(), bytes), recv)
    }

    /// [`gather_varcount_into_root`](Process::gather_varcount_into_root) where this process has its own block at its
    /// place already (MPI_IN_PLACE).
    ///
    /// # Errors
    /// As there.
    pub fn gather_varcount_into_root_in_place<T: Element>(&self, buffer: &mut PartitionMut<'_, T>) -> Result<()> {
        let comm = self.comm();
        let blocks = comm.or_refuse(buffer.blocks(comm.rank(), comm.size()))?;
        let recv = Some((buffer.as_mut_ptr(), blocks));
        comm.gather_to(self.name_of_gather::<T>(), Known::Own, (std::ptr::null(), 0), recv)
    }

    fn name_of_gather<T: Element>(&self) -> Name {
        Name::of::<T>(GATHER, self.rank())
    }
}

impl Communicator {
    /// Everybody's `bytes` bytes at `send` (null on a root that has them in place) to their places in the root's
    /// `recv`.
    pub(crate) fn gather_to(
        &self,
        name: Name,
        known: Known,
        (send, bytes): (*const u8, usize),
        recv: Option<(*mut u8, Blocks<'_>)>,
    ) -> Result<()> {
        let (me, root) = (self.rank(), name.root);
        self.check_root(root)?;
        let counted = matches!(known, Known::Own);
        let Some((buffer, blocks)) = recv else {
            if me == root {
                return self.refuse(self.wrong_root(root, "the root itself calls the form that ends in _into_root"));
            }
            if !counted && self.selection.fits_a_slot(1, bytes) {
                return self.gather_in_a_slot(name, known, (send, bytes), std::ptr::null_mut());
            }
            let tells = [bytes as u64];
            let told = Counted { tells: &tells, expects: &|_, _| None };
            let route = Route {
                send: Sending::Same(send, bytes),
                readers: Some(Readers::One(root)),
                sources: Sources::Nobody,
                rows: false,
                recv: std::ptr::null_mut(),
                blocks: Landing::Only(0),
                own: None,
                lends: true,
                even: !counted,
                longest: bytes,
            };
            return self.move_blocks(name, known, 1, counted.then_some(told), route);
        };
        if me != root {
            return self.refuse(self.wrong_root(root, "ranks other than the root call the form without _root"));
        }
        if !send.is_null() {
            self.check_count("the root's own block", bytes, blocks.len(me), " by its own count (in bytes)")?;
        }
        if let (false, Blocks::Even(each)) = (counted, blocks)
            && self.selection.fits_a_slot(1, each)
        {
            return self.gather_in_a_slot(name, known, (send, each), buffer);
        }
        let longest = blocks.longest(self.size());
        let tells = [longest as u64];
        let told = Counted { tells: &tells, expects: &|rank, _| Some(blocks.len(rank)) };
        let route = Route {
            send: Sending::Nothing,
            readers: None,
            sources: Sources::Others,
            rows: false,
            recv: buffer,
            blocks: Landing::Each(blocks),
            own: (!send.is_null()).then(|| (send, buffer.wrapping_add(blocks.of(me).start), bytes)),
            lends: false,
            even: !counted,
            longest,
        };
        self.move_blocks(name, known, 1, counted.then_some(told), route)
    }

    /// The same for equal blocks that fit a slot of lines.
    #[inline]
    fn gather_in_a_slot(
        &self,
        name: Name,
        known: Known,
        (send, bytes): (*const u8, usize),
        recv: *mut u8,
    ) -> Result<()> {
        let mut engine = self.enter()?;
        let tag = engine.board.chained(name.tag(known));
        engine.slot_gather(name.root, send, bytes, recv, tag)
    }
}
