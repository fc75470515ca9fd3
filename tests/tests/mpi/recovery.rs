//! Ranks that fail under an MPI that goes on without them (ULFM): the others are told, and go on.

use crate::each;
use crate::job::{Hosts, run_with};
use phalanx_tests::library::{Library, say_skipped};

/// Elements, each rank's node, and who fails, one after another: see `mpi_rank recover`.
const CASES: [(&str, &str, &[&str]); 9] = [
    ("5000", "found", &["kill:1"]),
    // Ranks that do and that do not speak for their nodes; short messages, and long ones that cannot be withdrawn.
    ("1", "0,0,1,1", &["kill:1"]),
    ("5000", "0,0,1,1", &["kill:2"]),
    ("300000", "0,0,1,1", &["abort:0"]),
    ("300000", "0,0,1,1", &["exit:3"]),
    // The only ranks of their nodes, one after another; two at once; a whole node.
    ("5000", "0,1,2,3", &["kill:0", "kill:3"]),
    ("1", "0,1,2", &["kill:1"]),
    ("1", "0,1,0,1,0,1", &["abort:1+4", "kill:0"]),
    ("300000", "0,0,1,1,2,2", &["kill:2+3", "exit:0", "kill:5"]),
];

/// The job has ended well, or it says that its mpirun had to be stopped after all was done: Open MPI 5.0.11 may hang in
/// MPI_Finalize after two failures, which the ranks leave out.
fn went_on(library: Library, hosts: Hosts, words: &[&str]) {
    let Some(done) = run_with(library, library, hosts, &["--with-ft", "ulfm"], &[], words) else { return };
    let text = done.text();
    assert!(text.lines().any(|line| line.starts_with("ok: ")), "{library:?}, {hosts:?}, {words:?}:\n{text}");
    assert!(done.left.is_empty(), "left behind: {:?}\n{text}", done.left);
}

/// Whether a job of it goes on without a rank that fails; says so if not.
fn goes_on(library: Library) -> bool {
    let goes_on = library.recovers();
    if !goes_on {
        say_skipped(&format!("{} ends a job when a rank fails", library.name));
    }
    goes_on
}

#[test]
fn the_others_go_on_without_ranks_that_fail() {
    each(|library| {
        if !goes_on(library) {
            return;
        }
        for (elements, nodes, ends) in CASES {
            let ranks = if nodes == "found" { 4 } else { nodes.split(',').count() };
            went_on(library, Hosts::One(ranks), &[&["recover", elements, nodes], ends].concat());
        }
    });
}

#[test]
fn the_others_go_on_without_ranks_that_fail_on_a_cluster() {
    each(|library| {
        if !goes_on(library) {
            return;
        }
        for victims in ["kill:1", "kill:0", "kill:2+3"] {
            went_on(library, Hosts::Cluster(3, 2, "block"), &["recover", "300000", "found", victims]);
        }
    });
}

#[test]
fn the_others_go_on_without_a_rank_that_exits_with_a_status() {
    // Open MPI 5.0.11 does not report it unless it looks for heartbeats; our own watch over the node does.
    let looks =
        "--with-ft ulfm --mca mpi_ft_detector true --mca mpi_ft_detector_period 0.5 --mca mpi_ft_detector_timeout 3";
    let looks: Vec<&str> = looks.split(' ').collect();
    each(|library| {
        if !goes_on(library) {
            return;
        }
        for victim in ["status:1", "status:2"] {
            let words = ["recover", "5000", "0,0,1,1", victim];
            let Some(done) = run_with(library, library, Hosts::One(4), &looks, &[], &words) else { return };
            let text = done.text();
            assert!(text.lines().any(|line| line.starts_with("ok: ")), "{victim}:\n{text}");
        }
    });
}

#[test]
fn without_it_shrink_says_what_to_do() {
    each(|library| {
        let Some(done) = run_with(library, library, Hosts::One(2), &[], &[], &["no-recovery"]) else { return };
        let output = done.succeeded();
        assert_eq!(output.matches("mpirun --with-ft ulfm").count(), 2, "{library:?}: {output}");
    });
}
