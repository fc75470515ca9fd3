//! The launcher, as the command `phalanx run` shows it, over plain system programs and over ranks that take part.
//!
//! Each test has a watchdog, and ends what it started by its number.

#![forbid(unsafe_code)]

mod inherited;
mod running;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use running::{Scratch, run, start, start_by, start_with, status_of, until};

/// Bytes that look like nothing in particular.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    (0..length)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        })
        .collect()
}

#[test]
fn each_rank_sees_its_place() {
    let ended = run(&["-n", "3", "--", "sh", "-c", "echo $PHALANX_RANK of $PHALANX_SIZE"]);
    assert_eq!(ended.code(), 0, "{}", ended.stderr);
    assert_eq!(ended.lines(), ["0 of 3", "1 of 3", "2 of 3"].map(str::to_owned).into());
    assert_eq!(ended.stderr, "");
    ended.leaves_nothing();
}

#[test]
fn a_rank_inherits_the_segment_and_nothing_else() {
    let script = "for fd in /proc/$$/fd/*; do readlink $fd; done | grep -v -e pipe: -e /dev/null";
    let ended = run(&["-n", "2", "--tag", "--", "sh", "-c", script]);
    assert_eq!(
        ended.lines(),
        ["[0] /memfd:phalanx (deleted)", "[1] /memfd:phalanx (deleted)"].map(str::to_owned).into()
    );
}

/// As in a bare chroot: the program, which is there, is not said to be missing.
#[test]
fn where_there_is_no_empty_input_that_is_what_is_told() {
    let beneath = ["-rm", "sh", "-c", "mount -t tmpfs none /dev && exec \"$@\"", "sh"];
    if !Command::new("unshare").args(beneath).arg("/bin/true").output().is_ok_and(|tried| tried.status.success()) {
        return phalanx_tests::library::say_skipped("mounts of one's own (unshare -rm) are not to be had");
    }
    let command = phalanx_tests::phalanx_command();
    let mut unshare = Command::new("unshare");
    unshare.args(beneath).arg(command).args(["run", "--bind", "none", "-n", "2", "--", "/bin/true"]);
    let ended = start_by(&mut unshare, b"").end();
    assert!(ended.code() == 125 && ended.stderr.contains("opening /dev/null"), "{}: {}", ended.status, ended.stderr);
    ended.leaves_nothing();
}

#[test]
fn ranks_are_bound_to_cores_of_their_own() {
    let read = "grep Cpus_allowed_list /proc/self/status";
    let free = run(&["-n", "1", "--bind", "none", "--", "sh", "-c", read]);
    let usable: Vec<String> = free.lines().into_iter().collect();
    let bound = run(&["-n", "2", "--bind", "core", "--", "sh", "-c", read]);
    assert_eq!((free.code(), bound.code()), (0, 0), "{}{}", free.stderr, bound.stderr);
    let several = usable[0].contains([',', '-']);
    assert!(!several || (bound.lines().len() == 2 && !bound.lines().contains(&usable[0])), "{:?}", bound.lines());
}

#[test]
fn output_passes_untouched() {
    let bytes = noise(3 << 20);
    let file = Scratch::new("untouched", &bytes);
    let ended = run(&["-n", "1", "--", "cat", file.path()]);
    assert_eq!(ended.code(), 0, "{}", ended.stderr);
    assert!(ended.stdout == bytes);
}

#[test]
fn tagged_output_loses_nothing() {
    let mut bytes = noise(3 << 20);
    bytes.push(b'\n');
    let file = Scratch::new("tagged", &bytes);
    let ended = run(&["-n", "2", "--tag", "--", "cat", file.path()]);
    assert_eq!(ended.code(), 0, "{}", ended.stderr);
    for rank in 0..2 {
        let tag = format!("[{rank}] ");
        let lines = ended.stdout.split_inclusive(|&byte| byte == b'\n');
        let mine: Vec<u8> = lines.filter_map(|line| line.strip_prefix(tag.as_bytes())).flatten().copied().collect();
        assert!(mine == bytes, "rank {rank}: {} bytes of {}", mine.len(), bytes.len());
    }
}

#[test]
fn tagged_lines_stay_whole_and_streams_apart() {
    // Long lines, of which no two ranks write the same, at the same time to both streams; the last without an end.
    let script = "long=$(head -c 1000000 /dev/zero | tr '\\0' $PHALANX_RANK)
        for i in 1 2 3; do echo o$long; echo e$long >&2; for j in 1 2 3 4 5 6 7 8 9; do echo o$j; echo e$j >&2; done; done
        printf o; printf e >&2";
    let ended = run(&["-n", "4", "--tag", "--", "sh", "-c", script]);
    assert_eq!(ended.code(), 0);
    for (stream, letter) in [(String::from_utf8(ended.stdout).expect("ASCII"), "o"), (ended.stderr, "e")] {
        assert!(stream.ends_with('\n'));
        assert_eq!(stream.lines().count(), 4 * (3 * 10 + 1));
        for line in stream.lines() {
            let rank = &line[1..2];
            let text = line.strip_prefix(&format!("[{rank}] {letter}")).unwrap_or_else(|| panic!("{:.50}", line));
            let whole = text.len() <= 1 || (text.len() == 1_000_000 && text.chars().all(|c| rank.starts_with(c)));
            assert!(whole, "rank {rank}: a line of {} bytes", text.len());
        }
    }
}

#[test]
fn both_streams_into_one_place_keep_their_lines() {
    let script = "for i in 1 2 3 4 5 6 7 8; do head -c 70000 /dev/zero | tr '\\0' o; echo; head -c 70000 /dev/zero | tr '\\0' e >&2; echo >&2; done";
    let command = phalanx_tests::phalanx_command().display().to_string();
    let mut shell = Command::new("sh");
    shell.args(["-c", "exec \"$0\" run -n 3 --tag -- sh -c \"$1\" 2>&1", &command, script]);
    let ended = start_by(&mut shell, b"").end();
    let text = String::from_utf8(ended.stdout).expect("ASCII");
    assert_eq!(text.lines().count(), 3 * 16);
    for line in text.lines() {
        let letters: BTreeSet<char> = line[4..].chars().collect();
        assert!(
            line.starts_with('[') && line.len() == 70_004 && letters.len() == 1,
            "{} bytes, {letters:?}",
            line.len()
        );
    }
}

#[test]
fn rank_0_reads_the_input() {
    let bytes = noise(1 << 20);
    let ended =
        start_with(&["-n", "2", "--", "sh", "-c", "test $PHALANX_RANK = 0 && exec cat; wc -c >&2"], &bytes).end();
    assert_eq!(ended.code(), 0, "{}", ended.stderr);
    assert!(ended.stdout == bytes);
    assert_eq!(ended.stderr.trim(), "0");
}

#[test]
fn the_first_failure_is_reported_and_gives_the_status() {
    let script = "test $PHALANX_RANK = 1 && exit 7; exec sleep 50";
    let ended = run(&["-n", "3", "--grace", "0.2", "--", "sh", "-c", script]);
    assert_eq!(ended.code(), 7);
    assert!(ended.stderr.starts_with("phalanx: rank 1 (pid "), "{}", ended.stderr);
    assert!(ended.stderr.contains("exited with status 7\n"), "{}", ended.stderr);
    assert!(ended.stderr.contains("ranks 0 and 2 still run: sending SIGTERM"), "{}", ended.stderr);
    ended.leaves_nothing();
}

#[test]
fn a_signal_gives_128_and_its_number() {
    for (signal, number) in [("KILL", 9), ("SEGV", 11), ("PIPE", 13)] {
        let script = format!("test $PHALANX_RANK = 0 && kill -{signal} $$; exit 0");
        let ended = run(&["-n", "2", "--", "sh", "-c", &script]);
        assert_eq!(ended.code(), 128 + number);
        assert!(ended.stderr.contains(&format!("was killed by SIG{signal} (signal {number})")), "{}", ended.stderr);
    }
}

#[test]
fn ranks_that_ignore_sigterm_are_killed() {
    let script = "test $PHALANX_RANK = 1 && exit 3; trap '' TERM; while :; do sleep 0.05; done";
    let ended = run(&["-n", "2", "--grace", "0.3", "--", "sh", "-c", script]);
    assert_eq!(ended.code(), 3);
    assert!(ended.stderr.contains("rank 0 still runs: sending SIGKILL"), "{}", ended.stderr);
    ended.leaves_nothing();
}

#[test]
fn signals_reach_ranks_and_what_they_started() {
    for signal in ["USR1", "USR2", "TERM", "HUP", "QUIT", "INT"] {
        // The inner shell is a grandchild of the launcher. Both tell that they heard.
        let inner =
            format!("trap \"echo inner; exit 0\" {signal}; : > \"$0.$PHALANX_RANK\"; while :; do sleep 0.02; done");
        let outer = format!("trap 'echo outer' {signal}; sh -c '{inner}' \"$0\"; exit 0");
        let ready = Scratch::new(&format!("ready-{signal}"), b"");
        let job = start(&["-n", "2", "--tag", "--", "sh", "-c", &outer, ready.path()]);
        let files = [0, 1].map(|rank| PathBuf::from(format!("{}.{rank}", ready.path())));
        until("both inner shells have set their traps", || files.iter().all(|file| file.exists()));
        job.signal(signal);
        let ended = job.end();
        let heard = ["[0] inner", "[0] outer", "[1] inner", "[1] outer"].map(str::to_owned).into();
        assert_eq!(ended.lines(), heard, "{signal}: {}", ended.stderr);
        assert_eq!(ended.code(), 0, "{signal}: {}", ended.stderr);
        files.iter().for_each(|file| drop(fs::remove_file(file)));
    }
}

#[test]
fn an_interrupt_ends_the_job_with_130() {
    let job = start(&["-n", "2", "--", "sleep", "50"]);
    job.until_there_are(2, "sleep");
    job.signal("INT");
    let ended = job.end();
    assert_eq!(ended.code(), 130);
    assert_eq!(ended.stderr, "phalanx: ended by SIGINT: ranks 0 and 1 were killed by SIGINT (signal 2)\n");
    ended.leaves_nothing();
}

#[test]
fn a_second_interrupt_kills() {
    let job = start(&["-n", "2", "--grace", "20", "--", "sh", "-c", "trap '' INT TERM; while :; do sleep 0.03; done"]);
    job.until_there_are(2, "sleep");
    job.signal("INT");
    thread::sleep(Duration::from_millis(400));
    let before = Instant::now();
    job.signal("INT");
    let ended = job.end();
    assert_eq!(ended.code(), 137);
    assert!(before.elapsed() < Duration::from_secs(10));
    ended.leaves_nothing();
}

#[test]
fn a_signal_that_is_ignored_ends_in_a_kill() {
    let job = start(&["-n", "2", "--grace", "0.3", "--", "sh", "-c", "trap '' TERM; while :; do sleep 0.03; done"]);
    job.until_there_are(2, "sleep");
    job.signal("TERM");
    let ended = job.end();
    assert_eq!(ended.code(), 137);
    assert!(ended.stderr.contains("ended by SIGTERM"), "{}", ended.stderr);
    ended.leaves_nothing();
}

#[test]
fn a_job_stops_and_goes_on_with_its_launcher() {
    let job = start(&["-n", "2", "--", "sleep", "50"]);
    job.until_there_are(2, "sleep");
    let state = |letter: char| {
        let all: Vec<u32> = job.ranks().into_iter().chain([job.launcher.id()]).collect();
        all.len() == 3 && all.into_iter().all(|pid| status_of(pid, "State:").starts_with(letter))
    };
    job.signal("TSTP");
    until("all have stopped", || state('T'));
    job.signal("CONT");
    until("all go on", || state('S'));
    job.signal("TERM");
    assert_eq!(job.end().code(), 143);
}

#[test]
fn nothing_outlives_a_launcher_that_is_killed() {
    for script in
        ["exec sleep 50", "sleep 50 & sleep 50", "(sleep 50 & sleep 50) & (trap '' TERM HUP INT; sleep 50; :) & wait"]
    {
        for tag in [&["--tag"][..], &[]] {
            let job = start(&[&["-n", "3"], tag, &["--", "sh", "-c", script]].concat());
            job.until_there_are(3 * script.matches("sleep").count(), "sleep");
            job.signal("KILL");
            let ended = job.end();
            assert_eq!(ended.status.code(), None);
            ended.leaves_nothing();
        }
    }
}

#[test]
fn stopped_ranks_do_not_outlive_it_either() {
    let job = start(&["-n", "2", "--", "sh", "-c", "sleep 50 & kill -STOP $! $$"]);
    let stopped = |pid: &u32| status_of(*pid, "State:").starts_with('T');
    until("they have stopped", || job.ranks().iter().filter(|pid| stopped(pid)).count() == 4);
    job.signal("KILL");
    job.end().leaves_nothing();
}

#[test]
fn what_ended_ranks_left_behind_is_ended() {
    let before = Instant::now();
    let ended = run(&["-n", "2", "--grace", "0.2", "--", "sh", "-c", "sleep 50 & echo done"]);
    assert_eq!(ended.code(), 0, "{}", ended.stderr);
    assert!(
        ended.stderr.contains("processes that ranks 0 and 1 started are left: sending SIGTERM"),
        "{}",
        ended.stderr
    );
    assert!(before.elapsed() < Duration::from_secs(15));
    ended.leaves_nothing();
}

#[test]
fn the_tail_of_a_pipeline_ends_with_the_ranks() {
    let command = phalanx_tests::phalanx_command().display().to_string();
    for tag in ["", "--tag"] {
        let mut shell = Command::new("sh");
        shell.args(["-c", "\"$0\" run -n 2 $1 -- sh -c 'echo x' | cat", &command, tag]);
        let ended = start_by(&mut shell, b"").end();
        assert_eq!(ended.stdout.iter().filter(|&&byte| byte == b'x').count(), 2);
    }
}

#[test]
fn a_reader_that_leaves_ends_the_job() {
    let command = phalanx_tests::phalanx_command().display().to_string();
    for tag in ["", "--tag"] {
        let mut shell = Command::new("sh");
        shell.args(["-c", "\"$0\" run -n 2 $1 -- yes | head -n 3", &command, tag]);
        let ended = start_by(&mut shell, b"").end();
        assert_eq!(ended.stdout.iter().filter(|&&byte| byte == b'y').count(), 3);
        assert!(ended.stderr.contains("SIGPIPE") || ended.stderr.contains("exited with status 1"), "{}", ended.stderr);
        ended.leaves_nothing();
    }
}

/// Whatever the ranks make of it, the launcher says what was lost.
#[test]
fn tagged_output_that_cannot_be_written_is_told() {
    for (script, code) in [("echo x", &[1, 141][..]), ("printf x", &[1, 141]), ("exec >&2; sleep 0.1; exit 3", &[3])] {
        let mut command = Command::new(phalanx_tests::phalanx_command());
        command.args(["run", "-n", "2", "--tag", "--", "sh", "-c", script]);
        command.stdout(fs::OpenOptions::new().write(true).open("/dev/full").expect("a full device"));
        let ended = command.output().expect("the launcher starts");
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.code().is_some_and(|status| code.contains(&status)), "{script}: {}, {said}", ended.status);
        assert_eq!(said.contains("phalanx: cannot write: No space"), code != [3], "{script}: {said}");
    }
}

/// What is said in the midst of calls (`PHALANX_DEBUG`) does not end a rank whose standard error nobody reads any more.
#[test]
fn errors_that_nobody_reads_end_no_rank() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = Command::new(phalanx_tests::phalanx_command());
    command.args(["run", "-n", "2", "--", env!("CARGO_BIN_EXE_conformance_rank"), "mix", "1", "300", "3000"]);
    let ended = command.env("PHALANX_DEBUG", "1").stderr(writer).output().expect("the launcher starts");
    assert_eq!(ended.status.code(), Some(0), "{}", String::from_utf8_lossy(&ended.stdout));
}

#[test]
fn programs_that_do_not_start_are_one_error() {
    let plain = Scratch::new("plain", b"echo hello\n");
    let orphan = Scratch::new("orphan", b"#!/no/such/interpreter\n");
    assert!(Command::new("chmod").args(["+x", orphan.path()]).status().expect("chmod").success());
    for (program, code, word) in [
        ("no-such-program-anywhere", 127, "no such program on the PATH"),
        ("./no/such/program", 127, "no such file"),
        (orphan.path(), 127, "interpreter"),
        (plain.path(), 126, "chmod +x"),
        ("/", 126, "folder"),
    ] {
        let ended = run(&["-n", "5", "--", program]);
        assert_eq!(ended.code(), code, "{program}: {}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
        assert!(ended.stderr.contains(word), "{}", ended.stderr);
        ended.leaves_nothing();
    }
}

#[test]
fn a_wrong_command_line_is_explained() {
    for (arguments, word) in [
        (&["-n", "0", "--", "true"][..], "at least 1 rank"),
        (&["-n", "257", "--", "true"], "at most 256 ranks"),
        (&["-n", "-1", "--", "true"], "ranks"),
        (&["-n", "two", "--", "true"], "1 to 256"),
        (&["-n", "2", "--bind", "socket", "--", "true"], "core, numa, none"),
        (&["-n", "2", "--grace", "long", "--", "true"], "seconds"),
        (&["--", "true"], "--ranks"),
        (&["-n", "2"], "PROGRAM"),
    ] {
        let ended = run(arguments);
        assert_eq!(ended.code(), 2, "{arguments:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(word), "{arguments:?}: {}", ended.stderr);
    }
}

#[test]
fn too_little_memory_is_explained() {
    let command = phalanx_tests::phalanx_command().display().to_string();
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -v 150000; exec \"$0\" run -n 4 -- true", &command]);
    let ended = start_by(&mut shell, b"").end();
    assert_eq!(ended.code(), 125, "{}", ended.stderr);
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    assert!(ended.stderr.contains("could not be reserved") && ended.stderr.contains("ulimit -v"), "{}", ended.stderr);
    ended.leaves_nothing();
}

#[test]
fn as_many_ranks_as_there_can_be() {
    let ended = run(&["-n", "256", "--tag", "--", "sh", "-c", "echo $PHALANX_RANK"]);
    assert_eq!(ended.code(), 0, "{}", ended.stderr);
    assert_eq!(ended.lines(), (0..256).map(|rank| format!("[{rank}] {rank}")).collect());
    ended.leaves_nothing();
}

/// What a rank does in the tests below: this test file is started as the program of a job.
const ACT: &str = "PHALANX_TEST_ACT";

/// The program of the ranks: all but one wait for that one, which goes in the way that the variable names.
#[test]
#[ignore = "the program of other tests"]
fn as_a_rank() {
    let world = hier::Communicator::world().expect("a world");
    let act = std::env::var(ACT).unwrap_or_default();
    world.barrier().expect("all are there");
    if world.rank() == 1 && act != "stay" {
        // Late enough for the others to sleep.
        thread::sleep(Duration::from_millis(300));
        println!("gone {}", nanoseconds());
        match act.as_str() {
            "abort" => std::process::abort(),
            "exit" => std::process::exit(0),
            "fail" => std::process::exit(5),
            _ => panic!("of its own free will"),
        }
    }
    let waited = world.barrier();
    println!("back {}", nanoseconds());
    match waited {
        Ok(()) => {}
        Err(error) => {
            println!("{error}");
            std::process::exit(9);
        }
    }
}

fn nanoseconds() -> u128 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.expect("a time after 1970").as_nanos()
}

/// Runs four ranks of the program above, of which rank 1 goes in this way.
fn act(how: &str) -> running::Ended {
    let program = std::env::current_exe().expect("the path of this test").display().to_string();
    let mut command = Command::new("env");
    // No backtrace: it takes longer than all that is looked at here.
    command.args([&format!("{ACT}={how}"), "RUST_BACKTRACE=0"]).arg(phalanx_tests::phalanx_command());
    // Others that end by themselves are not made to, however slow this machine is.
    command.args(["run", "-n", "4", "--tag", "--grace", "15", "--"]);
    command.args([&program, "--exact", "as_a_rank", "--ignored", "--nocapture", "--test-threads", "1"]);
    start_by(&mut command, b"").end()
}

#[test]
fn ranks_that_end_in_good_order() {
    let ended = act("stay");
    assert_eq!((ended.code(), ended.stderr.as_str()), (0, ""));
    ended.leaves_nothing();
}

#[test]
fn the_others_hear_of_a_death_and_the_dead_rank_is_named() {
    for (how, code, said) in [
        ("abort", 134, "was killed by SIGABRT (signal 6)"),
        ("exit", 1, "exited with status 0 before it had left the job"),
        ("fail", 5, "exited with status 5"),
        ("panic", 101, "exited with status 101"),
    ] {
        let ended = act(how);
        let text = String::from_utf8_lossy(&ended.stdout).into_owned();
        assert_eq!(ended.code(), code, "{how}: {}", ended.stderr);
        let report = ended.stderr.lines().find(|line| line.starts_with("phalanx: rank ")).unwrap_or_default();
        assert!(report.starts_with("phalanx: rank 1 (pid ") && report.contains(said), "{how}: {}", ended.stderr);
        assert!(
            ended.stderr.contains("phalanx: thereafter ranks 0, 2 and 3 exited with status 9"),
            "{how}: {}",
            ended.stderr
        );
        assert_eq!(text.matches("rank 1 of the job has ended").count(), 3, "{how}: {text}");

        let times = |word: &str| -> Vec<u128> {
            let after = |line: &str| line.split_once(word)?.1.trim().parse().ok();
            text.lines().filter_map(after).collect()
        };
        let (gone, back) = (times("gone "), times("back "));
        let longest = Duration::from_nanos((back.iter().max().expect("three times") - gone[0]) as u64);
        println!("{how}: the last rank returned {longest:?} after rank 1 had gone");
        assert_eq!((gone.len(), back.len()), (1, 3));
        ended.leaves_nothing();
    }
}
