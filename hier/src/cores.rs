//! How many cores ranks have together: counted alike for all jobs, whoever starts them.

use std::sync::OnceLock;

use topo::{Machine, Usable};

/// The machine on which this process runs, looked at once; none where hwloc does not know it.
pub(crate) fn machine() -> Option<&'static Machine> {
    static MACHINE: OnceLock<Option<Machine>> = OnceLock::new();
    MACHINE.get_or_init(|| Machine::discover().ok()).as_ref()
}

/// Cores of which a PU is usable, or as many as the quota allows if these are fewer; at least 1. On a machine that is
/// not known each PU counts for a core.
pub(crate) fn count(usable: &Usable, machine: Option<&Machine>) -> usize {
    let Some(machine) = machine else {
        let allowed = usable.quota_cores.map_or(usize::MAX, |quota| quota.ceil() as usize);
        return usable.pus.len().min(allowed).max(1);
    };
    usable.cores(machine)
}

/// Cores that the calling thread may use, and so the ranks that it starts.
///
/// # Errors
/// As of [`Usable::discover`].
pub(crate) fn usable() -> Result<usize, topo::Error> {
    Ok(count(&Usable::discover()?, machine()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_a_core_count_once() {
        let machine = Machine::synthetic("pack:2 core:2 pu:2").unwrap();
        let all = Usable::all_of(&machine);
        for (quota_cores, expected) in [(None, [4, 8]), (Some(2.5), [3, 3]), (Some(6.0), [4, 6]), (Some(0.2), [1, 1])] {
            let usable = Usable { quota_cores, ..all.clone() };
            assert_eq!([count(&usable, Some(&machine)), count(&usable, None)], expected, "{quota_cores:?}");
        }
        let siblings = Usable { pus: vec![4, 5], quota_cores: None };
        assert_eq!([count(&siblings, Some(&machine)), count(&siblings, None)], [1, 2]);
    }
}
