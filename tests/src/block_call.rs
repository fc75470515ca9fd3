//! One call that moves blocks, or combines them, made and checked against an oracle: what every rank should have is
//! written down from what all ranks contribute, with no thought of how it got there.

use hier::{Partition, PartitionMut};
use phalanx_oracle::operation::Operation;

use crate::call::{Buffer, Lying};
use crate::folding::Folding;
use crate::known::{Key, elements, known};
use crate::random::{Random, mixed};
use crate::sample::{Flavour, Sample, samples};
use crate::{Communicator, Error};

/// The collectives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// All blocks to everybody.
    AllGather,
    /// All blocks to the root.
    Gather,
    /// A block of the root to everybody.
    Scatter,
    /// A block of everybody to everybody.
    AllToAll,
    /// A block of the sum to everybody.
    ReduceScatter,
    /// The sum up to each rank.
    Scan,
    /// The sum below each rank.
    ExclusiveScan,
}

impl Kind {
    /// Those that move blocks.
    pub const MOVED: [Kind; 4] = [Kind::AllGather, Kind::Gather, Kind::Scatter, Kind::AllToAll];
    /// Those that combine.
    pub const FOLDED: [Kind; 3] = [Kind::ReduceScatter, Kind::Scan, Kind::ExclusiveScan];
}

/// A call that all ranks of a communicator make alike.
#[derive(Clone, Copy, Debug)]
pub struct BlockCall {
    /// Which collective.
    pub kind: Kind,
    /// Whether blocks have different lengths (and places, where their owners choose them).
    pub uneven: bool,
    /// The root of rooted ones.
    pub root: usize,
    /// Elements of a block, or of the longest that there may be.
    pub len: usize,
    /// Whether one buffer is contribution and result, where that is possible. Ranks may differ in it.
    pub in_place: bool,
    /// Where the buffers lie. Ranks may differ in it.
    pub lying: Lying,
    /// From which the contributions follow, and the lengths.
    pub seed: u64,
}

/// A place in a buffer for each of several blocks.
struct Layout {
    counts: Vec<usize>,
    displs: Vec<usize>,
    len: usize,
}

impl Layout {
    /// One block behind the other.
    fn packed(counts: Vec<usize>) -> Self {
        let (mut displs, mut len) = (Vec::new(), 0);
        for &count in &counts {
            displs.push(len);
            len += count;
        }
        Self { counts, displs, len }
    }

    /// In some order, with gaps.
    fn scattered(counts: Vec<usize>, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut order: Vec<usize> = (0..counts.len()).collect();
        for at in 1..order.len() {
            order.swap(at, random.below(at + 1));
        }
        let (mut displs, mut len) = (vec![0; counts.len()], 0);
        for block in order {
            len += random.below(3);
            displs[block] = len;
            len += counts[block];
        }
        Self { counts, displs, len: len + random.below(2) }
    }
}

impl BlockCall {
    /// Elements of the block that goes from `from` to `to`; of what goes to all alike, or comes from one alone, the
    /// other is 0.
    fn count(&self, from: usize, to: usize) -> usize {
        if !self.uneven {
            return self.len;
        }
        let (one, other) = if self.is_symmetric() { (from.min(to), from.max(to)) } else { (from, to) };
        let drawn = mixed(self.seed ^ (one as u64) << 8 ^ (other as u64) << 24 ^ 0x77);
        match drawn % 8 {
            0 => 0,
            1 => self.len.min(1),
            2 | 3 => self.len,
            4 => self.len / 2,
            _ => (drawn >> 8) as usize % (self.len + 1),
        }
    }

    /// Whether ranks send each other equally much.
    fn is_symmetric(&self) -> bool {
        self.seed.is_multiple_of(3)
    }

    /// Whether this rank works in place.
    fn works_in_place(&self, rank: usize) -> bool {
        self.in_place
            && match self.kind {
                Kind::Gather | Kind::Scatter => rank == self.root,
                Kind::AllToAll => !self.uneven || self.is_symmetric(),
                Kind::ReduceScatter => false,
                _ => true,
            }
    }

    /// `len` elements of the block from `from` to `to` (0 where it goes to all).
    fn block<T: Sample>(&self, flavour: Flavour, from: usize, to: usize, len: usize) -> Vec<T> {
        samples(flavour, self.seed ^ mixed(to as u64), from, len)
    }

    /// The layout of what this rank sends, with the rank to which each block goes.
    fn sends(&self, rank: usize, size: usize) -> (Layout, Vec<usize>) {
        let each = |from: usize| (0..size).map(|to| self.count(from, to)).collect();
        let layout = match self.kind {
            Kind::Scatter if rank != self.root => return (Layout::packed(Vec::new()), Vec::new()),
            Kind::AllGather | Kind::Gather => return (Layout::packed(vec![self.count(rank, 0)]), vec![0]),
            Kind::Scan | Kind::ExclusiveScan => return (Layout::packed(vec![self.len]), vec![0]),
            Kind::ReduceScatter => Layout::packed(each(0)),
            Kind::Scatter if self.uneven => Layout::scattered(each(0), self.seed),
            Kind::Scatter => Layout::packed(each(0)),
            Kind::AllToAll if self.uneven => Layout::scattered(each(rank), self.seed ^ rank as u64),
            Kind::AllToAll => Layout::packed(each(rank)),
        };
        (layout, (0..size).collect())
    }

    /// The layout of what this rank gets.
    fn receives(&self, rank: usize, size: usize) -> Layout {
        let counts: Vec<usize> = match self.kind {
            Kind::Gather if rank != self.root => Vec::new(),
            Kind::AllGather | Kind::Gather => (0..size).map(|from| self.count(from, 0)).collect(),
            Kind::AllToAll => (0..size).map(|from| self.count(from, rank)).collect(),
            Kind::Scatter | Kind::ReduceScatter => vec![self.count(0, rank)],
            Kind::Scan | Kind::ExclusiveScan => vec![self.len],
        };
        match counts.len() == size && self.uneven && Kind::MOVED.contains(&self.kind) && self.kind != Kind::Scatter {
            true => Layout::scattered(counts, !self.seed ^ rank as u64),
            false => Layout::packed(counts),
        }
    }
}

/// The buffers of a call on one rank, and what is in them before and afterwards.
struct Scene<T> {
    send: Buffer<T>,
    recv: Buffer<T>,
    before: Vec<T>,
    after: Vec<T>,
    sends: Layout,
    receives: Layout,
    in_place: bool,
}

impl<T: Sample> Scene<T> {
    /// Sets it up; `after` is what a rank has that gets nothing.
    fn new(comm: &Communicator, call: &BlockCall, flavour: Flavour) -> Result<Self, Error> {
        let (rank, size) = (comm.rank(), comm.size());
        let (sends, tos) = call.sends(rank, size);
        let receives = call.receives(rank, size);
        let in_place = call.works_in_place(rank);
        // Between blocks, and where a result will be: another call's contributions.
        let mut before = samples(flavour, call.seed ^ 0x5bd1_e995, rank, sends.len);
        for (block, &to) in tos.iter().enumerate() {
            let (at, len) = (sends.displs[block], sends.counts[block]);
            before[at..at + len].copy_from_slice(&call.block(flavour, rank, to, len));
        }
        let mut found = samples(flavour, call.seed ^ 0x1b87_3593, rank, receives.len);
        let after = found.clone();
        if in_place {
            // What this rank sends lies where its receive layout says.
            for (block, &len) in receives.counts.iter().enumerate() {
                let to = match call.kind {
                    Kind::AllToAll => block,
                    Kind::Scan | Kind::ExclusiveScan => 0,
                    Kind::AllGather | Kind::Gather if block == rank => 0,
                    _ => continue,
                };
                found[receives.displs[block]..][..len].copy_from_slice(&call.block(flavour, rank, to, len));
            }
        }
        let (sent, received): (&[T], &[T]) = match (in_place, call.kind) {
            (true, Kind::Scatter) => (&before, &[]),
            (true, _) => (&[], &found),
            _ => (&before, &found),
        };
        let send = Buffer::new((comm, call.lying.send), flavour, call.seed, sent)?;
        let recv = Buffer::new((comm, call.lying.recv), flavour, !call.seed, received)?;
        // A rank that gets nothing keeps what it has.
        let after = if call.kind == Kind::ExclusiveScan && rank == 0 { found } else { after };
        Ok(Self { send, recv, before, after, sends, receives, in_place })
    }

    /// Notes what is expected where blocks are moved.
    fn expect_moved(&mut self, (rank, size): (usize, usize), call: &BlockCall, flavour: Flavour) {
        let gathered = (call.kind == Kind::AllGather).then(|| {
            let (name, seed) = (std::any::type_name::<T>(), call.seed);
            let block = |from: usize| call.block::<T>(flavour, from, 0, call.count(from, 0));
            let key = Key { name, seed, size, len: call.len, of: "gathered", root: 0 };
            known(key, &|| Box::new((0..size).flat_map(block).collect::<Vec<T>>()))
        });
        let mut packed = 0;
        for (block, &len) in self.receives.counts.iter().enumerate() {
            let after = &mut self.after[self.receives.displs[block]..][..len];
            match (call.kind, &gathered) {
                (Kind::Scatter, _) => after.copy_from_slice(&call.block(flavour, call.root, rank, len)),
                (Kind::AllToAll, _) => after.copy_from_slice(&call.block(flavour, block, rank, len)),
                (_, Some(all)) => after.copy_from_slice(&elements(all)[packed..packed + len]),
                (_, None) => after.copy_from_slice(&call.block(flavour, block, 0, len)),
            }
            packed += len;
        }
    }

    fn check(&self, comm: &Communicator, call: &BlockCall, name: &str) {
        let complaint =
            self.send.complaint("contribution", &self.before).or_else(|| self.recv.complaint("result", &self.after));
        if let Some(complaint) = complaint {
            panic!("rank {} of {}: {call:?} of {name}: {complaint}", comm.rank(), comm.size());
        }
    }
}

/// Makes a call that moves blocks, and checks everything that this rank can see of it.
///
/// # Errors
/// That of the collective.
///
/// # Panics
/// When an answer is wrong, a contribution was changed, or something beside a buffer or between blocks was.
pub fn check_moved<T: Sample>(comm: &Communicator, call: &BlockCall, name: &str) -> Result<(), Error> {
    let mut scene = Scene::<T>::new(comm, call, Flavour::Sum)?;
    scene.expect_moved((comm.rank(), comm.size()), call, Flavour::Sum);
    let Scene { send, recv, sends, receives, in_place, .. } = &mut scene;
    let (in_place, is_root) = (*in_place, comm.rank() == call.root);
    let root = comm.process_at_rank(call.root);
    let (send, recv) = (send.middle(), recv.middle());
    match (call.kind, call.uneven) {
        (Kind::AllGather, false) if in_place => comm.all_gather_in_place(recv)?,
        (Kind::AllGather, false) => comm.all_gather_into(send, recv)?,
        (Kind::AllGather, true) => {
            let mut recv = PartitionMut::new(recv, &receives.counts, &receives.displs);
            match in_place {
                true => comm.all_gather_varcount_in_place(&mut recv)?,
                false => comm.all_gather_varcount_into(send, &mut recv)?,
            }
        }
        (Kind::Gather, false) if !is_root => root.gather_into(send)?,
        (Kind::Gather, true) if !is_root => root.gather_varcount_into(send)?,
        (Kind::Gather, false) if in_place => root.gather_into_root_in_place(recv)?,
        (Kind::Gather, false) => root.gather_into_root(send, recv)?,
        (Kind::Gather, true) => {
            let mut recv = PartitionMut::new(recv, &receives.counts, &receives.displs);
            match in_place {
                true => root.gather_varcount_into_root_in_place(&mut recv)?,
                false => root.gather_varcount_into_root(send, &mut recv)?,
            }
        }
        (Kind::Scatter, false) if !is_root => root.scatter_into(recv)?,
        (Kind::Scatter, true) if !is_root => root.scatter_varcount_into(recv)?,
        (Kind::Scatter, false) if in_place => root.scatter_into_root_in_place(send)?,
        (Kind::Scatter, false) => root.scatter_into_root(send, recv)?,
        (Kind::Scatter, true) => {
            let send = Partition::new(send, &sends.counts, &sends.displs);
            match in_place {
                true => root.scatter_varcount_into_root_in_place(&send)?,
                false => root.scatter_varcount_into_root(&send, recv)?,
            }
        }
        (Kind::AllToAll, false) if in_place => comm.all_to_all_in_place(recv)?,
        (Kind::AllToAll, false) => comm.all_to_all_into(send, recv)?,
        (Kind::AllToAll, true) => {
            let mut recv = PartitionMut::new(recv, &receives.counts, &receives.displs);
            match in_place {
                true => comm.all_to_all_varcount_in_place(&mut recv)?,
                false => {
                    let send = Partition::new(send, &sends.counts, &sends.displs);
                    comm.all_to_all_varcount_into(&send, &mut recv)?;
                }
            }
        }
        (kind, _) => panic!("{kind:?} combines"),
    }
    scene.check(comm, call, name);
    Ok(())
}

/// Makes a call that combines blocks, or prefixes, and checks everything that this rank can see of it against the
/// operation's oracle.
///
/// # Errors
/// That of the collective.
///
/// # Panics
/// As [`check_moved`].
pub fn check_folded<T: Sample>(comm: &Communicator, call: &BlockCall, operation: &Operation<T>) -> Result<(), Error> {
    let Operation { name, flavour, operator, .. } = *operation;
    let (rank, size) = (comm.rank(), comm.size());
    let mut scene = Scene::<T>::new(comm, call, flavour)?;
    let len = scene.after.len();
    match call.kind {
        Kind::ReduceScatter => scene.after = operation.fold(size, &|from| call.block(flavour, from, rank, len)),
        Kind::ExclusiveScan if rank == 0 => {}
        kind => {
            let key = Key { name, seed: call.seed, size, len, of: "prefixes", root: 0 };
            let prefixes =
                known(key, &|| Box::new(operation.prefixes(size, &|from| call.block(flavour, from, 0, len))));
            let last = if kind == Kind::Scan { rank } else { rank - 1 };
            scene.after.copy_from_slice(&elements(&prefixes)[last * len..][..len]);
        }
    }
    let Scene { send, recv, sends, in_place, .. } = &mut scene;
    let (send, recv, counts) = (send.middle(), recv.middle(), &sends.counts);
    let folding = match (call.kind, *in_place) {
        (Kind::ReduceScatter, _) if call.uneven => Folding::ReduceScatter { send, recv, counts },
        (Kind::ReduceScatter, _) => Folding::ReduceScatterBlock { send, recv },
        (Kind::Scan, true) => Folding::ScanInPlace(recv),
        (Kind::Scan, false) => Folding::Scan { send, recv },
        (Kind::ExclusiveScan, true) => Folding::ExclusiveScanInPlace(recv),
        (Kind::ExclusiveScan, false) => Folding::ExclusiveScan { send, recv },
        (kind, _) => panic!("{kind:?} does not combine"),
    };
    folding.make(comm, operator)?;
    scene.check(comm, call, name);
    Ok(())
}

/// A type of element whose blocks are moved.
#[derive(Clone, Copy, Debug)]
pub struct Moved {
    /// Its name.
    pub name: &'static str,
    /// Bytes of an element.
    pub element: usize,
    make: fn(&Communicator, &BlockCall, &'static str) -> Result<(), Error>,
}

impl Moved {
    /// Makes a call and checks it: [`check_moved`].
    ///
    /// # Errors
    /// That of the collective.
    pub fn make(&self, comm: &Communicator, call: &BlockCall) -> Result<(), Error> {
        (self.make)(comm, call, self.name)
    }
}

/// Elements of 0, 1, 3, 8, 24 and 300 bytes.
#[must_use]
pub fn moved() -> Vec<Moved> {
    macro_rules! types {
        ($($type:ty)+) => {
            vec![$(Moved { name: stringify!($type), element: size_of::<$type>(), make: check_moved::<$type> }),+]
        };
    }
    types!(u8 u64 [u8; 3] [u64; 3] [[u8; 3]; 100] [u8; 0])
}
