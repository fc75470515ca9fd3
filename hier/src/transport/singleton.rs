//! A program that was built for one MPI and started by the launcher of another: every process believes to be alone.

/// What the launchers of MPI jobs tell their processes about the number of processes: Open MPI, then hydra (MPICH,
/// Intel MPI) and other speakers of PMI, then hydra on one machine.
const SIZES: [&str; 3] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS"];

/// A process that has one of these, and a number above 0 in it, is not alone.
const RANKS: [&str; 4] = ["OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"];

/// The variable, with its value, by which a launcher says that there is more than one process. `lookup` is the
/// environment.
///
/// Slurm's number of tasks is that of the allocation in a batch script, where a lone process is no mistake: it counts
/// only in a process of a step (`srun`).
pub(super) fn launcher_says_more(lookup: impl Fn(&str) -> Option<String>) -> Option<(&'static str, String)> {
    let number = |name| -> Option<(u64, String)> {
        let value = lookup(name)?;
        Some((value.trim().parse().ok()?, value))
    };
    let says = |name: &'static str, least: u64| {
        number(name).filter(|&(number, _)| number >= least).map(|(_, value)| (name, value))
    };
    let in_step = lookup("SLURM_STEP_ID").is_some();
    SIZES
        .into_iter()
        .find_map(|name| says(name, 2))
        .or_else(|| RANKS.into_iter().find_map(|name| says(name, 1)))
        .or_else(|| if in_step { says("SLURM_STEP_NUM_TASKS", 2).or_else(|| says("SLURM_NTASKS", 2)) } else { None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(variables: &[(&str, &str)]) -> Option<(&'static str, String)> {
        launcher_says_more(|wanted| {
            variables.iter().find(|(name, _)| *name == wanted).map(|(_, value)| (*value).to_owned())
        })
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
    }
}
