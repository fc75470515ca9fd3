//! Times on a communicator.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use shm_core::operator::{Max, Sum};
use shm_core::{Buffer, Collective, Error, Reaching};

use super::candidate::{Candidate, Lying};
use super::search::{Search, Times};
use super::{Effort, Figures, Findings, Ledger};
use crate::communicator::{Communicator, exchange_places, own_place};
use crate::plan::TopologyPlan;

/// Calls that are made before any is timed.
const CHECKED: u64 = 2;
/// The most calls of a block.
const MOST_CALLS: f64 = 2000.0;

/// One rank's part of a search; collective over the communicator. Measurements that are in the text of a ledger are not
/// made again; rank 0 writes those that are made to the end of the file. The findings are the same on all ranks.
///
/// # Errors
/// Those of the calls; [`Error::Environment`] when an answer was wrong, or the file cannot be written.
pub fn tune_rank(comm: Communicator, effort: &Effort, ledger: &Path) -> Result<Findings, Error> {
    let text = if comm.rank() == 0 { super::read_ledger(ledger) } else { String::new() };
    let text = share_text(&comm, text)?;
    let mut known = Ledger::of_text(&text);
    if comm.rank() == 0 {
        known.append_to(ledger).map_err(|error| cannot_write(ledger, &error))?;
    }
    let machine = topo::Machine::discover().ok();
    let places = exchange_places(comm.node(), own_place(machine.as_ref()))?;
    let (ranks, crowd) = (comm.size(), comm.node().crowd());
    let reaches = all_reach(&comm)?;
    let key = key_of_reaching(ranks, crowd);
    known.put(&key, &reaching(reaches)).map_err(|error| cannot_write(ledger, &error))?;
    let times = Measured { comm, places, effort, known, ledger, calls: 0, reaches };
    Search { effort, ranks, crowd, times }.run()
}

/// Whether all ranks reach each other's private memory.
fn all_reach(comm: &Communicator) -> Result<bool, Error> {
    // The first time all have tried, after it all know.
    let _ = comm.reaching();
    comm.barrier()?;
    let mut fail = [u8::from(comm.reaching() != Reaching::Allowed)];
    comm.all_reduce_in_place(&mut fail, Max)?;
    Ok(fail == [0])
}

/// What the ledger knows by it that ranks reach each other, or do not: what the last run found, which need not be what
/// one before it did.
fn key_of_reaching(ranks: usize, crowd: u32) -> String {
    format!("{ranks} ({crowd} a core) reach each other")
}

/// That, in the form of times.
fn reaching(reaches: bool) -> Vec<Figures> {
    vec![Figures { blocks: vec![f64::from(u8::from(reaches))] }]
}

/// What a search finds in the text of a ledger that holds all that it asks for, on `ranks` ranks, `crowd` for each
/// core.
///
/// # Errors
/// `Tuning` when something is not in it.
pub fn replay(ledger: &str, effort: &Effort, ranks: usize, crowd: u32) -> Result<Findings, Error> {
    struct Finished(Ledger, usize, u32);
    impl Times for Finished {
        fn times(&mut self, what: Collective, bytes: usize, candidates: &[Candidate]) -> Result<Vec<Figures>, Error> {
            let key = key_of((self.1, self.2), what, bytes, candidates);
            let missing = || Error::Tuning { why: format!("there is no measurement of {key}") };
            self.0.get(&key).cloned().ok_or_else(missing)
        }

        fn reaches(&self) -> bool {
            self.0.get(&key_of_reaching(self.1, self.2)).is_some_and(|found| *found == reaching(true))
        }
    }
    Search { effort, ranks, crowd, times: Finished(Ledger::of_text(ledger), ranks, crowd) }.run()
}

/// What a measurement is known by.
fn key_of((ranks, crowd): (usize, u32), what: Collective, bytes: usize, candidates: &[Candidate]) -> String {
    let names: Vec<String> =
        candidates.iter().map(|candidate| format!("{} [{}]", candidate.name(what), candidate.trees)).collect();
    format!("{ranks} ({crowd} a core) {what} {bytes} {}", names.join(", "))
}

/// Rank 0's text on all ranks.
fn share_text(comm: &Communicator, text: String) -> Result<String, Error> {
    let root = comm.process_at_rank(0);
    let mut length = [text.len() as u64];
    root.broadcast_into(&mut length)?;
    let mut bytes = text.into_bytes();
    bytes.resize(length[0] as usize, 0);
    root.broadcast_into(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Error {
    let why = format!("finished measurements cannot be written there: {error}; name another file");
    Error::Environment { name: "--output", value: path.display().to_string(), why }
}

/// A communicator that is measured.
struct Measured<'a> {
    comm: Communicator,
    places: Vec<[usize; 3]>,
    effort: &'a Effort,
    known: Ledger,
    ledger: &'a Path,
    calls: u64,
    /// Whether ranks reach each other's private memory.
    reaches: bool,
}

impl Times for Measured<'_> {
    fn times(&mut self, what: Collective, bytes: usize, candidates: &[Candidate]) -> Result<Vec<Figures>, Error> {
        let key = key_of((self.comm.size(), self.comm.node().crowd()), what, bytes, candidates);
        if let Some(figures) = self.known.get(&key).filter(|figures| figures.len() == candidates.len()) {
            return Ok(figures.clone());
        }
        let shared = candidates.iter().any(|candidate| matches!(candidate.lying, Lying::Copied | Lying::Direct));
        let mut buffers = Buffers::new(&self.comm, bytes, shared)?;
        let mut calls = Vec::new();
        for candidate in candidates {
            self.take(what, candidate)?;
            let mut time = 0.0;
            for _ in 0..CHECKED {
                time = self.block(what, &mut buffers, 1)?;
                self.check(what, bytes, &mut buffers)?;
            }
            // A call is followed by its like, and preceded by a barrier and the writing of its input.
            calls.push((self.effort.block * 1e6 / time.max(0.1)).clamp(2.0, MOST_CALLS) as u64);
        }
        let mut figures = vec![Figures::default(); candidates.len()];
        for _ in 0..self.effort.blocks {
            for (at, candidate) in candidates.iter().enumerate() {
                self.take(what, candidate)?;
                self.block(what, &mut buffers, 1)?;
                figures[at].blocks.push(self.block(what, &mut buffers, calls[at])?);
            }
        }
        self.known.put(&key, &figures).map_err(|error| cannot_write(self.ledger, &error))?;
        Ok(figures)
    }

    fn reaches(&self) -> bool {
        self.reaches
    }
}

impl Measured<'_> {
    /// Chooses by a candidate from now on. Other calls than those that are measured go as it says, too.
    fn take(&mut self, what: Collective, candidate: &Candidate) -> Result<(), Error> {
        let plan = Arc::new(TopologyPlan::new(candidate.trees.clone(), self.places.clone(), self.comm.node().crowd()));
        self.comm.node().set_plan(plan)?;
        self.comm.node_mut().set_tuning(&candidate.tuning(what)?)
    }

    /// Microseconds of a call, of the slowest rank, over a few calls. Input is written anew before each.
    fn block(&mut self, what: Collective, buffers: &mut Buffers, calls: u64) -> Result<f64, Error> {
        let mut elapsed = 0.0;
        let root = self.comm.process_at_rank(0);
        for _ in 0..calls {
            self.calls += 1;
            if self.comm.rank() == 0 || what != Collective::Broadcast {
                buffers.parts().0.fill(value(self.calls, self.comm.rank()));
            }
            self.comm.barrier()?;
            let (send, recv) = buffers.parts();
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
    fn check(&self, what: Collective, bytes: usize, buffers: &mut Buffers) -> Result<(), Error> {
        let (send, recv) = buffers.parts();
        let rank = self.comm.rank();
        let sum: f64 = (0..self.comm.size()).map(|rank| value(self.calls, rank)).sum();
        let right = match what {
            Collective::Barrier => true,
            Collective::Broadcast => send.iter().all(|&found| found == value(self.calls, 0)),
            Collective::Reduce if rank != 0 => true,
            Collective::Reduce | Collective::Allreduce => recv.iter().all(|&found| found == sum),
        };
        let mut wrong = [u8::from(!right)];
        self.comm.all_reduce_in_place(&mut wrong, Max)?;
        match wrong[0] {
            0 => Ok(()),
            _ => Err(Error::Tuning { why: format!("a wrong answer of {what} of {bytes} bytes: please report this") }),
        }
    }
}

/// What a rank contributes to a call.
fn value(call: u64, rank: usize) -> f64 {
    (call % 31) as f64 + rank as f64
}

/// What a rank sends, and where it gets its result.
enum Buffers {
    Private([Vec<f64>; 2]),
    Shared([Buffer<f64>; 2]),
}

impl Buffers {
    fn new(comm: &Communicator, bytes: usize, shared: bool) -> Result<Self, Error> {
        let both = [vec![0.0; bytes / 8], vec![-1.0; bytes / 8]];
        Ok(match shared {
            true => Self::Shared([comm.alloc_copy(&both[0])?, comm.alloc_copy(&both[1])?]),
            false => Self::Private(both),
        })
    }

    fn parts(&mut self) -> (&mut [f64], &mut [f64]) {
        match self {
            Self::Private([send, recv]) => (send, recv),
            Self::Shared([send, recv]) => (send, recv),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run in which ranks reach each other, or do not, and what it leaves in a ledger.
    struct Run {
        reaches: bool,
        text: String,
    }

    impl Times for &mut Run {
        fn times(&mut self, what: Collective, bytes: usize, candidates: &[Candidate]) -> Result<Vec<Figures>, Error> {
            let columns = "1.0 1.0 1.0\t".repeat(candidates.len());
            self.text += &format!("{}\t{columns}end\n", key_of((4, 2), what, bytes, candidates));
            Ok(vec![Figures { blocks: vec![1.0; 3] }; candidates.len()])
        }

        fn reaches(&self) -> bool {
            self.reaches
        }
    }

    fn run(reaches: bool) -> (Findings, String) {
        let text = format!("{}\t{:?}\tend\n", key_of_reaching(4, 2), reaching(reaches)[0].blocks[0]);
        let mut run = Run { reaches, text };
        let findings = Search { effort: &Effort::usual(), ranks: 4, crowd: 2, times: &mut run }.run().unwrap();
        (findings, run.text)
    }

    /// A run that goes on where ranks no longer reach each other, or at last do, is replayed as it was.
    #[test]
    fn the_last_run_says_whether_ranks_reach_each_other() {
        for reaches in [true, false] {
            let ((other, before), (last, behind)) = (run(!reaches), run(reaches));
            assert_ne!(other, last);
            for text in [behind.clone(), before + &behind] {
                assert_eq!(replay(&text, &Effort::usual(), 4, 2).unwrap(), last);
            }
        }
    }
}
