//! The data-partitioned reduction with several leaders (Bayatpour et al., SC17), inside one node.
//!
//! The vector is cut into one share for each leader, a share into slices of one cell. In round `r` every rank
//! contributes slice `r` of every share to an up cell of its own; each leader folds the contributions to slice `r` of
//! its share, in rank order, its own from its private buffer, and publishes the result in a down cell, from which it is
//! taken by all ranks (allreduce) or by the root (reduce), or stays with the leader (reduce-scatter). The other
//! half alone is [`spread`](super::spread): each leader hands its share to all ranks (allgather).
//!
//! What differs from the paper: readiness is per slice and per rank (the stamp of each cell), there is no barrier
//! anywhere, and the phases overlap: a rank contributes to round r+1 before it folds round r, and folds round r
//! before it takes round r-1.
//!
//! Two ranks that have slots for results to come back (below) do all of one kind first, where no slot comes twice in a
//! call: all contributions, all folds, all takes. Going to and fro between the three costs them more than it hides
//! (allreduces of 2 MiB: 82 us so, 85 in turns; AMD EPYC, Zen 4).
//!
//! A rank whose contribution others can reach lends it whole: it publishes it once, for all rounds. With it goes where
//! the rank wants the result, if leaders can reach that: they store it there, and one stamp a leader, that of the last
//! round, says that all of it is there. A leader may lend the buffer that holds its own result to those who have to
//! take theirs.
//!
//! Of two ranks each is the only one that takes the other's results. There a leader stores its result where the
//! contribution lay that it has folded, in the taker's own cell ([`Place::Back`]), and the stamp of its down slot says
//! so: the lines of a cell go to the leader and come back, and neither rank stores to a line that the other holds. So
//! that a rank has taken what came back before it fills the slot again, the up ring needs slots for one round more.
//! Where both take results a call takes whole turns of that ring: calls of one length come to the same slots, whose
//! lines stay near.
//!
//! [`Place::Back`]: super::location::Place::Back
//!
//! In a reduction of two ranks to a root the other one, where it leads, need not wait for the root: what it does not
//! find after a look or so it *declines* to fold. It puts its own part of that slice in a cell of its own, at the
//! position of the contribution that it did not wait for (of its ring, where nothing else lies there), says so by the
//! stamp of its down slot, and goes on; the root folds the slice itself. A root that comes so late that it finds this
//! said before it has contributed leaves its own contribution out. One that lends publishes what it contributes once,
//! with the first slice; if that is missed, all slices are declined. So whoever reduces to a root that is busy runs
//! ahead, as through cells, and who finds it waiting shares the work with it.
//!
//! Positions: contribution (round r, leader l) lies at `first_up + r*L + l` of the contributor's up ring (of R*L
//! positions the call takes as many as whole turns have, where it takes those); result r of any leader at
//! `first_down + r` of that leader's down ring. The up ring needs slots for two rounds, the down ring two slots: with
//! less, two leaders could each wait for what the other does next.

use super::board::Board;
use super::location::Location;
use super::pair;
use super::ring::Ring;
use super::rounds::Rounds;
use crate::error::Result;

/// Who takes the results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takers {
    /// Every rank: an allreduce.
    All,
    /// The root alone: a reduce.
    Root(usize),
    /// Nobody: each leader keeps its share, a reduce-scatter.
    Owners,
}

/// The shape of one call.
#[derive(Clone, Copy, Debug)]
pub struct Shares<'a> {
    /// The rank of each leader.
    pub leaders: &'a [usize],
    /// Slices of the longest share.
    pub rounds: u64,
    /// Who takes the results.
    pub takers: Takers,
}

/// The payload of one call, moved while the protocol holds the slots.
pub trait Work {
    /// Where the own contribution lies (in cells, or whole in a buffer that is lent), and where the result is wanted.
    fn contribution(&self) -> Location {
        Location::CELL
    }

    /// Whether `rank` lent its contribution to all rounds, so that it is not waited for again.
    fn has(&self, _rank: usize) -> bool {
        false
    }

    /// Notes where the contribution of `rank` lies, and where it wants the result.
    fn note(&mut self, _rank: usize, _location: Location) {}

    /// Whether all who take results get those of this leader stored where they want them, so that none takes them from
    /// its slots. Asked once all contributions were noted.
    fn serves(&self, _takers: Takers) -> bool {
        false
    }

    /// Whether this rank gets its result stored where it wants it, by every leader.
    fn is_served(&self) -> bool {
        self.contribution().result.is_some()
    }

    /// Where those who take from this leader's slots find its result: in the cell, or in a buffer of this rank.
    fn result(&self) -> Location {
        Location::CELL
    }

    /// Whether results go back to where contributions lay, where one rank alone takes them and there are slots for it:
    /// the same on all ranks.
    fn gives_back(&self) -> bool {
        false
    }

    /// Whether a leader of two ranks goes on without a root that is not there: the same on all ranks.
    fn may_decline(&self) -> bool {
        false
    }

    /// How often it looks for the root before it does.
    fn patience(&self) -> u32 {
        1
    }

    /// Fills the own up slot with the own part of slice `round` of the share of `leader` (an index), its own if it
    /// declines to fold that.
    fn contribute(&mut self, round: u64, leader: usize, slot: usize);

    /// Folds everybody's part of slice `round` of the own share (index `leader`; those in cells lie in slot `up` of
    /// their ranks) to where results are wanted and, when there is one, into the own down slot.
    ///
    /// # Errors
    /// When payload cannot be reached.
    fn fold(&mut self, round: u64, leader: usize, up: usize, down: Option<usize>) -> Result<()>;

    /// [`fold`](Work::fold) of two contributions, to where results are wanted and to slot `up` of the other rank, where
    /// its contribution lies.
    ///
    /// # Errors
    /// When payload cannot be reached.
    fn fold_back(&mut self, _round: u64, _leader: usize, _up: usize) -> Result<()> {
        Ok(())
    }

    /// Takes slice `round` of the share of `leader`, whose down slot says that it lies at `location`: in that rank's
    /// down slot `slot`, or in the own up slot `slot` if it came back.
    ///
    /// # Errors
    /// When payload cannot be reached.
    fn take(&mut self, round: u64, leader: usize, slot: usize, location: Location) -> Result<()>;
}

/// Rounds by which a rank's contributions run ahead of its folding; the up ring holds one more.
pub const ROUNDS_AHEAD: u64 = 1;

/// Rounds by which it takes results behind its folding.
const ROUNDS_BEHIND: u64 = 1;

/// The least number of up slots for `leaders` leaders.
#[must_use]
pub const fn least_up_slots(leaders: usize) -> usize {
    leaders * (ROUNDS_AHEAD as usize + 1)
}

/// The least number of up slots for `leaders` leaders that store results where contributions lay.
#[must_use]
pub const fn up_slots_to_give_back(leaders: usize) -> usize {
    leaders * (ROUNDS_AHEAD + ROUNDS_BEHIND + 1) as usize
}

/// The least number of down slots.
pub const LEAST_DOWN_SLOTS: usize = 2;

/// Runs one call.
///
/// # Errors
/// When a rank has failed or made another call.
pub fn run<B: Board>(
    board: &B,
    up: &mut Ring,
    down: &mut Ring,
    shares: Shares<'_>,
    tag: u32,
    work: &mut impl Work,
) -> Result<()> {
    let Shares { leaders, rounds, takers } = shares;
    let count = leaders.len();
    debug_assert!(up.slots() >= least_up_slots(count) && down.slots() >= LEAST_DOWN_SLOTS);
    let gives_back = board.size() == 2 && up.slots() >= up_slots_to_give_back(count) && work.gives_back();
    if gives_back && *leaders == [0, 1] && rounds == 1 && takers == Takers::All && pair::suits(work) {
        return pair::run(board, up, down, tag, work);
    }
    // Where no slot comes twice.
    let phases = gives_back && rounds <= (up.slots() / count).min(down.slots()) as u64;
    let (ahead, behind) = if phases { (rounds, rounds) } else { (ROUNDS_AHEAD, ROUNDS_BEHIND) };
    let mut call = Rounds::begin(board, (up, down), shares, tag, work, gives_back);
    for turn in 0..rounds + ahead + behind {
        if turn < rounds {
            call.contribute(turn)?;
        }
        if let Some(round) = within(turn, ahead, rounds) {
            call.fold(round)?;
        }
        if let Some(round) = within(turn, ahead + behind, rounds) {
            call.take(round)?;
        }
    }
    call.end()
}

/// The leaders but this rank, each with its index. Everybody begins with another one, so that none is everybody's
/// target at once.
#[inline]
pub(super) fn other_leaders<B: Board>(board: &B, leaders: &[usize]) -> impl Iterator<Item = (usize, usize)> {
    let me = board.rank();
    let start = me * leaders.len() / board.size() + 1;
    let ranks = (start..leaders.len()).chain(0..start).map(|leader| (leader, leaders[leader]));
    ranks.filter(move |&(_, rank)| rank != me)
}

/// The round that a phase `behind` turns behind works on, if any.
#[inline]
fn within(turn: u64, behind: u64, rounds: u64) -> Option<u64> {
    turn.checked_sub(behind).filter(|&round| round < rounds)
}
