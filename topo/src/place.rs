//! Which PUs each rank is to be bound to.

use std::fmt;
use std::str::FromStr;

use crate::machine::Counter;
use crate::{Error, Machine, Usable};

/// How ranks are bound to PUs. Written `core`, `numa` or `none`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum BindPolicy {
    /// Each rank to a core of its own; neighbouring ranks to the same one when there are more ranks than cores.
    #[default]
    Core,
    /// Each rank to a NUMA node, neighbouring ranks to the same one.
    Numa,
    /// No rank is bound; the operating system decides.
    None,
}

impl fmt::Display for BindPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BindPolicy::Core => "core",
            BindPolicy::Numa => "numa",
            BindPolicy::None => "none",
        })
    }
}

impl FromStr for BindPolicy {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "core" => Ok(BindPolicy::Core),
            "numa" => Ok(BindPolicy::Numa),
            "none" => Ok(BindPolicy::None),
            _ => Err(Error::BindPolicy { text: text.to_owned() }),
        }
    }
}

impl Machine {
    /// Deals the usable PUs out to `ranks` ranks: for each rank the `os` numbers of its PUs, or `None` when it is not
    /// to be bound.
    ///
    /// * [`BindPolicy::Core`]: rank `i` gets all usable PUs of the `i`-th usable core; where `n` ranks outnumber `c`
    ///   usable cores, those of core `i * c / n`.
    /// * [`BindPolicy::Numa`]: with `c` usable cores, rank `i` of `n` gets all usable PUs of the NUMA node of core
    ///   `i * c / n`. Each node gets one block of neighbouring ranks, as long as its share of the usable cores.
    /// * [`BindPolicy::None`], or no usable PU that the machine knows: nobody is bound.
    pub fn place(&self, ranks: usize, policy: BindPolicy, usable: &Usable) -> Vec<Option<Vec<usize>>> {
        let cores = self.usable_cores(usable);
        if cores.is_empty() || policy == BindPolicy::None {
            return vec![None; ranks];
        }
        let share = |rank: usize| rank * cores.len() / ranks;
        if policy == BindPolicy::Core {
            let core_of = |rank| if ranks > cores.len() { share(rank) } else { rank };
            return (0..ranks).map(|rank| Some(cores[core_of(rank)].pus.clone())).collect();
        }
        let mut nodes: Vec<Vec<usize>> = vec![Vec::new(); self.numas()];
        for core in &cores {
            nodes[core.numa].extend_from_slice(&core.pus);
        }
        // By node, for a machine whose numbering jumps between nodes.
        let mut node_of_core: Vec<usize> = cores.iter().map(|core| core.numa).collect();
        node_of_core.sort_unstable();
        (0..ranks).map(|rank| Some(nodes[node_of_core[share(rank)]].clone())).collect()
    }

    /// The cores with at least one usable PU, neighbours beside each other.
    pub(crate) fn usable_cores(&self, usable: &Usable) -> Vec<UsableCore> {
        let allowed: std::collections::HashSet<usize> = usable.pus.iter().copied().collect();
        let mut counter = Counter::default();
        let mut cores: Vec<UsableCore> = Vec::new();
        for pu in self.pus().iter().filter(|pu| allowed.contains(&pu.os)) {
            let number = counter.number(pu.core);
            if number == cores.len() {
                cores.push(UsableCore { numa: pu.numa, pus: Vec::new() });
            }
            cores[number].pus.push(pu.os);
        }
        cores
    }
}

/// A core, as far as it is usable.
pub(crate) struct UsableCore {
    numa: usize,
    pus: Vec<usize>,
}
