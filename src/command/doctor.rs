//! `phalanx doctor`: whether this machine has what a job needs, and what to do where it has not.

use std::fmt;
use std::fs;
use std::process::ExitCode;
use std::sync::atomic::AtomicU32;

use clap::Args;
use hier::job::can_convert;
use hier::remark;
use phalanx::Communicator;
use phalanx::topo::{Machine, Usable};
use rustix::io::Errno;
use rustix::process::{PidfdFlags, Resource, getpid, getrlimit, pidfd_open};
use rustix::thread::{MembarrierCommand, futex, membarrier, sched_getaffinity, sched_setaffinity};
use shm_core::job::{Job, JobSpec, memory_left};

use super::out::say;

/// Look whether this machine, or container, has what a job needs
///
/// One line for each thing, with what to do where it is not as it should be. Exit status 1 when jobs cannot run.
#[derive(Debug, Args)]
pub struct Doctor {
    /// This is one of the ranks by which it is found out what ranks may do
    #[arg(long, hide = true)]
    as_rank: bool,
}

/// What was found of one thing.
enum Finding {
    /// As it should be.
    Ok(String),
    /// Jobs run, but something about them is less good than it could be.
    Warn(String),
    /// Jobs do not run.
    Fail(String),
}
use Finding::{Fail, Ok as Fine, Warn};

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fine(text) => write!(f, "ok    {text}"),
            Warn(text) => write!(f, "warn  {text}"),
            Fail(text) => write!(f, "FAIL  {text}"),
        }
    }
}

impl Doctor {
    pub fn run(self) -> ExitCode {
        if self.as_rank {
            return ExitCode::from(u8::from(super::copying::as_rank().is_err()));
        }
        let findings = [
            ("system", system()),
            ("cores", cores()),
            ("binding", binding()),
            ("segment", segment()),
            ("memory", memory()),
            ("huge pages", huge_pages()),
            ("buffers", buffers()),
            ("copies", copies()),
            ("conversion", conversion()),
            ("membarrier", fences()),
            ("futex", sleeping()),
            ("pidfd", deaths()),
            ("processes", processes()),
            ("open files", files()),
        ];
        let text: String = findings.iter().map(|(name, finding)| format!("{name:11} {finding}\n")).collect();
        if let Err(why) = say(&text) {
            remark(format_args!("{why}"));
            return ExitCode::FAILURE;
        }
        ExitCode::from(u8::from(findings.iter().any(|(_, finding)| matches!(finding, Fail(_)))))
    }
}

/// The first line of a file.
fn read(path: &str) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.lines().next()?.trim().to_owned())
}

fn system() -> Finding {
    let release = read("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    match (numbers.next(), numbers.next()) {
        (Some(major), Some(minor)) if (major, minor) < (5, 9) => {
            Warn(format!("Linux {release}: made for 5.9 and later; deaths of ranks are noticed less quickly"))
        }
        _ => Fine(format!("Linux {release}, {}", std::env::consts::ARCH)),
    }
}

fn cores() -> Finding {
    let (machine, usable) = match (Machine::discover(), Usable::discover()) {
        (Ok(machine), Ok(usable)) => (machine, usable),
        (Err(error), _) | (_, Err(error)) => return Warn(format!("{error}; ranks are not bound")),
    };
    let cores = usable.cores(&machine);
    let counts = format!("{cores} usable of {} ({} PUs of {})", machine.cores(), usable.pus.len(), machine.pus().len());
    match usable.quota_cores {
        Some(quota) => Warn(format!(
            "{counts}, with a quota of {quota:.2} cores: when it is used up, all ranks pause until the next period; \
             raise the container's cpu.max, or start at most {cores} ranks"
        )),
        None if cores == 1 => Warn(format!("{counts}: ranks take turns, so times say little about a larger machine")),
        None => Fine(format!("{counts}, no quota; more than {cores} ranks take turns")),
    }
}

fn binding() -> Finding {
    match sched_getaffinity(None).and_then(|mask| sched_setaffinity(None, &mask)) {
        Ok(()) => Fine("ranks can be bound to cores".to_owned()),
        Err(error) => Warn(format!("ranks cannot be bound ({error}); use `phalanx run --bind none`")),
    }
}

fn segment() -> Finding {
    let ranks = std::thread::available_parallelism().map_or(1, usize::from).min(hier::launch::MOST_RANKS);
    match JobSpec::new(ranks).and_then(|spec| Job::create(&spec)) {
        Ok(job) => Fine(format!(
            "a sealed memory file was made and reserved: {} MiB for {ranks} rank{}",
            job.arena_taken().div_ceil(1 << 20),
            if ranks == 1 { "" } else { "s" }
        )),
        Err(error) => Fail(error.to_string()),
    }
}

fn memory() -> Finding {
    const LITTLE: u64 = 256 << 20;
    let Some(left) = memory_left() else {
        return Warn("/proc/meminfo does not say how much there is".to_owned());
    };
    let text = format!("{} MiB available on this machine, or in this container", left >> 20);
    let address_space = getrlimit(Resource::As).current;
    match address_space {
        Some(limit) => Warn(format!(
            "{text}, and `ulimit -v` allows each process {} MiB; raise it if ranks cannot attach",
            limit >> 20
        )),
        None if left < LITTLE => {
            Warn(format!("{text}: 1 MiB a rank is needed, more for large jobs and many communicators"))
        }
        None => Fine(text),
    }
}

fn huge_pages() -> Finding {
    let path = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
    let chosen = read(path).and_then(|text| Some(text.split('[').nth(1)?.split(']').next()?.to_owned()));
    match chosen.as_deref() {
        Some("deny") => Fine(format!(
            "denied to shared memory: a ring of cells is used for the first time at ten times the cost; \
             `echo advise > {path}` (as root) gives them to who asks (Linux 6.1; before, to buffers)"
        )),
        Some("never") => Fine(
            "for who asks (Linux 6.1): buffers do, of which the next line says more, and cells once they are used"
                .to_owned(),
        ),
        Some(mode) => Fine(format!("{mode} for shared memory")),
        None => Fine(
            "this kernel has none for shared memory; that costs a little at first, and with very large messages"
                .to_owned(),
        ),
    }
}

/// Takes a buffer, and looks what it is made of.
fn buffers() -> Finding {
    const BYTES: usize = 8 << 20;
    let found = Communicator::threads(1, |world| {
        let buffer = world.alloc::<u8>(BYTES)?;
        Ok::<_, phalanx::Error>(huge_bytes(buffer.as_ptr().addr()))
    });
    match found.and_then(|mut found| found.remove(0)) {
        Ok(Some(huge)) if huge >= BYTES as u64 => Fine("shared buffers lie in huge pages".to_owned()),
        Ok(Some(0)) => Fine(
            "shared buffers lie in small pages; Linux 6.1, or `advise` in shmem_enabled, gives huge ones".to_owned(),
        ),
        Ok(Some(huge)) => Fine(format!("of a shared buffer, {huge} of {BYTES} bytes lie in huge pages")),
        Ok(None) => Fine("shared buffers can be had".to_owned()),
        Err(error) => Warn(error.to_string()),
    }
}

/// Bytes in huge pages of the mapping that has an address.
fn huge_bytes(address: usize) -> Option<u64> {
    let maps = fs::read_to_string("/proc/self/smaps").ok()?;
    let mut lines = maps.lines().skip_while(|line| {
        let range = line.split(' ').next().and_then(|range| range.split_once('-'));
        let range = range.map(|(from, to)| [from, to].map(|end| usize::from_str_radix(end, 16).unwrap_or(0)));
        !range.is_some_and(|[from, to]| (from..to).contains(&address))
    });
    let kibibytes = lines.find_map(|line| line.strip_prefix("ShmemPmdMapped:"))?;
    Some(kibibytes.split_whitespace().next()?.parse::<u64>().ok()? << 10)
}

/// Whether processes that this one has started copy from each other's memory: two of this command.
fn copies() -> Finding {
    let advice = match read("/proc/sys/kernel/yama/ptrace_scope").as_deref() {
        Some("2" | "3") => "lower kernel.yama.ptrace_scope to 1 (for the ranks of MPI jobs, to 0)",
        _ => "allow process_vm_readv and process_vm_writev (and ptrace) in the sandbox or container",
    };
    match super::copying::between_processes() {
        Ok(None) => Fine("ranks copy from each other's private memory, and to it, in one go".to_owned()),
        Ok(Some(why)) => Warn(format!("not between ranks ({why}): long private messages take a copy more; {advice}")),
        Err(error) => Warn(format!("not found out: {error}")),
    }
}

/// Whether private buffers can become shared memory where they are.
fn conversion() -> Finding {
    match can_convert() {
        true => Fine(
            "private buffers can become shared memory at their addresses, if PHALANX_CONVERT=auto asks for it"
                .to_owned(),
        ),
        false => {
            Fine("private buffers stay private: what PHALANX_CONVERT asks for takes Linux 6.11, and /proc".to_owned())
        }
    }
}

fn fences() -> Finding {
    match membarrier(MembarrierCommand::RegisterGlobalExpedited) {
        Ok(()) => Fine("ranks that sleep fence for those that do not".to_owned()),
        Err(error) => {
            Warn(format!("refused ({error}): every flag costs a fence, some 20 ns; allow membarrier in the sandbox"))
        }
    }
}

fn sleeping() -> Finding {
    let word = AtomicU32::new(1);
    // The word is not 2, so that a futex which works says so at once.
    match futex::wait(&word, futex::Flags::empty(), 2, None) {
        Err(Errno::AGAIN) => Fine("ranks that wait for long sleep".to_owned()),
        Err(error) => {
            Warn(format!("refused ({error}): ranks that wait wake up 2000 times a second; allow futex in the sandbox"))
        }
        Ok(()) => Warn("woke up without reason: ranks that wait may use some processor time".to_owned()),
    }
}

fn deaths() -> Finding {
    match pidfd_open(getpid(), PidfdFlags::empty()) {
        Ok(_) => Fine("the death of a rank is noticed at once".to_owned()),
        Err(error) => Warn(format!("refused ({error}): the death of a rank is noticed within 5 ms")),
    }
}

fn processes() -> Finding {
    let limits =
        [("ulimit -u", getrlimit(Resource::Nproc).current), ("the container's pids.max", own_limit("pids.max"))];
    let tightest = limits.into_iter().filter_map(|(name, limit)| Some((limit?, name))).min();
    match tightest {
        Some((limit, name)) if limit < 512 => Warn(format!("{name} allows {limit}: raise it for jobs of many ranks")),
        Some((limit, name)) => Fine(format!("{limit} allowed ({name})")),
        None => Fine("no limit".to_owned()),
    }
}

fn files() -> Finding {
    match getrlimit(Resource::Nofile).current {
        Some(limit) if limit < 1024 => {
            Warn(format!("{limit} allowed: `run --tag` takes three for each rank; raise it with `ulimit -n 1024`"))
        }
        Some(limit) => Fine(format!("{limit} allowed")),
        None => Fine("no limit".to_owned()),
    }
}

/// A number that the cgroup of this process holds (version 2), or the one that a container sees as its root.
fn own_limit(file: &str) -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = groups.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or("/");
    let paths = [format!("/sys/fs/cgroup{own}/{file}"), format!("/sys/fs/cgroup/{file}")];
    paths.iter().find_map(|path| read(path))?.parse().ok()
}
