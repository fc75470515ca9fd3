//! Jobs of an MPI: on this machine, and on the hosts of an emulated cluster.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use phalanx_tests::command::{self, Ended};

use phalanx_tests::library::{Family, Library, find, root, skip, target};
use phalanx_tests::mark::Mark;

/// Seconds after which a job is stopped: by SIGTERM, so that its launcher stops all ranks, then by SIGKILL.
const LIMIT: u64 = 100;
/// The status of `scripts/cluster/run` where namespaces are not allowed.
const FORBIDDEN: i32 = 77;
/// The variable that makes that a failure: `PHALANX_TEST_CLUSTER=required`.
const REQUIRED: &str = "PHALANX_TEST_CLUSTER";
/// What the emulated cluster is made with, and the packages.
const TOOLS: [(&str, &str); 5] = [
    ("python3", "python3"),
    ("cc", "gcc libc6-dev"),
    ("ip", "iproute2"),
    ("tc", "iproute2"),
    ("nsenter", "util-linux"),
];
/// How often a launcher is started that is ended by a signal before it has said anything: in some hundred starts beside
/// other work one was ended by SIGPIPE.
const STARTS: u32 = 3;
const SIGPIPE: i32 = nix::sys::signal::Signal::SIGPIPE as i32;

/// A variable for jobs on a cluster: ranks know its switches.
pub const SWITCHES_KNOWN: (&str, &str) = ("TEST_SWITCHES_KNOWN", "1");
/// The command on the first host, where the file of switches is. What follows are mpirun's arguments.
const START: &str = r#"[ -z "$TEST_SWITCHES_KNOWN" ] || export PHALANX_TOPOLOGY="$CLUSTER_TOPOLOGY"; exec mpirun "$@""#;

/// Where the ranks of a job are.
#[derive(Clone, Copy, Debug)]
pub enum Hosts {
    /// So many ranks on this machine.
    One(usize),
    /// Hosts, ranks on each, and how ranks are placed.
    Cluster(usize, usize, &'static str),
    /// So many ranks on each host of a cluster.
    Uneven(&'static [usize]),
}

impl Hosts {
    pub fn ranks(self) -> usize {
        match self {
            Self::One(ranks) => ranks,
            Self::Cluster(hosts, slots, _) => hosts * slots,
            Self::Uneven(ranks) => ranks.iter().sum(),
        }
    }

    pub fn nodes(self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Cluster(hosts, ..) => hosts,
            Self::Uneven(ranks) => ranks.len(),
        }
    }
}

/// How a job ended.
pub struct Done {
    pub ended: Ended,
    /// Processes of the job that were there half a second after its launcher had ended.
    pub left: Vec<String>,
}

impl Done {
    /// Everything that was written.
    pub fn text(&self) -> String {
        format!("{}\n{}", self.ended.stdout, self.ended.stderr)
    }

    /// The output, of a job that ended well and left nothing.
    pub fn succeeded(self) -> String {
        assert!(self.ended.status.success(), "{}\n{}", self.ended.status, self.text());
        assert!(self.left.is_empty(), "left behind: {:?}", self.left);
        self.ended.stdout
    }

    /// What the ranks wrote in lines `told RANK: ..`, as (rank, text).
    pub fn told(&self) -> Vec<(usize, &str)> {
        let part = |line| str::split_once(str::strip_prefix(line, "told ")?, ": ");
        let told = self.ended.stdout.lines().filter_map(part);
        let mut told: Vec<_> = told.filter_map(|(rank, text)| Some((rank.parse().ok()?, text))).collect();
        told.sort_unstable();
        told
    }
}

/// Options of mpirun with which the others live to tell of a rank's death. On clusters they do only where it exits: one
/// that a signal ends takes its host's launcher along.
pub fn others_live(library: Library) -> &'static [&'static str] {
    match library.family {
        Family::OpenMpi => &[],
        _ => &["-disable-auto-cleanup"],
    }
}

/// Runs a program of `built` on hosts, under the mpirun of `library`; nothing where that is impossible here.
pub fn run_built_for(
    built: Library,
    library: Library,
    hosts: Hosts,
    variables: &[(&str, &str)],
    words: &[&str],
) -> Option<Done> {
    run_with(built, library, hosts, &[], variables, words)
}

/// [`run`] with further options of mpirun.
pub fn run_with(
    built: Library,
    library: Library,
    hosts: Hosts,
    options: &[&str],
    variables: &[(&str, &str)],
    words: &[&str],
) -> Option<Done> {
    // Ranks of two jobs at once would wait for each other's turns on the cores.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    if !(built.is_here() && library.is_here()) {
        return None;
    }
    if !matches!(hosts, Hosts::One(_))
        && let Some((tool, package)) = TOOLS.into_iter().find(|(tool, _)| find(tool).is_none())
    {
        let why = format!("no emulated cluster without {tool}: apt-get install --no-install-recommends {package}");
        skip(REQUIRED, &why);
        return None;
    }
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = built.programs();
    let program = match words[0] {
        example @ ("digits" | "cg" | "transport_mpi") => folder.join("examples").join(example),
        "phalanx" => folder.join("phalanx"),
        _ => folder.join("mpi_rank"),
    };
    let words = if program.ends_with("mpi_rank") { words } else { &words[1..] };
    let mut inner = match hosts {
        Hosts::One(ranks) => {
            let mut mpirun = library.mpirun();
            mpirun.args(options);
            mpirun.args(["-n", &ranks.to_string()]);
            mpirun
        }
        _ => {
            let mut run = on_cluster(library, hosts);
            run.args(options);
            run
        }
    };
    inner.arg(&program).args(words);
    let mut job = command::bare("timeout".as_ref());
    job.args(["-k", "5", &LIMIT.to_string()]).arg(inner.get_program()).args(inner.get_args());
    job.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mark = Mark::new();
    job.envs([mark.variable()]).env("CARGO_TARGET_DIR", target()).current_dir(root());
    for &(name, value) in variables {
        job.env(name, value);
    }
    let mut ended = command::run(&mut job, Duration::from_secs(LIMIT + 20));
    for _ in 0..STARTS - 1 {
        let is_silent = ended.stdout.is_empty() && ended.stderr.is_empty();
        if !(is_silent && ended.status.signal() == Some(SIGPIPE)) {
            break;
        }
        eprintln!("{library:?}: the launcher was ended by SIGPIPE before any rank had said a word: started again");
        ended = command::run(&mut job, Duration::from_secs(LIMIT + 20));
    }
    if ended.status.code() == Some(FORBIDDEN) && !matches!(hosts, Hosts::One(_)) {
        skip(REQUIRED, ended.stderr.trim());
        return None;
    }
    Some(Done { ended, left: mark.left_behind(Duration::from_millis(500)) })
}

/// [`run_built_for`] one MPI under its own mpirun.
pub fn run(library: Library, hosts: Hosts, variables: &[(&str, &str)], words: &[&str]) -> Option<Done> {
    run_built_for(library, library, hosts, variables, words)
}

/// The start of the command line for ranks on the hosts of an emulated cluster.
fn on_cluster(library: Library, hosts: Hosts) -> Command {
    let (slots, placement) = match hosts {
        Hosts::Cluster(_, slots, placement) => (slots, placement),
        Hosts::Uneven(ranks) => (ranks.iter().copied().max().unwrap_or(1), "block"),
        Hosts::One(ranks) => (ranks, "block"),
    };
    let count = hosts.nodes();
    let mut run = command::bare(&root().join("scripts/cluster/run"));
    run.args(["-q", "-r", "0", "-n", &count.to_string(), "-s", &count.div_ceil(2).to_string()]);
    run.args(["--slots", &slots.to_string(), "--placement", placement, "--mpi", &library.on_cluster(), "--share"]);
    run.arg(target().join(format!("mpi-{}", library.name))).args(["--", "sh", "-c", START, "sh"]);
    if let Hosts::Uneven(ranks) = hosts {
        let list: Vec<String> = ranks.iter().enumerate().map(|(host, ranks)| format!("n{host}:{ranks}")).collect();
        let option = if library.family == Family::OpenMpi { "--host" } else { "-hosts" };
        run.args([option, &list.join(","), "-np", &hosts.ranks().to_string()]);
    }
    run
}
