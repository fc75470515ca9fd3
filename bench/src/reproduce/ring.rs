//! `bench reproduce ring`: the bandwidth-optimal ring allreduce beside butterflies, on hosts of two switches.

use serde_json::{Value, json};

use hier::schedule::{Algorithm, Order};

use super::cluster::{Job, check_hosts, check_sizes, sizes};
use super::options::ClusterStudy;
use super::outcome::{Chart, Finding, How, Outcome, Ran, Sheet, Verdict};
use super::piece::Piece;
use super::run::{Known, Study, empty};
use super::taken::{Group, Taken, with_range};
use crate::across::bound::{Rate, multiple};
use crate::across::expected::{self, Switches};
use crate::across::simulate::Machine;
use crate::error::{Error, Result};
use crate::sizes::show_size;
use crate::study::{BreakEven, Description};
use crate::table::three_digits;

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
        if let Some(finding) = break_even(&block, self.block.hosts) {
            outcome.findings.push(finding);
        }
        outcome.findings.push(simulated_break_even(&simulated, self.block.hosts));
        outcome.findings.extend(near_the_bound(&block, self.block.hosts));
        outcome.findings.extend(order(&random, &loads));
        outcome.findings.extend(butterflies(&block, &loads));
        if let Some(job) = &self.smp {
            outcome.findings.extend(smp(&taken.group("smp"), job));
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

/// How a break-even size stands to the paper's.
fn beside_paper(size: Option<f64>, hosts: usize) -> (String, Verdict, String) {
    match size {
        Some(size) if size > 0.0 => {
            let ratio = size / PAPER_BREAK_EVEN;
            let verdict = if (0.25..=4.0).contains(&ratio) { Verdict::Agrees } else { Verdict::Partly };
            let words = format!("faster from {} on, n/N = {}", rounded(size), rounded(size / hosts as f64));
            (words, verdict, "agreement means within a factor of four of 256 KB".into())
        }
        Some(_) => {
            ("faster at all sizes measured".into(), Verdict::Partly, "there is no size below which it loses".into())
        }
        None => ("not faster at the largest size".into(), Verdict::Differs, "the ring has to win somewhere".into()),
    }
}

/// Bytes to two digits or so.
fn rounded(bytes: f64) -> String {
    if bytes >= 1048576.0 {
        format!("{:.1} MB", bytes / 1048576.0)
    } else if bytes >= 1024.0 {
        format!("{:.0} KB", bytes / 1024.0)
    } else {
        format!("{bytes:.0} B")
    }
}

fn break_even(block: &Group, hosts: usize) -> Option<Finding> {
    let (ring, native) = (block.curve(RING), block.curve(NATIVE));
    if ring.is_empty() || native.is_empty() {
        return None;
    }
    let found = BreakEven::of(&ring, &native, MARGIN);
    let (ours, verdict, why) = beside_paper(found.first_wins_from(), hosts);
    Some(Finding {
        about: "From which size the ring is faster than the MPI library".into(),
        paper: "faster than Open MPI 1.2.5 and MPICH2 from 256 KB on, n/N = 8 KB".into(),
        source: "Figure 6, page 19; on Myrinet 256 KB, n/N = 2 KB: page 17".into(),
        ours: format!("{ours} ({found}; {})", block.library),
        how: How::Measured,
        verdict,
        why: format!(
            "{why}. Here a message costs processor time of two cores that play all hosts, and links are ten times slower. The library is a \
             later one, and takes a ring itself where it finds that good"
        ),
    })
}

fn simulated_break_even(simulated: &[Curve], hosts: usize) -> Finding {
    let curve = |name: &str| simulated.iter().find(|(other, _)| *other == name).map_or(&[][..], |(_, points)| points);
    let against = |name: &str| BreakEven::of(curve("ring"), curve(name), MARGIN);
    let (near, far) = (against("butterfly, nearest first"), against("butterfly, farthest first"));
    let (words, verdict, why) = beside_paper(near.first_wins_from(), hosts);
    Finding {
        about: "The same at the paper's rates".into(),
        paper: "256 KB, n/N = 8 KB".into(),
        source: "Figure 6, page 19".into(),
        ours: format!(
            "the ring beside the butterfly that takes near distances first, as MPICH's does: {words}; beside the one that takes far ones \
             first: {far}"
        ),
        how: How::Simulated,
        verdict,
        why: format!("{why}. The 50 us a message are assumed: the break-even size is proportional to them"),
    }
}

fn near_the_bound(block: &Group, hosts: usize) -> Option<Finding> {
    let bytes = *block.sizes().last()?;
    let bound = 1e3 * multiple(hosts) * bytes as f64 / block.goodput?;
    let time = block.case(RING, bytes)?.milliseconds().median;
    let ratio = time / bound;
    Some(Finding {
        about: "The ring reaches the bound".into(),
        paper: "no allreduce takes less than 2(N-1)/N n/B, and the ring takes no more, start-up costs left out".into(),
        source: "Lemma 5 and Section 4".into(),
        ours: format!("{:.2} times the bound at {}, B measured by streams", ratio, show_size(bytes)),
        how: How::Measured,
        verdict: if ratio <= 1.25 { Verdict::Agrees } else { Verdict::Partly },
        why: "agreement means within a quarter. What is above it is start-up cost, 2(N-1) messages, and the processor that all hosts share".into(),
    })
}

fn order(random: &Group, loads: &[(&str, f64)]) -> Option<Finding> {
    let bytes = *random.sizes().last()?;
    let ratio = random.ratio(RING, DFS, bytes)?;
    let (butterfly, ordered) = (random.ratio(NEAR, DFS, bytes)?, random.ratio(NEAR_DFS, DFS, bytes)?);
    Some(Finding {
        about: "The order of the ring".into(),
        paper: "a ring that visits the hosts depth-first is free of contention on any tree of switches; another need not be".into(),
        source: "Section 4; result of Faraj, Patarasuk and Yuan".into(),
        ours: format!(
            "hosts in random order, {}: a ring in rank order takes {} times as long as one that follows the switches, a butterfly that is \
             nearest-first by ranks {}, one that is so by the switches {}. Counted, an alternating ring loads the trunk {:.0} times, a good one {:.1} times",
            show_size(bytes),
            with_range(Some(ratio)),
            with_range(Some(butterfly)),
            with_range(Some(ordered)),
            load_of(loads, "ring, alternating"),
            load_of(loads, "ring, switch by switch"),
        ),
        how: How::Measured,
        verdict: if ratio.median > 1.5 { Verdict::Agrees } else { Verdict::Differs },
        why: "agreement means more than one and a half times as long. The same order mends a butterfly too where switches have powers of two of \
              hosts; the ring is mended on any tree"
            .into(),
    })
}

fn butterflies(block: &Group, loads: &[(&str, f64)]) -> Option<Finding> {
    let bytes = *block.sizes().last()?;
    let (near, far) = (block.ratio(NEAR, RING, bytes)?, block.ratio(FAR, RING, bytes)?);
    let against = BreakEven::of(&block.curve(RING), &block.curve(NEAR), MARGIN);
    Some(Finding {
        about: "Why butterflies lose".into(),
        paper: "the butterfly's pattern causes contention on links between switches and between SMP nodes; the ring's does not".into(),
        source: "Section 1; Section 5, page 16".into(),
        ours: format!(
            "at {} the butterfly takes {} times as long as the ring with near distances first, {} with far ones first; the ring beside \
             the former: {against}. On the trunk: {:.2} n, {:.2} n, {:.2} n",
            show_size(bytes),
            with_range(Some(near)),
            with_range(Some(far)),
            load_of(loads, "ring, switch by switch"),
            load_of(loads, "butterfly, nearest first"),
            load_of(loads, "butterfly, farthest first"),
        ),
        how: How::Measured,
        verdict: if far.median > near.median * 1.5 { Verdict::Partly } else { Verdict::Differs },
        why: "contention is that of one order of steps. Nearest first, where ranks follow the switches, it crosses the trunk less than the ring, in a \
              fraction of the messages: the baseline that the paper lacks"
            .into(),
    })
}

fn smp(group: &Group, job: &Job) -> Option<Finding> {
    let bytes = *group.sizes().last()?;
    let beside = |name: &str| Some(with_range(Some(group.ratio(name, RING, bytes)?)));
    let worst =
        [BINOMIAL, BUTTERFLY].into_iter().filter_map(|name| group.ratio(name, RING, bytes)).all(|r| r.median > 1.0);
    Some(Finding {
        about: "Several ranks a host".into(),
        paper: "for long vectors the ring of all processes beats SMP-binomial and SMP-butterfly; the butterfly loses by contention".into(),
        source: "Figures 3 and 4, pages 16 to 18".into(),
        ours: format!(
            "{} hosts x {} at {}, times of the ring's: SMP-binomial {}, SMP-butterfly {}, butterfly near {}, far {}, the library {}",
            job.hosts,
            job.slots,
            show_size(bytes),
            beside(BINOMIAL)?,
            beside(BUTTERFLY)?,
            beside(NEAR)?,
            beside(FAR)?,
            beside(NATIVE)?
        ),
        how: How::Measured,
        verdict: if worst { Verdict::Agrees } else { Verdict::Partly },
        why: "the two leader schedules send whole vectors log N times, the ring 2(N-1)/N of one".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::taken::tests::across;
    use super::*;
    use crate::command::{Cli, Command};
    use crate::reproduce::options::Reproduce;
    use clap::Parser;

    fn study(words: &[&str]) -> Result<Ring> {
        match Cli::try_parse_from(["bench", "reproduce", "ring"].iter().chain(words)).unwrap().command {
            Command::Reproduce { study } => match *study {
                Reproduce::Ring(options) => Ring::of(&options, &Known::default()),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    /// By hand, for 32 hosts: the nearest-first butterfly crosses once with 1/32 n of each host of a switch, there and back; the
    /// farthest-first one with n/2 of 16 hosts, there and back.
    #[test]
    fn trunks_by_hand() {
        let loads = trunk_loads(32);
        let load = |name| load_of(&loads, name);
        assert_eq!(load("ring, switch by switch"), 2.0 * 31.0 / 32.0);
        assert_eq!(load("ring, alternating"), 16.0 * 2.0 * 31.0 / 32.0);
        assert_eq!((load("butterfly, nearest first"), load("butterfly, farthest first")), (1.0, 16.0));
        assert_eq!((load("whole vectors (recursive doubling)"), load("binomial trees")), (16.0, 1.0));
    }

    #[test]
    fn the_pieces_of_the_long_and_the_short_form() {
        let long = study(&[]).unwrap();
        assert_eq!((long.block.hosts, long.block.per_switch), (32, Some(16)));
        assert_eq!(long.pieces().len(), 8 + 3 + 2 + 4);
        let short = study(&["--quick"]).unwrap();
        assert_eq!((short.block.hosts, short.pieces().len()), (4, 3));
        let mut keys: Vec<String> = long.pieces().into_iter().map(|piece| piece.key).collect();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), 17);
    }

    #[test]
    fn too_few_hosts_are_refused() {
        for (words, word) in
            [(["--hosts", "2"], "4 or more"), (["--hosts", "7"], "even"), (["--sizes", "4"], "8 bytes")]
        {
            let Err(error) = study(&words) else { panic!("{words:?}") };
            assert!(error.to_string().contains(word) && error.status() == 2, "{error}");
        }
    }

    /// Times as the paper has them: the library is faster up to 128 KB, and slower from 512 KB on.
    #[test]
    fn a_break_even_as_in_the_paper_agrees() {
        let mut taken = Taken::default();
        for (name, bytes, ring, native) in [
            ("a", 64 << 10, 20.0, 10.0),
            ("b", 128 << 10, 20.0, 15.0),
            ("c", 512 << 10, 50.0, 80.0),
            ("d", 2 << 20, 380.0, 800.0),
        ] {
            let [own, library, near, far] = [[ring], [native], [1.2 * ring], [8.0 * ring]];
            taken.put(
                &format!("block/{name}"),
                across(&[(RING, bytes, &own), (NATIVE, bytes, &library), (NEAR, bytes, &near), (FAR, bytes, &far)]),
            );
        }
        let outcome = study(&["--quick"]).unwrap().conclude(&taken).unwrap();
        let finding = &outcome.findings[0];
        assert_eq!(finding.verdict, Verdict::Agrees, "{finding:?}");
        assert!(finding.ours.contains("KB") && finding.ours.contains("n/N"), "{finding:?}");
        // 2 MB on 4 hosts at 10 MB/s: 1.5 x 209.7 ms; 380 / 314.6.
        let bound = outcome.findings.iter().find(|finding| finding.about.contains("bound")).unwrap();
        assert!(bound.ours.starts_with("1.21 times"), "{bound:?}");
    }

    #[test]
    fn without_a_cluster_counts_and_simulations_remain() {
        let outcome = study(&[]).unwrap().conclude(&Taken::default()).unwrap();
        assert_eq!(outcome.findings.iter().map(|finding| finding.how).collect::<Vec<_>>(), [How::Simulated]);
        assert_eq!(outcome.charts.len(), 1);
        // The simulation at the paper's rates is within the margin of the paper.
        assert_ne!(outcome.findings[0].verdict, Verdict::Differs, "{:?}", outcome.findings);
    }
}
