//! The launcher, as the command `phalanx run` shows it, over plain system programs.
//!
//! Each test has a watchdog, and ends what it started by its number. Processes of a job are found by a variable in
//! their environment that no other job has.

#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long any one step of a test may take. Far above what it needs, on a machine that does much else.
const WATCHDOG: Duration = Duration::from_secs(25);

/// The variable that marks the processes of one job.
const MARK: &str = "PHALANX_TEST_MARK";

/// A launcher that runs, and everything that it and its ranks wrote.
struct Running {
    launcher: Child,
    mark: String,
    stdout: Option<JoinHandle<Vec<u8>>>,
    stderr: Option<JoinHandle<Vec<u8>>>,
}

/// What is left of it in the end.
struct Ended {
    status: ExitStatus,
    stdout: Vec<u8>,
    stderr: String,
    mark: String,
}

fn drain(mut stream: impl Read + Send + 'static) -> Option<JoinHandle<Vec<u8>>> {
    Some(thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        bytes
    }))
}

/// Starts `phalanx run` with these arguments, and `input` at its standard input.
fn start_with(arguments: &[&str], input: &[u8]) -> Running {
    start_by(Command::new(phalanx_tests::phalanx_command()).arg("run").args(arguments), input)
}

fn start_by(command: &mut Command, input: &[u8]) -> Running {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let mark = format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    // A job of a script in the background ignores SIGINT and SIGQUIT, and so would its launcher.
    let mut started = Command::new("env")
        .arg("--default-signal=INT,QUIT,HUP,TERM,USR1,USR2,TSTP")
        .arg(command.get_program())
        .args(command.get_args())
        .env(MARK, &mark)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the launcher starts");
    let mut pipe = started.stdin.take().expect("a pipe");
    let input = input.to_vec();
    thread::spawn(move || pipe.write_all(&input));
    let stdout = drain(started.stdout.take().expect("a pipe"));
    let stderr = drain(started.stderr.take().expect("a pipe"));
    Running { launcher: started, mark, stdout, stderr }
}

fn start(arguments: &[&str]) -> Running {
    start_with(arguments, b"")
}

fn run(arguments: &[&str]) -> Ended {
    start(arguments).end()
}

/// Waits until something holds, or panics when the watchdog's time is over.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + WATCHDOG;
    while !holds() {
        assert!(Instant::now() < end, "waited too long until {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

impl Running {
    fn end(mut self) -> Ended {
        let mut status = None;
        until("the launcher ends", || {
            status = self.launcher.try_wait().expect("it is a child");
            status.is_some()
        });
        // Whoever kept them open would keep the reader of a pipeline waiting.
        until("its output is closed", || self.stdout.as_ref().is_none_or(JoinHandle::is_finished));
        until("its errors are closed", || self.stderr.as_ref().is_none_or(JoinHandle::is_finished));
        let read = |thread: &mut Option<JoinHandle<Vec<u8>>>| thread.take().and_then(|thread| thread.join().ok());
        Ended {
            status: status.expect("it has ended"),
            stdout: read(&mut self.stdout).unwrap_or_default(),
            stderr: String::from_utf8_lossy(&read(&mut self.stderr).unwrap_or_default()).into_owned(),
            mark: self.mark.clone(),
        }
    }

    fn signal(&self, signal: &str) {
        send(signal, self.launcher.id());
    }

    /// The ranks, and what they started: not the launcher, nor its guard (which has its command line).
    fn ranks(&self) -> Vec<u32> {
        let mine = |pid: &u32| fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !holds(&line, b"phalanx\0run\0"));
        marked(&self.mark).into_iter().filter(mine).collect()
    }

    /// Waits until so many processes of the ranks are what `name` says.
    fn until_there_are(&self, count: usize, name: &str) {
        until(&format!("there are {count} {name}"), || {
            let comm = |pid: u32| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            self.ranks().into_iter().filter(|&pid| comm(pid).trim() == name).count() == count
        });
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.launcher.kill();
        let _ = self.launcher.wait();
        // A test that failed may have left them.
        if thread::panicking() {
            marked(&self.mark).into_iter().for_each(|pid| send("KILL", pid));
        }
    }
}

impl Ended {
    fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| panic!("{}: {}", self.status, self.stderr))
    }

    fn lines(&self) -> BTreeSet<String> {
        String::from_utf8_lossy(&self.stdout).lines().map(str::to_owned).collect()
    }

    fn leaves_nothing(&self) {
        until("all of the job has ended", || marked(&self.mark).is_empty());
    }
}

fn send(signal: &str, pid: u32) {
    let status = Command::new("sh").args(["-c", &format!("kill -{signal} {pid}")]).stderr(Stdio::null()).status();
    assert!(status.is_ok(), "sh starts");
}

/// The processes, dead ones apart, with this mark in their environment.
fn marked(mark: &str) -> Vec<u32> {
    let mark = format!("{MARK}={mark}\0");
    let pids = fs::read_dir("/proc").expect("/proc").filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(|pid| fs::read(format!("/proc/{pid}/environ")).is_ok_and(|text| holds(&text, mark.as_bytes()))).collect()
}

fn holds(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// The letter of a process's state, and the PUs that it may use.
fn status_of(pid: u32, name: &str) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim().to_owned()
}

/// A file for the length of a test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str, content: &[u8]) -> Self {
        let path = std::env::temp_dir().join(format!("phalanx-{}-{name}", std::process::id()));
        fs::write(&path, content).expect("a file in the temporary folder");
        Scratch(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("plain characters")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

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
    assert_eq!(ended.lines(), ["[0] /memfd:phalanx (deleted)", "[1] /memfd:phalanx (deleted)"].map(str::to_owned).into());
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
        assert!(line.starts_with('[') && line.len() == 70_004 && letters.len() == 1, "{} bytes, {letters:?}", line.len());
    }
}

#[test]
fn rank_0_reads_the_input() {
    let bytes = noise(1 << 20);
    let ended = start_with(&["-n", "2", "--", "sh", "-c", "test $PHALANX_RANK = 0 && exec cat; wc -c >&2"], &bytes).end();
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
        let inner = format!("trap \"echo inner; exit 0\" {signal}; : > \"$0.$PHALANX_RANK\"; while :; do sleep 0.02; done");
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
    for script in ["exec sleep 50", "sleep 50 & sleep 50", "(sleep 50 & sleep 50) & (trap '' TERM HUP INT; sleep 50; :) & wait"] {
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
    assert!(ended.stderr.contains("processes that ranks 0 and 1 started are left: sending SIGTERM"), "{}", ended.stderr);
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
fn act(how: &str) -> Ended {
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
        assert!(ended.stderr.contains("phalanx: thereafter ranks 0, 2 and 3 exited with status 9"), "{how}: {}", ended.stderr);
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
