//! Memory to which elements are copied that cannot be folded where they lie.

use std::cell::Cell;

use super::fault::Fault;

/// Memory for elements, aligned as that of malloc is. It is kept for the thread's next call: fresh pages cost more than
/// what is copied to them.
pub(super) struct Room(Vec<u128>);

/// Words of the longest room that is kept.
const KEPT: usize = (1 << 20) / size_of::<u128>();

thread_local! {
    /// Nothing while a call has it: an operator may make another call.
    static ROOM: Cell<Vec<u128>> = const { Cell::new(Vec::new()) };
}

impl Room {
    /// Room for so many bytes. Each has some value.
    pub fn of(bytes: usize) -> Result<Self, Fault> {
        let mut words = ROOM.try_with(Cell::take).unwrap_or_default();
        let more = bytes.div_ceil(size_of::<u128>()).saturating_sub(words.len());
        words.try_reserve_exact(more).map_err(|_| Fault::Memory(bytes))?;
        words.resize(words.len() + more, 0);
        Ok(Self(words))
    }

    /// Its first bytes, so many.
    pub fn bytes(&mut self, bytes: usize) -> &mut [u8] {
        assert!(bytes <= size_of_val(&*self.0), "there is room for them");
        // SAFETY: so many bytes are there, all initialised, and borrowed as the room is.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), bytes) }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let words = std::mem::take(&mut self.0);
        if words.len() <= KEPT {
            // A thread that ends keeps nothing.
            let _ = ROOM.try_with(|room| room.set(words));
        }
    }
}
