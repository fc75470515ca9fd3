//! `bench reproduce` in its short form, and `bench report`.

use std::fs;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::running::{Folder, LIMIT, Running, bench, command, json, measurements, mpi, with_mpi};

/// What the record of a study holds.
fn outcome(folder: &Folder, study: &str) -> Value {
    let end = format!("-{study}");
    let record = folder.records().into_iter().find(|path| path.to_string_lossy().ends_with(&end)).unwrap();
    for name in ["host.txt", "study.txt", "tables.txt", "results.csv", "measurements.jsonl"] {
        assert!(record.join(name).metadata().unwrap().len() > 0, "{name} of {study}");
    }
    json(&record.join("results.json"))["reproduced"].clone()
}

/// The studies on the emulated cluster, then a page of their records.
#[test]
fn studies_on_the_cluster_in_their_short_form() {
    let Some(library) = mpi() else { return };
    let folder = Folder::new("cluster");
    for (study, table, findings) in
        [("ring", "block", 5), ("bcast", "native ring", 4), ("dpml", "leaders", 3), ("salar", "slices", 3)]
    {
        let line = format!("reproduce {study} --quick --mpi {}", library.name);
        let Some(ended) = with_mpi(&folder, library, &line) else { return };
        let out = ended.out;
        assert!(out.contains("beside the paper") && out.contains("short form"), "{out}");
        let outcome = outcome(&folder, &format!("reproduce-{study}-quick"));
        let tables = outcome["tables"].as_array().unwrap();
        assert!(tables.iter().any(|sheet| sheet["title"].as_str().unwrap().contains(table)), "{study}: {tables:?}");
        assert!(outcome["findings"].as_array().unwrap().len() >= findings, "{study}: {:?}", outcome["findings"]);
        for chart in outcome["charts"].as_array().unwrap() {
            for curve in chart["curves"].as_array().unwrap() {
                let points = curve["points"].as_array().unwrap();
                assert!(points.iter().all(|point| point[1].as_f64().unwrap() > 0.0), "{study}: {curve}");
            }
        }
    }
    bench(&folder, "report").with(0);
    let page = fs::read_to_string(folder.path().join("records/report.html")).unwrap();
    for word in [
        "The ring allreduce",
        "The bandwidth-saving broadcast",
        "Several leaders a node",
        "The pipeline of node and network",
    ] {
        assert!(page.contains(word), "{word}");
    }
}

/// A study that is stopped by SIGTERM keeps what is finished and goes on with it.
#[test]
fn the_study_of_a_node_is_stopped_and_goes_on() {
    let folder = Folder::new("node");
    let line = "reproduce release-gather --quick --ranks 2 --sizes 8,16K";
    let running = Running::start(&folder, command(line));
    let begin = Instant::now();
    let finished = || folder.records().first().map_or(0, |record| measurements(record).len().saturating_sub(1));
    while finished() < 2 && begin.elapsed() < LIMIT {
        std::thread::sleep(Duration::from_millis(20));
    }
    kill(Pid::from_raw(running.child.id() as i32), Signal::SIGTERM).unwrap();
    let err = running.end().with(130).err;
    assert!(err.contains("--resume"), "{err}");
    let (kept, record) = (finished(), folder.record());
    assert!(kept >= 2);

    let ended = bench(&folder, &format!("{line} --resume {}", record.display())).with(0);
    let (out, err) = (&ended.out, &ended.err);
    assert!(err.contains(&format!("{kept} of ")), "{err}");
    assert_eq!(folder.records().len(), 1);
    let outcome = outcome(&folder, "reproduce-release-gather-quick");
    assert!(outcome["findings"].as_array().unwrap().len() >= 6, "{:?}", outcome["findings"]);
    for word in ["SIMULATED reduce", "size and number of cells", "late"] {
        assert!(out.contains(word), "{word} in\n{out}");
    }
}

#[test]
fn without_namespaces_counts_and_simulations_remain() {
    let folder = Folder::new("skipped");
    let script = folder.script("echo 'cluster: skipped: namespaces are not allowed' >&2\nexit 77");
    let ended = bench(&folder, &format!("reproduce bcast --quick --cluster {script} --program /bin/true")).with(0);
    let (out, err) = (&ended.out, &ended.err);
    assert!(err.contains("skipped: the emulated cluster: namespaces are not allowed"), "{err}");
    assert!(out.contains("left out: all that needs the emulated cluster") && out.contains("16512"), "{out}");
    let out = bench(&folder, "reproduce ring --no-cluster --name counted").with(0).out;
    assert!(out.contains("left out") && out.contains("1 Gbit/s"), "{out}");
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_measured() {
    let folder = Folder::new("refused");
    let broken = folder.script("echo 'cluster: no room left' >&2\nexit 125");
    for (line, status, word) in [
        ("ring --hosts 3", 2, "4 or more"),
        ("ring --hosts 1000", 2, "250"),
        ("dpml --slots 1", 2, "2 to 8"),
        ("salar --rate fast", 2, "100mbit"),
        ("bcast --sizes 4", 2, "8 bytes"),
        ("release-gather --machine nowhere", 2, "nowhere"),
        ("ring --resume /nowhere --no-cluster", 2, "/nowhere"),
        ("ring --output /proc/none --no-cluster", 1, "/proc/none"),
        (&format!("bcast --quick --cluster {broken} --program /bin/true")[..], 1, "no room left"),
    ] {
        let err = bench(&folder, &format!("reproduce {line}")).with(status).err;
        assert!(err.contains(word), "{line}: {err}");
    }
    let err = bench(&folder, "report --records /nowhere").with(1).err;
    assert!(err.contains("/nowhere"), "{err}");
}

#[test]
fn help_names_the_paper_and_what_differs() {
    let folder = Folder::new("help-of-papers");
    for (study, author) in [
        ("ring", "Patarasuk"),
        ("bcast", "Zhou"),
        ("release-gather", "Jain"),
        ("dpml", "Bayatpour"),
        ("salar", "Bayatpour"),
    ] {
        let text = bench(&folder, &format!("reproduce {study} --help")).with(0).out;
        for word in [author, "The paper:", "Here:", "--quick", "--resume"] {
            assert!(text.contains(word), "{word} in {study}: {text}");
        }
    }
}
