//! What a segment holds: whose operands, and in which order.

use std::rc::Rc;

use smallvec::{SmallVec, smallvec};

/// A set of ranks. One is made for each combination: those of up to 512 ranks take no memory of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ranks(SmallVec<[u64; 8]>);

impl Ranks {
    pub(super) fn none(ranks: u32) -> Ranks {
        Ranks(smallvec![0; ranks.div_ceil(64) as usize])
    }

    pub(super) fn one(ranks: u32, rank: u32) -> Ranks {
        let mut set = Ranks::none(ranks);
        set.0[rank as usize / 64] |= 1 << (rank % 64);
        set
    }

    pub(super) fn all(ranks: u32) -> Ranks {
        let mut set = Ranks::none(ranks);
        for rank in 0..ranks {
            set.0[rank as usize / 64] |= 1 << (rank % 64);
        }
        set
    }

    pub(super) fn join(&mut self, other: &Ranks) {
        for (word, more) in self.0.iter_mut().zip(&other.0) {
            *word |= more;
        }
    }

    /// The lowest rank that is in both.
    pub(super) fn first_common(&self, other: &Ranks) -> Option<u32> {
        first(self.0.iter().zip(&other.0).map(|(a, b)| a & b))
    }

    /// The lowest rank that is here and not in `other`.
    pub(super) fn first_beyond(&self, other: &Ranks) -> Option<u32> {
        first(self.0.iter().zip(&other.0).map(|(a, b)| a & !b))
    }
}

fn first(words: impl Iterator<Item = u64>) -> Option<u32> {
    words.enumerate().find(|(_, word)| *word != 0).map(|(i, word)| i as u32 * 64 + word.trailing_zeros())
}

/// The operands that a segment holds combined.
#[derive(Debug, Clone)]
pub(super) struct Operands {
    pub(super) set: Ranks,
    /// The leftmost and the rightmost operand.
    pub(super) ends: (u32, u32),
}

impl Operands {
    /// The operand of one rank.
    pub(super) fn of(ranks: u32, rank: u32) -> Rc<Operands> {
        Rc::new(Operands { set: Ranks::one(ranks, rank), ends: (rank, rank) })
    }

    /// `self op right`.
    pub(super) fn then(&self, right: &Operands) -> Rc<Operands> {
        let mut set = self.set.clone();
        set.join(&right.set);
        Rc::new(Operands { set, ends: (self.ends.0, right.ends.1) })
    }

    /// Whether `right` holds the operands that follow these. Where both hold runs of ranks in order, so does the
    /// combination.
    pub(super) fn are_followed_by(&self, right: &Operands) -> bool {
        self.ends.1 + 1 == right.ends.0
    }
}
