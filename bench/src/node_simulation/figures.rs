//! A machine file: what the machine looks like, what everything on it costs, and where each figure comes from.

use std::path::Path;

use serde::Deserialize;
use topo::{BindPolicy, Machine, Usable};

use super::places::Place;
use crate::error::{Error, Result};

/// Picoseconds: the unit of virtual time. Whole numbers, so that equal runs are equal to the last digit.
pub type Time = u64;

/// How a figure came about. The first word of its `source`.
const KINDS: [&str; 5] = ["published", "measured", "fitted", "derived", "assumed"];

/// A figure, and where it comes from.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// The number, in the unit of its table.
    pub value: f64,
    /// `published: ..`, `measured: ..`, `fitted: ..`, `derived: ..` or `assumed: ..`.
    pub source: String,
}

impl Figure {
    /// How it came about: the first word of its source.
    pub fn kind(&self) -> &str {
        self.source.split(':').next().unwrap_or_default()
    }
}

/// How far the other core is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Distance {
    /// It shares the L3 cache.
    L3 = 0,
    /// It has another L3 cache, in the same socket.
    Socket = 1,
    /// It sits in another socket.
    Other = 2,
}

/// A figure for each distance.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Distances {
    /// Between cores that share an L3 cache.
    pub l3: Figure,
    /// Between L3 caches of a socket; as `l3` where a socket has one.
    pub socket: Option<Figure>,
    /// Between sockets; as `socket` where there is one.
    pub other: Option<Figure>,
}

/// What a machine file holds. Times in nanoseconds, rates in GB/s (10^9 bytes).
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct MachineFile {
    /// For titles.
    pub name: String,
    /// hwloc's synthetic description: `pack:2 l3:1 core:20 pu:1`.
    pub topology: String,
    /// Cache sizes in bytes.
    pub cache: Caches,
    /// From asking for a line that another core has written until it is there.
    pub fetch_ns: Distances,
    /// From a store to a line that other cores hold until they no longer do: the store is visible then.
    pub own_ns: Distances,
    /// Between two lines that one core asked for one after the other, when their transfers overlap.
    pub gap_ns: Distances,
    /// Between two cores that one and the same line is given to.
    pub serve_ns: Distances,
    /// Loading from another core's cell.
    pub read_gbs: Distances,
    /// Storing to an own cell that other cores have read.
    pub write_gbs: Distances,
    /// Rates that depend on no distance.
    pub rates: Rates,
    /// Instructions.
    pub software: Software,
}

/// Cache sizes.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Caches {
    /// Bytes of a core's own cache (L2).
    pub own_bytes: Figure,
    /// Bytes of an L3 cache.
    pub l3_bytes: Figure,
}

/// Rates in GB/s.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Rates {
    /// Loading or storing in a core's own cache.
    pub own: Figure,
    /// Loading or storing private data that lie in the L3 cache.
    pub l3: Figure,
    /// One core, memory.
    pub memory_core: Figure,
    /// All cores of a socket together, memory.
    pub memory_socket: Figure,
    /// What one cell gives out to all its readers together.
    pub serve: Figure,
    /// From one socket to another, one way.
    pub link: Figure,
}

/// Nanoseconds of instructions.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Software {
    /// Arguments, choice, bookkeeping of a call.
    pub call: Figure,
    /// A publication: its store and what is noted beside it.
    pub publish: Figure,
    /// A look at a word in the own cache.
    pub look: Figure,
    /// A copy or a fold, before the first byte.
    pub operation: Figure,
    /// Each operand of a fold, before the first byte.
    pub operand: Figure,
}

/// A machine's figures, ready for use: times in picoseconds, by distance.
#[derive(Clone, Debug)]
pub struct Costs {
    /// From asking for a line until it is there.
    pub fetch: [Time; 3],
    /// From a store until it is visible, where others hold the line.
    pub own: [Time; 3],
    /// Between loads that overlap.
    pub gap: [Time; 3],
    /// Between two cores that a line is given to.
    pub serve: [Time; 3],
    /// Picoseconds a byte: another's cell.
    pub read: [f64; 3],
    /// Picoseconds a byte: an own cell that others hold.
    pub write: [f64; 3],
    /// Picoseconds a byte: the own cache.
    pub own_byte: f64,
    /// The same, the L3 cache.
    pub l3_byte: f64,
    /// The same, memory, one core.
    pub memory_core_byte: f64,
    /// The same, memory, a socket.
    pub memory_socket_byte: f64,
    /// The same, all readers of a cell.
    pub serve_byte: f64,
    /// The same, from socket to socket.
    pub link_byte: f64,
    /// A call.
    pub call: Time,
    /// A publication.
    pub publish: Time,
    /// A look at a word in the own cache.
    pub look: Time,
    /// A copy or a fold.
    pub operation: Time,
    /// Each operand of a fold.
    pub operand: Time,
    /// Bytes of a core's own cache.
    pub own_bytes: usize,
    /// Bytes of an L3 cache.
    pub l3_bytes: usize,
}

/// The machine files that this program carries, by name.
pub const SHIPPED: [(&str, &str); 3] = [
    ("vm-2", include_str!("machines/vm-2.toml")),
    ("xeon-2x20", include_str!("machines/xeon-2x20.toml")),
    ("epyc-2x64", include_str!("machines/epyc-2x64.toml")),
];

impl MachineFile {
    /// The machine of a shipped name, or of a file.
    ///
    /// # Errors
    /// [`Error::File`] where it cannot be read, [`Error::Usage`] where it is no machine.
    pub fn find(text: &str) -> Result<MachineFile> {
        if let Some((_, text)) = SHIPPED.iter().find(|(name, _)| *name == text) {
            return MachineFile::parse(text);
        }
        let path = Path::new(text);
        let content = std::fs::read_to_string(path).map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => {
                let names: Vec<&str> = SHIPPED.iter().map(|(name, _)| *name).collect();
                Error::Usage(format!("{text:?} is neither a file nor one of {}", names.join(", ")))
            }
            _ => Error::file("cannot read", path)(source),
        })?;
        MachineFile::parse(&content).map_err(|error| Error::Usage(format!("{text}: {error}")))
    }

    /// Reads a machine file's text.
    ///
    /// # Errors
    /// [`Error::Usage`] for a missing or unknown entry, a figure that is no positive number, or one without a source.
    pub fn parse(text: &str) -> Result<MachineFile> {
        let file: MachineFile = toml::from_str(text).map_err(|error| Error::Usage(error.to_string()))?;
        for (name, figure) in file.figures() {
            if !KINDS.contains(&figure.kind()) {
                let wrong = format!("{name}: its source must begin with one of {}, and a colon", KINDS.join(", "));
                return Err(Error::Usage(wrong));
            }
            if !(figure.value > 0.0 && figure.value < 1e12) {
                return Err(Error::Usage(format!("{name}: {} is no positive number", figure.value)));
            }
        }
        file.machine()?;
        Ok(file)
    }

    /// Every figure, with its name.
    pub fn figures(&self) -> Vec<(String, Figure)> {
        self.clone().figures_mut().into_iter().map(|(name, figure)| (name, figure.clone())).collect()
    }

    /// The same machine, one of whose figures is `factor` times what it is.
    pub fn varied(&self, name: &str, factor: f64) -> MachineFile {
        let mut varied = self.clone();
        for (_, figure) in varied.figures_mut().into_iter().filter(|(other, _)| other == name) {
            figure.value *= factor;
        }
        varied
    }

    fn figures_mut(&mut self) -> Vec<(String, &mut Figure)> {
        let mut all: Vec<(String, &mut Figure)> = Vec::new();
        let by_distance = [
            ("fetch_ns", &mut self.fetch_ns),
            ("own_ns", &mut self.own_ns),
            ("gap_ns", &mut self.gap_ns),
            ("serve_ns", &mut self.serve_ns),
            ("read_gbs", &mut self.read_gbs),
            ("write_gbs", &mut self.write_gbs),
        ];
        for (name, figures) in by_distance {
            all.push((format!("{name}.l3"), &mut figures.l3));
            all.extend(figures.socket.iter_mut().map(|figure| (format!("{name}.socket"), figure)));
            all.extend(figures.other.iter_mut().map(|figure| (format!("{name}.other"), figure)));
        }
        let (cache, rates, software) = (&mut self.cache, &mut self.rates, &mut self.software);
        let plain = [
            ("cache.own_bytes", &mut cache.own_bytes),
            ("cache.l3_bytes", &mut cache.l3_bytes),
            ("rates.own", &mut rates.own),
            ("rates.l3", &mut rates.l3),
            ("rates.memory_core", &mut rates.memory_core),
            ("rates.memory_socket", &mut rates.memory_socket),
            ("rates.serve", &mut rates.serve),
            ("rates.link", &mut rates.link),
            ("software.call", &mut software.call),
            ("software.publish", &mut software.publish),
            ("software.look", &mut software.look),
            ("software.operation", &mut software.operation),
            ("software.operand", &mut software.operand),
        ];
        all.extend(plain.map(|(name, figure)| (name.to_owned(), figure)));
        all
    }

    fn machine(&self) -> Result<Machine> {
        Machine::synthetic(&self.topology).map_err(|error| Error::Usage(format!("topology: {error}")))
    }

    /// Where ranks can sit: one place a core, neighbours beside each other.
    ///
    /// # Errors
    /// [`Error::Usage`] for a topology that cannot be.
    pub fn places(&self) -> Result<Vec<Place>> {
        let machine = self.machine()?;
        let bound = machine.place(machine.cores(), BindPolicy::Core, &Usable::all_of(&machine));
        let places = bound.iter().flatten().map(|pus| {
            let location = machine.location(pus);
            let index = |index: Option<usize>| index.unwrap_or(0);
            Place { package: index(location.package), numa: index(location.numa), l3: index(location.l3) }
        });
        Ok(places.collect())
    }

    /// The figures, ready for use.
    pub fn costs(&self) -> Costs {
        let time = |figure: &Figure| (figure.value * 1e3).round() as Time;
        let byte = |figure: &Figure| 1e3 / figure.value;
        let three = |figures: &Distances| -> [Figure; 3] {
            let socket = figures.socket.as_ref().unwrap_or(&figures.l3);
            [figures.l3.clone(), socket.clone(), figures.other.as_ref().unwrap_or(socket).clone()]
        };
        let times = |figures: &Distances| three(figures).each_ref().map(time);
        let bytes = |figures: &Distances| three(figures).each_ref().map(byte);
        Costs {
            fetch: times(&self.fetch_ns),
            own: times(&self.own_ns),
            gap: times(&self.gap_ns),
            serve: times(&self.serve_ns),
            read: bytes(&self.read_gbs),
            write: bytes(&self.write_gbs),
            own_byte: byte(&self.rates.own),
            l3_byte: byte(&self.rates.l3),
            memory_core_byte: byte(&self.rates.memory_core),
            memory_socket_byte: byte(&self.rates.memory_socket),
            serve_byte: byte(&self.rates.serve),
            link_byte: byte(&self.rates.link),
            call: time(&self.software.call),
            publish: time(&self.software.publish),
            look: time(&self.software.look),
            operation: time(&self.software.operation),
            operand: time(&self.software.operand),
            own_bytes: self.cache.own_bytes.value as usize,
            l3_bytes: self.cache.l3_bytes.value as usize,
        }
    }
}
