//! What a rank remembers of buffers: those whose pages were moved, and how often others came.

use std::ops::Range;
use std::sync::Arc;

use super::entry::Entry;

/// Buffers whose calls are counted.
const COUNTED: usize = 64;

/// The most buffers that a rank moves.
const MOST: usize = 256;

/// Calls of a buffer after which its move has paid: it takes about as long as 40 calls gain, at all sizes (860 and 20
/// us at 1 MiB).
const PAYS: u64 = 64;

/// Times that a block is found shown nowhere before it is given back.
pub(super) const LOOKS: u32 = 3;

/// Times that the wait may double.
const MOST_DOUBLINGS: u32 = 16;

/// A buffer that was seen.
#[derive(Clone, Copy, Default)]
struct Sighting {
    at: usize,
    /// The longest call.
    bytes: usize,
    calls: u64,
    /// How often its wait has doubled, because it could not be moved.
    doublings: u32,
    /// When it was seen last.
    last: u64,
}

/// The book of one rank.
///
/// Invariants:
/// * V1: no two of `moved` have a page of their bodies in common.
/// * V2: an entry of `gone` is in nobody's `moved`; its block is given back when nothing in the process was found to
///   show it any more, several times (the number beside it): what is moved while it is looked for may be missed.
pub(super) struct Book {
    moved: Vec<Arc<Entry>>,
    gone: Vec<(Arc<Entry>, u32)>,
    seen: [Sighting; COUNTED],
    /// How often the wait has doubled.
    doublings: u32,
    /// Calls that were counted.
    clock: u64,
}

/// What a book says of the bytes of a call.
pub(super) enum Found {
    /// They lie in pages that were moved, but for the ends.
    Moved(Arc<Entry>),
    /// They may be moved now.
    Due,
    /// They stay where they are.
    Stays,
}

impl Book {
    pub fn new() -> Self {
        Self { moved: Vec::new(), gone: Vec::new(), seen: [Sighting::default(); COUNTED], doublings: 0, clock: 0 }
    }

    /// What to do with a buffer; a call of it is counted if it was not moved. It is due when more than `after` calls of
    /// it have come, or several times as many after moves that did not pay, or could not be made; at once if `after` is
    /// 0.
    pub fn find(&mut self, call: &Range<usize>, after: u32) -> Found {
        if let Some(entry) = self.moved.iter().find(|entry| entry.holds(call)) {
            return Found::Moved(Arc::clone(entry));
        }
        if self.count(call, after) && self.moved.len() < MOST { Found::Due } else { Found::Stays }
    }

    /// The entries that have pages of these; none if one of them has others besides.
    pub fn within(&self, body: &Range<usize>) -> Option<Vec<Arc<Entry>>> {
        let mut within = self.moved.iter().filter(|entry| entry.touches(body));
        let all: Vec<_> = within.clone().map(Arc::clone).collect();
        within.all(|entry| entry.is_within(body)).then_some(all)
    }

    /// Where the allocation begins that an address lies in, if a part of it was moved.
    pub fn allocation_at(&self, address: usize) -> Option<usize> {
        self.moved.iter().find_map(|entry| entry.allocation_at(address))
    }

    /// Counts a call. Of a buffer that is called with several lengths the longest becomes due.
    fn count(&mut self, call: &Range<usize>, after: u32) -> bool {
        self.clock += 1;
        let (clock, doublings) = (self.clock, self.doublings);
        let place = self.sighting(call.start);
        place.last = clock;
        place.calls += 1;
        place.bytes = place.bytes.max(call.len());
        let enough = place.calls > u64::from(after) << (doublings + place.doublings);
        let due = enough && place.bytes == call.len();
        if enough {
            // If a longer one does not come again, this one counts.
            (place.calls, place.bytes) = (0, call.len());
        }
        due
    }

    /// What was seen of a buffer that begins here; in the place of that which was seen longest ago, if nothing was.
    fn sighting(&mut self, at: usize) -> &mut Sighting {
        let found = self.seen.iter().position(|place| place.at == at);
        let oldest = || (0..COUNTED).min_by_key(|&number| self.seen[number].last).unwrap_or(0);
        let number = found.unwrap_or_else(oldest);
        if found.is_none() {
            self.seen[number] = Sighting { at, ..Sighting::default() };
        }
        &mut self.seen[number]
    }

    /// Takes note that a buffer that was due could not be moved: it waits twice as long before it is due again.
    pub fn put_off(&mut self, call: &Range<usize>) {
        let place = self.sighting(call.start);
        place.doublings = (place.doublings + 1).min(MOST_DOUBLINGS);
    }

    pub fn is_empty(&self) -> bool {
        self.moved.is_empty() && self.gone.is_empty()
    }

    /// Bytes that were moved, or are not yet given back.
    pub fn bytes_taken(&self) -> usize {
        self.moved.iter().chain(self.gone.iter().map(|(entry, _)| entry)).map(|entry| entry.bytes_taken()).sum()
    }

    /// Takes note of a move, of pages of which those of `old` were moved before.
    pub fn replace(&mut self, old: &[Arc<Entry>], entry: &Arc<Entry>) {
        let replaced = self.moved.extract_if(.., |moved| old.iter().any(|old| Arc::ptr_eq(old, moved)));
        self.gone.extend(replaced.map(|entry| (entry, 0)));
        debug_assert!(self.moved.iter().all(|other| !other.touches(entry.body())));
        self.moved.push(Arc::clone(entry));
    }

    /// Takes note that the program has something else where entries were. If that came after few calls, all wait longer
    /// before they are moved, and less long again if it came after many.
    pub fn lose(&mut self, lost: impl Fn(&Entry) -> bool) {
        for entry in self.moved.extract_if(.., |entry| lost(entry)) {
            self.doublings = match entry.calls() {
                0..PAYS => (self.doublings + 1).min(MOST_DOUBLINGS),
                _ => self.doublings.saturating_sub(1),
            };
            self.gone.push((entry, 0));
        }
    }

    /// Gives back the blocks of entries that are gone, that no call uses, and that nothing shows any more.
    pub fn give_back(&mut self, is_shown: impl Fn(&Entry) -> bool) {
        self.gone.retain_mut(|(entry, looks)| {
            *looks = if Arc::strong_count(entry) > 1 || is_shown(entry) { 0 } else { *looks + 1 };
            *looks < LOOKS
        });
    }

    #[cfg(test)]
    pub fn moved(&self) -> &[Arc<Entry>] {
        &self.moved
    }

    /// All entries, which are no longer this book's.
    pub fn take_all(&mut self) -> impl Iterator<Item = Arc<Entry>> {
        std::mem::take(&mut self.moved)
            .into_iter()
            .chain(std::mem::take(&mut self.gone).into_iter().map(|(entry, _)| entry))
    }
}
