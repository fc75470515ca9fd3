//! From which size buffers are used where they lie: what a table says of it, for one communicator.

use crate::board::SharedBoard;
use crate::last_level::way_of_results;
use crate::pace::Way;
use crate::protocol::Place;
use crate::select::tuning::{DIRECT_ALWAYS, REACH_TRIED, STREAM_ALWAYS, STREAM_NEVER};
use crate::select::{Collective, Selection, Tuning};

/// The thresholds of a table.
#[derive(Clone, Copy)]
pub(crate) struct Thresholds {
    direct_from: [u64; 4],
    /// Of blocks: where some ranks wait for others, and where all wait for all.
    block_from: [u64; 2],
    reach_from: [u64; 4],
    /// Whether ranks let others at long blocks where they lie, or belong: where they share cores. The same on all.
    pub opens_blocks: bool,
    /// Whether trials may say that what lies in the heap is copied.
    tries_direct: bool,
    /// Ranks that reach into one rank's memory at a time, at most; 0 for any number.
    pub readers: u32,
    /// How cells are filled: the table's word.
    pub stream: u32,
}

impl Thresholds {
    /// Those of a table for a communicator, for which this was picked out of it.
    pub fn new<R>(tuning: &Tuning<R>, selection: &Selection) -> Self {
        Self {
            direct_from: Collective::ALL.map(|what| selection.direct_from(what)),
            block_from: [false, true].map(|together| selection.block_from(together)),
            reach_from: Collective::ALL.map(|what| selection.reach_from(what)),
            // What measuring has found of broadcasts says nothing of these.
            opens_blocks: selection.shares_cores() && tuning.reach_from[Collective::Broadcast as usize] != u64::MAX,
            readers: tuning.readers,
            tries_direct: tuning.direct != DIRECT_ALWAYS,
            stream: tuning.stream,
        }
    }

    /// The same, but that in calls of this collective nothing in the heap is used where it lies.
    #[must_use]
    pub fn copying(mut self, what: Collective) -> Self {
        self.direct_from[what as usize] = u64::MAX;
        self
    }

    /// How results are stored of a call whose ranks together have buffers of so many bytes.
    pub fn way_of_results(&self, buffers: usize) -> Way {
        match self.stream {
            STREAM_NEVER => Way::Cached,
            STREAM_ALWAYS => Way::Streamed,
            _ => way_of_results(buffers),
        }
    }

    /// Whether trials are to say when private buffers are lent in calls of this collective.
    pub fn tries(&self, what: Collective) -> bool {
        self.reach_from[what as usize] == REACH_TRIED
    }

    /// Whether trials are to say when buffers in the heap are used where they lie.
    pub fn tries_direct(&self) -> bool {
        self.tries_direct
    }

    /// Where others find `bytes` bytes at `buffer` in a call of this collective.
    pub fn place(&self, board: &SharedBoard, what: Collective, buffer: *const u8, bytes: usize) -> Place {
        self.place_from(self.direct_from[what as usize], board, (buffer, bytes), || self.reaches(board, what, bytes))
    }

    /// The same in a call on blocks, in which all ranks wait for all (`together`) or not; private ones are reached as
    /// in calls of this collective, and where others are let in (`admits`).
    pub fn block_place(
        &self,
        board: &SharedBoard,
        what: Collective,
        together: bool,
        (buffer, bytes): (*const u8, usize),
        admits: impl FnOnce() -> bool,
    ) -> Place {
        self.place_from(self.block_from[usize::from(together)], board, (buffer, bytes), || {
            self.reaches(board, what, bytes) || admits()
        })
    }

    /// Where others put the blocks that a root gathers in so many bytes at `buffer`: in private memory where they are
    /// let in (`admits`), whatever is read there in other calls.
    pub fn opened_place(
        &self,
        board: &SharedBoard,
        (buffer, bytes): (*const u8, usize),
        admits: impl FnOnce() -> bool,
    ) -> Place {
        self.place_from(self.block_from[0], board, (buffer, bytes), admits)
    }

    /// Whether private buffers of so many bytes are reached in calls of this collective.
    fn reaches(&self, board: &SharedBoard, what: Collective, bytes: usize) -> bool {
        bytes as u64 >= self.reach_from[what as usize] && board.can_reach()
    }

    /// Where others find a buffer: in the heap, from `least` bytes on; in private memory, if `reaches` says so.
    fn place_from(
        &self,
        least: u64,
        board: &SharedBoard,
        (buffer, bytes): (*const u8, usize),
        reaches: impl FnOnce() -> bool,
    ) -> Place {
        // What lies in the heap and is too short is copied, and not reached by the kernel.
        if let Some(offset) = board.in_heap(buffer, bytes) {
            return if bytes as u64 >= least { Place::Heap(offset) } else { Place::Cell };
        }
        if bytes > 0 && !buffer.is_null() && reaches() { Place::private(buffer) } else { Place::Cell }
    }

    /// Where `bytes` bytes at `buffer` lie in the heap, if they do, and are long enough to be used there in a call of
    /// this collective.
    pub fn heap_offset(&self, board: &SharedBoard, what: Collective, buffer: *const u8, bytes: usize) -> Option<u64> {
        board.in_heap(buffer, bytes).filter(|_| bytes as u64 >= self.direct_from[what as usize])
    }
}

impl SharedBoard {
    /// Where `bytes` bytes at `buffer` lie in the heap, if they do, and there are any.
    pub fn in_heap(&self, buffer: *const u8, bytes: usize) -> Option<u64> {
        if bytes > 0 && !buffer.is_null() { self.seat().mapping().heap_offset(buffer, bytes) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::Thresholds;
    use crate::communicator::Communicator;
    use crate::job::JobSpec;
    use crate::operator::Sum;
    use crate::select::{Band, Collective, DIRECT_FROM, Rule, Tuning};

    #[test]
    fn as_many_read_at_a_time_as_the_table_says() {
        Communicator::threads(2, |mut comm| {
            assert_eq!(comm.enter().unwrap().board.readers, crate::select::READERS);
            for readers in [7, 0] {
                let mut tuning = Tuning::default();
                tuning.force(&format!("all:readers={readers}")).unwrap();
                comm.set_tuning(&tuning).unwrap();
                assert_eq!(comm.enter().unwrap().board.readers, readers);
            }
        })
        .unwrap();
    }

    /// A table that was measured says of broadcasts alone that they reach nothing; who forces it means all.
    #[test]
    fn blocks_are_opened_whatever_is_measured_of_broadcasts() {
        let opens = |tuning: &Tuning, crowd| Thresholds::new(tuning, &tuning.select(4, crowd)).opens_blocks;
        let mut tuning = Tuning::default();
        assert!(opens(&tuning, 2) && !opens(&tuning, 1));
        let mut rule = Rule::new(Collective::Broadcast, &[Band::cells(0, (2, 4096), (2, 4096))]).unwrap();
        rule = rule.with_reach_from(u64::MAX);
        let measured = Tuning::of(&[rule]).unwrap();
        assert_eq!(measured.select(4, 2).reach_from(Collective::Broadcast), u64::MAX);
        assert!(opens(&measured, 2));
        tuning.force("broadcast:reach_from=never").unwrap();
        assert!(!opens(&tuning, 2));
    }

    /// Calls with all buffers in shared memory.
    #[derive(Clone, Copy, Debug)]
    enum Call {
        Broadcast,
        Reduce,
        Shares,
        Exchange,
        AllGather,
        ReduceScatter,
        Gather,
        Scan,
    }

    impl Call {
        const ALL: [Call; 8] = [
            Call::Broadcast,
            Call::Reduce,
            Call::Shares,
            Call::Exchange,
            Call::AllGather,
            Call::ReduceScatter,
            Call::Gather,
            Call::Scan,
        ];

        /// What it loads and stores on this rank, of `n` bytes that each rank sends.
        fn moves(self, comm: &mut Communicator, rules: &str, n: usize) -> usize {
            let mut tuning = Tuning::default();
            let regime = if matches!(self, Call::Exchange) { "exchange" } else { "shares" };
            tuning
                .force(&format!("broadcast:cells;reduce:cells;allreduce:{regime};all:reach_from=never;{rules}"))
                .unwrap();
            comm.set_tuning(&tuning).unwrap();
            let (rank, size, words) = (comm.rank(), comm.size(), n / 8);
            let mut send = comm.alloc::<u64>(words).unwrap();
            let long = if matches!(self, Call::AllGather | Call::Gather) { words * size } else { words };
            let mut recv = comm.alloc::<u64>(long).unwrap();
            let root = comm.process_at_rank(0);
            comm.reset_counters();
            match self {
                Call::Broadcast => root.broadcast_into(&mut send),
                Call::Reduce if rank == 0 => root.reduce_into_root(&send, &mut recv, Sum),
                Call::Reduce => root.reduce_into(&send, Sum),
                Call::Shares | Call::Exchange => comm.all_reduce_into(&send, &mut recv, Sum),
                Call::AllGather => comm.all_gather_into(&send, &mut recv),
                Call::ReduceScatter => comm.reduce_scatter_block_into(&send, &mut recv[..words / size], Sum),
                Call::Gather if rank == 0 => root.gather_into_root(&send, &mut recv),
                Call::Gather => root.gather_into(&send),
                Call::Scan => comm.scan_into(&send, &mut recv, Sum),
            }
            .unwrap();
            let counters = comm.counters();
            (counters.loaded + counters.stored) as usize
        }

        /// What all `p` ranks load and store if everybody copies its `n` bytes to cells, and if nobody does.
        fn copied_and_lent(self, p: usize, n: usize) -> [usize; 2] {
            match self {
                Call::Broadcast => [2 * p * n, 2 * (p - 1) * n],
                Call::Reduce => [(3 * p - 1) * n, (p + 1) * n],
                Call::Shares => [(5 * p - 2) * n, 2 * p * n],
                Call::Exchange => [p * (p + 3) * n, 2 * p * n],
                Call::AllGather => [2 * p * (p + 1) * n, 2 * p * p * n],
                Call::ReduceScatter => [(3 * p - 1) * n, (p + 1) * n],
                Call::Gather => [(4 * p - 2) * n, 2 * p * n],
                Call::Scan => [(p * (p + 3) / 2 + 2 * (p - 1)) * n, p * (p + 3) / 2 * n],
            }
        }
    }

    /// Bytes from which the calls of [`Call::ALL`] lend, by what a table says; they are more than lines take, and
    /// multiples of what 2 and 3 ranks share out.
    const TABLES: [(&str, [usize; 8]); 4] = [
        (
            "barrier:direct_from=1;broadcast:direct_from=4800;reduce:direct_from=6000;allreduce:direct_from=24000",
            [4800, 6000, 24_000, 24_000, DIRECT_FROM as usize, DIRECT_FROM as usize, 1, 1],
        ),
        ("all:direct_from=never", [usize::MAX; 8]),
        ("all:direct_from=never;allreduce:direct_from=4800", [usize::MAX, usize::MAX, 4800, 4800, 4800, 4800, 1, 1]),
        (
            "all:direct_from=never;broadcast:direct_from=1;reduce:direct_from=6000",
            [1, 6000, usize::MAX, usize::MAX, usize::MAX, usize::MAX, usize::MAX, usize::MAX],
        ),
    ];

    /// What is copied and what is lent, counted on both sides of every threshold, under tables that follow one another
    /// on one communicator.
    #[test]
    fn buffers_are_lent_from_the_size_on_that_the_table_says() {
        for ranks in 2..=3 {
            let mut steps = Vec::new();
            for (rules, thresholds) in TABLES {
                for (call, least) in Call::ALL.into_iter().zip(thresholds) {
                    // Of what ranks share out there is a multiple of 8 bytes for each.
                    let unit = 8 * ranks;
                    let around = [least.saturating_sub(1) / unit * unit, least.div_ceil(unit).saturating_mul(unit)];
                    for n in around.map(|n| n.clamp(4800, 28_800)) {
                        steps.push((call, rules, n, n >= least));
                    }
                }
            }
            let spec = JobSpec::new(ranks).unwrap();
            let counts = spec.on_threads(|mut comm| {
                let moved = |&(call, rules, n, _): &(Call, &str, usize, bool)| call.moves(&mut comm, rules, n);
                steps.iter().map(moved).collect::<Vec<_>>()
            });
            for (at, (call, rules, n, lends)) in steps.into_iter().enumerate() {
                let all: usize = counts.iter().map(|count| count[at]).sum();
                let wanted = call.copied_and_lent(ranks, n)[usize::from(lends)];
                assert_eq!(all, wanted, "{call:?} of {n} bytes on {ranks} ranks, which lends: {lends}; {rules}");
            }
        }
    }
}
