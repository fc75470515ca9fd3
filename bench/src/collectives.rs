//! `bench collectives`: plans the cases, runs ours and the baselines in turns, prints, records.

use std::time::{Duration, Instant};

use serde::Serialize;

use crate::against::{self, Against};
use crate::command::{Collectives, TimingWish};
use crate::error::{Error, Result};
use crate::keep::Keeper;
use crate::machine::{last_level_cache, usable_cores};
use crate::plan::{BufferMode, Case, Operation, Plan, Timing};
use crate::plot;
use crate::progress::Progress;
use crate::record::{csv, host::Host};
use crate::rows::{Ratio, Row, slowest_by_turn};
use crate::runs::baseline::{self, Baseline};
use crate::runs::{Order, mpi, ours};
use crate::samples::CaseSamples;
use crate::scratch::Scratch;
use crate::sizes::{ladder, short_ladder};
use crate::table::{self, Width};

/// Turns, blocks and block length of the comparison with the floor.
const FLOOR_TURNS: (usize, usize) = (5, 3);
const FLOOR_BLOCKS: usize = 7;
const FLOOR_BLOCK: Duration = Duration::from_millis(10);
/// The cold buffers of all ranks together take no more than this.
const MOST_COLD_BYTES: u64 = 1 << 30;

/// All results of a run, as they are written to `results.json`.
#[derive(Debug, Serialize)]
struct Results<'a> {
    host: &'a Host,
    against_floor: &'a [Against],
    rows: &'a [Row],
}

/// Runs the command.
///
/// # Errors
///
/// [`Error::BaselineMissing`] and [`Error::Usage`] before anything is measured; [`Error::Wrong`]
/// at the first wrong answer; [`Error::Run`] when our ranks fail. A baseline that fails is left
/// out from there on, and the error comes at the end, after the results.
pub fn run(options: &Collectives) -> Result<()> {
    let ranks = rank_counts(options);
    let scratch = Scratch::new()?;
    let mut host = Host::look();
    let baselines = prepare_baselines(options, &scratch)?;
    host.baselines =
        baselines.iter().map(|b| format!("{}: {} ({})", b.name, b.version, b.launcher.display())).collect();
    for &ranks in &ranks {
        check_ranks(options, ranks)?;
    }
    println!("{}\n", host.line());
    if host.load > 0.5 * host.cores.len() as f64 {
        eprintln!("the load average is {:.2}: other programs share the cores, and figures suffer", host.load);
    }
    let mut keeper = Keeper::open(&options.record, &host, if options.quick { "quick" } else { "collectives" });
    let mut session = Session {
        options,
        scratch: &scratch,
        progress: Progress::new(steps(options, &ranks, baselines.len())),
        baselines,
        rows: Vec::new(),
        against: Vec::new(),
        lost: None,
    };
    let begin = Instant::now();
    let mut outcome = Ok(());
    for &ranks in &ranks {
        outcome = session.measure(ranks);
        if outcome.is_err() {
            break;
        }
    }
    session.progress.finish();
    let Session { rows, against, lost, .. } = session;
    let names: Vec<String> = options.baseline.iter().map(|wanted| wanted.name.clone()).collect();

    keeper.write("host.txt", &host.render());
    keeper.write("results.csv", &csv::render(&rows));
    keeper.write_json("results.json", &Results { host: &host, against_floor: &against, rows: &rows });
    keeper.write("tables.txt", &all_tables(options, &ranks, &rows, &against, &names, Width::Full));
    for &ranks in &ranks {
        if rows.iter().any(|row| row.ranks == ranks && row.bytes > 0) {
            let picture = plot::results(&rows, ranks, options.bind.resolve(ranks).words(), &names);
            keeper.write_plot(&format!("collectives-{ranks}-ranks.svg"), &picture);
        }
    }
    eprintln!("measured for {:.0} s", begin.elapsed().as_secs_f64());
    let kept = keeper.close();
    outcome?;
    lost.map_or(Ok(()), Err)?;
    kept
}

/// The rank counts that are asked for.
fn rank_counts(options: &Collectives) -> Vec<usize> {
    match (options.ranks.as_slice(), options.quick) {
        ([], true) => vec![2, 8],
        ([], false) => vec![usable_cores().len().max(2)],
        (given, _) => given.to_vec(),
    }
}

fn check_ranks(options: &Collectives, ranks: usize) -> Result<()> {
    if options.root >= ranks {
        return Err(Error::Usage(format!("root {} of {ranks} ranks: roots are 0 to {}", options.root, ranks - 1)));
    }
    match options.late.iter().find(|late| late.rank >= ranks) {
        Some(late) => {
            Err(Error::Usage(format!("late rank {} of {ranks} ranks: ranks are 0 to {}", late.rank, ranks - 1)))
        }
        None if options.min > options.max => Err(Error::Usage("--min is larger than --max".into())),
        None => Ok(()),
    }
}

fn prepare_baselines(options: &Collectives, scratch: &Scratch) -> Result<Vec<Baseline>> {
    if options.baseline.len() > 1 && (options.mpicc.is_some() || options.mpirun.is_some()) {
        return Err(Error::Usage(
            "--mpicc and --mpirun belong to one --baseline; for several write NAME=FOLDER".into(),
        ));
    }
    let (compiler, launcher) = (options.mpicc.as_deref(), options.mpirun.as_deref());
    options
        .baseline
        .iter()
        .map(|wanted| baseline::prepare(wanted, compiler, launcher, &options.mpirun_option, scratch))
        .collect()
}

/// The cases of a run, the same for every rank count.
fn cases(options: &Collectives) -> Vec<Case> {
    let asked = |operation: &Operation| options.collectives.is_empty() || options.collectives.contains(operation);
    let sizes = if options.quick { short_ladder(options.min, options.max) } else { ladder(options.min, options.max) };
    let mut cases = Vec::new();
    for operation in Operation::ALL.iter().copied().filter(asked) {
        for mode in options.buffer_modes() {
            let case = |bytes: u64| {
                let element = options.element.fitting(bytes);
                Case {
                    operation,
                    buffers: mode,
                    timing: timing(options, mode),
                    element,
                    bytes: bytes / element.bytes() * element.bytes(),
                    root: options.root,
                    blocks: options.repetitions as usize,
                    block: options.block(),
                }
            };
            match operation {
                Operation::Barrier if cases.is_empty() => cases.push(case(0)),
                Operation::Barrier => {}
                _ => cases.extend(sizes.iter().map(|&bytes| case(bytes))),
            }
        }
    }
    cases
}

fn timing(options: &Collectives, mode: BufferMode) -> Timing {
    match (options.timing, mode) {
        _ if !options.late.is_empty() => Timing::Each,
        (_, BufferMode::Rewritten | BufferMode::Shared) | (TimingWish::Each, _) => Timing::Each,
        (TimingWish::Stream, _) | (TimingWish::Auto, BufferMode::Warm) => Timing::Stream,
        (TimingWish::Auto, BufferMode::Cold) => Timing::Each,
    }
}

fn plan(options: &Collectives, ranks: usize) -> Plan {
    let cold = (2 * last_level_cache()).min(MOST_COLD_BYTES / 2) / ranks as u64;
    Plan { cold_bytes: cold, late: options.late.clone(), cases: cases(options) }
}

fn floor_wish(options: &Collectives, ranks: usize) -> Option<against::Wish> {
    (!options.no_floor && options.algorithm.is_none()).then(|| against::Wish {
        ranks,
        binding: options.bind.resolve(ranks),
        turns: if options.quick { FLOOR_TURNS.1 } else { FLOOR_TURNS.0 },
        blocks: FLOOR_BLOCKS,
        block: FLOOR_BLOCK,
        limit: Duration::from_secs(options.timeout),
    })
}

fn steps(options: &Collectives, ranks: &[usize], baselines: usize) -> usize {
    let cases = cases(options).len() * options.turns as usize * (1 + baselines);
    ranks.iter().map(|&ranks| cases + floor_wish(options, ranks).map_or(0, |wish| against::steps(&wish))).sum()
}

/// What is gathered over the rank counts of one command.
struct Session<'a> {
    options: &'a Collectives,
    scratch: &'a Scratch,
    progress: Progress,
    /// Those that have not failed.
    baselines: Vec<Baseline>,
    rows: Vec<Row>,
    against: Vec<Against>,
    /// The first failure of a baseline.
    lost: Option<Error>,
}

impl Session<'_> {
    /// Measures and prints everything for one rank count.
    fn measure(&mut self, ranks: usize) -> Result<()> {
        let options = self.options;
        let plan = plan(options, ranks);
        let binding = options.bind.resolve(ranks);
        let order = Order { plan: &plan, ranks, binding, limit: Duration::from_secs(options.timeout) };
        let compared = match floor_wish(options, ranks) {
            Some(wish) => against::measure(&wish, self.scratch, &self.progress)?,
            None => Vec::new(),
        };
        self.against.extend(compared);

        let mut mine: Vec<Vec<CaseSamples>> = vec![Vec::new(); plan.cases.len()];
        let mut theirs: Vec<(String, Vec<Vec<CaseSamples>>)> =
            self.baselines.iter().map(|b| (b.name.clone(), vec![Vec::new(); plan.cases.len()])).collect();
        for turn in 1..=options.turns {
            self.progress.stage(format!("{} with {ranks} ranks, turn {turn}", ours::NAME));
            let run = ours::run(&order, options.algorithm.as_deref(), self.scratch, &self.progress)?;
            collect(&mut mine, run.cases.into_values());
            for baseline in self.baselines.clone() {
                self.progress.stage(format!("{} with {ranks} ranks, turn {turn}", baseline.name));
                match mpi::run(&baseline, &order, self.scratch, &self.progress) {
                    Ok(run) => {
                        let samples = theirs.iter_mut().find(|(name, _)| *name == baseline.name);
                        collect(&mut samples.expect("made from the same list").1, run.cases.into_values());
                    }
                    Err(error @ Error::Wrong { .. }) => return Err(error),
                    Err(error) => {
                        self.progress.note(&format!("{error}\n{} is left out from here on", baseline.name));
                        self.baselines.retain(|other| other.name != baseline.name);
                        self.lost.get_or_insert(error);
                    }
                }
            }
        }
        for (index, case) in plan.cases.iter().enumerate() {
            let mut row = Row::of(ours::NAME, ranks, case, &mine[index]);
            row.to_floor = self.to_floor(&row);
            self.rows.push(row);
            for (name, samples) in &theirs {
                if !samples[index].is_empty() {
                    let mut row = Row::of(name, ranks, case, &samples[index]);
                    row.ratio = Ratio::of_turns(&slowest_by_turn(&samples[index]), &slowest_by_turn(&mine[index]));
                    self.rows.push(row);
                }
            }
        }
        let names: Vec<String> = theirs.into_iter().map(|(name, _)| name).collect();
        let width = if options.quick { Width::Short } else { Width::Full };
        let text = all_tables(options, &[ranks], &self.rows, &self.against, &names, width);
        self.progress.aside(|| print!("{text}"));
        Ok(())
    }

    /// The ratio to the floor that belongs into `row`, where one was measured.
    fn to_floor(&self, row: &Row) -> Option<Ratio> {
        let compared = (row.operation == Operation::Barrier
            || (row.operation == Operation::Allreduce && row.bytes == 8))
            && row.timing == Timing::Stream
            && row.buffers == BufferMode::Warm;
        let same = |against: &&Against| against.ranks == row.ranks && against.operation == row.operation;
        self.against.iter().find(same).filter(|_| compared)?.to_floor()
    }
}

fn collect(into: &mut [Vec<CaseSamples>], run: impl Iterator<Item = CaseSamples>) {
    into.iter_mut().zip(run).for_each(|(turns, samples)| turns.push(samples));
}

/// Every table of the given rank counts.
fn all_tables(
    options: &Collectives,
    ranks: &[usize],
    rows: &[Row],
    against: &[Against],
    baselines: &[String],
    width: Width,
) -> String {
    let mut text = String::new();
    for &ranks in ranks {
        let binding = options.bind.resolve(ranks).words();
        let compared: Vec<Against> = against.iter().filter(|a| a.ranks == ranks).cloned().collect();
        if !compared.is_empty() {
            text += &format!("beside the machine's floor, {} {binding}, in turns [us]\n", table::ranks(ranks));
            text += &against::render(&compared);
            text.push('\n');
        }
        for &operation in Operation::ALL {
            for &mode in BufferMode::ALL {
                let wanted = |row: &&Row| row.ranks == ranks && row.operation == operation && row.buffers == mode;
                let rows: Vec<&Row> = rows.iter().filter(wanted).collect();
                if let Some(first) = rows.first() {
                    text += &format!("{}\n{}\n", table::title(first, binding), table::results(&rows, baselines, width));
                }
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::command::{Cli, Command};
    use crate::plan::ElementType;

    fn options(words: &[&str]) -> Collectives {
        match Cli::try_parse_from(["bench", "collectives"].iter().chain(words)).unwrap().command {
            Command::Collectives(options) => *options,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_barrier_is_one_case_and_the_others_one_a_size_and_mode() {
        let cases = cases(&options(&["--max", "16"]));
        assert_eq!(cases.iter().filter(|case| case.operation == Operation::Barrier).count(), 1);
        assert_eq!(cases.len(), 1 + 3 * 3 * 4);
        let four = cases.iter().find(|case| case.bytes == 4).unwrap();
        assert_eq!(four.element, ElementType::F32);
    }

    #[test]
    fn timing_follows_the_buffers_unless_said_otherwise() {
        let of = |words: &[&str], mode| timing(&options(words), mode);
        assert_eq!(of(&[], BufferMode::Warm), Timing::Stream);
        assert_eq!(of(&[], BufferMode::Cold), Timing::Each);
        assert_eq!(of(&["--timing", "stream"], BufferMode::Cold), Timing::Stream);
        assert_eq!(of(&["--timing", "stream"], BufferMode::Rewritten), Timing::Each);
        assert_eq!(of(&["--late", "0:10"], BufferMode::Warm), Timing::Each);
    }

    #[test]
    fn sizes_that_the_element_does_not_divide_are_rounded_down() {
        assert!(cases(&options(&["--max", "1001"])).iter().all(|case| case.bytes % case.element.bytes() == 0));
    }

    #[test]
    fn roots_and_late_ranks_must_exist() {
        assert!(check_ranks(&options(&["--root", "2"]), 2).unwrap_err().to_string().contains("0 to 1"));
        assert!(check_ranks(&options(&["--late", "5:10"]), 4).is_err());
        assert!(check_ranks(&options(&[]), 1).is_ok());
    }
}
