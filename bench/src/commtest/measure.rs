//! A rank's work, whatever carries its packets: checks, times, and tells rank 0.
//!
//! All protocols and programs take turns at one packetisation, A B C B C A, each behind a barrier and with the same two
//! buffers. A rank's time is from when it leaves the barrier until its last call has returned. The longest of any rank
//! counts; where all ranks read one clock, also what passed from the first one's beginning to the last one's end.

use std::fs;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use super::carrier::{Carrier, Job};
use super::packets::packet;
use super::partners::Partners;
use super::plan::Plan;
use super::protocol::{Program, Protocol};
use super::script::Script;
use crate::error::{Error, Result};

/// What names a machine between two boots.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// The times of one protocol and program at one packetisation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// Seconds of the rank that took longest, by repetition.
    pub slowest: Vec<f64>,
    /// Seconds from the first beginning to the last end, by repetition; none where ranks have clocks of their own.
    pub elapsed: Option<Vec<f64>>,
    /// What carried, in its own words.
    pub carrier: String,
}

/// One of those that take turns.
struct Series {
    protocol: Protocol,
    program: Program,
    script: Script,
}

/// Measures a plan; `finished` gets each protocol, program and packetisation on rank 0 as soon as it is finished.
/// Collective.
///
/// # Errors
///
/// [`Error::Wrong`] for a packet that is not what was sent; [`Error::Usage`] for partners that cannot be; what calls
/// return.
pub fn run<C: Carrier>(
    carrier: &mut C,
    plan: &Plan,
    partners: &[Option<Partners>],
    mut finished: impl FnMut(Protocol, Program, usize, &Times) -> Result<()>,
) -> Result<()> {
    let rank = carrier.rank();
    let clock = Clock::agree(carrier)?;
    let own = partners[rank];
    let active: Vec<usize> = (0..carrier.size()).filter(|&rank| partners[rank].is_some()).collect();
    let (mut send, mut receive) = (vec![0_u8; plan.total], vec![0_u8; plan.total]);
    for &packets in &plan.packets {
        let all = series(carrier, plan, own, packets);
        for one in &all {
            let job = Job { protocol: one.protocol, script: &one.script, partners: own, packets };
            fill(&mut send, rank);
            receive.fill(0xEE);
            carrier.execute(&job, &mut send, &mut receive, &mut |carrier| carrier.barrier())?;
            let fault = own.and_then(|own| fault(&receive, own.from, packets));
            if let Some(fault) = fault {
                return Err(Error::Wrong {
                    series: carrier.words(),
                    detail: format!("rank {rank}, protocol {}, {}: {fault}", one.protocol, one.program),
                });
            }
        }
        // By series, by repetition: beginning and end.
        let mut own_times = vec![0.0; 2 * all.len() * plan.iterations];
        for repetition in 0..plan.iterations {
            for turn in 0..all.len() {
                let place = (repetition + turn) % all.len();
                let one = &all[place];
                let job = Job { protocol: one.protocol, script: &one.script, partners: own, packets };
                let mut begin = 0.0;
                carrier.execute(&job, &mut send, &mut receive, &mut |carrier| {
                    carrier.barrier()?;
                    begin = clock.seconds();
                    Ok(())
                })?;
                let at = 2 * (place * plan.iterations + repetition);
                (own_times[at], own_times[at + 1]) = (begin, clock.seconds());
            }
        }
        let gathered = carrier.gather(&own_times)?;
        if rank != 0 {
            continue;
        }
        for (place, one) in all.iter().enumerate() {
            let spans = |repetition: usize| -> Vec<(f64, f64)> {
                let at = 2 * (place * plan.iterations + repetition);
                let of =
                    |&rank: &usize| (gathered[rank * own_times.len() + at], gathered[rank * own_times.len() + at + 1]);
                active.iter().map(of).collect()
            };
            let merged: Vec<(f64, f64)> = (0..plan.iterations).map(|repetition| merge(&spans(repetition))).collect();
            let times = Times {
                slowest: merged.iter().map(|merged| merged.0).collect(),
                elapsed: clock.common.then(|| merged.iter().map(|merged| merged.1).collect()),
                carrier: carrier.words(),
            };
            finished(one.protocol, one.program, packets, &times)?;
        }
    }
    Ok(())
}

/// What takes turns: all protocols and programs of the plan that the carrier serves, with this rank's scripts.
fn series<C: Carrier>(carrier: &C, plan: &Plan, own: Option<Partners>, packets: usize) -> Vec<Series> {
    let nobody = Partners { to: 0, from: 0, first: true };
    let mut all = Vec::new();
    for &protocol in &plan.protocols {
        for &program in &plan.programs {
            let script = Script::of(protocol, program, own.unwrap_or(nobody), packets);
            if let Some(script) = script.filter(|_| carrier.serves(protocol, program)) {
                all.push(Series { protocol, program, script });
            }
        }
    }
    all
}

/// The longest time of any rank, and the time from the first beginning to the last end.
fn merge(spans: &[(f64, f64)]) -> (f64, f64) {
    let longest = spans.iter().map(|(begin, end)| end - begin).fold(0.0, f64::max);
    let first = spans.iter().map(|span| span.0).fold(f64::INFINITY, f64::min);
    let last = spans.iter().map(|span| span.1).fold(f64::NEG_INFINITY, f64::max);
    (longest, last - first)
}

/// The byte that `rank` sends at `offset` of its volume: none of its neighbours has the same row of them.
fn pattern(rank: usize, offset: usize) -> u8 {
    (rank * 89 + offset * 7 + offset / 251 * 13) as u8
}

fn fill(buffer: &mut [u8], rank: usize) {
    buffer.iter_mut().enumerate().for_each(|(offset, byte)| *byte = pattern(rank, offset));
}

/// The first byte that is not what `from` sent, and the packet in which it is.
fn fault(buffer: &[u8], from: usize, packets: usize) -> Option<String> {
    let offset = buffer.iter().enumerate().position(|(offset, &byte)| byte != pattern(from, offset))?;
    let index = (0..packets).find(|&index| packet(buffer.len(), packets, index).contains(&offset)).unwrap_or(0);
    let expected = pattern(from, offset);
    Some(format!(
        "packet {index} of {packets} from rank {from}: byte {offset} is {} and should be {expected}",
        buffer[offset]
    ))
}

/// The clock of a rank.
struct Clock {
    /// Whether all ranks read the same one.
    common: bool,
    /// Full seconds that are taken off, so that the rest keeps its digits.
    base: u64,
}

impl Clock {
    /// Finds out whether all ranks are on one machine. Collective.
    fn agree<C: Carrier>(carrier: &mut C) -> Result<Clock> {
        let boot = fs::read_to_string(BOOT).unwrap_or_default();
        let name = boot.bytes().fold(17_u32, |hash, byte| hash.wrapping_mul(16_777_619) ^ u32::from(byte));
        let all = carrier.gather(&[f64::from(name), now().as_secs() as f64])?;
        let common = !boot.is_empty() && all.chunks(2).all(|of| of[0] == all[0]);
        Ok(Clock { common, base: if common { all[1] as u64 } else { now().as_secs() } })
    }

    fn seconds(&self) -> f64 {
        let now = now();
        (now.as_secs() as f64 - self.base as f64) + f64::from(now.subsec_nanos()) * 1e-9
    }
}

fn now() -> Duration {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map(Duration::from).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use hier::{Communicator, TreeRules};
    use shm_core::job::JobSpec;

    use super::super::channel::{Channels, Slots};
    use super::super::partners::{Command, Pattern};
    use super::*;

    fn plan(total: usize, packets: &[usize], pattern: Pattern) -> Plan {
        Plan {
            total,
            packets: packets.to_vec(),
            iterations: 3,
            protocols: Protocol::all(),
            programs: Program::ALL.to_vec(),
            pattern,
            ..Plan::default()
        }
    }

    /// Measures over channels between threads; what rank 0 was told.
    fn measured(size: usize, plan: &Plan) -> Vec<(String, usize, Times)> {
        let partners = plan.pattern.partners(size).unwrap();
        let mut spec = JobSpec::new(size).unwrap();
        spec.tuning.force(&Slots::Cells.rule()).unwrap();
        let mut of_ranks = Communicator::threads_of(&spec, TreeRules::default(), |world| {
            let mut told = Vec::new();
            let mut carrier = Channels::new(world, Slots::Cells, &partners).unwrap();
            run(&mut carrier, plan, &partners, |protocol, program, packets, times| {
                told.push((format!("{protocol} {program}"), packets, times.clone()));
                Ok(())
            })
            .unwrap();
            told
        })
        .unwrap();
        assert!(of_ranks[1..].iter().all(Vec::is_empty));
        of_ranks.remove(0)
    }

    /// Volumes larger than the rings, both commands, odd cycles, ranks that take no part: everything arrives, and
    /// nobody hangs.
    #[test]
    fn channels_carry_what_is_sent() {
        let pattern = |command, distance, only_zero| Pattern { command, distance, only_zero, cycles: None };
        for (size, pattern) in [
            (2, pattern(Command::Swap, 1, false)),
            (4, pattern(Command::Swap, 2, false)),
            (4, pattern(Command::Swap, 3, true)),
            (3, pattern(Command::SendRecv, 1, false)),
            (4, pattern(Command::SendRecv, 2, true)),
        ] {
            let told = measured(size, &plan(3_000_001, &[1, 7, 64], pattern));
            assert_eq!(
                told.iter().map(|told| (told.0.as_str(), told.1)).collect::<Vec<_>>(),
                [
                    ("0.0 basic", 1),
                    ("1.0 basic", 1),
                    ("0.0 basic", 7),
                    ("1.0 basic", 7),
                    ("0.0 basic", 64),
                    ("1.0 basic", 64),
                ]
            );
            for (_, _, times) in &told {
                let elapsed = times.elapsed.as_ref().unwrap();
                assert_eq!((times.slowest.len(), elapsed.len()), (3, 3));
                assert!(times.slowest.iter().zip(elapsed).all(|(own, all)| *own > 0.0 && all >= own));
            }
        }
    }

    #[test]
    fn the_longest_rank_and_the_whole_span() {
        assert_eq!(merge(&[(1.0, 3.0), (2.0, 5.0), (4.0, 4.5)]), (3.0, 4.0));
    }

    #[test]
    fn a_byte_that_is_wrong_is_found_with_its_packet() {
        let mut volume = vec![0; 10_000];
        fill(&mut volume, 3);
        assert_eq!(fault(&volume, 3, 4), None);
        assert!(fault(&volume, 2, 4).unwrap().starts_with("packet 0 of 4 from rank 2: byte 0 is"));
        volume[7600] ^= 1;
        assert!(fault(&volume, 3, 4).unwrap().starts_with("packet 3 of 4 from rank 3: byte 7600 is"));
        // Two packets that took each other's place are wrong too.
        fill(&mut volume, 3);
        let (left, right) = volume.split_at_mut(5000);
        left[..2500].swap_with_slice(&mut right[2500..]);
        assert!(fault(&volume, 3, 4).is_some());
    }
}
