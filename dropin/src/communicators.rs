//! Which communicator a handle stands for.
//!
//! Every communicator of MPI on which a collective is called gets a [`Group`], as an attribute (MPI 4.1, section 7.7),
//! which MPI gives back when it frees the communicator. Each thread remembers the last few handles that it has seen.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};

use hier::HierComm;
use mpi::ffi;

use crate::abi::{self, Word, refusing};
use crate::stats::{Reason, Stats};
use crate::what::What;
use crate::{freeing, life, making};

/// A communicator of MPI, as far as Phalanx has to do with it.
///
/// The ranks of a communicator call its collectives in the same order (MPI 4.1, section 6.14), and one thread at a time
/// does: so what is decided by the number of a call is decided alike on all ranks, and cells will do.
pub struct Group {
    /// The handle by which it was found first.
    handle: Word,
    pub ranks: usize,
    /// This rank.
    pub rank: usize,
    /// Collectives that were called, while that counts.
    calls: Cell<u32>,
    state: Cell<State>,
    /// Set once, when `state` becomes [`State::Ours`]. Elsewhere, since it takes 7 KiB, and programs make many
    /// communicators that never come so far.
    comm: OnceLock<Box<HierComm>>,
    pub stats: Mutex<Stats>,
}

#[derive(Clone, Copy)]
enum State {
    Counting,
    HandedOn(Reason),
    Ours,
}

// SAFETY: cells and communicator are used by one thread at a time, by MPI's rule above; the registry below only moves
// the statistics and, when MPI ends, the whole.
unsafe impl Sync for Group {}

/// The groups that live, by address; and what was counted in those that do not.
#[derive(Default)]
struct Registry {
    groups: HashSet<usize>,
    /// The groups, by the handles by which they were found first; of several, since MPI did not tell of the end of some, the
    /// last.
    by_handle: HashMap<Word, usize>,
    /// Handles of communicators that were freed by ways that this library does not see, as a tool's: some call on one may
    /// come after its group was taken away, and nobody tells when it is over. What is found by such a handle is not
    /// remembered.
    doubtful: HashSet<Word>,
    stats: Stats,
    /// Communicators across nodes that wait to be dropped where MPI may be called.
    retired: Vec<Box<HierComm>>,
}

static REGISTRY: LazyLock<Mutex<Registry>> = LazyLock::new(Mutex::default);
static KEY: OnceLock<c_int> = OnceLock::new();

/// Handles that a thread remembers, each at the place that its bits give it: row, column and world of a grid find room.
const REMEMBERED: usize = 8;

/// Counts frees, by place: what a thread remembers there is good as long as there was none.
static FREED: [AtomicU64; REMEMBERED] = [const { AtomicU64::new(1) }; REMEMBERED];

#[derive(Clone, Copy)]
struct Memory {
    handle: Word,
    freed: u64,
    group: *const Group,
}

thread_local! {
    static MEMORY: [Cell<Memory>; REMEMBERED] =
        const { [const { Cell::new(Memory { handle: 0, freed: 0, group: std::ptr::null() }) }; REMEMBERED] };
}

fn registry() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where a thread remembers a handle.
#[inline(always)]
fn place_of(handle: Word) -> usize {
    (handle.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 61) % REMEMBERED
}

/// Makes ready. MPI is initialised.
pub fn begin() -> Option<()> {
    let key = abi::comm_keyval(forget)?;
    KEY.get_or_init(|| key);
    Some(())
}

/// The group of a communicator, for a call of one of its collectives; nothing if the library is to refuse the handle.
#[inline]
pub fn find(comm: Word) -> Option<&'static Group> {
    let handle = abi::handle(comm);
    let place = place_of(handle);
    let freed = FREED[place].load(Ordering::Acquire);
    MEMORY.with(|memory| {
        let known = memory[place].get();
        if known.handle == handle && known.freed == freed {
            // SAFETY: a group that lives, since nothing of its place was freed after it was remembered.
            return unsafe { known.group.as_ref() };
        }
        find_slowly(comm, &memory[place], freed)
    })
}

/// Finds it with the communicator itself, and remembers it there, as of so many frees.
#[cold]
#[inline(never)]
fn find_slowly(comm: Word, remembered: &Cell<Memory>, freed: u64) -> Option<&'static Group> {
    let group = ask(comm)?;
    // Its end is told to the place of its own handle.
    let handle = abi::handle(comm);
    if group.handle == handle && !registry().doubtful.contains(&handle) {
        remembered.set(Memory { handle, freed, group });
    }
    Some(group)
}

/// The group that was left with a communicator, or a new one.
fn ask(comm: Word) -> Option<&'static Group> {
    if abi::is_no_comm(comm) || freeing::is_under_way(abi::handle(comm)) {
        return None;
    }
    let found = match left_with(comm)? {
        Some(group) => group,
        None => leave(comm, Box::new(Group::new(comm)?)).ok()?,
    };
    // SAFETY: a group that was left with the communicator lives until that is freed.
    unsafe { found.as_ref() }
}

/// What was left with a communicator; nothing if the library refuses it.
fn left_with(comm: Word) -> Option<Option<*mut Group>> {
    let key = *KEY.get()?;
    const UNTOLD: c_int = -1;
    let (mut found, mut flag) = (std::ptr::null_mut::<Group>(), UNTOLD);
    // SAFETY: the caller's communicator; the library refuses one that is none.
    let code = unsafe { refusing::PMPI_Comm_get_attr(abi::comm(comm), key, (&raw mut found).cast(), &mut flag) };
    // MPICH 5 returns success of what it has refused where a user's error handler was told.
    if code != abi::SUCCESS || flag == UNTOLD {
        return None;
    }
    Some((flag != 0).then_some(found))
}

/// Leaves a group with a communicator of MPI's.
///
/// # Errors
/// The group, which MPI would not take.
fn leave(comm: Word, group: Box<Group>) -> Result<*mut Group, Box<Group>> {
    let Some(&key) = KEY.get() else { return Err(group) };
    let handle = group.handle;
    let group = Box::into_raw(group);
    // SAFETY: the communicator is valid; `forget` takes the group back.
    let code = unsafe { ffi::PMPI_Comm_set_attr(abi::comm(comm), key, group.cast()) };
    if code != abi::SUCCESS {
        // SAFETY: nobody else has it.
        return Err(unsafe { Box::from_raw(group) });
    }
    let mut registry = registry();
    registry.groups.insert(group as usize);
    registry.by_handle.insert(handle, group as usize);
    Ok(group)
}

/// A group that was taken away from its communicator.
pub struct Taken(Box<Group>);

/// Takes away the group of a communicator that MPI is about to free, by its handle: nothing if it has none.
pub fn take(comm: Word) -> Option<Taken> {
    let key = *KEY.get()?;
    let handle = abi::handle(comm);
    // MPI is not asked of handles that are unknown here: it would call an error handler for one that is none. What is
    // known of a doubtful one may be of a communicator that has gone.
    let (known, is_doubtful) = {
        let registry = registry();
        (*registry.by_handle.get(&handle)?, registry.doubtful.contains(&handle))
    };
    let group = if is_doubtful { left_with(comm)?? as usize } else { known };
    {
        let mut registry = registry();
        registry.by_handle.remove(&handle);
        // `forget`, which MPI calls now, finds nothing.
        registry.groups.remove(&group).then_some(())?;
    }
    // SAFETY: it was made by a box, and was in the list until now.
    let group = unsafe { Box::from_raw(group as *mut Group) };
    // SAFETY: a group lives as long as its communicator, so that the handle is one's.
    let _ = unsafe { ffi::PMPI_Comm_delete_attr(abi::comm(comm), key) };
    Some(Taken(group))
}

/// Gives a group back to its communicator, which MPI has not freed.
pub fn restore(comm: Word, group: Taken) {
    if let Err(group) = leave(comm, group.0) {
        give_up(Taken(group));
    }
}

/// Drops a group whose communicator has gone.
pub fn give_up(group: Taken) {
    registry().retire(*group.0);
}

/// Has all threads forget what they remember of a handle.
pub fn forget_handle(handle: Word) {
    FREED[place_of(handle)].fetch_add(1, Ordering::AcqRel);
}

/// Notes that the communicator of a handle has gone: one of the same handle is another one.
pub fn is_over(handle: Word) {
    registry().doubtful.remove(&handle);
}

/// Says of a communicator that it is left to the library, whatever is called.
pub fn leave_alone(comm: Word, reason: Reason) {
    if let Some(group) = find(comm) {
        group.state.set(State::HandedOn(reason));
    }
}

/// # Safety
/// MPI calls it with the group that was left with a communicator.
unsafe extern "C" fn forget(_: ffi::MPI_Comm, _: c_int, group: *mut c_void, _: *mut c_void) -> c_int {
    let group = group.cast::<Group>();
    let mut registry = registry();
    // Otherwise `end` has taken it.
    if registry.groups.remove(&(group as usize)) {
        // SAFETY: by contract.
        let handle = unsafe { (*group).handle };
        if registry.by_handle.get(&handle) == Some(&(group as usize)) {
            registry.by_handle.remove(&handle);
        }
        // Else it is forgotten already.
        if !freeing::is_under_way(handle) {
            forget_handle(handle);
            registry.doubtful.insert(handle);
        }
        // SAFETY: by contract, and nobody remembers it any more.
        let group = unsafe { Box::from_raw(group) };
        registry.retire(*group);
    }
    abi::SUCCESS
}

impl Registry {
    fn retire(&mut self, group: Group) {
        self.stats.add(&group.stats.into_inner().unwrap_or_else(PoisonError::into_inner));
        match group.comm.into_inner() {
            // Its end takes calls of MPI, which must not be made while MPI frees a communicator. Who waits for this rank
            // hears of it now.
            Some(comm) if comm.single_node().is_none() => {
                comm.drop_out();
                self.retired.push(comm);
            }
            comm => drop(comm),
        }
    }
}

/// Drops what waits to be dropped. Not within one of MPI's own calls.
pub fn sweep() {
    let retired = std::mem::take(&mut registry().retired);
    drop(retired);
}

/// Drops all, before MPI ends, and returns what was counted.
pub fn end() -> Stats {
    for freed in &FREED {
        freed.fetch_add(1, Ordering::AcqRel);
    }
    let mut registry = registry();
    registry.by_handle.clear();
    for group in std::mem::take(&mut registry.groups) {
        // SAFETY: it was made by a box, and `forget` will not find it in the list.
        let group = unsafe { Box::from_raw(group as *mut Group) };
        registry.retire(*group);
    }
    let stats = std::mem::take(&mut registry.stats);
    drop(registry);
    sweep();
    stats
}

impl Group {
    /// A communicator that is seen for the first time.
    fn new(comm: Word) -> Option<Self> {
        let (mut is_inter, mut ranks, mut rank) = (0, 0, 0);
        // SAFETY: a communicator that the library has just accepted.
        let code = unsafe { ffi::PMPI_Comm_test_inter(abi::comm(comm), &mut is_inter) };
        if code != abi::SUCCESS {
            return None;
        }
        // SAFETY: the same.
        let code = unsafe { ffi::PMPI_Comm_size(abi::comm(comm), &mut ranks) };
        if code != abi::SUCCESS {
            return None;
        }
        // SAFETY: the same.
        let code = unsafe { ffi::PMPI_Comm_rank(abi::comm(comm), &mut rank) };
        if code != abi::SUCCESS {
            return None;
        }
        let state = match ranks {
            _ if is_inter != 0 => State::HandedOn(Reason::Intercommunicator),
            1 => State::HandedOn(Reason::Alone),
            _ => State::Counting,
        };
        let stats = Mutex::default();
        Some(Self {
            handle: abi::handle(comm),
            ranks: ranks as usize,
            rank: rank as usize,
            calls: Cell::new(0),
            state: Cell::new(state),
            comm: OnceLock::new(),
            stats,
        })
    }

    /// Begins a call of a collective: the communicator that carries it out, or why the library does.
    ///
    /// # Errors
    /// The reason.
    #[inline]
    pub fn enter(&self, comm: Word, what: What) -> Result<&HierComm, Reason> {
        match self.state.get() {
            State::Ours => {}
            State::HandedOn(reason) => return Err(reason),
            State::Counting => self.count(comm)?,
        }
        if life::settings().is_disabled(what) {
            return Err(Reason::Disabled);
        }
        self.comm.get().map(|comm| &**comm).ok_or(Reason::NoRoom)
    }

    /// Counts a call; when it is time, all ranks make the communicator, before they do what was called.
    #[cold]
    fn count(&self, comm: Word) -> Result<(), Reason> {
        self.calls.set(self.calls.get() + 1);
        // The world's lives as long as the job: it pays whenever it is used at all.
        if self.calls.get() < life::after() && abi::handle(comm) != abi::world() {
            return Err(Reason::Young);
        }
        self.make(comm)
    }

    /// Makes the communicator now. Collective over its ranks.
    pub fn make(&self, comm: Word) -> Result<(), Reason> {
        if !matches!(self.state.get(), State::Counting) {
            return Ok(());
        }
        // Asked no sooner: programs make many communicators that never come so far.
        if making::is_foreign(comm) {
            self.state.set(State::HandedOn(Reason::Foreign));
            return Err(Reason::Foreign);
        }
        sweep();
        match making::make(comm, self.ranks) {
            Some(made) => {
                self.comm.get_or_init(|| made);
                self.state.set(State::Ours);
                Ok(())
            }
            None => {
                self.state.set(State::HandedOn(Reason::NoRoom));
                Err(Reason::NoRoom)
            }
        }
    }
}
