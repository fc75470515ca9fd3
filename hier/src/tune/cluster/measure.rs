//! Times on a communicator across nodes.

use std::path::Path;
use std::time::Instant;

use shm_core::Collective;
use shm_core::operator::{Max, Sum};

use super::super::{Effort, Figures, Ledger, read_ledger};
use super::candidate::{Candidate, Shape};
use super::search::{Findings, Search, Times};
use crate::across::{ClusterRules, Error, HierComm, Line, NetworkModel, Result};

/// Calls whose answers are checked before any is timed.
const CHECKED: u64 = 2;
/// The most calls of a block.
const MOST_CALLS: f64 = 500.0;
/// A candidate that takes so many times as long as the fastest, when it is checked, is timed no further.
const HOPELESS: f64 = 3.0;
/// How often the network is measured.
const NETWORKS: usize = 5;
/// Elements in which a shape is told.
const WORD: usize = 8;

/// One rank's part of a search; collective over the communicator, whose rules it changes. Measurements that are in the
/// ledger are not made again; rank 0 alone reads it, and writes those that are made to its end. The findings are the
/// same on all ranks.
///
/// # Errors
/// [`Error::Measurement`], on all ranks: a cluster of one node, or of nodes that differ in their number of ranks; a
/// wrong answer; a ledger that cannot be written. Others are those of the calls.
pub fn tune_cluster(comm: HierComm, effort: &Effort, ledger: &Path) -> Result<Findings> {
    let (rank, placement) = (comm.rank(), comm.placement());
    let shape = Shape { nodes: placement.nodes(), ranks_a_node: placement.most() };
    if shape.nodes == 1 {
        let why =
            "all ranks are on one node: `phalanx tune` measures that, and mpirun's host file names more".to_owned();
        return Err(Error::Measurement { rank, why });
    }
    if placement.fewest() != placement.most() {
        let (least, most) = (placement.fewest(), placement.most());
        let why =
            format!("nodes have {least} to {most} ranks: a table speaks of nodes that have as many as each other");
        return Err(Error::Measurement { rank, why });
    }
    let mut known = Ledger::of_text(&share_text(&comm, if rank == 0 { read_ledger(ledger) } else { String::new() })?);
    let opened = if rank == 0 { known.append_to(ledger).map_err(|error| error.to_string()) } else { Ok(()) };
    let mut measured = Measured { comm, effort, shape, known, calls: 0 };
    measured.all_could(opened)?;
    Search { effort, shape, times: measured }.run()
}

/// What a measurement is known by.
fn key_of(shape: Shape, what: Collective, bytes: usize, candidates: &[Candidate]) -> String {
    let names: Vec<String> = candidates.iter().map(|candidate| candidate.words(what)).collect();
    format!("{}x{} {what} {bytes} {}", shape.nodes, shape.ranks_a_node, names.join("; "))
}

fn network_key(shape: Shape) -> String {
    format!("{}x{} network", shape.nodes, shape.ranks_a_node)
}

/// The network of four columns: latency and nanoseconds a byte of a shift, and of an exchange.
fn network_of(figures: &[Figures]) -> NetworkModel {
    let at = |column: usize| figures.get(column).map_or(0.0, Figures::median);
    let line = |column| Line { latency: at(column), per_byte: at(column + 1) };
    NetworkModel { shift: line(0), exchange: line(2) }
}

/// Rank 0's text on all ranks.
fn share_text(comm: &HierComm, text: String) -> Result<String> {
    let root = comm.process_at_rank(0);
    let mut length = [text.len() as u64];
    root.broadcast_into(&mut length)?;
    let mut bytes = text.into_bytes();
    bytes.resize(length[0] as usize, 0);
    root.broadcast_into(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A communicator that is measured.
struct Measured<'a> {
    comm: HierComm,
    effort: &'a Effort,
    shape: Shape,
    known: Ledger,
    calls: u64,
}

impl Times for Measured<'_> {
    fn times(&mut self, what: Collective, bytes: usize, candidates: &[Candidate]) -> Result<Vec<Figures>> {
        let key = key_of(self.shape, what, bytes, candidates);
        if let Some(figures) = self.known.get(&key).filter(|figures| figures.len() == candidates.len()) {
            return Ok(figures.clone());
        }
        let (mut send, mut recv) = (vec![0.0; bytes / WORD], vec![-1.0; bytes / WORD]);
        let mut figures = vec![Figures::default(); candidates.len()];
        let mut checked = Vec::new();
        for candidate in candidates {
            self.comm.set_rules(candidate.rules(what)?);
            let mut time = f64::INFINITY;
            for _ in 0..CHECKED {
                time = time.min(self.block(what, &mut send, &mut recv, 1)?);
                self.check(what, &send, &recv)?;
            }
            checked.push(time);
        }
        let fastest = checked.iter().copied().fold(f64::INFINITY, f64::min);
        for _ in 0..self.effort.blocks {
            for (at, candidate) in candidates.iter().enumerate() {
                if checked[at] > HOPELESS * fastest {
                    figures[at].blocks.push(checked[at]);
                    continue;
                }
                let calls = (self.effort.block * 1e6 / checked[at].max(0.1)).clamp(1.0, MOST_CALLS) as u64;
                self.comm.set_rules(candidate.rules(what)?);
                figures[at].blocks.push(self.block(what, &mut send, &mut recv, calls)?);
            }
        }
        self.note(&key, figures)
    }

    fn network(&mut self) -> Result<NetworkModel> {
        let key = network_key(self.shape);
        if let Some(figures) = self.known.get(&key).filter(|figures| figures.len() == 4) {
            return Ok(network_of(figures));
        }
        self.comm.set_rules(ClusterRules::default());
        let mut figures = vec![Figures::default(); 4];
        for _ in 0..NETWORKS {
            let NetworkModel { shift, exchange } = self.comm.measured_network()?;
            for (column, value) in
                figures.iter_mut().zip([shift, exchange].iter().flat_map(|line| [line.latency, line.per_byte]))
            {
                column.blocks.push(value);
            }
        }
        Ok(network_of(&self.note(&key, figures)?))
    }
}

impl Measured<'_> {
    fn note(&mut self, key: &str, figures: Vec<Figures>) -> Result<Vec<Figures>> {
        let written = self.known.put(key, &figures).map_err(|error| error.to_string());
        self.all_could(written)?;
        Ok(figures)
    }

    /// An error on all ranks, if one of them has one.
    fn all_could(&mut self, outcome: std::result::Result<(), String>) -> Result<()> {
        let mut any = [u8::from(outcome.is_err())];
        self.comm.all_reduce_in_place(&mut any, Max)?;
        let why = match (outcome, any[0]) {
            (Ok(()), 0) => return Ok(()),
            (Ok(()), _) => "another rank could not do its part; its own error says why".to_owned(),
            (Err(why), _) => why,
        };
        Err(Error::Measurement { rank: self.comm.rank(), why })
    }

    /// Microseconds of a call, of the slowest rank, over a few calls. Input is written anew before each.
    fn block(&mut self, what: Collective, send: &mut [f64], recv: &mut [f64], calls: u64) -> Result<f64> {
        let mut elapsed = 0.0;
        let root = self.comm.process_at_rank(0);
        for _ in 0..calls {
            self.calls += 1;
            if self.comm.rank() == 0 || what != Collective::Broadcast {
                send.fill(value(self.calls, self.comm.rank()));
            }
            self.comm.barrier()?;
            let start = Instant::now();
            match what {
                Collective::Barrier => self.comm.barrier(),
                Collective::Broadcast => root.broadcast_into(send),
                Collective::Reduce if self.comm.rank() == 0 => root.reduce_into_root(send, recv, Sum),
                Collective::Reduce => root.reduce_into(send, Sum),
                Collective::Allreduce => self.comm.all_reduce_into(send, recv, Sum),
            }?;
            elapsed += start.elapsed().as_secs_f64();
        }
        let mut slowest = [0.0];
        self.comm.all_reduce_into(&[elapsed * 1e6 / calls as f64], &mut slowest, Max)?;
        Ok(slowest[0])
    }

    /// Whether the last call's answer is right.
    fn check(&mut self, what: Collective, send: &[f64], recv: &[f64]) -> Result<()> {
        let sum: f64 = (0..self.comm.size()).map(|rank| value(self.calls, rank)).sum();
        let right = match what {
            Collective::Barrier => true,
            Collective::Broadcast => send.iter().all(|&found| found == value(self.calls, 0)),
            Collective::Reduce if self.comm.rank() != 0 => true,
            Collective::Reduce | Collective::Allreduce => recv.iter().all(|&found| found == sum),
        };
        let wrong = || format!("a wrong answer of {what} of {} bytes: please report this", size_of_val(send));
        self.all_could(if right { Ok(()) } else { Err(wrong()) })
    }
}

/// What a rank contributes to a call.
fn value(call: u64, rank: usize) -> f64 {
    (call % 31) as f64 + rank as f64
}
