//! The flag words of a communicator as the protocols see them, and the names of the edges.

use super::location::Location;
use crate::error::Result;

/// The synchronisation edges, by the names that `PROTOCOL.md` explains.
///
/// A label stands at both ends of each edge in the code: where the word is published and where it is
/// observed. The real words ignore it; a model checker's words use it to weaken one edge at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Edge {
    /// L1: a line's stamp publishes its payload, and that its writer is past all earlier line positions.
    LinePublish,
    /// L2: a reader's `done` word frees the slots of lines that it has read.
    LineReuse,
    /// U1: a stamp of an up cell (towards the root, or towards a leader) publishes its payload.
    UpPublish,
    /// U2: a reader's `done` word frees the up cells that it has folded.
    UpReuse,
    /// D1: a stamp of a down cell (from the root, or from a leader) publishes its payload.
    DownPublish,
    /// D2: a reader's `done` word frees the down cells that it has copied.
    DownReuse,
}

/// The three rings of slots that each rank owns in a communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RingName {
    /// Lines: stamp and small payload together.
    Line,
    /// Up cells: contributions on their way to a parent, a root or a leader.
    Up,
    /// Down cells: results on their way from a parent, a root or a leader.
    Down,
}

impl RingName {
    /// All rings, in the order in which layouts and tables hold them.
    pub const ALL: [RingName; 3] = [RingName::Line, RingName::Up, RingName::Down];

    /// The edge on which a slot of this ring is published.
    #[must_use]
    pub const fn publish_edge(self) -> Edge {
        match self {
            RingName::Line => Edge::LinePublish,
            RingName::Up => Edge::UpPublish,
            RingName::Down => Edge::DownPublish,
        }
    }

    /// The edge on which a slot of this ring is given back.
    #[must_use]
    pub const fn reuse_edge(self) -> Edge {
        match self {
            RingName::Line => Edge::LineReuse,
            RingName::Up => Edge::UpReuse,
            RingName::Down => Edge::DownReuse,
        }
    }
}

/// What a slot's stamp says: the position it holds, and a tag of the call that wrote it.
///
/// Position in the upper 39 bits (compared for equality only, so that it may wrap after 2^39 slots), then a bit that
/// every stamp has, so that a word that was never written is the stamp of no position, and the tag in the lower 24.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp(pub u64);

impl Stamp {
    const TAG_BITS: u32 = 24;
    const WRITTEN: u64 = 1 << Self::TAG_BITS;

    /// The stamp of `position` in a call that all ranks tag with `tag`.
    #[inline]
    #[must_use]
    pub const fn new(position: u64, tag: u32) -> Self {
        Self((position << (Self::TAG_BITS + 1)) | Self::WRITTEN | (tag as u64 & (Self::WRITTEN - 1)))
    }

    /// The position; 0 of a word that was never written.
    #[inline]
    #[must_use]
    pub const fn position(self) -> u64 {
        self.0 >> (Self::TAG_BITS + 1)
    }

    /// Whether two stamps speak of the same position (perhaps in different calls).
    #[inline]
    #[must_use]
    pub const fn same_position(self, other: Self) -> bool {
        (self.0 ^ other.0) >> Self::TAG_BITS == 0
    }
}

/// What a wait waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// The word is this stamp. A stamp of the same position with another tag is a mismatch of calls.
    Stamped(Stamp),
    /// The word has reached this position.
    Reached(u64),
}

impl Until {
    /// Whether `value` ends the wait.
    #[inline]
    #[must_use]
    pub const fn holds(self, value: u64) -> bool {
        match self {
            Until::Stamped(stamp) => value == stamp.0,
            Until::Reached(position) => value >= position,
        }
    }

    /// Whether `value` shows that the writer made another call.
    #[inline]
    #[must_use]
    pub const fn mismatches(self, value: u64) -> bool {
        match self {
            Until::Stamped(stamp) => value != stamp.0 && stamp.same_position(Stamp(value)),
            Until::Reached(_) => false,
        }
    }
}

/// One flag word: a `u64` with one writer.
pub trait Word {
    /// Stores `value` with release ordering: the near end of `edge`.
    fn publish(&self, value: u64, edge: Edge);
    /// Loads with acquire ordering: the far end of `edge`.
    fn observe(&self, edge: Edge) -> u64;
}

/// When a look may begin. Cores execute loads ahead of time: a zero that takes them long to compute, and is added to
/// the address, keeps a load from beginning sooner.
///
/// It orders nothing: a look says the same whenever it is taken.
#[derive(Clone, Copy, Debug)]
pub struct Moment(usize);

impl Moment {
    /// At once.
    pub const NOW: Moment = Moment(0);

    /// When `zero` is known.
    ///
    /// # Safety
    /// It is zero.
    #[inline(always)]
    #[must_use]
    pub unsafe fn when_known(zero: usize) -> Self {
        // Behind a black box, or the compiler would know that it need not wait for it.
        debug_assert_eq!(std::hint::black_box(zero), 0);
        Self(zero)
    }

    /// Zero.
    #[inline(always)]
    #[must_use]
    pub fn zero(self) -> usize {
        self.0
    }
}

/// The flag words of all ranks of a communicator, seen from one of them, and a way to wait.
pub trait Board {
    /// The kind of word.
    type Word: Word;

    /// The rank that looks.
    fn rank(&self) -> usize;

    /// Ranks in the communicator.
    fn size(&self) -> usize;

    /// The stamp of `slot` in `rank`'s ring. Written by `rank` alone.
    fn stamp(&self, ring: RingName, rank: usize, slot: usize) -> &Self::Word;

    /// The position up to which `rank` has finished all its reads in this ring (of anybody's slots).
    /// Written by `rank` alone; never decreases.
    fn done(&self, ring: RingName, rank: usize) -> &Self::Word;

    /// [`stamp`](Board::stamp) of an own slot, the very same word: for a board that finds it sooner.
    #[inline]
    fn own_stamp(&self, ring: RingName, slot: usize) -> &Self::Word {
        self.stamp(ring, self.rank(), slot)
    }

    /// The own [`done`](Board::done), the very same word.
    #[inline]
    fn own_done(&self, ring: RingName) -> &Self::Word {
        self.done(ring, self.rank())
    }

    /// Says where the payload of the own `slot` lies, before its stamp is published. Up and down rings only.
    fn locate(&self, ring: RingName, slot: usize, location: Location);

    /// Where the payload of `rank`'s `slot` lies, once its stamp was acquired. Up and down rings only.
    fn location(&self, ring: RingName, rank: usize, slot: usize) -> Location;

    /// Whether this rank is the first one to claim what the published `slot` of `rank` offers at `position`. Of all who
    /// ask exactly one is told so. It orders nothing. Up and down rings only.
    fn claims(&self, ring: RingName, rank: usize, slot: usize, position: u64) -> bool;

    /// Stores a word of the own rank with release ordering, and wakes who sleeps on this rank.
    fn publish(&self, word: &Self::Word, value: u64, edge: Edge);

    /// Waits, past the first look, until `word`, which `writer` writes, holds what `until` says.
    ///
    /// # Errors
    /// When the wait can have no end: a rank has failed, or `writer` made another call.
    fn wait_slowly(&self, writer: usize, word: &Self::Word, until: Until, edge: Edge) -> Result<u64>;

    /// Whether this rank should [look ahead](Board::look_ahead): asked once when it is through with a slice.
    #[inline]
    fn looks_ahead(&self) -> bool {
        false
    }

    /// Called by a rank that will soon [wait](Board::wait) for this word: for a board whose cores can ask for its line
    /// ahead. It orders nothing.
    #[inline]
    fn look_ahead(&self, _word: &Self::Word) {}

    /// Called before each wait: for a board that counts.
    #[inline]
    fn note_wait(&self, _word: &Self::Word, _edge: Edge) {}

    /// Waits until `word`, which `writer` writes, holds what `until` says.
    ///
    /// # Errors
    /// As [`wait_slowly`](Board::wait_slowly).
    #[inline]
    fn wait(&self, writer: usize, word: &Self::Word, until: Until, edge: Edge) -> Result<u64> {
        self.note_wait(word, edge);
        let value = word.observe(edge);
        if until.holds(value) {
            return Ok(value);
        }
        self.wait_slowly(writer, word, until, edge)
    }

    /// [`wait`](Board::wait), with a first look no sooner than at `moment`, on a board whose cores execute loads ahead
    /// of time.
    ///
    /// # Errors
    /// As [`wait_slowly`](Board::wait_slowly).
    #[inline]
    fn wait_from(&self, _moment: Moment, writer: usize, word: &Self::Word, until: Until, edge: Edge) -> Result<u64> {
        self.wait(writer, word, until, edge)
    }
}
