//! What can be wrong with a schedule.

use crate::schedule::Span;

/// Why programs do not make the collective that they are to make. Rounds count from 0.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Flaw {
    /// A program that does not fit its place or the others.
    #[error(
        "the program at place {place} of {programs} is of rank {rank} of {ranks} with {segments} segments; {wanted}"
    )]
    Misplaced {
        /// Where it stands.
        place: usize,
        /// How many programs there are.
        programs: usize,
        /// The rank that it says it is of.
        rank: u32,
        /// The ranks that it says there are.
        ranks: u32,
        /// Its segments.
        segments: u32,
        /// What it should be.
        wanted: String,
    },

    /// A message to or from a rank that does not take part, or to itself.
    #[error("rank {rank}, round {round}: a message {direction} rank {peer}; peers are the other ranks below {ranks}")]
    Peer {
        /// Whose program it is.
        rank: u32,
        /// The round.
        round: usize,
        /// `to` or `from`.
        direction: &'static str,
        /// The peer.
        peer: u32,
        /// The number of ranks.
        ranks: u32,
    },

    /// A span that does not fit the vector.
    #[error("rank {rank}, round {round}: {count} segments from {first} on, but the vector has {segments}")]
    SpanOutOfRange {
        /// Whose program it is.
        rank: u32,
        /// The round.
        round: usize,
        /// The span's first segment.
        first: u32,
        /// How many it has.
        count: u32,
        /// How many the vector has.
        segments: u32,
    },

    /// What arrives would replace what is being sent, or what else arrives, in the same round.
    #[error("rank {rank}, round {round}, segment {segment}: replaced by what rank {from} sends, while {meanwhile}")]
    Overwritten {
        /// Whose program it is.
        rank: u32,
        /// The round.
        round: usize,
        /// The segment.
        segment: u32,
        /// Who sends what replaces it.
        from: u32,
        /// What else happens to the segment.
        meanwhile: String,
    },

    /// A message that nobody receives.
    #[error("rank {from}, round {round}: message {number} to rank {to} is never received")]
    Unreceived {
        /// Who sends it.
        from: u32,
        /// The sender's round.
        round: usize,
        /// Who should receive it.
        to: u32,
        /// Which of the messages between the two it is, from 0.
        number: usize,
    },

    /// A receive of what nobody sends.
    #[error("rank {to}, round {round}: message {number} from rank {from} is never sent")]
    Unsent {
        /// Who waits for it.
        to: u32,
        /// The receiver's round.
        round: usize,
        /// Who should send it.
        from: u32,
        /// Which of the messages between the two it is, from 0.
        number: usize,
    },

    /// Sender and receiver do not mean the same segments.
    #[error(
        "rank {from} sends to rank {to} in round {sent} a span that starts with segment {} and has {}, where rank {to} \
         expects in round {received} one that starts with segment {} and has {}",
        send.first,
        send.count,
        receive.first,
        receive.count
    )]
    SpansDiffer {
        /// Who sends.
        from: u32,
        /// The sender's round.
        sent: usize,
        /// What it sends.
        send: Span,
        /// Who receives.
        to: u32,
        /// The receiver's round.
        received: usize,
        /// What it expects.
        receive: Span,
    },

    /// Ranks wait for each other for ever.
    #[error("rank {rank}, round {round}: it waits for rank {peer}, which is stuck in its round {peers_round}")]
    Deadlock {
        /// A rank that waits.
        rank: u32,
        /// Its round.
        round: usize,
        /// For whom it waits.
        peer: u32,
        /// Where that one is.
        peers_round: usize,
    },

    /// A rank sends, or combines with, what it has not got.
    #[error("rank {rank}, round {round}, segment {segment}: {doing} before anything is there")]
    Undefined {
        /// The rank.
        rank: u32,
        /// The round.
        round: usize,
        /// The segment.
        segment: u32,
        /// `sent` or `combined with`.
        doing: &'static str,
    },

    /// An operand that would count twice.
    #[error(
        "rank {rank}, round {round}, segment {segment}: what arrives from rank {from} and what is there both have rank \
         {twice}'s operand"
    )]
    Twice {
        /// The rank.
        rank: u32,
        /// The round.
        round: usize,
        /// The segment.
        segment: u32,
        /// From whom it comes.
        from: u32,
        /// Whose operand it is.
        twice: u32,
    },

    /// Operands that are not combined in rank order, though they are to be.
    #[error(
        "rank {rank}, round {round}, segment {segment}: combines the operands of ranks {left:?} on the left with those \
         of ranks {right:?} on the right, which do not follow them"
    )]
    OutOfOrder {
        /// The rank.
        rank: u32,
        /// The round.
        round: usize,
        /// The segment.
        segment: u32,
        /// The operands on the left, first to last.
        left: (u32, u32),
        /// The operands on the right, first to last.
        right: (u32, u32),
    },

    /// A rank that ends without an operand that its result should have.
    #[error("rank {rank} after its last round, segment {segment}: misses the operand of rank {operand}")]
    Missing {
        /// The rank.
        rank: u32,
        /// The segment.
        segment: u32,
        /// Whose operand it is.
        operand: u32,
    },

    /// A barrier that lets a rank go too early.
    #[error("rank {rank} after its last round: it may leave the barrier before rank {unheard} has entered it")]
    LeavesEarly {
        /// The rank that leaves.
        rank: u32,
        /// The rank of which it has not heard.
        unheard: u32,
    },
}
