//! A process that believes to be alone and is not: it was started by a launcher of MPI programs that it does not know,
//! or by that of another MPI than it was built for.

use crate::error::{Error, Result};

/// What the launchers of MPI jobs tell their processes about the number of processes: Open MPI, then hydra (MPICH,
/// Intel MPI) and other speakers of PMI, then hydra on one machine.
const SIZES: [&str; 3] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS"];

/// A process that has one of these, and a number above 0 in it, is not alone.
const RANKS: [&str; 4] = ["OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"];

/// The variable, with its value, by which a launcher of MPI programs says that this process is one of several.
#[doc(hidden)]
#[must_use]
pub fn launcher_says_more() -> Option<(&'static str, String)> {
    says_more(|name| std::env::var(name).ok())
}

/// Refuses a world of one rank to a process that is one of several: each would go on with data of its own, and none
/// would miss the others.
///
/// # Errors
/// [`Environment`](Error::Environment), which names the variable.
#[doc(hidden)]
pub fn refuse_to_be_alone() -> Result<()> {
    match launcher_says_more() {
        None => Ok(()),
        Some((name, value)) => Err(Error::Environment { name, value, why: WHY.to_owned() }),
    }
}

const WHY: &str = "a launcher of MPI programs started several processes, and they have no job to join: start them with \
                   `phalanx run -n N -- program`, or build the program with feature `mpi` and take its world from MPI \
                   (cluster::Communicator::from_mpi); programs that have nothing to do with each other are worlds of one \
                   rank by `phalanx run -n 1 -- program`";

/// [`launcher_says_more`] in the environment `lookup`.
///
/// Slurm's number of tasks is that of the allocation in a batch script, where a lone process is no mistake: it counts
/// only in a process of a step (`srun`).
fn says_more(lookup: impl Fn(&str) -> Option<String>) -> Option<(&'static str, String)> {
    let number = |name| -> Option<(u64, String)> {
        let value = lookup(name)?;
        Some((value.trim().parse().ok()?, value))
    };
    let says = |name: &'static str, least: u64| {
        number(name).filter(|&(number, _)| number >= least).map(|(_, value)| (name, value))
    };
    // The shell of `salloc` is a step of one task, which has the allocation's number of tasks, too.
    let in_step = || match number("SLURM_STEP_NUM_TASKS") {
        Some(_) => says("SLURM_STEP_NUM_TASKS", 2),
        None => lookup("SLURM_STEP_ID").and_then(|_| says("SLURM_NTASKS", 2)),
    };
    SIZES
        .into_iter()
        .find_map(|name| says(name, 2))
        .or_else(|| RANKS.into_iter().find_map(|name| says(name, 1)))
        .or_else(in_step)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(variables: &[(&str, &str)]) -> Option<(&'static str, String)> {
        says_more(|wanted| variables.iter().find(|(name, _)| *name == wanted).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn launchers_of_more_than_one_process_are_recognised() {
        assert_eq!(says(&[]), None);
        assert_eq!(says(&[("OMPI_COMM_WORLD_SIZE", "1"), ("OMPI_COMM_WORLD_RANK", "0")]), None);
        assert_eq!(says(&[("OMPI_COMM_WORLD_SIZE", "4")]), Some(("OMPI_COMM_WORLD_SIZE", "4".to_owned())));
        assert_eq!(says(&[("PMI_SIZE", "2"), ("PMI_RANK", "0")]), Some(("PMI_SIZE", "2".to_owned())));
        assert_eq!(says(&[("PMIX_RANK", "3")]), Some(("PMIX_RANK", "3".to_owned())));
        assert_eq!(says(&[("PMI_SIZE", "many")]), None);
        assert_eq!(says(&[("SLURM_NTASKS", "8"), ("SLURM_PROCID", "0")]), None);
        assert_eq!(says(&[("SLURM_NTASKS", "8"), ("SLURM_STEP_ID", "0")]), Some(("SLURM_NTASKS", "8".to_owned())));
        let shell = [("SLURM_NTASKS", "8"), ("SLURM_STEP_ID", "4294967290"), ("SLURM_STEP_NUM_TASKS", "1")];
        assert_eq!(says(&shell), None);
        let step = [("SLURM_STEP_ID", "0"), ("SLURM_STEP_NUM_TASKS", "4"), ("SLURM_PROCID", "0")];
        assert_eq!(says(&step), Some(("SLURM_STEP_NUM_TASKS", "4".to_owned())));
    }
}
