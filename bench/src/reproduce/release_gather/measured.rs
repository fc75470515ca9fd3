//! What was measured: ours beside the paper's parameters and beside MPIs, cells, a late rank.

use shm_core::Collective;

use super::{CELLS, COLLECTIVES, LATE, OURS, PAPER, ReleaseGather};
use crate::reproduce::outcome::{Chart, Finding, How, Outcome, Sheet, Verdict};
use crate::reproduce::taken::{NodeRow, Taken, with_range};
use crate::runs::ours;
use crate::sizes::show_size;
use crate::statistics::Summary;
use crate::table::microseconds;

/// The median over turns of what `value` finds in each.
fn over_turns(turns: &[Vec<NodeRow>], value: impl Fn(&[NodeRow]) -> Option<f64>) -> Option<Summary> {
    let values: Vec<f64> = turns.iter().filter_map(|rows| value(rows)).collect();
    let summary = Summary::of(&values);
    (summary.count > 0).then_some(summary)
}

/// The ratio of two settings, turn by turn.
fn ratio(
    first: &[Vec<NodeRow>],
    second: &[Vec<NodeRow>],
    value: impl Fn(&[NodeRow]) -> Option<f64>,
) -> Option<Summary> {
    let ratios: Vec<f64> =
        first.iter().zip(second).filter_map(|(one, other)| Some(value(one)? / value(other)?)).collect();
    let summary = Summary::of(&ratios);
    (summary.count > 0).then_some(summary)
}

/// The time of a series in a turn; of an MPI the best of its settings.
fn time(rows: &[NodeRow], series: &str, what: Collective, bytes: u64) -> Option<f64> {
    let here = |row: &&NodeRow| {
        row.operation == what.name() && row.bytes == bytes && row.series.split(':').next() == Some(series)
    };
    rows.iter().filter(here).map(|row| row.median).min_by(f64::total_cmp)
}

/// The geometric mean.
fn mean_ratio(ratios: &[f64]) -> Option<f64> {
    (!ratios.is_empty()).then(|| (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp())
}

impl ReleaseGather {
    pub(super) fn mpi_words(&self, taken: &Taken) -> String {
        let found = self.mpis(taken);
        if found.is_empty() { "no MPI".into() } else { found.join(" and ") }
    }

    /// The MPIs that were measured.
    fn mpis(&self, taken: &Taken) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for row in self.rows(taken, OURS).iter().flatten().filter(|row| row.series != ours::NAME) {
            let name = row.series.split(':').next().unwrap_or_default().to_owned();
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// Ours beside the paper's parameters and beside MPIs.
    pub(super) fn node(&self, taken: &Taken, outcome: &mut Outcome) {
        let (own, paper) = (self.rows(taken, OURS), self.rows(taken, PAPER));
        if own.is_empty() {
            return;
        }
        let mpis = self.mpis(taken);
        let mut heads = vec![
            "collective<".to_owned(),
            "bytes".into(),
            "ours".into(),
            "paper's parameters".into(),
            "paper's / ours (range)".into(),
        ];
        heads.extend(mpis.iter().flat_map(|name| [name.clone(), format!("{name} / ours (range)")]));
        let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
        let mut sheet = Sheet::new(format!("{} ranks: median time [us]", self.ranks), &heads);
        let mut by_parameters: Vec<f64> = Vec::new();
        for what in COLLECTIVES {
            let mut chart = Chart::new(format!("{what}: time [us]"), How::Measured);
            let mut curves: Vec<(String, Vec<(f64, f64)>)> = ["ours", "paper's parameters"]
                .into_iter()
                .map(String::from)
                .chain(mpis.iter().cloned())
                .map(|name| (name, Vec::new()))
                .collect();
            for &bytes in &self.sizes {
                let mine = |rows: &[NodeRow]| time(rows, ours::NAME, what, bytes);
                let beside = ratio(&paper, &own, mine);
                by_parameters.extend(beside.map(|ratio| ratio.median));
                let shown = |summary: Option<Summary>| {
                    summary.map_or_else(|| "-".into(), |summary| microseconds(summary.median))
                };
                let mut point = |index: usize, summary: Option<Summary>| {
                    curves[index].1.extend(summary.map(|summary| (bytes as f64, summary.median)));
                    shown(summary)
                };
                let mut cells = vec![what.to_string(), show_size(bytes)];
                cells.push(point(0, over_turns(&own, mine)));
                cells.push(point(1, over_turns(&paper, mine)));
                cells.push(with_range(beside));
                for (index, name) in mpis.iter().enumerate() {
                    let theirs = |rows: &[NodeRow]| time(rows, name, what, bytes);
                    cells.push(point(2 + index, over_turns(&own, theirs)));
                    let ratios: Vec<f64> = own.iter().filter_map(|rows| Some(theirs(rows)? / mine(rows)?)).collect();
                    cells.push(with_range(Some(Summary::of(&ratios)).filter(|ratio| ratio.count > 0)));
                }
                sheet.row(cells);
            }
            curves.into_iter().for_each(|(name, points)| chart.curve(name, points));
            outcome.charts.push(chart);
        }
        outcome.tables.push(sheet);
        outcome.findings.extend(self.beside_mpis(&own, &mpis));
        outcome.findings.extend(mean_ratio(&by_parameters).map(|mean| Finding {
            about: "The paper's parameters beside ours".into(),
            paper: "4 cells of 8 KB, trees by size: what was best on 40 ranks".into(),
            source: "Slides 23 and 24".into(),
            ours: format!(
                "the paper's take {mean:.2} times as long as ours, on the geometric mean of {} cases; from {:.2} to {:.2}",
                by_parameters.len(),
                Summary::of(&by_parameters).min,
                Summary::of(&by_parameters).max
            ),
            how: How::Measured,
            verdict: if (0.9..=1.1).contains(&mean) { Verdict::Agrees } else { Verdict::Differs },
            why: "agreement means that they do as well as ours within a tenth. Ours sends short messages in the line that says that they are there, and long reductions by shares; neither was the \
                  paper's subject"
                .into(),
        }));
    }

    fn beside_mpis(&self, own: &[Vec<NodeRow>], mpis: &[String]) -> Option<Finding> {
        let mut words = Vec::new();
        let mut all = Vec::new();
        for name in mpis {
            for what in COLLECTIVES {
                let of = |&bytes: &u64| {
                    let ratios = own
                        .iter()
                        .filter_map(|rows| Some(time(rows, name, what, bytes)? / time(rows, ours::NAME, what, bytes)?));
                    Some(Summary::of(&ratios.collect::<Vec<_>>()))
                        .filter(|ratio| ratio.count > 0)
                        .map(|ratio| ratio.median)
                };
                let ratios: Vec<f64> = self.sizes.iter().filter_map(of).collect();
                if let Some(mean) = mean_ratio(&ratios) {
                    words.push(format!("{name} {what} {mean:.2}"));
                    all.push(mean);
                }
            }
        }
        let mean = mean_ratio(&all)?;
        Some(Finding {
            about: "Beside MPI libraries".into(),
            paper: "average speedups 3.9 over Open MPI, 1.2 over MVAPICH2, 2.1 over MPICH/ch3, 2.9 over MPICH/ch4, at 40 ranks".into(),
            source: "Slide 5 says so of MPI_Allreduce, slide 23 of MPI_Bcast, with the same four numbers".into(),
            ours: format!("their best time over ours, geometric mean over sizes: {}", words.join(", ")),
            how: How::Measured,
            verdict: if mean >= 1.05 { Verdict::Partly } else { Verdict::Differs },
            why: format!(
                "two ranks and not 40, later libraries with their best settings: the direction can be compared, and it is {} on the whole ({mean:.2})",
                if mean >= 1.05 { "the same" } else { "not the same" }
            ),
        })
    }

    /// Numbers and sizes of cells.
    pub(super) fn cells(&self, taken: &Taken, outcome: &mut Outcome) {
        let long: Vec<u64> = self.sizes.iter().copied().filter(|&bytes| bytes >= 16 << 10).collect();
        let found: Vec<(&str, Vec<Vec<NodeRow>>)> = CELLS
            .iter()
            .map(|(name, _)| (*name, self.rows(taken, &format!("cells {name}"))))
            .filter(|(_, rows)| !rows.is_empty())
            .collect();
        if found.len() < 2 {
            return;
        }
        let mut heads = vec!["collective<", "bytes"];
        heads.extend(found.iter().map(|(name, _)| *name));
        heads.push("best<");
        let mut sheet = Sheet::new("size and number of cells: median time [us]", &heads);
        let paper = found.iter().find(|(name, _)| *name == "8K x 4");
        let mut lost: Vec<(f64, String)> = Vec::new();
        for what in COLLECTIVES {
            for &bytes in &long {
                let value = |rows: &[NodeRow]| time(rows, ours::NAME, what, bytes);
                let medians: Vec<Option<f64>> =
                    found.iter().map(|(_, rows)| over_turns(rows, value).map(|time| time.median)).collect();
                let best = (0..found.len())
                    .filter(|&i| medians[i].is_some())
                    .min_by(|&a, &b| medians[a].unwrap_or(0.0).total_cmp(&medians[b].unwrap_or(0.0)));
                let Some(best) = best else { continue };
                let mut cells = vec![what.to_string(), show_size(bytes)];
                cells.extend(medians.iter().map(|time| time.map_or_else(|| "-".into(), microseconds)));
                cells.push(found[best].0.into());
                sheet.row(cells);
                if let Some(ratio) = paper.and_then(|(_, rows)| ratio(rows, &found[best].1, value)) {
                    lost.push((ratio.median, format!("{} at {what} of {}", found[best].0, show_size(bytes))));
                }
            }
        }
        outcome.tables.push(sheet);
        let mean = mean_ratio(&lost.iter().map(|(ratio, _)| *ratio).collect::<Vec<_>>());
        let most = lost.iter().max_by(|a, b| a.0.total_cmp(&b.0));
        if let (Some(mean), Some((ratio, most))) = (mean, most) {
            outcome.findings.push(Finding {
                about: "Size and number of cells".into(),
                paper: "buffers of 32 KB split into 4 cells".into(),
                source: "Slides 23 and 24".into(),
                ours: format!("4 cells of 8 KB take {mean:.2} times as long as the best of {} choices, on the mean from 16 KB on; at most {ratio:.2} ({most})", found.len()),
                how: How::Measured,
                verdict: if mean <= 1.1 { Verdict::Agrees } else { Verdict::Partly },
                why: "agreement means within a tenth of the best. Two ranks hand over a cell at a time: larger ones save stamps, smaller ones overlap more".into(),
            });
        }
    }

    /// What a late rank does to the others.
    pub(super) fn late(&self, taken: &Taken, outcome: &mut Outcome) {
        let (own, paper) = (self.rows(taken, "late ours"), self.rows(taken, "late paper"));
        if own.is_empty() {
            return;
        }
        let mpis = self.mpis(taken);
        let mut heads = vec!["collective<".to_owned(), "bytes".into(), "ours".into(), "paper's parameters".into()];
        heads.extend(mpis.iter().cloned());
        let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
        let mut sheet = Sheet::new(
            format!(
                "the last rank comes {LATE} us late: time of the rank that is held up longest [us]; its clock begins when it comes"
            ),
            &heads,
        );
        let mut held = Vec::new();
        for what in COLLECTIVES {
            for &bytes in &self.late_sizes {
                let mine = |rows: &[NodeRow]| time(rows, ours::NAME, what, bytes);
                let (here, theirs) = (over_turns(&own, mine), over_turns(&paper, mine));
                let shown = |summary: Option<Summary>| {
                    summary.map_or_else(|| "-".into(), |summary| microseconds(summary.median))
                };
                let mut cells = vec![what.to_string(), show_size(bytes), shown(here), shown(theirs)];
                cells.extend(mpis.iter().map(|name| shown(over_turns(&own, |rows| time(rows, name, what, bytes)))));
                sheet.row(cells);
                if let (Collective::Broadcast, Some(here), Some(theirs)) = (what, here, theirs) {
                    held.push((bytes, here.median, theirs.median));
                }
            }
        }
        outcome.tables.push(sheet);
        let waits = |time: f64| time >= 0.5 * LATE as f64;
        let sizes = |of: &dyn Fn(&(u64, f64, f64)) -> f64| {
            let free: Vec<String> = held.iter().filter(|one| !waits(of(one))).map(|one| show_size(one.0)).collect();
            if free.is_empty() { "none".to_owned() } else { free.join(", ") }
        };
        let (ours, theirs) = (sizes(&|one| one.1), sizes(&|one| one.2));
        outcome.findings.push(Finding {
            about: "A late rank".into(),
            paper: "the root of a broadcast goes on once its cells are filled; only a cell that is used again has to be waited for".into(),
            source: "Slides 14, 15 and 19".into(),
            ours: format!("a broadcast's root is not held up by a reader that comes {LATE} us late at these sizes: {ours}; with the paper's cells: {theirs}"),
            how: How::Measured,
            verdict: if theirs == "none" { Verdict::Differs } else { Verdict::Agrees },
            why: "held up means half of the lateness or more. 4 cells of 8 KB hold 32 KB; reductions have to wait for every contribution in any case".into(),
        });
    }
}
