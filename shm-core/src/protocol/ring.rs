//! A ring of slots: the one protocol that every other is made of.
//!
//! Each rank owns `slots` slots in each ring. All ranks count *positions* alike: a collective takes as many
//! positions of a ring as its arguments say, so that a position names the same slice of the same call on every
//! rank, whatever tree, root or algorithm the call uses. Position `t` lies in slot `t % slots` of whoever
//! writes at it.
//!
//! * **Publish** (edges L1, U1, D1): the writer fills the slot and stores its stamp with release ordering;
//!   a reader that acquires the stamp sees the payload.
//! * **Reuse** (edges L2, U2, D2): every rank stores `done = t` with release ordering when it has finished all
//!   its reads at positions up to `t`. A writer may fill a slot again when every reader of its last use has
//!   `done` at or past that position.
//!
//! * **Loans**: a slot's payload may lie in a buffer of its writer ([`Location`]), for one slice or for all that are
//!   left of the call. Such a use lasts until its readers have `done` at the last position that they read it for, and
//!   the writer waits for that ([`settle`](Ring::settle)) before its call ends: then the buffer is its own again.
//!
//! * **Crossing**: of two ranks that exchange slices, a slot's cells change hands from one turn of the ring to the
//!   next: each rank writes where it has read the other's payload ([`cross`](Ring::cross)).
//!
//! The readers of a slot are remembered with its last use, slot by slot. So a parent in one tree is never
//! taken as proof for the reader in another tree, and collectives of different trees, roots and kinds may
//! follow one another in a ring without waiting for each other.

use std::sync::Arc;

use super::board::{Board, Moment, RingName, Stamp, Until, Word};
use super::location::Location;
use crate::error::Result;

/// Who reads a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readers {
    /// Every other rank.
    All,
    /// One rank.
    One(usize),
    /// These ranks.
    These(Arc<[usize]>),
}

impl Readers {
    /// Whether they are the same, as far as can be told at a glance.
    #[inline]
    fn are(&self, others: &Readers) -> bool {
        match (self, others) {
            (Readers::All, Readers::All) => true,
            (Readers::One(one), Readers::One(other)) => one == other,
            (Readers::These(these), Readers::These(those)) => Arc::ptr_eq(these, those),
            _ => false,
        }
    }
}

/// The last use of an own slot.
#[derive(Clone, Debug)]
struct Use {
    /// The last position for which it is read: that which was published there, or a later one of the same call when the
    /// payload is that of several slices; 0 when the slot was never used.
    position: u64,
    readers: Readers,
    /// The last position at which two ranks exchanged slices here, and whether each wrote in the other's cell.
    exchanged: (u64, bool),
}

const UNUSED: Use = Use { position: 0, readers: Readers::All, exchanged: (0, false) };

/// One rank's view of one ring: its clock, and what it knows of its readers.
///
/// Invariants:
/// * I1: `clock` is the same on all ranks between calls.
/// * I2: every reader of an own slot published at a position `<= proven` has finished reading it.
/// * I3: rank `q` has finished its reads up to `known[q]`: by its `done` word, or by what it published afterwards.
#[derive(Debug)]
pub struct Ring {
    name: RingName,
    clock: u64,
    proven: u64,
    uses: Vec<Use>,
    /// One less than the number of slots where that is a power of two above one; else 0.
    mask: u64,
    known: Vec<u64>,
    /// A position that was not taken yet, and its slot, which is free ([`prepare`](Ring::prepare)); position 0 for
    /// none.
    prepared: (u64, usize),
}

fn mask_of(slots: usize) -> u64 {
    if slots.is_power_of_two() { slots as u64 - 1 } else { 0 }
}

impl Ring {
    /// A ring of `slots` slots a rank, in a communicator of `size` ranks, of which nothing was used.
    #[must_use]
    pub fn new(name: RingName, slots: usize, size: usize) -> Self {
        Self {
            name,
            clock: 0,
            proven: 0,
            uses: vec![UNUSED; slots],
            mask: mask_of(slots),
            known: vec![0; size],
            prepared: (0, 0),
        }
    }

    /// Which ring it is.
    #[must_use]
    pub fn name(&self) -> RingName {
        self.name
    }

    /// Slots a rank.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.uses.len()
    }

    /// Takes the next `count` positions for a call and returns the first of them.
    #[inline]
    pub fn take(&mut self, count: u64) -> u64 {
        let first = self.clock + 1;
        self.clock += count;
        first
    }

    /// The position that the next call will take first.
    #[must_use]
    pub fn next_position(&self) -> u64 {
        self.clock + 1
    }

    /// The slot of `position`.
    #[inline]
    #[must_use]
    pub fn slot(&self, position: u64) -> usize {
        // Most rings have a power of two of slots: then no division.
        if self.mask != 0 { (position & self.mask) as usize } else { (position % self.uses.len() as u64) as usize }
    }

    /// Waits until the own slot of `position` may be filled, and returns it.
    ///
    /// # Errors
    /// When a reader of its last use has failed, or made another call.
    #[inline]
    pub fn claim<B: Board>(&mut self, board: &B, position: u64) -> Result<usize> {
        let (prepared, slot) = self.prepared;
        if prepared == position {
            return Ok(slot);
        }
        let slot = self.slot(position);
        // Others wait for what is published next: no more is asked here than this.
        if self.uses[slot].position > self.proven {
            self.wait_for_readers(board, slot)?;
        }
        Ok(slot)
    }

    /// Whether somebody may still read an own slot, as far as is known without a look at anybody's word.
    #[inline]
    fn is_read(&self, slot: usize) -> bool {
        self.uses[slot].position > self.proven && self.has_reader(slot)
    }

    /// The same of a slot whose last use is not proven to be over: by what is known of its readers.
    #[inline(never)]
    fn has_reader(&self, slot: usize) -> bool {
        let Use { position, readers, .. } = &self.uses[slot];
        match readers {
            Readers::All => true,
            Readers::One(reader) => self.known[*reader] < *position,
            Readers::These(readers) => readers.iter().any(|&reader| self.known[reader] < *position),
        }
    }

    /// Looks, once all positions that were taken are published, whether the own slot of the next call's first position
    /// is free: whether a claim would find, without a look at anybody's word, that nobody reads it any more, and no
    /// other rank can have a reason to write in its cell. What is stored to the payload of such a slot nobody sees. It
    /// stays free, since nobody publishes there before that call, which claims it without a look.
    #[inline]
    pub(super) fn prepare(&mut self) -> Option<usize> {
        let next = self.next_position();
        let slot = self.slot(next);
        // Of two ranks that have exchanged slices here the other one may be in the exchange of that position already.
        let (exchanged, _) = self.uses[slot].exchanged;
        let changes_hands = exchanged != 0 && exchanged + self.uses.len() as u64 == next;
        if changes_hands || self.is_read(slot) {
            return None;
        }
        self.prepared = (next, slot);
        Some(slot)
    }

    /// The own slot of the next call's first position, if an exchange, or the writer of a single slot, has found that
    /// it is free.
    #[inline]
    #[must_use]
    pub fn prepared(&self) -> Option<usize> {
        let (position, slot) = self.prepared;
        (position == self.next_position()).then_some(slot)
    }

    /// Whether two ranks that exchange slices write, at `position`, each in the cell of the other. Asked once for each
    /// position of an exchange, by both ranks, before it is written.
    ///
    /// They do if they exchanged slices at this slot in the turn before, and then wrote each in its own: each has
    /// acquired the other's stamp of that position, or of the first slice if all is lent, so that what it reads there
    /// is written; and who has read a cell may write it. In between nobody used the slot. A line that was read is then
    /// stored to by the core that has it.
    #[inline]
    pub fn cross(&mut self, position: u64) -> bool {
        let (slot, slots) = (self.slot(position), self.uses.len() as u64);
        let (before, crossed) = self.uses[slot].exchanged;
        let crosses = before != 0 && before + slots == position && !crossed;
        self.uses[slot].exchanged = (position, crosses);
        crosses
    }

    /// What [`cross`](Ring::cross) said of the last position of an exchange at this slot.
    #[inline]
    #[must_use]
    pub fn is_crossed(&self, slot: usize) -> bool {
        self.uses[slot].exchanged.1
    }

    /// Publishes the own slot of `position`, which was claimed and filled, to `readers`.
    #[inline(always)]
    pub fn publish<B: Board>(&mut self, board: &B, position: u64, tag: u32, readers: &Readers) {
        self.publish_at(board, position, position, tag, readers, Location::CELL);
    }

    /// [`publish`](Ring::publish), with the payload at `location`, which is read for all positions up to `until`.
    #[inline(always)]
    pub fn publish_at<B: Board>(
        &mut self,
        board: &B,
        position: u64,
        until: u64,
        tag: u32,
        readers: &Readers,
        location: Location,
    ) {
        let slot = self.slot(position);
        if self.name != RingName::Line {
            board.locate(self.name, slot, location);
        }
        self.publish_in(board, self.name, slot, until, Stamp::new(position, tag), readers);
    }

    /// [`publish`](Ring::publish), where slot and stamp are known already, and read for all positions up to `until`.
    #[inline(always)]
    pub(super) fn publish_in<B: Board>(
        &mut self,
        board: &B,
        name: RingName,
        slot: usize,
        until: u64,
        stamp: Stamp,
        readers: &Readers,
    ) {
        debug_assert_eq!(name, self.name);
        let word = board.own_stamp(name, slot);
        board.publish(word, stamp.0, name.publish_edge());
        // Noted after the publication: others wait for that, not for this.
        let last = &mut self.uses[slot];
        last.position = until;
        // Where they stay the same no count of an `Arc` is touched: that would be an atomic operation, which waits
        // until the stamp has left the store buffer.
        if !last.readers.are(readers) {
            last.readers = readers.clone();
        }
    }

    /// Waits until `from` has published `position`, and returns the slot to read.
    ///
    /// # Errors
    /// When `from` has failed, or made another call.
    #[inline]
    pub fn expect<B: Board>(&self, board: &B, from: usize, position: u64, tag: u32) -> Result<usize> {
        let slot = self.slot(position);
        self.expect_in(board, self.name, from, (slot, None), Stamp::new(position, tag))?;
        Ok(slot)
    }

    /// Whether `from` has published `position`, as this rank finds in so many looks: if so, the slot may be read.
    pub(super) fn finds<B: Board>(&self, board: &B, from: usize, position: u64, tag: u32, looks: u32) -> bool {
        let (word, stamp) = (board.stamp(self.name, from, self.slot(position)), Stamp::new(position, tag));
        let found = || word.observe(self.name.publish_edge()) == stamp.0;
        found()
            || (1..looks).any(|_| {
                std::hint::spin_loop();
                found()
            })
    }

    /// [`expect`](Ring::expect), where slot and stamp are known already, with a first look no sooner than at a moment,
    /// if one is given.
    #[inline(always)]
    pub(super) fn expect_in<B: Board>(
        &self,
        board: &B,
        name: RingName,
        from: usize,
        (slot, moment): (usize, Option<Moment>),
        stamp: Stamp,
    ) -> Result<()> {
        debug_assert_eq!(name, self.name);
        let word = board.stamp(name, from, slot);
        let (until, edge) = (Until::Stamped(stamp), name.publish_edge());
        match moment {
            Some(moment) => board.wait_from(moment, from, word, until, edge)?,
            None => board.wait(from, word, until, edge)?,
        };
        Ok(())
    }

    /// [`expect`](Ring::expect), and where the payload lies.
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub fn expect_at<B: Board>(&self, board: &B, from: usize, position: u64, tag: u32) -> Result<(usize, Location)> {
        let slot = self.slot(position);
        Ok((slot, self.expect_stamped(board, from, slot, Stamp::new(position, tag))?))
    }

    /// The same, where slot and stamp are known already: where the payload lies.
    #[inline(always)]
    pub(super) fn expect_stamped<B: Board>(
        &self,
        board: &B,
        from: usize,
        slot: usize,
        stamp: Stamp,
    ) -> Result<Location> {
        // What a ring has follows from its name: asked once, where it is asked for many ranks.
        if self.name == RingName::Line {
            self.expect_in(board, RingName::Line, from, (slot, None), stamp)?;
            return Ok(Location::CELL);
        }
        self.expect_in(board, self.name, from, (slot, None), stamp)?;
        Ok(board.location(self.name, from, slot))
    }

    /// Says that what `from` publishes at `position` will be [expected](Ring::expect) soon.
    #[inline]
    pub(super) fn look_ahead<B: Board>(&self, board: &B, from: usize, position: u64) {
        board.look_ahead(board.stamp(self.name, from, self.slot(position)));
    }

    /// Says that this rank has finished all its reads at positions up to `position`.
    #[inline]
    pub fn finish<B: Board>(&self, board: &B, position: u64) {
        board.publish(board.own_done(self.name), position, self.name.reuse_edge());
    }

    /// Notes that every rank is known to have finished its reads up to `position`, because each has
    /// published something later that this rank has acquired.
    #[inline]
    pub fn prove(&mut self, position: u64) {
        self.proven = self.proven.max(position);
    }

    /// Notes that rank `other` is known to have finished its reads up to `position`, because it has published something
    /// afterwards that this rank has acquired.
    #[inline]
    pub fn know(&mut self, other: usize, position: u64) {
        self.known[other] = self.known[other].max(position);
    }

    /// Waits until nobody reads the own slots that were published for positions from `first` on: the end of a call in
    /// which some of them lent a buffer, which belongs to the caller again afterwards.
    ///
    /// # Errors
    /// As [`claim`](Ring::claim).
    pub fn settle<B: Board>(&mut self, board: &B, first: u64) -> Result<()> {
        for slot in 0..self.uses.len() {
            if self.uses[slot].position >= first && self.is_read(slot) {
                self.wait_for_readers(board, slot)?;
            }
        }
        Ok(())
    }

    /// The other ranks that are not known to have finished their reads up to `position`.
    pub(super) fn behind<B: Board>(&self, board: &B, position: u64) -> Vec<usize> {
        (0..board.size()).filter(|&rank| rank != board.rank() && self.known[rank] < position).collect()
    }

    /// Changes how the own slots are cut: waits until nobody reads any of them.
    ///
    /// # Errors
    /// As [`claim`](Ring::claim).
    pub fn reshape<B: Board>(&mut self, board: &B, slots: usize) -> Result<()> {
        for slot in 0..self.uses.len() {
            if self.is_read(slot) {
                self.wait_for_readers(board, slot)?;
            }
        }
        self.uses.clear();
        self.uses.resize(slots, UNUSED);
        self.mask = mask_of(slots);
        self.prepared = (0, 0);
        Ok(())
    }

    #[inline(never)]
    fn wait_for_readers<B: Board>(&mut self, board: &B, slot: usize) -> Result<()> {
        let Self { name, uses, known, proven, .. } = self;
        let Use { position, readers, .. } = &uses[slot];
        let mut wait = |reader: usize| {
            if known[reader] < *position {
                let word = board.done(*name, reader);
                known[reader] = board.wait(reader, word, Until::Reached(*position), name.reuse_edge())?;
            }
            Ok(known[reader])
        };
        match readers {
            Readers::All => {
                let mut all = u64::MAX;
                for reader in (0..board.size()).filter(|&rank| rank != board.rank()) {
                    all = all.min(wait(reader)?);
                }
                // Nobody else: then nobody reads.
                *proven = (*proven).max(if all == u64::MAX { *position } else { all });
            }
            Readers::One(reader) => {
                wait(*reader)?;
            }
            Readers::These(readers) => {
                for &reader in readers.iter() {
                    wait(reader)?;
                }
            }
        }
        Ok(())
    }
}
