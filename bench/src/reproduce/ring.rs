//! `bench reproduce ring`: the bandwidth-optimal ring allreduce beside butterflies, on hosts of two switches.

use serde_json::{Value, json};

use hier::schedule::{Algorithm, Order};

use super::cluster::{Job, check_hosts, check_sizes, sizes};
use super::options::ClusterStudy;
use super::outcome::{Chart, How, Outcome, Ran, Sheet};
use super::piece::Piece;
use super::run::{Known, Study, empty};
use super::taken::{Group, Taken, with_range};
use crate::across::bound::{Rate, multiple};
use crate::across::expected::{self, Switches};
use crate::across::simulate::Machine;
use crate::error::{Error, Result};
use crate::sizes::show_size;
use crate::study::Description;
use crate::table::three_digits;

mod findings;

/// The study.
pub const DESCRIPTION: Description = Description {
    name: "reproduce ring",
    paper: "P. Patarasuk and X. Yuan, Bandwidth optimal all-reduce algorithms for clusters of workstations, Journal of Parallel and \
            Distributed Computing 69(2), 2009",
    did: &[
        "It proved that an allreduce of n bytes on N processes takes 2(N-1)/N n/B at least, and that a ring of N processes takes no more where \
         it visits the hosts switch by switch, for then no link carries two messages at once.",
        "It timed the ring (with Mpptest) beside the butterfly (halving and doubling), the MPI library's own allreduce, SMP-binomial and \
         SMP-butterfly (one leader a node), 8 KB to 2 or 4 MB: on 64 nodes x 2 with Myrinet, on 16 nodes x 8 with InfiniBand, \
         and on 32 hosts of two Gigabit Ethernet switches, 16 on each, with Open MPI 1.2.5 and MPICH2.",
    ],
    differs: &[
        "Hosts are network namespaces of this machine, their links and the trunks shaped to 100 Mbit/s, with real MPI over them. All hosts \
         share this machine's cores: at 32 hosts they, and not the links, are the limit for short messages.",
        "The paper does not say in which order its butterfly goes through the distances. Both are here: nearest first, where the longest \
         messages stay within a switch (as MPICH does it), and farthest first.",
        "Messages of all sizes are sent at once (eager), for every series alike; stock settings are shown beside that for two sizes.",
        "The bad order is one drawn at random; alternating between the switches is counted, not timed.",
        "SMP-binomial and SMP-butterfly have one rank a host on the two switches, and are then plain trees and whole-vector exchanges; a \
         second cluster has four ranks a host.",
        "All series are measured by the same ranks in one run, in turns; the paper does not say how its runs were ordered.",
        "The paper's rates are simulated too: links of 1 Gbit/s, and 50 us a message, which is assumed.",
    ],
};

/// The paper's break-even size on the Ethernet cluster: 256 KB, 8 KB a process [page 19].
const PAPER_BREAK_EVEN: f64 = 262_144.0;
/// The paper's links, and what a message takes, which is assumed.
const PAPER_LINK: f64 = 1e9 / 8.0;
const ASSUMED_LATENCY: f64 = 50e-6;
/// Times within this share of each other are the same.
const MARGIN: f64 = 0.05;

/// The series of the two switches, by their names here and on the command line.
const RING: &str = "flat";
const DFS: &str = "dfs";
const NEAR: &str = "rabenseifner-near";
const FAR: &str = "rabenseifner-far";
const NATIVE: &str = "native";
const BINOMIAL: &str = "smp-binomial";
const BUTTERFLY: &str = "smp-butterfly";
/// A ring of all hosts that follows the switches wherever ranks are.
const DFS_SERIES: &str = "dfs=allreduce:ring,leaders=1,slice=whole";
/// A butterfly, near distances first, between the hosts in that order.
const NEAR_DFS: &str = "near-dfs";
const NEAR_DFS_SERIES: &str = "near-dfs=allreduce:halving-nearest,leaders=1,slice=whole";

/// The settings of the study.
pub struct Ring {
    quick: bool,
    block: Job,
    random: Job,
    stock: Option<Job>,
    smp: Option<Job>,
    known: Known,
}

impl Ring {
    /// The study that is asked for.
    ///
    /// # Errors
    ///
    /// [`Error::Usage`] for too few hosts, an odd number of them, and sizes of no element.
    pub fn of(options: &ClusterStudy, known: &Known) -> Result<Ring> {
        let quick = options.study.quick;
        let hosts = options.hosts.unwrap_or(if quick { 4 } else { 32 });
        check_hosts(hosts, 4, "two on each of the two switches")?;
        if !hosts.is_multiple_of(2) {
            return Err(Error::Usage(format!(
                "--hosts {hosts}: an even number is needed, half of them on each switch"
            )));
        }
        let usual: &[u64] = match quick {
            true => &[32 << 10, 128 << 10],
            false => &[8 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20, 2 << 20],
        };
        let sizes = sizes(&options.sizes, usual);
        check_sizes(&sizes)?;
        let own = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let block = Job {
            group: "block",
            hosts,
            slots: 1,
            per_switch: Some(hosts / 2),
            rate: options.rate.clone().map_or_else(|| "100mbit".parse::<Rate>(), Ok).map_err(Error::Usage)?,
            placement: "block",
            mpi: options.mpi,
            eager: true,
            collective: "allreduce",
            calls: options.calls.unwrap_or(if quick { 2 } else { 3 }),
            series: own(&[RING, NATIVE, NEAR, FAR, BINOMIAL, BUTTERFLY]),
            once: Vec::new(),
            sizes,
        };
        let largest = |count: usize, most: u64| {
            let fitting: Vec<u64> = block.sizes.iter().copied().filter(|&bytes| bytes <= most).collect();
            let fitting = if fitting.is_empty() { block.sizes.clone() } else { fitting };
            fitting[fitting.len().saturating_sub(count)..].to_vec()
        };
        let random = Job {
            group: "random",
            placement: "random:1",
            sizes: if quick { largest(1, u64::MAX) } else { largest(3, 1 << 20) },
            series: own(&[DFS_SERIES, NEAR_DFS_SERIES, RING, NATIVE, NEAR]),
            ..block.clone()
        };
        let stock = (!quick).then(|| Job {
            group: "stock",
            eager: false,
            sizes: largest(2, 1 << 20),
            series: own(&[RING, NATIVE, NEAR]),
            ..block.clone()
        });
        let smp = (!quick).then(|| Job {
            group: "smp",
            hosts: 8.min(hosts),
            slots: options.slots.unwrap_or(4),
            per_switch: Some(8.min(hosts) / 2),
            sizes: largest(4, 1 << 20),
            series: own(&[RING, NATIVE, NEAR, FAR, BINOMIAL, BUTTERFLY]),
            ..block.clone()
        });
        Ok(Ring { quick, block, random, stock, smp, known: known.clone() })
    }

    fn jobs(&self) -> impl Iterator<Item = &Job> {
        [Some(&self.block), Some(&self.random), self.stock.as_ref(), self.smp.as_ref()].into_iter().flatten()
    }
}

impl Study for Ring {
    fn description(&self) -> Description {
        DESCRIPTION
    }

    fn settings(&self) -> Value {
        let jobs: Vec<String> = self.jobs().map(|job| job.ran("").command).collect();
        json!(jobs)
    }

    fn pieces(&self) -> Vec<Piece> {
        self.jobs().flat_map(|job| job.pieces(&self.known)).collect()
    }

    fn conclude(&self, taken: &Taken) -> Result<Outcome> {
        let mut outcome = empty(&DESCRIPTION, "ring", self.quick);
        let (block, random) = (taken.group("block"), taken.group("random"));
        for job in self.jobs() {
            let group = taken.group(job.group);
            if !group.cases.is_empty() {
                outcome.ran.push(job.ran(&group.library));
                // Streams between hosts in random order share the trunk, and find what that carries.
                let goodput = if job.group == "random" { block.goodput } else { group.goodput };
                let bound = goodput.map(|goodput| multiple(job.hosts) / goodput);
                outcome.tables.push(times(job, &group, bound));
                let mut chart = Chart::new(format!("{}: time [ms]", job.group), How::Measured);
                group.series().into_iter().for_each(|name| chart.curve(name.clone(), group.curve(&name)));
                if let Some(bound) = bound {
                    let points = group.sizes().into_iter().map(|bytes| (bytes as f64, 1e3 * bound * bytes as f64));
                    chart.curve("bound", points.collect());
                }
                outcome.charts.push(chart);
            }
        }
        outcome.ran.push(Ran {
            name: "links".into(),
            how: How::Counted,
            place: format!(
                "bytes over the busiest trunk by the schedules of {} hosts on two switches",
                self.block.hosts
            ),
            command: String::new(),
        });
        let loads = trunk_loads(self.block.hosts);
        outcome.tables.push(load_table(&loads, self.block.hosts));
        let simulated = simulate(self.block.hosts, &self.block.sizes)?;
        outcome.ran.push(Ran {
            name: "simulated".into(),
            how: How::Simulated,
            place: format!(
                "{0} hosts, {1} on each of two switches, links and trunks 1 Gbit/s, 50 us a message (assumed)",
                self.block.hosts,
                self.block.hosts / 2
            ),
            command: format!(
                "bench simulate --clusters {0}+{0} --rate 1gbit --latency 50 --ranks 1",
                self.block.hosts / 2
            ),
        });
        let mut chart = Chart::new("1 Gbit/s, 50 us a message: time [ms]", How::Simulated);
        simulated.iter().for_each(|(name, points)| chart.curve(*name, points.clone()));
        outcome.charts.push(chart);
        if let Some(finding) = findings::break_even(&block, self.block.hosts) {
            outcome.findings.push(finding);
        }
        outcome.findings.push(findings::simulated_break_even(&simulated, self.block.hosts));
        outcome.findings.extend(findings::near_the_bound(&block, self.block.hosts));
        outcome.findings.extend(findings::order(&random, &loads));
        outcome.findings.extend(findings::butterflies(&block, &loads));
        if let Some(job) = &self.smp {
            outcome.findings.extend(findings::smp(&taken.group("smp"), job));
        }
        Ok(outcome)
    }
}

/// Median milliseconds of every series, with the ratio of the library to the ring.
fn times(job: &Job, group: &Group, bound: Option<f64>) -> Sheet {
    let series = group.series();
    let ring = if series.iter().any(|name| name == DFS) { DFS } else { RING };
    let mut heads = vec!["bytes", "bound"];
    heads.extend(series.iter().map(String::as_str));
    let beside = format!("native / {ring} (range)");
    heads.push(&beside);
    let mut sheet = Sheet::new(format!("{}: median time [ms]; flat: the ring in rank order", job.group), &heads);
    for bytes in group.sizes() {
        let mut cells =
            vec![show_size(bytes), bound.map_or_else(|| "-".into(), |bound| three_digits(1e3 * bound * bytes as f64))];
        cells.extend(series.iter().map(|name| {
            group.case(name, bytes).map_or_else(|| "-".into(), |case| three_digits(case.milliseconds().median))
        }));
        cells.push(with_range(group.ratio(NATIVE, ring, bytes)));
        sheet.row(cells);
    }
    sheet
}

/// What a schedule puts on the busiest trunk, in one direction, for each byte of the vector.
fn trunk_loads(hosts: usize) -> Vec<(&'static str, f64)> {
    let half = hosts / 2;
    let text = format!(
        "SwitchName=a Nodes=n[0-{}]\nSwitchName=b Nodes=n[{half}-{}]\nSwitchName=t Switches=a,b\n",
        half - 1,
        hosts - 1
    );
    let in_turn: Vec<usize> = (0..hosts).map(|rank| rank / 2 + (rank % 2) * half).collect();
    let in_order: Vec<usize> = (0..hosts).collect();
    // A multiple of all divisors that schedules use.
    let elements = 1024 * hosts;
    let load = |algorithm: Algorithm, order: &[usize]| {
        let names: Vec<String> = order.iter().map(|host| format!("n{host}")).collect();
        let switches = Switches::of(&text, &names)?;
        let places: Vec<usize> = (0..hosts).collect();
        let expected = expected::allreduce(algorithm, &places, elements, 8, Some(&switches))?;
        Some(expected.trunk? as f64 / (8 * elements) as f64)
    };
    [
        ("ring, switch by switch", load(Algorithm::Ring, &in_order)),
        ("ring, alternating", load(Algorithm::Ring, &in_turn)),
        ("butterfly, nearest first", load(Algorithm::HalvingDoubling { order: Order::Nearest }, &in_order)),
        ("butterfly, farthest first", load(Algorithm::HalvingDoubling { order: Order::Farthest }, &in_order)),
        ("whole vectors (recursive doubling)", load(Algorithm::RecursiveDoubling, &in_order)),
        ("binomial trees", load(Algorithm::Binomial, &in_order)),
    ]
    .into_iter()
    .filter_map(|(name, load)| Some((name, load?)))
    .collect()
}

fn load_of(loads: &[(&str, f64)], name: &str) -> f64 {
    loads.iter().find(|(other, _)| *other == name).map_or(f64::NAN, |(_, load)| *load)
}

fn load_table(loads: &[(&'static str, f64)], hosts: usize) -> Sheet {
    let title =
        format!("counted: bytes over a trunk, one direction, for each byte of the vector; {hosts} hosts, two switches");
    let mut sheet = Sheet::new(title, &["schedule<", "trunk/n"]);
    loads.iter().for_each(|(name, load)| sheet.row(vec![(*name).into(), format!("{load:.2}")]));
    sheet
}

/// A name, and (bytes, milliseconds).
type Curve = (&'static str, Vec<(f64, f64)>);

/// The times of schedules at the paper's rates, in milliseconds.
fn simulate(hosts: usize, sizes: &[u64]) -> Result<Vec<Curve>> {
    let half = hosts / 2;
    let mut machine = Machine::new(&format!("{half}+{half}"), PAPER_LINK, 1.0, Some(PAPER_LINK))?;
    machine.latency = ASSUMED_LATENCY;
    let schedules = [
        ("ring", Algorithm::Ring),
        ("butterfly, nearest first", Algorithm::HalvingDoubling { order: Order::Nearest }),
        ("butterfly, farthest first", Algorithm::HalvingDoubling { order: Order::Farthest }),
        ("whole vectors", Algorithm::RecursiveDoubling),
    ];
    let curve = |algorithm| {
        let time = |&bytes: &u64| Some((bytes as f64, 1e3 * machine.seconds(algorithm, 1, bytes, u64::MAX)?));
        sizes.iter().filter_map(time).collect::<Vec<_>>()
    };
    Ok(schedules.into_iter().map(|(name, algorithm)| (name, curve(algorithm))).collect())
}

#[cfg(test)]
mod tests;
