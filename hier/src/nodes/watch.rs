//! Watching over the ranks of a node that no launcher of ours watches over.
//!
//! Every process holds, for every other process of its node, a descriptor that becomes readable when that process ends,
//! however it ends. One thread sleeps on them all, and says in the segment who has ended. There is no chief watcher
//! whose own end would leave the others blind.
//!
//! A process that ends by `exit`, or by returning from `main`, has its ranks leave in good order on the way out, behind
//! what the program itself does there: only those who still need them hear of it. One that ends otherwise stops the job.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow};
use nix::unistd::pipe2;
use rustix::process::{PidfdFlags, getpid, pidfd_open};
use shm_core::job::{Job, Standing};

use super::error::{Error, Result};

/// How often the thread looks whether its own rank has left, and there is nobody to watch for, when it is not told.
const LOOK: u16 = 1000;

/// Keeps watch over the other processes of a node. Dropped once the rank has left its job, it ends the watch; the watch
/// of a rank that has not left goes on until it has.
#[derive(Debug, Default)]
#[must_use = "when it is dropped after the node's communicators, the watch ends at once"]
pub struct Watch {
    /// The thread hears when this is closed.
    _held: Option<OwnedFd>,
}

/// A descriptor that is readable, wherever it is sent to, once this process has ended: its pidfd, or, where the system
/// refuses that, a pipe whose other end is held until then.
pub(super) fn life() -> Result<OwnedFd> {
    match pidfd_open(getpid(), PidfdFlags::empty()) {
        Ok(life) => Ok(life),
        Err(_) => pipe_of_life(),
    }
}

fn pipe_of_life() -> Result<OwnedFd> {
    static PIPE: OnceLock<(OwnedFd, OwnedFd)> = OnceLock::new();
    let failed = Error::system("making a pipe");
    let (life, _held) = match PIPE.get() {
        Some(pipe) => pipe,
        None => {
            let pipe = pipe2(OFlag::O_CLOEXEC).map_err(&failed)?;
            PIPE.get_or_init(|| pipe)
        }
    };
    life.try_clone().map_err(|e| Error::System { what: "making a pipe", cause: e.to_string() })
}

/// Begins to watch over `others`, ranks of the job with their lives, on behalf of the rank `own`, until that has left.
pub(super) fn begin(job: Job, own: usize, others: Vec<(usize, OwnedFd)>) -> Result<Watch> {
    if others.is_empty() {
        return Ok(Watch::default());
    }
    let (word, held) = pipe2(OFlag::O_CLOEXEC).map_err(Error::system("making a pipe"))?;
    let job = Arc::new(job);
    leave_at_exit(&job, own);
    // The program's signals are for the program's own threads.
    let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK).map_err(Error::system("blocking signals"))?;
    let thread = std::thread::Builder::new().name("rank-watch".to_owned()).stack_size(128 << 10);
    let started = thread.spawn(move || watch(&job, own, others, Some(word)));
    before.thread_set_mask().map_err(Error::system("unblocking signals"))?;
    match started {
        Ok(_) => Ok(Watch { _held: Some(held) }),
        Err(error) => Err(Error::System { what: "starting a thread", cause: error.to_string() }),
    }
}

fn watch(job: &Job, own: usize, mut others: Vec<(usize, OwnedFd)>, mut word: Option<OwnedFd>) {
    while !others.is_empty() && !has_ended(job, own) {
        let fds = others.iter().map(|(_, life)| life).chain(&word);
        let mut lives: Vec<PollFd<'_>> = fds.map(|fd| PollFd::new(fd.as_fd(), PollFlags::POLLIN)).collect();
        // Interrupted or not, all are looked at; a refusal shows as no events, and is tried again later.
        if poll(&mut lives, PollTimeout::from(LOOK)).is_err() {
            std::thread::sleep(std::time::Duration::from_millis(10));
            continue;
        }
        let ended: Vec<bool> = lives.iter().map(|life| life.any().unwrap_or(true)).collect();
        drop(lives);
        let mut ended = ended.into_iter();
        others.retain(|&(rank, _)| {
            let has_ended_now = ended.next().unwrap_or(false);
            if has_ended_now && !has_ended(job, rank) {
                job.mark_ended(rank, true);
            }
            !has_ended_now
        });
        // Closed: the rank has left, or will do so untold.
        if ended.next() == Some(true) {
            word = None;
        }
    }
}

fn has_ended(job: &Job, rank: usize) -> bool {
    matches!(job.standing(rank), Standing::Left | Standing::Failed)
}

/// The ranks of this process that are to leave when it exits. Watches keep the jobs alive, not this list.
static AT_EXIT: Mutex<Vec<(Weak<Job>, usize)>> = Mutex::new(Vec::new());

/// The process whose ranks they are. A child that it forks inherits the list, and leaves nothing.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// What runs when the process ends has run by then: functions given to `atexit`, destructors of a program's static
/// objects. They may still make calls of the rank's; a function of our own given to `atexit` would come before those that
/// were given sooner.
// SAFETY: functions in this section are called without arguments that matter, once, when the process or the library ends.
#[used]
#[unsafe(link_section = ".fini_array")]
static LEAVES: extern "C" fn() = leave;

fn leave_at_exit(job: &Arc<Job>, own: usize) {
    let mut list = AT_EXIT.lock().unwrap_or_else(PoisonError::into_inner);
    list.retain(|(job, _)| job.strong_count() > 0);
    list.push((Arc::downgrade(job), own));
    PROCESS.store(std::process::id(), Ordering::Relaxed);
}

extern "C" fn leave() {
    if PROCESS.load(Ordering::Relaxed) != std::process::id() {
        return;
    }
    // Held by another thread at this moment: its rank has not taken its place yet.
    let Ok(list) = AT_EXIT.try_lock() else { return };
    for (job, own) in list.iter().filter_map(|(job, own)| Some((job.upgrade()?, *own))) {
        if job.standing(own) == Standing::Attached {
            job.mark_ended(own, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::{Duration, Instant};

    use rustix::process::Pid;
    use shm_core::job::JobSpec;
    use shm_core::{Error as NodeError, FlatPlan};

    use super::*;

    /// What the barrier of rank 0 says when the process that stands for rank 1 ends.
    fn barrier_without(life: impl Fn(&std::process::Child) -> OwnedFd) -> (NodeError, Duration) {
        let job = Job::create(&JobSpec::new(2).unwrap()).unwrap();
        let world = job.attach(0, Arc::new(FlatPlan)).unwrap();
        let _other = job.attach(1, Arc::new(FlatPlan)).unwrap();
        let mut process = Command::new("sleep").arg("60").spawn().unwrap();
        let _watch = begin(job, 0, vec![(1, life(&process))]).unwrap();
        let waits = std::thread::spawn(move || (world.barrier().unwrap_err(), Instant::now()));
        std::thread::sleep(Duration::from_millis(100));
        assert!(!waits.is_finished());
        let killed = Instant::now();
        process.kill().unwrap();
        let (error, noticed) = waits.join().unwrap();
        process.wait().unwrap();
        (error, noticed - killed)
    }

    #[test]
    fn a_process_that_is_killed_is_noticed() {
        let (error, after) =
            barrier_without(|process| pidfd_open(Pid::from_child(process), PidfdFlags::empty()).unwrap());
        assert_eq!(error, NodeError::RankFailed { rank: 1 });
        assert!(after < Duration::from_secs(1), "{after:?}");
    }

    #[test]
    fn a_life_is_not_over_before_the_process_is() {
        for life in [life().unwrap(), pipe_of_life().unwrap(), pipe_of_life().unwrap()] {
            let mut fds = [PollFd::new(life.as_fd(), PollFlags::POLLIN)];
            assert_eq!(poll(&mut fds, PollTimeout::from(20_u8)), Ok(0));
        }
    }

    #[test]
    fn the_watch_ends_when_its_own_rank_has_left() {
        let job = Job::create(&JobSpec::new(2).unwrap()).unwrap();
        let job = Arc::new(job);
        job.mark_ended(0, false);
        // Returns, although the other rank lives on.
        watch(&job, 0, vec![(1, life().unwrap())], None);
        assert_eq!(job.standing(1), Standing::Absent);
    }

    #[test]
    fn the_watch_ends_at_once_when_it_is_dropped_after_its_rank_has_left() {
        for rank_leaves_first in [true, false] {
            let job = Arc::new(Job::create(&JobSpec::new(2).unwrap()).unwrap());
            let (word, held) = pipe2(OFlag::O_CLOEXEC).unwrap();
            let guard = Watch { _held: Some(held) };
            let watched = Arc::clone(&job);
            let thread = std::thread::spawn(move || watch(&watched, 0, vec![(1, life().unwrap())], Some(word)));
            if rank_leaves_first {
                job.mark_ended(0, false);
                drop(guard);
            } else {
                drop(guard);
                std::thread::sleep(Duration::from_millis(50));
                assert!(!thread.is_finished(), "the watch of a rank that is there has ended");
                job.mark_ended(0, false);
            }
            thread.join().unwrap();
        }
    }
}
