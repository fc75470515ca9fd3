//! The collectives of one rank: production protocols over a simulated board, with payload that is charged, not moved.
//!
//! What the regimes of shm-core do with memory is done here with time: the same slices, the same trees, the same
//! protocol functions ([`shm_core::protocol`]), and [payload](super::payload) that says how many bytes are loaded from
//! where and stored to where.

use shm_core::protocol::exchange::{exchange, exchange_pieces, exchange_slices};
use shm_core::protocol::shares::{self, Shares, Takers};
use shm_core::protocol::step::{self, InCells};
use shm_core::protocol::{Board, Ring, RingName};
use shm_core::segment::layout::{SLOT_PAYLOAD, line_slots};
use shm_core::select::Choice;
use shm_core::{Collective, Cut, Division, Links, Regime, Result, exchange_positions, leader_of};

use super::engine::{Seat, Slots};
use super::memory::Level;
use super::payload::{Exchanging, Group, Slicing, combine, fold_lines, lines_beside, pass};

/// Bytes of an element: sums of f64.
pub const ELEMENT: usize = 8;

/// The tag of every call: they are all alike.
const TAG: u32 = 1;

/// What every rank calls.
#[derive(Clone, Debug)]
pub struct Call {
    /// The collective.
    pub what: Collective,
    /// Bytes of the vector.
    pub bytes: usize,
    /// The algorithm.
    pub choice: Choice,
    /// The place of each rank in the tree of gather steps; rank 0 is the root.
    pub gather: Vec<Links>,
    /// The same for release steps.
    pub release: Vec<Links>,
    /// Where private buffers lie.
    pub level: Level,
}

impl Call {
    /// Slots a rank of each ring. Each rank has a core of its own.
    pub fn slots(&self) -> Slots {
        let lines = line_slots(self.gather.len(), 1);
        Slots { of: [lines, self.choice.up_slots.max(1), self.choice.down_slots.max(1)] }
    }

    /// Bytes that a rank touches: its buffers, and the cells that it fills or loads. Of more ranks than two no rank's
    /// are counted; there a ring of cells each way stands for those.
    pub fn touched(what: Collective, bytes: usize, choice: &Choice, size: usize) -> usize {
        let up = (choice.up_cell * choice.up_slots).min(bytes);
        let down = (choice.down_cell * choice.down_slots).min(bytes);
        match what {
            Collective::Barrier => 0,
            Collective::Broadcast if size == 2 => bytes + down,
            // The root's: it has a result too. Results come back in the cells of contributions.
            Collective::Reduce if size == 2 => 2 * bytes + up,
            Collective::Allreduce if size == 2 && choice.regime != Regime::Cells => 2 * bytes + up,
            Collective::Broadcast | Collective::Reduce => bytes + up + down,
            Collective::Allreduce => 2 * bytes + up + down,
        }
    }

    /// Bytes of the slices that fill a cell each.
    fn slices(&self, cell: usize) -> Vec<usize> {
        lengths(Cut::new(self.bytes, cell, ELEMENT))
    }

    /// The same of a rooted call.
    fn rooted_slices(&self, cell: usize) -> Vec<usize> {
        lengths(Cut::rooted(self.gather.len(), self.bytes, cell, ELEMENT))
    }

    /// Bytes of the pieces that fill a line slot each.
    fn pieces(&self) -> Vec<usize> {
        self.slices(SLOT_PAYLOAD)
    }
}

fn lengths(cut: Cut) -> Vec<usize> {
    (0..cut.count()).map(|slice| cut.range(slice).1).collect()
}

/// A rank, and its rings.
pub struct Rank<'a, 'y> {
    seat: &'a Seat<'y>,
    call: &'a Call,
    lines: Ring,
    up: Ring,
    down: Ring,
    leaders: Vec<usize>,
}

impl<'a, 'y> Rank<'a, 'y> {
    /// A rank that has called nothing yet.
    pub fn new(seat: &'a Seat<'y>, call: &'a Call) -> Self {
        let (slots, size) = (call.slots(), seat.size());
        let ring = |name: RingName| Ring::new(name, slots.of[name as usize], size);
        let leaders = (0..call.choice.leaders).map(|share| leader_of(share, call.choice.leaders, size)).collect();
        let (lines, up, down) = (ring(RingName::Line), ring(RingName::Up), ring(RingName::Down));
        Self { seat, call, lines, up, down, leaders }
    }

    /// Makes the call.
    pub fn make(&mut self) -> Result<()> {
        self.seat.compute(|costs| costs.call);
        if self.seat.size() == 1 {
            return Ok(());
        }
        match (self.call.choice.regime, self.call.what) {
            (Regime::Shares, Collective::Reduce) => self.shares(Takers::Root(0)),
            (Regime::Shares, Collective::Allreduce) => self.shares(Takers::All),
            (Regime::Line, Collective::Barrier) => self.line_barrier(),
            (Regime::Line, Collective::Broadcast) => self.line_broadcast(),
            (Regime::Line, Collective::Reduce) => self.line_reduce(),
            (Regime::Line, Collective::Allreduce) => self.line_allreduce(),
            (Regime::Exchange, Collective::Allreduce) => self.exchange_allreduce(),
            (_, Collective::Reduce) => self.cells_reduce(),
            (_, Collective::Allreduce) => self.cells_allreduce(),
            _ => self.cells_broadcast(),
        }
    }

    fn line_barrier(&mut self) -> Result<()> {
        let Self { seat, call, lines, .. } = self;
        if call.choice.flat {
            return exchange(*seat, lines, TAG, |_| (), |_, _| ());
        }
        let position = lines.take(2);
        step::gather(*seat, lines, &call.gather[seat.rank()], position, TAG, |_| ())?;
        step::release(*seat, lines, &call.release[seat.rank()], position + 1, TAG, |_| ())
    }

    fn line_broadcast(&mut self) -> Result<()> {
        let Self { seat, call, lines, .. } = self;
        for len in call.pieces() {
            let position = lines.take(1);
            step::release(*seat, lines, &call.release[seat.rank()], position, TAG, |passage| {
                if let Some(from) = passage.from {
                    seat.read_beside(from, lines_beside(len));
                }
                seat.private(len, call.level);
                if passage.forward {
                    seat.fill_beside(lines_beside(len));
                    seat.private(len, Level::Own);
                }
            })?;
        }
        Ok(())
    }

    fn line_reduce(&mut self) -> Result<()> {
        let Self { seat, call, lines, .. } = self;
        let links = &call.gather[seat.rank()];
        for len in call.pieces() {
            let position = lines.take(1);
            step::gather(*seat, lines, links, position, TAG, |own| {
                links.children().iter().for_each(|&child| seat.read_beside(child, lines_beside(len)));
                fold_lines(seat, links.children().len() + 1, len, call.level);
                if own.is_some() {
                    seat.fill_beside(lines_beside(len));
                    seat.private(len, Level::Own);
                }
            })?;
        }
        Ok(())
    }

    fn line_allreduce(&mut self) -> Result<()> {
        if !self.call.choice.flat {
            self.line_reduce()?;
            return self.line_broadcast();
        }
        let Self { seat, call, lines, .. } = self;
        for group in call.pieces().chunks(lines.slots() / 2) {
            let mut pieces = Group { seat, level: call.level, pieces: group };
            exchange_pieces(*seat, lines, TAG, group.len(), &mut pieces)?;
        }
        Ok(())
    }

    fn cells_broadcast(&mut self) -> Result<()> {
        let Self { seat, call, down, .. } = self;
        let slices = call.rooted_slices(call.choice.down_cell);
        let first = down.take(slices.len() as u64);
        for (position, &len) in (first..).zip(&slices) {
            step::release(*seat, down, &call.release[seat.rank()], position, TAG, |passage| {
                pass(seat, call.level, passage, len);
            })?;
        }
        Ok(())
    }

    fn cells_reduce(&mut self) -> Result<()> {
        let Self { seat, call, up, .. } = self;
        let links = &call.gather[seat.rank()];
        let slices = call.rooted_slices(call.choice.up_cell);
        let first = up.take(slices.len() as u64);
        for (position, &len) in (first..).zip(&slices) {
            let slot = up.slot(position);
            step::gather(*seat, up, links, position, TAG, |own| combine(seat, call.level, links, slot, own, len))?;
        }
        Ok(())
    }

    fn cells_allreduce(&mut self) -> Result<()> {
        let Self { seat, call, up, down, .. } = self;
        let (gather, release) = (&call.gather[seat.rank()], &call.release[seat.rank()]);
        let slices = call.slices(call.choice.up_cell.min(call.choice.down_cell));
        let first = up.next_position();
        let count = up.slots() as u64;
        step::gather_release(
            *seat,
            (up, gather),
            (down, release),
            slices.len() as u64,
            TAG,
            (
                &mut InCells(|slice, own| {
                    let slot = ((first + slice) % count) as usize;
                    combine(seat, call.level, gather, slot, own, slices[slice as usize]);
                }),
                &mut InCells(|slice, passage| pass(seat, call.level, passage, slices[slice as usize])),
            ),
        )
    }

    fn exchange_allreduce(&mut self) -> Result<()> {
        let Self { seat, call, up, .. } = self;
        let slices = call.slices(call.choice.up_cell);
        let count = slices.len() as u64;
        let positions = exchange_positions(seat.size(), count, call.bytes, up.slots());
        exchange_slices(*seat, up, count, TAG, &mut Exchanging { seat, level: call.level, slices, positions })
    }

    fn shares(&mut self, takers: Takers) -> Result<()> {
        let Self { seat, call, up, down, leaders, .. } = self;
        let division = Division::new(call.bytes, ELEMENT, leaders.len(), call.choice.up_cell);
        let shares = Shares { leaders, rounds: division.rounds(), takers };
        let keeps = !matches!(takers, Takers::Root(root) if root != seat.rank());
        let mut work = Slicing { seat, level: call.level, leaders, division, keeps };
        shares::run(*seat, up, down, shares, TAG, &mut work)
    }
}
