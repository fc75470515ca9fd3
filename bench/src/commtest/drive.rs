//! `bench commtest`: runs of ranks in turns, tables, record.

use std::path::PathBuf;

use serde::Serialize;
use serde_json::json;

use super::figures::Curve;
use super::options::{CommTest, DESCRIPTION, Over};
use super::packets::packetisations;
use super::plan::{Plan, key, lines_in, pattern, prefix};
use super::protocol::{Program, Protocol};
use super::{picture, report, start};
use crate::across::cluster;
use crate::error::{Error, Result};
use crate::out::{say, show};
use crate::record::host::Host;
use crate::scratch::Scratch;
use crate::sizes::show_size;
use crate::study::{Session, Store};
use crate::table::ranks;

/// Repetitions over all turns.
const ITERATIONS: u32 = 10;
const QUICK_ITERATIONS: u32 = 4;

/// All results, as they are written to `results.json`.
#[derive(Debug, Serialize)]
struct Results<'a> {
    study: &'static str,
    host: &'a Host,
    ranks: usize,
    cluster: Option<String>,
    command: String,
    total: usize,
    curves: &'a [Curve],
}

/// Runs the command. Where an emulated cluster is asked for and not allowed it says so, and ends well.
///
/// # Errors
///
/// [`Error::Usage`] and [`Error::BaselineMissing`] before anything is measured; [`Error::Wrong`] for a packet that is
/// not what was sent; [`Error::Interrupted`]; those of the runs. What was finished is kept.
pub fn run(options: &CommTest) -> Result<()> {
    let study = Study::of(options)?;
    let programs = study.programs()?;
    let mut session = Session::begin(DESCRIPTION, &options.study, Host::look(), study.settings())?;
    say!("{}\n", session.host().line())?;
    session.expect(&study.keys());
    let scratch = Scratch::new()?;
    for turn in 1..=options.turns() {
        for (over, program) in &programs {
            if !study.measure(&mut session, &scratch, *over, program.as_ref(), turn)? {
                return Ok(());
            }
        }
    }
    study.conclude(session)
}

/// What is measured.
struct Study<'a> {
    options: &'a CommTest,
    /// The plan of every run, without what differs from run to run.
    plan: Plan,
    over: Vec<Over>,
}

impl Study<'_> {
    fn of(options: &CommTest) -> Result<Study<'_>> {
        let exchange = &options.exchange;
        let total = exchange.total as usize;
        let over = options.over();
        if options.hosts.is_some() {
            if options.size() < 2 {
                return Err(Error::Usage(format!("--hosts 1 --slots {}: an exchange takes two ranks", options.slots)));
            }
            if let Some(channels) = over.iter().find(|over| matches!(over, Over::Channels(_))) {
                return Err(Error::Usage(format!("{channels} carry within a host: leave out --hosts, or {channels}")));
            }
            cluster::script(&options.across()?)?;
        }
        let mpis = over.iter().filter(|over| matches!(over, Over::Mpi(_))).count();
        if options.program.is_some() && mpis != 1 {
            return Err(Error::Usage("--program is built for one library: give one MPI with --over".into()));
        }
        let usual = if options.study.quick { QUICK_ITERATIONS } else { ITERATIONS };
        let iterations = exchange.iterations.unwrap_or(usual) as usize;
        let plan = Plan {
            total,
            packets: packetisations(total, options.least()),
            iterations: iterations.div_ceil(options.turns()),
            protocols: exchange.protocols(),
            programs: exchange.programs.clone(),
            pattern: pattern(exchange, if options.hosts.is_some() { options.slots } else { 1 }),
            ..Plan::default()
        };
        plan.pattern.partners(options.size()).map_err(Error::Usage)?;
        let study = Study { options, plan, over };
        match study.over.iter().find(|over| study.pairs(**over).is_empty()) {
            None => Ok(study),
            Some(over) => {
                Err(Error::Usage(format!("{over} have none of these protocols and programs: 0.0 and 1.0, basic")))
            }
        }
    }

    /// The programs of ranks, by what carries.
    fn programs(&self) -> Result<Vec<(Over, Option<PathBuf>)>> {
        let of = |&over: &Over| match over {
            Over::Mpi(library) => Ok((over, Some(start::program(self.options, library)?))),
            Over::Channels(_) => Ok((over, None)),
        };
        self.over.iter().map(of).collect()
    }

    /// All that shapes what is measured.
    fn settings(&self) -> serde_json::Value {
        let Plan { total, packets, iterations, pattern, .. } = &self.plan;
        let options = self.options;
        let list = |all: Vec<String>| all.join(",");
        json!({
            "over": list(self.over.iter().map(Over::to_string).collect()),
            "ranks": options.size(),
            "cluster": self.cluster(),
            "eager": options.eager,
            "command": pattern.command.to_string(),
            "distance": pattern.distance,
            "only_zero": pattern.only_zero,
            "cycles": pattern.cycles.as_ref().map(ToString::to_string),
            "total": total,
            "packets": packets,
            "iterations": iterations,
            "turns": options.turns(),
            "protocols": list(self.plan.protocols.iter().map(Protocol::to_string).collect()),
            "programs": list(self.plan.programs.iter().map(Program::to_string).collect()),
        })
    }

    /// The cluster in words.
    fn cluster(&self) -> Option<String> {
        let options = self.options;
        let hosts = options.hosts?;
        let mut text = format!("{hosts} hosts x {}, links {}", options.slots, options.rate);
        if let Some(each) = options.per_switch.filter(|each| *each < hosts) {
            text +=
                &format!(", {each} hosts a switch, trunks {}", options.trunk_rate.as_ref().unwrap_or(&options.rate));
        }
        Some(text + if options.eager { ", eager" } else { "" })
    }

    /// Protocols and programs that a carrier has.
    fn pairs(&self, over: Over) -> Vec<(Protocol, Program)> {
        let has = |(protocol, program): &(Protocol, Program)| match over {
            Over::Mpi(_) => true,
            Over::Channels(_) => protocol.number == 0 && *program == Program::Basic,
        };
        self.plan.pairs().into_iter().filter(has).collect()
    }

    fn keys_of(&self, over: Over, turn: usize, packets: usize) -> Vec<String> {
        let prefix = prefix(&over.to_string(), turn);
        self.pairs(over).into_iter().map(|(protocol, program)| key(&prefix, protocol, program, packets)).collect()
    }

    fn keys(&self) -> Vec<String> {
        let mut keys = Vec::new();
        for turn in 1..=self.options.turns() {
            for &over in &self.over {
                keys.extend(self.plan.packets.iter().flat_map(|&packets| self.keys_of(over, turn, packets)));
            }
        }
        keys
    }

    /// One run: what is still missing of a turn over one carrier. False where a cluster is not allowed.
    fn measure(
        &self,
        session: &mut Session,
        scratch: &Scratch,
        over: Over,
        program: Option<&PathBuf>,
        turn: usize,
    ) -> Result<bool> {
        let missing = |packets: usize, store: &Store| {
            self.keys_of(over, turn, packets).iter().filter(|key| !store.has(key)).count()
        };
        let store = session.store();
        let packets: Vec<usize> =
            self.plan.packets.iter().copied().filter(|&packets| missing(packets, store) > 0).collect();
        let most = packets.iter().map(|&packets| missing(packets, store)).sum();
        if packets.is_empty() {
            return Ok(true);
        }
        let folder = scratch.fresh(&over.to_string())?;
        let lines = lines_in(&folder);
        let plan = Plan { packets, lines: lines.clone(), prefix: prefix(&over.to_string(), turn), ..self.plan.clone() };
        let mut allowed = true;
        let what = format!("{over}, turn {turn} of {}", self.options.turns());
        session.gather(&what, &lines, most, |_, stop| {
            match (over, program) {
                (Over::Mpi(library), Some(program)) => {
                    allowed = start::over_mpi(self.options, library, program, &plan, &folder, stop)?;
                }
                (Over::Channels(slots), _) => start::over_channels(self.options, slots, &plan)?,
                (Over::Mpi(_), None) => {}
            }
            Ok(())
        })?;
        let left = plan.packets.iter().map(|&packets| missing(packets, session.store())).sum::<usize>();
        if allowed && left > 0 {
            let detail = format!("ranks ended well and left {left} of {most} measurements out");
            return Err(Error::Run { series: over.to_string(), ranks: self.options.size(), detail });
        }
        Ok(allowed)
    }

    /// Prints and records what was measured.
    fn conclude(&self, mut session: Session) -> Result<()> {
        let Plan { total, packets, pattern, .. } = &self.plan;
        let turns = self.options.turns();
        let mut curves = Vec::new();
        for &over in &self.over {
            let of = |which| Curve::of(session.store(), &over.to_string(), turns, which, *total, packets);
            curves.extend(self.pairs(over).into_iter().filter_map(of));
        }
        let mut carriers: Vec<String> =
            curves.iter().map(|curve| format!("{}: {}", curve.over, curve.carrier)).collect();
        carriers.dedup();
        session.host_mut().baselines = carriers;
        let place = self.cluster().unwrap_or_else(|| "this host".into());
        let who = match (pattern.only_zero, &pattern.cycles) {
            (_, Some(cycles)) => format!("along the cycles {cycles}"),
            (true, None) => format!("rank 0 and who is {} away", pattern.distance),
            (false, None) => format!("all, {} away", pattern.distance),
        };
        let title = format!(
            "COMMTEST {} of {} each way, {who}; {} on {place}",
            pattern.command,
            show_size(*total as u64),
            ranks(self.options.size())
        );
        let text = format!(
            "{title}\n\n{}\n{}{}",
            report::fits(&curves),
            report::times(&curves, *total, packets),
            report::best(&curves)
        );
        let shown = session.progress().aside(|| show(&text));
        let size = self.options.size();
        let cluster = self.cluster();
        session.finish(|keeper, host| {
            let command = pattern.command.to_string();
            let results = Results {
                study: DESCRIPTION.name,
                host,
                ranks: size,
                cluster,
                command,
                total: *total,
                curves: &curves,
            };
            keeper.write("results.csv", &report::csv(&curves));
            keeper.write_json("results.json", &results);
            keeper.write("tables.txt", &text);
            keeper.write_plot("commtest.svg", &picture::render(&curves, title.clone()));
        })?;
        shown
    }
}
