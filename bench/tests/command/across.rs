//! `bench across`: a small cluster, a tiny plan, all of it.

use std::fs;

use crate::running::{Folder, bench, json, mpi, with_mpi};

#[test]
fn a_small_cluster_is_measured_and_recorded() {
    let Some(library) = mpi() else { return };
    let folder = Folder::new("small");
    let line = format!(
        "across --hosts 2 --slots 2 --per-switch 1 --mpi {} --eager --sizes 1K,64K --calls 2 --series ours --series native \
         --series flat --rules two=allreduce:ring,leaders=2,slice=16K,flight=3 --name try --timeout 120",
        library.name
    );
    let Some(ended) = with_mpi(&folder, library, &line) else { return };
    let (out, err) = (&ended.out, &ended.err);
    for word in ["allreduce of 4 ranks on 2 nodes", "x native", "trunk/n", "measured by streams", "ring among 4 nodes"]
    {
        assert!(out.contains(word), "{word} in\n{out}\n{err}");
    }
    let record = folder.record();
    let read = |name: &str| fs::read_to_string(record.join(name)).unwrap();
    let csv = read("results.csv");
    assert_eq!(csv.lines().count(), 1 + 2 * 4, "{csv}");
    let results = json(&record.join("results.json"));
    let cases = results["runs"][0]["measured"]["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 8);
    for case in cases.iter().filter(|case| case["bytes"] == 65536) {
        assert!(case["seconds"].as_array().unwrap().iter().all(|time| time.as_f64().unwrap() > 0.0));
        // Two hosts exchange at least the vector; what is counted is what the schedule sends, and headers.
        let links = case["carried"].as_array().unwrap();
        let up = links.iter().find(|link| link["link"] == "n0").unwrap()["up"].as_f64().unwrap();
        assert!(up >= 65536.0, "{case}");
        if let Some(expected) = case["expected"]["host"].as_u64() {
            let ratio = up / expected as f64;
            assert!((0.99..1.2).contains(&ratio), "{ratio} in {case}");
        }
    }
    for name in ["host.txt", "tables.txt", "across.svg"] {
        assert!(!read(name).is_empty(), "{name}");
    }
    assert!(read("host.txt").contains("commit"));
}

#[test]
fn without_namespaces_it_says_that_it_was_skipped() {
    let folder = Folder::new("skipped");
    let script = folder.script("echo 'cluster: skipped: namespaces are not allowed' >&2\nexit 77");
    let ended = bench(&folder, &format!("across --cluster {script} --program /bin/true")).with(0);
    assert!(ended.err.contains("skipped: cluster: skipped: namespaces"), "{}", ended.err);
    assert!(!folder.has_records());
}

#[test]
fn without_mpi_a_rank_says_how_to_build_one() {
    if cfg!(feature = "mpi") {
        return;
    }
    let err = bench(&Folder::new("rank"), "across-rank").with(2).err;
    assert!(err.contains("--features mpi") && err.contains("MPICC"), "{err}");
}
