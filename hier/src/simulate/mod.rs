//! Times of schedules on described clusters: simulated, never measured.
//!
//! The model is that of a fluid. A message starts when both its ranks have come to its round, takes the latency, and
//! then flows over the links on its way. Messages that flow at the same time share each link fairly (max-min): none
//! gets more while another, that gets less, could have it. What is combined on arrival takes a time for each byte. A
//! rank goes on to its next round when all messages of the round have ended, so ranks drift apart where the links make
//! them.
//!
//! What is left out: start-up beyond the latency, congestion control, packets, memory, and the ranks within a node. A
//! simulation shows how schedules compare on a network, not what a network does.
//!
//! ```
//! use hier::schedule::{Algorithm, Goal};
//! use hier::simulate::{Network, simulate};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Eight nodes on one switch, 1 GB/s each way: link i is the way from node i, link 8 + i the way to it.
//! let network = Network {
//!     capacities: vec![1e9; 16],
//!     latency: 2e-6,
//!     reduction: 1e-10,
//!     route: |from: usize, to: usize, links: &mut Vec<usize>| links.extend([from, 8 + to]),
//! };
//! let ring = Algorithm::Ring.pattern(Goal::Allreduce, 8)?;
//! let simulation = simulate(&ring, 1_000_000, 8, &network)?;
//! // 14 rounds of 2 us and 1 MB; in 7 of them 1 MB is combined.
//! assert!((simulation.seconds - 14.0 * 1.002e-3 - 7.0 * 1e-4).abs() < 1e-9);
//! println!("{simulation}"); // simulation: allreduce by ring over 8 ranks, 8000000 bytes: ..
//! # Ok(())
//! # }
//! ```

mod execution;
mod network;
mod sharing;

pub use network::{Error, Network};

use std::fmt;

use crate::schedule::Pattern;

/// What a simulation found. All of it is simulated.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Simulation {
    /// The schedule.
    pub pattern: Pattern,
    /// The length of the vector in bytes.
    pub bytes: u64,
    /// Seconds until the last rank has ended.
    pub seconds: f64,
    /// For each rank, seconds until it has ended.
    pub ends: Vec<f64>,
    /// Messages of all ranks.
    pub messages: u64,
    /// For each link the bytes that it carried.
    pub carried: Vec<u64>,
}

/// One line.
impl fmt::Display for Simulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "simulation: {} by {} over {} ranks, {} bytes: {:.3e} s, {} messages",
            self.pattern.goal(),
            self.pattern.algorithm(),
            self.pattern.ranks(),
            self.bytes,
            self.seconds,
            self.messages
        )?;
        match self.carried.iter().copied().enumerate().max_by_key(|&(link, bytes)| (bytes, std::cmp::Reverse(link))) {
            Some((link, bytes)) => write!(f, ", at most {bytes} bytes over a link (link {link})"),
            None => Ok(()),
        }
    }
}

/// Simulates a schedule with a vector of `elements` elements of `size` bytes each.
///
/// # Cost
///
/// An event or two for each message; for each, the messages are shared out anew that use links in common with it,
/// directly or over others. Memory for one round of each rank.
///
/// # Errors
///
/// * [`Error::Capacity`] and [`Error::Parameter`] for figures that no network has.
/// * [`Error::UnknownLink`] when a way uses a link that has no capacity.
pub fn simulate<R>(pattern: &Pattern, elements: usize, size: usize, network: &Network<R>) -> Result<Simulation, Error>
where
    R: Fn(usize, usize, &mut Vec<usize>),
{
    network.check()?;
    execution::Execution::new(pattern, elements, size, network).run()
}
