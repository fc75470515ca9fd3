//! The alarm: a rank that cannot go on tells the other nodes, whose ranks may be waiting for its messages.
//!
//! The first rank of each node listens to a few others, at distances 1, 2, 4, .. in a circle of nodes, and passes an alarm
//! on: it reaches all nodes in ceil(log2 N) hops, and no rank listens to more than so many.

use std::time::Duration;

use crate::transport::{Request, Result, Transport};

/// The tag of alarms: no schedule uses it.
pub(super) const TAG: u32 = 32_600;

/// How long withdrawing a receive, or sending an alarm, may take.
const FAREWELL: Duration = Duration::from_millis(500);

struct Listener {
    request: Request,
    heard: Box<u64>,
}

/// One node's end of the alarm. All but the first ranks of nodes have one that hears nothing.
pub(super) struct Alarm {
    listeners: Vec<Listener>,
    /// The ranks that listen to this one.
    tell: Vec<usize>,
    /// The rank that raised it.
    raised: Option<usize>,
}

impl Alarm {
    /// An alarm that neither hears nor tells.
    pub fn deaf() -> Self {
        Self { listeners: Vec::new(), tell: Vec::new(), raised: None }
    }

    /// The alarm among `firsts`, the first ranks of the nodes, of which this rank is number `own`.
    pub fn among(transport: &dyn Transport, firsts: &[usize], own: usize) -> Result<Self> {
        let mut alarm = Self::deaf();
        let count = firsts.len();
        for distance in std::iter::successors(Some(1), |distance| Some(2 * distance)).take_while(|&d| d < count) {
            alarm.tell.push(firsts[(own + distance) % count]);
            let mut heard = Box::new(0_u64);
            let from = firsts[(own + count - distance) % count];
            // SAFETY: the box does not move, and lives until the request has ended (`silence`).
            match unsafe { transport.receive(from, TAG, std::ptr::from_mut(heard.as_mut()).cast(), 8) } {
                Ok(request) => alarm.listeners.push(Listener { request, heard }),
                Err(error) => {
                    alarm.silence(transport);
                    return Err(error);
                }
            }
        }
        Ok(alarm)
    }

    /// Whether somebody has raised the alarm, as far as was seen.
    pub fn is_raised(&self) -> bool {
        self.raised.is_some()
    }

    /// Looks whether somebody has raised the alarm; returns who, from then on.
    pub fn look(&mut self, transport: &dyn Transport) -> Option<usize> {
        if self.raised.is_none() {
            for listener in &mut self.listeners {
                // A neighbour that is gone shows in the calls that need it.
                if transport.may_have_ended(&listener.request)
                    && matches!(transport.test(&mut listener.request), Ok(true))
                    && *listener.heard > 0
                {
                    self.raised = Some(*listener.heard as usize - 1);
                    break;
                }
            }
        }
        self.raised
    }

    /// Tells the others, once, that `rank` cannot go on, or who else it was of whom this rank has heard.
    pub fn raise(&mut self, transport: &dyn Transport, rank: usize) {
        let rank = *self.raised.get_or_insert(rank);
        let word = Box::leak(Box::new(rank as u64 + 1));
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
