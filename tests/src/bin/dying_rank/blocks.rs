//! Calls on blocks and prefixes. Each has other values than the one before, so that whatever an earlier one left behind
//! is no right answer.

use hier::operator::{Operator, Sum, User};
use hier::{Communicator, Error, Partition, PartitionMut};

use crate::calls::Combine;
use crate::memory::{Memory, all_are};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Gather,
    Scatter,
    AllGather,
    AllToAll,
    ReduceScatter,
    Scan,
    ExclusiveScan,
}

/// One behind the other, blocks of so many elements.
struct Layout {
    counts: Vec<usize>,
    displs: Vec<usize>,
}

impl Layout {
    fn new(counts: impl Iterator<Item = usize>) -> Self {
        let counts: Vec<usize> = counts.collect();
        let displs = (0..counts.len()).map(|block| counts[..block].iter().sum()).collect();
        Self { counts, displs }
    }

    fn len(&self) -> usize {
        self.counts.iter().sum()
    }

    /// The blocks of a buffer.
    fn blocks<'a>(&'a self, buffer: &'a mut [u64]) -> impl Iterator<Item = &'a mut [u64]> {
        let mut rest = buffer;
        self.counts.iter().map(move |&count| {
            let (block, behind) = std::mem::take(&mut rest).split_at_mut(count);
            rest = behind;
            block
        })
    }
}

/// Calls of one kind, one after the other.
pub struct Blocks<'a> {
    world: &'a Communicator,
    kind: Kind,
    /// Whether blocks have different lengths.
    uneven: bool,
    /// Whether what is sent lies where what is got belongs.
    in_place: bool,
    root: usize,
    shared: bool,
    sends: Layout,
    receives: Layout,
    /// What is sent and what is got, once the first call is made.
    buffers: Option<(Memory, Memory)>,
    /// Calls that were begun.
    made: u64,
}

impl<'a> Blocks<'a> {
    /// Those of a place, if it names any.
    pub fn of(
        world: &'a Communicator,
        (collective, length, memory): (&str, &str, &str),
        victim: usize,
    ) -> Option<Self> {
        let (collective, in_place) = match collective.strip_suffix("-in-place") {
            Some(collective) => (collective, true),
            None => (collective, false),
        };
        let (collective, to_victim) = match collective.strip_suffix("-to") {
            Some(collective) => (collective, true),
            None => (collective, false),
        };
        let (kind, uneven) = match collective {
            "gather" => (Kind::Gather, false),
            "gatherv" => (Kind::Gather, true),
            "scatter" => (Kind::Scatter, false),
            "scatterv" => (Kind::Scatter, true),
            "allgather" => (Kind::AllGather, false),
            "allgatherv" => (Kind::AllGather, true),
            "alltoall" => (Kind::AllToAll, false),
            "alltoallv" => (Kind::AllToAll, true),
            "reduce-scatter-block" => (Kind::ReduceScatter, false),
            "reduce-scatter" => (Kind::ReduceScatter, true),
            "scan" => (Kind::Scan, false),
            "exscan" => (Kind::ExclusiveScan, false),
            _ => return None,
        };
        let elements = match length {
            "line" => 3,
            "slice" => 700,
            _ => 40_000,
        };
        let (me, size) = (world.rank(), world.size());
        let root = if (kind == Kind::Gather) == to_victim { victim } else { (victim + 1) % size };
        let count = |from: usize, to: usize| elements + if uneven { (from + 2 * to) % 3 } else { 0 };
        let ranks = || 0..size;
        let none = || Layout::new(std::iter::empty());
        let sends = match kind {
            Kind::Scatter if me != root => none(),
            Kind::Scatter | Kind::ReduceScatter => Layout::new(ranks().map(|to| count(0, to))),
            Kind::AllToAll => Layout::new(ranks().map(|to| count(me, to))),
            _ => Layout::new(std::iter::once(count(me, 0))),
        };
        let receives = match kind {
            Kind::Gather if me != root => none(),
            Kind::Gather | Kind::AllGather => Layout::new(ranks().map(|from| count(from, 0))),
            Kind::AllToAll => Layout::new(ranks().map(|from| count(from, me))),
            _ => Layout::new(std::iter::once(count(0, me))),
        };
        let shared = memory == "shared";
        Some(Self { world, kind, uneven, in_place, root, shared, sends, receives, buffers: None, made: 0 })
    }

    /// What all elements are of the block that goes from `from` to `to` (0 where it goes to all).
    fn value(&self, from: usize, to: usize) -> u64 {
        1 + to as u64 + 100 * (from as u64 + 100 * self.made)
    }

    /// What all elements of a block must be that this rank got.
    fn expected(&self, block: usize) -> u64 {
        let me = self.world.rank();
        match self.kind {
            Kind::Gather | Kind::AllGather => self.value(block, 0),
            Kind::Scatter => self.value(self.root, me),
            Kind::AllToAll => self.value(block, me),
            Kind::ReduceScatter => (0..self.world.size()).map(|from| self.value(from, me)).sum(),
            Kind::Scan => (0..=me).map(|from| self.value(from, 0)).sum(),
            Kind::ExclusiveScan => (0..me).map(|from| self.value(from, 0)).sum(),
        }
    }

    /// Makes the next call, and looks at what it brought.
    pub fn call(&mut self, combine: Option<Combine<'_>>) -> Result<(), Error> {
        self.made += 1;
        let (mut send, mut recv) = match self.buffers.take() {
            Some(buffers) => buffers,
            None => (
                Memory::new(self.world, self.shared, self.sends.len(), 0)?,
                Memory::new(self.world, self.shared, self.receives.len(), 0)?,
            ),
        };
        let me = self.world.rank();
        for (to, block) in self.sends.blocks(send.slice()).enumerate() {
            block.fill(self.value(me, to));
        }
        // As an exclusive scan leaves it on rank 0.
        recv.slice().fill(0);
        if self.in_place {
            // An allgather sends the own block of what it gets, the others all.
            let own = if self.kind == Kind::AllGather { me } else { 0 };
            let sent = self.sends.blocks(send.slice());
            self.receives
                .blocks(recv.slice())
                .skip(own)
                .zip(sent)
                .for_each(|(place, block)| place.copy_from_slice(block));
        }
        match combine {
            None => self.make(send.slice(), recv.slice(), Sum),
            Some(combine) => self.make(send.slice(), recv.slice(), User::commutative(combine)),
        }?;
        for (block, values) in self.receives.blocks(recv.slice()).enumerate() {
            let expected = self.expected(block);
            assert!(all_are(values, expected), "a wrong answer beside a rank that ended: block {block}, {expected}");
        }
        self.buffers = Some((send, recv));
        Ok(())
    }

    fn make(&self, send: &[u64], recv: &mut [u64], operator: impl Operator<u64>) -> Result<(), Error> {
        let Self { world, sends, receives, .. } = self;
        let (root, is_root) = (world.process_at_rank(self.root), world.rank() == self.root);
        let sent = Partition::new(send, &sends.counts, &sends.displs);
        match (self.kind, self.uneven) {
            (Kind::AllGather, false) if self.in_place => world.all_gather_in_place(recv),
            (Kind::AllToAll, false) if self.in_place => world.all_to_all_in_place(recv),
            (Kind::Scan, _) if self.in_place => world.scan_in_place(recv, operator),
            (Kind::Gather, false) if is_root => root.gather_into_root(send, recv),
            (Kind::Gather, false) => root.gather_into(send),
            (Kind::Gather, true) if is_root => {
                root.gather_varcount_into_root(send, &mut PartitionMut::new(recv, &receives.counts, &receives.displs))
            }
            (Kind::Gather, true) => root.gather_varcount_into(send),
            (Kind::Scatter, false) if is_root => root.scatter_into_root(send, recv),
            (Kind::Scatter, false) => root.scatter_into(recv),
            (Kind::Scatter, true) if is_root => root.scatter_varcount_into_root(&sent, recv),
            (Kind::Scatter, true) => root.scatter_varcount_into(recv),
            (Kind::AllGather, false) => world.all_gather_into(send, recv),
            (Kind::AllGather, true) => {
                world.all_gather_varcount_into(send, &mut PartitionMut::new(recv, &receives.counts, &receives.displs))
            }
            (Kind::AllToAll, false) => world.all_to_all_into(send, recv),
            (Kind::AllToAll, true) => {
                world.all_to_all_varcount_into(&sent, &mut PartitionMut::new(recv, &receives.counts, &receives.displs))
            }
            (Kind::ReduceScatter, false) => world.reduce_scatter_block_into(send, recv, operator),
            (Kind::ReduceScatter, true) => world.reduce_scatter_into(send, recv, &sends.counts, operator),
            (Kind::Scan, _) => world.scan_into(send, recv, operator),
            (Kind::ExclusiveScan, _) => world.exclusive_scan_into(send, recv, operator),
        }
    }
}
