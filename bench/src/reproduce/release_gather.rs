//! `bench reproduce release-gather`: collectives of one node from release and gather steps, with the paper's parameters beside ours.

use std::env;
use std::rc::Rc;
use std::time::Duration;

use serde_json::{Value, json};
use shm_core::Collective;

use super::options::NodeStudy;
use super::outcome::{Chart, Finding, How, Outcome, Ran, Sheet, Verdict};
use super::piece::{Piece, Words, Work};
use super::run::{self, Study, empty};
use super::taken::{NodeRow, Taken, with_range};
use super::trees::{self, Machine, PAPER_CELLS, Times, papers, shape};
use crate::error::Result;
use crate::machine::usable_cores;
use crate::runs::ours;
use crate::sizes::show_size;
use crate::statistics::Summary;
use crate::study::Description;
use crate::table::microseconds;

/// The study.
pub const DESCRIPTION: Description = Description {
    name: "reproduce release-gather",
    paper: "S. Jain, R. Kaleem, M. Gamell Balmana, A. Langer, D. Durnov, A. Sannikov and M. Garzaran, Framework for scalable intra-node \
            collective operations using shared memory, SC 2018 (slides)",
    did: &[
        "Broadcast, reduce and allreduce of one node from two steps over trees, release (top down) and gather (bottom up), with 32 KB of shared memory a \
         rank in 4 cells, trees that know sockets, and a root that reduces into its own buffer.",
        "Two Intel Xeon Gold 6138F, 2 x 20 cores, 40 ranks: IMB, up to 4 MB, 5000 calls, a barrier before each, t_max; beside Open MPI 3.0.0, \
         MVAPICH2 2.3rc1, MPICH/ch3 and ch4. Topology-aware trees beside unaware ones for MPI_Reduce. 32 nodes x 40 ranks.",
    ],
    differs: &[
        "As many ranks as this machine has cores are measured: with two of them every tree is the same. Kinds of trees, K, skew and awareness are \
         simulated on a described machine of 2 x 20 cores (bench simulate-node), with the production protocols.",
        "Paper: 4 cells of 8 KB both ways; gather trees k-nomial K = 4 below 512 bytes, then k-ary K = 3 aware of sockets, from 8 KB on K = 2; \
         release flat. Ours: what the built-in table takes, lines and shares included.",
        "Inputs are written anew before each call, answers are checked, all settings take turns. Times are medians of the slowest rank's.",
        "MPIs are those installed here, each with its best settings; MVAPICH2 is not. Several nodes are other studies: ring, dpml, salar.",
    ],
};

/// The collectives, in the order of the tables.
const COLLECTIVES: [Collective; 3] = [Collective::Broadcast, Collective::Reduce, Collective::Allreduce];
/// Of which trees are simulated: an allreduce is the other two.
const SIMULATED: [Collective; 2] = [Collective::Broadcast, Collective::Reduce];
/// Cells that are measured: (name, rules).
const CELLS: [(&str, &str); 7] = [
    ("8K x 2", "up_cell=8K,up_cells=2,down_cell=8K,down_cells=2"),
    ("8K x 4", PAPER_CELLS),
    ("8K x 8", "up_cell=8K,up_cells=8,down_cell=8K,down_cells=8"),
    ("2K x 4", "up_cell=2K,up_cells=4,down_cell=2K,down_cells=4"),
    ("4K x 4", "up_cell=4K,up_cells=4,down_cell=4K,down_cells=4"),
    ("16K x 4", "up_cell=16K,up_cells=4,down_cell=16K,down_cells=4"),
    ("32K x 4", "up_cell=32K,up_cells=4,down_cell=32K,down_cells=4"),
];
/// The paper's trees.
const PAPER_TREES: &str = "release: flat; gather: knomial:4:right < 512, kary:3:right:package:leaders-last < 8K, \
                           kary:2:right:package:leaders-last";
/// How late the last rank is, in microseconds.
const LATE: u64 = 100;
/// Names of kinds of pieces.
const OURS: &str = "ours";
const PAPER: &str = "paper";
/// The MPIs that are looked for.
const MPIS: [&str; 2] = ["openmpi", "mpich"];

/// The settings of the study.
pub struct ReleaseGather {
    quick: bool,
    ranks: usize,
    sizes: Vec<u64>,
    late_sizes: Vec<u64>,
    tree_sizes: Vec<u64>,
    turns: u32,
    baselines: Vec<String>,
    machine_name: String,
    machine: Rc<Machine>,
}

/// Runs the study.
///
/// # Errors
///
/// [`Error::Usage`](crate::error::Error::Usage) for a machine that is not known; those of [`run::run`].
pub fn run(options: &NodeStudy) -> Result<()> {
    run::run(&ReleaseGather::of(options)?, &options.study, Duration::from_secs(options.timeout), true)
}

impl ReleaseGather {
    /// The study that is asked for.
    ///
    /// # Errors
    ///
    /// [`Error::Usage`](crate::error::Error::Usage) for a machine that is not known.
    pub fn of(options: &NodeStudy) -> Result<ReleaseGather> {
        let quick = options.study.quick;
        let usual: &[u64] = match quick {
            true => &[8, 4 << 10, 64 << 10],
            false => &[8, 64, 512, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20],
        };
        let baselines = match options.baseline.is_empty() {
            false => options.baseline.iter().map(wanted).collect(),
            true => {
                MPIS.iter().filter(|name| in_path(&format!("mpicc.{name}"))).map(|name| (*name).to_owned()).collect()
            }
        };
        Ok(ReleaseGather {
            quick,
            ranks: options.ranks.unwrap_or_else(|| usable_cores().len().max(2)),
            sizes: super::cluster::sizes(&options.sizes, usual),
            late_sizes: if quick { vec![8] } else { vec![8, 4 << 10, 64 << 10, 256 << 10] },
            tree_sizes: if quick {
                vec![8, 4 << 10, 16 << 10]
            } else {
                vec![8, 64, 512, 4 << 10, 8 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20]
            },
            turns: options.turns.unwrap_or(if quick { 1 } else { 3 }),
            baselines,
            machine_name: options.machine.clone(),
            machine: Rc::new(Machine::find(&options.machine)?),
        })
    }

    /// The command of one turn of one setting.
    fn words(&self, sizes: &[u64], more: &[&str], baselines: bool) -> Words {
        let sizes: Vec<String> = sizes.iter().map(|&bytes| show_size(bytes)).collect();
        let (ranks, time) = (self.ranks.to_string(), if self.quick { "30" } else { "60" });
        let mut words = vec![
            "collectives",
            "--ranks",
            &ranks,
            "--collectives",
            "broadcast,reduce,allreduce",
            "--buffers",
            "rewritten",
        ];
        let sizes = sizes.join(",");
        words.extend(["--sizes", &sizes, "--no-floor", "--turns", "1", "--repetitions", "4", "--time-per-size", time]);
        words.extend(more);
        let mpis = self.baselines.join(",");
        if baselines && !mpis.is_empty() {
            words.extend(["--baseline", &mpis]);
        }
        Words::new(words)
    }

    /// The settings that take turns, by name.
    fn settings_in_turn(&self) -> Vec<(String, Words)> {
        let cells = |rules: &str| format!("all:cells,{rules}");
        let mut all = vec![(OURS.to_owned(), self.words(&self.sizes, &[], true))];
        let mut paper = self.words(&self.sizes, &["--algorithm", &cells(PAPER_CELLS)], false);
        paper.variables.push(("PHALANX_TREES", PAPER_TREES.into()));
        all.push((PAPER.to_owned(), paper));
        let long: Vec<u64> = self.sizes.iter().copied().filter(|&bytes| bytes >= 16 << 10).collect();
        let tried = CELLS.iter().filter(|(name, _)| !self.quick || ["8K x 2", "8K x 8"].contains(name));
        for (name, rules) in tried.filter(|_| !long.is_empty()) {
            all.push((format!("cells {name}"), self.words(&long, &["--algorithm", &cells(rules)], false)));
        }
        let late = format!("{}:{LATE}", self.ranks - 1);
        all.push(("late ours".into(), self.words(&self.late_sizes, &["--late", &late], true)));
        let mut paper = self.words(&self.late_sizes, &["--late", &late, "--algorithm", &cells(PAPER_CELLS)], false);
        paper.variables.push(("PHALANX_TREES", PAPER_TREES.into()));
        all.push(("late paper".into(), paper));
        all
    }

    /// The rows of a setting, by turn.
    fn rows(&self, taken: &Taken, name: &str) -> Vec<Vec<NodeRow>> {
        (1..=self.turns).map(|turn| taken.rows(&format!("{name}/{turn}"))).filter(|rows| !rows.is_empty()).collect()
    }
}

fn wanted(wanted: &crate::runs::baseline::Wanted) -> String {
    match &wanted.folder {
        Some(folder) => format!("{}={}", wanted.name, folder.display()),
        None => wanted.name.clone(),
    }
}

fn in_path(name: &str) -> bool {
    env::var_os("PATH").is_some_and(|path| env::split_paths(&path).any(|folder| folder.join(name).is_file()))
}

impl Study for ReleaseGather {
    fn description(&self) -> Description {
        DESCRIPTION
    }

    fn settings(&self) -> Value {
        let words: Vec<String> =
            self.settings_in_turn().into_iter().map(|(name, words)| format!("{name}: {words}")).collect();
        json!({"commands": words, "turns": self.turns, "machine": self.machine_name, "trees": self.tree_sizes})
    }

    fn pieces(&self) -> Vec<Piece> {
        let mut pieces = Vec::new();
        for turn in 1..=self.turns {
            let mut settings = self.settings_in_turn();
            // A B C, then C B A: what comes late in one turn comes early in the next.
            if turn % 2 == 0 {
                settings.reverse();
            }
            pieces.extend(
                settings
                    .into_iter()
                    .map(|(name, words)| Piece { key: format!("{name}/{turn}"), work: Work::Command(words) }),
            );
        }
        pieces.extend(trees::pieces(&self.machine, &SIMULATED, &self.tree_sizes));
        pieces
    }

    fn conclude(&self, taken: &Taken) -> Result<Outcome> {
        let mut outcome = empty(&DESCRIPTION, "release-gather", self.quick);
        let settings = self.settings_in_turn();
        let command = |name: &str| {
            settings.iter().find(|(other, _)| other == name).map_or_else(String::new, |(_, words)| words.to_string())
        };
        let ranks = self.ranks;
        outcome.ran.push(Ran {
            name: "node".into(),
            how: How::Measured,
            place: format!("{ranks} ranks on this machine, {} turns, beside {}", self.turns, self.mpi_words(taken)),
            command: command(OURS),
        });
        outcome.ran.push(Ran {
            name: "the paper's parameters".into(),
            how: How::Measured,
            place: format!("the same ranks; cells {PAPER_CELLS}"),
            command: command(PAPER),
        });
        outcome.ran.push(Ran {
            name: "trees".into(),
            how: How::Simulated,
            place: format!("{}: {} ranks in blocks, 4 cells of 8 KB", self.machine.name, self.machine.ranks()),
            command: format!("bench simulate-node --aware --machines {}", self.machine_name),
        });
        if self.baselines.is_empty() {
            outcome.missing.push(
                "MPIs beside ours: there is no mpicc.openmpi and no mpicc.mpich (--baseline names others)".into(),
            );
        }
        self.node(taken, &mut outcome);
        self.cells(taken, &mut outcome);
        self.late(taken, &mut outcome);
        self.trees(taken, &mut outcome);
        Ok(outcome)
    }
}

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
    fn mpi_words(&self, taken: &Taken) -> String {
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
    fn node(&self, taken: &Taken, outcome: &mut Outcome) {
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
    fn cells(&self, taken: &Taken, outcome: &mut Outcome) {
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
    fn late(&self, taken: &Taken, outcome: &mut Outcome) {
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

    /// Kinds of trees, K, skew, awareness: simulated.
    fn trees(&self, taken: &Taken, outcome: &mut Outcome) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{Cli, Command};
    use crate::reproduce::options::Reproduce;
    use clap::Parser;

    fn study(words: &[&str]) -> Result<ReleaseGather> {
        match Cli::try_parse_from(["bench", "reproduce", "release-gather"].iter().chain(words)).unwrap().command {
            Command::Reproduce { study } => match *study {
                Reproduce::ReleaseGather(options) => ReleaseGather::of(&options),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    /// Rows of one setting: the same time for all collectives at every size.
    fn rows(study: &ReleaseGather, times: &[(&str, f64)]) -> Value {
        let mut rows = Vec::new();
        for what in COLLECTIVES {
            for &bytes in study.sizes.iter().chain(&study.late_sizes) {
                for (series, time) in times {
                    rows.push(json!({"series": series, "operation": what.name(), "bytes": bytes, "t_min": time, "time": {"median": time}}));
                }
            }
        }
        json!({"rows": rows})
    }

    #[test]
    fn commands_are_those_that_bench_takes() {
        let study = study(&["--ranks", "2"]).unwrap();
        for (name, words) in study.settings_in_turn() {
            let line = std::iter::once("bench".to_owned()).chain(words.words.clone());
            let Command::Collectives(options) = Cli::try_parse_from(line).unwrap().command else { panic!("{name}") };
            assert_eq!((options.ranks, options.no_floor, options.turns), (vec![2], true, Some(1)), "{name}");
        }
        let keys: Vec<String> = study.pieces().into_iter().map(|piece| piece.key).collect();
        let mut once = keys.clone();
        once.sort();
        once.dedup();
        assert_eq!(once.len(), keys.len());
        PAPER_TREES.parse::<hier::TreeRules>().unwrap();
    }

    #[test]
    fn turns_go_there_and_back() {
        let study = study(&["--ranks", "2", "--quick", "--turns", "2"]).unwrap();
        let keys: Vec<String> = study.pieces().into_iter().map(|piece| piece.key).collect();
        let settings = study.settings_in_turn().len();
        assert_eq!((keys[0].as_str(), keys[2 * settings - 1].as_str()), ("ours/1", "ours/2"));
    }

    #[test]
    fn ours_the_papers_and_theirs_by_hand() {
        let study = study(&["--ranks", "2", "--quick"]).unwrap();
        let mut taken = Taken::default();
        taken.put(
            "ours/1",
            rows(&study, &[(ours::NAME, 1.0), ("openmpi:sm", 3.0), ("openmpi:tuned", 2.0), ("mpich:best", 4.0)]),
        );
        taken.put("paper/1", rows(&study, &[(ours::NAME, 1.5)]));
        taken.put("cells 8K x 2/1", rows(&study, &[(ours::NAME, 2.0)]));
        taken.put("cells 8K x 8/1", rows(&study, &[(ours::NAME, 1.0)]));
        taken.put("late ours/1", rows(&study, &[(ours::NAME, 5.0), ("openmpi:sm", 100.0)]));
        taken.put("late paper/1", rows(&study, &[(ours::NAME, 90.0)]));
        let outcome = study.conclude(&taken).unwrap();
        let find = |about: &str| outcome.findings.iter().find(|finding| finding.about.contains(about)).unwrap();
        assert!(
            find("Beside MPI").ours.contains("openmpi broadcast 2.00")
                && find("Beside MPI").ours.contains("mpich reduce 4.00")
        );
        assert!(find("parameters").ours.contains("1.50 times") && find("parameters").verdict == Verdict::Differs);
        assert_eq!(find("late").verdict, Verdict::Differs);
        assert!(find("late").ours.contains("these sizes: 8;"), "{}", find("late").ours);
        let cells = outcome.tables.iter().find(|sheet| sheet.title.contains("cells")).unwrap();
        assert!(cells.rows.iter().all(|row| row.last().unwrap() == "8K x 8"));
    }

    #[test]
    fn machines_that_are_not_known_are_refused() {
        assert!(study(&["--machine", "nowhere"]).is_err());
    }
}
