//! What the environment asks of the library.

use std::time::Duration;

use phalanx_tests::command;

use crate::endings::{last_words, liar};
use crate::job::{Done, Job};
use crate::{each, programs};

#[test]
fn collectives_are_left_alone_when_asked() {
    each(|library| {
        let done = Job::new(library, "isolation").variable("PHALANX_DISABLE", "bcast,barrier").run();
        done.succeeded("isolation", 2);
        let stats = done.stats();
        for (collective, taken) in [("bcast", false), ("barrier", false), ("reduce", true), ("allreduce", true)] {
            let calls = stats.of(collective);
            assert_eq!(calls.calls > 0, taken, "{library:?}, {collective}: {stats:?}");
            assert!(calls.calls + calls.handed > 0, "{library:?}, {collective}: {stats:?}");
        }
        Job::new(library, "isolation").variable("PHALANX_DISABLE", "all").run().succeeded("isolation", 2);
    });
}

/// What gains nothing is the library's business: some calls are, some are not, and answers stay right.
#[test]
fn calls_that_gain_nothing_are_handed_on() {
    each(|library| {
        let done = Job::new(library, "family").words(&["120", "3"]).variable("PHALANX_TAKE", "gains").run();
        done.succeeded("family", 2);
        let stats = done.stats();
        if library.family == phalanx_tests::library::Family::OpenMpi {
            assert_eq!(stats.of("gatherv").calls, 0, "{stats:?}");
            assert!(stats.of("gatherv").handed > 0, "{stats:?}");
        }
        assert!(stats.of("allgather").calls + stats.of("scan").calls > 0, "{library:?}: {stats:?}");
    });
}

/// Long vectors of elements that would be copied are among them; all ranks agree on it.
#[test]
fn elements_that_are_slow_to_fold_are_handed_on() {
    each(|library| {
        let handed = |take| {
            let done = Job::new(library, "operators").variable("PHALANX_TAKE", take).run();
            done.succeeded("operators", 2);
            let stats = done.stats();
            assert!(stats.of("allreduce").calls > 0 && stats.of("reduce").calls > 0, "{library:?}, {take}: {stats:?}");
            [stats.of("allreduce").handed, stats.of("reduce").handed]
        };
        let (all, gains) = (handed("all"), handed("gains"));
        let are_left = library.family == phalanx_tests::library::Family::OpenMpi;
        let more = [gains[0] > all[0], gains[1] > all[1]];
        assert_eq!(more, [are_left; 2], "{library:?}: {gains:?} against {all:?}");
    });
}

/// A rank that has no data may name no type where MPIs do not look at arguments.
#[test]
fn ranks_without_data_need_no_type() {
    each(|library| {
        for ranks in [2, 3] {
            let job = Job::new(library, "absent").ranks(ranks);
            let done = job.variable("OMPI_MCA_mpi_param_check", "0").variable("MPIR_CVAR_ERROR_CHECKING", "0").run();
            done.succeeded("absent", ranks);
            for collective in ["allgatherv", "alltoallv", "gatherv", "scatterv"] {
                assert!(done.stats().of(collective).handed == 0, "{library:?}, {collective}: {:?}", done.stats());
            }
        }
    });
}

/// Calls that nobody counts go past the library where they gain nothing, and those that a program wants left alone.
#[test]
fn names_lead_past_the_library_where_nothing_is_counted() {
    each(|library| {
        for (name, value) in
            [("PHALANX_TAKE", "gains"), ("PHALANX_DISABLE", "all"), ("PHALANX_DISABLE", "bcast,allgather")]
        {
            for seed in ["4", "5"] {
                let job = Job::new(library, "family").words(&["90", seed]).uncounted().variable(name, value);
                job.run().succeeded("family", 2);
            }
        }
    });
}

/// Every answer beside the library's own.
#[test]
fn answers_are_compared_when_asked() {
    each(|library| {
        for (name, words) in [
            ("stress", &["5", "300", "20000"][..]),
            ("operators", &[]),
            ("derived", &[]),
            ("family", &["120", "7"]),
            ("nonfinite", &[]),
        ] {
            let done = Job::new(library, name).words(words).variable("PHALANX_VERIFY", "1").run();
            done.succeeded(name, 2);
            assert!(done.stats().calls() > 0);
        }
    });
}

/// What is finite for the one and not for the other is told.
#[test]
fn answers_that_are_not_finite_are_compared() {
    each(|library| {
        for lie in ["nan", "finite"] {
            let job = || liar(library, "nonfinite", lie).variable("PHALANX_VERIFY", "1");
            let told = |line: &str| line.contains("PHALANX_VERIFY: rank") && line.contains("MPI_Allreduce");
            let heard = |done: &Done| done.ended.stderr.lines().any(told);
            last_words(job, |done| !done.ended.status.success(), heard);
        }
    });
}

/// Without its core the library says so once, and hands everything on.
#[test]
fn a_library_that_cannot_work_says_so_once() {
    each(|library| {
        let folder = programs::folder(library).join("front-alone");
        std::fs::create_dir_all(&folder).expect("a folder in the target folder");
        let alone = folder.join("libphalanx_mpi.so");
        std::fs::copy(programs::preloaded(), &alone).expect("a copy of the library");
        let done = Job::new(library, "isolation").preloads(vec![alone]).run();
        done.succeeded("isolation", 2);
        let said: Vec<&str> = done.ended.stderr.lines().filter(|line| line.contains("phalanx")).collect();
        assert_eq!(said.len(), 1, "{}", done.text());
        assert!(said[0].contains("PHALANX_LIBRARY_PATH"), "{}", done.text());
    });
}

/// Nothing is written to the home of who runs a job, and nothing is missed there.
#[test]
fn a_home_that_cannot_be_written_does_not_matter() {
    each(|library| {
        // The kernel refuses to make files there, to root too.
        let job =
            Job::new(library, "isolation").variable("HOME", "/proc/self").variable("XDG_CACHE_HOME", "/proc/self");
        let done = job.run();
        done.succeeded("isolation", 2);
        assert!(done.stats().calls() > 0, "{}", done.text());
        assert!(!done.ended.stderr.contains("phalanx"), "{}", done.text());
    });
}

#[test]
fn a_setting_that_is_not_understood_is_said_once() {
    let mut command = command::bare(phalanx_tests::phalanx_command());
    let help = command::run(command.args(["mpirun", "--help"]), Duration::from_secs(10)).succeeded();
    each(|library| {
        for (name, value) in [("PHALANX_DISABLE", "bcats"), ("PHALANX_AFTER", "soon")] {
            let done = Job::new(library, "isolation").ranks(2).variable(name, value).run();
            done.succeeded("isolation", 2);
            let said: Vec<&str> = done.ended.stderr.lines().filter(|line| line.contains(name)).collect();
            assert_eq!(said.len(), 1, "{}", done.text());
            assert!(said[0].contains(value), "{}", done.text());
            // The command's help has what the library takes.
            if let Some((_, names)) = said[0].split_once("is none of ") {
                let names = names.split_once(". All calls").map_or(names, |(names, _)| names);
                let missing =
                    names.split(", ").find(|name| !help.split([' ', ',', ';', '\n']).any(|word| word == *name));
                assert_eq!(missing, None, "{help}");
            }
        }
    });
}
