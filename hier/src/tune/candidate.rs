//! What is compared.

use shm_core::select::{Band, Regime, Rule, Selection};
use shm_core::{Collective, Error, Tuning};

use crate::rules::TreeRules;
use crate::table::bare;

/// Where the buffers of a call lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lying {
    /// In private memory.
    #[default]
    Private,
    /// In shared memory, and are copied all the same.
    Copied,
    /// In shared memory, and are used there.
    Direct,
    /// In private memory, and are reached there by kernel-assisted copies, so many ranks in one rank's memory at a time
    /// (0 for any number).
    Reached(u32),
}

/// A way to carry a call out.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// Regime and parameters, from 0 bytes on.
    pub band: Band,
    /// The trees.
    pub trees: TreeRules,
    /// Whether contributions are combined in rank order.
    pub strict: bool,
    /// Whether lines are exchanged flat.
    pub flat: bool,
    /// Where buffers lie.
    pub lying: Lying,
}

/// Up and down cells: number and bytes. Few large ones cost less flags, small ones begin earlier.
const CELLS: [(u32, u32); 7] =
    [(64, 8 << 10), (64, 16 << 10), (4, 32 << 10), (32, 32 << 10), (16, 64 << 10), (8, 64 << 10), (2, 256 << 10)];
/// Slices of shares. For the last only two ranks have room.
const SLICES: [u32; 4] = [16 << 10, 64 << 10, 128 << 10, 256 << 10];
/// Lines for longer messages have never won.
const LONGEST_LINES: usize = 4 << 10;
/// Ranks up to which all may lead; where more may, a half of them does, if nobody says otherwise.
const ALL_LEAD: usize = 32;
/// Nor have exchanges of more bytes, those of all ranks together.
const LONGEST_EXCHANGE: usize = 256 << 10;

impl Candidate {
    /// A table that has it for all messages.
    ///
    /// # Errors
    /// `Tuning` when it cannot be carried out.
    pub fn tuning(&self, what: Collective) -> Result<Tuning, Error> {
        let direct = if self.lying == Lying::Direct { 1 } else { u64::MAX };
        let reached = if let Lying::Reached(_) = self.lying { 1 } else { 0 };
        let mut tuning =
            Tuning::of(&[Rule::new(what, &[self.band])?.with_direct_from(direct).with_reach_from(reached)])?;
        if let Lying::Reached(readers) = self.lying {
            tuning.readers = readers;
        }
        tuning.direct = shm_core::select::DIRECT_ALWAYS;
        tuning.strict = u32::from(self.strict);
        let flat_ranks = if self.flat { shm_core::select::FLAT_RANKS } else { 1 };
        (tuning.flat_ranks, tuning.flat_ranks_crowded) = (flat_ranks, flat_ranks);
        Ok(tuning)
    }

    /// The same with buffers that lie there.
    pub(super) fn lying(&self, lying: Lying) -> Self {
        Self { lying, ..self.clone() }
    }

    /// Its name: the same for the same candidate, in every run.
    #[must_use]
    pub fn name(&self, what: Collective) -> String {
        let band = &self.band;
        let cells = |number: u32, bytes: u32| format!("{number}x{}", bare(u64::from(bytes)));
        let mut name = match band.regime() {
            Some(Regime::Cells) => match what {
                Collective::Broadcast => format!("cells {}", cells(band.down_cells, band.down_cell)),
                Collective::Reduce => format!("cells {}", cells(band.up_cells, band.up_cell)),
                _ => format!("cells {} {}", cells(band.up_cells, band.up_cell), cells(band.down_cells, band.down_cell)),
            },
            Some(Regime::Exchange) => format!("exchange {}", cells(band.up_cells, band.up_cell)),
            Some(Regime::Shares) => {
                let leaders = if band.leaders == 0 { "all".to_owned() } else { band.leaders.to_string() };
                format!("shares {leaders} {}", bare(u64::from(band.share_cell)))
            }
            _ if self.flat => "line".to_owned(),
            _ => "line over trees".to_owned(),
        };
        if self.strict {
            name.push_str(" strict");
        }
        match self.lying {
            Lying::Private => name,
            Lying::Copied => name + ", shared, copied",
            Lying::Direct => name + ", shared, where they lie",
            Lying::Reached(0) => name + ", private, reached",
            Lying::Reached(readers) => format!("{name}, private, reached by {readers}"),
        }
    }
}

/// The candidates for a message: first the one that the built-in table takes.
pub(super) fn candidates(
    what: Collective,
    bytes: usize,
    ranks: usize,
    strict: bool,
    built_in: &Selection,
    trees: &TreeRules,
) -> Vec<Candidate> {
    let make = |band: Band| Candidate {
        band: Band { from: 0, ..band },
        trees: trees.clone(),
        strict,
        flat: true,
        lying: Lying::Private,
    };
    let usual = built_in.bands(what).iter().rfind(|band| band.from <= bytes as u64);
    let mut all: Vec<Candidate> = usual.into_iter().map(|&band| make(band)).collect();
    if bytes <= LONGEST_LINES {
        all.push(make(Band::line(0)));
    }
    if Regime::Cells.serves(what) {
        let wanted = CELLS.iter().enumerate().filter(|&(at, &(_, cell))| at == 0 || bytes > cell as usize / 4);
        all.extend(wanted.map(|(_, &cells)| make(Band::cells(0, cells, cells))));
    }
    if Regime::Exchange.serves(what) && bytes * ranks <= LONGEST_EXCHANGE {
        let wanted = CELLS.iter().enumerate().filter(|&(at, &(_, cell))| at == 0 || bytes > cell as usize / 4);
        all.extend(wanted.map(|(_, &cells)| make(Band::exchange(0, cells))));
    }
    if Regime::Shares.serves(what) && bytes >= 512 {
        let slices = if ranks <= 2 { &SLICES[..] } else { &SLICES[..SLICES.len() - 1] };
        let slices =
            slices.iter().enumerate().filter(|&(at, &slice)| at + 1 == slices.len() || bytes / ranks > slice as usize);
        all.extend(slices.map(|(_, &slice)| make(Band::shares(0, 0, slice, 32))));
        if ranks > 2 {
            let some = if ranks <= ALL_LEAD { ranks / 2 } else { ranks / 4 };
            all.push(make(Band::shares(0, some as u32, 64 << 10, 32)));
        }
    }
    let mut names = std::collections::HashSet::new();
    all.retain(|candidate| names.insert(candidate.name(what)));
    all
}
