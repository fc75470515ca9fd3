//! Where the payload of a slot lies: in the slot's cell, or in a buffer of its writer.
//!
//! A publisher decides for its own payload alone, and says so beside the stamp: readers learn of it on the edge that the stamp
//! is the near end of (U1, D1), and what gives the slot back (U2, D2) gives the buffer back with it. A call takes the same
//! positions whatever its locations say, so that ranks need not agree on them.

/// The payload of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the slot's own cell.
    Cell,
    /// In a buffer in memory that all ranks share, byte 0 of the message at this offset.
    Heap(u64),
    /// In the writer's private memory, byte 0 of the message at this address.
    Private(u64),
}

/// What a slot says about its payload, and of what its writer wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// Where the payload lies.
    pub place: Place,
    /// Whether what lies there is the writer's payload of all slices of the call: its later slots are not published.
    pub whole: bool,
    /// Where, in memory that all ranks share, the writer wants the result of the call: byte 0 at this offset.
    pub result: Option<u64>,
}

const KIND: u64 = 3;
const HEAP: u64 = 1;
const PRIVATE: u64 = 2;
const WHOLE: u64 = 4;
const SHIFT: u32 = 3;

impl Location {
    /// In the slot's cell, and nothing wanted.
    pub const CELL: Self = Self { place: Place::Cell, whole: false, result: None };

    /// One slice, in this place.
    #[must_use]
    pub const fn slice_at(place: Place) -> Self {
        Self { place, whole: false, result: None }
    }

    /// Whether somebody reads, under this location, what is no cell: its writer must not end the call before they have.
    #[inline]
    #[must_use]
    pub const fn is_lent(self) -> bool {
        !matches!(self.place, Place::Cell)
    }

    /// As the two words beside a stamp. Offsets and addresses are below 2^61.
    #[inline]
    #[must_use]
    pub const fn words(self) -> [u64; 2] {
        let place = match self.place {
            Place::Cell => 0,
            Place::Heap(offset) => offset << SHIFT | HEAP,
            Place::Private(address) => address << SHIFT | PRIVATE,
        };
        let whole = if self.whole { WHOLE } else { 0 };
        let result = match self.result {
            Some(offset) => offset + 1,
            None => 0,
        };
        [place | whole, result]
    }

    /// What [`words`](Location::words) made words of; kinds that it never writes are cells.
    #[inline]
    #[must_use]
    pub const fn of_words([place, result]: [u64; 2]) -> Self {
        let at = place >> SHIFT;
        Self {
            place: match place & KIND {
                HEAP => Place::Heap(at),
                PRIVATE => Place::Private(at),
                _ => Place::Cell,
            },
            whole: place & WHOLE != 0,
            result: result.checked_sub(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_hold_every_location() {
        for place in
            [Place::Cell, Place::Heap(0), Place::Heap(1 << 45), Place::Private(64), Place::Private((1 << 57) - 1)]
        {
            for whole in [false, true] {
                for result in [None, Some(0), Some(1 << 45)] {
                    let location = Location { place, whole, result };
                    assert_eq!(Location::of_words(location.words()), location);
                }
            }
        }
        assert_eq!(Location::CELL.words(), [0, 0]);
    }
}
