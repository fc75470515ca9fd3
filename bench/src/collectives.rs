//! `bench collectives`: plans the cases, runs ours and the baselines in turns, prints, records.

use std::time::{Duration, Instant};

use serde::Serialize;

use crate::against::{self, Against};
use crate::command::{Collectives, TimingWish};
use crate::compare::{self, Comparison, comparisons, comparisons_by_cores, cores_words};
use crate::cores::{Cores, States};
use crate::empty;
use crate::error::{Error, Result};
use crate::keep::Keeper;
use crate::machine::{last_level_cache, usable_cores};
use crate::plan::{BufferMode, Case, Combine, Operation, Plan, Timing};
use crate::plot;
use crate::progress::Progress;
use crate::record::{csv, host::Host};
use crate::rows::{Ratio, Row};
use crate::runs::baseline::{self, ALL, Baseline, Places, Series, Wanted};
use crate::runs::peers::{PEERS, settings};
use crate::runs::{Order, mpi, ours};
use crate::samples::{CaseSamples, Run};
use crate::scratch::Scratch;
use crate::sizes::{ladder, short_ladder};
use crate::table::{self, Width};

/// Turns, blocks and block length of the comparison with the floor.
const FLOOR_TURNS: (usize, usize) = (5, 3);
const FLOOR_BLOCKS: usize = 7;
const FLOOR_BLOCK: Duration = Duration::from_millis(10);
/// The cold buffers of all ranks together take no more than this.
const MOST_COLD_BYTES: u64 = 1 << 30;

/// The title of the last table.
const SUMMARY: &str =
    "the best peer's time over ours, where that is smallest: with its best settings, and as it comes (stock)";

/// All results of a run, as they are written to `results.json`.
#[derive(Debug, Serialize)]
struct Results<'a> {
    host: &'a Host,
    against_floor: &'a [Against],
    rows: &'a [Row],
    /// Our rows with every peer beside them, the quickest first.
    comparisons: &'a [Comparison],
    /// The same of the blocks of each state of the cores; empty where they were in one state throughout.
    comparisons_by_cores: &'a [Comparison],
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
        progress: Progress::new(steps(options, &ranks, &baselines)),
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
    let comparisons = comparisons(&rows);

    keeper.write("host.txt", &host.render());
    keeper.write("results.csv", &csv::render(&rows));
    let results = Results {
        host: &host,
        against_floor: &against,
        rows: &rows,
        comparisons: &comparisons,
        comparisons_by_cores: &comparisons_by_cores(&rows),
    };
    keeper.write_json("results.json", &results);
    let mut text = all_tables(options, &ranks, &rows, &against, Width::Full);
    if options.compares() {
        let summary = compare::summary(&comparisons);
        println!("{SUMMARY}\n{summary}");
        text += &format!("{SUMMARY}\n{summary}");
    }
    keeper.write("tables.txt", &text);
    let plotted = compare::by_peer(&rows);
    for &ranks in &ranks {
        if plotted.iter().any(|row| row.ranks == ranks && row.bytes > 0) {
            let names = baselines_in(&plotted);
            let picture = plot::results(&plotted, ranks, options.bind.resolve(ranks).words(), &names);
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

/// The names of the baselines' series in `rows`, in their order.
fn baselines_in(rows: &[Row]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for row in rows.iter().filter(|row| row.series != ours::NAME) {
        if !names.contains(&row.series) {
            names.push(row.series.clone());
        }
    }
    names
}

/// Finds and compiles all baselines. One that was asked for by name must be here; of `all`, those that are not are told.
fn prepare_baselines(options: &Collectives, scratch: &Scratch) -> Result<Vec<Baseline>> {
    if options.compares() && (options.mpicc.is_some() || options.mpirun.is_some()) {
        return Err(Error::Usage(
            "--mpicc and --mpirun belong to one --baseline; for several write NAME=FOLDER".into(),
        ));
    }
    let places =
        Places { compiler: options.mpicc.as_deref(), launcher: options.mpirun.as_deref(), peers: &options.peers };
    let prepare = |wanted: &Wanted| baseline::prepare(wanted, &places, &options.mpirun_option, scratch);
    let named: Vec<&Wanted> = options.baseline.iter().filter(|wanted| wanted.name != ALL).collect();
    let mut found = Vec::new();
    for &wanted in &named {
        if found.iter().all(|other: &Baseline| other.name != wanted.name) {
            found.push(prepare(wanted)?);
        }
    }
    if named.len() < options.baseline.len() {
        for peer in PEERS.iter().filter(|peer| named.iter().all(|wanted| wanted.name != peer.name)) {
            match prepare(&Wanted { name: peer.name.into(), folder: None }) {
                Ok(baseline) => found.push(baseline),
                Err(error) => eprintln!("left out: {error}\n"),
            }
        }
        if found.is_empty() {
            return Err(Error::BaselineMissing("no MPI is on this machine: see above for how to get one".into()));
        }
    }
    Ok(found)
}

/// What stands beside ours.
#[derive(Clone, Debug)]
enum Other {
    /// A baseline.
    Mpi(Series),
    /// Ours, with this algorithm forced.
    Ours(String),
}

impl Other {
    /// The name in tables and records.
    fn name(&self) -> String {
        match self {
            Other::Mpi(series) => series.name(),
            // No colon: it stands between a baseline and its setting.
            Other::Ours(algorithm) => format!("{}-{}", ours::NAME, algorithm.replace(':', "-")),
        }
    }

    fn takes(&self, case: &Case) -> bool {
        match self {
            Other::Mpi(series) => series.takes(case),
            Other::Ours(_) => true,
        }
    }

    /// What it measures beside `plan`, and for each of its cases the place there.
    fn plan(&self, plan: &Plan) -> (Plan, Vec<usize>) {
        match self {
            Other::Mpi(_) => plan.beside(|case| self.takes(case)),
            Other::Ours(_) => (plan.clone(), (0..plan.cases.len()).collect()),
        }
    }

    fn run(&self, order: &Order<'_>, scratch: &Scratch, progress: &Progress) -> Result<Run> {
        match self {
            Other::Mpi(series) => mpi::run(series, order, scratch, progress),
            Other::Ours(algorithm) => ours::run(order, Some(algorithm), scratch, progress),
        }
    }
}

/// The series beside ours for `ranks` ranks.
fn others(options: &Collectives, ranks: usize, baselines: &[Baseline]) -> Vec<Other> {
    let theirs = series(options, ranks, baselines).into_iter().map(Other::Mpi);
    theirs.chain(options.beside.iter().cloned().map(Other::Ours)).collect()
}

/// The series of `baselines` for `ranks` ranks.
fn series(options: &Collectives, ranks: usize, baselines: &[Baseline]) -> Vec<Series> {
    let crowded = ranks > usable_cores().len();
    let all = baselines.iter().flat_map(|baseline| {
        let settings = settings(&baseline.name, baseline.family, crowded, options.settings);
        settings.into_iter().map(|setting| Series { baseline: baseline.clone(), setting })
    });
    all.collect()
}

/// The message sizes of a run with `ranks` ranks.
fn sizes(options: &Collectives, ranks: usize) -> Vec<u64> {
    let crowded = ranks > usable_cores().len();
    match options {
        _ if !options.sizes.is_empty() => options.sizes.clone(),
        _ if options.quick || (options.compares() && crowded) => short_ladder(options.min, options.max),
        _ if options.compares() => ladder(options.min.max(8).min(options.max), options.max),
        _ => ladder(options.min, options.max),
    }
}

/// The cases of a run with `ranks` ranks. A barrier has no buffers: it is one case, measured as with warm ones. The empty call comes
/// last, where a call is timed alone.
fn cases(options: &Collectives, ranks: usize) -> Vec<Case> {
    let asked = |operation: &Operation| match options.collectives.is_empty() {
        true => Operation::USUAL.contains(operation),
        false => options.collectives.contains(operation),
    };
    let sizes = sizes(options, ranks);
    let mut cases = Vec::new();
    for operation in Operation::ALL.iter().copied().filter(asked) {
        let modes = if operation.has_bytes() { options.buffer_modes() } else { vec![BufferMode::Warm] };
        for mode in modes.into_iter().filter(|mode| mode.serves(operation)) {
            let case = |bytes: u64| {
                let element = options.element.fitting(bytes);
                Case {
                    operation,
                    buffers: mode,
                    timing: timing(options, operation, mode),
                    element,
                    bytes: bytes / element.bytes() * element.bytes(),
                    root: options.root,
                    blocks: options.repetitions as usize,
                    block: options.block(),
                }
            };
            match operation {
                operation if !operation.has_bytes() => cases.push(case(0)),
                _ => cases.extend(sizes.iter().map(|&bytes| case(bytes))),
            }
        }
    }
    cases.extend(empty::beside(&cases));
    cases
}

fn timing(options: &Collectives, operation: Operation, mode: BufferMode) -> Timing {
    match (options.timing, mode) {
        _ if !options.late.is_empty() || operation == Operation::Empty => Timing::Each,
        (_, mode) if mode.is_rewritten() => Timing::Each,
        (TimingWish::Each, _) | (TimingWish::Auto, BufferMode::Cold) => Timing::Each,
        (TimingWish::Stream | TimingWish::Auto, _) => Timing::Stream,
    }
}

fn plan(options: &Collectives, ranks: usize) -> Plan {
    let cold = (2 * last_level_cache()).min(MOST_COLD_BYTES / 2) / ranks as u64;
    Plan { cold_bytes: cold, late: options.late.clone(), operator: Combine::Sum, cases: cases(options, ranks) }
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

fn steps(options: &Collectives, ranks: &[usize], baselines: &[Baseline]) -> usize {
    let of = |&ranks: &usize| {
        let plan = plan(options, ranks);
        let theirs = others(options, ranks, baselines).iter().map(|one| one.plan(&plan).1.len()).sum::<usize>();
        (plan.cases.len() + theirs) * options.turns() as usize
            + floor_wish(options, ranks).map_or(0, |wish| against::steps(&wish))
    };
    ranks.iter().map(of).sum()
}

/// A series beside ours while it is measured.
struct Theirs {
    series: Other,
    plan: Plan,
    /// The place of each of its cases in our plan.
    places: Vec<usize>,
    /// By case, by turn.
    samples: Vec<Vec<CaseSamples>>,
    failed: bool,
}

/// What is gathered over the rank counts of one command.
struct Session<'a> {
    options: &'a Collectives,
    scratch: &'a Scratch,
    progress: Progress,
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
        let mut theirs: Vec<Theirs> = others(options, ranks, &self.baselines)
            .into_iter()
            .map(|series| {
                let (plan, places) = series.plan(&plan);
                let samples = vec![Vec::new(); plan.cases.len()];
                Theirs { series, plan, places, samples, failed: false }
            })
            .collect();
        for turn in 1..=options.turns() {
            self.progress.stage(format!("{} with {ranks} ranks, turn {turn}", ours::NAME));
            let run = ours::run(&order, options.algorithm.as_deref(), self.scratch, &self.progress)?;
            collect(&mut mine, run.cases.into_values());
            for one in theirs.iter_mut().filter(|one| !one.failed) {
                self.progress.stage(format!("{} with {ranks} ranks, turn {turn}", one.series.name()));
                let order = Order { plan: &one.plan, ..order };
                match one.series.run(&order, self.scratch, &self.progress) {
                    Ok(run) => collect(&mut one.samples, run.cases.into_values()),
                    Err(error @ Error::Wrong { .. }) => return Err(error),
                    Err(error) => {
                        self.progress.note(&format!("{error}\n{} is left out from here on", one.series.name()));
                        one.failed = true;
                        self.lost.get_or_insert(error);
                    }
                }
            }
        }
        let first = self.rows.len();
        let sampled = mine.iter().chain(theirs.iter().flat_map(|one| &one.samples)).flatten();
        let states = States::of(&sampled.flat_map(|samples| samples.looks.iter().copied()).collect::<Vec<_>>());
        for (index, case) in plan.cases.iter().enumerate() {
            let mut ours = Row::of(ours::NAME, ranks, case, &mine[index]).parted(&mine[index], &states);
            ours.to_floor = self.to_floor(&ours);
            self.rows.push(ours.clone());
            for one in &theirs {
                let Some(at) = one.places.iter().position(|&place| place == index) else { continue };
                let samples = &one.samples[at];
                if !samples.is_empty() {
                    let case = &one.plan.cases[at];
                    let mut row = Row::of(&one.series.name(), ranks, case, samples).parted(samples, &states);
                    if plan.cases[index].buffers == case.buffers {
                        row.ratio = ours.ratio_to(&row);
                    }
                    self.rows.push(row);
                }
            }
        }
        let width = if options.quick { Width::Short } else { Width::Full };
        let text = all_tables(options, &[ranks], &self.rows[first..], &self.against, width);
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
fn all_tables(options: &Collectives, ranks: &[usize], rows: &[Row], against: &[Against], width: Width) -> String {
    let mut text = String::new();
    for &ranks in ranks {
        let binding = options.bind.resolve(ranks).words();
        let compared: Vec<Against> = against.iter().filter(|a| a.ranks == ranks).cloned().collect();
        if !compared.is_empty() {
            text += &format!("beside the machine's floor, {} {binding}, in turns [us]\n", table::ranks(ranks));
            text += &against::render(&compared);
            text.push('\n');
        }
        let of_ranks: Vec<Row> = rows.iter().filter(|row| row.ranks == ranks).cloned().collect();
        let comparisons: Vec<Comparison> =
            comparisons(&of_ranks).into_iter().chain(comparisons_by_cores(&of_ranks)).collect();
        text += &empty::line(ranks, rows);
        for &operation in Operation::ALL.iter().filter(|&&operation| operation != Operation::Empty) {
            for &mode in BufferMode::ALL {
                let here = |row: &&Row| row.ranks == ranks && row.operation == operation;
                let ours = |row: &&Row| here(row) && row.series == ours::NAME && row.buffers == mode;
                let Some(first) = rows.iter().find(ours) else { continue };
                // One baseline stands in the table of ours, several have one of their own.
                let shown: Vec<&Row> =
                    rows.iter().filter(|row| ours(row) || (here(row) && row.series != ours::NAME)).collect();
                let beside = if options.compares() { Vec::new() } else { baselines_in(rows) };
                text += &format!("{}\n{}", table::title(first, binding), table::results(&shown, &beside, width));
                for cores in std::iter::once(None).chain(Cores::ALL.map(Some)) {
                    let wanted =
                        |c: &&Comparison| (c.ranks, c.operation, c.buffers, c.cores) == (ranks, operation, mode, cores);
                    let compared: Vec<&Comparison> = comparisons.iter().filter(wanted).collect();
                    if options.compares() && !compared.is_empty() {
                        let (buffers, cores) = (beside_words(mode), cores_words(cores, &of_ranks));
                        text += &format!("  beside the peers{buffers}{cores}\n");
                        text += &compare::render(&compared);
                    }
                }
                text.push('\n');
            }
        }
    }
    text
}

/// What has to be said of the peers' buffers.
fn beside_words(mode: BufferMode) -> &'static str {
    if mode.beside() == mode { "" } else { ", whose buffers are private and rewritten" }
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
        let cases = cases(&options(&["--max", "16"]), 2);
        assert_eq!(cases.iter().filter(|case| case.operation == Operation::Barrier).count(), 1);
        // Cold buffers are among them: calls that are timed alone.
        assert_eq!(cases.len(), 1 + 3 * 3 * 4 + 1);
        assert_eq!(cases.last().map(|case| (case.operation, case.timing)), Some((Operation::Empty, Timing::Each)));
        let four = cases.iter().find(|case| case.bytes == 4).unwrap();
        assert_eq!(four.element, ElementType::F32);
    }

    #[test]
    fn timing_follows_the_buffers_unless_said_otherwise() {
        let of = |words: &[&str], mode| timing(&options(words), Operation::Reduce, mode);
        assert_eq!(of(&[], BufferMode::Warm), Timing::Stream);
        assert_eq!(of(&[], BufferMode::Cold), Timing::Each);
        assert_eq!(of(&["--timing", "stream"], BufferMode::Cold), Timing::Stream);
        assert_eq!(of(&["--timing", "stream"], BufferMode::Rewritten), Timing::Each);
        assert_eq!(of(&["--late", "0:10"], BufferMode::Warm), Timing::Each);
    }

    #[test]
    fn ours_beside_ours_measures_the_same_cases_under_a_name_of_its_own() {
        let options = options(&["--beside", "strict", "--beside", "allreduce:shares,leaders=2"]);
        let others = others(&options, 2, &[]);
        let names: Vec<String> = others.iter().map(Other::name).collect();
        assert_eq!(names, ["phalanx-strict", "phalanx-allreduce-shares,leaders=2"]);
        let plan = plan(&options, 2);
        assert_eq!(others[0].plan(&plan).0, plan);
        assert_eq!(others[0].plan(&plan).1.last(), Some(&(plan.cases.len() - 1)));
    }

    #[test]
    fn sizes_that_the_element_does_not_divide_are_rounded_down() {
        assert!(cases(&options(&["--max", "1001"]), 2).iter().all(|case| case.bytes % case.element.bytes() == 0));
    }

    #[test]
    fn roots_and_late_ranks_must_exist() {
        assert!(check_ranks(&options(&["--root", "2"]), 2).unwrap_err().to_string().contains("0 to 1"));
        assert!(check_ranks(&options(&["--late", "5:10"]), 4).is_err());
        assert!(check_ranks(&options(&[]), 1).is_ok());
    }
}
