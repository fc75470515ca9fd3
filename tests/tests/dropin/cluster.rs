//! The suite on the hosts of an emulated cluster.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use phalanx_tests::command;

use crate::stats::Stats;
use crate::{each, full, programs};
use phalanx_tests::library::{Family, Library, root, skip, target};

/// The status of `scripts/cluster/run` where namespaces are not allowed.
const FORBIDDEN: i32 = 77;
/// The variable that makes that a failure: `PHALANX_TEST_CLUSTER=required`.
const REQUIRED: &str = "PHALANX_TEST_CLUSTER";

/// Runs a program on all slots of hosts, by rules for calls between them, beneath an MPI that lies about something or
/// about nothing: what the library counted, and what was written, there and on standard error.
fn run(
    library: Library,
    (hosts, slots): (usize, usize),
    name: &str,
    words: &[&str],
    rules: &str,
    lie: Option<&str>,
) -> Option<(Stats, String)> {
    // Tests run side by side: each job has a file of its own.
    static JOBS: AtomicUsize = AtomicUsize::new(0);
    let job = JOBS.fetch_add(1, Ordering::Relaxed);
    let stats = target().join("dropin-suite").join(format!("stats-cluster-{}-{job}.csv", std::process::id()));
    let mut job = command::bare(&root().join("scripts/cluster/run"));
    job.args([
        "-q",
        "-n",
        &hosts.to_string(),
        "--slots",
        &slots.to_string(),
        "-r",
        "1gbit",
        "--mpi",
        &library.on_cluster(),
    ]);
    // The drop-in stands before the shims of the cluster. Open MPI's mapping of graphs to nodes ends such jobs, with
    // the library and without.
    let options = match library.family {
        Family::OpenMpi => {
            "--mca topo ^treematch -x LD_PRELOAD=$DROPIN:$CLUSTER_PRELOAD -x PHALANX_AFTER=1 -x PHALANX_STATS=$STATS -x PHALANX_CLUSTER=$RULES -x LIAR=$LIAR"
        }
        _ => {
            "-genv LD_PRELOAD $DROPIN:$CLUSTER_PRELOAD -genv PHALANX_AFTER 1 -genv PHALANX_STATS $STATS -genv PHALANX_CLUSTER $RULES -genv LIAR $LIAR"
        }
    };
    job.args(["--", "sh", "-c", &format!(r#"exec mpirun {options} "$@""#), "sh"]);
    job.arg(programs::folder(library).join(name)).args(words);
    let mut dropin = programs::preloaded().display().to_string();
    if lie.is_some() {
        dropin = format!("{dropin}:{}", programs::folder(library).join("liar.so").display());
    }
    job.env("DROPIN", dropin)
        .env("LIAR", lie.unwrap_or("nothing"))
        .env("STATS", &stats)
        .env("RULES", rules)
        .env("CARGO_TARGET_DIR", target())
        .env("SUITE_SECONDS", "100");
    job.current_dir(root());
    let ended = command::run(&mut job, Duration::from_secs(140));
    if ended.status.code() == Some(FORBIDDEN) {
        skip(REQUIRED, ended.stderr.trim());
        return None;
    }
    let expected = format!("ok {name}: {} ranks, ", hosts * slots);
    assert!(
        ended.status.success() && ended.stdout.contains(&expected),
        "{library:?}, {hosts} x {slots}, {name}: {ended:?}"
    );
    let text = std::fs::read_to_string(&stats).unwrap_or_else(|error| panic!("no statistics ({error}): {ended:?}"));
    let _ = std::fs::remove_file(&stats);
    let stats = Stats::from_csv(&text).unwrap_or_else(|line| panic!("{line:?} in the statistics"));
    Some((stats, ended.stderr + &text))
}

#[test]
fn programs_get_the_right_answers_on_a_cluster() {
    each(|library| {
        let mut list: Vec<(usize, usize, &str, &[&str])> =
            vec![(2, 2, "communicators", &[]), (2, 2, "isolation", &[]), (2, 1, "stress", &["3", "300", "20000"])];
        if full() {
            list.extend([(3, 2, "stress", &["4", "2000", "50000"][..]), (2, 2, "interleaved", &[])]);
            list.extend([
                (2, 2, "types", &[][..]),
                (2, 2, "operators", &[]),
                (2, 2, "derived", &[]),
                (4, 1, "basics", &[]),
            ]);
            list.extend([(2, 2, "threads", &["24"][..]), (2, 2, "churn", &["100"]), (2, 2, "errors", &[])]);
        }
        for (hosts, slots, name, words) in list {
            let Some((stats, _)) = run(library, (hosts, slots), name, words, "all:auto", None) else { return };
            assert!(stats.calls() > 0, "{library:?}, {hosts} x {slots}, {name}: {stats:?}");
        }
    });
}

/// What would take all ranks to be given back is refused: ranks free communicators when they will.
#[test]
fn windows_are_not_made() {
    each(|library| {
        let rules = "allreduce:one-sided";
        let Some((stats, said)) = run(library, (3, 1), "freed", &[], rules, None) else { return };
        assert!(stats.of("allreduce").calls > 0, "{library:?}: {stats:?}");
        assert_eq!(said.matches("not carried out one-sided").count(), 1, "{library:?}: {said}");
        assert!(!said.contains("one-sided among"), "the statistics tell what was done: {library:?}: {said}");
    });
}

/// The node of a rank that has freed a communicator tells those who wait for it elsewhere.
#[test]
fn ranks_of_other_nodes_hear_of_a_communicator_that_is_freed_early() {
    each(|library| {
        let Some((_, said)) = run(library, (2, 2), "ends", &["early"], "all:auto", None) else { return };
        assert!(said.contains("rank 3 has dropped this communicator"), "{library:?}: {said}");
    });
}

/// A rank that cannot send, a node's first one or not, says so to those of other nodes.
#[test]
fn ranks_of_other_nodes_hear_of_data_that_cannot_be_packed() {
    each(|library| {
        let _ = run(library, (2, 2), "refused", &[], "all:auto", Some("pack"));
    });
}
