//! Whatever else is in a process or in front of it: programs that know no MPI, interpreters, tools.

use std::process::Command;

use crate::job::Job;
use crate::{each, programs};
use phalanx_tests::library::{Family, skip};

/// The library may be preloaded into anything, and says nothing there.
#[test]
fn programs_without_mpi_do_not_notice() {
    each(|_| {
        let commands: [&[&str]; 3] =
            [&["true"], &["sh", "-c", "echo one; ls / >/dev/null"], &["python3", "-c", "print('two')"]];
        for words in commands {
            let run = |preload: bool| {
                let mut command = Command::new(words[0]);
                command.args(&words[1..]);
                if preload {
                    command.env("LD_PRELOAD", programs::preloaded()).env("PHALANX_STATS", "1");
                }
                command.output()
            };
            let (Ok(plain), Ok(with)) = (run(false), run(true)) else { continue };
            assert_eq!(plain, with, "{words:?}");
        }
    });
}

/// A shell between the launcher and the program.
#[test]
fn a_shell_between_launcher_and_program_is_passed() {
    each(|library| {
        let line = format!("true; exec {}", programs::folder(library).join("isolation").display());
        let done = Job::new(library, "isolation").program("sh").words(&["-c", &line]).run();
        done.succeeded("isolation", 2);
        assert!(done.stats().calls() > 0);
    });
}

/// MPI as an interpreter has it: by a module that is loaded late, whose names nobody else sees.
#[test]
fn modules_that_are_loaded_late_are_served() {
    each(|library| {
        let done = Job::new(library, "plugin").run();
        done.succeeded("plugin", 2);
        assert!(done.stats().calls() > 0, "{:?}", done.stats());
    });
}

/// A profiling tool before the library sees the program's calls, each once; one behind it sees at most what is handed
/// on.
#[test]
fn tools_before_and_behind_count_their_calls() {
    each(|library| {
        let tool = programs::folder(library).join("tool.so");
        let own = programs::preloaded().to_owned();
        let counted = |preloads| {
            let done = Job::new(library, "isolation").preloads(preloads).run();
            done.succeeded("isolation", 2);
            let line = done.ended.stdout.lines().find(|line| line.starts_with("tool: "));
            let line = line.unwrap_or_else(|| panic!("the tool says nothing:\n{}", done.text()));
            let numbers = line.split([' ', ',']).filter_map(|word| word.parse::<u64>().ok());
            numbers.collect::<Vec<_>>()
        };
        let alone = counted(vec![tool.clone()]);
        let before = counted(vec![tool.clone(), own.clone()]);
        assert_eq!(alone, before, "{library:?}: the tool's counts alone, and before the library");
        let behind = counted(vec![own, tool]);
        assert_eq!(behind.len(), alone.len(), "{library:?}");
        assert!(behind.iter().zip(&alone).all(|(behind, alone)| behind <= alone), "{library:?}: {behind:?}, {alone:?}");
    });
}

/// Exceptions of a program's error handler come out of the call that was refused, whoever refused it.
#[test]
fn exceptions_of_error_handlers_reach_the_program() {
    each(|library| {
        if !programs::speaks_cpp(library) {
            skip("PHALANX_TEST_MPI", &format!("no C++ compiler of {}: apt-get install g++", library.name));
            return;
        }
        for taken in ["all", "gains"] {
            let done = Job::new(library, "throwing").variable("PHALANX_TAKE", taken).run();
            done.succeeded("throwing", 2);
            assert!(done.stats().calls() > 0, "{:?}", done.stats());
        }
    });
}

/// Worlds that are made while a job runs.
#[test]
fn spawned_worlds_are_handed_on() {
    each(|library| {
        // Debian's MPICH 4.0 spawns nobody.
        if library.family == Family::Mpich && library.name == "mpich" {
            return;
        }
        Job::new(library, "spawned").ranks(1).run().succeeded("spawned", 1);
        Job::new(library, "spawned").ranks(2).run().succeeded("spawned", 2);
    });
}

/// Jobs whose ranks may fail are left to an MPI that lets them.
#[test]
fn jobs_whose_ranks_may_fail_are_handed_on() {
    each(|library| {
        if library.recovers() {
            let done =
                Job::new(library, "revoked").uncounted().variable("OMPI_MCA_mpi_ft_enable", "true").ranks(3).run();
            done.succeeded("revoked", 3);
            assert!(done.text().contains("may fail (ULFM)"), "{}", done.text());
        }
    });
}
