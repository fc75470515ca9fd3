//! How jobs end: what the launcher's status was without the library it is with it, and nobody waits for ever.

use crate::job::{Done, Job};
use crate::{each, programs};
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

/// Who waits for a rank that has freed the communicator hears of it, and can go on with others.
#[test]
fn calls_on_a_communicator_that_a_rank_has_freed_are_errors() {
    each(|library| {
        let done = Job::new(library, "ends").ranks(3).words(&["early"]).run();
        done.succeeded("ends", 3);
        assert!(done.text().contains("rank 2 has dropped this communicator"), "{}", done.text());
    });
}

/// Runs a job whose ranks end at once after their last words, until these are heard. MPICH's launcher may end before it
/// has passed them on, without the library too (a program that does nothing but make an error: 5 of 60 jobs); Open MPI
/// 4's may not understand two ranks' words that come at once ("Data unpack would read past end of buffer in file
/// show_help.c": 12 of 40 jobs without the library).
pub fn last_words(job: impl Fn() -> Job, ended: impl Fn(&Done) -> bool, heard: impl Fn(&Done) -> bool) {
    const JOBS: usize = 16;
    let mut all = String::new();
    for _ in 0..JOBS {
        let done = job().run();
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
        last_words(|| Job::new(library, "ends").words(&["fatal"]), |done| !done.ended.status.success(), heard);
    });
}

/// A program that leaves without MPI_Finalize has the status that it says.
#[test]
fn a_program_without_an_end_keeps_its_status() {
    each(|library| {
        let heard = |done: &Done| done.ended.stdout.contains("ok ends: 2 ranks, ");
        last_words(|| Job::new(library, "ends").words(&["plain"]), |done| done.ended.status.code() == Some(4), heard);
    });
}

/// Data that the MPI does not put in their places end the call with an error, and so the job.
#[test]
fn data_that_are_not_unpacked_are_an_error() {
    each(|library| {
        let job = || liar(library, "derived", "unpack");
        let heard = |done: &Done| done.text().contains("MPI_Bcast failed: MPI_Unpack on");
        last_words(job, |done| !done.ended.status.success(), heard);
    });
}

/// A rank that cannot do its part says so to the others, who would wait for it.
#[test]
fn ranks_hear_of_data_that_cannot_be_packed() {
    each(|library| {
        let done = liar(library, "refused", "pack").ranks(3).run();
        done.succeeded("refused", 3);
    });
}

/// A job whose MPI does wrong what `lie` names.
pub fn liar(library: Library, program: &str, lie: &str) -> Job {
    let preloads = vec![programs::preloaded().to_owned(), programs::folder(library).join("liar.so")];
    Job::new(library, program).preloads(preloads).variable("LIAR", lie)
}
