//! Event after event: messages start, flow and end, and ranks go from round to round.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::sharing::Sharing;
use super::{Error, Network, Simulation};
use crate::schedule::{Combine, Pattern, Round, Span};

/// What happens at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    /// The latency of a message is over.
    Flows(usize),
    /// The last byte of a message has arrived, unless its rate has changed since: then its number of settings has too.
    Ends(usize, u32),
    /// A rank has combined what arrived, and has ended its round.
    Leaves(u32),
}

#[derive(Debug, Clone, Copy)]
struct Event {
    time: f64,
    what: What,
}

/// The earliest event is the greatest.
impl Ord for Event {
    fn cmp(&self, other: &Event) -> Ordering {
        other.time.total_cmp(&self.time)
    }
}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Event) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Event {
    fn eq(&self, other: &Event) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Event {}

/// A message on its way.
#[derive(Debug, Clone, Default)]
struct Message {
    from: u32,
    to: u32,
    bytes: f64,
    /// Seconds that combining it takes.
    combining: f64,
    /// The bytes that had not arrived at the time `since`.
    left: f64,
    since: f64,
    rate: f64,
    /// How often its rate was set, in all its lives: events of former settings are void.
    settings: u32,
    links: Vec<usize>,
}

/// A rank and its round.
#[derive(Debug, Clone, Default)]
struct Rank {
    number: u32,
    round: Round,
    /// Messages of the round that have not ended.
    open: usize,
    /// Seconds that combining what has arrived in the round takes.
    combining: f64,
    ended: f64,
}

pub(super) struct Execution<'a, R> {
    pattern: &'a Pattern,
    elements: usize,
    size: usize,
    network: &'a Network<R>,
    sharing: Sharing,
    events: BinaryHeap<Event>,
    ranks: Vec<Rank>,
    messages: Vec<Message>,
    /// Places in `messages` that are free.
    free: Vec<usize>,
    /// Ranks that have left their round and enter the next.
    entering: Vec<u32>,
    now: f64,
    sent: u64,
    carried: Vec<u64>,
}

impl<'a, R: Fn(usize, usize, &mut Vec<usize>)> Execution<'a, R> {
    pub(super) fn new(pattern: &'a Pattern, elements: usize, size: usize, network: &'a Network<R>) -> Self {
        Execution {
            pattern,
            elements,
            size,
            network,
            sharing: Sharing::new(network.capacities.clone()),
            events: BinaryHeap::new(),
            ranks: (0..pattern.ranks()).map(|_| Rank { number: u32::MAX, ..Rank::default() }).collect(),
            messages: Vec::new(),
            free: Vec::new(),
            entering: (0..pattern.ranks()).rev().collect(),
            now: 0.0,
            sent: 0,
            carried: vec![0; network.capacities.len()],
        }
    }

    pub(super) fn run(mut self) -> Result<Simulation, Error> {
        let mut settled = Vec::new();
        self.enter()?;
        while let Some(event) = self.events.pop() {
            self.now = event.time;
            self.happens(event.what);
            // What happens at the same time, but for rounding, is taken together, and rates are found once.
            let until = self.now * (1.0 + 1e-12);
            while self.events.peek().is_some_and(|event| event.time <= until) {
                if let Some(event) = self.events.pop() {
                    self.happens(event.what);
                }
            }
            self.enter()?;
            self.sharing.settle(&mut settled);
            for &flow in &settled {
                self.set_rate(flow);
            }
        }
        let ends: Vec<f64> = self.ranks.iter().map(|rank| rank.ended).collect();
        Ok(Simulation {
            pattern: *self.pattern,
            bytes: self.elements as u64 * self.size as u64,
            seconds: ends.iter().copied().fold(0.0, f64::max),
            ends,
            messages: self.sent,
            carried: self.carried,
        })
    }

    fn happens(&mut self, what: What) {
        match what {
            What::Flows(flow) => {
                let message = &mut self.messages[flow];
                message.since = self.now;
                if message.bytes == 0.0 || message.links.is_empty() {
                    self.end(flow);
                } else {
                    self.sharing.add(flow, &message.links);
                }
            }
            What::Ends(flow, settings) if self.messages[flow].settings == settings => {
                self.sharing.remove(flow);
                self.end(flow);
            }
            What::Ends(..) => {}
            What::Leaves(rank) => self.entering.push(rank),
        }
    }

    /// A message flows at the rate that sharing gives it from now on.
    fn set_rate(&mut self, flow: usize) {
        let (rate, now) = (self.sharing.rate(flow), self.now);
        let message = &mut self.messages[flow];
        if rate == message.rate {
            return;
        }
        message.left = (message.left - message.rate * (now - message.since)).max(0.0);
        message.since = now;
        message.rate = rate;
        message.settings = message.settings.wrapping_add(1);
        let what = What::Ends(flow, message.settings);
        self.events.push(Event { time: now + message.left / rate, what });
    }

    /// A message has ended on both sides.
    fn end(&mut self, flow: usize) {
        let message = &mut self.messages[flow];
        message.settings = message.settings.wrapping_add(1);
        message.rate = 0.0;
        let (from, to, combining) = (message.from, message.to, message.combining);
        self.free.push(flow);
        self.ranks[to as usize].combining += combining;
        for number in [from, to] {
            let rank = &mut self.ranks[number as usize];
            rank.open -= 1;
            if rank.open == 0 {
                self.leave(number);
            }
        }
    }

    /// All messages of a rank's round have ended.
    fn leave(&mut self, number: u32) {
        let combining = std::mem::take(&mut self.ranks[number as usize].combining);
        if combining == 0.0 {
            self.entering.push(number);
        } else {
            self.events.push(Event { time: self.now + combining, what: What::Leaves(number) });
        }
    }

    /// Ranks that have left a round enter the next, and go through empty ones.
    fn enter(&mut self) -> Result<(), Error> {
        while let Some(number) = self.entering.pop() {
            let rank = &mut self.ranks[number as usize];
            rank.number = rank.number.wrapping_add(1);
            if rank.number >= self.pattern.rounds() {
                rank.ended = self.now;
                continue;
            }
            rank.round = self.pattern.round(number, rank.number);
            rank.open = rank.round.sends.len() + rank.round.receives.len();
            if rank.open == 0 {
                self.entering.push(number);
                continue;
            }
            let here = rank.number;
            // Whoever comes later to the round starts the messages between the two.
            for i in 0..self.ranks[number as usize].round.sends.len() {
                let send = self.ranks[number as usize].round.sends[i];
                let other = &self.ranks[send.to as usize];
                if other.number != here {
                    continue;
                }
                let receive = other.round.receives.iter().find(|receive| receive.from == number);
                let combines = receive.is_some_and(|receive| receive.combine != Combine::Replace);
                self.start(number, send.to, send.span, combines)?;
            }
            for i in 0..self.ranks[number as usize].round.receives.len() {
                let receive = self.ranks[number as usize].round.receives[i];
                if self.ranks[receive.from as usize].number == here {
                    self.start(receive.from, number, receive.span, receive.combine != Combine::Replace)?;
                }
            }
        }
        Ok(())
    }

    fn start(&mut self, from: u32, to: u32, span: Span, combines: bool) -> Result<(), Error> {
        let flow = self.free.pop().unwrap_or_else(|| {
            self.messages.push(Message::default());
            self.messages.len() - 1
        });
        let bytes = span.len(self.elements, self.pattern.segments()) as u64 * self.size as u64;
        let message = &mut self.messages[flow];
        (message.from, message.to) = (from, to);
        (message.bytes, message.left) = (bytes as f64, bytes as f64);
        message.combining = if combines { bytes as f64 * self.network.reduction } else { 0.0 };
        message.links.clear();
        (self.network.route)(from as usize, to as usize, &mut message.links);
        let links = self.carried.len();
        if let Some(&link) = message.links.iter().find(|&&link| link >= links) {
            return Err(Error::UnknownLink { from: from as usize, to: to as usize, link, links });
        }
        for &link in &message.links {
            self.carried[link] += bytes;
        }
        self.sent += 1;
        self.events.push(Event { time: self.now + self.network.latency, what: What::Flows(flow) });
        Ok(())
    }
}
