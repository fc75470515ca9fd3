//! A call of the data-partitioned reduction ([`shares`](super::shares)) in progress: what one rank contributes, folds
//! and takes, round by round.

use super::board::Board;
use super::location::{Location, Place};
use super::ring::{Readers, Ring};
use super::shares::{Shares, Takers, Work, other_leaders};
use crate::error::Result;

/// What a rank goes by in one call.
pub(super) struct Rounds<'a, B, W> {
    board: &'a B,
    up: &'a mut Ring,
    down: &'a mut Ring,
    tag: u32,
    work: &'a mut W,
    shares: Shares<'a>,
    /// The own index among the leaders.
    own: Option<usize>,
    /// The first positions of the call.
    first_up: u64,
    first_down: u64,
    /// What the own contribution is published as.
    contribution: Location,
    /// Whether this rank takes results.
    takes: bool,
    /// Whether it has them stored where it wants them.
    served: bool,
    /// Whether results come back to where contributions lay.
    gives_back: bool,
    /// The root that a leader may go on without.
    may_miss: Option<usize>,
    /// How often it looks for what that contributes.
    looks: u32,
    /// Whether a result was lent to those who take it.
    lends_result: bool,
}

impl<'a, B: Board, W: Work> Rounds<'a, B, W> {
    /// Takes the positions of the call; `gives_back` is said by [`Work::gives_back`] where there are slots for it.
    #[inline]
    pub fn begin(
        board: &'a B,
        (up, down): (&'a mut Ring, &'a mut Ring),
        shares: Shares<'a>,
        tag: u32,
        work: &'a mut W,
        gives_back: bool,
    ) -> Self {
        let Shares { leaders, rounds, takers } = shares;
        let me = board.rank();
        let takes = match takers {
            Takers::All => true,
            Takers::Root(root) => root == me,
            Takers::Owners => false,
        };
        let may_miss = match takers {
            Takers::Root(root) if gives_back && work.may_decline() && *leaders != [root] => Some(root),
            _ => None,
        };
        let positions = rounds * leaders.len() as u64;
        let first_up = match takers {
            Takers::All if gives_back => up.take(positions.next_multiple_of(up.slots() as u64)),
            _ => up.take(positions),
        };
        let first_down = down.take(rounds);
        let served = takes && work.is_served();
        if served && rounds > 1 && may_miss.is_none() {
            // It reads no slot of the down ring; of the last round it waits for the stamps.
            down.finish(board, first_down + rounds - 2);
        }
        let (contribution, looks) = (work.contribution(), work.patience());
        let own = leaders.iter().position(|&rank| rank == me);
        Self {
            board,
            up,
            down,
            tag,
            work,
            shares,
            own,
            first_up,
            first_down,
            contribution,
            takes,
            served,
            gives_back,
            may_miss,
            looks,
            lends_result: false,
        }
    }

    /// Contributes to slice `round` of each share but the own one.
    #[inline]
    pub fn contribute(&mut self, round: u64) -> Result<()> {
        let Self { board, contribution, tag, .. } = *self;
        if contribution.whole && round > 0 {
            return Ok(());
        }
        for (leader, rank) in self.others() {
            // Who has said something of this slice already has declined to fold it.
            let may_be_late = self.may_miss.is_some() && self.takes && !contribution.is_lent();
            if may_be_late && self.down.finds(board, rank, self.down_position(round), tag, 1) {
                continue;
            }
            let position = self.up_position(round, leader);
            let slot = self.up.claim(board, position)?;
            if !contribution.is_lent() {
                self.work.contribute(round, leader, slot);
            }
            let until = if contribution.whole { self.last_up(self.shares.rounds - 1) } else { position };
            self.up.publish_at(board, position, until, tag, &Readers::One(rank), contribution);
        }
        Ok(())
    }

    /// Folds slice `round` of the own share, if this rank leads one.
    #[inline]
    pub fn fold(&mut self, round: u64) -> Result<()> {
        let Some(own) = self.own else { return Ok(()) };
        if let Some(root) = self.missed_root(round, own) {
            return self.decline(round, own, root);
        }
        let Self { board, first_down, tag, .. } = *self;
        let (contributed, result_at) = (self.up_position(round, own), self.down_position(round));
        for rank in (0..board.size()).filter(|&rank| rank != board.rank()) {
            if !self.work.has(rank) {
                let (_, location) = self.up.expect_at(board, rank, contributed, tag)?;
                self.work.note(rank, location);
                // It has taken the results of all earlier calls.
                self.down.know(rank, first_down - 1);
            }
        }
        let readers = match self.shares.takers {
            Takers::All if board.size() > 1 => Some(Readers::All),
            Takers::Root(root) if root != board.rank() => Some(Readers::One(root)),
            _ => None,
        };
        let all_served = readers.is_none() || self.work.serves(self.shares.takers);
        let result = if all_served { Location::CELL } else { self.work.result() };
        // Where nobody takes from slots, one stamp says that all is stored.
        let is_last = round == self.shares.rounds - 1;
        let readers = readers.filter(|_| !all_served || is_last || self.says_each_round());
        let slot = match readers {
            Some(_) => Some(self.down.claim(board, result_at)?),
            None => None,
        };
        let comes_back = self.gives_back && !all_served && !result.is_lent() && !self.work.has(1 - board.rank());
        let result = if comes_back { Location::BACK } else { result };
        let up_slot = self.up.slot(contributed);
        match comes_back {
            true => self.work.fold_back(round, own, up_slot)?,
            false => self.work.fold(round, own, up_slot, slot.filter(|_| !all_served && !result.is_lent()))?,
        }
        if let Some(readers) = readers {
            self.down.publish_at(board, result_at, result_at, tag, &readers, result);
            self.lends_result |= result.is_lent();
        }
        // Who lent waits for the last word alone, which follows; and what the other one declined to fold a root reads
        // later.
        let reads_later = self.may_miss.is_some() && self.takes;
        if !reads_later && (0..board.size()).any(|rank| rank != board.rank() && !self.work.has(rank)) {
            self.up.finish(board, self.last_up(round));
        }
        Ok(())
    }

    /// The root, if this rank may go on without what it contributes to slice `round` of the own share, and does not
    /// find it. Who lends its own contribution may not: it could not leave before the root has read it.
    #[inline]
    fn missed_root(&self, round: u64, own: usize) -> Option<usize> {
        self.may_miss.filter(|&root| {
            let may = !self.takes && !self.contribution.is_lent() && !self.work.has(root);
            may && !self.up.finds(self.board, root, self.up_position(round, own), self.tag, self.looks)
        })
    }

    /// Leaves slice `round` of the own share to the root, which finds what this rank contributes to it where the root's
    /// contribution would lie, in this rank's ring.
    #[inline(never)]
    fn decline(&mut self, round: u64, own: usize, root: usize) -> Result<()> {
        let Self { board, tag, .. } = *self;
        let (contributed, said, readers) =
            (self.up_position(round, own), self.down_position(round), Readers::One(root));
        // It is late: the next ones are looked for only once.
        self.looks = 1;
        let slot = self.up.claim(board, contributed)?;
        self.work.contribute(round, own, slot);
        self.up.publish(board, contributed, tag, &readers);
        self.down.claim(board, said)?;
        self.down.publish_at(board, said, said, tag, &readers, Location::DECLINED);
        self.up.finish(board, self.last_up(round));
        Ok(())
    }

    /// Takes slice `round` of each share but the own one, if this rank takes results.
    #[inline]
    pub fn take(&mut self, round: u64) -> Result<()> {
        let is_last = round == self.shares.rounds - 1;
        if !self.takes || self.served && !is_last && !self.may_find_declined() {
            return Ok(());
        }
        let Self { board, tag, .. } = *self;
        let position = self.down_position(round);
        for (leader, rank) in self.others() {
            let (slot, location) = self.down.expect_at(board, rank, position, tag)?;
            let contributed = self.up_position(round, leader);
            let slot = match location {
                Location::DECLINED => {
                    let slot = self.up.expect(board, rank, contributed, tag)?;
                    self.work.fold(round, leader, slot, None)?;
                    continue;
                }
                Location { place: Place::Back, .. } => {
                    // Who has stored a result there has folded what lay there.
                    self.up.know(rank, contributed);
                    self.up.slot(contributed)
                }
                _ => slot,
            };
            if !self.served {
                self.work.take(round, leader, slot, location)?;
            }
        }
        if self.may_find_declined() {
            self.up.finish(board, self.last_up(round));
        }
        self.down.finish(board, position);
        Ok(())
    }

    /// Ends the call: nobody needs anything of this rank any more.
    #[inline]
    pub fn end(self) -> Result<()> {
        let last = self.shares.rounds - 1;
        let (last_up, last_down) = (self.last_up(last), self.down_position(last));
        let Self { board, up, down, first_up, first_down, .. } = self;
        // What was passed over has nothing to read.
        up.finish(board, up.next_position() - 1);
        down.finish(board, last_down);
        if self.contribution.is_lent() {
            if self.takes {
                // Each leader's last result was published after its last fold, and was acquired.
                self.shares.leaders.iter().for_each(|&leader| up.know(leader, last_up));
            }
            up.settle(board, first_up)?;
        }
        if self.lends_result { down.settle(board, first_down) } else { Ok(()) }
    }

    /// The other leaders, each with its index.
    #[inline]
    fn others(&self) -> impl Iterator<Item = (usize, usize)> + use<'a, B, W> {
        other_leaders(self.board, self.shares.leaders)
    }

    /// The position of contributions to slice `round` of the share of `leader`.
    #[inline]
    fn up_position(&self, round: u64, leader: usize) -> u64 {
        self.first_up + round * self.shares.leaders.len() as u64 + leader as u64
    }

    /// The position of results of this round, whoever leads.
    #[inline]
    fn down_position(&self, round: u64) -> u64 {
        self.first_down + round
    }

    /// The last position of contributions to this round.
    #[inline]
    fn last_up(&self, round: u64) -> u64 {
        self.up_position(round, self.shares.leaders.len() - 1)
    }

    /// Whether this rank, as a leader, says of each round what became of it, even where it stores results where they
    /// are wanted. A rank that lends declines nothing; but the root knows that only if it leads.
    #[inline]
    fn says_each_round(&self) -> bool {
        self.may_miss.is_some_and(|root| !(self.contribution.is_lent() && self.shares.leaders.contains(&root)))
    }

    /// Whether this rank is a root that finds slices which the other one has declined to fold.
    #[inline]
    fn may_find_declined(&self) -> bool {
        self.may_miss.is_some() && self.takes && !self.work.has(1 - self.board.rank())
    }
}
