//! Calls in which ranks lend their buffers: read, and written, where they lie, and written again as soon as the call
//! has ended.

use shm_core::protocol::exchange::{self, exchange_slices};
use shm_core::protocol::shares::{self, Shares, Takers, Work};
use shm_core::protocol::spread::{self, Parts};
use shm_core::protocol::step::{self, Gathers, Passage, Releases, Span, gather_release};
use shm_core::protocol::{Board, Location, Place, RingName};
use shm_core::{Error, Links, Result};

use super::calls::{TAG, sum_of_all};
use super::mutant::Mutant;
use super::rank::Rank;
use super::tree::Tree;
use super::world::{ModelBoard, RECEIVE, SEND, expect_value, word_of};

/// What the ranks of a model lend in a call, by rank.
#[derive(Clone, Copy, Debug)]
pub struct Lends {
    /// Whose contribution is read where it lies.
    pub send: &'static [usize],
    /// Who gets results stored where it wants them.
    pub receive: &'static [usize],
    /// Which leaders (or ranks that pass something on) let others take their result where it lies.
    pub result: &'static [usize],
}

/// Nothing is lent.
pub const NOTHING: Lends = Lends { send: &[], receive: &[], result: &[] };

/// A message of so many slices, a unit each, lent whole.
fn whole(lends: bool, slices: u64) -> Location {
    Location::whole_at(if lends { SEND } else { Place::Cell }, slices as usize)
}

/// The same, lent slice by slice.
fn slices_of(lends: bool, slices: u64) -> Location {
    Location::slice_at(if lends { RECEIVE } else { Place::Cell }, slices as usize)
}

/// What a rank whose message has so many slices says to what another lends.
fn compared(board: &ModelBoard, from: usize, location: Location, slices: u64) -> Result<()> {
    match board.mutant() == Mutant::LengthsNotCompared || location.agrees(slices as usize) {
        true => Ok(()),
        false => Err(Error::Mismatch { ranks: [from, board.rank()], own: board.rank(), own_call: String::new() }),
    }
}

/// How calls end whose ranks agree on the length; for those that do not, see `lend_unequal_gather`.
fn agreed(ended: Result<()>) {
    ended.expect("the ranks agree");
}

impl Rank {
    /// A reduction through shares; returns how many slices came back in own cells.
    pub fn lend_shares(&mut self, leaders: &[usize], rounds: u64, takers: Takers, lends: Lends) -> u64 {
        self.lend_reduction(leaders, rounds, takers, lends, false)
    }

    /// One to a root, where a leader goes on without a root that it does not find.
    pub fn lend_shares_may_decline(&mut self, leaders: &[usize], rounds: u64, root: usize, lends: Lends) {
        self.lend_reduction(leaders, rounds, Takers::Root(root), lends, true);
    }

    fn lend_reduction(&mut self, leaders: &[usize], rounds: u64, takers: Takers, lends: Lends, declines: bool) -> u64 {
        let Self { board, up, down, .. } = self;
        let (me, first) = (board.rank(), up.next_position());
        let count = rounds * leaders.len() as u64;
        board.rewrite((0..count).map(|at| word_of(me, first + at)));
        let takes = takers == Takers::All || takers == Takers::Root(me);
        let wanted = (takes && lends.receive.contains(&me)).then_some(1);
        let contribution = whole(lends.send.contains(&me), count).wanting(wanted, count as usize);
        let result = slices_of(lends.result.contains(&me), count);
        let told = vec![Location::CELL; board.size()];
        let mut work = Slices { board, leaders, first, contribution, result, told, takes, declines, came_back: 0 };
        agreed(shares::run(board, up, down, Shares { leaders, rounds, takers }, TAG, &mut work));
        if takes {
            for (at, unit) in (0..count).zip(board.buffer(me, RECEIVE)) {
                expect_value(unit.read(), sum_of_all(board, first + at));
            }
        }
        let came_back = work.came_back;
        board.rewrite(std::iter::empty());
        came_back
    }

    /// Every rank gets each leader's share; these leaders lend theirs.
    pub fn lend_handed(&mut self, leaders: &[usize], rounds: u64, lends: &[usize]) {
        let Self { board, down, .. } = self;
        let (me, first) = (board.rank(), down.next_position());
        board.rewrite((0..rounds).map(|round| word_of(me, first + round)));
        let location = whole(lends.contains(&me), rounds);
        let told = vec![Location::CELL; leaders.len()];
        let mut handed = Handed { board, leaders, first, location, told };
        agreed(spread::run(board, down, leaders, rounds, TAG, &mut handed));
        board.rewrite(std::iter::empty());
    }

    /// Everybody tells everybody a word a slice; these ranks lend theirs.
    pub fn lend_exchange(&mut self, slices: u64, lends: Lends) {
        let Self { board, up, .. } = self;
        let (me, first) = (board.rank(), up.next_position());
        board.rewrite((0..slices).map(|slice| word_of(me, first + slice)));
        let wanted = lends.receive.contains(&me).then_some(1);
        let location = whole(lends.send.contains(&me), slices).wanting(wanted, slices as usize);
        let told = vec![Location::CELL; board.size()];
        let mut work = Exchanged { board, first, slices, location, told };
        let divides = lends.receive.len() == board.size();
        agreed(exchange_slices(board, up, slices, TAG, &mut work));
        if divides {
            for (at, unit) in (0..slices).zip(board.buffer(me, RECEIVE)) {
                expect_value(unit.read(), sum_of_all(board, first + at));
            }
        }
        board.rewrite(std::iter::empty());
    }

    /// The words of all ranks are summed up on their way to the root; the leaves among these ranks lend theirs.
    pub fn lend_gather(&mut self, tree: Tree, slices: u64, lends: &[usize]) {
        agreed(self.try_lend_gather(tree, slices, lends));
    }

    /// The same, with a tag that cannot tell that the ranks go by different lengths.
    ///
    /// Who finds out lets the others go, in the model's way: that they come out of such a call by an error is not
    /// modelled here.
    pub fn lend_unequal_gather(&mut self, tree: Tree, slices: [u64; 2], lends: &[usize]) {
        let own = slices[self.board.rank()];
        if self.try_lend_gather(tree, own, lends).is_err() {
            self.up.finish(&self.board, self.up.next_position() - 1);
        }
    }

    fn try_lend_gather(&mut self, tree: Tree, slices: u64, lends: &[usize]) -> Result<()> {
        let links = self.links(tree);
        let Self { board, up, .. } = self;
        let (me, first) = (board.rank(), up.next_position());
        board.rewrite((0..slices).map(|slice| word_of(me, first + slice)));
        let mut rising = Rising::new(board, &links, (first, up.slots() as u64), lends.contains(&me), slices);
        let span = Span::take(up, slices);
        let ended = step::gather_all(board, up, &links, span, TAG, &mut rising);
        board.rewrite(std::iter::empty());
        ended
    }

    /// The root tells everybody a word a slice; these ranks lend what they have of them: the root all at once, others
    /// as they get them.
    pub fn lend_release(&mut self, tree: Tree, slices: u64, lends: &[usize]) {
        agreed(self.try_lend_release(tree, slices, lends));
    }

    /// The same, as [`lend_unequal_gather`](Rank::lend_unequal_gather) is.
    pub fn lend_unequal_release(&mut self, tree: Tree, slices: [u64; 2], lends: &[usize]) {
        let own = slices[self.board.rank()];
        if self.try_lend_release(tree, own, lends).is_err() {
            self.down.finish(&self.board, self.down.next_position() - 1);
        }
    }

    fn try_lend_release(&mut self, tree: Tree, slices: u64, lends: &[usize]) -> Result<()> {
        let links = self.links(tree);
        let Self { board, down, .. } = self;
        let (me, first) = (board.rank(), down.next_position());
        let word = |slice| word_of(tree.root(), first + slice);
        let at_root = if links.is_root() { slices } else { 0 };
        board.rewrite((0..at_root).map(word));
        let lent = lends.contains(&me) && !links.children().is_empty();
        let location = if links.is_root() { whole(lent, slices) } else { slices_of(lent, slices) };
        let mut falling = Falling { board, word: &word, slices, location, parent: Location::CELL };
        let span = Span::take(down, slices);
        let ended = step::release_all(board, down, &links, span, TAG, &mut falling);
        board.rewrite(std::iter::empty());
        ended
    }

    /// The sum of all ranks' words goes up one tree and down another.
    pub fn lend_pipeline(&mut self, slices: u64, (up_tree, down_tree): (Tree, Tree), lends: Lends) {
        let (up_links, down_links) = (self.links(up_tree), self.links(down_tree));
        let Self { board, up, down, .. } = self;
        let (me, first) = (board.rank(), up.next_position());
        board.rewrite((0..slices).map(|slice| word_of(me, first + slice)));
        let mut rising = Rising::new(board, &up_links, (first, up.slots() as u64), lends.send.contains(&me), slices);
        let word = |slice| sum_of_all(board, first + slice);
        let location = slices_of(lends.result.contains(&me) && !down_links.children().is_empty(), slices);
        let mut falling = Falling { board, word: &word, slices, location, parent: Location::CELL };
        let steps = (&mut rising, &mut falling);
        agreed(gather_release(board, (up, &up_links), (down, &down_links), slices, TAG, steps));
        board.rewrite(std::iter::empty());
    }
}

/// The words of one exchange.
struct Exchanged<'a> {
    board: &'a ModelBoard,
    first: u64,
    slices: u64,
    location: Location,
    /// What each rank said.
    told: Vec<Location>,
}

impl exchange::Slices for Exchanged<'_> {
    fn divides(&self) -> bool {
        let others = (0..self.told.len()).filter(|&rank| rank != self.board.rank());
        self.location.result.is_some() && others.map(|rank| self.told[rank]).all(|told| told.result.is_some())
    }

    /// A unit in so many as there are ranks is the own share.
    fn combine_share(&mut self) -> Result<()> {
        let size = self.board.size();
        for unit in (self.board.rank()..self.slices as usize).step_by(size) {
            let sum = (0..size).map(|rank| self.board.buffer(rank, SEND)[unit].read()).sum();
            for rank in 0..size {
                self.board.buffer(rank, RECEIVE)[unit].write(sum);
            }
        }
        Ok(())
    }

    fn location(&self) -> Location {
        self.location
    }

    fn has(&self, rank: usize) -> bool {
        self.told[rank].whole
    }

    fn note(&mut self, rank: usize, location: Location) {
        self.told[rank] = location;
    }

    fn crosses(&self) -> bool {
        true
    }

    fn write(&mut self, slice: u64, slot: usize, crossed: bool) {
        let me = self.board.rank();
        self.board.fill_of(RingName::Up, if crossed { 1 - me } else { me }, slot, word_of(me, self.first + slice));
    }

    fn combine(&mut self, slice: u64, slot: usize, crossed: bool) -> Result<()> {
        let me = self.board.rank();
        for rank in (0..self.board.size()).filter(|&rank| rank != me) {
            let found = match self.told[rank].is_lent() {
                true => self.board.buffer(rank, SEND)[slice as usize].read(),
                false => self.board.read(RingName::Up, if crossed { me } else { rank }, slot),
            };
            expect_value(found, word_of(rank, self.first + slice));
        }
        Ok(())
    }
}

/// The words of one reduction through shares.
struct Slices<'a> {
    board: &'a ModelBoard,
    leaders: &'a [usize],
    first: u64,
    contribution: Location,
    result: Location,
    /// What each rank said.
    told: Vec<Location>,
    takes: bool,
    /// Whether a leader may go on without the root.
    declines: bool,
    /// Slices that were taken out of own cells.
    came_back: u64,
}

impl Slices<'_> {
    fn unit(&self, round: u64, leader: usize) -> usize {
        round as usize * self.leaders.len() + leader
    }

    /// The sum of everybody's part of a slice, stored to where it is wanted.
    fn sum(&self, round: u64, leader: usize, up: usize) -> u64 {
        let (board, unit) = (self.board, self.unit(round, leader));
        let position = self.first + unit as u64;
        let others = (0..board.size()).filter(|&rank| rank != board.rank());
        let word = |rank: usize| board.read_at(RingName::Up, rank, up, self.told[rank].place, unit);
        let sum = others.clone().map(word).sum::<u64>() + word_of(board.rank(), position);
        expect_value(sum, sum_of_all(board, position));
        if self.takes {
            board.buffer(board.rank(), RECEIVE)[unit].write(sum);
        }
        for rank in others.filter(|&rank| self.told[rank].result.is_some()) {
            board.buffer(rank, RECEIVE)[unit].write(sum);
        }
        sum
    }
}

impl Work for Slices<'_> {
    fn contribution(&self) -> Location {
        self.contribution
    }

    fn has(&self, rank: usize) -> bool {
        self.told[rank].whole
    }

    fn note(&mut self, rank: usize, location: Location) {
        self.told[rank] = location;
    }

    fn serves(&self, takers: Takers) -> bool {
        match takers {
            Takers::All => {
                (0..self.board.size()).all(|rank| rank == self.board.rank() || self.told[rank].result.is_some())
            }
            Takers::Root(root) => self.told[root].result.is_some(),
            Takers::Owners => true,
        }
    }

    fn result(&self) -> Location {
        self.result
    }

    fn may_decline(&self) -> bool {
        self.declines
    }

    fn contribute(&mut self, round: u64, leader: usize, slot: usize) {
        // To the own share only what is declined.
        let to_itself = self.leaders[leader] == self.board.rank();
        assert!(!to_itself || self.declines && !self.takes && !self.contribution.is_lent());
        let unit = self.unit(round, leader);
        self.board.fill(RingName::Up, slot, word_of(self.board.rank(), self.first + unit as u64));
    }

    fn fold(&mut self, round: u64, leader: usize, up: usize, down: Option<usize>) -> Result<()> {
        let sum = self.sum(round, leader, up);
        if let Some(slot) = down {
            self.board.fill(RingName::Down, slot, sum);
        }
        Ok(())
    }

    fn gives_back(&self) -> bool {
        true
    }

    fn fold_back(&mut self, round: u64, leader: usize, up: usize) -> Result<()> {
        let sum = self.sum(round, leader, up);
        self.board.fill_of(RingName::Up, 1 - self.board.rank(), up, sum);
        Ok(())
    }

    fn take(&mut self, round: u64, leader: usize, slot: usize, location: Location) -> Result<()> {
        let (board, unit) = (self.board, self.unit(round, leader));
        let found = match location.place {
            Place::Back => {
                self.came_back += 1;
                board.read(RingName::Up, board.rank(), slot)
            }
            place => board.read_at(RingName::Down, self.leaders[leader], slot, place, unit),
        };
        expect_value(found, sum_of_all(board, self.first + unit as u64));
        board.buffer(board.rank(), RECEIVE)[unit].write(found);
        Ok(())
    }
}

/// The words of one handing-out.
struct Handed<'a> {
    board: &'a ModelBoard,
    leaders: &'a [usize],
    first: u64,
    location: Location,
    /// What each leader said.
    told: Vec<Location>,
}

impl Parts for Handed<'_> {
    fn location(&self) -> Location {
        self.location
    }

    fn has(&self, leader: usize) -> bool {
        self.told[leader].whole
    }

    fn note(&mut self, leader: usize, location: Location) {
        self.told[leader] = location;
    }

    fn give(&mut self, round: u64, _: usize, slot: usize) {
        self.board.fill(RingName::Down, slot, word_of(self.board.rank(), self.first + round));
    }

    fn take(&mut self, round: u64, leader: usize, slot: usize) -> Result<()> {
        let from = self.leaders[leader];
        let found = self.board.read_at(RingName::Down, from, slot, self.told[leader].place, round as usize);
        expect_value(found, word_of(from, self.first + round));
        Ok(())
    }
}

/// The words of gather steps.
struct Rising<'a> {
    board: &'a ModelBoard,
    links: &'a Links,
    /// The first position, and the slots of the ring.
    ring: (u64, u64),
    slices: u64,
    location: Location,
    /// What each child said.
    told: Vec<Location>,
    /// Whose cell is handed on, of the slice that was summed last, if one is.
    handed_on: Option<usize>,
}

impl<'a> Rising<'a> {
    fn new(board: &'a ModelBoard, links: &'a Links, ring: (u64, u64), lends: bool, slices: u64) -> Self {
        let leaf = !links.is_root() && links.children().is_empty();
        let told = vec![Location::CELL; board.size()];
        Self { board, links, ring, slices, location: whole(lends && leaf, slices), told, handed_on: None }
    }
}

impl Gathers for Rising<'_> {
    fn location(&self) -> Location {
        self.location
    }

    fn relays(&self) -> bool {
        self.links.has_relay()
    }

    fn folded(&self) -> Location {
        self.handed_on.map_or(Location::CELL, Location::cell_of)
    }

    fn has(&self, child: usize) -> bool {
        self.told[child].whole
    }

    fn note(&mut self, child: usize, location: Location) {
        self.told[child] = location;
    }

    fn fold(&mut self, slice: u64, own: Option<usize>) -> Result<()> {
        let (board, position) = (self.board, self.ring.0 + slice);
        self.links.children().iter().try_for_each(|&child| compared(board, child, self.told[child], self.slices))?;
        let slot = (position % self.ring.1) as usize;
        let word = |&child: &usize| board.read_at(RingName::Up, child, slot, self.told[child].place, slice as usize);
        let below = below(self.links, &self.told);
        let sum = below.ranks.iter().map(word).sum::<u64>() + word_of(board.rank(), position);
        self.handed_on = below.cell.filter(|_| self.links.children().is_empty());
        match own {
            Some(own) => board.fill_of(RingName::Up, self.handed_on.unwrap_or(board.rank()), own, sum),
            None => expect_value(sum, sum_of_all(board, position)),
        }
        Ok(())
    }
}

/// Whose words a rank sums up in a gather step.
struct Below {
    ranks: Vec<usize>,
    /// In a relay: whose cell has what those behind the rank have, if it is in one.
    cell: Option<usize>,
}

fn below(links: &Links, told: &[Location]) -> Below {
    if !links.has_relay() {
        return Below { ranks: links.children().to_vec(), cell: None };
    }
    let (behind, others) = links.relay();
    let nearest = behind.iter().position(|&rank| !told[rank].is_lent());
    let seen = &behind[..nearest.map_or(behind.len(), |at| at + 1)];
    let cell = nearest.map(|at| match told[behind[at]].place {
        Place::CellOf(rank) => rank,
        _ => behind[at],
    });
    Below { ranks: seen.iter().chain(others).copied().collect(), cell }
}

/// The words of release steps.
struct Falling<'a> {
    board: &'a ModelBoard,
    word: &'a dyn Fn(u64) -> u64,
    slices: u64,
    location: Location,
    /// What the parent said.
    parent: Location,
}

impl Releases for Falling<'_> {
    fn location(&self) -> Location {
        self.location
    }

    fn has(&self) -> bool {
        self.parent.whole
    }

    fn note(&mut self, location: Location) {
        self.parent = location;
    }

    fn pass(&mut self, slice: u64, passage: Passage) -> Result<()> {
        let (board, word) = (self.board, (self.word)(slice));
        if let Some(from) = passage.from {
            compared(board, from, self.parent, self.slices)?;
            let found = board.read_at(RingName::Down, from, passage.slot, self.parent.place, slice as usize);
            expect_value(found, word);
        }
        if self.location.is_lent() {
            board.buffer(board.rank(), RECEIVE)[slice as usize].write(word);
        }
        if passage.forward {
            board.fill(RingName::Down, passage.slot, word);
        }
        Ok(())
    }
}
