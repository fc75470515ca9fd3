//! Unmodified MPI programs with the drop-in library preloaded: the suite in `tests/dropin`, in C, C++ and Fortran,
//! whose programs know what every answer must be; how jobs end; tools and modules; settings.
//!
//! Each MPI that is installed is tested, or those that `PHALANX_TEST_MPIS` names. Programs are compiled by that MPI's
//! own compiler, and the library is built by `scripts/dropin`, or is that of the folder that `PHALANX_TEST_DROPIN`
//! names. A run that the library had no part in is no test: what it counted (`PHALANX_STATS`) is looked at after each.
//!
//! `PHALANX_TEST_FULL=1` runs all programs at 1, 2, 3, 4 and 8 ranks, each one without the library too, which shows
//! that the suite asks for nothing that the MPI does not give. Otherwise a part is run that takes under a minute for
//! both MPIs.

#![forbid(unsafe_code)]

mod cluster;
mod endings;
mod job;
mod others;
mod programs;
mod real;
mod settings;
mod stats;

use job::Job;
use phalanx_tests::library::{self, Family, Library};
use programs::Program;

/// Whether all is to be run.
fn full() -> bool {
    std::env::var("PHALANX_TEST_FULL").is_ok_and(|value| value == "1")
}

/// Tests every MPI of this machine.
fn each(test: impl Fn(Library)) {
    Library::all().iter().copied().filter(|library| library.is_here()).for_each(test);
}

/// The numbers of ranks at which a program is run. Of MPICH's, ranks that wait for one another by the library's own
/// calls take turns of milliseconds when they outnumber cores.
fn sizes(library: Library) -> &'static [usize] {
    match library.family {
        _ if full() => &[1, 2, 3, 4, 8],
        Family::OpenMpi => &[3],
        _ => &[2],
    }
}

/// Runs a program as it is under the library, and looks at what it says and at what was taken over.
fn well(library: Library, ranks: usize, program: &Program) {
    let done = Job::new(library, program.name).ranks(ranks).words(program.words).run();
    done.succeeded(program.name, ranks);
    if ranks > 1 {
        program.check_share(&done);
    }
}

/// Runs the entries of a name under each MPI.
fn suite(name: &str) {
    each(|library| {
        for program in programs::C.iter().filter(|program| program.name == name) {
            for &ranks in sizes(library).iter().filter(|&&ranks| ranks >= program.least) {
                well(library, ranks, program);
            }
        }
    });
}

macro_rules! tests {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            super::suite(stringify!($name));
        })*

        #[test]
        fn every_program_has_a_test() {
            let tests = [$(stringify!($name)),*];
            let missing = crate::programs::C.iter().find(|program| !tests.contains(&program.name));
            assert!(missing.is_none(), "{missing:?}");
        }
    };
}

/// The programs in C, each a test of its own.
mod answers {
    tests! {
        basics types communicators churn operators derived gaps aligned start nonfinite errors intercommunicators interleaved nonblocking
        onesided isolation threads allocated attributes dying large others family profiled sessions ends
    }
}

#[test]
fn programs_in_fortran_get_the_right_answers() {
    each(|library| {
        for program in programs::FORTRAN {
            if !programs::speaks_fortran(library) {
                library::skip(
                    "PHALANX_TEST_MPI",
                    &format!("no Fortran compiler of {}: apt-get install gfortran", library.name),
                );
                return;
            }
            sizes(library).iter().for_each(|&ranks| well(library, ranks, program));
        }
    });
}

/// Some programs, linked with MPI 5's standard ABI.
#[test]
fn programs_of_the_standard_abi_get_the_right_answers() {
    let Some(library) = Library::with_standard_abi() else {
        library::skip(
            "PHALANX_TEST_ABI",
            "no MPICH 5, which has the standard ABI, is in target/peers: scripts/peers mpich5",
        );
        return;
    };
    for program in programs::C.iter().filter(|program| programs::ABI.contains(&program.name)) {
        well(library, 2, program);
    }
}

/// The suite asks for nothing that the library beneath does not give.
#[test]
fn programs_get_the_right_answers_without_the_library() {
    if !full() {
        return;
    }
    each(|library| {
        for program in programs::C {
            for ranks in [1, 2] {
                if ranks >= program.least {
                    Job::new(library, program.name)
                        .native()
                        .ranks(ranks)
                        .words(program.words)
                        .run()
                        .succeeded(program.name, ranks);
                }
            }
        }
    });
}

/// Communicators are taken over in the midst of calls; the world's is with its first.
#[test]
fn communicators_change_over_while_they_are_used() {
    each(|library| {
        for (name, words, after) in [("stress", &["11", "600", "100000"][..], "7"), ("communicators", &[], "3")] {
            let done = Job::new(library, name).ranks(2).words(words).variable("PHALANX_AFTER", after).run();
            done.succeeded(name, 2);
            let stats = done.stats();
            assert!(stats.calls() > 0 && stats.handed() > 0, "{library:?}, {name}, after {after}: {stats:?}");
        }
    });
}

/// Single elements of more bytes than an int counts. It takes 9 GiB of memory, and half a minute for each MPI.
#[test]
fn long_elements_arrive_whole() {
    if !full() {
        return;
    }
    each(|library| {
        let done = Job::new(library, "large").words(&["element"]).run();
        done.succeeded("large", 2);
        assert!(done.stats().of("bcast").calls >= 4 && done.stats().of("gatherv").calls > 0, "{:?}", done.stats());
    });
}

/// A seed that nobody knows beforehand; the program prints it.
#[test]
fn random_calls_get_the_right_answers() {
    let seed = phalanx_tests::random::seed_of_run().to_string();
    eprintln!("seed {seed} (PHALANX_TEST_SEED repeats it)");
    each(|library| {
        let calls = if full() { "20000" } else { "1500" };
        for &ranks in sizes(library) {
            let done = Job::new(library, "stress").ranks(ranks).words(&[&seed, calls, "200000"]).run();
            done.succeeded("stress", ranks);
        }
    });
}
