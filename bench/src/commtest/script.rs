//! What a rank does, step by step: the calls of a protocol for all packets, in order.
//!
//! A script is made before the clock runs, and says nothing of how messages travel. What it must keep is checked
//! without any: every packet is sent and received once, no ready send goes before its receive is posted, and nobody
//! waits for ever, with sends that end at once and with sends that wait for their receives.

use super::partners::Partners;
use super::protocol::{Program, Protocol, SendKind, Side};

/// One call. Packets are numbered by their place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Posts the receive of a packet (`MPI_Irecv`).
    Post(usize),
    /// Tells the sender that a receive is posted, or will be at once: a message without bytes.
    Go,
    /// Waits for such a word of the receiver.
    AwaitGo,
    /// Sends a packet.
    Send(usize, SendKind),
    /// Receives a packet (`MPI_Recv`).
    Receive(usize),
    /// Waits for a posted receive.
    Complete(usize),
    /// Waits for the end of an immediate send.
    Sent(usize),
    /// Sends a packet and receives one, in one call.
    Exchange(usize),
}

/// The steps of one rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// Before all ranks synchronise and the clock starts.
    pub before: Vec<Step>,
    /// On the clock.
    pub timed: Vec<Step>,
}

impl Script {
    /// The script of a rank with these partners. None where the program has nothing to do other than the basic one.
    pub fn of(protocol: Protocol, program: Program, partners: Partners, packets: usize) -> Option<Script> {
        if program == Program::Reorganised && !protocol.can_be_reorganised() {
            return None;
        }
        let leads = !protocol.ordered || partners.first;
        let side = if leads { protocol.first() } else { protocol.second() };
        let writer = Writer { protocol, side, leads, handshake: Handshake::of(protocol, partners), program, packets };
        Some(writer.write())
    }
}

/// Which words go to and fro for a packet.
#[derive(Clone, Copy, Debug)]
struct Handshake {
    /// This rank tells its sender.
    tells: bool,
    /// This rank waits for the word of its receiver.
    awaits: bool,
}

impl Handshake {
    /// Ready sends and asked-for ones take a word for each message. In an ordered exchange of two, the one who receives
    /// first has the other's packet before it sends, and so knows that the other's receive, posted before, is there:
    /// one word is saved.
    fn of(protocol: Protocol, partners: Partners) -> Handshake {
        let needed = protocol.first().send.is_ready() || protocol.is_asked_for();
        let pair = partners.to == partners.from;
        let proven = protocol.ordered && pair && !protocol.is_asked_for();
        let (tells, awaits) = if partners.first { (!proven, true) } else { (true, !proven) };
        Handshake { tells: needed && tells, awaits: needed && awaits }
    }
}

struct Writer {
    protocol: Protocol,
    side: Side,
    /// Whether this rank sends before it receives.
    leads: bool,
    handshake: Handshake,
    program: Program,
    packets: usize,
}

impl Writer {
    fn write(&self) -> Script {
        let mut script = Script::default();
        let ahead = self.program == Program::Reorganised;
        if ahead && self.side.posts {
            self.post(&mut script.before, 0);
        }
        for packet in 0..self.packets {
            let steps = &mut script.timed;
            if self.protocol.is_native() {
                steps.push(Step::Exchange(packet));
                continue;
            }
            let posted = packet + usize::from(ahead);
            if self.side.posts && posted < self.packets {
                self.post(steps, posted);
            }
            if self.leads {
                self.send(steps, packet);
                self.receive(steps, packet);
            } else {
                self.receive(steps, packet);
                self.send(steps, packet);
            }
            if self.side.send.is_immediate() {
                // The send of this packet, or the one before.
                steps.extend(packet.checked_sub(usize::from(ahead)).map(Step::Sent));
            }
        }
        if ahead && self.side.send.is_immediate() {
            script.timed.push(Step::Sent(self.packets - 1));
        }
        script
    }

    fn post(&self, steps: &mut Vec<Step>, packet: usize) {
        steps.push(Step::Post(packet));
        if self.handshake.tells {
            steps.push(Step::Go);
        }
    }

    fn send(&self, steps: &mut Vec<Step>, packet: usize) {
        if self.handshake.awaits {
            steps.push(Step::AwaitGo);
        }
        steps.push(Step::Send(packet, self.side.send));
    }

    fn receive(&self, steps: &mut Vec<Step>, packet: usize) {
        if self.side.posts {
            steps.push(Step::Complete(packet));
            return;
        }
        if self.handshake.tells {
            steps.push(Step::Go);
        }
        steps.push(Step::Receive(packet));
    }
}

#[cfg(test)]
mod tests;
