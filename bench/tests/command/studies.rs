//! `bench commtest` and `bench allreduce`: their quick forms, stopped and resumed, refused, without a disk.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use phalanx_tests::library::{Library, skip};

use crate::running::{Folder, LIMIT, Running, bench, command, json, measurements, mpi, with_mpi};

/// Open MPI, if it is here: the quick forms take its launcher and one more program beside ours.
fn open_mpi() -> Option<Library> {
    mpi().filter(|library| library.name == "openmpi")
}

#[test]
fn commtest_over_shared_memory_alone() {
    let folder = Folder::new("channels");
    let out = bench(&folder, "commtest --quick --over lines,cells --name try").with(0).out;
    for word in ["COMMTEST swap of 2M each way", "64 x 32K", "channels of cells", "broadcast among two"] {
        assert!(out.contains(word), "{word} in\n{out}");
    }
    let record = folder.record();
    let results = json(&record.join("results.json"));
    let curves = results["curves"].as_array().unwrap();
    // Lines and cells, unordered and ordered.
    assert_eq!(curves.len(), 4);
    for curve in curves {
        let points = curve["points"].as_array().unwrap();
        assert_eq!(points.len(), 7);
        for point in points {
            assert_eq!(point["packets"].as_f64().unwrap() * point["bytes"].as_f64().unwrap(), 2097152.0);
            let (own, all) = (point["time"]["median"].as_f64().unwrap(), point["elapsed"]["max"].as_f64().unwrap());
            assert!(own > 0.0 && all >= own, "{point}");
        }
        assert!(curve["fit"]["residual"].as_f64().unwrap() >= 0.0);
    }
    let csv = fs::read_to_string(record.join("results.csv")).unwrap();
    assert_eq!(csv.lines().count(), 1 + 4 * 7);
    for name in ["host.txt", "study.txt", "tables.txt", "commtest.svg"] {
        assert!(record.join(name).metadata().unwrap().len() > 0, "{name}");
    }
    assert!(fs::read_to_string(record.join("study.txt")).unwrap().contains("Worley"));
}

#[test]
fn commtest_by_every_protocol_over_mpi() {
    let folder = Folder::new("mpi");
    let Some(library) = open_mpi() else { return };
    let Some(ended) = with_mpi(&folder, library, "commtest --quick --total 256K --over openmpi,cells") else { return };
    let (out, err) = (&ended.out, &ended.err);
    for word in ["IRECV IRSEND", "SENDRECV", "1.10", "0.5+", "Open MPI"] {
        assert!(out.contains(word), "{word} in\n{out}\n{err}");
    }
    let curves = json(&folder.record().join("results.json"))["curves"].as_array().unwrap().len();
    assert_eq!(curves, 37 + 2);
}

#[test]
fn commtest_on_an_emulated_cluster() {
    let folder = Folder::new("cluster");
    let Some(library) = open_mpi() else { return };
    let line = "commtest --quick --hosts 3 --total 64K --command sendrecv --protocols 0.3,1.4 --eager --over openmpi";
    let Some(ended) = with_mpi(&folder, library, line) else { return };
    let (out, err) = (&ended.out, &ended.err);
    assert!(out.contains("sendrecv of 64K") && out.contains("3 hosts x 1, links 100mbit, eager"), "{out}\n{err}");
    // All directions of a link at once against one after the other; no time is asserted, only that there are figures.
    let results = json(&folder.record().join("results.json"));
    let curves = results["curves"].as_array().unwrap();
    assert_eq!(curves.len(), 4);
    assert!(curves.iter().all(|curve| curve["achieved"][0].as_f64().unwrap() > 0.0));
}

#[test]
fn a_study_that_is_stopped_goes_on_and_loses_nothing() {
    let folder = Folder::new("stopped");
    let line = "allreduce --quick -n 2 --no-baseline --turns 3 --time-per-size 150 --to 256";
    let mut running = Running::start(&folder, command(line));
    let begin = Instant::now();
    let record = loop {
        if let Some(found) = folder.records().pop().filter(|path| measurements(path).len() > 2) {
            break found;
        }
        assert!(begin.elapsed() < LIMIT && running.child.try_wait().unwrap().is_none(), "it ended or hangs");
        std::thread::sleep(Duration::from_millis(20));
    };
    kill(Pid::from_raw(running.child.id() as i32), Signal::SIGINT).unwrap();
    let err = running.end().with(130).err;
    assert!(err.contains("--resume records/") && err.contains("--turns 3"), "{err}");
    let before = measurements(&record);
    assert!(before.len() > 2 && before.len() < 1 + 3 * 8, "{}", before.len());
    assert!(!record.join("results.json").exists());

    let resume = format!("--resume {}", record.display());
    let err = bench(&folder, &format!("{} {resume}", line.replace("256", "512"))).with(2).err;
    assert!(err.contains("the setting"), "{err}");
    let err = bench(&folder, &format!("{line} {resume}")).with(0).err;
    assert!(err.contains(&format!("{} of 24 measurements are finished already", before.len() - 1)), "{err}");
    let after = measurements(&record);
    assert_eq!((after.len(), &after[..before.len()]), (1 + 24, &before[..]));
    assert_eq!(folder.record(), record);
    assert!(record.join("results.json").exists());
}

/// The records lie on a disk of their own, of one page, which is copied before it goes.
#[test]
fn a_disk_that_is_full_costs_the_record_and_not_the_figures() {
    let folder = Folder::new("full");
    if !Command::new("unshare").args(["-rm", "true"]).status().is_ok_and(|status| status.success()) {
        return skip("PHALANX_TEST_CLUSTER", "a disk of its own takes namespaces, which are not allowed here");
    }
    let line = "allreduce --quick -n 2 --no-baseline --turns 3 --time-per-size 20";
    let script = "mkdir records kept && mount -t tmpfs -o size=4k none records || exit 99; \
        \"$0\" \"$@\"; status=$?; cp -r records/* kept && umount records && mv kept/* records && exit $status";
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", script, env!("CARGO_BIN_EXE_bench")]).args(line.split(' '));
    let ended = Running::start(&folder, command).end().with(1);
    let (out, err) = (&ended.out, &ended.err);
    assert!(err.contains("cannot write") && err.contains("measurements are kept in memory"), "{err}");
    assert!(out.contains("latency and bandwidth, 2 ranks") && out.contains("operators, 2 ranks"), "{out}");
    let record = folder.record();
    let kept = measurements(&record).len();
    assert!(kept > 1 && kept < 1 + 24, "{kept}");
    // With room again, what is missing is measured, and all is there.
    bench(&folder, &format!("{line} --resume {}", record.display())).with(0);
    assert_eq!(measurements(&record).len(), 1 + 24);
}

#[test]
fn allreduce_on_a_node_beside_an_mpi() {
    let folder = Folder::new("node");
    if open_mpi().is_none() {
        return;
    }
    let ended = bench(&folder, "allreduce --quick -n 2,3 --to 4K").with(0);
    let (out, err) = (&ended.out, &ended.err);
    for word in ["allreduce, 2 ranks", "allreduce, 3 ranks", "break-even points", "operators", "direct", "auto user"] {
        assert!(out.contains(word), "{word} in\n{out}\n{err}");
    }
    let results = json(&folder.record().join("results.json"));
    let curves = results["curves"].as_array().unwrap();
    let sums =
        curves.iter().filter(|curve| curve["operator"] == "sum" && curve["place"].as_str().unwrap().starts_with('2'));
    assert!(sums.count() >= 6);
    for curve in curves {
        assert!(
            curve["points"].as_array().unwrap().iter().all(|point| point["time"]["median"].as_f64().unwrap() > 0.0)
        );
    }
}

#[test]
fn allreduce_by_every_schedule_on_an_emulated_cluster() {
    let folder = Folder::new("schedules");
    let Some(library) = mpi() else { return };
    let line = format!("allreduce --quick --hosts 3 --slots 2 --eager --to 256 --mpi {}", library.name);
    let Some(ended) = with_mpi(&folder, library, &line) else { return };
    let (out, err) = (&ended.out, &ended.err);
    for word in ["3 hosts x 2", "native", "doubling", "circulant", "ring-all", "quickest"] {
        assert!(out.contains(word), "{word} in\n{out}\n{err}");
    }
    let results = json(&folder.record().join("results.json"));
    assert_eq!(results["curves"].as_array().unwrap().len(), 11);
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_measured() {
    let folder = Folder::new("refused");
    for (line, word) in [
        ("commtest -n 3", "multiple of 2"),
        ("commtest --distance 2", "distances are 1 to 1"),
        ("commtest --total 0", "1 is the least"),
        ("commtest --least 0", "1 is the least"),
        ("commtest --protocols 0.11", "no protocol"),
        ("commtest --over cells --hosts 2", "leave out --hosts"),
        ("commtest --over cells --protocols 0.3", "0.0 and 1.0"),
        ("commtest --hosts 1", "takes two ranks"),
        ("commtest --hosts 2 --cluster /nowhere", "/nowhere"),
        ("commtest --cycles 0-1", "--command sendrecv"),
        ("commtest --over cells --resume /nowhere", "/nowhere"),
        ("allreduce --hosts 1", "takes two ranks"),
        ("allreduce --from 8 --to 4", "--to 4"),
        ("allreduce --baseline openmpi=/nowhere", "apt-get install"),
        ("allreduce --algorithm shears", "no algorithm"),
        ("allreduce --slots 2", "--hosts"),
        ("allreduce --margin NaN", "percent"),
    ] {
        let err = bench(&folder, line).with(2).err;
        assert!(err.contains(word), "{line}: {err}");
    }
    let err = bench(&folder, "commtest --over cells --output /proc/none").with(1).err;
    assert!(err.contains("/proc/none"), "{err}");
    assert!(!folder.has_records());
}

#[test]
fn without_an_mpi_it_is_said_what_to_install() {
    let folder = Folder::new("missing");
    let mut command = command("commtest --quick");
    command.env("PATH", "/nowhere");
    let err = Running::start(&folder, command).end().with(2).err;
    assert!(err.contains("apt-get install -y --no-install-recommends openmpi-bin libopenmpi-dev"), "{err}");
    assert!(!folder.has_records());
}

#[test]
fn help_names_the_paper_and_what_differs() {
    let folder = Folder::new("help-of-studies");
    for study in ["commtest", "allreduce"] {
        let text = bench(&folder, &format!("{study} --help")).with(0).out;
        for word in ["P. H. Worley", "The paper:", "Here:", "--quick", "--resume", "--output", "--name"] {
            assert!(text.contains(word), "{word} in\n{text}");
        }
    }
}
