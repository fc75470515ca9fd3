//! Slices on the network: begun in order, ended in order, given up together.

use std::collections::VecDeque;
use std::ops::Range;

use super::communicator::HierComm;
use super::error::Result;
use super::network::Ticket;
use super::run::Run;

/// The slices of a call that are on the network. Dropped before all have ended (a call that fails, a panic), it gives
/// them up: their memory is the caller's again.
pub(super) struct Flight<'a> {
    comm: &'a HierComm,
    slices: VecDeque<(usize, Option<Ticket>)>,
}

impl<'a> Flight<'a> {
    pub fn new(comm: &'a HierComm) -> Self {
        Self { comm, slices: VecDeque::new() }
    }

    /// Begins slice number `slice`; on a rank that has no part of it on the network, without a run.
    pub fn begin(&mut self, slice: usize, run: Option<Run>) {
        // In flight before its first step, which may fail in any way.
        let ticket = run.map(|run| self.comm.network().take(run));
        self.slices.push_back((slice, ticket));
        self.comm.network().step();
    }

    /// How many slices are under way.
    pub fn len(&self) -> usize {
        self.slices.len()
    }

    /// Waits for the first slice, and returns its number.
    pub fn finish(&mut self) -> Result<Option<usize>> {
        let Some((slice, ticket)) = self.slices.front() else { return Ok(None) };
        let slice = *slice;
        if let Some(ticket) = ticket {
            let comm = self.comm;
            let healthy = || comm.node.health().map_err(|error| comm.translated(error));
            let outcome = comm.network().finish(ticket, healthy);
            comm.settle(outcome)?;
        }
        self.slices.pop_front();
        Ok(Some(slice))
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        if !self.slices.is_empty() {
            self.comm.network().give_up();
        }
    }
}

/// The slices of `count` elements, of `slice` elements each; one empty slice of none.
pub(super) fn slices(count: usize, slice: usize) -> impl Iterator<Item = Range<usize>> {
    let slice = slice.max(1);
    (0..count.div_ceil(slice).max(1)).map(move |i| i * slice..((i + 1) * slice).min(count))
}

/// The same slices of a vector, each by itself: what is under way in one is not touched through another.
pub(super) fn chunks<T>(vector: &mut [T], slice: usize) -> Vec<&mut [T]> {
    if vector.is_empty() { vec![vector] } else { vector.chunks_mut(slice.max(1)).collect() }
}

#[cfg(test)]
mod tests {
    use super::{chunks, slices};

    #[test]
    fn slices_cover_a_vector() {
        assert!(slices(0, 5).eq(std::iter::once(0..0)));
        assert_eq!(slices(11, 5).collect::<Vec<_>>(), [0..5, 5..10, 10..11]);
        for (count, slice) in [(0, 5), (11, 5), (3, 0), (10, 5)] {
            let lengths: Vec<usize> = slices(count, slice).map(|range| range.len()).collect();
            assert_eq!(
                chunks(&mut vec![0_u8; count], slice).iter().map(|chunk| chunk.len()).collect::<Vec<_>>(),
                lengths
            );
        }
        assert_eq!(slices(3, 0).collect::<Vec<_>>(), [0..1, 1..2, 2..3]);
    }
}
