//! What the network costs, as two numbers a pattern of messages: taken for granted, or measured when a communicator is
//! made.

use std::sync::Arc;
use std::time::Instant;

use shm_core::operator::Max;

use super::communicator::HierComm;
use super::error::Result;
use super::flight::Flight;
use super::run::{Memory, Run};
use crate::schedule::{Algorithm, Goal, Pattern, Program, Receive, Round, Send, Span};

/// Time of a round: `latency + bytes * per_byte`, microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// Microseconds of a round of short messages.
    pub latency: f64,
    /// Microseconds more for each byte.
    pub per_byte: f64,
}

/// What the network costs. The same on all ranks.
///
/// Some libraries run an exchange between two ranks at half the rate of a shift round a ring (a rendezvous each way,
/// one after the other): so the two are told apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NetworkModel {
    /// Everybody sends to the next in the ring.
    pub shift: Line,
    /// Pairs send to each other.
    pub exchange: Line,
}

impl Default for NetworkModel {
    /// A network of 10 Gbit/s on which an exchange takes 1.75 times as long a byte as a shift: with the stock settings
    /// of libraries over TCP short messages go as fast both ways, and long ones half as fast. It is the same in every
    /// run, and so are the schedules that follow from it, and the bits of sums.
    ///
    /// The latency is a low one for such a network: where it is higher, a schedule of few bytes and many rounds costs a
    /// few percent more than the best, while one of many bytes takes twice as long as the best where links are slower.
    /// Among 8 nodes halving with one exchange takes over from doubling at 5,000 bytes, and the ring at 38 KB.
    fn default() -> Self {
        Self { shift: Line { latency: 5.5, per_byte: 1e-3 }, exchange: Line { latency: 5.5, per_byte: 1.75e-3 } }
    }
}

impl NetworkModel {
    /// Microseconds that a schedule takes for `bytes` bytes, if no two messages share a link.
    #[must_use]
    pub fn time(&self, pattern: &Pattern, bytes: usize) -> f64 {
        let formula = pattern.formula();
        let (rounds, bytes) = (f64::from(formula.rounds), bytes as f64);
        let line = match pattern.algorithm() {
            Algorithm::Ring | Algorithm::ScatterRing { .. } => self.shift,
            Algorithm::Binomial | Algorithm::Circulant | Algorithm::Dissemination => {
                Line { latency: self.shift.latency, ..self.exchange }
            }
            Algorithm::RecursiveDoubling | Algorithm::HalvingDoubling { .. } | Algorithm::HalvingExchange { .. } => {
                self.exchange
            }
        };
        // In a tree each round waits for whole vectors, of whatever rank; elsewhere the busiest rank sets the pace.
        let carried = match pattern.algorithm() {
            Algorithm::Binomial => rounds * bytes,
            _ => formula.busiest as f64 / f64::from(pattern.segments()) * bytes,
        };
        rounds * line.latency + carried * line.per_byte
    }

    /// The one of `candidates` that takes the least time, of those that serve the goal.
    pub(crate) fn fastest(
        &self,
        candidates: &[Algorithm],
        goal: Goal,
        nodes: usize,
        bytes: usize,
    ) -> Option<Algorithm> {
        let time =
            |&algorithm: &Algorithm| Some((algorithm, self.time(&algorithm.pattern(goal, nodes as u32).ok()?, bytes)));
        candidates.iter().filter_map(time).min_by(|a, b| a.1.total_cmp(&b.1)).map(|(algorithm, _)| algorithm)
    }
}

/// Bytes of the short and of the long messages that are timed, and how often.
const SHORT: (usize, usize) = (8, 5);
const LONG: (usize, usize) = (64 << 10, 2);

impl HierComm {
    /// Measures the network between the nodes, and chooses by that from now on. Collective.
    pub(super) fn measure_network(&self) -> Result<()> {
        if self.placement.nodes() > 1 {
            self.set_model(self.measured_network()?);
        }
        Ok(())
    }

    /// What the network between the nodes costs, measured now. Collective; of two nodes or more.
    pub(crate) fn measured_network(&self) -> Result<NetworkModel> {
        let nodes = self.placement.nodes();
        let mut figures = [0.0_f64; 4];
        let place = self.ring.iter().position(|&node| node == self.here).unwrap_or(0);
        let next = (place + 1) % nodes;
        let previous = (place + nodes - 1) % nodes;
        // Without a partner in pairs, the last of an odd number has nothing to exchange.
        let partner = Some(place ^ 1).filter(|&partner| partner < nodes);
        for (figure, (to, from)) in
            [(0, (Some(next), Some(previous))), (2, (partner, partner))].map(|(figure, peers)| (figure, peers))
        {
            let short = self.time_round(place, to, from, SHORT)?;
            let long = self.time_round(place, to, from, LONG)?;
            figures[figure] = short;
            figures[figure + 1] = (long - short).max(0.0) / (LONG.0 - SHORT.0) as f64;
        }
        let own = figures;
        self.all_reduce_into(&own, &mut figures, Max)?;
        let line = |at: usize| Line { latency: figures[at].max(0.1), per_byte: figures[at + 1].max(1e-7) };
        Ok(NetworkModel { shift: line(0), exchange: line(2) })
    }

    /// The least time of a round in which this node sends to `to` and receives from `from`, microseconds.
    fn time_round(
        &self,
        place: usize,
        to: Option<usize>,
        from: Option<usize>,
        (bytes, times): (usize, usize),
    ) -> Result<f64> {
        let nodes = self.placement.nodes();
        let round = Round {
            sends: to.map(|to| Send { to: to as u32, span: Span::one(0) }).into_iter().collect(),
            receives: from
                .map(|from| Receive {
                    from: from as u32,
                    span: Span::one(1),
                    combine: crate::schedule::Combine::Replace,
                })
                .into_iter()
                .collect(),
        };
        let program = Arc::new(Program { rank: place as u32, ranks: nodes as u32, segments: 2, rounds: vec![round] });
        let peers: Arc<[usize]> = self.ring.iter().map(|&node| self.placement.members(node)[0]).collect();
        let mut buffer = vec![0_u8; 2 * bytes];
        let mut least = f64::INFINITY;
        for _ in 0..times {
            self.barrier()?;
            let tag = self.next_tag();
            if self.placement.local_rank(self.rank) != 0 {
                continue;
            }
            let start = Instant::now();
            let memory = Memory::whole(&mut buffer, 1);
            let mut flight = Flight::new(self);
            // SAFETY: the buffer outlives the flight and is left alone; nothing is combined.
            flight.begin(0, Some(unsafe { Run::new(Arc::clone(&program), Arc::clone(&peers), tag, memory, None) }));
            flight.finish()?;
            least = least.min(start.elapsed().as_secs_f64() * 1e6);
        }
        Ok(if least.is_finite() { least } else { 0.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::Order;

    const NEAREST: Algorithm = Algorithm::HalvingDoubling { order: Order::Nearest };
    const ALL: [Algorithm; 5] =
        [Algorithm::RecursiveDoubling, NEAREST, Algorithm::Circulant, Algorithm::Ring, Algorithm::Binomial];

    #[test]
    fn times_by_hand() {
        let line = Line { latency: 10.0, per_byte: 0.5 };
        let model = NetworkModel { shift: line, exchange: Line { latency: 10.0, per_byte: 1.0 } };
        let time = |algorithm: Algorithm| model.time(&algorithm.pattern(Goal::Allreduce, 4).unwrap(), 100);
        // 6 rounds, 2 * 3/4 of 100 bytes.
        assert_eq!(time(Algorithm::Ring), 60.0 + 75.0);
        // 4 rounds, the same bytes at the other rate; 2 rounds of 100 bytes; 4 rounds of 100 bytes.
        assert_eq!(time(NEAREST), 40.0 + 150.0);
        assert_eq!(time(Algorithm::RecursiveDoubling), 20.0 + 200.0);
        assert_eq!(time(Algorithm::Binomial), 40.0 + 400.0);
    }

    #[test]
    fn short_messages_take_few_rounds_and_long_ones_few_bytes() {
        let model = NetworkModel::default();
        let fastest = |nodes, bytes| model.fastest(&ALL, Goal::Allreduce, nodes, bytes).unwrap();
        assert_eq!(fastest(8, 8), Algorithm::RecursiveDoubling);
        assert_ne!(fastest(8, 1 << 20), Algorithm::RecursiveDoubling);
        assert_eq!(fastest(8, 16 << 20), Algorithm::Ring);
        let even = NetworkModel { exchange: model.shift, ..model };
        assert_eq!(even.fastest(&ALL, Goal::Allreduce, 8, 16 << 20).unwrap(), NEAREST);
    }
}
