//! What may be broken in a world.

use shm_core::protocol::{Edge, RingName};

/// The edges of slots under the names that PROTOCOL.md has for them.
pub const L1: Edge = Edge::LinePublish;
/// Lines are given back.
pub const L2: Edge = Edge::LineReuse;
/// Up cells are published.
pub const U1: Edge = Edge::UpPublish;
/// Up cells are given back.
pub const U2: Edge = Edge::UpReuse;
/// Down cells are published.
pub const D1: Edge = Edge::DownPublish;
/// Down cells are given back.
pub const D2: Edge = Edge::DownReuse;

/// One defect. The protocols stay as they are: it is their world that breaks a promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// Nothing is broken.
    None,
    /// The near end of an edge stores without release ordering.
    PublishRelaxed(Edge),
    /// The far end of an edge loads without acquire ordering.
    ObserveRelaxed(Edge),
    /// Waits on an edge end at once.
    SkipWait(Edge),
    /// Who asks how far `of` has come is shown how far `shown` has: trap 1, progress in one tree taken as progress in
    /// another.
    OthersProgress {
        /// The rank that is asked about.
        of: usize,
        /// The rank whose word is shown.
        shown: usize,
    },
    /// Claims do not ask how far this rank has come: a slot that it reads too was published to the others only.
    ReaderForgotten(usize),
    /// A rank says that it has read a slot as soon as it finds it published: `finish` comes before the reading.
    DoneTooEarly(RingName),
    /// Ranks never say how far they have read: `finish` is left out.
    DoneMissing(RingName),
    /// A claim of too much: what is proven after an exchange includes the exchange itself.
    ProvesTooMuch,
    /// Lines of the next slot are taken whoever reads it, or writes there.
    TakesWhatIsRead,
    /// Slots are cut anew without waiting for the readers of the old ones.
    ReshapesAtOnce,

    /// Everybody who claims is told to be the first one.
    ClaimedTwice,
    /// Nobody is.
    ClaimedByNobody,

    /// A rank goes to memory that another lends without comparing the lengths of their messages.
    LengthsNotCompared,

    /// Publications are not fenced from the look for sleepers.
    LightFenceMissing,
    /// Announcements are not fenced from the second look.
    HeavyFenceMissing,
    /// The sleeper does not look again once it is announced.
    NoSecondLook,
    /// The count that is slept on is read as late as the sleep itself.
    CountReadLate,
    /// The count that is slept on is read without acquire ordering.
    CountReadRelaxed,
    /// The bell is rung without counting it up.
    NoCount,
    /// The bell is counted up without release ordering.
    CountRelaxed,
    /// The bell is counted up, but nobody is woken.
    NoWake,

    /// The word on a failure, a departure, a lock or a last user is stored without release ordering.
    StoreRelaxed,
    /// The same word is loaded without acquire ordering.
    LoadRelaxed,
    /// The same word is not waited for, or not looked at.
    NotLookedAt,
    /// Something is looked at after the word was given up that kept it.
    LookedAtLate,
    /// The mark of who lets go is put without release ordering.
    MarkRelaxed,
    /// What the mark replaces is read without acquire ordering.
    MarkReadRelaxed,
    /// A mark is found without acquire ordering.
    MarkFoundRelaxed,
    /// Who lets go counts nobody out who went before.
    GoneNotCounted,
    /// Who finds the mark does not count itself out.
    MarkNotHeeded,
}
