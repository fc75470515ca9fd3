//! `bench collectives`: plans the cases, runs ours and the baselines in turns, prints, records.

use std::time::{Duration, Instant};

use serde::Serialize;

use crate::against::{self, Against};
use crate::command::Collectives;
use crate::compare::{self, Comparison, comparisons, comparisons_by_cores};
use crate::cores::States;
use crate::error::{Error, Result};
use crate::keep::Keeper;
use crate::out::{say, show};
use crate::plan::{BufferMode, Case, Operation, Plan, Timing};
use crate::plot;
use crate::progress::Progress;
use crate::record::{csv, host::Host};
use crate::rows::{Ratio, Row};
use crate::runs::baseline::Baseline;
use crate::runs::{Order, ours};
use crate::samples::{CaseSamples, Run};
use crate::scratch::Scratch;
use crate::table::Width;

mod beside;
mod cases;
mod tables;

use beside::{Other, others, prepare_baselines};
use cases::{check_ranks, plan, rank_counts};
use tables::{all_tables, baselines_in};

/// Turns, blocks and block length of the comparison with the floor.
const FLOOR_TURNS: (usize, usize) = (5, 3);
const FLOOR_BLOCKS: usize = 7;
const FLOOR_BLOCK: Duration = Duration::from_millis(10);

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
    /// What went wrong with a baseline, in the order in which it did: those that failed, and those whose launcher did
    /// after all was measured.
    notes: &'a [String],
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
    say!("{}\n", host.line())?;
    if host.busy.is_some_and(|busy| busy > 0.1) {
        eprintln!("{}: other programs share them, and figures suffer", host.busy_words());
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
    let notes = session.progress.notes();
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
        notes: &notes,
    };
    keeper.write_json("results.json", &results);
    let mut text = all_tables(options, &ranks, &rows, &against, Width::Full);
    if options.compares() {
        let summary = compare::summary(&comparisons);
        outcome = outcome.and(say!("{SUMMARY}\n{summary}"));
        text += &format!("{SUMMARY}\n{summary}");
    }
    if !notes.is_empty() {
        text += &format!("\nnotes\n{}\n", notes.join("\n"));
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

/// How ours is put beside the floor: barriers and 8 bytes always, and what of the plan has bare moves that do the same.
fn floor_wish(options: &Collectives, ranks: usize, plan: &Plan) -> Option<against::Wish> {
    (!options.no_floor && options.algorithm.is_none()).then(|| against::Wish {
        ranks,
        binding: options.bind.resolve(ranks),
        turns: if options.quick { FLOOR_TURNS.1 } else { FLOOR_TURNS.0 },
        blocks: FLOOR_BLOCKS,
        block: FLOOR_BLOCK,
        limit: Duration::from_secs(options.timeout),
        moves: if options.quick { Vec::new() } else { against::Moved::of(&plan.cases) },
    })
}

fn steps(options: &Collectives, ranks: &[usize], baselines: &[Baseline]) -> usize {
    let of = |&ranks: &usize| {
        let plan = plan(options, ranks);
        let theirs = others(options, ranks, baselines).iter().map(|one| one.plan(&plan).1.len()).sum::<usize>();
        (plan.cases.len() + theirs) * options.turns() as usize
            + floor_wish(options, ranks, &plan).map_or(0, |wish| against::steps(&wish))
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
        let compared = match floor_wish(options, ranks, &plan) {
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
            for who in in_turn(theirs.len(), turn) {
                let Some(one) = who.map(|at| &mut theirs[at]) else {
                    self.progress.stage(format!("{} with {ranks} ranks, turn {turn}", ours::NAME));
                    let algorithm = options.algorithm.as_deref();
                    let run = |order: &Order<'_>| ours::run(order, algorithm, self.scratch, &self.progress);
                    collect(&mut mine, run_cases(&order, run)?);
                    continue;
                };
                if one.failed {
                    continue;
                }
                self.progress.stage(format!("{} with {ranks} ranks, turn {turn}", one.series.name()));
                let order = Order { plan: &one.plan, ..order };
                match run_cases(&order, |order| one.series.run(order, self.scratch, &self.progress)) {
                    Ok(samples) => collect(&mut one.samples, samples),
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
        self.progress.aside(|| show(&text))
    }

    /// The ratio to the floor that belongs into `row`, where one was measured.
    fn to_floor(&self, row: &Row) -> Option<Ratio> {
        let compared = (row.operation == Operation::Barrier
            || (row.operation == Operation::Allreduce && row.bytes == 8))
            && row.timing == Timing::Stream
            && row.buffers == BufferMode::Warm;
        let same = |against: &&Against| {
            (against.ranks, against.operation, against.buffers, against.bytes)
                == (row.ranks, row.operation, row.buffers, row.bytes)
        };
        self.against.iter().find(same).filter(|_| compared)?.to_floor()
    }
}

/// Who runs in this turn, one after the other: ours (none) and so many others, beginning with another one each turn, so
/// that what one leaves behind meets all of them alike.
fn in_turn(others: usize, turn: u32) -> Vec<Option<usize>> {
    let mut all: Vec<_> = std::iter::once(None).chain((0..others).map(Some)).collect();
    all.rotate_left((turn as usize - 1) % (others + 1));
    all
}

/// Runs all cases of an order: in one run, or each in one of its own where first calls are timed.
fn run_cases(order: &Order<'_>, run: impl Fn(&Order<'_>) -> Result<Run>) -> Result<Vec<CaseSamples>> {
    if order.plan.calls.is_none() {
        return Ok(run(order)?.cases.into_values().collect());
    }
    let alone = |&case: &Case| {
        let plan = Plan { cases: vec![case], ..order.plan.clone() };
        run(&Order { plan: &plan, ..*order })?.into_single()
    };
    order.plan.cases.iter().map(alone).collect()
}

fn collect(into: &mut [Vec<CaseSamples>], run: Vec<CaseSamples>) {
    into.iter_mut().zip(run).for_each(|(turns, samples)| turns.push(samples));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_begin_a_turn_in_turn() {
        assert_eq!(in_turn(2, 1), [None, Some(0), Some(1)]);
        assert_eq!(in_turn(2, 3), [Some(1), None, Some(0)]);
        assert_eq!(in_turn(2, 4), in_turn(2, 1));
        assert_eq!(in_turn(0, 5), [None]);
    }
}
