//! Damaged and foreign segments, broken environments, wrong rules, numbers of ranks that cannot be: an error that says
//! what is wrong and what to try, never a panic, a signal or a hang.

#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use hier::job::{Job, JobSpec};
use hier::{Communicator, Error, Note, TreeRules};
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use phalanx_tests::command::{Ended, bare, job, run};
use phalanx_tests::phalanx_command;
use phalanx_tests::random::Random;
use shm_core::segment::layout::HEADER;

const LIMIT: Duration = Duration::from_secs(20);

const STRAY: &str = env!("CARGO_BIN_EXE_stray_rank");

/// The seals that a segment has.
const SEALS: SealFlag = SealFlag::F_SEAL_SHRINK.union(SealFlag::F_SEAL_GROW).union(SealFlag::F_SEAL_SEAL);

/// A job of one rank, whose program needs nobody else.
fn small_job() -> Job {
    let mut spec = JobSpec::new(1).unwrap();
    spec.arena = Some(4 << 20);
    spec.note = Note::default().to_bytes();
    Job::create(&spec).unwrap()
}

/// A descriptor that programs inherit.
fn inherited(file: impl AsFd) -> OwnedFd {
    let copy = file.as_fd().try_clone_to_owned().unwrap();
    fcntl(&copy, FcntlArg::F_SETFD(nix::fcntl::FdFlag::empty())).unwrap();
    copy
}

/// Runs a program whose environment says this of a job.
fn stray(variables: &[(&str, OsString)]) -> Ended {
    let mut command = bare(STRAY.as_ref());
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    let ended = run(&mut command, LIMIT);
    // Well or refused: no signal, no panic.
    assert!(matches!(ended.status.code(), Some(0 | 2)), "{variables:?}: {ended:?}");
    ended
}

/// Checks that the program refused, in words among which are these.
fn refused(ended: &Ended, words: &[&str]) {
    assert_eq!(ended.status.code(), Some(2), "{words:?}: {ended:?}");
    let text = ended.stdout.lines().find(|line| line.starts_with("refused: ")).expect("a word");
    for word in words {
        assert!(text.contains(word), "{word:?} is not in: {text}");
    }
}

/// What a good job says to its rank.
fn variables(job: &Job, file: &impl AsRawFd) -> Vec<(&'static str, OsString)> {
    job.environment(0, file.as_raw_fd()).into_iter().map(|(name, value)| (name, value.into())).collect()
}

#[test]
fn broken_environments() {
    let job = small_job();
    let file = inherited(job.descriptor());
    let good = variables(&job, &file);
    assert_eq!(good.len(), 4);
    let with = |name: &str, value: Option<OsString>| {
        let mut changed: Vec<_> = good.iter().filter(|(other, _)| *other != name).cloned().collect();
        let name = good.iter().find(|(other, _)| *other == name).unwrap().0;
        changed.extend(value.map(|value| (name, value)));
        stray(&changed)
    };
    for name in ["PHALANX_RANK", "PHALANX_SIZE", "PHALANX_SEGMENT", "PHALANX_JOB"] {
        refused(&with(name, None), &[name, "not set", "phalanx run"]);
        refused(&with(name, Some(OsString::from_vec(vec![0xff, 0xfe]))), &[name]);
    }
    for name in ["PHALANX_RANK", "PHALANX_SIZE", "PHALANX_SEGMENT"] {
        for value in ["", " ", "-1", "one", "1.0", "0x1", "99999999999999999999999"] {
            refused(&with(name, Some(value.into())), &[name, "a number is expected"]);
        }
    }
    refused(&with("PHALANX_RANK", Some("1".into())), &["PHALANX_RANK", "ranks 0 to 0", "PHALANX_SIZE=1"]);
    refused(&with("PHALANX_SIZE", Some("0".into())), &["PHALANX_RANK"]);
    refused(&with("PHALANX_SIZE", Some("2".into())), &["PHALANX_SIZE", "1 ranks"]);
    refused(&with("PHALANX_JOB", Some("0123456789abcdef".into())), &["PHALANX_JOB", "another job"]);
    refused(&with("PHALANX_JOB", Some("".into())), &["PHALANX_JOB"]);
    for value in ["0", "2", "4294967296"] {
        refused(&with("PHALANX_SEGMENT", Some(value.into())), &["no descriptor"]);
    }
    for value in ["900", "1000000"] {
        refused(&with("PHALANX_SEGMENT", Some(value.into())), &[value, "not open", "PHALANX_*"]);
    }
    // After all this the job is as good as new; a second process in the same place is not.
    let ended = stray(&good);
    assert!(ended.stdout.contains("world of 1"), "{ended:?}");
    refused(&stray(&good), &["rank 0", "attached already"]);
    // Of what shapes a job, an empty variable asks for nothing; one that is no text says what it should be.
    for name in ["PHALANX_ARENA", "PHALANX_HEAP", "PHALANX_CMA", "PHALANX_PLACE", "PHALANX_CONVERT"] {
        assert!(stray(&[(name, "".into())]).stdout.contains("world of 1"), "{name}");
        refused(&stray(&[(name, OsString::from_vec(vec![0xff, 0xfe]))]), &[name, "expected"]);
    }
    // Only what programs may look at.
    refused(&stray(&[("PHALANX_RANK", "0".into())]), &["PHALANX_SEGMENT"]);
    assert!(stray(&[]).stdout.contains("world of 1"));
    // One of several processes of another launcher is no world by itself; in a job, or alone, it may say what it likes.
    for (name, several, alone) in [("OMPI_COMM_WORLD_SIZE", "4", "1"), ("PMI_SIZE", "2", "1"), ("PMIX_RANK", "1", "0")]
    {
        refused(&stray(&[(name, several.into())]), &[name, several, "phalanx run", "feature `mpi`"]);
        assert!(stray(&[(name, alone.into())]).stdout.contains("world of 1"), "{name}");
        let job = small_job();
        let file = inherited(job.descriptor());
        let mut invited = variables(&job, &file);
        invited.push((name, several.into()));
        assert!(stray(&invited).stdout.contains("world of 1"), "{name}");
    }
}

#[test]
fn descriptors_of_other_things() {
    let job = small_job();
    let with = |file: &OwnedFd| stray(&variables(&job, file));
    let null = inherited(File::open("/dev/null").unwrap());
    let ended = with(&null);
    refused(&ended, &["not a memory file", "phalanx run"]);
    assert!(ended.stdout.contains("still open"), "what is not the segment is the program's own: {ended:?}");
    let (pipe, _writer) = std::io::pipe().unwrap();
    refused(&with(&inherited(pipe)), &["not a memory file"]);
    let plain = inherited(File::open(STRAY).unwrap());
    refused(&with(&plain), &["segment is not usable"]);

    let memory = |bytes: &[u8], length: u64, seals: SealFlag| {
        let file = File::from(memfd_create("forged", MFdFlags::MFD_ALLOW_SEALING).unwrap());
        file.set_len(length).unwrap();
        file.write_all_at(bytes, 0).unwrap();
        fcntl(&file, FcntlArg::F_ADD_SEALS(seals)).unwrap();
        OwnedFd::from(file)
    };
    let header = header_of(&job);
    let length = length_of(&job);
    refused(&with(&memory(&header, length, SealFlag::empty())), &["shrink or grow"]);
    refused(&with(&memory(&header, length, SealFlag::F_SEAL_SHRINK)), &["shrink or grow"]);
    refused(&with(&memory(&[], 0, SEALS)), &["0 bytes"]);
    refused(&with(&memory(&header[..100], 100, SEALS)), &["100 bytes"]);
    refused(&with(&memory(&[0; HEADER], length, SEALS)), &["mark of a segment"]);
    refused(&with(&memory(&[0xff; HEADER], length, SEALS)), &["mark of a segment"]);
    let cut = format!("the file has {HEADER} bytes");
    refused(&with(&memory(&header, HEADER as u64, SEALS)), &[&cut, "start the job again"]);
    refused(&with(&memory(&header, length - 4096, SEALS)), &["damaged"]);
    refused(&with(&memory(&header, length + (1 << 30), SEALS)), &["damaged"]);

    // A segment, of another job.
    let other = small_job();
    let others = inherited(other.descriptor());
    let ended = stray(&variables(&job, &others));
    refused(&ended, &["another job"]);
    assert!(ended.stdout.contains("still open"), "{ended:?}");
}

/// The header of a job's segment.
fn header_of(job: &Job) -> Vec<u8> {
    let mut header = vec![0; HEADER];
    File::from(job.descriptor().try_clone_to_owned().unwrap()).read_exact_at(&mut header, 0).unwrap();
    header
}

fn length_of(job: &Job) -> u64 {
    File::from(job.descriptor().try_clone_to_owned().unwrap()).metadata().unwrap().len()
}

/// A copy of a job's segment, changed, and sealed as it should be.
fn forged(job: &Job, change: impl FnOnce(&mut [u8])) -> OwnedFd {
    let original = File::from(job.descriptor().try_clone_to_owned().unwrap());
    let length = length_of(job);
    // The arena is empty but for the world's block, which is zero but for its first words.
    let mut bytes = vec![0; (4 << 20).min(length as usize)];
    original.read_exact_at(&mut bytes, 0).unwrap();
    change(&mut bytes);
    let file = File::from(memfd_create("forged", MFdFlags::MFD_ALLOW_SEALING).unwrap());
    file.set_len(length).unwrap();
    file.write_all_at(&bytes, 0).unwrap();
    fcntl(&file, FcntlArg::F_ADD_SEALS(SEALS)).unwrap();
    file.into()
}

fn number_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap())
}

#[test]
fn headers_of_other_builds() {
    let job = small_job();
    let with = |change: &dyn Fn(&mut [u8])| stray(&variables(&job, &forged(&job, |bytes| change(bytes))));
    // A faithful copy is as good as the original, so that what is refused below is refused for its change.
    assert!(with(&|_| ()).stdout.contains("world of 1"));
    refused(&with(&|bytes| bytes[0] ^= 1), &["mark of a segment", "phalanx run"]);
    refused(&with(&|bytes| bytes[8] ^= 1), &["another build", "same sources", "same compiler"]);
    refused(&with(&|bytes| bytes[56] = 2), &["2 ranks"]);
    refused(&with(&|bytes| bytes[56..60].fill(0xff)), &["damaged"]);
    refused(&with(&|bytes| bytes[24] ^= 1), &["PHALANX_JOB", "another job"]);
    // The note cannot be read.
    let note = |bytes: &mut [u8]| {
        let at = bytes.windows(8).position(|window| window == b"release:").expect("the note");
        bytes[at..at + 8].fill(0xfe);
    };
    refused(&with(&note), &["note", "start the job again"]);
    // The world lies elsewhere: before the arena, across its end, off the grid.
    let world = |value: fn(u64, u64) -> u64| {
        move |bytes: &mut [u8]| {
            // The last word of the header, behind the table, that is not zero.
            let at = (192..HEADER).step_by(8).rev().find(|&at| number_at(bytes, at) != 0).expect("the world's place");
            let changed = value(number_at(bytes, at), number_at(bytes, 16));
            bytes[at..at + 8].copy_from_slice(&changed.to_ne_bytes());
        }
    };
    for place in [|_, _| 0, |_, _| 64, |_, total| total - 4096, |_, total| total, |_, _| u64::MAX, |at, _| at + 8] {
        refused(&with(&world(place)), &["damaged"]);
    }
}

/// Every byte of the header's fixed part changed in turn, and many at once: never a signal, a panic or a hang.
#[test]
fn headers_with_any_byte_changed() {
    let job = small_job();
    let mut random = Random::new(5);
    let mut refusals = 0;
    for at in 0..192 {
        let flip = [1 << random.below(8), 0xff][at % 2];
        let forged = forged(&job, |bytes| bytes[at] ^= flip);
        refusals += usize::from(stray(&variables(&job, &forged)).status.code() == Some(2));
    }
    for _ in 0..100 {
        let forged = forged(&job, |bytes| {
            // Behind the mark, the version and the hash, or nothing else would be looked at.
            (0..1 + random.below(6)).for_each(|_| bytes[16 + random.below(176)] = random.number() as u8);
        });
        refusals += usize::from(stray(&variables(&job, &forged)).status.code() == Some(2));
    }
    assert!(refusals > 64, "only {refusals} of 292 were refused");
}

#[test]
fn rules_that_cannot_be() {
    for (name, value, words) in [
        ("PHALANX_ALGORITHM", "allreduce", &["no rule", "allreduce:shares"][..]),
        ("PHALANX_ALGORITHM", "scan:line", &["no collective", "barrier, broadcast, reduce, allreduce"]),
        ("PHALANX_ALGORITHM", "broadcast:shares", &["no algorithm"]),
        ("PHALANX_ALGORITHM", "all:cells,cell=65", &["multiples of 64"]),
        ("PHALANX_ALGORITHM", "all:cells,cells=1", &["up_cells"]),
        ("PHALANX_ALGORITHM", "all:cells,cell=18446744073709551615K", &["no number"]),
        ("PHALANX_ALGORITHM", "all:shares,leaders=-1", &["no number"]),
        ("PHALANX_TREES", "gather", &["no rule"]),
        ("PHALANX_TREES", "gather:kary:0", &["k is 0"]),
        ("PHALANX_TREES", "up:flat", &["release or gather"]),
        ("PHALANX_TREES", "gather:kary:2<1K", &["the last tree"]),
        ("PHALANX_ARENA", "much", &["a number of bytes"]),
        ("PHALANX_ARENA", "0", &["a number of bytes"]),
        ("PHALANX_CONVERT", "always", &["never, auto, or a number of bytes"]),
    ] {
        let check = |ended: &Ended, text: &str| {
            assert!(ended.status.code().is_some_and(|code| (1..101).contains(&code)), "{name}={value}: {ended:?}");
            for word in words.iter().chain([&name]) {
                assert!(
                    text.contains(word) || word.starts_with("PHALANX_ALG"),
                    "{name}={value}: {word:?} is not in: {text}"
                );
            }
        };
        // By the launcher, which starts nothing then.
        let ended = run(job(STRAY, 2, &[]).env(name, value), LIMIT);
        assert!(!ended.stdout.contains("world of"), "{ended:?}");
        check(&ended, &ended.stderr);
        // By a program without a launcher.
        let ended = run(bare(STRAY.as_ref()).env(name, value), LIMIT);
        check(&ended, &ended.stdout);
    }
}

/// A full device is an error of one line; a reader that has left is none.
#[test]
fn answers_that_cannot_be_written() {
    let library = std::env::temp_dir().join(format!("phalanx-no-library-{}", std::process::id()));
    std::fs::create_dir_all(&library).unwrap();
    std::fs::write(library.join("libphalanx_mpi.so"), "").unwrap();
    let table = concat!(env!("CARGO_MANIFEST_DIR"), "/../hier/src/table/default.toml");
    for line in [
        "topo --cluster flat:4",
        "doctor",
        "mpirun -n 2 --mpi openmpi --launcher /bin/true --show -- /bin/true",
        &format!("tune --rust {table}"),
    ] {
        let to = |out: OwnedFd| {
            let mut command = bare(phalanx_command());
            command.args(line.split_whitespace()).env("PHALANX_LIBRARY_PATH", &library).stdout(out);
            let ended = command.output().unwrap();
            (ended.status.code(), String::from_utf8_lossy(&ended.stderr).into_owned())
        };
        let (status, said) = to(File::options().write(true).open("/dev/full").unwrap().into());
        assert_eq!(status, Some(1), "{line}: {said}");
        assert!(said.starts_with("phalanx: cannot write: No space") && said.lines().count() == 1, "{line}: {said}");
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let (status, said) = to(writer.into());
        assert!(status == Some(0) && said.is_empty(), "{line}: {status:?}, {said}");
    }
    std::fs::remove_dir_all(&library).unwrap();
}

/// Where standard error is full the status alone says what was wrong; a remark that cannot be written ends nothing.
#[test]
fn errors_that_cannot_be_written() {
    let full = || File::options().write(true).open("/dev/full").unwrap();
    for (line, status) in [
        ("run -n 1 -- true", 0),
        ("run -n 1 -- no-such-program", 127),
        ("mpirun -n 2 -- no-such-program", 127),
        ("topo --synthetic no-such-machine", 2),
        ("tune --ranks 4,2", 2),
    ] {
        let mut command = bare(phalanx_command());
        command.args(line.split_whitespace()).env("PHALANX_STRANGER", "1").stderr(full());
        assert_eq!(command.output().unwrap().status.code(), Some(status), "{line}");
    }
    let mut command = bare(phalanx_command());
    let status = command.arg("doctor").stdout(full()).stderr(full()).status().unwrap();
    assert_eq!(status.code(), Some(1), "doctor");
}

#[test]
fn numbers_of_ranks_that_cannot_be() {
    for ranks in [0, 257, 1 << 20] {
        let error = Communicator::threads(ranks, |_| ()).unwrap_err();
        assert!(matches!(error, Error::Ranks { most: 256, .. }), "{error}");
        assert!(
            error.to_string().contains(&format!("{ranks} ranks")) && error.to_string().contains("1 to 256"),
            "{error}"
        );
        let ended = run(&mut job(STRAY, ranks, &[]), LIMIT);
        assert!(ended.status.code().is_some_and(|code| (1..101).contains(&code)), "{ended:?}");
        assert!(
            ended.stderr.contains(if ranks == 0 { "1 rank" } else { "256" }) && !ended.stdout.contains("world of"),
            "{ended:?}"
        );
    }
    for ranks in ["", "-1", "two", "1e3"] {
        let ended = run(bare(phalanx_command()).args(["run", "-n", ranks, "--", STRAY]), LIMIT);
        assert!(ended.status.code().is_some_and(|code| (1..101).contains(&code)), "{ended:?}");
        assert!(!ended.stderr.is_empty() && !ended.stdout.contains("world of"), "{ended:?}");
    }
    let worlds = run(&mut job(STRAY, 256, &[]), Duration::from_secs(60)).succeeded();
    assert_eq!(worlds.matches("world of 256").count(), 256);
}

#[test]
fn the_environment_of_a_rank_is_not_for_its_children() {
    // A rank that starts another program of the library: the child inherits the variables, not the descriptor.
    let ended = run(&mut job("sh", 1, &["-c", &format!("exec 2>&1; {STRAY}; {STRAY}; true")]), LIMIT);
    assert!(ended.stdout.contains("world of 1"), "{ended:?}");
    assert!(ended.stdout.contains("attached already"), "{ended:?}");
    let error = "gather:bush:3".parse::<TreeRules>().unwrap_err();
    assert!(matches!(error, Error::Environment { name: "PHALANX_TREES", .. }), "{error}");
}
