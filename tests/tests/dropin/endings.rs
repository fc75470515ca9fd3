//! How jobs end: what the launcher's status was without the library it is with it, and nobody waits for ever.

use crate::each;
use crate::job::{Done, Job};
use phalanx_tests::library::{Family, Library};

/// MPI_Abort's code becomes the job's status, as far as the MPI makes it that.
#[test]
fn abort_gives_its_status() {
    each(|library| {
        let done = Job::new(library, "ends").ranks(3).words(&["abort"]).run();
        assert_eq!(done.ended.status.code(), Some(7), "{}", done.text());
        assert!(!done.text().contains("came out of a collective"), "{}", done.text());
    });
}

#[test]
fn a_rank_that_exits_or_dies_ends_the_job() {
    each(|library| {
        for how in ["exit", "kill"] {
            // Launchers see the ends of several ranks in any order, and may tell the status of another one.
            let mut all = String::new();
            let is_same = (0..4).any(|_| {
                let alone = Job::new(library, "ends").native().ranks(3).words(&[how]).run();
                let done = Job::new(library, "ends").ranks(3).words(&[how]).run();
                assert!(!done.ended.status.success(), "{}", done.text());
                assert!(!done.text().contains("came out of a collective"), "{}", done.text());
                assert!(!done.text().contains("has not ended in time"), "{}", done.text());
                // MPICH's launcher kills the others, and may see the end of one of these first.
                let killed = library.family != Family::OpenMpi && done.ended.status.code() == Some(9);
                all += &format!("without: {}\n{}", alone.ended.status, done.text());
                done.ended.status == alone.ended.status || killed
            });
            assert!(is_same, "{all}");
        }
    });
}

/// Runs a job whose ranks end at once after their last words, until these are heard. MPICH's launcher may end before it
/// has passed them on, without the library too (a program that does nothing but make an error: 5 of 60 jobs); Open MPI
/// 4's may not understand two ranks' words that come at once ("Data unpack would read past end of buffer in file
/// show_help.c": 12 of 40 jobs without the library).
fn last_words(library: Library, how: &str, ended: impl Fn(&Done) -> bool, heard: impl Fn(&Done) -> bool) {
    const JOBS: usize = 16;
    let mut all = String::new();
    for _ in 0..JOBS {
        let done = Job::new(library, "ends").ranks(2).words(&[how]).run();
        assert!(ended(&done), "{}", done.text());
        if heard(&done) {
            return;
        }
        all += &done.text();
    }
    panic!("not heard in {JOBS} jobs: {all}");
}

/// Errors are fatal unless the program says otherwise, and MPI says which call it was.
#[test]
fn a_wrong_root_is_fatal() {
    each(|library| {
        let said = if library.family == Family::OpenMpi { "MPI_ERR_ROOT" } else { "nvalid root" };
        let heard = |done: &Done| done.text().contains(said) && done.text().contains("MPI_Bcast");
        last_words(library, "fatal", |done| !done.ended.status.success(), heard);
    });
}

/// A program that leaves without MPI_Finalize has the status that it says.
#[test]
fn a_program_without_an_end_keeps_its_status() {
    each(|library| {
        let heard = |done: &Done| done.ended.stdout.contains("ok ends: 2 ranks, ");
        last_words(library, "plain", |done| done.ended.status.code() == Some(4), heard);
    });
}
