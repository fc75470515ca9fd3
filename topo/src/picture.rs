//! The text picture of a machine.

use std::fmt;

use crate::index_list;
use crate::{Machine, Pu};

/// One kind of thing that the picture may show as a level: its name, and the index of it that a PU has.
type Kind = (&'static str, fn(&Pu) -> usize);

/// An indented tree. Levels of which the machine has only one are left out, and so are those that part nothing
/// further; the innermost line lists cores and PUs.
///
/// ```
/// # fn main() -> Result<(), topo::Error> {
/// let machine = topo::Machine::synthetic("pack:2 l3:2 core:2 pu:2")?;
/// assert_eq!(machine.to_string(), "\
/// machine: 2 packages, 1 NUMA node, 4 L3 caches, 8 cores, 16 PUs
/// ├─ package 0
/// │  ├─ L3 cache 0: cores 0-1, PUs 0-3
/// │  └─ L3 cache 1: cores 2-3, PUs 4-7
/// └─ package 1
///    ├─ L3 cache 2: cores 4-5, PUs 8-11
///    └─ L3 cache 3: cores 6-7, PUs 12-15");
/// # Ok(())
/// # }
/// ```
impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |number, one: &str| format!("{number} {one}{}", if number == 1 { "" } else { "s" });
        write!(
            f,
            "machine: {}, {}, {}, {}, {}",
            count(self.packages(), "package"),
            count(self.numas(), "NUMA node"),
            count(self.l3s(), "L3 cache"),
            count(self.cores(), "core"),
            count(self.pus().len(), "PU"),
        )?;
        let kinds: [Kind; 3] = [("package", |pu| pu.package), ("NUMA node", |pu| pu.numa), ("L3 cache", |pu| pu.l3)];
        let all: Vec<&Pu> = self.pus().iter().collect();
        inside(f, &all, &kinds, "")
    }
}

/// Writes what is inside of one box: its parts, each on a line of its own, or its cores and PUs on the same line.
fn inside(f: &mut fmt::Formatter<'_>, pus: &[&Pu], kinds: &[Kind], indent: &str) -> fmt::Result {
    let Some((&(name, index), inner)) = kinds.split_first() else {
        return cores_and_pus(f, pus);
    };
    let parts = part(pus, index);
    if parts.len() == 1 {
        return inside(f, pus, inner, indent);
    }
    for (i, part) in parts.iter().enumerate() {
        let last = i + 1 == parts.len();
        write!(f, "\n{indent}{} {name} {}", if last { "└─" } else { "├─" }, index(part[0]))?;
        inside(f, part, inner, &format!("{indent}{}", if last { "   " } else { "│  " }))?;
    }
    Ok(())
}

fn cores_and_pus(f: &mut fmt::Formatter<'_>, pus: &[&Pu]) -> fmt::Result {
    let mut cores: Vec<usize> = pus.iter().map(|pu| pu.core).collect();
    cores.sort_unstable();
    cores.dedup();
    let mut numbers: Vec<usize> = pus.iter().map(|pu| pu.os).collect();
    numbers.sort_unstable();
    let s = |list: &[usize]| if list.len() == 1 { "" } else { "s" };
    write!(f, ": core{} {}, PU{} {}", s(&cores), index_list::format(&cores), s(&numbers), index_list::format(&numbers))
}

/// Parts the PUs by an index, in the order of first appearance.
fn part<'a>(pus: &[&'a Pu], index: fn(&Pu) -> usize) -> Vec<Vec<&'a Pu>> {
    let mut counter = crate::machine::Counter::default();
    let mut parts: Vec<Vec<&Pu>> = Vec::new();
    for &pu in pus {
        let number = counter.number(index(pu));
        if number == parts.len() {
            parts.push(Vec::new());
        }
        parts[number].push(pu);
    }
    parts
}
