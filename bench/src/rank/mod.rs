//! The program that each rank of our own runs executes: check, calibrate, time, write down.
//!
//! # What a figure means
//!
//! A *block* is a number of calls chosen so that it lasts a given time; its result on each rank
//! is the average time of one call, and beside it the average of what each call took on the rank
//! that was the slowest in it, which all ranks know. The driver takes medians and quartiles of
//! that over the blocks, and merges the ranks' own averages block by block (quickest, mean).
//!
//! With the timing *stream* the clock is read before the first and after the last call of a
//! block. Nothing lies between the calls, so the average is free of the clock's cost and of any
//! barrier's skew; but a rooted collective may run ahead of its slower ranks, and what is
//! measured is then the time between calls rather than the time of one.
//!
//! With the timing *each* all ranks begin every call at one time of the clock that they share, and the clock is read
//! around that call alone; its buffers are chosen before that ([`crate::gate`], the same for us and for a baseline: no
//! library's own barrier comes before a call). One clock reading is part of everyone's figure, and is not subtracted;
//! how much that is tells a call that does nothing, which is timed in the same way ([`crate::empty`]). Where ranks
//! outnumber cores they wait for each other at the same place and then begin as they get a core; the clock is that of
//! the last one's arrival.
//!
//! Before each block the ranks look at the cores ([`crate::gate::look`]): on virtual machines how far apart they lie
//! changes, and whether they are threads of one core.
//!
//! Before anything is timed, ranks (and the floor's processes) call barriers for [`SETTLE`]: processes that were just
//! started often share a core, and the kernel takes a while to spread them.
//!
//! A late rank starts its clock after its delay; the others' times contain their waiting for it.

pub mod answer;
pub mod buffers;
pub mod call;
pub mod measure;
pub mod value;

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use hier::Communicator;
use hier::operator::Min;

use crate::error::{Error, Result};
use crate::gate::Gate;
use crate::plan::{Case, ElementType, Late, Operation, Plan};
use crate::samples::Sheet;
use measure::Measured;

/// What a rank is told on its command line.
#[derive(Clone, Debug, clap::Args)]
pub struct Spec {
    /// The plan
    pub plan: PathBuf,
    /// The folder for the results
    pub results: PathBuf,
    /// Seconds after which the rank ends itself
    pub limit: u64,
}

/// How long ranks call barriers before anything is timed.
pub const SETTLE: Duration = Duration::from_millis(200);
/// So many of them between two looks at the clock.
pub const SETTLE_CALLS: usize = 500;

/// The exit status of a rank that reached its time limit.
pub const OUT_OF_TIME: i32 = 124;

/// Runs one rank to its end.
pub fn run(spec: &Spec) -> Result<()> {
    let limit = Duration::from_secs(spec.limit.max(1));
    // It only sleeps: the process ends long before it wakes, or should have.
    thread::spawn(move || {
        thread::sleep(limit);
        std::process::exit(OUT_OF_TIME);
    });
    let plan = Plan::read(&spec.plan)?;
    let comm = Communicator::world()?;
    execute(&comm, &plan, &spec.results)
}

/// Executes `plan` as one rank of `comm` and writes this rank's sheet into `folder`.
pub fn execute(comm: &Communicator, plan: &Plan, folder: &Path) -> Result<()> {
    let mut sheet = Sheet::create(folder, comm.rank(), comm.size())?;
    let mut gate = Gate::open(folder, comm.rank(), comm.size())?;
    settle(comm)?;
    for (index, case) in plan.cases.iter().enumerate() {
        let outcome = match case.element {
            ElementType::I32 => measure::case::<i32>(comm, plan, case, &mut gate),
            ElementType::I64 => measure::case::<i64>(comm, plan, case, &mut gate),
            ElementType::F32 => measure::case::<f32>(comm, plan, case, &mut gate),
            ElementType::F64 => measure::case::<f64>(comm, plan, case, &mut gate),
        };
        match outcome {
            Ok(measured) => write(&mut sheet, comm, index, case, &measured)?,
            Err(Error::Wrong { series, detail }) => {
                sheet.wrong(index, &detail)?;
                return Err(Error::Wrong { series, detail });
            }
            Err(other) => return Err(other),
        }
    }
    sheet.end()
}

/// Calls barriers until the kernel has had time to spread the ranks over the cores.
fn settle(comm: &Communicator) -> Result<()> {
    let start = Instant::now();
    loop {
        for _ in 0..SETTLE_CALLS {
            comm.barrier()?;
        }
        let mut least = 0.0;
        comm.all_reduce_into(&[start.elapsed().as_secs_f64()], std::slice::from_mut(&mut least), Min)?;
        if least >= SETTLE.as_secs_f64() {
            return Ok(());
        }
    }
}

fn write(sheet: &mut Sheet, comm: &Communicator, index: usize, case: &Case, measured: &Measured) -> Result<()> {
    sheet.count(index, &measured.count)?;
    if let (0, Some(what)) = (comm.rank(), collective(case.operation)) {
        let bytes = case.bytes as usize;
        // Where calls try both ways the one that most of them took. A root that lends loads half of its message, or,
        // where the other rank is quick, nothing; one that fills cells all of it.
        let all = case.bytes * measured.count.calls;
        let is_pair = case.operation == Operation::Broadcast && comm.size() == 2 && !case.buffers.is_shared();
        let reached = match case.root {
            0 if is_pair => 4 * measured.count.loaded < 3 * all,
            _ => 4 * measured.reached > all,
        };
        let mut choice = match case.buffers.is_shared() {
            true => comm.explain_shared(what, bytes)?,
            false if reached => comm.explain_lent(what, bytes)?,
            false => comm.explain(what, bytes)?,
        };
        if reached {
            choice.text.push_str(", lent");
        }
        sheet.choice(index, choice.critical_lines, &choice.text)?;
    }
    sheet.looks(index, &measured.looks)?;
    sheet.times(index, measured.iterations, &measured.blocks)
}

/// Our name for an operation of the plan; nothing for those whose algorithm no table chooses.
fn collective(operation: Operation) -> Option<hier::Collective> {
    match operation {
        Operation::Barrier => Some(hier::Collective::Barrier),
        Operation::Broadcast => Some(hier::Collective::Broadcast),
        Operation::Reduce => Some(hier::Collective::Reduce),
        Operation::Allreduce => Some(hier::Collective::Allreduce),
        _ => None,
    }
}

/// By how much `rank` comes late to each call.
fn lateness(late: &[Late], rank: usize) -> u64 {
    late.iter().filter(|late| late.rank == rank).map(|late| late.microseconds).sum()
}
