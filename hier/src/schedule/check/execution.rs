//! Rounds, executed in the strictest way: a send ends only when its receive has been started, and a round only when all
//! of it has ended.

use super::Flaw;
use super::matching::Matching;
use crate::schedule::{Program, Receive, Span};

/// What the ranks hold, and what messages carry.
pub(super) trait Contents {
    /// What a message carries.
    type Parcel;

    /// What leaves, at the start of a round.
    fn pack(&self, rank: u32, round: usize, span: Span) -> Result<Self::Parcel, Flaw>;

    /// What arrives, at the end of a round.
    fn unpack(&mut self, rank: u32, round: usize, receive: &Receive, parcel: Self::Parcel) -> Result<(), Flaw>;
}

/// Where a rank is.
#[derive(Debug, Clone, Copy)]
struct Place {
    round: usize,
    /// Sends and receives of the round that have not ended.
    open: usize,
    /// The numbers of the round's first send and first receive.
    first_send: usize,
    first_receive: usize,
}

/// A message, from either side.
struct Message<P> {
    parcel: Option<P>,
    /// The ranks that have started their side of it.
    sender: Option<u32>,
    receiver: Option<u32>,
}

struct Execution<'a, C: Contents> {
    programs: &'a [Program],
    matching: &'a Matching,
    contents: &'a mut C,
    places: Vec<Place>,
    messages: Vec<Message<C::Parcel>>,
    /// Ranks whose round has ended.
    ready: Vec<u32>,
}

/// Executes all programs to their end.
pub(super) fn run<C: Contents>(programs: &[Program], matching: &Matching, contents: &mut C) -> Result<(), Flaw> {
    let (mut first_send, mut first_receive) = (0, 0);
    let mut places = Vec::with_capacity(programs.len());
    for program in programs {
        places.push(Place { round: 0, open: 0, first_send, first_receive });
        first_send += program.rounds.iter().map(|round| round.sends.len()).sum::<usize>();
        first_receive += program.rounds.iter().map(|round| round.receives.len()).sum::<usize>();
    }
    let message = |_| Message { parcel: None, sender: None, receiver: None };
    let messages = (0..matching.pair_of_send.len()).map(message).collect();
    let mut execution = Execution { programs, matching, contents, places, messages, ready: Vec::new() };
    for rank in 0..programs.len() as u32 {
        execution.start(rank)?;
    }
    while let Some(rank) = execution.ready.pop() {
        execution.end(rank)?;
        execution.start(rank)?;
    }
    execution.nobody_waits()
}

impl<C: Contents> Execution<'_, C> {
    /// Starts what the rank has to do in the round where it is.
    fn start(&mut self, rank: u32) -> Result<(), Flaw> {
        let place = self.places[rank as usize];
        let Some(round) = self.programs[rank as usize].rounds.get(place.round) else {
            return Ok(());
        };
        self.places[rank as usize].open = round.sends.len() + round.receives.len();
        if round.is_empty() {
            self.ready.push(rank);
        }
        for (i, send) in round.sends.iter().enumerate() {
            let pair = self.matching.pair_of_send[place.first_send + i];
            self.messages[pair].parcel = Some(self.contents.pack(rank, place.round, send.span)?);
            self.messages[pair].sender = Some(rank);
            self.meet(pair);
        }
        for i in 0..round.receives.len() {
            let pair = self.matching.pair_of_receive[place.first_receive + i];
            self.messages[pair].receiver = Some(rank);
            self.meet(pair);
        }
        Ok(())
    }

    /// Ends a message on both sides, if both have started it.
    fn meet(&mut self, pair: usize) {
        let Message { sender: Some(sender), receiver: Some(receiver), .. } = self.messages[pair] else {
            return;
        };
        for rank in [sender, receiver] {
            let open = &mut self.places[rank as usize].open;
            *open -= 1;
            if *open == 0 {
                self.ready.push(rank);
            }
        }
    }

    /// Applies what has arrived, and goes on to the next round.
    fn end(&mut self, rank: u32) -> Result<(), Flaw> {
        let place = self.places[rank as usize];
        let round = &self.programs[rank as usize].rounds[place.round];
        for (i, receive) in round.receives.iter().enumerate() {
            let pair = self.matching.pair_of_receive[place.first_receive + i];
            if let Some(parcel) = self.messages[pair].parcel.take() {
                self.contents.unpack(rank, place.round, receive, parcel)?;
            }
        }
        self.places[rank as usize] = Place {
            round: place.round + 1,
            open: 0,
            first_send: place.first_send + round.sends.len(),
            first_receive: place.first_receive + round.receives.len(),
        };
        Ok(())
    }

    /// All ranks have come to their end.
    fn nobody_waits(&self) -> Result<(), Flaw> {
        for (program, place) in self.programs.iter().zip(&self.places) {
            let Some(round) = program.rounds.get(place.round) else {
                continue;
            };
            let unmet = |pair: usize| self.messages[pair].sender.is_none() || self.messages[pair].receiver.is_none();
            let sends = round.sends.iter().enumerate();
            let send = sends.map(|(i, send)| (self.matching.pair_of_send[place.first_send + i], send.to));
            let receives = round.receives.iter().enumerate();
            let receive =
                receives.map(|(i, receive)| (self.matching.pair_of_receive[place.first_receive + i], receive.from));
            if let Some((_, peer)) = send.chain(receive).find(|&(pair, _)| unmet(pair)) {
                let peers_round = self.places[peer as usize].round;
                return Err(Flaw::Deadlock { rank: program.rank, round: place.round, peer, peers_round });
            }
        }
        Ok(())
    }
}
