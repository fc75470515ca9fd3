//! The calls that are counted: each collective by each way that it can go, made once on ranks that are threads.

use std::sync::Arc;

use super::Counts;
use crate::buffer::Buffer;
use crate::communicator::Communicator;
use crate::error::Result;
use crate::job::JobSpec;
use crate::operator::Sum;
use crate::plan::{FlatPlan, Plan};

/// A collective. Rank 0 is the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum What {
    Barrier,
    Broadcast,
    Reduce,
    Allreduce,
    Gather,
    Scatter,
    Allgather,
    Alltoall,
    ReduceScatter,
    Scan,
    /// A scan of several slices.
    LongScan,
}

impl What {
    /// Its name, in small letters.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            What::Barrier => "barrier",
            What::Broadcast => "broadcast",
            What::Reduce => "reduce",
            What::Allreduce => "allreduce",
            What::Gather => "gather",
            What::Scatter => "scatter",
            What::Allgather => "allgather",
            What::Alltoall => "alltoall",
            What::ReduceScatter => "reduce-scatter",
            What::Scan => "scan",
            What::LongScan => "long scan",
        }
    }

    /// Whether a rank publishes a block for each other.
    #[must_use]
    pub const fn has_rows(self) -> bool {
        matches!(self, What::Scatter | What::Alltoall | What::ReduceScatter)
    }
}

/// The way that a call goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    /// Stamp and payload in one line, flat.
    Lines,
    /// Cells, over flat trees.
    Cells,
    /// Shares through cells, with as many leaders as ranks.
    Shares,
    /// An exchange through cells.
    Exchange,
    /// Shares (a broadcast: cells; blocks: deliveries) with all buffers in shared memory.
    Direct,
    /// An exchange with all buffers in shared memory.
    DirectExchange,
}

impl Way {
    /// Its name, in small letters.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Way::Lines => "lines",
            Way::Cells => "cells",
            Way::Shares => "shares",
            Way::Exchange => "exchange",
            Way::Direct => "direct",
            Way::DirectExchange => "direct exchange",
        }
    }

    const fn lends(self) -> bool {
        matches!(self, Way::Direct | Way::DirectExchange)
    }
}

/// Bytes of a cell in all ways that have any.
pub const CELL: usize = 4096;

/// A collective, and the way that it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Case {
    /// The collective.
    pub what: What,
    /// The way.
    pub way: Way,
}

impl Case {
    /// All that there are.
    #[must_use]
    pub fn all() -> Vec<Self> {
        use What::*;
        let of = |way, list: &[What]| list.iter().map(|&what| Case { what, way }).collect::<Vec<_>>();
        let blocks = [Gather, Scatter, Allgather, Alltoall, ReduceScatter];
        [
            of(Way::Lines, &[Barrier, Broadcast, Reduce, Allreduce]),
            of(Way::Lines, &blocks),
            of(Way::Lines, &[Scan]),
            of(Way::Cells, &[Broadcast, Reduce, Allreduce]),
            of(Way::Exchange, &[Allreduce]),
            of(Way::Shares, &[Reduce, Allreduce]),
            of(Way::Direct, &[Broadcast, Reduce, Allreduce]),
            of(Way::DirectExchange, &[Allreduce]),
            of(Way::Cells, &blocks),
            of(Way::Cells, &[Scan, LongScan]),
            of(Way::Direct, &blocks),
        ]
        .concat()
    }

    /// Whether what each of so many ranks does follows from the call alone. In a direct broadcast of two the second
    /// half of the work is done by who comes to it first; in a reduction through shares of two it is the root's alone
    /// where that comes late.
    #[must_use]
    pub fn is_decided(self, ranks: usize) -> bool {
        ranks > 2 || !matches!((self.way, self.what), (Way::Direct, What::Broadcast) | (Way::Shares, What::Reduce))
    }

    /// Bytes of the message, or of a block: whole lines, which all counts of ranks up to 64 that are powers of two, and
    /// three times such, divide.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match (self.way, self.what) {
            (_, What::Barrier) => 0,
            (Way::Lines, _) => 8,
            (_, What::Scan) => CELL,
            (_, What::Gather | What::Allgather) => 2 * CELL,
            (_, What::LongScan) => 3 * CELL,
            (_, what) if what.has_rows() => 192,
            _ => 12 * CELL,
        }
    }

    /// What is forced, as in `PHALANX_ALGORITHM`.
    fn rules(self) -> String {
        let cells = format!(
            "all:cell={CELL},cells=64,share_cell={CELL},leaders=256,direct_from=1,reach_from=never,flat_ranks=256"
        );
        let way = match (self.way, self.what) {
            (Way::Lines, _) => "all:line",
            (Way::Direct, What::Reduce | What::Allreduce) | (Way::Shares, _) => "all:shares;broadcast:cells",
            (Way::Cells | Way::Direct, _) => "all:cells;barrier:line",
            (Way::Exchange | Way::DirectExchange, _) => "allreduce:exchange",
        };
        format!("{cells};{way}")
    }

    /// Makes the call on so many ranks, and says what each did in its second one: the first finds out what is to be
    /// remembered. No slot is used twice.
    ///
    /// # Errors
    /// As [`Communicator::threads_of`], and what a call returns.
    pub fn count(self, ranks: usize) -> Result<Vec<Counts>> {
        let mut spec = JobSpec::new(ranks)?;
        spec.tuning.force(&self.rules())?;
        let counts = Communicator::threads_of(&spec, &(Arc::new(FlatPlan) as Arc<dyn Plan>), |comm| {
            let mut buffers = Buffers::new(&comm, self)?;
            self.call(&comm, &mut buffers)?;
            comm.barrier()?;
            let (made, counts) = comm.count(|| self.call(&comm, &mut buffers));
            made.and(comm.barrier()).map(|()| counts)
        })?;
        counts.into_iter().collect()
    }

    fn call(self, comm: &Communicator, buffers: &mut Buffers) -> Result<()> {
        let (root, is_root, all) = (comm.process_at_rank(0), comm.rank() == 0, buffers.all);
        let (send, recv) = buffers.slices();
        let one = send.len() / all;
        match (self.what, is_root) {
            (What::Barrier, _) => comm.barrier(),
            (What::Broadcast, _) => root.broadcast_into(send),
            (What::Reduce, true) => root.reduce_into_root(send, recv, Sum),
            (What::Reduce, false) => root.reduce_into(send, Sum),
            (What::Allreduce, _) => comm.all_reduce_into(send, recv, Sum),
            (What::Gather, true) => root.gather_into_root(&send[..one], recv),
            (What::Gather, false) => root.gather_into(&send[..one]),
            (What::Scatter, true) => root.scatter_into_root(send, &mut recv[..one]),
            (What::Scatter, false) => root.scatter_into(&mut recv[..one]),
            (What::Allgather, _) => comm.all_gather_into(&send[..one], recv),
            (What::Alltoall, _) => comm.all_to_all_into(send, recv),
            (What::ReduceScatter, _) => comm.reduce_scatter_block_into(send, &mut recv[..one], Sum),
            (What::Scan | What::LongScan, _) => comm.scan_into(send, recv, Sum),
        }
    }
}

/// What a rank sends and where it gets its result: a block for each rank where there are blocks.
struct Buffers {
    private: [Vec<u64>; 2],
    shared: Option<[Buffer<u64>; 2]>,
    /// Blocks in each.
    all: usize,
}

impl Buffers {
    fn new(comm: &Communicator, case: Case) -> Result<Self> {
        let blocks = case.what.has_rows() || matches!(case.what, What::Gather | What::Allgather);
        let all = if blocks { comm.size() } else { 1 };
        let words = all * case.bytes() / 8;
        Ok(match case.way.lends() {
            true => Self { private: Default::default(), shared: Some([comm.alloc(words)?, comm.alloc(words)?]), all },
            false => Self { private: [vec![1; words], vec![0; words]], shared: None, all },
        })
    }

    fn slices(&mut self) -> (&mut [u64], &mut [u64]) {
        match &mut self.shared {
            Some([send, recv]) => (send, recv),
            None => {
                let [send, recv] = &mut self.private;
                (send, recv)
            }
        }
    }
}
