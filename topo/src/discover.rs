//! The one door to hwloc: a topology goes in, a plain [`Machine`] comes out.
//!
//! Nothing of hwloc leaves this module, so that the rest of the crate can be read, tested and ported without it.
//! hwloc prints nothing about a bad description unless `HWLOC_SYNTHETIC_VERBOSE` or `HWLOC_XML_VERBOSE` is set.

use std::io::ErrorKind;
use std::path::Path;

use hwlocality::Topology;
use hwlocality::object::types::ObjectType;
use hwlocality::topology::builder::{BuildFlags, TopologyBuilder};

use crate::{Error, Machine, Pu};

impl Machine {
    /// Looks at the machine that this process runs on, all of it: what this process may not use is there too.
    ///
    /// This takes some milliseconds. A launcher does it once and hands [`Machine::to_compact`] on to its ranks.
    /// hwloc obeys `HWLOC_XMLFILE` and `HWLOC_SYNTHETIC`, with which a user can put another machine in place of this
    /// one.
    ///
    /// # Errors
    ///
    /// * [`Error::Discovery`] when hwloc cannot look at the machine, or finds no PU in it.
    #[doc(alias = "hwloc_topology_load")]
    pub fn discover() -> Result<Self, Error> {
        let refused = |reason: String| Error::Discovery { reason };
        let builder = TopologyBuilder::new()
            .with_flags(BuildFlags::INCLUDE_DISALLOWED)
            .map_err(|error| refused(error.to_string()))?;
        let topology = builder.build().map_err(|error| refused(error.to_string()))?;
        plain(&topology).map_err(|error| refused(error.to_string()))
    }

    /// Makes a machine from hwloc's synthetic description, which lists levels from the outside in, each with how many
    /// there are in the one before: `"pack:2 core:20 pu:2"` is two sockets of 20 cores of 2 hardware threads.
    ///
    /// Level names are hwloc's: `pack`, `numa`, `l3`, `core`, `pu` and more. The last level must be `pu`.
    ///
    /// # Errors
    ///
    /// * [`Error::Synthetic`] when hwloc does not understand the description.
    #[doc(alias = "hwloc_topology_set_synthetic")]
    pub fn synthetic(description: &str) -> Result<Self, Error> {
        let refused = |reason: String| Error::Synthetic { description: description.to_owned(), reason };
        if description.trim().is_empty() {
            return Err(refused("it is empty".to_owned()));
        }
        if described_pus(description).is_none_or(|pus| pus > MOST_PUS) {
            return Err(refused(format!("it has more than {MOST_PUS} PUs")));
        }
        let builder = TopologyBuilder::new().from_synthetic(description).map_err(|error| refused(error.to_string()))?;
        let topology = builder.build().map_err(|error| refused(error.to_string()))?;
        plain(&topology).map_err(|error| refused(error.to_string()))
    }

    /// Reads a machine from an XML file of hwloc 2, such as `lstopo-no-graphics machine.xml` writes.
    ///
    /// # Errors
    ///
    /// * [`Error::XmlFile`] when the file cannot be read.
    /// * [`Error::Xml`] when it is not a machine in hwloc's XML.
    #[doc(alias = "hwloc_topology_set_xml")]
    pub fn from_xml_file(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let refused = |reason: String| Error::Xml { path: path.to_owned(), reason };
        let xml = crate::read_text(path).map_err(|source| match source.kind() {
            ErrorKind::InvalidData => refused(source.to_string()),
            _ => Error::XmlFile { path: path.to_owned(), source },
        })?;
        if xml.trim().is_empty() {
            return Err(refused("it is empty".to_owned()));
        }
        if let Some(missing) = missing_set(&xml) {
            return Err(refused(format!("an object has no {missing}")));
        }
        let flags = BuildFlags::INCLUDE_DISALLOWED;
        let builder = TopologyBuilder::new().with_flags(flags).map_err(|error| refused(error.to_string()))?;
        let builder = builder.from_xml(&xml).map_err(|error| refused(error.to_string()))?;
        let topology = builder.build().map_err(|error| refused(error.to_string()))?;
        plain(&topology).map_err(|error| refused(error.to_string()))
    }
}

/// The set that an object lacks which hwloc takes for granted, and writes with the other one: 2.9 does not look whether
/// it is there, and follows a null pointer. What else is missing it refuses itself.
fn missing_set(xml: &str) -> Option<&'static str> {
    xml.split("<object").skip(1).find_map(|object| {
        let names = attributes(object);
        let pairs = [("cpuset", "complete_cpuset"), ("nodeset", "complete_nodeset")];
        let lacking = pairs.into_iter().find(|(set, whole)| names.contains(set) && !names.contains(whole));
        lacking.map(|(_, whole)| whole)
    })
}

/// The names of a tag's attributes, as far as they are such.
fn attributes(mut tag: &str) -> Vec<&str> {
    let mut names = Vec::new();
    while let Some((name, rest)) = tag.split_once('=').filter(|(name, _)| !name.contains('>')) {
        let rest = rest.trim_start();
        let Some(quote) = rest.chars().next().filter(|quote| matches!(quote, '"' | '\'')) else { break };
        let Some((_, rest)) = rest[1..].split_once(quote) else { break };
        names.push(name.trim());
        tag = rest;
    }
    names
}

/// More than any machine has; hwloc takes minutes for a million.
const MOST_PUS: usize = 1 << 15;

/// The PUs of a synthetic description, as far as it is one: the product of what its levels count. Nothing if they are
/// beyond counting.
fn described_pus(description: &str) -> Option<usize> {
    let mut product = 1_usize;
    for (_, count) in description.split_whitespace().filter_map(|level| level.split_once(':')) {
        let digits = count.bytes().take_while(u8::is_ascii_digit).count();
        if digits > 0 {
            product = product.checked_mul(count[..digits].parse().ok()?)?;
        }
    }
    Some(product)
}

/// Turns a topology into plain data. What a PU has no object of counts as one that all such PUs share, except for the
/// core: a PU without one is a core of its own.
fn plain(topology: &Topology) -> Result<Machine, Error> {
    // Indexes of objects that exist come after 0, which stands for the one that is missing.
    let nodes: Vec<_> = topology.objects_with_type(ObjectType::NUMANode).collect();
    let mut pus = Vec::new();
    for pu in topology.objects_with_type(ObjectType::PU) {
        let Some(os) = pu.os_index() else { continue };
        let above = |kind| pu.first_ancestor_with_type(kind).map(|object| object.logical_index() + 1);
        // A node is no ancestor of its PUs. Where several cover one PU (a fast and a large memory), the first counts.
        let numa = nodes
            .iter()
            .position(|node| node.cpuset().is_some_and(|set| set.iter_set().any(|index| usize::from(index) == os)));
        pus.push(Pu {
            os,
            core: above(ObjectType::Core).unwrap_or(usize::MAX - os),
            l3: above(ObjectType::L3Cache).unwrap_or(0),
            numa: numa.map_or(0, |node| node + 1),
            package: above(ObjectType::Package).unwrap_or(0),
        });
    }
    Machine::new(pus)
}
