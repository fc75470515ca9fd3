//! Jobs that cannot go on: every rank is told why, nobody hangs, nothing is left.

use std::time::Duration;

use crate::job::{Done, Hosts, others_live, run, run_built_for, run_with};
use crate::{SMALL, each};
use phalanx_tests::library::{Family, Library};

/// A job that has failed ends within this time, on a machine that does much else.
const SOON: Duration = Duration::from_secs(25);

const THREE: Hosts = Hosts::Cluster(3, 2, "block");
/// Ranks that are alone on their nodes.
const ALONE: Hosts = Hosts::Cluster(3, 1, "block");

/// The job failed, soon, and nothing of it is left.
fn ended(done: &Done) {
    assert!(done.ended.took < SOON, "it took {:?}\n{}", done.ended.took, done.text());
    assert!(done.left.is_empty(), "left behind: {:?}\n{}", done.left, done.text());
}

#[test]
fn without_mpi_init_the_error_says_what_to_call() {
    each(|library| {
        let Some(done) = run(library, Hosts::One(1), &[], &["unready"]) else { return };
        let output = done.succeeded();
        assert!(output.contains("MPI is not initialised: call MPI_Init_thread"), "{library:?}: {output}");
    });
}

#[test]
fn another_mpis_launcher_is_recognised() {
    let pairs = Library::all().iter().flat_map(|&built| Library::all().iter().map(move |&launcher| (built, launcher)));
    for (built, launcher) in pairs.filter(|(built, launcher)| is_foreign(built.family, launcher.family)) {
        let Some(done) = run_built_for(built, launcher, Hosts::One(3), &[], &["alone"]) else { return };
        ended(&done);
        let told = done.told();
        assert_eq!(told.len(), 3, "{built:?} under {launcher:?}'s mpirun:\n{}", done.text());
        for (_, text) in told {
            assert!(text.contains("the launcher that started it is that of another MPI"), "{text}");
        }
    }
}

/// Whether the launcher of one and the library of the other do not understand each other.
pub fn is_foreign(built: Family, launcher: Family) -> bool {
    (built == Family::OpenMpi) != (launcher == Family::OpenMpi)
}

/// All ranks of a job were told something; each text has one of the words for its rank.
fn all_told(done: &Done, hosts: Hosts, words: impl Fn(usize) -> &'static [&'static str]) {
    ended(done);
    let told = done.told();
    let ranks: Vec<usize> = told.iter().map(|&(rank, _)| rank).collect();
    assert_eq!(ranks, (0..hosts.ranks()).collect::<Vec<_>>(), "not all ranks were told:\n{}", done.text());
    for (rank, text) in told {
        assert!(words(rank).iter().any(|word| text.contains(word)), "rank {rank}: {text}\n{}", done.text());
    }
}

#[test]
fn a_rank_with_buffers_of_two_lengths_ends_the_call_everywhere() {
    each(|library| {
        for culprit in [0, 3] {
            let Some(done) = run(library, THREE, &[], &["lengths", &culprit.to_string()]) else { return };
            all_told(&done, THREE, |rank| match rank == culprit {
                true => &["receive buffer: 300 elements where 299 are needed"],
                false => &["its own error says", "is gone"],
            });
        }
    });
}

#[test]
fn nodes_that_disagree_on_a_count_are_all_told() {
    each(|library| {
        // Messages of which both are short, or one is long, or all are those of another schedule.
        let doubling = ("PHALANX_CLUSTER", "allreduce:recursive-doubling,slice=whole");
        for (hosts, rules, more) in
            [(THREE, None, "1"), (ALONE, None, "1"), (ALONE, Some(doubling), "20000"), (ALONE, None, "20000")]
        {
            let Some(done) = run(library, hosts, rules.as_slice(), &["counts", more]) else { return };
            all_told(&done, hosts, |_| &["came; both must be in the same call", "its own error says", "is gone"]);
            assert!(done.text().contains("both must be in the same call with the same count"), "{}", done.text());
        }
    });
}

#[test]
fn a_rank_that_leaves_ends_the_call_everywhere() {
    const UNEVEN: Hosts = Hosts::Uneven(&[2, 1]);
    each(|library| {
        for (hosts, how, leaver) in [
            (ALONE, "panics", "1"),
            (UNEVEN, "panics", "2"),
            (UNEVEN, "panics", "0"),
            (UNEVEN, "returns", "0"),
            (SMALL, "returns", "3"),
        ] {
            let Some(done) = run(library, hosts, &[], &["leave", how, leaver]) else { return };
            all_told(&done, hosts, |_| &["has ended", "its own error says", "is gone", "panics", "returns"]);
        }
    });
}

#[test]
fn a_killed_rank_ends_the_job() {
    each(|library| {
        for (hosts, victim) in [(Hosts::One(4), 1), (THREE, 0), (THREE, 3)] {
            let Some(done) = run(library, hosts, &[], &["die", &victim.to_string()]) else { return };
            ended(&done);
            assert!(!done.ended.status.success(), "{library:?}, {hosts:?}: the job succeeded\n{}", done.text());
            let name = format!("rank {victim} ");
            let named = done.told().iter().any(|(rank, text)| *rank != victim && text.contains(&name));
            // MPICH's launcher may end the others before they can speak, and has a word of its own.
            let by_launcher = library.family != Family::OpenMpi && done.text().contains("BAD TERMINATION");
            assert!(named || by_launcher, "{library:?}, {hosts:?}: nobody names rank {victim}\n{}", done.text());
        }
    });
}

#[test]
fn a_rank_that_ends_at_any_moment_ends_the_job() {
    // The first while communicators are made, the last in the midst of calls; a whole job each.
    let ends = [("kill", 0, 0), ("exit", 1, 20_000), ("abort", 2, 100_000), ("kill", 3, 250_000)];
    each(|library| {
        for (hosts, ends) in [(Hosts::One(4), &ends[..]), (SMALL, &ends[1..3]), (ALONE, &ends[2..3])] {
            for (how, victim, after) in ends {
                let (rank, after) = (victim.to_string(), after.to_string());
                let (mut words, mut options) = (vec!["end", how, &rank, &after], &[][..]);
                if library.family != Family::OpenMpi && hosts.nodes() > 1 {
                    // MPI_Comm_dup waits for ever for a rank of another host that has died, and joining for a minute.
                    words.push("connected");
                    // Where a rank exits, its launcher kills the others of that host, and may let other hosts wait for
                    // them for ever, in MPI's own calls too.
                    if *how == "exit" {
                        options = others_live(library);
                    }
                }
                let Some(done) = run_with(library, library, hosts, options, &[], &words) else { return };
                ended(&done);
                let text = done.text();
                assert!(!done.ended.status.success(), "{library:?}, {words:?}: the job succeeded\n{text}");
                assert!(!text.contains("watchdog"), "{library:?}, {words:?}: a rank hung\n{text}");
                assert!(text.contains(&format!("told {victim}: ends by {how}")), "{library:?}, {words:?}:\n{text}");
            }
        }
    });
}
