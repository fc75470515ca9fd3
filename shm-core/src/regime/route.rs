//! A rank's part in a call that moves blocks: what it sends to whom, what it gets from whom, and where others get at
//! its memory.
//!
//! Where ranks share cores a root that scatters long blocks of its private memory [offers](crate::protocol::offer) them
//! there, too. It would copy all of them to its cells, in as many turns of everybody on the core as these hold parts;
//! so each rank copies its own, by the kernel, or gets it through cells if the system does not let it. On two cores
//! (AMD EPYC, Zen 3) that took so many times as long as through cells, back to back, and of blocks written anew: 3
//! ranks 128 KiB 0.73, 0.74, 1 MiB 0.51, 0.58; 4 ranks 128 KiB 1.02, 1.04, 1 MiB 0.41, 0.84; 8 ranks 32 KiB 1.03, 0.98,
//! 64 KiB 0.68, 0.87, 256 KiB 0.37, 0.66, 1 MiB 0.30, 0.65; 16 ranks 32 KiB 0.83, 0.92, 128 KiB 0.39, 1.47, 256 KiB
//! 0.24, 0.45, 1 MiB 0.35, 0.43.
//!
//! A root that gathers such blocks [opens](crate::protocol::opening) its buffer, so that each rank puts its own there:
//! a root that read them would copy all alone (1 MiB on 8 ranks 1.9 times as long as through cells, which its senders
//! fill). On two cores (Intel Xeon) that took so many times as long as through cells, back to back, and of blocks
//! written anew: 3 ranks 64 KiB 1.20, 0.91, 128 KiB 0.67, 0.76, 256 KiB 0.37, 0.57, 1 MiB 0.55, 0.60; 4 ranks 64 KiB
//! 1.32, 0.80, 128 KiB 0.67, 0.74, 256 KiB 0.43, 0.37, 1 MiB 0.50, 0.50; 8 ranks 32 KiB 1.36, 1.12, 64 KiB 0.81, 0.77,
//! 128 KiB 0.50, 0.56, 256 KiB 0.38, 0.57, 1 MiB 0.50, 0.64; 16 ranks 32 KiB 1.03, 0.95, 64 KiB 0.62, 0.54, 128 KiB
//! 0.48, 0.47, 256 KiB 0.45, 0.61, 1 MiB 0.45, 0.53.
//!
//! In alltoalls all ranks [offer](crate::protocol::mutual) each other what they send, so that nobody copies it into
//! cells: where processors have a large second-level cache (Intel's), which copy as fast by the kernel. Back to back,
//! and of blocks written anew, that took so many times as long (Intel Xeon): 3 ranks 128 KiB 0.58, 0.89, 256 KiB 0.78,
//! 0.97, 512 KiB 0.70, 1.03; 4 ranks 64 KiB 1.32, 1.23, 128 KiB 0.65, 1.04, 256 KiB 0.89, 0.74, 512 KiB 0.85, 0.84; 8
//! ranks 64 KiB 0.96, 1.05, 128 KiB 0.91, 0.99, 256 KiB 0.83, 0.76, 512 KiB 0.62, 0.86, 1 MiB 1.04, 1.04; 16 ranks 64
//! KiB 0.88, 0.74, 128 KiB 0.55, 0.95, 256 KiB 1.26, 1.20. On an AMD EPYC (Zen 3) blocks of 64 KiB, read where they
//! lie, took 1.7 times as long.

use super::blocks::{BlockCut, Blocks, Sending};
use super::thresholds::Thresholds;
use crate::board::SharedBoard;
use crate::protocol::delivery::Sources;
use crate::protocol::{Board, Location, Readers, offer, opening};
use crate::select::Collective;

/// The own block: from where, to where, and its length; nothing where it stays where it is.
pub(crate) type OwnBlock = Option<(*const u8, *mut u8, usize)>;

/// Bytes from which blocks to a root or from it are long, and from which they may be.
const LONG: usize = 128 << 10;
const MEDIUM: usize = 64 << 10;

/// Bytes of all blocks of a gather from which [`MEDIUM`] ones are long.
const MUCH: usize = 512 << 10;

/// Bytes of all blocks of all ranks in an alltoall up to which these are read where they lie, and the KiB of
/// second-level cache from which on processors copy as fast by the kernel as by loads and stores.
const EXCHANGED: usize = 32 << 20;
pub(crate) const EXCHANGED_L2: u32 = 2048;

/// How the blocks of a call go: the same on all ranks, but for each one's part.
pub(super) enum Carriage {
    /// By slots, but for what is lent.
    Delivery,
    /// From where a root offers them.
    Offer(offer::Part),
    /// To where a root opens its buffer.
    Opening(opening::Part),
    /// From where all offer them to all.
    Exchange,
}

/// A rank's part in a call that moves blocks.
pub(crate) struct Route<'a> {
    pub send: Sending<'a>,
    /// Who reads what is sent.
    pub readers: Option<Readers>,
    /// Whom this rank reads.
    pub sources: Sources,
    /// Whether what they sent is a row.
    pub rows: bool,
    /// Where the block of each of them belongs: a place of this buffer.
    pub recv: *mut u8,
    pub blocks: Landing<'a>,
    pub own: OwnBlock,
    /// Whether others may read the own buffer where it lies: they know where in it their blocks are.
    pub lends: bool,
    /// Whether all blocks of all ranks are equally long: the same on all ranks.
    pub even: bool,
    /// The length of the longest block of all: the same on all ranks.
    pub longest: usize,
}

impl Route<'_> {
    /// Whether every rank waits for every other one in this call.
    #[inline]
    pub fn waits_for_all(&self) -> bool {
        matches!((&self.readers, self.sources), (Some(Readers::All), Sources::Others))
    }

    /// How the blocks of `size` ranks go where these share cores, cut so for so many cells; `exchanges` says whether
    /// rows of medium blocks may be read where they lie.
    pub(super) fn carriage(&self, size: usize, (cut, cells): (&BlockCut, usize), exchanges: bool) -> Carriage {
        if let Some(part) = self.handing_out_long(cut, cells) {
            Carriage::Offer(part)
        } else if let Some(part) = self.gathering_long(size) {
            Carriage::Opening(part)
        } else if exchanges && self.exchanges_medium(size) {
            Carriage::Exchange
        } else {
            Carriage::Delivery
        }
    }

    /// This rank's part, if a root hands out blocks that are long, or take more than half of these cells, so that it
    /// waits for their readers in most calls. Said alike on all ranks.
    fn handing_out_long(&self, cut: &BlockCut, cells: usize) -> Option<offer::Part> {
        if self.longest < LONG && (self.longest < MEDIUM || 2 * cut.count() <= cells as u64) {
            return None;
        }
        match (&self.send, self.sources) {
            (Sending::Rows(..), Sources::Nobody) => Some(offer::Part::Root),
            (Sending::Nothing, Sources::One(root)) if self.rows => Some(offer::Part::Reader(root)),
            _ => None,
        }
    }

    /// This rank's part, if a root gathers long blocks of so many ranks, all of which know where they belong. Said
    /// alike on all ranks.
    fn gathering_long(&self, size: usize) -> Option<opening::Part> {
        let is_long = self.longest >= LONG || self.longest >= MEDIUM && size * self.longest >= MUCH;
        match (&self.send, &self.readers, self.sources) {
            _ if !is_long || !self.even || self.rows => None,
            (Sending::Same(..), Some(Readers::One(root)), Sources::Nobody) => Some(opening::Part::Sender(*root)),
            (Sending::Nothing, None, Sources::Others) => Some(opening::Part::Root),
            _ => None,
        }
    }

    /// Whether all of `size` ranks, more than two, hand out rows of blocks for which a copy by the kernel takes less
    /// than two of the ranks' own. Said alike on all ranks.
    fn exchanges_medium(&self, size: usize) -> bool {
        let is_medium = self.longest >= LONG || self.longest >= MEDIUM && size * self.longest >= 2 * MUCH;
        let is_exchange = matches!(self.send, Sending::Rows(..)) && self.even && self.waits_for_all();
        is_exchange && size > 2 && is_medium && size * size * self.longest <= EXCHANGED
    }

    /// Where others may read what this rank sends; `offers` says whether also in private memory, if they can be let.
    pub(super) fn lent(&self, board: &SharedBoard, thresholds: &Thresholds, offers: bool) -> Location {
        let (buffer, bytes) = match self.send {
            Sending::Same(buffer, bytes) => (buffer, bytes),
            Sending::Rows(buffer, blocks) => (buffer, board.size() * blocks.len(0)),
            Sending::Nothing => return Location::CELL,
        };
        if !self.lends {
            return Location::CELL;
        }
        let (what, together) = (Collective::Broadcast, self.waits_for_all());
        let shows = || offers && board.shows(buffer, bytes);
        Location::whole_at(thresholds.block_place(board, what, together, (buffer, bytes), shows), bytes)
    }

    /// Where others may put the blocks that this root gathers, one of each rank, in private memory if it `reaches`
    /// others and they can be let in.
    pub(super) fn opened(&self, board: &SharedBoard, thresholds: &Thresholds, reaches: bool) -> Location {
        let (buffer, bytes) = (self.recv, board.size() * self.longest);
        // SAFETY: the caller's buffer has a block of each rank, and is this call's.
        let admits = || reaches && unsafe { board.admits(buffer, bytes) };
        Location::whole_at(thresholds.opened_place(board, (buffer, bytes), admits), bytes)
    }
}

/// Where a rank puts the blocks that it gets.
#[derive(Clone, Copy)]
pub(crate) enum Landing<'a> {
    /// Each rank's block at its place.
    Each(Blocks<'a>),
    /// The only one there is, of so many bytes, at the beginning.
    Only(usize),
}

impl Landing<'_> {
    /// Where the block of `rank` belongs, and its length.
    #[inline]
    pub(super) fn of(&self, rank: usize) -> (usize, usize) {
        match self {
            Landing::Each(blocks) => (blocks.of(rank).start, blocks.len(rank)),
            Landing::Only(bytes) => (0, *bytes),
        }
    }
}
