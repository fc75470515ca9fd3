//! What a figure was taken on: commit, machine, compiler, command line, load.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::sources;
use crate::machine::{Cache, busy_cores, caches, usable_cores};
use crate::sizes::show_size;

/// The circumstances of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Date and time of the beginning, UTC.
    pub time: String,
    /// The commit, whether the work tree differed from it, and whether this program is built of other sources than lie
    /// there.
    pub commit: String,
    /// The host's name.
    pub host: String,
    /// The processor's name.
    pub cpu: String,
    /// Processors that this process may use.
    pub cores: Vec<usize>,
    /// Processors of the machine.
    pub online: String,
    /// The control group's limit on processor time.
    pub quota: String,
    /// The kernel.
    pub kernel: String,
    /// Caches of core 0.
    pub caches: Vec<Cache>,
    /// Kilobytes of memory.
    pub memory: String,
    /// The compiler that made this program.
    pub rustc: String,
    /// Optimised or not.
    pub build: String,
    /// The command line.
    pub command: String,
    /// Environment variables that change what is measured.
    pub environment: Vec<String>,
    /// Cores that were busy before the run; none in a record that has the load average of a minute instead.
    #[serde(default)]
    pub busy: Option<f64>,
    /// That.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<f64>,
    /// The table that jobs of this user take unasked, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    /// The baselines and their versions.
    pub baselines: Vec<String>,
}

impl Host {
    /// Looks at this machine, before anything is measured.
    pub fn look() -> Host {
        let read = |path: &str| fs::read_to_string(path).map(|text| text.trim().to_string()).unwrap_or_default();
        let field = |path: &str, key: &str| {
            let text = read(path);
            let line = text.lines().find(|line| line.starts_with(key));
            line.and_then(|line| line.split_once(':')).map_or_else(String::new, |(_, value)| value.trim().to_string())
        };
        Host {
            time: date_and_time(SystemTime::now()),
            commit: commit(Path::new(env!("CARGO_MANIFEST_DIR")), env!("BENCH_SOURCES")),
            host: read("/proc/sys/kernel/hostname"),
            cpu: field("/proc/cpuinfo", "model name"),
            cores: usable_cores(),
            online: read("/sys/devices/system/cpu/online"),
            quota: read("/sys/fs/cgroup/cpu.max"),
            kernel: read("/proc/sys/kernel/osrelease"),
            caches: caches(),
            memory: field("/proc/meminfo", "MemTotal"),
            rustc: env!("BENCH_RUSTC").into(),
            build: if cfg!(debug_assertions) { "debug: figures mean little" } else { "release" }.into(),
            command: std::env::args().collect::<Vec<_>>().join(" "),
            environment: std::env::vars()
                .filter(|(name, _)| {
                    ["PHALANX_", "OMPI_", "MPIR_", "I_MPI_", "UCX_", "MALLOC_"].iter().any(|p| name.starts_with(p))
                })
                .map(|(name, value)| format!("{name}={value}"))
                .collect(),
            busy: busy_cores(),
            load: None,
            table: table(),
            baselines: Vec::new(),
        }
    }

    /// The date alone, as record folders carry it.
    pub fn date(&self) -> &str {
        self.time.split('T').next().unwrap_or_default()
    }

    /// The commit in twelve digits, and what is to be said of it.
    pub fn short_commit(&self) -> String {
        let digits = self.commit.find([',', ' ']).unwrap_or(self.commit.len());
        let (commit, rest) = self.commit.split_at(digits);
        format!("{commit:.12}{rest}")
    }

    /// One line for a terminal.
    pub fn line(&self) -> String {
        format!(
            "{}: {}, {} usable cores, Linux {}, {}, commit {}",
            self.host,
            self.cpu,
            self.cores.len(),
            self.kernel,
            self.busy_words(),
            self.commit
        )
    }

    /// What other programs did before the run.
    pub fn busy_words(&self) -> String {
        match (self.busy, self.load) {
            (Some(busy), _) => format!("{busy:.2} cores busy"),
            (None, Some(load)) => format!("load average {load:.2}"),
            (None, None) => "not known".into(),
        }
    }

    /// All of it as text.
    pub fn render(&self) -> String {
        let caches: Vec<String> = self
            .caches
            .iter()
            .map(|c| format!("L{} {} {} (cores {})", c.level, c.kind, show_size(c.bytes), c.shared_by))
            .collect();
        let cores: Vec<String> = self.cores.iter().map(usize::to_string).collect();
        let lines = [
            ("time", self.time.clone()),
            ("commit", self.commit.clone()),
            ("host", self.host.clone()),
            ("cpu", self.cpu.clone()),
            ("usable cores", cores.join(",")),
            ("online cores", self.online.clone()),
            ("cpu quota", self.quota.clone()),
            ("memory", self.memory.clone()),
            ("caches", caches.join("; ")),
            ("kernel", self.kernel.clone()),
            ("rustc", self.rustc.clone()),
            ("build", self.build.clone()),
            ("command", self.command.clone()),
            ("environment", self.environment.join(" ")),
            ("before", self.busy_words()),
            ("table", self.table.clone().unwrap_or_else(|| "the built-in one".into())),
            ("baselines", self.baselines.join("; ")),
        ];
        let kept = lines.into_iter().filter(|(_, value)| !value.is_empty());
        kept.map(|(name, value)| format!("{name:<14} {value}\n")).collect()
    }
}

/// The file of the table that a job takes here, if it takes one.
fn table() -> Option<String> {
    use hier::table::Asked;
    match Asked::from_environment() {
        Asked::File { path, .. } => Some(path),
        Asked::Usual(place) => place.filter(|path| path.exists()),
        Asked::BuiltIn => None,
    }
    .map(|path| path.display().to_string())
}

/// The commit of the work tree of `package`, with `dirty` behind it when files differ from it, and with a word that
/// tells it when its sources have another mark than `built`.
fn commit(package: &Path, built: &str) -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").arg("-C").arg(package).args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_string())
    };
    let text = match (git(&["rev-parse", "HEAD"]), git(&["status", "--porcelain", "--untracked-files=no"])) {
        (Some(commit), Some(changes)) if changes.is_empty() => commit,
        (Some(commit), _) => format!("{commit} dirty"),
        (None, _) => return "unknown".into(),
    };
    match sources::mark(&package.join("..")) {
        Ok(mark) if mark == built => text,
        Ok(_) => text + ", built of other sources",
        Err(error) => format!("{text}, sources not read: {error}"),
    }
}

/// `2026-11-21T03:48:05Z`.
fn date_and_time(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (year, month, day) = date(seconds / 86400);
    let rest = seconds % 86400;
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", rest / 3600, rest / 60 % 60, rest % 60)
}

/// Year, month and day, `days` after the first of January 1970.
fn date(mut days: u64) -> (u64, u64, u64) {
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 1;
    for length in lengths {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    (year, month, days + 1)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (1_798_761_599, "2026-12-31T23:59:59Z"),
        ] {
            assert_eq!(date_and_time(UNIX_EPOCH + Duration::from_secs(seconds)), text);
        }
    }

    #[test]
    fn a_look_finds_what_matters() {
        let host = Host::look();
        let text = host.render();
        for word in ["commit", "usable cores", "rustc", "before"] {
            assert!(text.contains(word), "{word} in {text}");
        }
        assert_eq!(host.date().len(), 10);
    }

    #[test]
    fn a_short_commit_keeps_what_is_said_of_it() {
        let commit = "0123456789abcdef0123456789abcdef01234567";
        for rest in ["", " dirty", ", built of other sources", " dirty, built of other sources"] {
            let host = Host { commit: format!("{commit}{rest}"), ..Host::look() };
            assert_eq!(host.short_commit(), format!("0123456789ab{rest}"));
        }
        let unknown = Host { commit: "unknown".into(), ..Host::look() };
        assert_eq!(unknown.short_commit(), "unknown");
    }

    #[test]
    fn outside_of_a_repository_the_commit_is_unknown() {
        assert_eq!(commit(Path::new("/"), ""), "unknown");
    }

    #[test]
    fn other_sources_than_were_built_are_told() {
        let package = Path::new(env!("CARGO_MANIFEST_DIR"));
        let [own, other] = [env!("BENCH_SOURCES"), "another mark"].map(|built| commit(package, built));
        assert!(!own.contains("other sources"), "{own}");
        assert!(other == "unknown" || other == format!("{own}, built of other sources"), "{other}");
    }
}
