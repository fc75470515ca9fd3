//! The exchange of border rows between neighbouring strips.
//!
//! A rank needs the last row of the strip above its own and the first row of the strip below. Phalanx has collectives
//! and no messages from one rank to another, but a collective of two ranks is as good as a message: the world is
//! split into pairs of neighbours, twice, and inside a pair each rank broadcasts its row to the other one.
//!
//! ```text
//! first split     (0 1) (2 3) (4 5)
//! second split     0 (1 2) (3 4) 5
//! ```
//!
//! All pairs of a split work at the same time, so an exchange takes four broadcasts however many ranks there are, and
//! a rank sends and receives two rows. One allreduce over the world, of a table with two rows for each rank that
//! everybody fills with zeros but for the own rows, would need no split, and would have every rank move the rows of
//! all ranks. One allreduce inside each pair, of such a table for two, would halve the calls, and double the bytes.

use crate::start::{Communicator, Result};
use crate::stopwatch::Stopwatch;

/// The communicators that a rank shares with one neighbour alone.
pub struct Neighbours {
    /// With the owner of the strip above; this rank is 1 in it.
    above: Option<Communicator>,
    /// With the owner of the strip below; this rank is 0 in it.
    below: Option<Communicator>,
    /// Whether the first split paired this rank with the one below.
    below_first: bool,
}

impl Neighbours {
    /// Pairs the ranks of `world`; collective.
    pub fn new(world: &Communicator) -> Result<Neighbours> {
        let (rank, size) = (world.rank(), world.size());
        let pair = |upper: Option<usize>| {
            // A rank without a partner takes part in the split, and gets no communicator.
            let color = upper.filter(|upper| upper + 1 < size).map(|upper| upper as u32);
            world.split(color, rank as i64)
        };
        let below_first = rank % 2 == 0;
        // The colour of a pair is its upper rank.
        let (above, below) = if below_first {
            let below = pair(Some(rank))?;
            (pair(rank.checked_sub(1))?, below)
        } else {
            let above = pair(rank.checked_sub(1))?;
            (above, pair(Some(rank))?)
        };
        Ok(Neighbours { above, below, below_first })
    }

    /// The communicators of this rank's pairs.
    pub fn communicators(&self) -> impl Iterator<Item = &Communicator> {
        self.above.iter().chain(&self.below)
    }

    /// Fills the first and the last row of `field` with the neighbours' border rows; every rank of the world must
    /// call it.
    ///
    /// `field` has rows of `width` values: the neighbour's, the rows of this rank's strip, the other neighbour's. A row
    /// without a neighbour is left alone.
    pub fn exchange(&self, watch: &Stopwatch, field: &mut [f64], width: usize) -> Result<()> {
        // The order of the two is that of the splits: then both ranks of a pair come to it at the same time.
        if self.below_first {
            self.exchange_below(watch, field, width)?;
            self.exchange_above(watch, field, width)
        } else {
            self.exchange_above(watch, field, width)?;
            self.exchange_below(watch, field, width)
        }
    }

    /// With the strip above: the upper rank's row comes first.
    fn exchange_above(&self, watch: &Stopwatch, field: &mut [f64], width: usize) -> Result<()> {
        let Some(pair) = &self.above else {
            return Ok(());
        };
        let (theirs, rest) = field.split_at_mut(width);
        let mine = &mut rest[..width];
        watch.collective(|| pair.process_at_rank(0).broadcast_into(theirs))?;
        watch.collective(|| pair.process_at_rank(1).broadcast_into(mine))
    }

    /// With the strip below: the own row comes first.
    fn exchange_below(&self, watch: &Stopwatch, field: &mut [f64], width: usize) -> Result<()> {
        let Some(pair) = &self.below else {
            return Ok(());
        };
        let (rest, theirs) = field.split_at_mut(field.len() - width);
        let mine = rest.len() - width;
        let mine = &mut rest[mine..];
        watch.collective(|| pair.process_at_rank(0).broadcast_into(mine))?;
        watch.collective(|| pair.process_at_rank(1).broadcast_into(theirs))
    }
}
