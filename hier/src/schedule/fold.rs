//! Any number of ranks around a power of two of them.
//!
//! Of the first `2 * excess` ranks, each even one hands its operand to its right neighbour and waits for the result.
//! The others are the core, numbered in rank order; since only neighbours join, operands stay in rank order.

use super::program::{Combine, Round, Span};

/// How `ranks` ranks are folded to a power of two.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fold {
    /// How many ranks are left: the largest power of two that is not above their number.
    pub(super) core: u32,
    /// How many ranks stand aside.
    pub(super) excess: u32,
}

/// What a rank does while the core works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// It works, as this member of the core.
    Member(u32),
    /// It stands aside; its right neighbour, this member of the core, acts for it.
    Aside(u32),
}

impl Fold {
    pub(super) fn of(ranks: u32) -> Fold {
        let core = 1 << ranks.ilog2();
        Fold { core, excess: ranks - core }
    }

    /// The number of halvings of the core.
    pub(super) fn log(self) -> u32 {
        self.core.ilog2()
    }

    /// The rounds that it takes to fold in, or to fold out: 1 if somebody stands aside.
    pub(super) fn rounds(self) -> u32 {
        self.excess.min(1)
    }

    pub(super) fn role(self, rank: u32) -> Role {
        match rank {
            _ if rank >= 2 * self.excess => Role::Member(rank - self.excess),
            _ if rank.is_multiple_of(2) => Role::Aside(rank / 2),
            _ => Role::Member(rank / 2),
        }
    }

    /// The rank of a member of the core.
    pub(super) fn rank(self, member: u32) -> u32 {
        if member < self.excess { 2 * member + 1 } else { member + self.excess }
    }

    /// The round in which those who stand aside hand in their operands.
    pub(super) fn fold_in(self, rank: u32, span: Span) -> Round {
        match self.role(rank) {
            Role::Aside(_) => Round::send(rank + 1, span),
            Role::Member(member) if member < self.excess => Round::receive(rank - 1, span, Combine::Left),
            Role::Member(_) => Round::default(),
        }
    }

    /// The round in which they get the result; `wanted` says whether a rank aside does.
    pub(super) fn fold_out(self, rank: u32, span: Span, wanted: impl Fn(u32) -> bool) -> Round {
        match self.role(rank) {
            Role::Aside(_) if wanted(rank) => Round::receive(rank + 1, span, Combine::Replace),
            Role::Member(member) if member < self.excess && wanted(rank - 1) => Round::send(rank - 1, span),
            _ => Round::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seven_ranks_by_hand() {
        let fold = Fold::of(7);
        assert_eq!((fold.core, fold.excess, fold.log()), (4, 3, 2));
        use Role::{Aside, Member};
        let roles = [Aside(0), Member(0), Aside(1), Member(1), Aside(2), Member(2), Member(3)];
        assert_eq!((0..7).map(|rank| fold.role(rank)).collect::<Vec<_>>(), roles);
    }

    #[test]
    fn members_and_ranks_are_each_others_inverse() {
        for ranks in 1..200 {
            let fold = Fold::of(ranks);
            assert!((0..fold.core).all(|member| fold.role(fold.rank(member)) == Role::Member(member)), "{ranks}");
            assert!((0..fold.core).is_sorted_by_key(|member| fold.rank(member)), "{ranks}");
            assert_eq!((0..ranks).filter(|&r| matches!(fold.role(r), Role::Aside(_))).count() as u32, fold.excess);
        }
    }
}
