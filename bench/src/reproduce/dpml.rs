//! `bench reproduce dpml`: several leaders a node, and why: how messages a second grow with the ranks that send.

use serde_json::{Value, json};

use super::cluster::{Job, check_hosts, check_sizes, sizes};
use super::options::ClusterStudy;
use super::outcome::{Chart, Finding, How, Outcome, Sheet, Verdict};
use super::piece::Piece;
use super::run::{Known, Study, empty};
use super::taken::{Group, Taken, with_range};
use crate::across::bound::Rate;
use crate::error::{Error, Result};
use crate::sizes::show_size;
use crate::statistics::Summary;
use crate::study::Description;
use crate::table::three_digits;

/// The study.
pub const DESCRIPTION: Description = Description {
    name: "reproduce dpml",
    paper: "M. Bayatpour, S. Chakraborty, H. Subramoni, X. Lu and D. K. Panda, Scalable reduction collectives with data \
            partitioning-based multi-leader design, SC 2017",
    did: &[
        "It measured how many messages a second leave a node when more ranks send at once, and found three zones: short messages, where more senders \
         send more; a transition; long ones, where one sender fills the link.",
        "So each of l leaders of a node takes 1/l of the vector: all ranks copy their parts to shared memory, each leader reduces its part, \
         l allreduces run between the nodes, all ranks copy out. l is chosen by size. Four clusters, Xeon and Xeon Phi, InfiniBand and Omni-Path; \
         up to 3.5 times as fast as MPI_Allreduce of the libraries then.",
    ],
    differs: &[
        "Hosts are network namespaces of this machine, with links shaped to 100 Mbit/s and TCP: a link that one rank fills with messages of a few \
         KB. All ranks share this machine's cores.",
        "The schedule between the nodes is the model's choice, the same for all numbers of leaders; the pipeline is off (slice=whole).",
        "The zones are measured by one-way streams from the first ranks of a host to those of its partner.",
    ],
};

/// Message bytes of the rates.
const RATES: [u64; 7] = [64, 512, 4096, 16384, 65536, 262_144, 1_048_576];
/// Leaders are compared at the rates of so many pairs: the growth that makes a zone.
const RATE_ZONE: f64 = 0.75;
const BANDWIDTH_ZONE: f64 = 0.25;
/// Names of series, by leaders.
const LEADERS: [&str; 8] =
    ["1-leader", "2-leaders", "3-leaders", "4-leaders", "5-leaders", "6-leaders", "7-leaders", "8-leaders"];
const NATIVE: &str = "native";

/// The settings of the study.
pub struct Dpml {
    quick: bool,
    job: Job,
    known: Known,
}

impl Dpml {
    /// The study that is asked for.
    ///
    /// # Errors
    ///
    /// [`Error::Usage`] for fewer than two hosts, fewer than two or more than eight ranks a host, and sizes of no
    /// element.
    pub fn of(options: &ClusterStudy, known: &Known) -> Result<Dpml> {
        let quick = options.study.quick;
        let (hosts, slots) =
            (options.hosts.unwrap_or(if quick { 2 } else { 4 }), options.slots.unwrap_or(if quick { 2 } else { 4 }));
        check_hosts(hosts, 2, "nodes between which leaders speak")?;
        if !(2..=LEADERS.len()).contains(&slots) {
            return Err(Error::Usage(format!("--slots {slots}: 2 to {} ranks a host can lead", LEADERS.len())));
        }
        let usual: &[u64] = match quick {
            true => &[4 << 10, 128 << 10],
            false => &[256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20],
        };
        let sizes = sizes(&options.sizes, usual);
        check_sizes(&sizes)?;
        let rates: Vec<String> = RATES.iter().filter(|&&bytes| !quick || bytes <= 65536).map(u64::to_string).collect();
        let leaders =
            (1..=slots).map(|leaders| format!("{}=allreduce:auto,leaders={leaders},slice=whole", LEADERS[leaders - 1]));
        let job = Job {
            group: "leaders",
            hosts,
            slots,
            per_switch: None,
            rate: options.rate.clone().map_or_else(|| "100mbit".parse::<Rate>(), Ok).map_err(Error::Usage)?,
            placement: "block",
            mpi: options.mpi,
            eager: true,
            collective: "allreduce",
            sizes,
            calls: options.calls.unwrap_or(if quick { 3 } else { 7 }),
            series: leaders.chain([NATIVE.to_owned()]).collect(),
            once: vec!["--message-rates".into(), rates.join(",")],
        };
        Ok(Dpml { quick, job, known: known.clone() })
    }
}

impl Study for Dpml {
    fn description(&self) -> Description {
        DESCRIPTION
    }

    fn settings(&self) -> Value {
        json!(self.job.ran("").command)
    }

    fn pieces(&self) -> Vec<Piece> {
        self.job.pieces(&self.known)
    }

    fn conclude(&self, taken: &Taken) -> Result<Outcome> {
        let mut outcome = empty(&DESCRIPTION, "dpml", self.quick);
        let group = taken.group(self.job.group);
        if group.cases.is_empty() {
            return Ok(outcome);
        }
        outcome.ran.push(self.job.ran(&group.library));
        let mut chart = Chart::new("allreduce by leaders: time [ms]", How::Measured);
        group.series().into_iter().for_each(|name| chart.curve(name.clone(), group.curve(&name)));
        outcome.charts.push(chart);
        let leaders = &LEADERS[..self.job.slots];
        let mut gains = Chart::of_ratios("time of one leader / time of several", How::Measured);
        for name in &leaders[1..] {
            let ratio = |bytes: u64| Some((bytes as f64, group.ratio(LEADERS[0], name, bytes)?.median));
            gains.curve(*name, group.sizes().into_iter().filter_map(ratio).collect());
        }
        outcome.charts.push(gains);
        outcome.tables.push(times(&group, leaders));
        outcome.findings.extend(more_leaders(&group, leaders));
        outcome.findings.extend(beside_library(&group, leaders));
        let zones = zones(&group);
        if !zones.is_empty() {
            outcome.tables.push(zone_table(&zones));
            let mut rates = Chart::new("messages a second between two hosts, by pairs", How::Measured);
            for pairs in zones[0].rates.iter().map(|(pairs, _)| *pairs) {
                let rate =
                    |zone: &Zone| Some((zone.bytes as f64, zone.rates.iter().find(|(p, _)| *p == pairs)?.1.median));
                rates.curve(pairs_word(pairs), zones.iter().filter_map(rate).collect());
            }
            outcome.charts.push(rates);
            outcome.findings.push(three_zones(&zones));
        }
        Ok(outcome)
    }
}

/// The number of leaders whose median is the least at a size, as an index into the series.
fn best(group: &Group, leaders: &[&str], bytes: u64) -> Option<usize> {
    let time = |name: &&str| group.case(name, bytes).map_or(f64::INFINITY, |case| case.milliseconds().median);
    (0..leaders.len()).min_by(|&a, &b| time(&leaders[a]).total_cmp(&time(&leaders[b])))
}

fn times(group: &Group, leaders: &[&str]) -> Sheet {
    let mut heads = vec!["bytes"];
    heads.extend(leaders);
    heads.extend([NATIVE, "best", "1 leader / best (range)", "native / best (range)", "schedule<"]);
    let mut sheet = Sheet::new("allreduce by leaders: median time [ms]", &heads);
    for bytes in group.sizes() {
        let Some(best) = best(group, leaders, bytes) else { continue };
        let mut cells = vec![show_size(bytes)];
        cells.extend(leaders.iter().chain([&NATIVE]).map(|name| {
            group.case(name, bytes).map_or_else(|| "-".into(), |case| three_digits(case.milliseconds().median))
        }));
        let schedule =
            group.case(leaders[best], bytes).and_then(|case| case.how.split_whitespace().next()).unwrap_or("-");
        cells.extend([
            (best + 1).to_string(),
            with_range(group.ratio(LEADERS[0], leaders[best], bytes)),
            with_range(group.ratio(NATIVE, leaders[best], bytes)),
            schedule.into(),
        ]);
        sheet.row(cells);
    }
    sheet
}

fn more_leaders(group: &Group, leaders: &[&str]) -> Option<Finding> {
    let gains: Vec<(u64, usize, Summary)> = group
        .sizes()
        .into_iter()
        .filter_map(|bytes| {
            let best = best(group, leaders, bytes)?;
            Some((bytes, best, group.ratio(LEADERS[0], leaders[best], bytes)?))
        })
        .collect();
    // One leader less another is a gain only beyond what calls differ by.
    let sure: Vec<&(u64, usize, Summary)> =
        gains.iter().filter(|(_, best, gain)| *best > 0 && gain.p25 > 1.02).collect();
    let greatest = gains.iter().max_by(|a, b| a.2.median.total_cmp(&b.2.median))?;
    let sizes: Vec<String> =
        sure.iter().map(|(bytes, best, _)| format!("{} ({})", show_size(*bytes), best + 1)).collect();
    let verdict = match sure.first() {
        None => Verdict::Differs,
        Some((bytes, ..)) if *bytes >= 16 << 10 => Verdict::Agrees,
        Some(_) => Verdict::Partly,
    };
    Some(Finding {
        about: "More leaders for longer vectors".into(),
        paper: "the number of leaders is chosen by size; more for medium and long vectors, which are shared among them".into(),
        source: "section on the multi-leader design, as a review of both papers has it".into(),
        ours: match sizes.is_empty() {
            true => format!(
                "one leader is as good as several at every size; the most is {} times at {}",
                with_range(Some(greatest.2)),
                show_size(greatest.0)
            ),
            false => format!(
                "several leaders are surely faster at {}; the most, {} leaders, {} times at {}",
                sizes.join(", "),
                greatest.1 + 1,
                with_range(Some(greatest.2)),
                show_size(greatest.0)
            ),
        },
        how: How::Measured,
        verdict,
        why: "surely means that three quarters of the turns gain more than 2 %. Here leaders share the reduction's work between cores, of which all hosts together have few; the \
              link is filled by one sender already"
            .into(),
    })
}

fn beside_library(group: &Group, leaders: &[&str]) -> Option<Finding> {
    let gains: Vec<(u64, Summary)> = group
        .sizes()
        .into_iter()
        .filter_map(|bytes| Some((bytes, group.ratio(NATIVE, leaders[best(group, leaders, bytes)?], bytes)?)))
        .collect();
    let most = gains.iter().max_by(|a, b| a.1.median.total_cmp(&b.1.median))?;
    let least = gains.iter().min_by(|a, b| a.1.median.total_cmp(&b.1.median))?;
    Some(Finding {
        about: "Beside the MPI library".into(),
        paper: "up to 3.5 times as fast as MPI_Allreduce".into(),
        source: "SC 2017 programme, abstract".into(),
        ours: format!(
            "the library's time over that of the best number of leaders: {} at {}, the most; {} at {}, the least ({})",
            with_range(Some(most.1)),
            show_size(most.0),
            with_range(Some(least.1)),
            show_size(least.0),
            group.library
        ),
        how: How::Measured,
        verdict: if most.1.median >= 2.0 { Verdict::Agrees } else { Verdict::Partly },
        why: "agreement means a factor of two or more somewhere; libraries and networks are others, so that no figure can be the same".into(),
    })
}

/// The rates of one message size.
struct Zone {
    bytes: u64,
    /// By pairs, ascending.
    rates: Vec<(usize, Summary)>,
}

impl Zone {
    /// How many times the rate of all pairs is of that of one.
    fn growth(&self) -> f64 {
        match (self.rates.first(), self.rates.last()) {
            (Some((_, one)), Some((_, all))) if one.median > 0.0 => all.median / one.median,
            _ => 1.0,
        }
    }

    /// The zone, by how much of the possible growth there is.
    fn name(&self) -> &'static str {
        let most = self.rates.last().map_or(1, |(pairs, _)| *pairs) as f64;
        let share = if most > 1.0 { (self.growth() - 1.0) / (most - 1.0) } else { 0.0 };
        if share >= RATE_ZONE {
            "A: more senders send more"
        } else if share > BANDWIDTH_ZONE {
            "B: transition"
        } else {
            "C: one fills the way"
        }
    }
}

fn pairs_word(pairs: usize) -> String {
    format!("{pairs} {}", if pairs == 1 { "pair" } else { "pairs" })
}

fn zones(group: &Group) -> Vec<Zone> {
    let mut zones: Vec<Zone> = Vec::new();
    for rate in &group.rates {
        let entry = (rate.pairs, Summary::of(&rate.per_second));
        match zones.iter_mut().find(|zone| zone.bytes == rate.bytes) {
            Some(zone) => zone.rates.push(entry),
            None => zones.push(Zone { bytes: rate.bytes, rates: vec![entry] }),
        }
    }
    zones.sort_by_key(|zone| zone.bytes);
    zones
}

fn zone_table(zones: &[Zone]) -> Sheet {
    let pairs: Vec<String> = zones[0].rates.iter().map(|(pairs, _)| pairs_word(*pairs)).collect();
    let mut heads = vec!["bytes"];
    heads.extend(pairs.iter().map(String::as_str));
    heads.extend(["Mbit/s of all", "growth", "zone<"]);
    let mut sheet =
        Sheet::new("message rates between two hosts: thousand messages a second, median of streams", &heads);
    for zone in zones {
        let mut cells = vec![show_size(zone.bytes)];
        cells.extend(zone.rates.iter().map(|(_, rate)| three_digits(rate.median / 1e3)));
        let all = zone.rates.last().map_or(0.0, |(_, rate)| rate.median);
        cells.extend([
            three_digits(all * zone.bytes as f64 * 8e-6),
            format!("{:.2}", zone.growth()),
            zone.name().into(),
        ]);
        sheet.row(cells);
    }
    sheet
}

fn three_zones(zones: &[Zone]) -> Finding {
    let sizes = |letter: &str| {
        let here: Vec<String> =
            zones.iter().filter(|zone| zone.name().starts_with(letter)).map(|zone| show_size(zone.bytes)).collect();
        if here.is_empty() { "none".to_owned() } else { here.join(", ") }
    };
    let found = ["A", "B", "C"].map(sizes);
    let present = found.iter().filter(|sizes| *sizes != "none").count();
    Finding {
        about: "Zones of message rates".into(),
        paper: "short messages: the rate grows with the senders; long ones: one sender takes all of the bandwidth; a transition between".into(),
        source: "study of throughput before the design; a review of both papers".into(),
        ours: format!("A (rate): {}; B (transition): {}; C (bandwidth): {}", found[0], found[1], found[2]),
        how: How::Measured,
        verdict: match present {
            3 => Verdict::Agrees,
            2 => Verdict::Partly,
            _ => Verdict::Differs,
        },
        why: "zone A means three quarters of the growth that pairs allow, zone C at most one quarter. A sender of short messages is bound by a core here, and \
              there are fewer cores than senders"
            .into(),
    }
}

#[cfg(test)]
mod tests;
