//! What is said on standard error.

use std::io::Write;

/// The variables in which launchers tell a process its rank.
const RANKS: [&str; 4] = ["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"];

/// Says something once a job: on rank 0, as far as that is known before MPI says it.
pub(crate) fn remark(text: &str) {
    let rank = RANKS.iter().find_map(|name| std::env::var(name).ok());
    if rank.is_none_or(|rank| rank.trim() == "0") {
        // In the midst of a program that may have closed its standard error: a remark that cannot be written is
        // dropped.
        let _ = std::io::stderr().write_all(format!("phalanx: {text}\n").as_bytes());
    }
}
