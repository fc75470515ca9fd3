//! One collective call, made and checked against the oracle: a fold in rank order, in plain Rust, over everybody's
//! contributions.

use hier::Collective;
use phalanx_oracle::operation::Operation;

use crate::folding::Folding;
use crate::known::{Key, elements, known};
use crate::sample::{Flavour, Sample, samples};
use crate::{Communicator, Error};

/// A call that all ranks of a communicator make alike.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// Which collective.
    pub what: Collective,
    /// The root of rooted ones.
    pub root: usize,
    /// Elements.
    pub len: usize,
    /// Whether one buffer is contribution and result. Ranks may differ in it.
    pub in_place: bool,
    /// Where the buffers lie. Ranks may differ in it.
    pub lying: Lying,
    /// From which the contributions follow.
    pub seed: u64,
}

impl Call {
    /// Whether ranks only look at the result: in one call of four that could be so, on all ranks alike.
    fn is_viewed(&self) -> bool {
        cfg!(not(feature = "mpi")) && self.what == Collective::Allreduce && self.seed % 4 == 1
    }
}

/// Elements before and behind a buffer that must stay as they are. Odd, so that buffers lie across lines.
const MARGIN: usize = 3;

/// Memory that a rank has for itself, or that others can reach.
enum Values<T> {
    Private(Vec<T>),
    Shared(hier::Buffer<T>),
}

/// Where a call's buffers lie. Each rank decides for itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lying {
    /// The contribution in shared memory.
    pub send: bool,
    /// The result in shared memory.
    pub recv: bool,
}

/// A buffer with margins.
pub(crate) struct Buffer<T> {
    all: Values<T>,
    margin: u64,
    flavour: Flavour,
}

impl<T: Sample> Buffer<T> {
    pub(crate) fn new(
        (comm, shared): (&Communicator, bool),
        flavour: Flavour,
        seed: u64,
        content: &[T],
    ) -> Result<Self, Error> {
        let margin = !seed;
        let mut all = samples(flavour, margin, 0, MARGIN);
        all.extend_from_slice(content);
        for place in MARGIN..2 * MARGIN {
            all.push(T::sample(flavour, margin, 0, place));
        }
        let all = if shared { Values::Shared(comm.alloc_copy(&all)?) } else { Values::Private(all) };
        Ok(Self { all, margin, flavour })
    }

    pub(crate) fn middle(&mut self) -> &mut [T] {
        let all: &mut [T] = match &mut self.all {
            Values::Private(all) => all,
            Values::Shared(all) => all,
        };
        let end = all.len() - MARGIN;
        &mut all[MARGIN..end]
    }

    /// What differs from `expected`, if anything does. Of nothing there is no element to compare.
    pub(crate) fn complaint(&self, what: &str, expected: &[T]) -> Option<String> {
        let all: &[T] = match &self.all {
            Values::Private(all) => all,
            Values::Shared(all) => all,
        };
        let end = all.len() - MARGIN;
        let edges = samples(self.flavour, self.margin, 0, 2 * MARGIN);
        if all[..MARGIN] != edges[..MARGIN] || all[end..] != edges[MARGIN..] {
            return Some(format!("{what}: something was written beside the buffer"));
        }
        difference(what, &all[MARGIN..end], expected)
    }
}

/// Which element is the first that is not as expected, if one is.
fn difference<T: Sample>(what: &str, found: &[T], expected: &[T]) -> Option<String> {
    let expected = &expected[..found.len()];
    if found == expected {
        return None;
    }
    let mut first = 0;
    while found[first] == expected[first] {
        first += 1;
    }
    let (found_there, expected_there) = (found[first], expected[first]);
    let mut wrong = 0;
    for place in first..found.len() {
        wrong += usize::from(found[place] != expected[place]);
    }
    Some(format!(
        "{what}: element {first} of {} is {found_there:?}, not {expected_there:?} ({wrong} are wrong)",
        found.len(),
    ))
}

/// Makes `call` with an operation, and checks everything that this rank can see of it against the operation's oracle.
///
/// # Errors
/// That of the collective.
///
/// # Panics
/// When an answer is wrong, a contribution was changed, or something beside a buffer was.
pub fn check<T: Sample>(comm: &Communicator, call: &Call, operation: &Operation<T>) -> Result<(), Error> {
    let Call { what, root, in_place, lying, seed, .. } = *call;
    let len = if what == Collective::Barrier { 0 } else { call.len };
    let Operation { name, flavour, operator, .. } = *operation;
    let (rank, size) = (comm.rank(), comm.size());
    let contribution = |rank: usize| (operation.samples)(flavour, seed, rank, len);
    let of = if what == Collective::Broadcast { "message" } else { "result" };
    let expected = || {
        known(Key { name, seed, size, len, of, root }, &|| match what {
            Collective::Broadcast => Box::new(contribution(root)),
            _ => Box::new(operation.fold(size, &contribution)),
        })
    };
    let viewed = call.is_viewed();
    // A view brings its own memory.
    let gets = !viewed && (what != Collective::Reduce || rank == root);
    let has_own = !in_place || !gets;

    let own = contribution(rank);
    let mut send = Buffer::new((comm, lying.send), flavour, seed, if has_own { &own } else { &[] })?;
    let before = if !gets {
        Vec::new()
    } else if in_place || (what == Collective::Broadcast && rank == root) {
        own.clone()
    } else {
        // Another call's contributions.
        samples(flavour, seed ^ 0x5bd1_e995, rank, len)
    };
    let mut recv = Buffer::new((comm, lying.recv), flavour, !seed, &before)?;
    #[cfg_attr(feature = "mpi", expect(unused_mut, reason = "there are no views across nodes"))]
    let mut viewed_wrongly = None;
    let (mine, result) = (send.middle(), recv.middle());
    match what {
        Collective::Barrier => comm.barrier()?,
        Collective::Broadcast => comm.process_at_rank(root).broadcast_into(result)?,
        Collective::Reduce if rank != root => Folding::Reduce { root, send: mine }.make(comm, operator)?,
        Collective::Reduce if in_place => Folding::ReduceAtRootInPlace(result).make(comm, operator)?,
        Collective::Reduce => Folding::ReduceAtRoot { send: mine, recv: result }.make(comm, operator)?,
        #[cfg(not(feature = "mpi"))]
        Collective::Allreduce if viewed => {
            let look = &mut |view: &[T]| {
                assert!(view.len() == len && view.as_ptr().is_aligned(), "rank {rank} of {size}: {call:?}");
                viewed_wrongly = difference("view", view, elements(&expected()));
            };
            Folding::View { send: mine, look }.make(comm, operator)?;
        }
        Collective::Allreduce if in_place => Folding::AllreduceInPlace(result).make(comm, operator)?,
        Collective::Allreduce => Folding::Allreduce { send: mine, recv: result }.make(comm, operator)?,
    }
    let expected = gets.then(expected);
    let complaint = send
        .complaint("contribution", &own)
        .or(viewed_wrongly)
        .or_else(|| recv.complaint(of, expected.as_ref().map_or(&[], elements)));
    if let Some(complaint) = complaint {
        panic!(
            "rank {rank} of {size}: {what} of {len} x {name}, root {root}, in place {in_place}, {lying:?}, seed {seed}: {complaint}"
        );
    }
    Ok(())
}
