//! Runs on one node: ours by every algorithm, and the MPIs beside it, in turns.

use std::time::Duration;

use super::curves::{Curve, Times};
use super::options::AllReduce;
use super::series::{AUTO, Algorithm};
use crate::error::{Error, Result};
use crate::machine::usable_cores;
use crate::plan::{BufferMode, Case, Combine, Operation, Plan, Timing};
use crate::runs::baseline::{self, Baseline, COLLECTIVES, Places, Series, Wanted};
use crate::runs::peers::{SettingsWish, settings};
use crate::runs::{Binding, Order, mpi, ours};
use crate::samples::Run;
use crate::scratch::Scratch;
use crate::study::Session;
use crate::table;

/// Blocks of a turn.
const BLOCKS: usize = 4;
/// The MPI that stands beside ours where none is asked for.
const USUAL: &str = "openmpi";

/// Who carries out a run.
#[derive(Clone, Debug)]
enum Who {
    Ours(Algorithm),
    Theirs(Series),
}

/// One series of runs: all lengths, one operator.
#[derive(Clone, Debug)]
struct Member {
    ranks: usize,
    who: Who,
    operator: Combine,
}

impl Member {
    fn name(&self) -> String {
        match &self.who {
            Who::Ours(algorithm) => algorithm.name.clone(),
            Who::Theirs(series) => series.name(),
        }
    }

    fn key(&self, turn: usize) -> String {
        format!("{}/{}/{}/{turn}", self.ranks, self.name(), self.operator)
    }
}

/// The MPIs that stand beside ours: those asked for, or the usual one where it is installed.
///
/// # Errors
///
/// [`Error::BaselineMissing`] for one that was asked for.
pub fn baselines(options: &AllReduce, scratch: &Scratch) -> Result<Vec<Baseline>> {
    let places = Places { compiler: None, launcher: None, peers: &options.node.peers };
    let prepare = |wanted: &Wanted| baseline::prepare(wanted, &places, COLLECTIVES, &[], scratch);
    if options.node.no_baseline {
        return Ok(Vec::new());
    }
    if !options.node.baseline.is_empty() {
        return options.node.baseline.iter().map(prepare).collect();
    }
    match prepare(&Wanted { name: USUAL.into(), folder: None }) {
        Ok(found) => Ok(vec![found]),
        Err(error) => {
            eprintln!("{error}\nNo MPI stands beside ours; --no-baseline leaves this out.\n");
            Ok(Vec::new())
        }
    }
}

/// All that take turns.
pub struct OnNode<'a> {
    options: &'a AllReduce,
    sizes: Vec<u64>,
    members: Vec<Member>,
}

impl<'a> OnNode<'a> {
    /// The series of some options.
    ///
    /// # Errors
    ///
    /// [`Error::Usage`] for two algorithms of one name.
    pub fn of(options: &'a AllReduce, baselines: &[Baseline]) -> Result<OnNode<'a>> {
        let (algorithms, operators) = (options.algorithms(), options.operators());
        for (place, algorithm) in algorithms.iter().enumerate() {
            if algorithms[..place].iter().any(|other| other.name == algorithm.name) {
                return Err(Error::Usage(format!("two algorithms are called {:?}", algorithm.name)));
            }
        }
        let mut members = Vec::new();
        for ranks in options.ranks() {
            let crowded = ranks > usable_cores().len();
            let theirs: Vec<Series> = baselines
                .iter()
                .flat_map(|baseline| {
                    let all = settings(&baseline.name, baseline.family, crowded, SettingsWish::Both);
                    all.into_iter().map(|setting| Series { baseline: baseline.clone(), setting })
                })
                .collect();
            let ours = algorithms.iter().map(|algorithm| Who::Ours(algorithm.clone()));
            for who in ours.chain(theirs.into_iter().map(Who::Theirs)) {
                let all = !matches!(&who, Who::Ours(algorithm) if algorithm.name != AUTO);
                let serves = |operator: &&Combine| all || **operator == Combine::Sum;
                // The operators of a series one after another: they are compared with each other.
                let member = |&operator: &Combine| Member { ranks, who: who.clone(), operator };
                members.extend(operators.iter().filter(serves).map(member));
            }
        }
        Ok(OnNode { options, sizes: options.sizes()?, members })
    }

    /// The keys of all runs, turns outermost.
    pub fn keys(&self) -> Vec<String> {
        let turns = 1..=self.options.turns();
        turns.flat_map(|turn| self.members.iter().map(move |member| member.key(turn))).collect()
    }

    /// The names of all series.
    pub fn names(&self) -> Vec<String> {
        let name = |member: &Member| format!("{} {} {}", member.ranks, member.name(), member.operator);
        self.members.iter().map(name).collect()
    }

    /// Measures what is missing.
    ///
    /// # Errors
    ///
    /// [`Error::Wrong`] at the first wrong answer; [`Error::Run`], [`Error::Timeout`]; [`Error::Interrupted`].
    pub fn measure(&self, session: &mut Session, scratch: &Scratch) -> Result<()> {
        for turn in 1..=self.options.turns() {
            // Whoever comes first meets another machine than whoever comes last.
            let mut order: Vec<&Member> = self.members.iter().collect();
            let ahead = (turn - 1) * order.len() / self.options.turns();
            order.rotate_left(ahead);
            for member in order {
                session.measure(&member.key(turn), |_, _| self.run(member, scratch))?;
            }
        }
        Ok(())
    }

    /// One run of ranks: all lengths of a series.
    fn run(&self, member: &Member, scratch: &Scratch) -> Result<Vec<Times>> {
        let (ranks, limit) = (member.ranks, Duration::from_secs(self.options.timeout));
        let plan = self.plan(member);
        let order = Order { plan: &plan, ranks, binding: Binding::Auto.resolve(ranks), limit };
        // Steps are whole runs here: what the ranks tell meanwhile is not shown.
        let silent = crate::progress::Progress::silent();
        let run = match &member.who {
            Who::Ours(algorithm) => ours::run(&order, algorithm.rule.as_deref(), scratch, &silent)?,
            Who::Theirs(series) => mpi::run(series, &order, scratch, &silent)?,
        };
        Ok(times(&plan, &run))
    }

    fn plan(&self, member: &Member) -> Plan {
        let buffers = match &member.who {
            Who::Ours(algorithm) => algorithm.buffers,
            Who::Theirs(_) => BufferMode::Rewritten,
        };
        let case = |&bytes: &u64| Case {
            operation: Operation::Allreduce,
            buffers,
            timing: Timing::Each,
            element: self.options.node.element,
            bytes,
            root: 0,
            blocks: BLOCKS,
            block: self.options.block(BLOCKS),
        };
        let takes = |case: &Case| match &member.who {
            Who::Ours(_) => true,
            Who::Theirs(series) => series.takes(case),
        };
        let cases = self.sizes.iter().map(case).filter(takes).collect();
        Plan { operator: member.operator, cases, ..Plan::default() }
    }

    /// What is finished, as curves.
    pub fn curves(&self, session: &Session) -> Vec<Curve> {
        let of = |member: &Member| {
            let turns =
                (1..=self.options.turns()).filter_map(|turn| session.store().get::<Vec<Times>>(&member.key(turn)));
            let binding = Binding::Auto.resolve(member.ranks).words();
            let place = format!("{} {binding}", table::ranks(member.ranks));
            Curve::of(&place, &member.name(), member.operator.name(), turns.flatten())
        };
        self.members.iter().filter_map(of).collect()
    }
}

/// The slowest rank's times of a run, in seconds.
fn times(plan: &Plan, run: &Run) -> Vec<Times> {
    let of = |(index, case): (usize, &Case)| {
        let samples = run.cases.get(&index)?;
        let slowest = samples.slowest.iter().map(|nanoseconds| 1e-9 * nanoseconds).collect();
        let how = samples.choice.as_ref().map_or_else(|| "as the library chooses".into(), |(_, how)| how.clone());
        Some(Times { bytes: case.bytes, slowest, how })
    };
    plan.cases.iter().enumerate().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::command::{Cli, Command};

    fn options(words: &[&str]) -> AllReduce {
        match Cli::try_parse_from(["bench", "allreduce"].iter().chain(words)).unwrap().command {
            Command::AllReduce(options) => *options,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_sum_is_of_all_algorithms_and_other_operators_of_the_unasked_one() {
        let options = options(&["-n", "2,3", "--operators", "sum,user", "--turns", "2"]);
        let node = OnNode::of(&options, &[]).unwrap();
        assert_eq!(node.members.len(), 2 * (7 + 1));
        let keys = node.keys();
        assert_eq!((keys.len(), keys[0].as_str()), (32, "2/auto/sum/1"));
        assert!(keys.contains(&"3/auto/user/2".to_owned()) && !keys.contains(&"2/line/user/1".to_owned()));
    }

    #[test]
    fn plans_are_of_allreduces_alone() {
        let options = options(&["--algorithm", "direct", "--operators", "sum", "--to", "64", "--step", "8"]);
        let node = OnNode::of(&options, &[]).unwrap();
        let plan = node.plan(&node.members[0]);
        let cases: Vec<_> = plan.cases.iter().map(|case| (case.operation, case.buffers, case.bytes)).collect();
        let of = |bytes| (Operation::Allreduce, BufferMode::Shared, bytes);
        assert_eq!(cases, [of(8), of(64), of(512)]);
    }

    #[test]
    fn names_differ() {
        let options = options(&["--algorithm", "line", "--algorithm", "line"]);
        assert!(OnNode::of(&options, &[]).err().unwrap().to_string().contains("\"line\""));
    }
}
