//! Where the payload of a slot lies: in the slot's cell, or in a buffer of its writer.
//!
//! A publisher decides for its own payload alone, and says so beside the stamp: readers learn of it on the edge that
//! the stamp is the near end of (U1, D1), and what gives the slot back (U2, D2) gives the buffer back with it. A call
//! takes the same positions whatever its locations say, so that ranks need not agree on them.
//!
//! Beside the place stands the length of the message that its publisher goes by. Who finds a place compares it with its
//! own before it touches memory there ([`Location::agrees`]): ranks that disagree on the length must not read or store
//! beyond what was lent.

/// The payload of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the slot's own cell.
    Cell,
    /// In a buffer in memory that all ranks share, byte 0 of the message at this offset.
    Heap(u64),
    /// In the writer's private memory, byte 0 of the message at this address.
    Private(u64),
    /// In the reader's own up cell, in the place of the contribution that the writer folded.
    Back,
    /// In the cell of the same number of this rank, to which the writer has added what it has: in a relay.
    CellOf(usize),
}

impl Place {
    /// The private memory at `buffer`: ranks that are threads of this process get at it by that address.
    pub fn private(buffer: *const u8) -> Self {
        Place::Private(buffer.expose_provenance() as u64)
    }
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
    /// Whether the next results that all look at are each rank's own.
    pub next_own: bool,
    /// Whether who finds this is to move all of what lies there, where its writer could have done a half.
    pub alone: bool,
    /// Bytes of the whole message, and of the result. 0 where all is in cells, which have a length of their own.
    pub bytes: u64,
}

const KIND: u64 = 7;
const HEAP: u64 = 1;
const PRIVATE: u64 = 2;
const BACK: u64 = 3;
const CELL_OF: u64 = 4;
const WHOLE: u64 = 8;
const RESULT: u64 = 16;
const NEXT_OWN: u64 = 32;
const ALONE: u64 = 64;
const SHIFT: u32 = 7;

/// Whether it is a cell, whosever.
const fn is_cell(place: Place) -> bool {
    matches!(place, Place::Cell | Place::Back | Place::CellOf(_))
}

impl Location {
    /// In the slot's cell, and nothing wanted.
    pub const CELL: Self =
        Self { place: Place::Cell, whole: false, result: None, next_own: false, alone: false, bytes: 0 };

    /// The answer of who does not reach what was lent to it; or of a leader that has left a fold to the root.
    pub const DECLINED: Self = Self { whole: true, ..Self::CELL };

    /// The word of who has [put](super::opening) all of its part where the finder wants it: none of its slots hold any.
    pub const PUT: Self = Self { whole: true, ..Self::CELL };

    /// In the reader's own up cell.
    pub const BACK: Self = Self { place: Place::Back, ..Self::CELL };

    /// In the cell of the same number of `rank`.
    #[must_use]
    pub const fn cell_of(rank: usize) -> Self {
        Self { place: Place::CellOf(rank), ..Self::CELL }
    }

    /// One slice of a message of `bytes` bytes, in this place.
    #[must_use]
    pub const fn slice_at(place: Place, bytes: usize) -> Self {
        Self { place, bytes: if is_cell(place) { 0 } else { bytes as u64 }, ..Self::CELL }
    }

    /// All slices of a message of `bytes` bytes, if this place is no cell.
    #[must_use]
    pub const fn whole_at(place: Place, bytes: usize) -> Self {
        Self { whole: !is_cell(place), ..Self::slice_at(place, bytes) }
    }

    /// The same, where its writer wants the result of that length at `result`.
    #[must_use]
    pub const fn wanting(self, result: Option<u64>, bytes: usize) -> Self {
        match result {
            Some(_) => Self { result, bytes: bytes as u64, ..self },
            None => self,
        }
    }

    /// The same, with a word about the next results, where one is wanted here.
    #[must_use]
    pub const fn with_next_own(self, next_own: bool) -> Self {
        Self { next_own: next_own && self.result.is_some(), ..self }
    }

    /// Whether a rank whose message has `bytes` bytes may go to the memory that this speaks of.
    #[inline]
    #[must_use]
    pub const fn agrees(self, bytes: usize) -> bool {
        self.bytes == bytes as u64 || !self.names_memory()
    }

    /// Whether it names memory of its writer's caller: to read, or to store a result in.
    #[inline]
    #[must_use]
    pub const fn names_memory(self) -> bool {
        self.is_lent() || self.result.is_some()
    }

    /// Whether somebody reads, under this location, what is no cell: its writer must not end the call before they have.
    #[inline]
    #[must_use]
    pub const fn is_lent(self) -> bool {
        !is_cell(self.place)
    }

    /// As the words beside a stamp; where the first is 0 ([`CELL`](Location::CELL)), the others say nothing. Offsets
    /// and addresses are below 2^57.
    #[inline]
    #[must_use]
    pub const fn words(self) -> [u64; 3] {
        let place = match self.place {
            Place::Cell => 0,
            Place::Heap(offset) => offset << SHIFT | HEAP,
            Place::Private(address) => address << SHIFT | PRIVATE,
            Place::Back => BACK,
            Place::CellOf(rank) => (rank as u64) << SHIFT | CELL_OF,
        };
        let whole = if self.whole { WHOLE } else { 0 };
        let (wants, result) = match self.result {
            Some(offset) => (RESULT, offset),
            None => (0, 0),
        };
        let next = if self.next_own { NEXT_OWN } else { 0 };
        let alone = if self.alone { ALONE } else { 0 };
        [place | whole | wants | next | alone, result, self.bytes]
    }

    /// What [`words`](Location::words) made words of.
    #[inline]
    #[must_use]
    pub const fn of_words([place, result, bytes]: [u64; 3]) -> Self {
        let at = place >> SHIFT;
        Self {
            place: match place & KIND {
                HEAP => Place::Heap(at),
                PRIVATE => Place::Private(at),
                BACK => Place::Back,
                CELL_OF => Place::CellOf(at as usize),
                _ => Place::Cell,
            },
            whole: place & WHOLE != 0,
            result: if place & RESULT != 0 { Some(result) } else { None },
            next_own: place & NEXT_OWN != 0,
            alone: place & ALONE != 0,
            bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_hold_every_location() {
        for place in [
            Place::Cell,
            Place::Back,
            Place::CellOf(0),
            Place::CellOf(1023),
            Place::Heap(0),
            Place::Heap(1 << 45),
            Place::Private(64),
            Place::Private((1 << 57) - 1),
        ] {
            for whole in [false, true] {
                for result in [None, Some(0), Some(1 << 45)] {
                    for bytes in [1, u64::MAX] {
                        for (next_own, alone) in [(false, false), (result.is_some(), false), (false, true)] {
                            let location = Location { place, whole, result, next_own, alone, bytes };
                            assert_eq!(Location::of_words(location.words()), location);
                            assert!(location.words()[0] != 0 || location == Location { bytes, ..Location::CELL });
                        }
                    }
                }
            }
        }
        assert_eq!(Location::CELL.words(), [0; 3]);
    }

    #[test]
    fn only_what_is_lent_has_a_length() {
        assert_eq!(Location::slice_at(Place::Cell, 7), Location::CELL);
        assert_eq!(Location::whole_at(Place::Cell, 7).wanting(None, 7), Location::CELL);
        assert_eq!(Location::slice_at(Place::Back, 7), Location::BACK);
        assert_eq!(Location::slice_at(Place::CellOf(3), 7), Location::cell_of(3));
        for cell in [Location::BACK, Location::cell_of(3)] {
            assert!(!cell.is_lent() && cell.agrees(7), "{cell:?}");
        }
        assert!(Location::CELL.agrees(7));
        for lent in [
            Location::slice_at(Place::Heap(0), 7),
            Location::whole_at(Place::Private(8), 7),
            Location::CELL.wanting(Some(0), 7),
        ] {
            assert!(lent.agrees(7) && !lent.agrees(6) && !lent.agrees(8) && !lent.agrees(0), "{lent:?}");
        }
    }
}
