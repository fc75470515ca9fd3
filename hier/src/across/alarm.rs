//! The alarm: a rank that cannot go on tells the other nodes, whose ranks may be waiting for its messages.
//!
//! The nodes stand in a circle. The j-th rank of a node listens to the j-th ranks of those at distances 1, 2, 4, ..
//! before it, and passes an alarm on: it reaches all nodes in ceil(log2 N) hops, and no rank listens to more than so
//! many. There are as many such circles as the smallest node has ranks, so that a node hears of it as soon as one of
//! these waits in a call, and a node can tell of it whichever of its ranks has died. What one rank of a node hears, it
//! tells the others through their segment.
//!
//! Where a node has more ranks than the smallest, the further ones hear nothing, but stand in, in turn, for those of
//! the circles: when one of these has ended, or dropped the communicator, they tell in its place, and those who listen to
//! it listen to them too.

use std::time::Duration;

use crate::nodes::Placement;
use crate::transport::{Request, Result, Transport};

/// The tag of alarms: no schedule uses it.
pub(super) const TAG: u32 = 16_200;

/// How long withdrawing a receive, or sending an alarm, may take.
const FAREWELL: Duration = Duration::from_millis(500);

/// How many ranks of a node may tell a circle, the one that stands in it among them.
const TELLERS: usize = 4;

/// What an alarm says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cause {
    /// The rank that cannot go on.
    pub rank: usize,
    /// The rank whose end is the reason, if that is one.
    pub failed: Option<usize>,
}

impl Cause {
    /// As a word, which is not 0.
    fn to_word(self) -> u64 {
        let number = |rank: usize| rank as u64 + 1;
        number(self.rank) | self.failed.map_or(0, number) << 32
    }

    fn from_word(word: u64) -> Option<Self> {
        let rank = |number: u64| usize::try_from(number & u64::from(u32::MAX)).ok()?.checked_sub(1);
        Some(Self { rank: rank(word)?, failed: rank(word >> 32) })
    }
}

struct Listener {
    request: Request,
    heard: Box<u64>,
}

/// One rank's end of the alarm. Ranks that a smaller node has no counterpart of have one that hears nothing.
pub(super) struct Alarm {
    listeners: Vec<Listener>,
    /// The ranks that listen to this one.
    tell: Vec<usize>,
    /// The ranks of this node that stand in circles, where this one does not: it tells only when one of them has ended,
    /// or dropped the communicator.
    stands_in_for: Vec<usize>,
    /// One that has dropped the communicator, and so tells nothing.
    dropped: Option<usize>,
    /// What was heard or told.
    raised: Option<Cause>,
}

impl Alarm {
    /// An alarm that neither hears nor tells.
    pub fn deaf() -> Self {
        Self { listeners: Vec::new(), tell: Vec::new(), stands_in_for: Vec::new(), dropped: None, raised: None }
    }

    /// This rank's end of the alarm among all nodes.
    pub fn among(transport: &dyn Transport, placement: &Placement) -> Result<Self> {
        let (nodes, circles) = (placement.nodes(), placement.fewest());
        let (here, local) = (placement.node_of(transport.rank()), placement.local_rank(transport.rank()));
        let mut alarm = Self::deaf();
        if local >= TELLERS * circles {
            return Ok(alarm);
        }
        let (circle, stands_in) = (local % circles, local >= circles);
        if stands_in {
            alarm.stands_in_for = placement.members(here)[..circles].to_vec();
        }
        for distance in std::iter::successors(Some(1), |distance| Some(2 * distance)).take_while(|&d| d < nodes) {
            alarm.tell.push(placement.members((here + distance) % nodes)[circle]);
            let before = placement.members((here + nodes - distance) % nodes);
            let tellers = before.iter().skip(circle).step_by(circles).take(if stands_in { 0 } else { TELLERS });
            for &from in tellers {
                if let Err(error) = alarm.listen(transport, from) {
                    alarm.silence(transport);
                    return Err(error);
                }
            }
        }
        Ok(alarm)
    }

    fn listen(&mut self, transport: &dyn Transport, from: usize) -> Result<()> {
        let mut heard = Box::new(0_u64);
        // SAFETY: the box does not move, and lives until the request has ended (`silence`).
        let request = unsafe { transport.receive(from, TAG, std::ptr::from_mut(heard.as_mut()).cast(), 8) }?;
        self.listeners.push(Listener { request, heard });
        Ok(())
    }

    /// Whether somebody has raised the alarm, as far as was seen.
    pub fn is_raised(&self) -> bool {
        self.raised.is_some()
    }

    /// Whether there may be more to hear than was heard: a [look](Alarm::look) is due before anything else is waited
    /// for.
    pub fn may_sound(&self, transport: &dyn Transport) -> bool {
        self.is_raised() || self.listeners.iter().any(|listener| transport.may_have_ended(&listener.request))
    }

    /// Looks whether somebody has raised the alarm; returns what it says, from then on.
    pub fn look(&mut self, transport: &dyn Transport) -> Option<Cause> {
        if self.raised.is_none() {
            for listener in &mut self.listeners {
                // A neighbour that is gone shows in the calls that need it.
                if transport.may_have_ended(&listener.request)
                    && matches!(transport.test(&mut listener.request), Ok(true))
                    && let Some(cause) = Cause::from_word(*listener.heard)
                {
                    self.raised = Some(cause);
                    break;
                }
            }
        }
        self.raised
    }

    /// A rank of this node has dropped the communicator: where others stand in for it they tell from now on.
    pub fn do_without(&mut self, rank: usize) {
        self.dropped = Some(rank);
    }

    /// Tells the others, once, who cannot go on and why, or who else it was of whom this rank has heard.
    pub fn raise(&mut self, transport: &dyn Transport, cause: Cause) {
        let heard = self.raised.get_or_insert(cause);
        heard.failed = heard.failed.or(cause.failed);
        let has_ended = |rank| [heard.failed, self.dropped].contains(&Some(rank));
        let others_tell = !self.stands_in_for.is_empty() && !self.stands_in_for.iter().copied().any(has_ended);
        if self.tell.is_empty() || others_tell {
            return;
        }
        let word = Box::leak(Box::new(heard.to_word()));
        for to in std::mem::take(&mut self.tell) {
            // SAFETY: the word is never freed or written.
            if let Ok(mut request) = unsafe { transport.send(to, TAG, std::ptr::from_ref(word).cast(), 8) } {
                let _ = transport.test(&mut request);
                if !request.has_ended() {
                    let _ = transport.abandon(request, FAREWELL);
                }
            }
        }
    }

    /// Listens no more.
    pub fn silence(&mut self, transport: &dyn Transport) {
        for listener in self.listeners.drain(..) {
            if !listener.request.has_ended() && !transport.abandon(listener.request, FAREWELL) {
                Box::leak(listener.heard);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Alarm, Cause};
    use crate::nodes::Placement;
    use crate::transport::local::{Behaviour, LocalTransport};

    #[test]
    fn causes_are_words() {
        for rank in [0, 1, 4095] {
            for failed in [None, Some(0), Some(77)] {
                let cause = Cause { rank, failed };
                assert_eq!(Cause::from_word(cause.to_word()), Some(cause));
            }
        }
        assert_eq!(Cause::from_word(0), None);
    }

    /// The first rank of a node stands in the circle; where it has dropped the communicator the next one tells.
    #[test]
    fn others_tell_for_one_that_has_dropped_the_communicator() {
        let behaviour = Behaviour { rendezvous: false, longest_delay: Duration::ZERO, seed: 1 };
        let placement = Placement::new(&[0, 0, 1]);
        for dropped in [None, Some(0), Some(1)] {
            let transports = LocalTransport::group(3, behaviour);
            let mut alarms: Vec<_> =
                transports.iter().map(|transport| Alarm::among(transport, &placement).unwrap()).collect();
            if let Some(rank) = dropped {
                alarms[1].do_without(rank);
            }
            let cause = Cause { rank: 0, failed: None };
            alarms[1].raise(&transports[1], cause);
            let heard = alarms[2].look(&transports[2]);
            assert_eq!(heard, (dropped == Some(0)).then_some(cause), "{dropped:?}");
            std::iter::zip(&mut alarms, &transports).for_each(|(alarm, transport)| alarm.silence(transport));
        }
    }
}
