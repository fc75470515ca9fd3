//! Slices on the network: begun in order, ended in order, given up together.

use std::ops::Range;

use smallvec::SmallVec;

use super::communicator::HierComm;
use super::error::Result;
use super::network::Ticket;
use super::run::Run;
use super::stages::Gate;

/// The slices of a call that are on the network. Dropped before all have ended (a call that fails, a panic), it gives
/// them up: their memory is the caller's again.
pub(super) struct Flight<'a> {
    comm: &'a HierComm,
    slices: SmallVec<[(usize, Option<Ticket>); 2]>,
}

impl<'a> Flight<'a> {
    pub fn new(comm: &'a HierComm) -> Self {
        Self { comm, slices: SmallVec::new() }
    }

    /// Begins slice number `slice`; on a rank that has no part of it on the network, without a run.
    pub fn begin(&mut self, slice: usize, run: Option<Run>) {
        // In flight before its first step, which may fail in any way.
        let ticket = run.map(|run| self.comm.network().take(run));
        self.slices.push((slice, ticket));
        self.comm.network().step();
    }

    /// Lets the slice that was begun last go farther.
    pub fn open(&mut self, gate: Gate) {
        if let Some((_, Some(ticket))) = self.slices.last() {
            let mut network = self.comm.network();
            network.open(ticket, gate);
            network.step();
        }
    }

    /// How many slices are under way.
    pub fn len(&self) -> usize {
        self.slices.len()
    }

    /// Waits for the first slice, and returns its number.
    pub fn finish(&mut self) -> Result<Option<usize>> {
        self.wait(None)?;
        if self.slices.is_empty() {
            return Ok(None);
        }
        Ok(Some(self.slices.remove(0).0))
    }

    /// Waits until so many rounds of the first slice have ended, or all.
    pub fn wait(&mut self, rounds: Option<usize>) -> Result<()> {
        if let Some((_, Some(ticket))) = self.slices.first() {
            let comm = self.comm;
            let healthy = || comm.node.health().map_err(|error| comm.translated(error));
            let outcome = comm.network().finish(ticket, rounds, healthy);
            comm.settle(outcome)?;
        }
        Ok(())
    }

    /// The number of the first slice.
    pub fn first(&self) -> Option<usize> {
        self.slices.first().map(|(slice, _)| *slice)
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
