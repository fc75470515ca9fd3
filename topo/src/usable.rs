//! What of the machine a process may use: the affinity mask and the processor quota.

use std::fs;
use std::io;

use nix::errno::Errno;
use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;

use crate::{Error, Machine, cgroup, index_list};

/// What a process may use, which is often less than the machine has: in a container, under a batch system, in CI.
#[derive(Debug, Clone, PartialEq)]
pub struct Usable {
    /// The PUs of the affinity mask, by `os` number, increasing.
    pub pus: Vec<usize>,
    /// How many cores' worth of processor time the cgroup allows (0.5: half of one core); `None` is no limit.
    pub quota_cores: Option<f64>,
}

impl Usable {
    /// Asks the system what the calling thread may use: its affinity mask, and the tightest quota among its cgroup
    /// and those around it (`cpu.max`, or `cpu.cfs_quota_us` of the older cgroups).
    ///
    /// # Errors
    ///
    /// * [`Error::Affinity`] when the mask cannot be read.
    /// * [`Error::Quota`] when a quota file holds something else. One that is absent is no limit.
    pub fn discover() -> Result<Self, Error> {
        let quota_cores = cgroup::quota_cores(|path| fs::read_to_string(path).ok())?;
        Ok(Usable { pus: binding_of(None)?, quota_cores })
    }

    /// All of a machine, without a quota: for machines that are only described.
    pub fn all_of(machine: &Machine) -> Self {
        let mut pus: Vec<usize> = machine.pus().iter().map(|pu| pu.os).collect();
        pus.sort_unstable();
        Usable { pus, quota_cores: None }
    }

    /// How many ranks can run at the same time without getting into each other's way: the number of cores with a
    /// usable PU, or the quota rounded up if that is less; at least 1.
    pub fn cores(&self, machine: &Machine) -> usize {
        let cores = machine.usable_cores(self).len();
        let allowed = self.quota_cores.map_or(usize::MAX, |quota| quota.ceil() as usize);
        cores.min(allowed).max(1)
    }
}

/// The PUs that a process is bound to, by `os` number, increasing: its main thread's affinity mask. `None` asks for
/// the calling thread.
///
/// This is where the process *may* run, whoever bound it: no launcher's variable is believed.
///
/// # Errors
///
/// * [`Error::Affinity`] when there is no such process, or the system refuses.
#[doc(alias = "sched_getaffinity")]
pub fn binding_of(process: Option<u32>) -> Result<Vec<usize>, Error> {
    let number = process.unwrap_or(0);
    let refused = |source: io::Error| Error::Affinity { process: number, source };
    // 0 would mean the calling thread to the system, and here only `None` does.
    let pid = match process {
        None => 0,
        Some(0) => return Err(refused(Errno::ESRCH.into())),
        Some(pid) => i32::try_from(pid).map_err(|_| refused(Errno::ESRCH.into()))?,
    };
    match sched_getaffinity(Pid::from_raw(pid)) {
        Ok(mask) => Ok((0..CpuSet::count()).filter(|&pu| mask.is_set(pu) == Ok(true)).collect()),
        // More PUs than the fixed mask holds (1024). The kernel's own list has no such bound.
        Err(Errno::EINVAL) => {
            let who = process.map_or("thread-self".to_owned(), |pid| pid.to_string());
            let status = fs::read_to_string(format!("/proc/{who}/status")).map_err(refused)?;
            allowed_list(&status).ok_or_else(|| refused(Errno::EINVAL.into()))
        }
        Err(errno) => Err(refused(errno.into())),
    }
}

/// The affinity mask as `/proc/PID/status` lists it.
fn allowed_list(status: &str) -> Option<Vec<usize>> {
    index_list::parse(status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_mask_from_a_status_file() {
        let status = "Name:\tcat\nCpus_allowed:\tff\nCpus_allowed_list:\t0-2,1030\nMems_allowed_list:\t0\n";
        assert_eq!(allowed_list(status), Some(vec![0, 1, 2, 1030]));
        assert_eq!(allowed_list("Name:\tcat\n"), None);
    }

    #[test]
    fn both_sources_agree_on_this_process() {
        let Ok(status) = fs::read_to_string("/proc/thread-self/status") else {
            return;
        };
        assert_eq!(allowed_list(&status), Some(binding_of(None).unwrap()));
    }

    #[test]
    fn a_process_that_is_not_there() {
        for pid in [0, u32::MAX, i32::MAX as u32] {
            let error = binding_of(Some(pid)).unwrap_err().to_string();
            assert!(error.contains(&format!("process {pid}")), "{error}");
        }
    }
}
