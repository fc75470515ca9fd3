//! Ranks that an MPI's mpirun starts, on this machine and on the hosts of an emulated cluster: answers, the program's
//! own messages beside the collectives, failures, `phalanx tune --cluster`, and the examples.
//!
//! Each MPI that is installed is tested, or those that `PHALANX_TEST_MPIS` names (see `phalanx_tests::library`);
//! programs are built for it once (`mpi_rank`, `transport_mpi`, and the examples). What cannot be tested here says so
//! on stderr and passes, unless `PHALANX_TEST_MPI=required` or `PHALANX_TEST_CLUSTER=required`.

#![forbid(unsafe_code)]

mod examples;
mod failures;
mod job;
mod recovery;
mod transport;
mod tune;

use job::{Hosts, SWITCHES_KNOWN, run};
use phalanx_tests::library::Library;
use phalanx_tests::random::seed_of_run;

/// A cluster whose ranks are numbered host by host.
const BLOCK: Hosts = Hosts::Cluster(4, 2, "block");
/// The same, numbered round the hosts.
const ROUND: Hosts = Hosts::Cluster(4, 2, "round-robin");
const SINGLES: Hosts = Hosts::Cluster(8, 1, "block");
const UNEVEN: Hosts = Hosts::Uneven(&[3, 1, 2]);
/// As small as a cluster can be that has ranks which do not speak for their nodes.
const SMALL: Hosts = Hosts::Cluster(2, 2, "block");

/// Forced schedules, leaders and slices.
const RULES: [&str; 4] = [
    "allreduce:ring,leaders=2,slice=5000,flight=3;broadcast:scatter-ring,slice=3000;reduce:halving-nearest,slice=3000",
    "allreduce:halving-exchange-2,slice=whole;broadcast:scatter-ring-native;reduce:binomial",
    "allreduce:halving-farthest,slice=4K,flight=8;broadcast:binomial,slice=1K;reduce:halving-farthest",
    "allreduce:circulant,leaders=2,slice=20K;broadcast:scatter-ring",
];

/// A job must write a line that begins with `ok` and tells where its ranks were.
fn well(library: Library, hosts: Hosts, variables: &[(&str, &str)], words: &[&str]) {
    let Some(done) = run(library, hosts, variables, words) else { return };
    let output = done.succeeded();
    let expected = format!("ok: {} ranks on {} nodes: ", hosts.ranks(), hosts.nodes());
    assert!(output.contains(&expected), "{library:?}, {hosts:?}, {words:?}: no {expected:?} in\n{output}");
}

fn seed() -> String {
    let seed = seed_of_run();
    eprintln!("seed {seed} (PHALANX_TEST_SEED repeats it)");
    seed.to_string()
}

/// Tests every MPI of this machine.
fn each(test: impl Fn(Library)) {
    Library::all().iter().copied().filter(|library| library.is_here()).for_each(test);
}

#[test]
fn answers_on_one_host() {
    each(|library| {
        for ranks in [1, 2, 3, 4, 8] {
            well(library, Hosts::One(ranks), &[], &["types", &seed()]);
        }
    });
}

#[test]
fn answers_on_clusters() {
    each(|library| {
        for (hosts, what) in [(BLOCK, "types"), (ROUND, "sizes"), (SINGLES, "sizes"), (UNEVEN, "types")] {
            well(library, hosts, &[], &[what, &seed()]);
        }
    });
}

#[test]
fn answers_under_rules_with_the_switches_known() {
    each(|library| {
        for (rules, hosts) in RULES.into_iter().zip([BLOCK, ROUND, UNEVEN, SINGLES]) {
            well(library, hosts, &[("PHALANX_CLUSTER", rules), SWITCHES_KNOWN], &["sizes", &seed()]);
        }
    });
}

#[test]
fn answers_in_mixes_over_communicators_that_come_and_go() {
    each(|library| {
        for hosts in [Hosts::One(4), BLOCK, UNEVEN] {
            well(library, hosts, &[], &["mix", &seed(), "400", "100000"]);
        }
    });
}

#[test]
fn communicators_leave_nothing_behind() {
    each(|library| {
        for hosts in [Hosts::One(4), SMALL] {
            well(library, hosts, &[], &["churn", "30"]);
        }
    });
}

#[test]
fn messages_of_the_program_move_on_inside_of_collectives() {
    each(|library| {
        for hosts in [Hosts::One(3), SMALL] {
            well(library, hosts, &[], &["progress", "1048576"]);
        }
        well(library, Hosts::Uneven(&[2, 1]), &[], &["progress", "8388608"]);
    });
}

#[test]
fn receives_of_anything_get_nothing_of_ours() {
    each(|library| {
        for hosts in [Hosts::One(4), SMALL] {
            well(library, hosts, &[], &["isolation"]);
        }
    });
}

#[test]
#[ignore = "takes 6 GiB and minutes"]
fn answers_to_long_messages() {
    each(|library| well(library, Hosts::Cluster(2, 1, "block"), &[], &["long"]));
}

#[test]
#[ignore = "takes 15 GiB and a minute"]
fn answers_to_more_elements_than_an_int_counts() {
    each(|library| well(library, Hosts::Cluster(2, 1, "block"), &[], &["octets"]));
}
