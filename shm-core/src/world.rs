//! How a world comes about: from a launcher, or for threads of one process.

use std::sync::{Arc, Mutex, PoisonError};

use crate::communicator::Communicator;
use crate::error::{Error, Result};
use crate::job::{Invitation, Job, JobSpec, refuse_to_be_alone};
use crate::plan::{FlatPlan, Plan};

impl Communicator {
    /// The world of this process: that of the launcher which started it, or one of a single rank. Trees are flat.
    ///
    /// # Errors
    /// `Environment` or `Segment` when what a launcher passed is damaged, `Environment` also when it was one of MPI
    /// programs, which started several processes; `AlreadyAttached` on a second call.
    pub fn world() -> Result<Self> {
        match Invitation::from_environment()? {
            Some(invitation) => invitation.accept(Arc::new(FlatPlan)),
            None => {
                refuse_to_be_alone()?;
                Job::create(&JobSpec::new(1)?)?.attach(0, Arc::new(FlatPlan))
            }
        }
    }

    /// Runs `f` on `n` ranks that are threads of this process, each with its world; returns the results by rank. Trees
    /// are flat.
    ///
    /// # Errors
    /// As [`Job::create`].
    ///
    /// # Panics
    /// When a rank panics: the others' calls return `RankFailed`, and when all have ended the panic goes on.
    pub fn threads<R: Send>(n: usize, f: impl Fn(Self) -> R + Sync) -> Result<Vec<R>> {
        Self::threads_of(&JobSpec::new(n)?, &(Arc::new(FlatPlan) as Arc<dyn Plan>), f)
    }

    /// [`threads`](Communicator::threads) for a job and a plan of one's own making.
    ///
    /// # Errors
    /// As [`Job::create`].
    ///
    /// # Panics
    /// When a rank panics.
    pub fn threads_of<R: Send>(spec: &JobSpec, plan: &Arc<dyn Plan>, f: impl Fn(Self) -> R + Sync) -> Result<Vec<R>> {
        Job::create(spec)?.threads(plan, f)
    }
}

impl Job {
    /// Runs `f` on all ranks, as [`threads_of`](Communicator::threads_of) does.
    fn threads<R: Send>(&self, plan: &Arc<dyn Plan>, f: impl Fn(Communicator) -> R + Sync) -> Result<Vec<R>> {
        let results: Vec<Mutex<Option<R>>> = (0..self.size()).map(|_| Mutex::default()).collect();
        self.each_on_its_thread(plan, &|world| {
            let rank = world.rank();
            let result = f(world);
            *results[rank].lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        })?;
        let kept = |result: Mutex<Option<R>>| result.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(results.into_iter().map(|result| kept(result).expect("every rank has ended, and none by a panic")).collect())
    }

    /// Calls `run` for each rank, on a thread of its own. All that [`threads`](Self::threads) does but for the results:
    /// it is compiled once, not for everything that is ever run.
    fn each_on_its_thread(&self, plan: &Arc<dyn Plan>, run: &(dyn Fn(Communicator) + Sync)) -> Result<()> {
        let ranks = self.size();
        let worlds = (0..ranks).map(|rank| self.attach(rank, Arc::clone(plan))).collect::<Result<Vec<_>>>()?;
        std::thread::scope(|scope| {
            let mut threads = Vec::with_capacity(ranks);
            for (rank, world) in worlds.into_iter().enumerate() {
                let thread = std::thread::Builder::new().name(format!("rank {rank}"));
                let leave = self.leave_at_end(rank);
                let thread = thread.spawn_scoped(scope, move || {
                    let _leave = leave;
                    run(world);
                });
                // Worlds of ranks that have no thread are dropped here, and so leave: nobody waits for them.
                threads.push(thread.map_err(|e| Error::system("starting the thread of a rank", e).of(rank))?);
            }
            let ended: Vec<_> = threads.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
            for result in ended {
                result.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            }
            Ok(())
        })
    }

    /// The same with flat trees, in a test.
    #[cfg(test)]
    pub(crate) fn on_threads<R: Send>(&self, f: impl Fn(Communicator) -> R + Sync) -> Vec<R> {
        self.threads(&(Arc::new(FlatPlan) as Arc<dyn Plan>), f).unwrap()
    }
}

/// Waits until another rank of a test has done something, 20 seconds at most; says whether it has.
#[cfg(test)]
pub(crate) fn comes(what: &std::sync::atomic::AtomicBool) -> bool {
    use std::sync::atomic::Ordering;
    use std::time::{Duration, Instant};

    let begun = Instant::now();
    while !what.load(Ordering::SeqCst) && begun.elapsed() < Duration::from_secs(20) {
        std::thread::yield_now();
    }
    what.load(Ordering::SeqCst)
}

#[cfg(test)]
impl JobSpec {
    /// Runs `f` on all ranks of such a job, with flat trees, in a test.
    pub(crate) fn on_threads<R: Send>(&self, f: impl Fn(Communicator) -> R + Sync) -> Vec<R> {
        Job::create(self).unwrap().on_threads(f)
    }
}
