//! Payload that loom watches: every access is checked against all others for an order between the two.

use loom::cell::UnsafeCell;

/// One unit of payload.
pub struct Watched(UnsafeCell<u64>);

// SAFETY: the cell is touched by `read` and `write` only, in the single thread in which loom runs all threads of a
// model, each access checked by loom first; a race ends the model.
unsafe impl Sync for Watched {}
// SAFETY: the same.
unsafe impl Send for Watched {}

impl Watched {
    /// A unit that holds `value`.
    pub fn new(value: u64) -> Self {
        Self(UnsafeCell::new(value))
    }

    /// Reads it: all writes must come before.
    pub fn read(&self) -> u64 {
        // SAFETY: the pointer is the cell's own, and loom has checked that nobody writes it meanwhile.
        self.0.with(|unit| unsafe { *unit })
    }

    /// Writes it: all reads and writes must come before.
    pub fn write(&self, value: u64) {
        // SAFETY: the pointer is the cell's own, and loom has checked that nobody reads or writes it meanwhile.
        self.0.with_mut(|unit| unsafe { *unit = value });
    }
}
