//! The suite on the hosts of an emulated cluster.

use std::time::Duration;

use phalanx_tests::command;

use crate::stats::Stats;
use crate::{each, full, programs};
use phalanx_tests::library::{Family, Library, root, skip, target};

/// The status of `scripts/cluster/run` where namespaces are not allowed.
const FORBIDDEN: i32 = 77;
/// The variable that makes that a failure: `PHALANX_TEST_CLUSTER=required`.
const REQUIRED: &str = "PHALANX_TEST_CLUSTER";

/// Runs a program on all slots of hosts, by rules for calls between them; what the library counted, and what was said
/// on standard error.
fn run(
    library: Library,
    hosts: usize,
    slots: usize,
    name: &str,
    words: &[&str],
    rules: &str,
) -> Option<(Stats, String)> {
    let stats = target().join("dropin-suite").join(format!("stats-cluster-{}.csv", std::process::id()));
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
            "--mca topo ^treematch -x LD_PRELOAD=$DROPIN:$CLUSTER_PRELOAD -x PHALANX_AFTER=1 -x PHALANX_STATS=$STATS -x PHALANX_CLUSTER=$RULES"
        }
        _ => {
            "-genv LD_PRELOAD $DROPIN:$CLUSTER_PRELOAD -genv PHALANX_AFTER 1 -genv PHALANX_STATS $STATS -genv PHALANX_CLUSTER $RULES"
        }
    };
    job.args(["--", "sh", "-c", &format!(r#"exec mpirun {options} "$@""#), "sh"]);
    job.arg(programs::folder(library).join(name)).args(words);
    job.env("DROPIN", programs::preloaded())
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
    Some((stats, ended.stderr))
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
            let Some((stats, _)) = run(library, hosts, slots, name, words, "all:auto") else { return };
            assert!(stats.calls() > 0, "{library:?}, {hosts} x {slots}, {name}: {stats:?}");
        }
    });
}

/// What would take all ranks to be given back is refused: ranks free communicators when they will.
#[test]
fn windows_are_not_made() {
    each(|library| {
        let rules = "allreduce:one-sided";
        let Some((stats, said)) = run(library, 3, 1, "freed", &[], rules) else { return };
        assert!(stats.of("allreduce").calls > 0, "{library:?}: {stats:?}");
        assert_eq!(said.matches("not carried out one-sided").count(), 1, "{library:?}: {said}");
    });
}
