//! Scatter (MPI 4.1, section 6.6).

use super::SCATTER;
use super::blocks::{Counted, Known, Name};
use super::partition::Partition;
use super::process::Process;
use crate::communicator::Communicator;
use crate::element::Element;
use crate::error::Result;
use crate::protocol::Readers;
use crate::protocol::delivery::Sources;
use crate::regime::blocks::{Blocks, Sending};
use crate::regime::route::{Landing, Route};

impl Process<'_> {
    /// Gets this rank's block of what this process scatters: called by all ranks but this one (MPI_Scatter; MPI 4.1,
    /// section 6.6).
    ///
    /// Collective: all ranks must give the same root, count and element type. The root may return before the others
    /// have their blocks. A root's buffer in shared memory ([`alloc`](crate::Communicator::alloc)) is copied from where
    /// it lies: the root then returns when all have their blocks. Where ranks share cores so it is with a private one
    /// whose blocks have 128 KiB and more (64 KiB where there are many ranks: more than half of what the root's cells
    /// hold of each), if the system lets ranks read each other's memory (`PHALANX_CMA`); a rank that it does not let gets
    /// its block through cells.
    ///
    /// # Cost
    /// Where the blocks of all other ranks fit in 1,144 bytes (504 on 3, 4 and more than 16 ranks that share cores)
    /// they go in one slot of lines: one line transfer deep. (4p-2)n bytes loaded and stored for blocks of n bytes on p
    /// ranks; 2pn where they are copied from where the root has them.
    ///
    /// # Errors
    /// As [`scatter_into_root`](Process::scatter_into_root).
    pub fn scatter_into<T: Element>(&self, recv: &mut [T]) -> Result<()> {
        let (count, bytes) = (recv.len(), size_of_val(recv));
        let recv = (recv.as_mut_ptr().cast(), bytes);
        self.comm().scatter_from(self.name_of_scatter::<T>(), Known::Even(count), None, recv)
    }

    /// Scatters `send`, a block for each rank in rank order, and puts the own one in `recv`: called by this process
    /// itself.
    ///
    /// # Errors
    /// [`Root`](crate::Error::Root), [`Blocks`](crate::Error::Blocks): refused, nothing was written.
    /// [`RankFailed`](crate::Error::RankFailed), [`Mismatch`](crate::Error::Mismatch),
    /// [`Refused`](crate::Error::Refused): `recv` holds no meaning, and the communicator cannot be used further.
    ///
    /// ```
    /// let got = shm_core::Communicator::threads(3, |comm| {
    ///     let root = comm.process_at_rank(2);
    ///     let mut mine = [0; 2];
    ///     if comm.rank() == root.rank() {
    ///         root.scatter_into_root(&[1, 2, 3, 4, 5, 6], &mut mine).unwrap();
    ///     } else {
    ///         root.scatter_into(&mut mine).unwrap();
    ///     }
    ///     mine
    /// }).unwrap();
    /// assert_eq!(got, [[1, 2], [3, 4], [5, 6]]);
    /// ```
    pub fn scatter_into_root<T: Element>(&self, send: &[T], recv: &mut [T]) -> Result<()> {
        let comm = self.comm();
        comm.check_blocks("send buffer of a scatter", send.len(), recv.len())?;
        let (count, bytes) = (recv.len(), size_of_val(recv));
        let send = Some((send.as_ptr().cast(), Blocks::Even(bytes)));
        comm.scatter_from(self.name_of_scatter::<T>(), Known::Even(count), send, (recv.as_mut_ptr().cast(), bytes))
    }

    /// [`scatter_into_root`](Process::scatter_into_root) where this process leaves its own block where it is
    /// (MPI_IN_PLACE).
    ///
    /// # Errors
    /// As there; `send` must divide evenly among the ranks.
    pub fn scatter_into_root_in_place<T: Element>(&self, send: &[T]) -> Result<()> {
        let comm = self.comm();
        let count = send.len() / comm.size();
        comm.check_blocks("send buffer of a scatter", send.len(), count)?;
        let send = Some((send.as_ptr().cast(), Blocks::Even(count * size_of::<T>())));
        comm.scatter_from(self.name_of_scatter::<T>(), Known::Even(count), send, (std::ptr::null_mut(), 0))
    }

    /// Gets this rank's block of what this process scatters, where blocks have different lengths: called by all ranks
    /// but this one (MPI_Scatterv; MPI 4.1, section 6.6).
    ///
    /// Collective: all ranks must give the same root and element type; the root's count for a rank must be the length
    /// of that rank's `recv`.
    ///
    /// # Cost
    /// That of a scatter, through cells wherever the root's buffer lies; and, before, an exchange of lines in which the
    /// ranks tell their lengths, so that nobody runs ahead.
    ///
    /// # Errors
    /// As [`scatter_varcount_into_root`](Process::scatter_varcount_into_root).
    pub fn scatter_varcount_into<T: Element>(&self, recv: &mut [T]) -> Result<()> {
        let bytes = size_of_val(recv);
        self.comm().scatter_from(self.name_of_scatter::<T>(), Known::Own, None, (recv.as_mut_ptr().cast(), bytes))
    }

    /// Scatters the blocks of `send` and puts the own one in `recv`: called by this process itself.
    ///
    /// # Errors
    /// As [`scatter_into_root`](Process::scatter_into_root); [`Mismatch`](crate::Error::Mismatch) with a rank that
    /// expects another count than `send` has for it.
    pub fn scatter_varcount_into_root<T: Element>(&self, send: &Partition<'_, T>, recv: &mut [T]) -> Result<()> {
        let comm = self.comm();
        let blocks = comm.or_refuse(send.blocks(comm.rank(), comm.size()))?;
        let bytes = size_of_val(recv);
        let recv = (recv.as_mut_ptr().cast(), bytes);
        comm.scatter_from(self.name_of_scatter::<T>(), Known::Own, Some((send.as_ptr(), blocks)), recv)
    }

    /// [`scatter_varcount_into_root`](Process::scatter_varcount_into_root) where this process leaves its own block
    /// where it is (MPI_IN_PLACE).
    ///
    /// # Errors
    /// As there.
    pub fn scatter_varcount_into_root_in_place<T: Element>(&self, send: &Partition<'_, T>) -> Result<()> {
        let comm = self.comm();
        let blocks = comm.or_refuse(send.blocks(comm.rank(), comm.size()))?;
        let send = Some((send.as_ptr(), blocks));
        comm.scatter_from(self.name_of_scatter::<T>(), Known::Own, send, (std::ptr::null_mut(), 0))
    }

    fn name_of_scatter<T: Element>(&self) -> Name {
        Name::of::<T>(SCATTER, self.rank())
    }
}

impl Communicator {
    /// The blocks of the root's `send` to everybody's `recv` (null on a root that leaves its own where it is).
    pub(crate) fn scatter_from(
        &self,
        name: Name,
        known: Known,
        send: Option<(*const u8, Blocks<'_>)>,
        (recv, bytes): (*mut u8, usize),
    ) -> Result<()> {
        let (me, size, root) = (self.rank(), self.size(), name.root);
        self.check_root(root)?;
        let counted = matches!(known, Known::Own);
        let Some((buffer, blocks)) = send else {
            if me == root {
                return self.refuse(self.wrong_root(root, "the root itself calls the form that ends in _into_root"));
            }
            if !counted && self.selection.fits_a_slot(size - 1, bytes) {
                return self.scatter_in_a_slot(name, known, std::ptr::null(), (recv, bytes));
            }
            let tells = [bytes as u64];
            let told = Counted { tells: &tells, expects: &|_, _| None };
            let route = Route {
                send: Sending::Nothing,
                readers: None,
                sources: Sources::One(root),
                rows: true,
                recv,
                blocks: Landing::Only(bytes),
                own: None,
                lends: false,
                even: false,
                longest: bytes,
            };
            return self.move_blocks(name, known, size - 1, counted.then_some(told), route);
        };
        if me != root {
            return self.refuse(self.wrong_root(root, "ranks other than the root call the form without _root"));
        }
        if !recv.is_null() {
            self.check_count("the root's own block", bytes, blocks.len(me), " by its own count (in bytes)")?;
        }
        if let (false, Blocks::Even(each)) = (counted, blocks)
            && self.selection.fits_a_slot(size - 1, each)
        {
            return self.scatter_in_a_slot(name, known, buffer, (recv, each));
        }
        let longest = blocks.longest(size);
        let tells = [longest as u64];
        let told = Counted { tells: &tells, expects: &|rank, _| Some(blocks.len(rank)) };
        let route = Route {
            send: Sending::Rows(buffer, blocks),
            readers: Some(Readers::All),
            sources: Sources::Nobody,
            rows: true,
            recv,
            blocks: Landing::Only(0),
            own: (!recv.is_null()).then(|| (buffer.wrapping_add(blocks.of(me).start), recv, bytes)),
            lends: matches!(blocks, Blocks::Even(_)),
            even: false,
            longest,
        };
        self.move_blocks(name, known, size - 1, counted.then_some(told), route)
    }

    /// The same for equal blocks of which those of all other ranks fit a slot of lines.
    #[inline]
    fn scatter_in_a_slot(
        &self,
        name: Name,
        known: Known,
        send: *const u8,
        (recv, bytes): (*mut u8, usize),
    ) -> Result<()> {
        let mut engine = self.enter()?;
        let tag = engine.board.chained(name.tag(known));
        engine.slot_scatter(name.root, send, recv, bytes, tag)
    }
}
