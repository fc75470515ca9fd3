//! One case on one rank: answers checked, repetitions calibrated, blocks timed, counts taken.

use std::thread::sleep;
use std::time::{Duration, Instant};

use hier::operator::{Max, Min, Operator, Sum, User};
use hier::{Communicator, Counters, SharedResult};

use super::answer::{Answer, View};
use super::buffers::Buffers;
use super::call::Call;
use super::lateness;
use super::value::{Value, fill, read};
use crate::clock::nanoseconds_since;
use crate::error::{Error, Result};
use crate::gate::look::Look;
use crate::gate::{Each, Elapsed, Gate, now};
use crate::plan::{BufferMode, Case, Combine, Operation, Plan, Timing};
use crate::samples::Count;

/// Calls that are checked before anything is timed.
const CHECKED_CALLS: usize = 3;
/// No block has more calls than this.
const MOST_CALLS: f64 = 1e7;
/// A block is calibrated on a run of at least this part of it.
const CALIBRATED_PART: f64 = 0.25;
/// Runs of that length, of which the quickest counts.
pub(crate) const CALIBRATING_RUNS: usize = 3;
/// Slow cases keep at least this many blocks.
const LEAST_BLOCKS: usize = 3;
/// Delays from this many microseconds on are slept, shorter ones spun.
const SLEPT_FROM: u64 = 200;

/// The result of one case on one rank.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// Calls in a block.
    pub iterations: u64,
    /// Nanoseconds a call, by block: of this rank, and of whichever was the slowest in each call.
    pub blocks: Vec<[f64; 2]>,
    /// How the cores looked before each block and after the last; empty where nobody looked.
    pub looks: Vec<Look>,
    /// What was counted during the timed calls.
    pub count: Count,
    /// Payload bytes that this rank had the kernel copy during them.
    pub reached: u64,
}

/// Measures `case`; collective over `comm`.
///
/// # Errors
///
/// [`Error::Wrong`] when an answer is not the oracle's, [`Error::Collective`] when a call fails.
pub fn case<T: Value>(comm: &Communicator, plan: &Plan, case: &Case, gate: &mut Gate) -> Result<Measured>
where
    Sum: Operator<T>,
    Max: Operator<T>,
    Min: Operator<T>,
{
    let plus = |to: &mut [T], from: &[T]| to.iter_mut().zip(from).for_each(|(to, &from)| *to = to.plus(from));
    match plan.operator {
        Combine::Sum => by(Sum, comm, plan, case, gate),
        Combine::Max => by(Max, comm, plan, case, gate),
        Combine::Min => by(Min, comm, plan, case, gate),
        Combine::User => by(User::commutative(plus), comm, plan, case, gate),
    }
}

fn by<T: Value, O: Operator<T> + Copy>(
    operator: O,
    comm: &Communicator,
    plan: &Plan,
    case: &Case,
    gate: &mut Gate,
) -> Result<Measured> {
    let mut bench = Bench::<T, O> {
        comm,
        gate,
        case,
        operator,
        combine: plan.operator,
        late: lateness(&plan.late, comm.rank()),
        buffers: Buffers::new(comm, case, plan.cold_bytes)?,
        view: None,
        calls: 0,
        count: Count::default(),
        reached: 0,
    };
    bench.check()?;
    let (iterations, blocks) = match plan.calls {
        Some(calls) => (calls.get(), 1),
        None => bench.calibrate()?,
    };
    (bench.count, bench.reached) = (Count::default(), 0);
    let mut measured = Measured { iterations, ..Measured::default() };
    for _ in 0..blocks {
        measured.looks.extend(bench.gate.look());
        measured.blocks.push(bench.block(iterations)?.of_each(iterations));
    }
    measured.looks.extend(bench.gate.look());
    (measured.count, measured.reached) = (bench.count, bench.reached);
    bench.check_last()?;
    Ok(measured)
}

struct Bench<'a, T, O> {
    comm: &'a Communicator,
    gate: &'a mut Gate,
    case: &'a Case,
    operator: O,
    /// What that is called.
    combine: Combine,
    /// Microseconds by which this rank comes late to each call.
    late: u64,
    buffers: Buffers<T>,
    /// The result that all ranks look at, with buffers of that kind.
    view: Option<SharedResult<T>>,
    /// Calls made so far with the buffers taking turns.
    calls: u64,
    count: Count,
    reached: u64,
}

impl<T: Value, O: Operator<T> + Copy> Bench<'_, T, O> {
    /// Checks the answers of a few calls on this rank, and leaves the pattern of turn 0 behind.
    fn check(&mut self) -> Result<()> {
        for turn in (0..CHECKED_CALLS).rev() {
            let sends_from_receive = self.case.operation == Operation::Broadcast && self.comm.rank() == self.case.root;
            // Calls other than the last one are made in one slot.
            match turn {
                0 => self.buffers.fill(self.comm.rank(), turn, sends_from_receive),
                _ => self.buffers.fill_one(turn as u64, self.comm.rank(), turn, sends_from_receive),
            }
            self.comm.barrier()?;
            self.calls = turn as u64;
            self.call()?;
            let answer = self.answer(turn);
            self.compare(turn as u64, &answer, "before timing")?;
        }
        self.calls = 0;
        Ok(())
    }

    /// Checks what the last timed call left.
    fn check_last(&mut self) -> Result<()> {
        let Some(last) = self.calls.checked_sub(1) else { return Ok(()) };
        let (operation, view) = (self.case.operation, self.looks());
        let answer = match self.case.buffers {
            mode if mode.is_rewritten() => Answer::of_constant(self.combine, operation, view, rewritten_value(last)),
            _ => self.answer(0),
        };
        self.compare(last, &answer, "after timing")
    }

    /// What a call gives for the patterns of `turn`.
    fn answer(&self, turn: usize) -> Answer {
        Answer::by(self.combine, self.case.operation, self.looks(), turn)
    }

    /// From where results are looked at.
    fn looks(&self) -> View {
        let (comm, case) = (self.comm, self.case);
        View { rank: comm.rank(), ranks: comm.size(), root: case.root, block: case.bytes as usize / size_of::<T>() }
    }

    /// What call `call` left on this rank, if that has a result.
    fn result(&mut self, call: u64) -> Option<&[T]> {
        let has_result = match self.case.operation {
            Operation::Barrier | Operation::Empty => false,
            Operation::Reduce | Operation::Gather => self.comm.rank() == self.case.root,
            _ => true,
        };
        let result: &[T] = match &self.view {
            Some(view) => view,
            None => self.buffers.pair(call).1,
        };
        has_result.then_some(result)
    }

    /// Compares what call `call` left on this rank with `answer`.
    fn compare(&mut self, call: u64, answer: &Answer, when: &str) -> Result<()> {
        let Case { operation, bytes, root, element, buffers, .. } = *self.case;
        match self.result(call).and_then(|result| answer.fault(result)) {
            Some(fault) => Err(Error::Wrong {
                series: "phalanx".into(),
                detail: format!(
                    "rank {} of {}, {operation} of {bytes} bytes of {element}, root {root}, {buffers} buffers, {when}: {fault}",
                    self.comm.rank(),
                    self.comm.size()
                ),
            }),
            _ => Ok(()),
        }
    }

    /// The calls of a block and the number of blocks, the same on all ranks.
    ///
    /// Runs of doubling length tell what a call costs with all that goes with it (rewriting, the
    /// common start), on the slowest rank. Where one call fills more than a block, there are
    /// fewer blocks.
    fn calibrate(&mut self) -> Result<(u64, usize)> {
        let block = self.case.block.as_nanos() as f64;
        let mut tried = 1u64;
        let elapsed = loop {
            let elapsed = self.least_of_runs(tried)?;
            if elapsed >= block * CALIBRATED_PART {
                break elapsed;
            }
            tried *= 2;
        };
        let cost = elapsed / tried as f64;
        let iterations = (block / cost).clamp(1.0, MOST_CALLS) as u64;
        let affordable = 4.0 * block * self.case.blocks as f64 / (cost * iterations as f64);
        let blocks = (affordable as usize).clamp(LEAST_BLOCKS, self.case.blocks.max(LEAST_BLOCKS));
        Ok((iterations, blocks.min(self.case.blocks.max(1))))
    }

    /// Nanoseconds that a run of `tried` calls takes on the slowest rank: the least of several runs where that fills
    /// its part of a block, since whatever meets a single short one would stand for all calls.
    fn least_of_runs(&mut self, tried: u64) -> Result<f64> {
        let enough = self.case.block.as_nanos() as f64 * CALIBRATED_PART;
        let mut least = f64::INFINITY;
        for _ in 0..CALIBRATING_RUNS {
            let start = Instant::now();
            self.block(tried)?;
            let mut elapsed = 0.0;
            self.comm.all_reduce_into(&[nanoseconds_since(start)], std::slice::from_mut(&mut elapsed), Max)?;
            least = least.min(elapsed);
            if least < enough {
                break;
            }
        }
        Ok(least)
    }

    /// Makes `iterations` calls and returns the nanoseconds spent in them.
    fn block(&mut self, iterations: u64) -> Result<Elapsed> {
        match self.case.timing {
            Timing::Stream => {
                self.gate.together();
                let before = self.comm.counters();
                let start = now();
                self.stream(iterations)?;
                let elapsed = now() - start;
                self.add_counts(&before, iterations);
                Ok(self.gate.stretch(elapsed))
            }
            timing => {
                let mut each = Each::default();
                for _ in 0..iterations {
                    let mut start = 0;
                    if timing == Timing::Step {
                        start = each.begin(self.gate);
                    }
                    self.rewrite();
                    let before = self.comm.counters();
                    let Self { comm, gate, case, operator, buffers, view, calls, late, .. } = self;
                    let call = Call::new(comm, case, *operator, (buffers, *calls), view);
                    *calls += 1;
                    if timing != Timing::Step {
                        start = each.begin(gate);
                    }
                    if *late > 0 {
                        come_late(*late);
                        start = now();
                    }
                    call.make()?;
                    if timing.loads() {
                        self.result(self.calls - 1).into_iter().for_each(read);
                    }
                    each.took(now() - start);
                    self.add_counts(&before, 1);
                }
                Ok(each.end(self.gate))
            }
        }
    }

    /// Makes `iterations` calls back to back, as a program with a loop around one call would: nothing is decided
    /// between two calls but which buffers take their turn, and where one pair of buffers serves all calls, not even
    /// that.
    fn stream(&mut self, iterations: u64) -> Result<()> {
        if self.case.buffers == BufferMode::Cold {
            return (0..iterations).try_for_each(|_| self.call());
        }
        let (comm, root, operator) = (self.comm, self.case.root, self.operator);
        let (send, receive) = self.buffers.pair(0);
        let process = comm.process_at_rank(root);
        self.calls += iterations;
        match self.case.operation {
            Operation::Barrier => (0..iterations).try_for_each(|_| comm.barrier()),
            Operation::Allreduce => (0..iterations).try_for_each(|_| comm.all_reduce_into(send, receive, operator)),
            Operation::Broadcast => (0..iterations).try_for_each(|_| process.broadcast_into(receive)),
            Operation::Reduce if comm.rank() == root => {
                (0..iterations).try_for_each(|_| process.reduce_into_root(send, receive, operator))
            }
            Operation::Reduce => (0..iterations).try_for_each(|_| process.reduce_into(send, operator)),
            Operation::Gather if comm.rank() == root => {
                (0..iterations).try_for_each(|_| process.gather_into_root(send, receive))
            }
            Operation::Gather => (0..iterations).try_for_each(|_| process.gather_into(send)),
            Operation::Scatter if comm.rank() == root => {
                (0..iterations).try_for_each(|_| process.scatter_into_root(send, receive))
            }
            Operation::Scatter => (0..iterations).try_for_each(|_| process.scatter_into(receive)),
            Operation::Allgather => (0..iterations).try_for_each(|_| comm.all_gather_into(send, receive)),
            Operation::Alltoall => (0..iterations).try_for_each(|_| comm.all_to_all_into(send, receive)),
            Operation::ReduceScatter => {
                (0..iterations).try_for_each(|_| comm.reduce_scatter_block_into(send, receive, operator))
            }
            Operation::Scan => (0..iterations).try_for_each(|_| comm.scan_into(send, receive, operator)),
            Operation::Empty => Ok(()),
        }?;
        Ok(())
    }

    /// Writes the next call's input anew, all of it.
    fn rewrite(&mut self) {
        if self.case.buffers.is_rewritten() {
            let value = T::whole(rewritten_value(self.calls));
            let (rank, calls) = (self.comm.rank(), self.calls);
            let (send, receive) = self.buffers.pair(calls);
            match self.case.operation {
                Operation::Barrier | Operation::Empty => {}
                Operation::Broadcast if rank == self.case.root => fill(receive, value),
                Operation::Broadcast => {}
                _ => fill(send, value),
            }
        }
    }

    /// Makes one call.
    fn call(&mut self) -> Result<()> {
        let Self { comm, case, operator, buffers, view, calls, .. } = self;
        *calls += 1;
        Call::new(comm, case, *operator, (buffers, *calls - 1), view).make()
    }

    fn add_counts(&mut self, before: &Counters, calls: u64) {
        let after = self.comm.counters();
        let count = &mut self.count;
        count.calls += calls;
        count.loaded += after.loaded - before.loaded;
        count.stored += after.stored - before.stored;
        count.waits += after.waits - before.waits;
        count.yields += after.yields - before.yields;
        count.sleeps += after.sleeps - before.sleeps;
        count.wakes += after.wakes - before.wakes;
        self.reached += after.reached - before.reached;
    }
}

/// What every element of the input is rewritten to before call `call`.
fn rewritten_value(call: u64) -> u32 {
    (call % 50) as u32 + 1
}

/// Comes late by so many microseconds.
fn come_late(microseconds: u64) {
    let late = Duration::from_micros(microseconds);
    if microseconds >= SLEPT_FROM {
        sleep(late);
    } else {
        let start = Instant::now();
        while start.elapsed() < late {
            std::hint::spin_loop();
        }
    }
}
