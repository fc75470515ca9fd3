//! `bench reproduce release-gather`: collectives of one node from release and gather steps, with the paper's parameters
//! beside ours.

use std::env;
use std::rc::Rc;
use std::time::Duration;

use serde_json::{Value, json};
use shm_core::Collective;

use super::options::NodeStudy;
use super::outcome::{How, Outcome, Ran};
use super::piece::{Piece, Words, Work};
use super::run::{self, Study, empty};
use super::taken::{NodeRow, Taken};
use super::trees::{self, Machine, PAPER_CELLS};
use crate::error::Result;
use crate::machine::usable_cores;
use crate::sizes::show_size;
use crate::study::Description;

mod measured;
mod simulated;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{Cli, Command};
    use crate::reproduce::options::{Reproduce, tests::asked};
    use crate::reproduce::outcome::Verdict;
    use crate::runs::ours;
    use clap::Parser;

    fn study(words: &[&str]) -> Result<ReleaseGather> {
        match asked("release-gather", words) {
            Reproduce::ReleaseGather(options) => ReleaseGather::of(&options),
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
