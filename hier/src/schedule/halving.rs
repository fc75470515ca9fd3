//! Rabenseifner's recursive halving and doubling, and recursive doubling.
//!
//! The core is a power of two of ranks ([`Fold`]), with a segment for each. While halving, partners differ in one bit
//! of their number. Each keeps one half of the span that it has, the lower half where its bit is 0, and sends the other
//! half. While doubling the same partners meet in the reverse order, and send each other all that they have.
//!
//! Nearest first, the operands of a span are always those of neighbouring ranks, in rank order; which segment a member
//! ends with is its number with the bits reversed. Farthest first, member i ends with segment i, and the operands are
//! combined in an order of their own.
//!
//! The last halvings and the doublings that undo them are of short spans, and cost rounds rather than bytes. In their
//! place members may exchange all that they have left, as in recursive doubling: one exchange carries as many bytes as
//! the halving and the doubling that it replaces. Where all are exchanges nothing is halved, and it is recursive
//! doubling: after k exchanges every member has the operands of 2^k neighbours.

use super::fold::{Fold, Role};
use super::program::{Combine, Receive, Round, Send, Span};
use super::{Exchanges, Order};

/// The halving and doubling of a number of ranks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Halving {
    pub(super) fold: Fold,
    pub(super) order: Order,
    /// In an allreduce, how many of the last halvings are exchanges instead.
    pub(super) exchanges: u32,
}

impl Halving {
    pub(super) fn new(ranks: u32, order: Order) -> Halving {
        Halving { fold: Fold::of(ranks), order, exchanges: 0 }
    }

    /// Nearest first, and nothing but exchanges.
    pub(super) fn recursive_doubling(ranks: u32) -> Halving {
        let halving = Halving::new(ranks, Order::Nearest);
        Halving { exchanges: halving.fold.log(), ..halving }
    }

    /// Nearest first; where there are fewer halvings than exchanges, all of them are exchanges.
    pub(super) fn with_exchanges(ranks: u32, exchanges: Exchanges) -> Halving {
        let halving = Halving::new(ranks, Order::Nearest);
        Halving { exchanges: exchanges.number().min(halving.fold.log()), ..halving }
    }

    /// How many halvings an allreduce has.
    pub(super) fn halvings(self) -> u32 {
        self.fold.log() - self.exchanges
    }

    /// The segments of an allreduce: so many that each member has one left.
    pub(super) fn segments(self) -> u32 {
        1 << self.halvings()
    }

    /// The rounds of an allreduce.
    pub(super) fn rounds(self) -> u32 {
        self.fold.log() + self.halvings() + 2 * self.fold.rounds()
    }

    /// The rounds of a reduce: one less than those of an allreduce if only some other rank stands aside.
    pub(super) fn reduce_rounds(self, root: u32) -> u32 {
        let aside = matches!(self.fold.role(root), Role::Aside(_));
        2 * self.fold.log() + self.fold.rounds() + u32::from(aside)
    }

    pub(super) fn allreduce(self, rank: u32, round: u32) -> Round {
        let (fold, log, halvings) = (self.fold, self.fold.log(), self.halvings());
        let all = Span::all(self.segments());
        match round.checked_sub(fold.rounds()) {
            None => fold.fold_in(rank, all),
            Some(step) if step < halvings => self.halve(rank, step),
            Some(step) if step < log => self.exchange(rank, step),
            Some(step) if step < log + halvings => self.double(rank, log + halvings - 1 - step),
            Some(_) => fold.fold_out(rank, all, |_| true),
        }
    }

    /// As an allreduce, but only those send while doubling who lie away from the root.
    pub(super) fn reduce(self, root: u32, rank: u32, round: u32) -> Round {
        let (fold, log) = (self.fold, self.fold.log());
        let all = Span::all(self.segments());
        match round.checked_sub(fold.rounds()) {
            None => fold.fold_in(rank, all),
            Some(step) if step < log => self.halve(rank, step),
            Some(step) if step < 2 * log => self.gather(root, rank, 2 * log - 1 - step),
            Some(_) => fold.fold_out(rank, all, |aside| aside == root),
        }
    }

    /// Halving number `step`, from 0.
    pub(super) fn halve(self, rank: u32, step: u32) -> Round {
        let Role::Member(member) = self.fold.role(rank) else {
            return Round::default();
        };
        let partner = member ^ self.bit(step);
        let to = self.fold.rank(partner);
        let combine = if partner < member { Combine::Left } else { Combine::Right };
        Round::both(
            Send { to, span: self.span(partner, step + 1) },
            Receive { from: to, span: self.span(member, step + 1), combine },
        )
    }

    /// An exchange of all that is left, in the place of halving number `step` and its doubling.
    fn exchange(self, rank: u32, step: u32) -> Round {
        let Role::Member(member) = self.fold.role(rank) else {
            return Round::default();
        };
        let partner = member ^ self.bit(step);
        let to = self.fold.rank(partner);
        let combine = if partner < member { Combine::Left } else { Combine::Right };
        let span = self.span(member, self.halvings());
        Round::both(Send { to, span }, Receive { from: to, span, combine })
    }

    /// The doubling that undoes halving number `step`.
    pub(super) fn double(self, rank: u32, step: u32) -> Round {
        let Role::Member(member) = self.fold.role(rank) else {
            return Round::default();
        };
        let partner = member ^ self.bit(step);
        let to = self.fold.rank(partner);
        Round::both(
            Send { to, span: self.span(member, step + 1) },
            Receive { from: to, span: self.span(partner, step + 1), combine: Combine::Replace },
        )
    }

    /// The same, towards the root only: of the members that agree with the root in all the bits of later halvings,
    /// those that do not in this one send to those that do.
    fn gather(self, root: u32, rank: u32, step: u32) -> Round {
        let (Role::Member(towards) | Role::Aside(towards)) = self.fold.role(root);
        let Role::Member(member) = self.fold.role(rank) else {
            return Round::default();
        };
        let later = (step + 1..self.fold.log()).fold(0, |bits, step| bits | self.bit(step));
        let away = member ^ towards;
        if away & later != 0 {
            return Round::default();
        }
        let mut round = self.double(rank, step);
        if away & self.bit(step) == 0 {
            round.sends.clear()
        } else {
            round.receives.clear()
        }
        round
    }

    /// In which bit the partners of a halving differ.
    fn bit(self, step: u32) -> u32 {
        match self.order {
            Order::Nearest => 1 << step,
            Order::Farthest => self.fold.core >> (step + 1),
        }
    }

    /// What a member has left after so many halvings.
    fn span(self, member: u32, halvings: u32) -> Span {
        let mut span = Span::all(self.segments());
        for step in 0..halvings {
            span.count /= 2;
            if member & self.bit(step) != 0 {
                span.first += span.count;
            }
        }
        span
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(order: Order, member: u32) -> u32 {
        let span = Halving::new(8, order).span(member, 3);
        assert_eq!(span.count, 1);
        span.first
    }

    #[test]
    fn who_ends_with_which_segment() {
        assert_eq!((0..8).map(|member| left(Order::Farthest, member)).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!((0..8).map(|member| left(Order::Nearest, member)).collect::<Vec<_>>(), [0, 4, 2, 6, 1, 5, 3, 7]);
    }

    /// Eight members, one exchange: quarters after two halvings, exchanged with the member four places away.
    #[test]
    fn an_exchange_of_what_is_left() {
        let halving = Halving::with_exchanges(8, Exchanges::One);
        assert_eq!((halving.segments(), halving.rounds()), (4, 5));
        let spans = |rank| (0..5).map(|round| halving.allreduce(rank, round).sends[0]).collect::<Vec<_>>();
        let send = |to, first, count| Send { to, span: Span { first, count } };
        assert_eq!(spans(1), [send(0, 0, 2), send(3, 3, 1), send(5, 2, 1), send(3, 2, 1), send(0, 2, 2)]);
        // Where nothing is left to halve it is recursive doubling.
        assert_eq!(Halving::with_exchanges(4, Exchanges::Three).rounds(), 2);
    }

    #[test]
    fn the_first_exchange_is_with_the_neighbour_or_half_way_round() {
        let first = |order| Halving::new(8, order).halve(2, 0).sends[0];
        assert_eq!(first(Order::Nearest), Send { to: 3, span: Span { first: 4, count: 4 } });
        assert_eq!(first(Order::Farthest), Send { to: 6, span: Span { first: 4, count: 4 } });
    }
}
