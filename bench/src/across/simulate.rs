//! `bench simulate`: which schedule is fastest on clusters that nobody here owns, and how far simulations are from what
//! was measured. All of it is simulated ([`hier::simulate`]), and says so.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;

use clap::Args;
use hier::schedule::{Algorithm, Goal, Order};
use hier::simulate::{Network, simulate};
use serde_json::Value;
use topo::Cluster;
use topo::cluster::End;

use super::bound::{Rate, multiple};
use crate::error::{Error, Result};
use crate::out::{say, show};
use crate::plot::axis::Scale;
use crate::plot::svg::{Curve, Figure, Panel, Style};
use crate::sizes::{parse_from, parse_ranks, parse_size, show_size};
use crate::statistics::Summary;
use crate::table::{Table, three_digits};

/// The schedules that are compared.
const SCHEDULES: [Algorithm; 6] = [
    Algorithm::Ring,
    Algorithm::Circulant,
    Algorithm::HalvingDoubling { order: Order::Nearest },
    Algorithm::HalvingDoubling { order: Order::Farthest },
    Algorithm::RecursiveDoubling,
    Algorithm::Binomial,
];

/// Options of `bench simulate`.
#[derive(Clone, Debug, Args)]
pub struct Simulate {
    /// Clusters: flat:8 is one switch; 4x16 is 4 switches of 16 hosts; 8x16x32 has a level more
    #[arg(long, value_delimiter = ',', default_value = "flat:8,4x16,16x32,8x16x32")]
    pub clusters: Vec<String>,
    /// Ranks on each host. Schedules between one leader a host are compared with the same between all ranks
    #[arg(long, default_value = "64", value_parser = parse_ranks)]
    pub ranks: usize,
    /// Message bytes
    #[arg(long, value_delimiter = ',', default_value = "1K,32K,1M,32M", value_parser = parse_size)]
    pub sizes: Vec<u64>,
    /// Rate of host links, each way
    #[arg(long, default_value = "100gbit")]
    pub rate: Rate,
    /// How many times less a switch's link upwards carries than what hangs on it
    #[arg(long, default_value = "1", value_parser = |text: &str| parse_from(1.0, text))]
    pub taper: f64,
    /// Microseconds until the first byte of a message flows
    #[arg(long, default_value = "2", value_parser = |text: &str| parse_from(0.0, text))]
    pub latency: f64,
    /// Nanoseconds to combine a byte
    #[arg(long, default_value = "0.1", value_parser = |text: &str| parse_from(0.0, text))]
    pub reduction: f64,
    /// Schedules of more messages are left out
    #[arg(long, default_value = "300K", value_parser = parse_size)]
    pub most_messages: u64,
    /// The results.json of a record of `bench across` with one rank a host: simulates it, and shows simulated /
    /// measured
    #[arg(long, value_name = "FILE")]
    pub against: Option<PathBuf>,
    /// Draws the times over the bound, a panel a cluster
    #[arg(long, value_name = "FILE", conflicts_with = "against")]
    pub svg: Option<PathBuf>,
}

/// Links and routes of a cluster, for a simulation.
pub struct Machine {
    cluster: Cluster,
    /// Bytes a second of each channel.
    capacities: Vec<f64>,
    /// Seconds until the first byte of a message flows.
    pub latency: f64,
    /// Seconds to combine a byte.
    pub reduction: f64,
}

impl Machine {
    /// Hosts send `host` bytes a second each way; a link upwards carries that of all hosts below it over `taper`, at
    /// each level, or `trunk` where that is given.
    ///
    /// # Errors
    ///
    /// [`Error::Usage`] for a text that describes no cluster.
    pub fn new(text: &str, host: f64, taper: f64, trunk: Option<f64>) -> Result<Machine> {
        let cluster: Cluster = text.parse().map_err(|error: topo::cluster::Error| Error::Usage(error.to_string()))?;
        let mut below = vec![0_usize; cluster.switches().len()];
        let mut levels = vec![0_i32; cluster.switches().len()];
        for switch in cluster.switches_downwards().into_iter().rev() {
            below[switch] += cluster.switches()[switch].hosts.len();
            if let Some(parent) = cluster.switches()[switch].parent {
                below[parent] += below[switch];
                levels[parent] = levels[parent].max(levels[switch] + 1);
            }
        }
        let capacity = |channel: usize| {
            let channel = cluster.channel(channel);
            let lower = if channel.from == end_below(&cluster, channel.link) { channel.from } else { channel.to };
            match lower {
                End::Host(_) => host,
                End::Switch(switch) => trunk.unwrap_or(host * below[switch] as f64 / taper.powi(levels[switch] + 1)),
            }
        };
        let capacities = (0..cluster.channels()).map(capacity).collect();
        Ok(Machine { cluster, capacities, latency: 0.0, reduction: 0.0 })
    }

    /// Hosts.
    pub fn hosts(&self) -> usize {
        self.cluster.hosts().len()
    }

    /// Seconds of an allreduce between `each` ranks a host, in the order of hosts. None for more than `most` messages,
    /// and for what the algorithm does not serve.
    pub fn seconds(&self, algorithm: Algorithm, each: usize, bytes: u64, most: u64) -> Option<f64> {
        let pattern = algorithm.pattern(Goal::Allreduce, (self.hosts() * each) as u32).ok()?;
        if pattern.formula().messages > most {
            return None;
        }
        let network = Network {
            capacities: self.capacities.clone(),
            latency: self.latency,
            reduction: self.reduction,
            route: |from: usize, to: usize, links: &mut Vec<usize>| {
                links.extend(self.cluster.route(from / each, to / each));
            },
        };
        simulate(&pattern, bytes as usize, 1, &network).ok().map(|simulation| simulation.seconds)
    }
}

/// The lower end of a link.
fn end_below(cluster: &Cluster, link: usize) -> End {
    cluster.channel(2 * link).from
}

/// A ring that loads no link twice, by its formula: what the simulation finds where it is small enough to be simulated.
fn ring_formula(hosts: usize, bytes: u64, host: f64, latency: f64, reduction: f64) -> f64 {
    let (rounds, part) = ((hosts - 1) as f64, bytes as f64 / hosts as f64);
    2.0 * rounds * (latency + part / host) + rounds * part * reduction
}

/// Runs the command.
///
/// # Errors
///
/// [`Error::Usage`] for a cluster or a rate that cannot be; [`Error::File`] and [`Error::Samples`] for the record.
pub fn run(options: &Simulate) -> Result<()> {
    if let Some(path) = &options.against {
        let text = fs::read_to_string(path).map_err(Error::file("cannot read", path))?;
        let wrong = |detail: String| Error::Samples { path: path.clone(), line: 0, detail };
        let results: Value = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        let tables = against(&results).map_err(wrong)?;
        show(&tables)?;
        return Ok(());
    }
    let host = options.rate.bytes().ok_or_else(|| Error::Usage("--rate: a simulation needs a limit".into()))?;
    say!(
        "SIMULATED, not measured: links {}, {} us a message, {} ns to combine a byte, taper {}; microseconds\n",
        options.rate,
        options.latency,
        options.reduction,
        options.taper
    )?;
    let mut panels = Vec::new();
    for text in &options.clusters {
        let mut machine = Machine::new(text, host, options.taper, None)?;
        (machine.latency, machine.reduction) = (options.latency * 1e-6, options.reduction * 1e-9);
        let rows = simulated(options, &machine, host);
        say!("{}\n{}", title(text, &machine, options.ranks), winners(&rows))?;
        panels.push(panel(text, machine.hosts(), &rows));
    }
    say!(
        "  leaders: one rank a host; all: every rank, by blocks; ~: by its formula; -: more messages than --most-messages"
    )?;
    if let Some(path) = &options.svg {
        fs::write(path, picture(options, panels)).map_err(Error::file("cannot write", path))?;
    }
    Ok(())
}

fn title(text: &str, machine: &Machine, ranks: usize) -> String {
    format!("simulated allreduce on {text}: {} hosts x {ranks} ranks", machine.hosts())
}

/// What was simulated at one size: seconds.
struct Row {
    bytes: u64,
    bound: f64,
    /// By schedule, as in [`SCHEDULES`]; whether by its formula.
    times: Vec<(Option<f64>, bool)>,
    /// Of `halving-nearest` between all ranks.
    all: Option<f64>,
}

/// The time of every schedule at every size.
fn simulated(options: &Simulate, machine: &Machine, host: f64) -> Vec<Row> {
    let hosts = machine.hosts();
    let row = |&bytes: &u64| {
        let time = |algorithm: Algorithm| match machine.seconds(algorithm, 1, bytes, options.most_messages) {
            None if algorithm == Algorithm::Ring => {
                (Some(ring_formula(hosts, bytes, host, machine.latency, machine.reduction)), true)
            }
            simulated => (simulated, false),
        };
        let near = Algorithm::HalvingDoubling { order: Order::Nearest };
        Row {
            bytes,
            bound: multiple(hosts) * bytes as f64 / host,
            times: SCHEDULES.into_iter().map(time).collect(),
            all: machine.seconds(near, options.ranks, bytes, options.most_messages),
        }
    };
    options.sizes.iter().map(row).collect()
}

/// One row a size: the time of every schedule, and which is the least.
fn winners(rows: &[Row]) -> String {
    let names = SCHEDULES.map(Algorithm::name);
    let mut heads: Vec<String> = vec!["bytes".into(), "bound".into()];
    heads.extend(names.map(String::from));
    heads.extend(["all: near".into(), "fastest<".into()]);
    let mut table = Table::new(&heads);
    for row in rows {
        let cell = |seconds: Option<f64>| seconds.map_or_else(|| "-".into(), |seconds| three_digits(1e6 * seconds));
        let mut cells = vec![show_size(row.bytes), three_digits(1e6 * row.bound)];
        cells.extend(row.times.iter().map(|&(time, formula)| if formula { "~" } else { "" }.to_owned() + &cell(time)));
        cells.push(cell(row.all));
        let found: Vec<(f64, &str)> =
            row.times.iter().zip(names).filter_map(|(&(time, _), name)| Some((time?, name))).collect();
        cells.push(fastest(&found));
        table.row(cells);
    }
    table.render()
}

/// Colours of the schedules; the two halvings differ in strokes too, since they may lie upon each other.
const STYLES: [Style; SCHEDULES.len()] = [
    Style { colour: "#1f5fa8", dashes: "" },
    Style { colour: "#d9722b", dashes: "" },
    Style { colour: "#4c9a5b", dashes: "7 3" },
    Style { colour: "#8e4fa8", dashes: "2 3" },
    Style { colour: "#7a6a52", dashes: "" },
    Style { colour: "#c23b4a", dashes: "" },
];

/// The times over the bound, a curve a schedule.
fn panel(text: &str, hosts: usize, rows: &[Row]) -> Panel {
    let curve = |(place, &style): (usize, &Style)| {
        let point = |row: &Row| Some((row.bytes as f64, row.times[place].0? / row.bound));
        Curve { points: rows.iter().filter_map(point).collect(), style }
    };
    let curves = STYLES.iter().enumerate().map(curve).filter(|curve| !curve.points.is_empty()).collect();
    Panel {
        title: format!("{hosts} hosts ({text}): time / bound"),
        scale: Scale::Logarithmic,
        line_at: Some(1.0),
        curves,
    }
}

fn picture(options: &Simulate, panels: Vec<Panel>) -> String {
    let legend = SCHEDULES.iter().zip(STYLES).map(|(algorithm, style)| (algorithm.name().to_owned(), style)).collect();
    let title = format!(
        "SIMULATED allreduce: links {}, {} us a message, taper {}",
        options.rate, options.latency, options.taper
    );
    let mut rows: Vec<Vec<Panel>> = Vec::new();
    for panel in panels {
        match rows.last_mut() {
            Some(row) if row.len() < 2 => row.push(panel),
            _ => rows.push(vec![panel]),
        }
    }
    Figure { title, legend, panels: rows }.render()
}

/// The names of those that take no longer than the fastest, or a hundredth more.
fn fastest(found: &[(f64, &str)]) -> String {
    let least = found.iter().map(|(seconds, _)| *seconds).fold(f64::INFINITY, f64::min);
    let names: Vec<&str> =
        found.iter().filter(|(seconds, _)| *seconds <= 1.01 * least).map(|(_, name)| *name).collect();
    if names.is_empty() { "-".into() } else { names.join(" ") }
}

/// Simulated over measured, for the runs of a record that have one rank a host.
fn against(results: &Value) -> std::result::Result<String, String> {
    let runs =
        results["runs"].as_array().ok_or("there are no runs in it: is it the results.json of `bench across`?")?;
    let mut text = String::new();
    for run in runs {
        let measured = &run["measured"];
        let (Some(hosts), Some(goodput)) = (measured["nodes"].as_u64(), measured["goodput"].as_f64()) else {
            return Err("a run has no nodes or no goodput".into());
        };
        if measured["ranks"].as_u64() != Some(hosts) || measured["operation"] != "allreduce" {
            continue;
        }
        let shape = run["shape"].as_str().ok_or("a run has no shape")?;
        let trunk = run["trunk"].as_f64();
        let mut machine = Machine::new(shape, goodput, 1.0, trunk).map_err(|error| error.to_string())?;
        machine.latency = measured["latency"].as_f64().unwrap_or(0.0);
        let (mpi, mode) = (run["mpi"].as_str().unwrap_or_default(), &run["mode"]);
        let mode = if mode["eager"] == true { "eager" } else { "stock" };
        text += &format!(
            "SIMULATED / measured on {shape}, {mpi}, {mode}: B = {:.2} MB/s, {:.0} us a message, both measured\n",
            goodput / 1e6,
            machine.latency * 1e6
        );
        text += &ratios(&machine, measured["cases"].as_array().ok_or("a run has no cases")?);
        text.push('\n');
    }
    Ok(text)
}

fn ratios(machine: &Machine, cases: &[Value]) -> String {
    let mut table = Table::new(&["bytes", "series<", "simulated ms", "measured ms", "simulated/measured"]);
    let mut known: HashMap<(Algorithm, u64), Option<f64>> = HashMap::new();
    for case in cases {
        let word = case["how"].as_str().and_then(|how| how.split_whitespace().next()).unwrap_or_default();
        let (Ok(algorithm), Some(bytes)) = (word.parse::<Algorithm>(), case["bytes"].as_u64()) else { continue };
        let times: Vec<f64> = case["seconds"].as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
        let measured = Summary::of(&times).median;
        let seconds = known.entry((algorithm, bytes)).or_insert_with(|| machine.seconds(algorithm, 1, bytes, u64::MAX));
        let Some(seconds) = seconds.filter(|_| measured > 0.0) else { continue };
        let name = format!("{} ({word})", case["series"].as_str().unwrap_or_default());
        let times = [seconds, measured].map(|time| three_digits(1e3 * time));
        let [simulated, taken] = times;
        table.row(vec![show_size(bytes), name, simulated, taken, format!("{:.2}", seconds / measured)]);
    }
    table.render()
}

#[cfg(test)]
mod tests;
