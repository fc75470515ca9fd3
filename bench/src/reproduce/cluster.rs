//! Commands of `bench across`: one cluster, several sizes.

use super::outcome::{How, Ran};
use super::piece::{Piece, Words, Work};
use super::run::Known;
use crate::across::bound::Rate;
use crate::across::program::Library;
use crate::error::{Error, Result};
use crate::sizes::show_size;

/// A cluster, and what ranks on it do.
#[derive(Clone, Debug)]
pub struct Job {
    /// The name of the group of pieces, and what it is called in the outcome.
    pub group: &'static str,
    /// Hosts.
    pub hosts: usize,
    /// Ranks on each.
    pub slots: usize,
    /// Hosts on each switch; none for one switch.
    pub per_switch: Option<usize>,
    /// Rate of links and trunks.
    pub rate: Rate,
    /// Where ranks are.
    pub placement: &'static str,
    /// Whose launcher.
    pub mpi: Library,
    /// Whether messages of all sizes are sent at once.
    pub eager: bool,
    /// `allreduce` or `broadcast`.
    pub collective: &'static str,
    /// Message bytes, a piece each.
    pub sizes: Vec<u64>,
    /// Timed calls.
    pub calls: u32,
    /// What takes turns.
    pub series: Vec<String>,
    /// Words that only the first piece has: what is measured once.
    pub once: Vec<String>,
}

impl Job {
    /// The command for some sizes.
    fn words(&self, sizes: &[u64], first: bool, known: &Known) -> Words {
        let text = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let (hosts, slots, calls) = (self.hosts.to_string(), self.slots.to_string(), self.calls.to_string());
        let mut words = text(&["across", "--hosts", &hosts, "--slots", &slots, "--rate", &self.rate.to_string()]);
        if let Some(hosts) = self.per_switch {
            words.extend(text(&["--per-switch", &hosts.to_string()]));
        }
        if self.placement != "block" {
            words.extend(text(&["--placement", self.placement]));
        }
        words.extend(text(&["--mpi", self.mpi.name(), if self.eager { "--eager" } else { "--stock" }]));
        if self.collective != "allreduce" {
            words.extend(text(&["--collective", self.collective]));
        }
        let sizes: Vec<String> = sizes.iter().map(|&bytes| show_size(bytes)).collect();
        words.extend(text(&["--sizes", &sizes.join(","), "--calls", &calls]));
        for series in &self.series {
            words.extend(text(&["--series", series]));
        }
        if first {
            words.extend(self.once.iter().cloned());
        } else {
            words.push("--no-goodput".into());
        }
        Words { words, variables: Vec::new(), private: known.private.clone(), cluster: true }
    }

    /// The pieces: one a size, so that little is lost when a study is stopped.
    pub fn pieces(&self, known: &Known) -> Vec<Piece> {
        let piece = |(place, &bytes): (usize, &u64)| Piece {
            key: format!("{}/{}", self.group, show_size(bytes)),
            work: Work::Command(self.words(&[bytes], place == 0, known)),
        };
        self.sizes.iter().enumerate().map(piece).collect()
    }

    /// Where it runs, for the outcome.
    pub fn ran(&self, library: &str) -> Ran {
        let Job { hosts, slots, rate, .. } = self;
        let mut place = format!("{} ranks on {hosts} hosts x {slots}, links {rate}", hosts * slots);
        if let Some(each) = self.per_switch.filter(|each| each < hosts) {
            place += &format!(", {each} hosts a switch");
        }
        let sent = if self.eager { "messages of all sizes eager" } else { "stock settings" };
        place += &format!(", placed {}, {sent}, {library}", self.placement);
        Ran {
            name: self.group.into(),
            how: How::Measured,
            place: place.trim_end_matches(", ").into(),
            command: self.words(&self.sizes, true, &Known::default()).to_string(),
        }
    }
}

/// Refuses what cannot be: fewer than `least` hosts, or more than the emulated cluster has.
///
/// # Errors
///
/// [`Error::Usage`].
pub fn check_hosts(hosts: usize, least: usize, why: &str) -> Result<()> {
    if hosts < least {
        return Err(Error::Usage(format!("--hosts {hosts}: {least} or more are needed, {why}")));
    }
    if hosts > 250 {
        return Err(Error::Usage(format!("--hosts {hosts}: the emulated cluster has 250 at most")));
    }
    Ok(())
}

/// Refuses sizes that are no elements.
///
/// # Errors
///
/// [`Error::Usage`].
pub fn check_sizes(sizes: &[u64]) -> Result<()> {
    match sizes.iter().find(|&&bytes| bytes < 8) {
        Some(bytes) => {
            Err(Error::Usage(format!("--sizes: {bytes} bytes are no element: give sizes of 8 bytes or more")))
        }
        None => Ok(()),
    }
}

/// The sizes that are asked for, ascending and each once, or else the study's.
pub fn sizes(asked: &[u64], usual: &[u64]) -> Vec<u64> {
    let mut sizes = if asked.is_empty() { usual.to_vec() } else { asked.to_vec() };
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::across::plan::Plan;
    use crate::command::{Cli, Command};

    fn job() -> Job {
        Job {
            group: "block",
            hosts: 4,
            slots: 2,
            per_switch: Some(2),
            rate: "100mbit".parse().unwrap(),
            placement: "random:1",
            mpi: Library::Mpich,
            eager: true,
            collective: "broadcast",
            sizes: vec![1024, 12288, 524_280],
            calls: 3,
            series: vec!["native".into(), "wide@flat=broadcast:scatter-ring,slice=whole".into()],
            once: vec!["--message-rates".into(), "64".into()],
        }
    }

    #[test]
    fn a_piece_is_a_command_that_bench_takes() {
        let known = Known { private: vec!["--program".into(), "/bin/true".into()] };
        let pieces = job().pieces(&known);
        assert_eq!(
            pieces.iter().map(|piece| piece.key.as_str()).collect::<Vec<_>>(),
            ["block/1K", "block/12K", "block/524280"]
        );
        for (place, piece) in pieces.iter().enumerate() {
            let Work::Command(words) = &piece.work else { panic!() };
            let line = std::iter::once("bench".to_owned()).chain(words.words.clone()).chain(words.private.clone());
            let Command::Across(options) = Cli::try_parse_from(line).unwrap().command else { panic!() };
            let plan = Plan::of_work(&options.work).unwrap();
            assert_eq!((options.hosts, options.slots, options.per_switch), (4, 2, Some(2)));
            assert_eq!((plan.sizes, plan.calls, plan.series.len()), (vec![job().sizes[place]], 3, 2));
            assert_eq!((plan.goodput, plan.rates.is_empty()), (place == 0, place != 0));
        }
    }

    #[test]
    fn the_place_and_its_command_by_words() {
        let ran = job().ran("MPICH 4");
        assert_eq!(
            ran.place,
            "8 ranks on 4 hosts x 2, links 100mbit, 2 hosts a switch, placed random:1, messages of all sizes eager, MPICH 4"
        );
        assert!(ran.command.starts_with("bench across --hosts 4 --slots 2") && !ran.command.contains("--program"));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        assert!(check_hosts(3, 4, "two on each switch").unwrap_err().to_string().contains("--hosts 3: 4 or more"));
        assert!(check_hosts(251, 4, "").is_err() && check_hosts(4, 4, "").is_ok());
        assert!(check_sizes(&[1024, 4]).unwrap_err().to_string().contains("4 bytes"));
        assert_eq!(sizes(&[4096, 8, 8], &[1]), [8, 4096]);
    }
}
