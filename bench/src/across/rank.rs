//! A rank: checks the answers of all series, times their calls in turns, counts what the links carry.

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use hier::Collective;
use hier::HierComm;
use hier::across::{ClusterRules, ClusterSettings, Slice};
use hier::nodes::{Nodes, Placement, Settings};
use hier::operator::Sum;
use hier::schedule::Algorithm;
use hier::transport::mpi::MpiTransport;
use mpi::Threading;
use mpi::collective::SystemOperation;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives, Root};

use super::counters::{self, Reading};
use super::expected::{self, Expected, Switches};
use super::goodput;
use super::measured::{Case, Measured};
use super::message_rate;
use super::plan::{ELEMENT, Plan};
use super::report;
use super::series::{Series, Way};
use super::start::Start;
use crate::error::{Error, Result};
use crate::out::show;
use crate::plan::{Combine, Operation};
use crate::rank::answer::{Answer, View, fill};
use crate::sizes::show_size;

/// Untimed calls of a series whose slices do not change.
const FEW: u32 = 2;
/// The search for slices is over when a call has been told in the same words so many times.
const SAME: u32 = 4;
/// Or after so many calls.
const MOST: u32 = 60;
/// A call for which a rank was late is repeated, so many times at most.
const ATTEMPTS: u32 = 5;
/// The variables that name the file of switches, the program's own first.
const TOPOLOGIES: [&str; 2] = ["PHALANX_TOPOLOGY", "CLUSTER_TOPOLOGY"];

/// Executes a plan; collective over the ranks that mpirun has started.
///
/// # Errors
///
/// [`Error::Usage`] where MPI cannot be initialised. All other errors end the whole job, with a word on stderr.
pub fn run(plan: &Plan) -> Result<()> {
    let (universe, _) = mpi::initialize_with_threading(Threading::Funneled)
        .ok_or_else(|| Error::Usage("MPI is initialised already".into()))?;
    let world = universe.world();
    let outcome = measure(&world, plan).and_then(|measured| match (measured, &plan.json) {
        (None, _) => Ok(()),
        (Some(measured), Some(path)) => measured.write(path),
        (Some(measured), None) => {
            show(report::plain(&measured))?;
            Ok(())
        }
    });
    if let Err(error) = outcome {
        eprintln!("bench across-rank: rank {}: {error}", world.rank());
        world.abort(1);
    }
    Ok(())
}

/// A series with its communicator; the library's own has none.
struct Member<'a> {
    series: &'a Series,
    comm: Option<HierComm>,
}

struct Rank<'a> {
    world: &'a SimpleCommunicator,
    plan: &'a Plan,
    placement: Placement,
    switches: Option<Switches>,
    start: Start,
    send: Vec<f64>,
    recv: Vec<f64>,
}

/// Measures everything; what was measured is on rank 0.
fn measure(world: &SimpleCommunicator, plan: &Plan) -> Result<Option<Measured>> {
    let size = world.size() as usize;
    if let Some(wanted) = plan.ranks.filter(|&wanted| wanted != size) {
        return Err(Error::Usage(format!(
            "this job has {}, and not {wanted}: was the program built for the MPI of this mpirun?",
            crate::table::ranks(size)
        )));
    }
    let finder = over(world, ClusterSettings::default(), "finding nodes")?;
    let placement = finder.placement().clone();
    drop(finder);
    let members = plan.series.iter().map(|series| member(world, series)).collect::<Result<Vec<_>>>()?;
    let link = if plan.goodput { goodput::measure(world, &placement) } else { None };
    let rates = message_rate::measure(world, &placement, &plan.rates);
    let switches = switches(world, &placement);
    let start = Start::of(world);
    let mut rank = Rank { world, plan, placement, switches, start, send: Vec::new(), recv: Vec::new() };
    let mut cases = Vec::new();
    for &bytes in &plan.sizes {
        let start = Instant::now();
        let of_size = rank.measure_size(&members, bytes)?;
        if world.rank() == 0 {
            let calls: usize = of_size.iter().map(|case| case.seconds.len() + case.before as usize).sum();
            let (what, series) = (plan.operation, members.len());
            let seconds = start.elapsed().as_secs_f64();
            eprintln!("across: {what} of {}: {calls} calls of {series} series, {seconds:.1} s", show_size(bytes));
        }
        cases.extend(of_size);
    }
    Ok((world.rank() == 0).then(|| Measured {
        library: library(),
        ranks: size,
        nodes: rank.placement.nodes(),
        per_node: (rank.placement.fewest(), rank.placement.most()),
        block: rank.placement.is_block(),
        operation: plan.operation.to_string(),
        goodput: link.map(|link| link.goodput),
        latency: link.map(|link| link.latency),
        common_start: rank.start.is_common(),
        rates,
        cases,
    }))
}

/// The library's name and version.
fn library() -> String {
    let text = mpi::environment::library_version().unwrap_or_default().replace(['\0', '\t'], " ");
    text.lines().next().unwrap_or_default().trim().to_owned()
}

/// The communicator by some settings.
fn over(world: &SimpleCommunicator, settings: ClusterSettings, series: &str) -> Result<HierComm> {
    let failed = |error: hier::across::Error| failed(series, world, error);
    let transport = MpiTransport::new(world).map_err(|error| failed(error.into()))?;
    HierComm::over(Box::new(transport), &settings).map_err(failed)
}

fn member<'a>(world: &SimpleCommunicator, series: &'a Series) -> Result<Member<'a>> {
    let rules = series.rules().unwrap_or_default().to_owned();
    let settings = match &series.way {
        Way::Native => return Ok(Member { series, comm: None }),
        Way::Nodes(_) => ClusterSettings { rules, topology: topology(), ..ClusterSettings::default() },
        Way::Unordered(_) => ClusterSettings { rules, ..ClusterSettings::default() },
        Way::Flat(_) => {
            let nodes = Settings { nodes: Nodes::Given((0..world.size() as usize).collect()), ..Settings::default() };
            ClusterSettings { rules, nodes, ..ClusterSettings::default() }
        }
    };
    Ok(Member { series, comm: Some(over(world, settings, &series.name)?) })
}

fn topology() -> Option<PathBuf> {
    TOPOLOGIES.iter().find_map(std::env::var_os).filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// The switches of the nodes, on all ranks that can read the file.
fn switches(world: &SimpleCommunicator, placement: &Placement) -> Option<Switches> {
    const NAME: usize = 64;
    let mut own = [0_u8; NAME];
    let host = nix::unistd::gethostname().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    own.iter_mut().zip(host.bytes()).for_each(|(place, byte)| *place = byte);
    let mut all = vec![0_u8; NAME * placement.ranks()];
    world.all_gather_into(&own[..], &mut all[..]);
    let name = |rank: usize| {
        let bytes = &all[rank * NAME..(rank + 1) * NAME];
        String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned()
    };
    let names: Vec<String> = (0..placement.nodes()).map(|node| name(placement.members(node)[0])).collect();
    Switches::of(&fs::read_to_string(topology()?).ok()?, &names)
}

fn failed(series: &str, world: &SimpleCommunicator, error: impl std::fmt::Display) -> Error {
    Error::Run { series: series.into(), ranks: world.size() as usize, detail: error.to_string() }
}

impl Rank<'_> {
    /// All series at one size: checked, then timed in turns. The cases are whole on rank 0.
    fn measure_size(&mut self, members: &[Member<'_>], bytes: u64) -> Result<Vec<Case>> {
        let count = (bytes / ELEMENT) as usize;
        self.send = vec![0.0; count];
        self.recv = vec![0.0; count];
        let mut before = Vec::with_capacity(members.len());
        for member in members {
            before.push(self.settle(member)?);
        }
        let counters = counters::of_this_cluster().filter(|_| self.world.rank() == 0);
        let read =
            || counters.as_ref().and_then(|path| fs::read_to_string(path).ok()).map(|text| counters::read(&text));
        let calls = self.plan.calls as usize;
        let mut seconds = vec![0.0; calls * members.len()];
        let mut carried = vec![Reading::new(); members.len()];
        self.world.barrier();
        let mut last = read();
        for call in 0..calls {
            // What one series leaves behind (buffers that drain, ranks that are late) meets each of the others in turn.
            for turn in 0..members.len() {
                let place = (call + turn) % members.len();
                for attempt in 1..=ATTEMPTS {
                    self.prepare(call);
                    let beginning = self.start.begin(self.world);
                    self.call(&members[place])?;
                    seconds[place * calls + call] = beginning.seconds();
                    let counts = self.start.end(self.world);
                    let before = std::mem::replace(&mut last, read());
                    if !counts && attempt < ATTEMPTS {
                        continue;
                    }
                    if let (Some(before), Some(last)) = (&before, &last) {
                        counters::add(&mut carried[place], before, last);
                    }
                    break;
                }
            }
        }
        let mut longest = vec![0.0; seconds.len()];
        self.world.all_reduce_into(&seconds[..], &mut longest[..], SystemOperation::max());
        let case = |(place, member): (usize, &Member<'_>)| {
            let how = self.how(member, bytes);
            Case {
                series: member.series.name.clone(),
                bytes,
                seconds: longest[place * calls..(place + 1) * calls].to_vec(),
                before: before[place],
                expected: self.expected(member, &how, count),
                how,
                carried: counters::each(&carried[place], self.plan.calls),
            }
        };
        Ok(members.iter().enumerate().map(case).collect())
    }

    /// Checks the answers of a series, and calls it until it does not change any more. Returns the calls.
    fn settle(&mut self, member: &Member<'_>) -> Result<u32> {
        let bytes = self.recv.len() as u64 * ELEMENT;
        let operation = self.plan.operation;
        let view = View { rank: self.world.rank() as usize, ranks: self.placement.ranks(), root: 0, block: 1 };
        let (mut last, mut same, mut calls) = (String::new(), 0, 0);
        while calls < FEW || (searches(member) && same < SAME && calls < MOST) {
            let answer = Answer::by(Combine::Sum, operation, view, calls as usize);
            self.prepare(calls as usize);
            self.world.barrier();
            self.call(member)?;
            if let Some(fault) = answer.fault(&self.recv) {
                let (series, rank) = (member.series.name.clone(), self.world.rank());
                return Err(Error::Wrong {
                    series,
                    detail: format!("rank {rank}, {operation} of {bytes} bytes: {fault}"),
                });
            }
            calls += 1;
            let how = self.how(member, bytes);
            same = if how == last { same + 1 } else { 1 };
            last = how;
        }
        Ok(calls)
    }

    /// Writes the input anew.
    fn prepare(&mut self, turn: usize) {
        let rank = self.world.rank() as usize;
        match self.plan.operation {
            Operation::Broadcast => fill(&mut self.recv, rank, turn),
            _ => fill(&mut self.send, rank, turn),
        }
    }

    fn call(&mut self, member: &Member<'_>) -> Result<()> {
        let outcome = match (&member.comm, self.plan.operation) {
            (None, Operation::Broadcast) => {
                self.world.process_at_rank(0).broadcast_into(&mut self.recv[..]);
                Ok(())
            }
            (None, _) => {
                self.world.all_reduce_into(&self.send[..], &mut self.recv[..], SystemOperation::sum());
                Ok(())
            }
            (Some(comm), Operation::Broadcast) => comm.process_at_rank(0).broadcast_into(&mut self.recv),
            (Some(comm), _) => comm.all_reduce_into(&self.send, &mut self.recv, Sum),
        };
        outcome.map_err(|error| failed(&member.series.name, self.world, error))
    }

    /// What a call does, for people.
    fn how(&self, member: &Member<'_>, bytes: u64) -> String {
        let what = match self.plan.operation {
            Operation::Broadcast => Collective::Broadcast,
            _ => Collective::Allreduce,
        };
        member.comm.as_ref().map_or_else(|| "as the library chooses".into(), |comm| comm.explain(what, bytes as usize))
    }

    /// What links carry by the schedule with which the words `how` begin.
    fn expected(&self, member: &Member<'_>, how: &str, count: usize) -> Option<Expected> {
        if self.plan.operation != Operation::Allreduce {
            return None;
        }
        let algorithm: Algorithm = how.split_whitespace().next()?.parse().ok()?;
        let ring = self.switches.as_ref().map(Switches::ring).filter(|_| matches!(member.series.way, Way::Nodes(_)));
        let places = expected::places(&self.placement, matches!(member.series.way, Way::Flat(_)), ring);
        expected::allreduce(algorithm, &places, count, ELEMENT, self.switches.as_ref())
    }
}

/// Whether a series may look for the size of its slices.
fn searches(member: &Member<'_>) -> bool {
    let Some(Ok(rules)) = member.series.rules().map(str::parse::<ClusterRules>) else { return false };
    matches!(rules.of(Collective::Allreduce).slice, None | Some(Slice::Adaptive))
}
