//! How the ranks begin a call together.
//!
//! Ranks leave a barrier one after another: with four ranks a core, up to 18 ms apart, which would be part of the time
//! of whoever left first. Where all ranks read one clock (an emulated cluster is one machine), they agree on a time a
//! little later, sleep until then, and count from it. Between machines, whose clocks differ, a barrier has to do.

use std::fs;
use std::time::{Duration, Instant};

use mpi::collective::SystemOperation;
use mpi::topology::SimpleCommunicator;
use mpi::traits::CommunicatorCollectives;
use nix::time::{ClockId, ClockNanosleepFlags, clock_gettime, clock_nanosleep};

/// How much later, at first; twice as much as soon as a rank hears of it too late.
const LEAD: Duration = Duration::from_millis(4);
const LONGEST_LEAD: Duration = Duration::from_millis(256);

/// What names a machine between two boots.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// The beginnings of calls; the same on all ranks.
pub struct Start {
    /// Whether all ranks read one clock.
    together: bool,
    lead: Duration,
    /// Whether this rank heard too late of the beginning of this call.
    late: bool,
}

/// The beginning of a call.
#[derive(Clone, Copy, Debug)]
pub enum Beginning {
    /// Where this rank left the barrier.
    Own(Instant),
    /// Where all ranks began, on their common clock.
    Common(Duration),
}

impl Start {
    /// Finds out whether the ranks are on one machine. Collective.
    pub fn of(world: &SimpleCommunicator) -> Start {
        let own = fs::read_to_string(BOOT)
            .unwrap_or_default()
            .bytes()
            .chain(*b"?")
            .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
        // All are the same if the least is the greatest.
        let (mut least, mut greatest) = (0_u64, 0_u64);
        world.all_reduce_into(&own, &mut least, SystemOperation::min());
        world.all_reduce_into(&own, &mut greatest, SystemOperation::max());
        Start { together: least == greatest && clock().is_some(), lead: LEAD, late: false }
    }

    /// Whether the ranks begin by one clock.
    pub fn is_common(&self) -> bool {
        self.together
    }

    /// Waits for the beginning of a call. Collective.
    pub fn begin(&mut self, world: &SimpleCommunicator) -> Beginning {
        if !self.together {
            world.barrier();
            return Beginning::Own(Instant::now());
        }
        let own = (clock().unwrap_or_default() + self.lead).as_nanos() as u64;
        let mut latest = 0_u64;
        world.all_reduce_into(&own, &mut latest, SystemOperation::max());
        let agreed = Duration::from_nanos(latest);
        self.late = clock().is_none_or(|now| now > agreed);
        let flags = ClockNanosleepFlags::TIMER_ABSTIME;
        // Interrupted by a signal: the rest is to be slept.
        while clock_nanosleep(ClockId::CLOCK_MONOTONIC, flags, &agreed.into())
            .is_err_and(|error| error == nix::Error::EINTR)
        {}
        Beginning::Common(agreed)
    }

    /// Ends a call: whether its time counts, as no rank was late for it. Collective.
    pub fn end(&mut self, world: &SimpleCommunicator) -> bool {
        if !self.together {
            world.barrier();
            return true;
        }
        let (own, mut any) = (u8::from(self.late), 0_u8);
        world.all_reduce_into(&own, &mut any, SystemOperation::max());
        if any > 0 {
            self.lead = (2 * self.lead).min(LONGEST_LEAD);
        }
        any == 0
    }
}

impl Beginning {
    /// Seconds since then.
    pub fn seconds(self) -> f64 {
        match self {
            Beginning::Own(instant) => instant.elapsed().as_secs_f64(),
            Beginning::Common(agreed) => clock().unwrap_or_default().saturating_sub(agreed).as_secs_f64(),
        }
    }
}

/// The machine's clock.
fn clock() -> Option<Duration> {
    clock_gettime(ClockId::CLOCK_MONOTONIC).ok().map(Duration::from)
}
