//! Going on without ranks that have failed (MPI Forum's ULFM chapter: revoke, shrink, agree).

use std::time::Duration;

use super::communicator::HierComm;
use super::error::{Error, Result};
use super::settings::ClusterSettings;
use crate::nodes::{self, Nodes};
use crate::transport::{self, Transport};

/// How long MPI is given to notice the end of a rank of which our own watch has told: Open MPI's detector takes 10 s.
const NOTICE: Duration = Duration::from_secs(20);

impl HierComm {
    /// The ranks that MPI knows to have failed, ascending; where it tells none of that, none. Not collective.
    ///
    /// # Errors
    /// [`shm_core::Error::Busy`], from an operator that is at work in a call of this communicator.
    pub fn failed_ranks(&self) -> Result<Vec<usize>> {
        Ok(self.reach()?.transport.failed())
    }

    /// Ends this communicator on all ranks: pending and later calls return an error. For a rank that has heard of a
    /// failure elsewhere, in another communicator, while others of this one may wait for it here. Not collective; where
    /// MPI cannot go on without a rank that has failed, the other nodes hear of it as of any error.
    ///
    /// # Errors
    /// [`shm_core::Error::Busy`], from an operator that is at work in a call of this communicator: nothing has ended.
    pub fn revoke(&self) -> Result<()> {
        let failed = self.failed_ranks()?.first().copied();
        self.break_off(self.rank, failed);
        self.network().transport.revoke();
        Ok(())
    }

    /// A communicator of the ranks that live, in the same order, made as this one was, by what rank 0 said then. This
    /// one cannot be used further. Calls that others are in yet return an error, so that they can come here.
    ///
    /// When ranks fail in the midst of it the others try again, without them. What was [split](HierComm::split) from
    /// this communicator is not mended: split the new one. Keep other communicators with the failed rank's node until
    /// then, or drop them.
    ///
    /// Collective over the ranks that live.
    ///
    /// # Cost
    /// That of making a communicator, two agreements among all ranks, and the time in which MPI finds out who has
    /// failed.
    ///
    /// # Errors
    /// [`Error::Network`], with [`transport::Error::NoRecovery`]: this MPI, or its launcher, ends the job when a rank
    /// fails; with ULFM it goes on (Open MPI 5, `mpirun --with-ft ulfm`). [`Error::NotShrunk`], when a rank could not
    /// do its part for another reason than a failure: then on all ranks, some of which have the reason itself as error;
    /// and when MPI does not come to know of a rank that has ended.
    ///
    /// # References
    /// Bland, Bouteiller, Herault, Bosilca, Dongarra, "Post-failure recovery of MPI communication capability" (2013).
    /// The agreement at the end, on the node's memory too, is made here: no rank returns with a communicator that
    /// another does not have.
    pub fn shrink(&self) -> Result<Self> {
        self.reach()?.transport.ready()?;
        if !self.network().transport.recovers() {
            let (rank, library) = (self.rank, self.describe_network());
            return Err(transport::Error::NoRecovery { rank, library }.into());
        }
        self.revoke()?;
        // MPI's own shrink would wait for a rank of whose end MPI does not know.
        if let Some(lost) = self.lost.get().filter(|&lost| !self.network().is_reported(lost, NOTICE)) {
            let why = format!(
                "rank {lost} has ended, of which MPI has told nothing within {NOTICE:?}: Open MPI 5.0 does not report a process that exits \
                 with a status other than 0, unless mpirun has it look by `--mca mpi_ft_detector true`"
            );
            return Err(Error::NotShrunk { rank: self.rank, why });
        }
        let (mut council, mut ranks) = self.network().transport.shrink()?;
        loop {
            let made = self.remade(council.as_ref(), &ranks);
            if made.is_err() {
                council.revoke();
            }
            if council.agree(made.is_ok())? {
                return made;
            }
            let (next, places) = council.shrink()?;
            if next.size() == council.size() {
                let why = "another rank could not do its part; its own error says why".to_owned();
                return Err(made.err().unwrap_or(Error::NotShrunk { rank: self.rank, why }));
            }
            ranks = places.into_iter().map(|place| ranks[place]).collect();
            council = next;
        }
    }

    /// A communicator over a duplicate of `council`, whose members are `ranks` of this one.
    fn remade(&self, council: &dyn Transport, ranks: &[usize]) -> Result<Self> {
        let all: Vec<usize> = (0..council.size()).collect();
        Self::over_by(council.subset(&all)?, &self.settings_for(ranks), Some(&self.words))
    }

    /// How this communicator was made, for some of its ranks.
    pub(super) fn settings_for(&self, members: &[usize]) -> ClusterSettings {
        let mut settings = ClusterSettings::clone(&self.settings);
        let nodes::Settings { nodes, .. } = &mut settings.nodes;
        if let Nodes::Given(numbers) = nodes {
            *numbers = members.iter().filter_map(|&member| numbers.get(member).copied()).collect();
        }
        settings
    }
}
