//! Memory of each rank that the others may read and write without its help (MPI 4.0, chapter 12).

use super::Result;

/// One rank's end of a group's windows: equally much memory of each rank.
///
/// Reads and writes are only begun; [`flush`](Window::flush) ends all of them. That no rank touches what another is
/// still reading or writing is for the callers to see to, by messages between them.
///
/// Dropping it is collective over the group.
pub trait Window: Send {
    /// Where this rank's memory begins, aligned to 64 bytes; none of it is initialised.
    fn base(&self) -> *mut u8;

    /// Bytes of each rank's memory.
    fn bytes(&self) -> usize;

    /// Begins to read `bytes` bytes from `offset` on of rank `from`'s memory.
    ///
    /// # Errors
    /// [`Error::Library`](super::Error::Library); [`Error::NoSuchRank`](super::Error::NoSuchRank).
    ///
    /// # Safety
    /// The bytes lie within the window, nobody writes them, and nobody touches the memory at `into` until the next
    /// flush.
    unsafe fn get(&self, from: usize, offset: usize, into: *mut u8, bytes: usize) -> Result<()>;

    /// Begins to write `bytes` bytes from `data` on to `offset` of rank `to`'s memory.
    ///
    /// # Errors
    /// As of [`get`](Window::get).
    ///
    /// # Safety
    /// The place lies within the window, nobody else touches it, and nobody writes the memory at `data` until the next
    /// flush.
    unsafe fn put(&self, to: usize, offset: usize, data: *const u8, bytes: usize) -> Result<()>;

    /// Ends all reads and writes that this rank has begun, here and there, and makes what others wrote here visible,
    /// and what this rank wrote here visible to others.
    ///
    /// # Errors
    /// As of [`get`](Window::get).
    fn flush(&self) -> Result<()>;
}
