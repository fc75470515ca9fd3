//! By what a machine is known again.

use std::{fmt, fs};

use shm_core::first_processor;
use topo::Machine;

use crate::cores;

/// What a table was measured on. Two machines that are equal in this are taken for alike.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fingerprint {
    /// The processor's name.
    pub model: String,
    /// Sockets.
    pub packages: usize,
    /// Cores.
    pub cores: usize,
    /// Hardware threads.
    pub pus: usize,
    /// Bytes of an L2 cache; 0 where that is not known.
    pub l2: u64,
    /// Bytes of an L3 cache; 0 where that is not known.
    pub l3: u64,
}

impl Fingerprint {
    /// That of the machine on which this process runs. What cannot be found out is empty, or zero.
    #[must_use]
    pub fn of_this_machine() -> Self {
        let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let named = |name: &str| {
            let mut lines = cpu.lines().filter_map(|line| line.split_once(':'));
            lines.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim().to_owned())
        };
        let model = named("model name").or_else(|| named("CPU part")).unwrap_or_default();
        let count = |of: fn(&Machine) -> usize| cores::machine().map_or(0, of);
        Self {
            model,
            packages: count(Machine::packages),
            cores: count(Machine::cores),
            pus: count(|machine| machine.pus().len()),
            l2: first_processor::cache(2),
            l3: first_processor::cache(3),
        }
    }

    /// In what this one differs from `other`, for people.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let mut found = Vec::new();
        if self.model != other.model {
            found.push(format!("processor {:?}, not {:?}", self.model, other.model));
        }
        for (what, own, others) in [
            ("sockets", self.packages as u64, other.packages as u64),
            ("cores", self.cores as u64, other.cores as u64),
            ("hardware threads", self.pus as u64, other.pus as u64),
            ("bytes of L2", self.l2, other.l2),
            ("bytes of L3", self.l3, other.l3),
        ] {
            if own != others {
                found.push(format!("{own} {what}, not {others}"));
            }
        }
        found
    }
}

impl fmt::Display for Fingerprint {
    /// All of it, in one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { model, packages, cores, pus, l2, l3 } = self;
        let model = model.split_whitespace().collect::<Vec<_>>().join(" ");
        write!(f, "{model:?} (sockets {packages}, cores {cores}, hardware threads {pus}, L2 {l2}, L3 {l3})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_named() {
        let here = Fingerprint::of_this_machine();
        assert_eq!(here, Fingerprint::of_this_machine());
        assert!(here.differences(&here).is_empty());
        let other = Fingerprint { cores: here.cores + 1, model: "abacus".to_owned(), ..here.clone() };
        let words = here.differences(&other);
        assert!(words.len() == 2 && words[0].contains("abacus") && words[1].contains("cores"), "{words:?}");
    }
}
