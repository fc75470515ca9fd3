//! What a call does in shared memory, counted exactly: words published and awaited, cache lines, bytes.
//!
//! The places where payload moves, and the board, call the functions of [`note`]. In a build without the feature
//! `counts`, which is no test of this crate, these are empty: nothing of them is left on the warm path. With it a rank
//! counts what it does while [`Communicator::count`](crate::Communicator::count) runs, on its own thread.

#[cfg(any(test, feature = "counts"))]
pub mod cases;
#[cfg(any(test, feature = "counts"))]
pub mod expected;
#[cfg(any(test, feature = "counts"))]
mod kept;

#[cfg(any(test, feature = "counts"))]
pub use kept::Counts;
#[cfg(any(test, feature = "counts"))]
pub(crate) use kept::note;

/// Where nothing is counted.
#[cfg(not(any(test, feature = "counts")))]
pub(crate) mod note {
    use crate::protocol::Edge;

    #[inline(always)]
    pub fn published<W>(_: &W, _: Edge) {}
    #[inline(always)]
    pub fn awaited<W>(_: &W, _: Edge) {}
    #[inline(always)]
    pub fn loaded(_: *const u8, _: usize) {}
    #[inline(always)]
    pub fn stored(_: *const u8, _: usize) {}
}
