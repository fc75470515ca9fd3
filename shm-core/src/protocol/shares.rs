//! The data-partitioned reduction with several leaders (Bayatpour et al., SC17), inside one node.
//!
//! The vector is cut into one share for each leader, a share into slices of one cell. In round `r` every rank
//! contributes slice `r` of every share to an up cell of its own; each leader folds the contributions to slice `r` of
//! its share, in rank order, its own from its private buffer, and publishes the result in a down cell, from which it is
//! taken by all ranks (allreduce) or by the root (reduce), or stays with the leader (reduce-scatter). [`spread`] is the
//! other half alone: each leader hands its share to all ranks (allgather).
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
//! In a reduction of two ranks to a root the other one, where it leads, need not wait for the root: what it does not
//! find after a look or so it *declines* to fold. It puts its own part of that slice in a cell of its own, at the position of
//! the contribution that it did not wait for (of its ring, where nothing else lies there), says so by the stamp of its
//! down slot, and goes on; the root folds the slice itself. A root that comes so late that it finds this said before it
//! has contributed leaves its own contribution out. So whoever reduces to a root that is busy runs ahead, as through
//! cells, and who finds it waiting shares the work with it.
//!
//! Positions: contribution (round r, leader l) lies at `first_up + r*L + l` of the contributor's up ring (of R*L
//! positions the call takes as many as whole turns have, where it takes those); result r of any leader at
//! `first_down + r` of that leader's down ring. The up ring needs slots for two rounds, the down ring two slots: with
//! less, two leaders could each wait for what the other does next.

use super::board::Board;
use super::location::{Location, Place};
use super::pair;
use super::ring::{Readers, Ring};
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
    debug_assert!(up.slots() >= least_up_slots(leaders.len()) && down.slots() >= LEAST_DOWN_SLOTS);
    let me = board.rank();
    let own = leaders.iter().position(|&rank| rank == me);
    let count = leaders.len();
    let takes = match takers {
        Takers::All => true,
        Takers::Root(root) => root == me,
        Takers::Owners => false,
    };
    let gives_back = board.size() == 2 && up.slots() >= up_slots_to_give_back(count) && work.gives_back();
    if gives_back && *leaders == [0, 1] && rounds == 1 && takers == Takers::All && pair::suits(work) {
        return pair::run(board, up, down, tag, work);
    }
    // The root that a leader may go on without.
    let root = match takers {
        Takers::Root(root) if gives_back && work.may_decline() && *leaders != [root] => Some(root),
        _ => None,
    };
    let declines = root.is_some();
    // Everybody begins with another leader, so that no leader is everybody's target at once.
    let start = me * count / board.size() + 1;
    let positions = rounds * count as u64;
    let first_up = match takers {
        Takers::All if gives_back => up.take(positions.next_multiple_of(up.slots() as u64)),
        _ => up.take(positions),
    };
    let first_down = down.take(rounds);
    let (last_up, last_down) = (first_up + positions - 1, first_down + rounds - 1);
    let contribution = work.contribution();
    let served = takes && work.is_served();
    // Where no slot comes twice.
    let phases = gives_back && rounds <= (up.slots() / count).min(down.slots()) as u64;
    let (ahead, behind) = if phases { (rounds, rounds) } else { (ROUNDS_AHEAD, ROUNDS_BEHIND) };
    let mut lends_result = false;
    // Who lends does not; the root knows it, where it leads.
    let says_all = declines && !(contribution.is_lent() && root.is_some_and(|root| leaders.contains(&root)));
    // How often a leader looks for what the root contributes.
    let mut looks = work.patience();
    if served && rounds > 1 && !declines {
        // It reads no slot of the down ring; of the last round it waits for the stamps.
        down.finish(board, last_down - 1);
    }

    for turn in 0..rounds + ahead + behind {
        if turn < rounds && !(contribution.whole && turn > 0) {
            let base = first_up + turn * count as u64;
            for leader in (start..count).chain(0..start).filter(|&leader| leaders[leader] != me) {
                let position = base + leader as u64;
                // Who has said something of this slice already has declined to fold it.
                let may_be_late = declines && takes && !contribution.is_lent();
                if may_be_late && down.finds(board, leaders[leader], first_down + turn, tag, 1) {
                    continue;
                }
                let slot = up.claim(board, position)?;
                if !contribution.is_lent() {
                    work.contribute(turn, leader, slot);
                }
                let until = if contribution.whole { last_up } else { position };
                up.publish_at(board, position, until, tag, &Readers::One(leaders[leader]), contribution);
            }
        }
        if let (Some(round), Some(own)) = (within(turn, ahead, rounds), own) {
            let base = first_up + round * count as u64;
            let position = base + own as u64;
            if let Some(root) = root.filter(|&root| !takes && !contribution.is_lent() && !work.has(root))
                && !up.finds(board, root, position, tag, looks)
            {
                looks = 1;
                let (readers, stamp) = (Readers::One(root), first_down + round);
                let slot = up.claim(board, position)?;
                work.contribute(round, own, slot);
                up.publish(board, position, tag, &readers);
                down.claim(board, stamp)?;
                down.publish_at(board, stamp, stamp, tag, &readers, Location::DECLINED);
                up.finish(board, base + count as u64 - 1);
                continue;
            }
            for rank in (0..board.size()).filter(|&rank| rank != me) {
                if !work.has(rank) {
                    let (_, location) = up.expect_at(board, rank, position, tag)?;
                    work.note(rank, location);
                    // It has taken the results of all earlier calls.
                    down.know(rank, first_down - 1);
                }
            }
            let readers = match takers {
                Takers::All if board.size() > 1 => Some(Readers::All),
                Takers::Root(root) if root != me => Some(Readers::One(root)),
                _ => None,
            };
            let all_served = readers.is_none() || work.serves(takers);
            let result = if all_served { Location::CELL } else { work.result() };
            // Where nobody takes from slots, one stamp says that all is stored.
            let readers = readers.filter(|_| !all_served || says_all || round == rounds - 1);
            let slot = match readers {
                Some(_) => Some(down.claim(board, first_down + round)?),
                None => None,
            };
            let comes_back = gives_back && !all_served && !result.is_lent() && !work.has(1 - me);
            let result = if comes_back { Location::BACK } else { result };
            match comes_back {
                true => work.fold_back(round, own, up.slot(position))?,
                false => work.fold(round, own, up.slot(position), slot.filter(|_| !all_served && !result.is_lent()))?,
            }
            if let Some(readers) = readers {
                let position = first_down + round;
                down.publish_at(board, position, position, tag, &readers, result);
                lends_result |= result.is_lent();
            }
            // Who lent waits for the last word alone, which follows; and what the other one declined to fold a root reads
            // later.
            let reads_later = declines && takes;
            if !reads_later && (0..board.size()).any(|rank| rank != me && !work.has(rank)) {
                up.finish(board, base + count as u64 - 1);
            }
        }
        if let (Some(round), true) = (within(turn, ahead + behind, rounds), takes) {
            let position = first_down + round;
            if !served || declines && !work.has(1 - me) || round == rounds - 1 {
                for leader in (start..count).chain(0..start).filter(|&leader| leaders[leader] != me) {
                    let (mut slot, location) = down.expect_at(board, leaders[leader], position, tag)?;
                    let own = first_up + round * count as u64 + leader as u64;
                    if location == Location::DECLINED {
                        let slot = up.expect(board, leaders[leader], own, tag)?;
                        work.fold(round, leader, slot, None)?;
                        continue;
                    }
                    if location.place == Place::Back {
                        // Who has stored a result there has folded what lay there.
                        up.know(leaders[leader], own);
                        slot = up.slot(own);
                    }
                    if !served {
                        work.take(round, leader, slot, location)?;
                    }
                }
                if declines && !work.has(1 - me) {
                    up.finish(board, first_up + (round + 1) * count as u64 - 1);
                }
                down.finish(board, position);
            }
        }
    }
    // What was passed over has nothing to read.
    up.finish(board, up.next_position() - 1);
    down.finish(board, last_down);
    if contribution.is_lent() {
        if takes {
            // Each leader's last result was published after its last fold, and was acquired.
            for &leader in leaders {
                up.know(leader, last_up);
            }
        }
        up.settle(board, first_up)?;
    }
    if lends_result { down.settle(board, first_down) } else { Ok(()) }
}

/// What is done with the payload of [`spread`] while the protocol holds the slots.
pub trait Parts {
    /// Where the own share lies: in cells, or whole in a buffer that is lent.
    fn location(&self) -> Location {
        Location::CELL
    }

    /// Whether the leader with this index lent its share whole, so that it is not waited for again.
    fn has(&self, _leader: usize) -> bool {
        false
    }

    /// Notes where the share of the leader with this index lies.
    fn note(&mut self, _leader: usize, _location: Location) {}

    /// Fills the own down slot with slice `round` of the own share (index `leader`).
    fn give(&mut self, round: u64, leader: usize, slot: usize);

    /// Takes slice `round` of the share of `leader`: out of that leader's down slot, or from where it was said to lie.
    ///
    /// # Errors
    /// When payload cannot be reached.
    fn take(&mut self, round: u64, leader: usize, slot: usize) -> Result<()>;
}

/// Each leader hands its share, of `rounds` slices at most, to all ranks. Takes `rounds` positions of the down ring.
///
/// # Errors
/// When a rank has failed or made another call.
pub fn spread<B: Board>(
    board: &B,
    down: &mut Ring,
    leaders: &[usize],
    rounds: u64,
    tag: u32,
    parts: &mut impl Parts,
) -> Result<()> {
    let me = board.rank();
    let own = leaders.iter().position(|&rank| rank == me);
    let start = me * leaders.len() / board.size() + 1;
    let first = down.take(rounds);
    let last = first + rounds - 1;
    let location = parts.location();
    for round in 0..rounds {
        let position = first + round;
        if let (Some(own), true, false) = (own, board.size() > 1, location.whole && round > 0) {
            let slot = down.claim(board, position)?;
            if !location.is_lent() {
                parts.give(round, own, slot);
            }
            let until = if location.whole { last } else { position };
            down.publish_at(board, position, until, tag, &Readers::All, location);
        }
        for leader in (start..leaders.len()).chain(0..start).filter(|&leader| leaders[leader] != me) {
            if !parts.has(leader) {
                let (_, location) = down.expect_at(board, leaders[leader], position, tag)?;
                parts.note(leader, location);
            }
            parts.take(round, leader, down.slot(position))?;
        }
        // Who lent waits for the last word alone.
        if round + 1 == rounds || !(0..leaders.len()).all(|leader| leaders[leader] == me || parts.has(leader)) {
            down.finish(board, position);
        }
    }
    if location.is_lent() { down.settle(board, first) } else { Ok(()) }
}

/// The round that a phase `behind` turns behind works on, if any.
#[inline]
fn within(turn: u64, behind: u64, rounds: u64) -> Option<u64> {
    turn.checked_sub(behind).filter(|&round| round < rounds)
}
