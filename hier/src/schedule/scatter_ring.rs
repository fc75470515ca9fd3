//! Broadcast as binomial scatter and ring allgather, native and saving.
//!
//! Ranks are counted from the root: place 0 is the root. The scatter leaves place v with the segments v .. v + own(v):
//! the root has all, place v the segments of the places below it in the binomial tree. In step i = 1 .. N-1 of the
//! ring, place v receives segment v - i from place v - 1. It has that segment from the scatter if i > N - own(v); the
//! saving ring leaves out such messages, so that a place near the root of a large subtree only sends towards the end.

use super::program::{Combine, Receive, Round, Send, Span};

/// The rounds of the scatter, ceil(log2 N), and of the ring.
pub(super) fn rounds(ranks: u32) -> u32 {
    scatter_rounds(ranks) + ranks - 1
}

fn scatter_rounds(ranks: u32) -> u32 {
    ranks.next_power_of_two().ilog2()
}

/// With how many segments the scatter leaves a place.
pub(super) fn own(ranks: u32, place: u32) -> u32 {
    if place == 0 { ranks } else { (1 << place.trailing_zeros()).min(ranks - place) }
}

pub(super) fn broadcast(ranks: u32, root: u32, saving: bool, rank: u32, round: u32) -> Round {
    let place = (rank + ranks - root) % ranks;
    let mut round = match round.checked_sub(scatter_rounds(ranks)) {
        None => scatter(ranks, place, round),
        Some(step) => ring(ranks, place, step + 1, saving),
    };
    for send in &mut round.sends {
        send.to = (send.to + root) % ranks;
    }
    for receive in &mut round.receives {
        receive.from = (receive.from + root) % ranks;
    }
    round
}

/// Round `round` of the scatter: places whose number is a multiple of 2m send to the place m further on, with m halved
/// from round to round.
fn scatter(ranks: u32, place: u32, round: u32) -> Round {
    let further = 1 << (scatter_rounds(ranks) - 1 - round);
    if place.is_multiple_of(2 * further) && place + further < ranks {
        let to = place + further;
        Round::send(to, Span { first: to, count: own(ranks, to) })
    } else if place % (2 * further) == further {
        Round::receive(place - further, Span { first: place, count: own(ranks, place) }, Combine::Replace)
    } else {
        Round::default()
    }
}

/// Step `step`, from 1, of the ring.
fn ring(ranks: u32, place: u32, step: u32, saving: bool) -> Round {
    let next = (place + 1) % ranks;
    // Whether a place receives in this step.
    let receives = |place| !saving || step <= ranks - own(ranks, place);
    let segment = |place: u32| Span::one((place + ranks - step) % ranks);
    let mut round = Round::default();
    if receives(next) {
        round.sends.push(Send { to: next, span: segment(next) });
    }
    if receives(place) {
        let from = (place + ranks - 1) % ranks;
        round.receives.push(Receive { from, span: segment(place), combine: Combine::Replace });
    }
    round
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scatter_of_ten_places() {
        assert_eq!((0..10).map(|place| own(10, place)).collect::<Vec<_>>(), [10, 1, 2, 1, 4, 1, 2, 1, 2, 1]);
        let sends = |place| (0..4).flat_map(|round| scatter(10, place, round).sends).collect::<Vec<_>>();
        let send = |to, count| Send { to, span: Span { first: to, count } };
        assert_eq!(sends(0), [send(8, 2), send(4, 4), send(2, 2), send(1, 1)]);
        assert_eq!(sends(4), [send(6, 2), send(5, 1)]);
        assert_eq!(sends(9), []);
    }

    #[test]
    fn the_root_of_a_saving_ring_only_sends() {
        let ring_of = |place| (1..8).map(|step| ring(8, place, step, true)).collect::<Vec<_>>();
        assert!(ring_of(0).iter().all(|round| round.receives.is_empty() && round.sends.len() == 1));
        // Place 4 has the segments 4 to 7, and gets 3, 2, 1, 0.
        let received: Vec<_> = ring_of(4).iter().flat_map(|r| r.receives.clone()).map(|r| r.span.first).collect();
        assert_eq!(received, [3, 2, 1, 0]);
    }
}
