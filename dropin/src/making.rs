//! Communicators of Phalanx for those of MPI: made by their members alone, in a collective call where all of them are
//! anyway.

use std::ffi::c_int;
use std::sync::{Mutex, OnceLock, PoisonError};

use hier::HierComm;
use hier::across::Opening;
use hier::transport::Transport;
use hier::transport::mpi::{MpiTransport, QuietTransport};
use mpi::ffi;

use crate::abi::{self, Word};
use crate::gains::Beneath;
use crate::life;

/// A communicator of all ranks, on which nothing is called: it has the nodes' segments, of which all others take their
/// parts.
static KEEPER: Mutex<Option<HierComm>> = Mutex::new(None);

/// A duplicate of MPI_COMM_WORLD on which nobody sends: to look for messages there lets those of the program move.
static SILENT: OnceLock<Word> = OnceLock::new();

/// Makes what communicators of one node look at while they wait. Collective over MPI_COMM_WORLD.
pub fn make_silent() -> Option<()> {
    let mut silent = abi::comm(abi::world());
    let is_made = if life::settings().beneath == Beneath::Mpich {
        // SAFETY: a constant that is filled before main.
        let mut request = unsafe { ffi::RSMPI_REQUEST_NULL };
        // SAFETY: MPI is running; the new communicator's place stays until the call has ended.
        let code = unsafe { ffi::PMPI_Comm_idup(abi::comm(abi::world()), &mut silent, &mut request) };
        life::finish(code, &mut request)
    } else {
        // SAFETY: MPI is running.
        (unsafe { ffi::PMPI_Comm_dup(abi::comm(abi::world()), &mut silent) }) == abi::SUCCESS
    };
    if !is_made {
        return None;
    }
    SILENT.get_or_init(|| abi::word_of_comm(silent));
    Some(())
}

/// Gives it back, when all communicators have gone.
pub fn free_silent() {
    if let Some(&silent) = SILENT.get() {
        let mut silent = abi::comm(silent);
        // SAFETY: made above, freed once, when nobody looks at it any more.
        let _ = unsafe { ffi::PMPI_Comm_free(&mut silent) };
    }
}

/// Runs `f` on the keeper, if there is one. No calls of MPI within: another thread may wait for the keeper, and another
/// rank for it.
pub fn with_keeper<R>(f: impl FnOnce(&HierComm) -> R) -> Option<R> {
    KEEPER.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(f)
}

/// Sets the keeper, or takes it away.
pub fn keep(keeper: Option<HierComm>) {
    let old = std::mem::replace(&mut *KEEPER.lock().unwrap_or_else(PoisonError::into_inner), keeper);
    drop(old);
}

/// The ranks, in MPI_COMM_WORLD, of a communicator's members; nothing for one that is not in there.
fn members(comm: Word) -> Option<Vec<Option<usize>>> {
    let of = |comm: Word| {
        // SAFETY: a constant that is filled before main.
        let mut group = unsafe { ffi::RSMPI_GROUP_NULL };
        // SAFETY: the communicator is valid.
        let code = unsafe { ffi::PMPI_Comm_group(abi::comm(comm), &mut group) };
        (code == abi::SUCCESS).then_some(group)
    };
    let (mut inner, mut outer) = (of(comm)?, of(abi::world())?);
    let mut count = 0;
    // SAFETY: the group is valid.
    let code = unsafe { ffi::PMPI_Group_size(inner, &mut count) };
    let ranks: Vec<c_int> = (0..count).collect();
    let mut found = vec![0; ranks.len()];
    let code = if code == abi::SUCCESS {
        // SAFETY: both groups are valid, both lists have `count` ranks.
        unsafe { ffi::PMPI_Group_translate_ranks(inner, count, ranks.as_ptr(), outer, found.as_mut_ptr()) }
    } else {
        code
    };
    // SAFETY: the group is freed once.
    let _ = unsafe { ffi::PMPI_Group_free(&mut inner) };
    // SAFETY: the same.
    let _ = unsafe { ffi::PMPI_Group_free(&mut outer) };
    // MPI_UNDEFINED is negative.
    (code == abi::SUCCESS).then(|| found.into_iter().map(|rank| usize::try_from(rank).ok()).collect())
}

/// Whether a communicator has ranks that are not in this MPI_COMM_WORLD: those of a job that this one spawned, or that
/// spawned it.
pub fn is_foreign(comm: Word) -> bool {
    members(comm).is_none_or(|members| members.iter().any(Option::is_none))
}

/// Makes the communicator; nothing, on all ranks, if one of them could not. Collective over the members.
///
/// Three steps: each node's first member opens a block of the node's segment (and, between several nodes, all make a
/// duplicate for messages); all tell each other whether they could, by an allgather of the library's; all join, or none
/// does.
pub fn make(comm: Word, ranks: usize) -> Option<Box<HierComm>> {
    let members: Option<Vec<usize>> = members(comm)?.into_iter().collect();
    let opening = members.and_then(|members| with_keeper(|keeper| keeper.open_group(&members).ok()).flatten());
    let transport = opening.as_ref().and_then(|opening| transport(comm, opening, ranks));
    let word = if transport.is_some() { opening.as_ref().map_or(0, Opening::word) } else { 0 };
    let words = life::gather(comm, word, ranks);
    let (opening, transport) = (opening?, transport?);
    let words = words.filter(|words| words.iter().all(|&word| word != 0));
    with_keeper(|keeper| match words {
        Some(words) => {
            // SAFETY: all members have the same list, the communicator's, and the same words, which came by messages.
            let made = unsafe { keeper.join_group(opening, &words, transport) }.ok().map(Box::new);
            // A program's ranks free a communicator when they will, and MPI has this one dropped on each of them by
            // itself.
            made.inspect(|made| made.forgo_windows())
        }
        None => {
            // SAFETY: no member joins: all have the same words.
            unsafe { keeper.close_group(&opening) };
            None
        }
    })
    .flatten()
}

/// What moves messages between the members: where they are on one node nothing, since they have none.
fn transport(comm: Word, opening: &Opening, ranks: usize) -> Option<Box<dyn Transport>> {
    if opening.nodes() == 1 {
        let mut rank = 0;
        // SAFETY: the communicator is valid.
        let code = unsafe { ffi::PMPI_Comm_rank(abi::comm(comm), &mut rank) };
        let silent = *SILENT.get().filter(|_| code == abi::SUCCESS)?;
        // SAFETY: it is freed when all communicators have gone (`free_silent`); who calls a collective may call MPI.
        return Some(Box::new(unsafe { QuietTransport::new(rank as usize, ranks, abi::comm(silent)) }));
    }
    // SAFETY: the communicator is valid, and all its ranks are here.
    let transport = unsafe { MpiTransport::from_raw(abi::comm(comm)) }.ok()?;
    Some(Box::new(transport))
}
