//! A machine as plain data: its PUs, and what each of them shares with which others.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

use crate::Error;

/// One PU: what the operating system schedules on, a hardware thread of a core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pu {
    /// The number by which the operating system knows it, as in an affinity mask.
    pub os: usize,
    /// The core that it is a hardware thread of.
    pub core: usize,
    /// The L3 cache that it shares.
    pub l3: usize,
    /// The NUMA node whose memory is near.
    pub numa: usize,
    /// The package (socket) that it sits on.
    pub package: usize,
}

/// Where a set of PUs lies: the index of the one package, NUMA node, L3 cache and core that holds all of it.
///
/// `None` where the set spans more than one of that kind, or holds no PU that the machine knows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Location {
    /// The package that holds all PUs of the set.
    pub package: Option<usize>,
    /// The NUMA node that holds all PUs of the set.
    pub numa: Option<usize>,
    /// The L3 cache that all PUs of the set share.
    pub l3: Option<usize>,
    /// The core that all PUs of the set belong to.
    pub core: Option<usize>,
}

/// All PUs of a machine, neighbours beside each other.
///
/// Cores, L3 caches, NUMA nodes and packages are counted from 0 without gaps, each over the whole machine, in the
/// order in which the PUs list them. Of what a machine does not have (an L3, say), it counts one that all PUs share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// I1: not empty; no two with the same `os`; indexes dense; every core in one L3, NUMA node and package.
    pus: Vec<Pu>,
    /// I2: maps the `os` of `pus[i]` to `i`.
    by_os: BTreeMap<usize, usize>,
    cores: usize,
    l3s: usize,
    numas: usize,
    packages: usize,
}

impl Machine {
    /// Makes a machine from its PUs. Indexes other than `os` may be any numbers: they are counted anew from 0.
    ///
    /// # Errors
    ///
    /// * [`Error::Machine`] when there is no PU, when two have the same `os`, or when the PUs of one core differ in
    ///   L3 cache, NUMA node or package.
    pub fn new(mut pus: Vec<Pu>) -> Result<Self, Error> {
        let contradiction = |reason| Err(Error::Machine { reason });
        if pus.is_empty() {
            return contradiction("there is none".to_owned());
        }
        let cores = count_anew(&mut pus, |pu| &mut pu.core);
        let l3s = count_anew(&mut pus, |pu| &mut pu.l3);
        let numas = count_anew(&mut pus, |pu| &mut pu.numa);
        let packages = count_anew(&mut pus, |pu| &mut pu.package);

        let mut by_os = BTreeMap::new();
        let mut first_of_core: Vec<Option<Pu>> = vec![None; cores];
        for (i, &pu) in pus.iter().enumerate() {
            if by_os.insert(pu.os, i).is_some() {
                return contradiction(format!("PU {} is listed twice", pu.os));
            }
            let first = first_of_core[pu.core].get_or_insert(pu);
            if (first.l3, first.numa, first.package) != (pu.l3, pu.numa, pu.package) {
                return contradiction(format!(
                    "PUs {} and {} share a core, but not L3, NUMA node and package",
                    first.os, pu.os
                ));
            }
        }
        Ok(Machine { pus, by_os, cores, l3s, numas, packages })
    }

    /// The PUs, neighbours beside each other (hwloc's logical order).
    pub fn pus(&self) -> &[Pu] {
        &self.pus
    }

    /// The PU that the operating system knows as `os`.
    pub fn pu(&self, os: usize) -> Option<&Pu> {
        self.by_os.get(&os).map(|&i| &self.pus[i])
    }

    /// How many cores there are.
    pub fn cores(&self) -> usize {
        self.cores
    }

    /// How many L3 caches there are; at least one.
    pub fn l3s(&self) -> usize {
        self.l3s
    }

    /// How many NUMA nodes with PUs there are; at least one.
    pub fn numas(&self) -> usize {
        self.numas
    }

    /// How many packages (sockets) there are; at least one.
    pub fn packages(&self) -> usize {
        self.packages
    }

    /// Where the PUs with these `os` numbers lie. PUs that the machine does not know are passed over.
    ///
    /// ```
    /// # fn main() -> Result<(), topo::Error> {
    /// let machine = topo::Machine::synthetic("pack:2 core:2 pu:2")?;
    /// let both_threads_of_a_core = machine.location(&[2, 3]);
    /// assert_eq!((both_threads_of_a_core.package, both_threads_of_a_core.core), (Some(0), Some(1)));
    /// let one_of_each_socket = machine.location(&[0, 4]);
    /// assert_eq!((one_of_each_socket.package, one_of_each_socket.core), (None, None));
    /// # Ok(())
    /// # }
    /// ```
    pub fn location(&self, pus: &[usize]) -> Location {
        let mut known = pus.iter().filter_map(|&os| self.pu(os));
        let Some(first) = known.next() else {
            return Location::default();
        };
        let mut location = Location {
            package: Some(first.package),
            numa: Some(first.numa),
            l3: Some(first.l3),
            core: Some(first.core),
        };
        for pu in known {
            location.package = location.package.filter(|&index| index == pu.package);
            location.numa = location.numa.filter(|&index| index == pu.numa);
            location.l3 = location.l3.filter(|&index| index == pu.l3);
            location.core = location.core.filter(|&index| index == pu.core);
        }
        location
    }
}

/// Counts one kind of index anew, from 0 in the order of first appearance; returns how many there are.
fn count_anew(pus: &mut [Pu], index: impl Fn(&mut Pu) -> &mut usize) -> usize {
    let mut counter = Counter::default();
    for pu in pus {
        let index = index(pu);
        *index = counter.number(*index);
    }
    counter.count()
}

/// Numbers keys from 0 in the order of their first appearance.
pub(crate) struct Counter<K>(HashMap<K, usize>);

impl<K> Default for Counter<K> {
    fn default() -> Self {
        Counter(HashMap::new())
    }
}

impl<K: Eq + Hash> Counter<K> {
    /// The number of `key`: its old one, or the next free one.
    pub(crate) fn number(&mut self, key: K) -> usize {
        let next = self.0.len();
        *self.0.entry(key).or_insert(next)
    }

    /// How many numbers were given out.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pu(os: usize, core: usize, package: usize) -> Pu {
        Pu { os, core, l3: package, numa: package, package }
    }

    #[test]
    fn counts_indexes_anew() {
        let machine = Machine::new(vec![pu(4, 70, 9), pu(5, 70, 9), pu(6, 50, 3)]).unwrap();
        assert_eq!(machine.pus(), [pu(4, 0, 0), pu(5, 0, 0), pu(6, 1, 1)]);
        assert_eq!((machine.cores(), machine.packages(), machine.l3s(), machine.numas()), (2, 2, 2, 2));
        assert_eq!(machine.pu(6).map(|pu| pu.package), Some(1));
        assert_eq!(machine.pu(0), None);
    }

    #[test]
    fn refuses_what_is_no_machine() {
        for (pus, why) in [
            (vec![], "there is none"),
            (vec![pu(0, 0, 0), pu(0, 1, 0)], "PU 0 is listed twice"),
            (vec![pu(0, 0, 0), pu(1, 0, 1)], "PUs 0 and 1 share a core"),
        ] {
            let error = Machine::new(pus).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn unknown_pus_have_no_place() {
        let machine = Machine::new(vec![pu(0, 0, 0), pu(1, 1, 0)]).unwrap();
        assert_eq!(machine.location(&[]), Location::default());
        assert_eq!(machine.location(&[77]), Location::default());
        assert_eq!(machine.location(&[1, 77]).core, Some(1));
    }
}
