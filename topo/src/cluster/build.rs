//! From the lines of a description to a tree, or to what contradicts what.

use std::collections::HashMap;

use super::{Cluster, Error, Host, Switch, VIRTUAL_TOP, compress};

/// A place in a text, counted from 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) line: usize,
    pub(super) column: usize,
}

impl Place {
    pub(super) fn error(self, found: String, reason: String, instead: String) -> Error {
        Error::Conf { line: self.line, column: self.column, found, reason, instead }
    }
}

/// What one line of a description says: a switch, and the names of what hangs on it.
#[derive(Debug, Default)]
pub(super) struct Line {
    pub(super) name: String,
    pub(super) place: Place,
    pub(super) hosts: Vec<(String, Place)>,
    pub(super) switches: Vec<(String, Place)>,
    pub(super) speed: Option<u64>,
}

impl Cluster {
    /// Makes the tree that the lines describe.
    pub(super) fn build(lines: Vec<Line>) -> Result<Self, Error> {
        if lines.is_empty() {
            let instead = "describe each switch in a line, as in `SwitchName=s0 Nodes=n[0-15]`".to_owned();
            return Err(Place { line: 1, column: 1 }.error(
                "nothing".to_owned(),
                "there is no switch".to_owned(),
                instead,
            ));
        }
        let mut switch_of_name = HashMap::new();
        for (switch, line) in lines.iter().enumerate() {
            if let Some(first) = switch_of_name.insert(&line.name[..], switch) {
                let reason = format!("line {} describes this switch too", lines[first].place.line);
                let instead = "write one line for each switch, with all that hangs on it".to_owned();
                return Err(line.place.error(line.name.clone(), reason, instead));
            }
        }

        let mut switches: Vec<Switch> = Vec::with_capacity(lines.len() + 1);
        let mut hosts: Vec<Host> = Vec::new();
        let mut first_place: Vec<Place> = Vec::new();
        let mut by_name = HashMap::new();
        for (switch, line) in lines.iter().enumerate() {
            let above = hosts.len();
            for (name, place) in &line.hosts {
                if let Some(first) = by_name.insert(name.clone(), hosts.len()) {
                    let (before, other) = (first_place[first], &lines[hosts[first].switch].name);
                    let reason = format!(
                        "this host hangs on `{other}` already (line {}, column {})",
                        before.line, before.column
                    );
                    let instead = "name each host once: routes must be unique".to_owned();
                    return Err(place.error(name.clone(), reason, instead));
                }
                hosts.push(Host { name: name.clone(), switch });
                first_place.push(*place);
            }
            switches.push(Switch {
                name: line.name.clone(),
                parent: None,
                hosts: (above..hosts.len()).collect(),
                switches: Vec::new(),
                speed: line.speed,
            });
        }
        for (switch, line) in lines.iter().enumerate() {
            for (name, place) in &line.switches {
                let Some(&child) = switch_of_name.get(&name[..]) else {
                    let reason = "no line describes this switch".to_owned();
                    let instead = format!("add `SwitchName={name} Nodes=..`, or remove it from this list");
                    return Err(place.error(name.clone(), reason, instead));
                };
                if let Some(other) = switches[child].parent {
                    let reason = format!(
                        "this switch hangs on `{}` already (line {})",
                        lines[other].name, lines[other].place.line
                    );
                    let instead = "name each switch below one other: routes must be unique".to_owned();
                    return Err(place.error(name.clone(), reason, instead));
                }
                switches[child].parent = Some(switch);
                switches[switch].switches.push(child);
            }
        }

        let roots: Vec<usize> = (0..switches.len()).filter(|&switch| switches[switch].parent.is_none()).collect();
        refuse_circles(&lines, &switches, &roots)?;
        let mut notes = Vec::new();
        let top = match roots[..] {
            [top] => top,
            _ => {
                notes.push(joined(&switches, &roots));
                let top = switches.len();
                roots.iter().for_each(|&root| switches[root].parent = Some(top));
                let name = VIRTUAL_TOP.to_owned();
                switches.push(Switch { name, parent: None, hosts: Vec::new(), switches: roots, speed: None });
                top
            }
        };
        let count = switches.len();
        let (depth, uplink, below) = (vec![0; count], vec![usize::MAX; count], Vec::with_capacity(count));
        let mut cluster = Cluster { hosts, switches, top, depth, uplink, below, by_name, notes };
        for switch in 0..count {
            if switch != top {
                cluster.uplink[switch] = cluster.hosts.len() + cluster.below.len();
                cluster.below.push(switch);
            }
        }
        for switch in cluster.switches_downwards() {
            cluster.depth[switch] = cluster.switches[switch].parent.map_or(0, |parent| cluster.depth[parent] + 1);
        }
        Ok(cluster)
    }
}

/// Each switch has at most one parent, so one that no root is above of hangs below a circle, or is part of it.
fn refuse_circles(lines: &[Line], switches: &[Switch], roots: &[usize]) -> Result<(), Error> {
    let mut reached = vec![false; switches.len()];
    let mut waiting = roots.to_vec();
    while let Some(switch) = waiting.pop() {
        reached[switch] = true;
        waiting.extend(&switches[switch].switches);
    }
    let Some(start) = reached.iter().position(|&reached| !reached) else { return Ok(()) };
    let mut way = vec![start];
    let mut met = vec![false; switches.len()];
    met[start] = true;
    while let Some(parent) = way.last().and_then(|&last| switches[last].parent) {
        way.push(parent);
        if std::mem::replace(&mut met[parent], true) {
            break;
        }
    }
    // The way ends where it has been before: what lies between is the circle, from below.
    let end = way[way.len() - 1];
    let first = way.iter().position(|&switch| switch == end).unwrap_or(0);
    let circle: Vec<&str> = way[first..].iter().rev().take(9).map(|&switch| &switches[switch].name[..]).collect();
    let dots = if way.len() - first > circle.len() { " > .." } else { "" };
    let reason = format!("switches hang on each other in a circle: {}{dots}", circle.join(" > "));
    let instead = "remove one of these from the `Switches=` of the one before".to_owned();
    Err(lines[end].place.error(lines[end].name.clone(), reason, instead))
}

fn joined(switches: &[Switch], roots: &[usize]) -> String {
    let names: Vec<&str> = roots.iter().map(|&root| &switches[root].name[..]).collect();
    let list = compress(&names);
    format!(
        "{} switches have none above them ({list}), and are treated as joined by one more, {VIRTUAL_TOP}; if a switch \
         joins them, add a line for it, as in `SwitchName=top Switches={list}`",
        roots.len()
    )
}
