//! How a call begins, and what an error in it ends: this communicator, on all nodes.

use std::sync::{MutexGuard, PoisonError, TryLockError};

use shm_core::Collective;

use super::alarm::Cause;
use super::communicator::HierComm;
use super::error::{Error, Result, of_node};
use super::network::Network;

/// A call that runs.
pub(super) struct Call<'a> {
    comm: &'a HierComm,
    /// Whether the thread was unwinding when the call began.
    unwinding: bool,
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() && !self.unwinding {
            self.comm.break_off(self.comm.rank, None);
        }
    }
}

impl HierComm {
    /// Begins a call, which must be held until it ends: a panic that leaves it (of a user-defined operator) ends this
    /// communicator on all nodes.
    ///
    /// # Errors
    /// When an earlier call has failed, or this rank is in the midst of one, or may not make one.
    pub(super) fn enter(&self) -> Result<Call<'_>> {
        if self.broken.get() {
            let broken = Error::Broken { rank: self.rank };
            return Err(self.lost.get().map_or(broken, |rank| self.rank_failed(rank)));
        }
        self.reach()?.transport.ready()?;
        Ok(Call { comm: self, unwinding: std::thread::panicking() })
    }

    /// Passes a part's outcome on; should it be an error, ends this communicator on all nodes.
    pub(super) fn settle<T>(&self, outcome: Result<T>) -> Result<T> {
        let error = match outcome {
            Ok(value) => return Ok(value),
            // What an operator calls in the midst of a call asks its node before anything else, and so has not begun.
            Err(error @ Error::Node(shm_core::Error::Busy { .. })) => return Err(error),
            Err(error) => error,
        };
        self.broken.set(true);
        self.node.give_up();
        let heard = self.network().alarmed();
        let failed = error.failed_rank().or(heard.and_then(|cause| cause.failed));
        let failed = failed.or_else(|| if error.is_second_hand() { self.network().hear_of_failure() } else { None });
        let heard = heard.filter(|cause| cause.rank != self.rank);
        let culprit = match error {
            Error::Node(shm_core::Error::Refused { rank }) => rank,
            Error::Node(shm_core::Error::Dropped { rank }) => {
                self.network().do_without(rank);
                rank
            }
            _ => self.rank,
        };
        self.break_off(culprit, failed);
        // What a node's ranks find out first is that their first rank went no further: that a rank has failed, or that
        // it was told to by another node, says more. It says less than this rank's own fault, of which it may come.
        Err(match (failed, heard) {
            _ if error.is_own() => error,
            (Some(rank), _) => self.rank_failed(rank),
            (None, Some(cause)) => Error::Elsewhere { rank: cause.rank },
            (None, None) => error,
        })
    }

    /// Says to the ranks of this rank's node that it makes no further call here, before the handle is dropped. Waits for
    /// nobody, and makes no call of the library below.
    pub fn drop_out(&self) {
        self.node.drop_out();
    }

    /// Makes this communicator unusable on all nodes, because this rank cannot do its part of a call that the others
    /// may be in: pending and later calls of all its ranks return an error that names this one.
    pub fn give_up(&self) {
        match self.single_node() {
            Some(node) => node.give_up(),
            None => self.break_off(self.rank, None),
        }
    }

    /// Ends this communicator on all nodes, because of a rank that cannot go on, or of one that has failed.
    pub(super) fn break_off(&self, rank: usize, failed: Option<usize>) {
        self.broken.set(true);
        self.lost.set(self.lost.get().or(failed));
        self.node.give_up();
        self.network().fail(Cause { rank, failed });
    }

    fn rank_failed(&self, rank: usize) -> Error {
        Error::RankFailed { rank, host: self.hosts.get(rank).cloned().unwrap_or_default() }
    }

    /// The outcome of a call on the node, with an error in terms of this communicator's ranks, and the end of this
    /// communicator on all nodes, should it be one.
    pub(super) fn on_node<T>(&self, outcome: shm_core::Result<T>) -> Result<T> {
        self.settle(outcome.map_err(|error| self.translated(error)))
    }

    /// Has the calls of the node, from the next one on, be parts of this call on `bytes` bytes. Two calls across nodes
    /// may be the same to a node, which would let its ranks make the one and the other, and wait for ever.
    pub(super) fn name_to_node(&self, what: Collective, root: usize, bytes: usize) -> Result<()> {
        if self.is_alone() { Ok(()) } else { self.on_node(self.node.go_on_by((what as usize, root, bytes))) }
    }

    pub(super) fn translated(&self, error: shm_core::Error) -> Error {
        let of_job = |rank: usize| self.world.get(rank).copied().flatten();
        let shm_core::Error::RankFailed { rank } = error else {
            return of_node(error, &self.placement, self.here, |rank| of_job(rank).unwrap_or(self.rank));
        };
        match of_job(rank) {
            Some(rank) => self.rank_failed(rank),
            None => Error::NodeFailed { rank: self.rank, host: self.hosts[self.rank].clone() },
        }
    }

    /// The network, for a call that an operator may make in the midst of another one.
    ///
    /// # Errors
    /// [`shm_core::Error::Busy`], there: only this rank uses it, and who finds it locked is inside of a step of the
    /// network.
    pub(super) fn reach(&self) -> Result<MutexGuard<'_, Network>> {
        match self.network.try_lock() {
            Err(TryLockError::WouldBlock) => Err(shm_core::Error::Busy { rank: self.rank }.into()),
            Err(TryLockError::Poisoned(network)) => Ok(network.into_inner()),
            Ok(network) => Ok(network),
        }
    }

    pub(super) fn network(&self) -> MutexGuard<'_, Network> {
        // A panic while it was held leaves it whole: runs are stepped through or given up.
        self.network.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
