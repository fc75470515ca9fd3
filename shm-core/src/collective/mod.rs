//! The collectives: arguments checked, an algorithm chosen, the regime called.

mod all_gather;
mod all_to_all;
mod allreduce;
mod barrier;
mod blocks;
mod broadcast;
mod bytes;
mod converted;
mod gather;
mod group;
mod leaders;
mod partition;
mod process;
mod reduce;
mod reduce_scatter;
mod scan;
mod scatter;
mod split;

pub use partition::{Partition, PartitionMut};
pub use process::Process;

use std::num::NonZeroUsize;

use crate::communicator::Communicator;
use crate::element::Element;
use crate::error::{Error, Result};
use crate::operator::{Fold, Operator, whole_groups};
use crate::select::Collective;

/// The tag of a call: what must agree on all ranks, in 24 bits.
#[inline]
pub(crate) fn tag_of(what: Collective, root: usize, kind: u64, code: u8, count: usize) -> u32 {
    tag_of_call(what as u64 + 1, root, kind, code, count)
}

/// The numbers of the calls that have no entry in the table, in tags; those of the table end at four.
pub(crate) const TO_LEADERS: u64 = 5;
/// The other half.
pub(crate) const FROM_LEADERS: u64 = 6;
/// An allreduce with a shared result.
pub(crate) const SHARED: u64 = 7;

/// Calls that move blocks; those whose blocks are not equal have a number of their own.
pub(crate) const ALL_GATHER: [u64; 2] = [8, 9];
/// To a root.
pub(crate) const GATHER: [u64; 2] = [10, 11];
/// From a root.
pub(crate) const SCATTER: [u64; 2] = [12, 13];
/// Each to each.
pub(crate) const ALL_TO_ALL: [u64; 2] = [14, 15];
/// Blocks that are combined.
pub(crate) const REDUCE_SCATTER: [u64; 2] = [16, 17];
/// Prefixes: with the own contribution, and without.
pub(crate) const SCAN: [u64; 2] = [18, 19];
/// An allreduce whose result all look at, each at its own.
pub(crate) const OWN_VIEW: u64 = 20;

/// The same for calls that have no entry in the table, by numbers of their own.
#[inline]
pub(crate) fn tag_of_call(number: u64, root: usize, kind: u64, code: u8, count: usize) -> u32 {
    let call = number | (root as u64) << 8 | u64::from(code) << 20;
    let mixed = (call ^ kind.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        ^ (count as u64).wrapping_mul(0xd6e8_feb8_6659_fd93);
    let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 40) as u32
}

/// The tag of a reduction.
#[inline]
pub(crate) fn reduction_tag(what: Collective, root: usize, fold: &Fold<'_>, count: usize) -> u32 {
    tag_of(what, root, fold.kind, fold.code, count)
}

/// Two buffers of one length.
#[inline]
pub(crate) fn same_length<T: Element>(rank: usize, send: &[T], recv: &[T]) -> Result<()> {
    if send.len() == recv.len() {
        return Ok(());
    }
    Err(Error::Length { rank, what: "receive buffer", found: recv.len(), expected: send.len() })
}

impl Communicator {
    /// Refuses a vector of `count` elements that is not made of whole [groups](Operator::group).
    #[inline]
    pub(crate) fn check_groups<T: Element, O: Operator<T>>(&self, count: usize, operator: &O) -> Result<()> {
        self.check_whole(count, operator.group())
    }

    /// The same of groups of so many elements.
    #[inline]
    fn check_whole(&self, count: usize, group: NonZeroUsize) -> Result<()> {
        self.or_refuse(whole_groups(group, count, self.rank(), self.size()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::type_number;

    #[test]
    fn tags_tell_calls_apart() {
        let mut tags = std::collections::HashSet::new();
        for what in Collective::ALL {
            for root in 0..16 {
                for kind in [type_number::<u8>(), type_number::<f32>(), type_number::<i32>()] {
                    for count in 0..100 {
                        tags.insert(tag_of(what, root, kind, 1, count));
                    }
                }
            }
        }
        // 19,200 calls in 2^24 tags: chance lets about a dozen coincide.
        assert!(tags.len() > 19_150, "{}", tags.len());
    }
}
