//! `bench reproduce salar`: the pipeline of node and network on and off, and slices of fixed size beside those that
//! adapt.

use serde_json::{Value, json};

use super::cluster::{Job, check_hosts, check_sizes, sizes};
use super::options::ClusterStudy;
use super::outcome::{Chart, Finding, How, Outcome, Sheet, Verdict};
use super::piece::Piece;
use super::run::{Known, Study, empty};
use super::taken::{Group, Taken, with_range};
use crate::across::bound::{Rate, multiple};
use crate::error::{Error, Result};
use crate::sizes::show_size;
use crate::statistics::Summary;
use crate::study::Description;
use crate::table::three_digits;

/// The study.
pub const DESCRIPTION: Description = Description {
    name: "reproduce salar",
    paper: "M. Bayatpour, J. Hashmi, S. Chakraborty, H. Subramoni, P. Kousha and D. K. Panda, SALaR: scalable and adaptive designs for large \
            message reduction collectives, IEEE CLUSTER 2018",
    did: &[
        "One leader a node. While the leader takes one slice through the network, the other ranks of the node reduce the next one; when both are \
         done, the first is handed out.",
        "Between nodes, leaders read, reduce and write one another's buffers (RDMA), in smaller pieces still. The size of slices adapts: it grows \
         from call to call until a call takes longer, goes back by half, and stays.",
        "InfiniBand clusters of many-core nodes, long messages.",
    ],
    differs: &[
        "The paper itself was not at hand, but a review of it that has no figures: what is compared is that the pipeline gains, and that adaptive slices are \
         as good as the best fixed ones.",
        "Hosts are network namespaces of this machine, links of 200 Mbit/s, TCP: the schedule between the leaders is a ring of messages, and the \
         processor that reduces also carries the messages of all hosts.",
        "All ranks of a node reduce, the leader too. Slices are cut so that the order of additions is the same for all of them.",
        "512 KB to 16 MB, 4 hosts x 4 ranks. Adaptive slices have settled before calls are timed.",
    ],
};

/// The series: whole messages, slices of fixed size, adaptive ones; and the library.
const OFF: &str = "off";
const ADAPTIVE: &str = "adaptive";
const NATIVE: &str = "native";
const FIXED: [(&str, u64); 3] = [("slice-128K", 128 << 10), ("slice-512K", 512 << 10), ("slice-2M", 2 << 20)];

/// The settings of the study.
pub struct Salar {
    quick: bool,
    job: Job,
    known: Known,
}

impl Salar {
    /// The study that is asked for.
    ///
    /// # Errors
    ///
    /// [`Error::Usage`] for fewer than two hosts or two ranks a host, and sizes of no element.
    pub fn of(options: &ClusterStudy, known: &Known) -> Result<Salar> {
        let quick = options.study.quick;
        let (hosts, slots) =
            (options.hosts.unwrap_or(if quick { 2 } else { 4 }), options.slots.unwrap_or(if quick { 2 } else { 4 }));
        check_hosts(hosts, 2, "a network that overlaps with nodes")?;
        if slots < 2 {
            return Err(Error::Usage(format!(
                "--slots {slots}: with one rank a host there is nothing to overlap; give 2 or more"
            )));
        }
        let usual: &[u64] = match quick {
            true => &[512 << 10, 1 << 20],
            false => &[512 << 10, 1 << 20, 2 << 20, 4 << 20, 8 << 20, 16 << 20],
        };
        let sizes = sizes(&options.sizes, usual);
        check_sizes(&sizes)?;
        let rules = |name: &str, slice: &str| format!("{name}=allreduce:ring,leaders=1,slice={slice}");
        let mut series = vec![rules(OFF, "whole")];
        let fixed = FIXED.iter().filter(|(_, bytes)| !quick || *bytes < 512 << 10);
        series.extend(fixed.map(|(name, bytes)| rules(name, &show_size(*bytes))));
        series.extend([rules(ADAPTIVE, "adaptive"), NATIVE.to_owned()]);
        let job = Job {
            group: "slices",
            hosts,
            slots,
            per_switch: None,
            rate: options.rate.clone().map_or_else(|| "200mbit".parse::<Rate>(), Ok).map_err(Error::Usage)?,
            placement: "block",
            mpi: options.mpi,
            eager: true,
            collective: "allreduce",
            sizes,
            calls: options.calls.unwrap_or(if quick { 2 } else { 5 }),
            series,
            once: Vec::new(),
        };
        Ok(Salar { quick, job, known: known.clone() })
    }
}

impl Study for Salar {
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
        let mut outcome = empty(&DESCRIPTION, "salar", self.quick);
        let group = taken.group(self.job.group);
        if group.cases.is_empty() {
            return Ok(outcome);
        }
        outcome.ran.push(self.job.ran(&group.library));
        let bound = group.goodput.map(|goodput| multiple(self.job.hosts) / goodput);
        let mut chart = Chart::new("allreduce by slices: time [ms]", How::Measured);
        group.series().into_iter().for_each(|name| chart.curve(name.clone(), group.curve(&name)));
        if let Some(bound) = bound {
            chart.curve(
                "bound",
                group.sizes().into_iter().map(|bytes| (bytes as f64, 1e3 * bound * bytes as f64)).collect(),
            );
        }
        outcome.charts.push(chart);
        let mut gains = Chart::of_ratios("time without the pipeline / with it", How::Measured);
        for name in group.series().iter().filter(|name| ![OFF, NATIVE].contains(&name.as_str())) {
            let ratio = |bytes: u64| Some((bytes as f64, group.ratio(OFF, name, bytes)?.median));
            gains.curve(name.clone(), group.sizes().into_iter().filter_map(ratio).collect());
        }
        outcome.charts.push(gains);
        outcome.tables.push(times(&group, bound));
        outcome.findings.extend(pipeline(&group, bound));
        outcome.findings.extend(adaptive(&group));
        outcome.findings.extend(beside_library(&group));
        Ok(outcome)
    }
}

/// The fixed slices that were measured and that cut a message of `bytes`.
fn fixed(group: &Group, bytes: u64) -> Vec<&'static str> {
    let cut = FIXED.iter().filter(|(name, slice)| *slice < bytes && group.case(name, bytes).is_some());
    cut.map(|(name, _)| *name).collect()
}

/// The quickest of some series.
fn best<'a>(group: &Group, names: &[&'a str], bytes: u64) -> Option<&'a str> {
    let time = |name: &&str| group.case(name, bytes).map_or(f64::INFINITY, |case| case.milliseconds().median);
    names.iter().copied().min_by(|a, b| time(a).total_cmp(&time(b)))
}

/// The slice that an adaptive series came to, from what it says of itself.
fn settled(group: &Group, bytes: u64) -> String {
    let how = group.case(ADAPTIVE, bytes).map_or("", |case| case.how.as_str());
    how.split_once(", ").map_or(how, |(_, rest)| rest).to_owned()
}

fn times(group: &Group, bound: Option<f64>) -> Sheet {
    let series = group.series();
    let mut heads = vec!["bytes", "bound"];
    heads.extend(series.iter().map(String::as_str));
    heads.extend(["off / adaptive (range)", "adaptive / best fixed (range)", "adaptive came to<"]);
    let mut sheet = Sheet::new("allreduce by slices: median time [ms]; off: whole messages", &heads);
    for bytes in group.sizes() {
        let mut cells =
            vec![show_size(bytes), bound.map_or_else(|| "-".into(), |bound| three_digits(1e3 * bound * bytes as f64))];
        cells.extend(series.iter().map(|name| {
            group.case(name, bytes).map_or_else(|| "-".into(), |case| three_digits(case.milliseconds().median))
        }));
        let fixed = best(group, &fixed(group, bytes), bytes);
        cells.extend([
            with_range(group.ratio(OFF, ADAPTIVE, bytes)),
            with_range(fixed.and_then(|fixed| group.ratio(ADAPTIVE, fixed, bytes))),
            settled(group, bytes),
        ]);
        sheet.row(cells);
    }
    sheet
}

fn pipeline(group: &Group, bound: Option<f64>) -> Option<Finding> {
    let gains: Vec<(u64, &str, Summary)> = group
        .sizes()
        .into_iter()
        .filter_map(|bytes| {
            let mut names = fixed(group, bytes);
            names.push(ADAPTIVE);
            let name = best(group, &names, bytes)?;
            Some((bytes, name, group.ratio(OFF, name, bytes)?))
        })
        .collect();
    let most = gains.iter().max_by(|a, b| a.2.median.total_cmp(&b.2.median))?;
    let gaining = gains.iter().filter(|(_, _, gain)| gain.p25 > 1.02).count();
    let left = bound.and_then(|bound| {
        let (bytes, ..) = gains.last()?;
        Some(group.case(OFF, *bytes)?.milliseconds().median / (1e3 * bound * *bytes as f64))
    });
    let room = left.map_or_else(String::new, |left| format!(" Without it a call takes {left:.2} times the bound of the links at the largest size: more cannot be gained."));
    Some(Finding {
        about: "The pipeline".into(),
        paper: "reduction in the node and the network's allreduce overlap, which makes long messages faster".into(),
        source: "section on the pipeline, as a review has it; no figure".into(),
        ours: format!(
            "surely faster at {gaining} of {} sizes; the most is {} at {}, {}.{room}",
            gains.len(),
            with_range(Some(most.2)),
            show_size(most.0),
            most.1
        ),
        how: How::Measured,
        verdict: match gaining {
            0 => Verdict::Differs,
            count if 2 * count >= gains.len() => Verdict::Agrees,
            _ => Verdict::Partly,
        },
        why: "surely means that three quarters of the turns gain more than 2 %. What overlaps here is work of the same two cores; only what the links take remains to be hidden".into(),
    })
}

fn adaptive(group: &Group) -> Option<Finding> {
    let ratios: Vec<(u64, &str, Summary)> = group
        .sizes()
        .into_iter()
        .filter_map(|bytes| {
            let mut names = fixed(group, bytes);
            names.push(OFF);
            let name = best(group, &names, bytes)?;
            Some((bytes, name, group.ratio(ADAPTIVE, name, bytes)?))
        })
        .collect();
    let worst = ratios.iter().max_by(|a, b| a.2.median.total_cmp(&b.2.median))?;
    let middle = Summary::of(&ratios.iter().map(|(_, _, ratio)| ratio.median).collect::<Vec<_>>()).median;
    Some(Finding {
        about: "Adaptive slices".into(),
        paper: "slices that grow until a call takes longer find a good size by themselves".into(),
        source: "section on run-time tuning, as a review has it; no figure".into(),
        ours: format!(
            "adaptive over the best of whole and fixed ones: median {middle:.2}; the worst is {} at {}, beside {}",
            with_range(Some(worst.2)),
            show_size(worst.0),
            worst.1
        ),
        how: How::Measured,
        verdict: if worst.2.median <= 1.1 {
            Verdict::Agrees
        } else if middle <= 1.1 {
            Verdict::Partly
        } else {
            Verdict::Differs
        },
        why: "agreement means that nowhere it takes a tenth longer than the best, which nobody knows beforehand".into(),
    })
}

fn beside_library(group: &Group) -> Option<Finding> {
    let gains: Vec<f64> =
        group.sizes().into_iter().filter_map(|bytes| Some(group.ratio(NATIVE, ADAPTIVE, bytes)?.median)).collect();
    let gains = Summary::of(&gains);
    (gains.count > 0).then(|| Finding {
        about: "Beside the MPI library".into(),
        paper: "faster than the libraries then, for long messages".into(),
        source: "title and review; no figure".into(),
        ours: format!(
            "the library's time over ours with adaptive slices: median {:.2}, from {:.2} to {:.2} ({})",
            gains.median, gains.min, gains.max, group.library
        ),
        how: How::Measured,
        verdict: if gains.min > 1.0 { Verdict::Agrees } else { Verdict::Partly },
        why: "agreement means faster at all sizes".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::taken::tests::across;
    use super::*;
    use crate::reproduce::options::{Reproduce, tests::asked};

    fn study(words: &[&str]) -> Result<Salar> {
        match asked("salar", words) {
            Reproduce::Salar(options) => Salar::of(&options, &Known::default()),
            other => panic!("{other:?}"),
        }
    }

    fn with(off: f64, small: f64, adaptive: f64) -> Outcome {
        let mut taken = Taken::default();
        let bytes = 4 << 20;
        let [off, small, adaptive] = [off, small, adaptive].map(|time| [time, time, time]);
        taken.put(
            "slices/4M",
            across(&[
                (OFF, bytes, &off),
                ("slice-512K", bytes, &small),
                (ADAPTIVE, bytes, &adaptive),
                (NATIVE, bytes, &[900.0; 3]),
            ]),
        );
        study(&[]).unwrap().conclude(&taken).unwrap()
    }

    #[test]
    fn a_pipeline_that_gains_and_slices_that_find_their_size_agree() {
        let verdicts = |outcome: &Outcome| outcome.findings.iter().map(|finding| finding.verdict).collect::<Vec<_>>();
        let all = with(800.0, 650.0, 660.0);
        assert_eq!(verdicts(&all), [Verdict::Agrees; 3]);
        assert!(all.findings[0].ours.contains("1.23"), "{}", all.findings[0].ours);
        assert_eq!(verdicts(&with(800.0, 805.0, 801.0))[..2], [Verdict::Differs, Verdict::Agrees]);
        assert_eq!(verdicts(&with(800.0, 600.0, 790.0))[1], Verdict::Differs);
    }

    #[test]
    fn slices_that_do_not_cut_are_not_compared() {
        let mut taken = Taken::default();
        taken.put(
            "slices/512K",
            across(&[(OFF, 512 << 10, &[9.0]), ("slice-512K", 512 << 10, &[1.0]), (ADAPTIVE, 512 << 10, &[9.0])]),
        );
        assert!(fixed(&taken.group("slices"), 512 << 10).is_empty());
    }

    #[test]
    fn one_rank_a_host_is_refused() {
        let Err(error) = study(&["--slots", "1"]) else { panic!() };
        assert!(error.to_string().contains("2 or more"), "{error}");
        assert_eq!(study(&[]).unwrap().pieces().len(), 6);
        assert_eq!(study(&["--quick"]).unwrap().job.series.len(), 4);
    }
}
