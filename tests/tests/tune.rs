//! `phalanx tune`: a tiny run writes a table that a job takes, and one that is interrupted loses no finished
//! measurement.

#![forbid(unsafe_code)]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use hier::table::{Asked, Fingerprint, Table};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use phalanx_tests::phalanx_command;
use phalanx_tests::watchdog::watchdog;

const LIMIT: Duration = Duration::from_secs(300);

fn tune(effort: &str, output: &std::path::Path) -> Command {
    let mut command = Command::new(phalanx_command());
    command.args(["tune", "--explain", "--ranks", "2,3", "--effort", effort, "--output"]).arg(output);
    command
}

#[test]
fn a_table_is_measured_and_taken() {
    watchdog(LIMIT, || {
        let folder = std::env::temp_dir().join(format!("phalanx-tune-{}", std::process::id()));
        let output = folder.join("new").join("table.toml");
        let ended = tune("tiny", &output).output().unwrap();
        let words = String::from_utf8_lossy(&ended.stdout).into_owned() + &String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{words}");
        for word in ["allreduce on 3 ranks", "in rank order", "<- ", "=> from 0", "PHALANX_TABLE="] {
            assert!(words.contains(word), "{word}: {words}");
        }
        let found = Asked::from_value(output.to_str()).find(Fingerprint::of_this_machine).unwrap();
        let (table, _) = found.table.unwrap();
        assert!(table.rules.iter().any(|rule| rule.is_strict()));
        // They are for jobs of the kind that was measured.
        for ranks in [2, 3] {
            let crowd = hier::launch::crowd(ranks).unwrap();
            let found: Vec<_> = table.rules.iter().filter(|rule| *rule.ranks().end() == ranks as u32).collect();
            assert!(found.len() >= 3);
            for rule in found {
                assert!(rule.crowd().contains(&crowd) && rule.crowd().contains(&1) != rule.crowd().contains(&2));
            }
        }
        assert_eq!(Table::from_toml(&table.to_toml()).unwrap().rules, table.rules);
        let left: Vec<_> =
            output.parent().unwrap().read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["table.toml"], "nothing but the table is left");
        let run = Command::new(phalanx_command())
            .args(["run", "-n", "2", "--", "true"])
            .env("PHALANX_TABLE", &output)
            .output()
            .unwrap();
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        std::fs::remove_dir_all(&folder).unwrap();
    });
}

#[test]
fn what_was_measured_across_nodes_stays() {
    const NETWORK: &str = "# Across nodes; taken on so many nodes with so many ranks each. Rows as in PHALANX_CLUSTER.\n\
        [network]\nnodes = 2\nranks_a_node = 2\nshift = { latency_us = 5.0, us_per_kib = 1.0 }\n\
        exchange = { latency_us = 5.0, us_per_kib = 1.5 }\n\n[[network.rules]]\ncollective = \"allreduce\"\nladder = [\n\
        \x20 { from = 0, take = \"ring\" },  # 8: ring 3.1 us\n]\n";
    watchdog(LIMIT, || {
        let output = std::env::temp_dir().join(format!("phalanx-tune-network-{}.toml", std::process::id()));
        let here = Fingerprint::of_this_machine();
        for (machine, stays) in [(here.clone(), true), (Fingerprint { cores: here.cores + 1, ..here }, false)] {
            std::fs::write(&output, format!("{}\n{NETWORK}", Table::new(machine).to_toml().trim_end())).unwrap();
            let ended = tune("tiny", &output).output().unwrap();
            assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
            let text = std::fs::read_to_string(&output).unwrap();
            assert_eq!(text.ends_with(NETWORK), stays, "{text}");
            let table = Table::from_toml(&text).unwrap();
            assert!(table.network.is_some() == stays && table.rules.len() >= 4, "{text}");
        }
        std::fs::remove_file(&output).unwrap();
    });
}

#[test]
fn what_cannot_become_a_table_is_refused_before_anything_is_measured() {
    watchdog(LIMIT, || {
        let folder = std::env::temp_dir().join(format!("phalanx-tune-refused-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let output = folder.join("table.toml");
        let refused = |command: &mut Command, word: &str| {
            let ended = command.output().unwrap();
            let words = String::from_utf8_lossy(&ended.stderr).into_owned();
            assert!(ended.status.code() == Some(2) && words.contains(word), "{word}: {words}");
        };
        let many: Vec<String> = (2..22).map(|ranks: usize| ranks.to_string()).collect();
        let mut command = Command::new(phalanx_command());
        refused(command.args(["tune", "--ranks", &many.join(","), "--output"]).arg(&output), " at most");
        assert_eq!(folder.read_dir().unwrap().count(), 0);
        // Measurements of another machine.
        let partial = folder.join("table.toml.tiny.partial");
        std::fs::write(&partial, "# machine: \"Other\" (cores 7)\n2 reduce 64 line\t1.5\tend\n").unwrap();
        refused(&mut tune("tiny", &output), "measurements of \"Other\"");
        assert!(std::fs::read_to_string(&partial).unwrap().contains("2 reduce 64"));
        // What a table must not be put in the place of, and by way of a link neither.
        refused(&mut tune("tiny", Path::new("/dev/null")), "is no file");
        let link = folder.join("link");
        std::os::unix::fs::symlink("/dev/null", &link).unwrap();
        refused(&mut tune("tiny", &link), "is no file");
        let nowhere = folder.join("nowhere");
        std::os::unix::fs::symlink(folder.join("not-there"), &nowhere).unwrap();
        refused(&mut tune("tiny", &nowhere), "leads nowhere");
        std::fs::remove_dir_all(&folder).unwrap();
    });
}

#[test]
fn an_interrupted_run_keeps_what_was_finished() {
    watchdog(LIMIT, || {
        let folder = std::env::temp_dir().join(format!("phalanx-tune-stopped-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let output = folder.join("table.toml");
        let partial = folder.join("table.toml.quick.partial");
        let text = || std::fs::read_to_string(&partial).unwrap_or_default();
        let lines = || text().lines().filter(|line| line.ends_with("\tend")).count();
        let child = tune("quick", &output).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        while lines() < 3 {
            std::thread::sleep(Duration::from_millis(5));
        }
        kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
        let ended = child.wait_with_output().unwrap();
        let words = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(!ended.status.success() && words.contains("goes on from there"), "{words}");
        let kept = lines();
        assert!(kept >= 3 && !output.exists());
        // Going on: what is there is not measured again.
        let child = tune("quick", &output).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        while lines() <= kept && partial.exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
        let ended = child.wait_with_output().unwrap();
        let words = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(words.contains(&format!("going on from {kept} measurements")), "{words}");
        std::fs::remove_dir_all(&folder).unwrap();
    });
}
