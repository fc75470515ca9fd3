//! What was simulated: kinds of trees, their degree, and what it gains that they know sockets.

use shm_core::Collective;

use super::ReleaseGather;
use crate::reproduce::outcome::{Chart, Finding, How, Outcome, Sheet, Verdict};
use crate::reproduce::taken::Taken;
use crate::reproduce::trees::{Times, papers, shape};
use crate::sizes::show_size;
use crate::statistics::Summary;
use crate::table::microseconds;

impl ReleaseGather {
    /// Kinds of trees, K, skew, awareness: simulated.
    pub(super) fn trees(&self, taken: &Taken, outcome: &mut Outcome) {
        let reduce = Times::of(taken, Collective::Reduce, &self.tree_sizes);
        let broadcast = Times::of(taken, Collective::Broadcast, &self.tree_sizes);
        for (what, times, skews) in
            [(Collective::Reduce, &reduce, ["right", "left"]), (Collective::Broadcast, &broadcast, ["left", "right"])]
        {
            if times.is_empty() {
                continue;
            }
            let heads = [
                "bytes",
                "best aware<",
                "us",
                "best unaware<",
                "us",
                "unaware / aware",
                "flat",
                "kary:3",
                "knomial:4",
                "other skew, kary:3",
                "knomial:4",
            ];
            let mut sheet = Sheet::new(
                format!(
                    "SIMULATED {what}, {} ranks: time over each tree [us]; three columns of unaware ones, two with the other skew",
                    self.machine.ranks()
                ),
                &heads,
            );
            for one in times {
                let (Some(aware), Some(unaware)) = (one.best(true), one.best(false)) else { continue };
                let shown =
                    |shape: &str, skew: &str| one.tree(shape, skew, false).map_or_else(|| "-".into(), microseconds);
                sheet.row(vec![
                    show_size(one.bytes),
                    shape(aware.0),
                    microseconds(aware.1),
                    shape(unaware.0),
                    microseconds(unaware.1),
                    format!("{:.2}", unaware.1 / aware.1),
                    shown("flat", skews[0]),
                    shown("kary:3", skews[0]),
                    shown("knomial:4", skews[0]),
                    shown("kary:3", skews[1]),
                    shown("knomial:4", skews[1]),
                ]);
            }
            outcome.tables.push(sheet);
        }
        outcome.findings.extend(awareness(&reduce, &mut outcome.charts));
        outcome.findings.extend(k_by_size(&reduce));
        outcome.findings.extend(flat_broadcast(&broadcast));
    }
}

/// The gain of the paper's aware trees over its unaware ones.
fn awareness(times: &[Times], charts: &mut Vec<Chart>) -> Option<Finding> {
    let paper = |one: &Times| {
        Some(one.tree(papers(one.bytes, false), "right", false)? / one.tree(papers(one.bytes, true), "right", true)?)
    };
    let same = |one: &Times| {
        let shape = papers(one.bytes, true);
        Some(one.tree(shape, "right", false)? / one.tree(shape, "right", true)?)
    };
    let curve = |gain: &dyn Fn(&Times) -> Option<f64>| -> Vec<(f64, f64)> {
        times.iter().filter_map(|one| Some((one.bytes as f64, gain(one)?))).collect()
    };
    let (papers, alike, best) =
        (curve(&paper), curve(&same), curve(&|one| Some(one.best(false)?.1 / one.best(true)?.1)));
    let most = papers.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let best_most = best.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let mut chart = Chart::of_ratios("SIMULATED reduce: unaware tree / aware one", How::Simulated);
    chart.curve("the paper's trees", papers);
    chart.curve("the same shape", alike);
    chart.curve("best of each", best);
    charts.push(chart);
    Some(Finding {
        about: "Trees that know sockets".into(),
        paper: "careful design of trees improves up to 1.8 times over naive ones; MPI_Reduce, 40 ranks".into(),
        source: "Slides 25 and 28".into(),
        ours: format!(
            "the paper's trees: up to {:.2} times, at {}; the best aware beside the best unaware one: up to {:.2}, at {}",
            most.1,
            show_size(most.0 as u64),
            best_most.1,
            show_size(best_most.0 as u64)
        ),
        how: How::Simulated,
        verdict: if (1.5..=2.2).contains(&most.1) { Verdict::Agrees } else { Verdict::Partly },
        why: "agreement means 1.5 to 2.2. The paper changes shape and awareness at once: part of the gain is that of the shape. Latencies are those of the next generation of processors, and \
              many figures are assumed"
            .into(),
    })
}

/// Which K is best by size.
fn k_by_size(times: &[Times]) -> Option<Finding> {
    // The time of the paper's choice over that of the best aware tree.
    let choice = |bytes: u64| match bytes {
        0..512 => ("knomial:4", false),
        512..8192 => ("kary:3", true),
        _ => ("kary:2", true),
    };
    let mut words = Vec::new();
    let mut lost: Vec<f64> = Vec::new();
    for one in times {
        let (shape_of, aware) = choice(one.bytes);
        let best = [one.best(true)?, one.best(false)?].into_iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
        lost.push(one.tree(shape_of, "right", aware)? / best.1);
        let knows = if best.0.contains("leaders") { "aware" } else { "unaware" };
        words.push(format!("{} {} {knows}", show_size(one.bytes), shape(best.0)));
    }
    let lost = Summary::of(&lost);
    (lost.count > 0).then(|| Finding {
        about: "Kind of tree and K by size".into(),
        paper: "for an allreduce's gather: below 512 B k-nomial K = 4, unaware; to 8 KB k-ary K = 3, aware; then k-ary K = 2, aware".into(),
        source: "Slide 24".into(),
        ours: format!("the best of 20 trees of a reduce: {}. The paper's choices take {:.2} times as long, on the median, at most {:.2}", words.join(", "), lost.median, lost.max),
        how: How::Simulated,
        verdict: if lost.median <= 1.1 {
            Verdict::Agrees
        } else if lost.median <= 1.3 {
            Verdict::Partly
        } else {
            Verdict::Differs
        },
        why: "agreement means within a tenth of the best, on the median over sizes".into(),
    })
}

/// Whether flat is best for a broadcast.
fn flat_broadcast(times: &[Times]) -> Option<Finding> {
    let lost: Vec<(u64, f64, String)> = times
        .iter()
        .filter_map(|one| {
            let best = [one.best(true)?, one.best(false)?].into_iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
            Some((one.bytes, one.tree("flat", "left", false)? / best.1, shape(best.0)))
        })
        .collect();
    let worst = lost.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let within = lost.iter().filter(|(_, ratio, _)| *ratio <= 1.1).count();
    Some(Finding {
        about: "A flat tree for broadcasts".into(),
        paper: "a flat tree carries the flags of a broadcast".into(),
        source: "Slide 23".into(),
        ours: format!(
            "flat is within a tenth of the best tree at {within} of {} sizes; the worst is {:.2}, at {}, beside {}",
            lost.len(),
            worst.1,
            show_size(worst.0),
            worst.2
        ),
        how: How::Simulated,
        verdict: if within == lost.len() {
            Verdict::Agrees
        } else if 2 * within >= lost.len() {
            Verdict::Partly
        } else {
            Verdict::Differs
        },
        why: "one stamp serves all readers, and each socket fetches a line from afar once".into(),
    })
}
