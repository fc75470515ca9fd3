//! What every call and every publication looks at.

use std::sync::atomic::{AtomicU64, Ordering};

use super::{System, bell_of};
use crate::segment::header::RankWords;
use crate::segment::mapping::Mapping;
use crate::wait::bell::{self, Sleepers};

/// The words of a job that a rank looks at all the time, found once. Each board has its own: others wait meanwhile, and
/// a call follows no pointer more than it must.
pub(crate) struct Watch {
    /// The own words.
    own: *const RankWords,
    /// J1's word.
    fault: *const AtomicU64,
    system: System,
}

impl Watch {
    /// # Safety
    /// The mapping stays as long as this is used.
    pub(super) unsafe fn new(mapping: &Mapping, rank: usize, system: System) -> Self {
        let (own, fault) = (mapping.rank(rank), &mapping.header().shared.fault);
        Self { own, fault, system }
    }

    /// After a publication: wakes who sleeps on this rank. Returns whether somebody was.
    #[inline]
    pub fn ring_if_needed(&self) -> bool {
        // SAFETY: it points into the mapping, which stays by the contract of `new`.
        let own = unsafe { &*self.own };
        bell::ring_if_needed(&self.system, &bell_of(own))
    }

    /// The rank that failed, if one has.
    #[inline]
    pub fn failed_rank(&self) -> Option<usize> {
        // SAFETY: the same.
        let fault = unsafe { &*self.fault };
        // J1, reader.
        match fault.load(Ordering::Acquire) {
            0 => None,
            failed => Some(failed as usize - 1),
        }
    }

    /// E1: keeps what this rank stored before apart from what it loads after, against a heavy fence of another.
    #[inline]
    pub fn light_fence(&self) {
        self.system.light_fence();
    }
}
