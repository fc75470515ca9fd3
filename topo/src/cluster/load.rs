//! What flows put on each channel.

use super::{Channel, Cluster};

/// The load of one round of flows that run at the same time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RoundLoad {
    /// The most flows that share one channel. 1 is contention-free; 0 when nothing leaves a host.
    pub flows: usize,
    /// A channel with so many flows: the first one that came to it.
    pub channel: Option<usize>,
    /// The most bytes over one channel.
    pub bytes: u64,
}

impl Cluster {
    /// The bytes over each channel when each flow `(from host, to host, bytes)` takes its route. A sum that no `u64`
    /// holds stays at the largest. A flow from a host to itself crosses nothing.
    ///
    /// # Cost
    ///
    /// As many steps as all routes are long.
    ///
    /// # Panics
    ///
    /// When there is no such host.
    pub fn loads(&self, flows: impl IntoIterator<Item = (usize, usize, u64)>) -> Vec<u64> {
        let mut loads = vec![0_u64; self.channels()];
        for (from, to, bytes) in flows {
            self.each_channel(from, to, |channel| loads[channel] = loads[channel].saturating_add(bytes));
        }
        loads
    }

    /// The flows of a ring over each channel: each host of `ring` sends to the next, the last one to the first.
    ///
    /// # Panics
    ///
    /// When there is no such host.
    pub fn ring_loads(&self, ring: &[usize]) -> Vec<u64> {
        let next = ring.iter().cycle().skip(1);
        self.loads(ring.iter().zip(next).map(|(&from, &to)| (from, to, 1)))
    }

    /// The channel with the largest of these loads (the first one of several), and that load; `None` when all are 0.
    ///
    /// # Panics
    ///
    /// When the largest is that of a channel that the cluster does not have.
    pub fn busiest(&self, loads: &[u64]) -> Option<(Channel, u64)> {
        let most = loads.iter().copied().max().filter(|&most| most > 0)?;
        let channel = loads.iter().position(|&load| load == most)?;
        Some((self.channel(channel), most))
    }

    /// The load of each round of a schedule. A round is the flows `(from host, to host, bytes)` that run at the same
    /// time; a flow of no bytes counts as one.
    ///
    /// # Cost
    ///
    /// As many steps as all routes are long; the memory is that of one round.
    ///
    /// # Panics
    ///
    /// When there is no such host.
    ///
    /// ```
    /// # fn main() -> Result<(), topo::cluster::Error> {
    /// // Recursive doubling between eight hosts on two switches: distance 1, 2, 4.
    /// let cluster: topo::Cluster = "4+4".parse()?;
    /// let rounds = (0..3).map(|k| (0..8).map(move |host| (host, host ^ (1 << k), 100)));
    /// let loads: Vec<_> = cluster.rounds(rounds).iter().map(|load| (load.flows, load.bytes)).collect();
    /// assert_eq!(loads, [(1, 100), (1, 100), (4, 400)]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn rounds<Round>(&self, rounds: impl IntoIterator<Item = Round>) -> Vec<RoundLoad>
    where
        Round: IntoIterator<Item = (usize, usize, u64)>,
    {
        let mut loads = vec![(0_usize, 0_u64); self.channels()];
        let mut used = Vec::new();
        let mut all = Vec::new();
        for round in rounds {
            let mut worst = RoundLoad::default();
            for (from, to, bytes) in round {
                self.each_channel(from, to, |channel| {
                    let load = &mut loads[channel];
                    if load.0 == 0 {
                        used.push(channel);
                    }
                    *load = (load.0 + 1, load.1.saturating_add(bytes));
                    worst.bytes = worst.bytes.max(load.1);
                    if load.0 > worst.flows {
                        (worst.flows, worst.channel) = (load.0, Some(channel));
                    }
                });
            }
            used.drain(..).for_each(|channel| loads[channel] = (0, 0));
            all.push(worst);
        }
        all
    }
}
