//! Pairs at distances 1, 2, 4, .. exchange whole vectors; after k exchanges everybody has the operands of 2^k neighbours.

use super::fold::{Fold, Role};
use super::program::{Combine, Receive, Round, Send, Span};

/// The vector is never parted.
const WHOLE: Span = Span { first: 0, count: 1 };

pub(super) fn rounds(ranks: u32) -> u32 {
    let fold = Fold::of(ranks);
    fold.log() + 2 * fold.rounds()
}

pub(super) fn allreduce(ranks: u32, rank: u32, round: u32) -> Round {
    let fold = Fold::of(ranks);
    let Some(step) = round.checked_sub(fold.rounds()) else {
        return fold.fold_in(rank, WHOLE);
    };
    if step >= fold.log() {
        return fold.fold_out(rank, WHOLE, |_| true);
    }
    let Role::Member(member) = fold.role(rank) else {
        return Round::default();
    };
    let partner = fold.rank(member ^ (1 << step));
    // The operands of either side are those of neighbouring ranks.
    let combine = if partner < rank { Combine::Left } else { Combine::Right };
    Round::both(Send { to: partner, span: WHOLE }, Receive { from: partner, span: WHOLE, combine })
}
