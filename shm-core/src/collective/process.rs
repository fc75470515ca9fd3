//! The root of rooted collectives.

use super::same_length;
use crate::communicator::Communicator;
use crate::element::Element;
use crate::error::Result;
use crate::operator::{Fold, Operator};

/// A rank of a communicator, as the root of a collective.
#[derive(Clone, Copy, Debug)]
pub struct Process<'a> {
    comm: &'a Communicator,
    rank: usize,
}

impl Communicator {
    /// The process of a rank. A rank that is not there shows as [`Root`](crate::Error::Root) in the call.
    #[must_use]
    pub fn process_at_rank(&self, rank: usize) -> Process<'_> {
        Process { comm: self, rank }
    }
}

impl Process<'_> {
    pub(crate) fn comm(&self) -> &Communicator {
        self.comm
    }

    /// Its rank.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Everybody's `buffer` becomes what this process has in its own (MPI_Bcast; MPI 4.1, section 6.4).
    ///
    /// Collective: all ranks must give the same root, count and element type. Short messages go in lines, others in a
    /// pipeline of cells down the tree of this root. The root may return before the others have the message, or wait for
    /// them: a program must not count on either.
    ///
    /// A buffer in shared memory that is long enough ([`alloc`](crate::Communicator::alloc), which says when not) is
    /// copied from where it lies; so is a long private one, by the kernel, where the system lets it (`reach_from` of
    /// [`Tuning`](crate::Tuning)): of two ranks that of a message of 128 KiB and more, where trials find that quicker.
    /// Its owner then returns when its readers have the message.
    ///
    /// # Cost
    /// One line transfer on the critical path (flat); 2pn bytes loaded and stored for n bytes on p ranks, and 2n more
    /// for each rank that passes them on in a deeper tree; 2(p-1)n, whatever the tree, for buffers that are copied from
    /// where they lie. That is the least where each rank gets a copy of its own: p-1 of them load n bytes and store n.
    ///
    /// # Errors
    /// [`Root`](crate::Error::Root): refused. [`RankFailed`](crate::Error::RankFailed),
    /// [`Mismatch`](crate::Error::Mismatch), [`Refused`](crate::Error::Refused): on other ranks than the root `buffer`
    /// holds no meaning, and the communicator cannot be used further. A root that returns before the others have the
    /// message learns of a mismatch in the next call in which it waits for somebody.
    ///
    /// ```
    /// let got = shm_core::Communicator::threads(3, |comm| {
    ///     let mut word = if comm.rank() == 1 { *b"phalanx" } else { [0; 7] };
    ///     comm.process_at_rank(1).broadcast_into(&mut word).unwrap();
    ///     word
    /// }).unwrap();
    /// assert_eq!(got, [*b"phalanx"; 3]);
    /// ```
    pub fn broadcast_into<T: Element>(&self, buffer: &mut [T]) -> Result<()> {
        self.comm.broadcast_from(self.rank, buffer)
    }

    /// Contributes `send` to a reduction whose result this process gets: called by all ranks but this one (MPI_Reduce;
    /// MPI 4.1, section 6.9.1).
    ///
    /// Collective: all ranks must give the same root, count, element type and operator. May return before the root has
    /// the result. Short vectors go in lines, others through cells up the tree of this root; long ones are divided
    /// among leaders, each of which folds its share in rank order.
    ///
    /// What lies in shared memory, and is long enough ([`alloc`](crate::Communicator::alloc), which says when not), is
    /// combined where it lies, and stored where the root wants it.
    ///
    /// # Cost
    /// (3p-1)n bytes loaded and stored for n bytes on p ranks (lines, cells); with leaders up to 2n more; (p+1)n with
    /// leaders, or over a flat tree, when all buffers are used where they lie.
    ///
    /// # Errors
    /// As [`reduce_into_root`](Process::reduce_into_root).
    pub fn reduce_into<T: Element, O: Operator<T>>(&self, send: &[T], operator: O) -> Result<()> {
        self.comm.check_groups(send.len(), &operator)?;
        self.comm.reduce_to(
            self.rank,
            send.as_ptr().cast(),
            std::ptr::null_mut(),
            size_of_val(send),
            Fold::new(&operator),
        )
    }

    /// Contributes `send` and gets the result of the reduction in `recv`: called by this process itself (MPI_Reduce;
    /// MPI 4.1, section 6.9.1).
    ///
    /// Collective: all ranks must give the same root, count, element type and operator, the others to
    /// [`reduce_into`](Process::reduce_into), which says how it is done and what it costs. `recv` is as long as `send`.
    ///
    /// # Errors
    /// [`Root`](crate::Error::Root), [`Length`](crate::Error::Length), [`Tuning`](crate::Error::Tuning) (an element
    /// that is larger than a cell): refused, nothing was written. [`RankFailed`](crate::Error::RankFailed),
    /// [`Mismatch`](crate::Error::Mismatch), [`Refused`](crate::Error::Refused): `recv` holds no meaning, and the
    /// communicator cannot be used further.
    ///
    /// ```
    /// use shm_core::{Communicator, operator::Max};
    /// Communicator::threads(3, |comm| {
    ///     let root = comm.process_at_rank(2);
    ///     let mine = [comm.rank() as u32, 7];
    ///     if comm.rank() == root.rank() {
    ///         let mut most = [0; 2];
    ///         root.reduce_into_root(&mine, &mut most, Max).unwrap();
    ///         assert_eq!(most, [2, 7]);
    ///     } else {
    ///         root.reduce_into(&mine, Max).unwrap();
    ///     }
    /// }).unwrap();
    /// ```
    pub fn reduce_into_root<T: Element, O: Operator<T>>(&self, send: &[T], recv: &mut [T], operator: O) -> Result<()> {
        if let Err(error) = same_length(self.comm.rank(), send, recv) {
            return self.comm.refuse(error);
        }
        self.comm.check_groups(send.len(), &operator)?;
        self.comm.reduce_to(
            self.rank,
            send.as_ptr().cast(),
            recv.as_mut_ptr().cast(),
            size_of_val(send),
            Fold::new(&operator),
        )
    }

    /// [`reduce_into_root`](Process::reduce_into_root) with one buffer for contribution and result (MPI_IN_PLACE).
    ///
    /// # Errors
    /// As of [`reduce_into_root`](Process::reduce_into_root); after a failure `buffer` holds no meaning.
    pub fn reduce_into_root_in_place<T: Element, O: Operator<T>>(&self, buffer: &mut [T], operator: O) -> Result<()> {
        self.comm.check_groups(buffer.len(), &operator)?;
        let bytes = size_of_val(buffer);
        let buffer = buffer.as_mut_ptr().cast::<u8>();
        self.comm.reduce_to(self.rank, buffer, buffer, bytes, Fold::new(&operator))
    }
}
