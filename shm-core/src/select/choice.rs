//! What a table chooses: regime, leaders, cells.

use std::fmt;

use crate::segment::layout::SLOT_PAYLOAD;

/// The collectives for which the table chooses. All others (gather, scatter, allgather, alltoall, reduce-scatter, scan)
/// have no rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(usize)]
pub enum Collective {
    /// MPI_Barrier.
    Barrier = 0,
    /// MPI_Bcast.
    Broadcast = 1,
    /// MPI_Reduce.
    Reduce = 2,
    /// MPI_Allreduce.
    Allreduce = 3,
}

impl Collective {
    /// All of them.
    pub const ALL: [Collective; 4] =
        [Collective::Barrier, Collective::Broadcast, Collective::Reduce, Collective::Allreduce];

    /// The collectives that a rule means by `text`: one by its name, or `all`.
    ///
    /// # Errors
    /// What would be right, when there is no such collective.
    pub fn meant_by(text: &str) -> Result<Vec<Self>, String> {
        if text == "all" {
            return Ok(Self::ALL.to_vec());
        }
        let named = Self::ALL.into_iter().find(|collective| collective.name() == text);
        let wrong = || format!("{text:?} is no collective: barrier, broadcast, reduce, allreduce, or all");
        named.map(|collective| vec![collective]).ok_or_else(wrong)
    }

    /// Its name, in small letters.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Collective::Barrier => "barrier",
            Collective::Broadcast => "broadcast",
            Collective::Reduce => "reduce",
            Collective::Allreduce => "allreduce",
        }
    }
}

impl fmt::Display for Collective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The families of algorithms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Regime {
    /// 1: payload and stamp in one cache line.
    Line,
    /// 2: release and gather steps over trees, pipelined cells.
    Cells,
    /// 3: the data-partitioned reduction with several leaders.
    Shares,
    /// 1 through cells: everybody publishes its contribution in cells and folds everybody's.
    Exchange,
    // 4, direct, is no choice of its own: the payload of cells and shares may stay where it lies.
}

impl Regime {
    /// All of them.
    pub const ALL: [Regime; 4] = [Regime::Line, Regime::Cells, Regime::Shares, Regime::Exchange];

    /// Its name, in small letters.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Regime::Line => "line",
            Regime::Cells => "cells",
            Regime::Shares => "shares",
            Regime::Exchange => "exchange",
        }
    }

    /// Its number in a table: from 1 on.
    #[must_use]
    pub const fn number(self) -> u32 {
        self as u32 + 1
    }

    /// The regime of a number in a table.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|regime| regime.number() == number)
    }

    /// Whether it has an algorithm for `what`.
    #[must_use]
    pub const fn serves(self, what: Collective) -> bool {
        match what {
            Collective::Barrier => matches!(self, Regime::Line),
            Collective::Broadcast => matches!(self, Regime::Line | Regime::Cells),
            Collective::Reduce => !matches!(self, Regime::Exchange),
            Collective::Allreduce => true,
        }
    }
}

impl fmt::Display for Regime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a call moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vector {
    /// Bytes in all.
    pub bytes: usize,
    /// Bytes of an element: slices are whole elements.
    pub element: usize,
    /// Alignment of an element.
    pub align: usize,
    /// Whether the order of contributions is free.
    pub commutative: bool,
}

impl Vector {
    /// Bytes that may be cut anywhere and are not combined, or are combined in any order.
    #[must_use]
    pub const fn of_bytes(bytes: usize) -> Self {
        Self { bytes, element: 1, align: 1, commutative: true }
    }

    /// Whether an element can be combined where it lies in a line slot, behind the slot's stamp.
    #[inline]
    #[must_use]
    pub const fn fits_lines(&self) -> bool {
        self.element <= SLOT_PAYLOAD && self.align <= 8
    }
}

/// An algorithm with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The family.
    pub regime: Regime,
    /// Lines: everybody reads everybody (or the root everybody). Cells: the flat tree, whatever the plan says.
    pub flat: bool,
    /// Leaders among whom the vector is divided.
    pub leaders: usize,
    /// Bytes of an up cell.
    pub up_cell: usize,
    /// Number of up cells.
    pub up_slots: usize,
    /// Bytes of a down cell.
    pub down_cell: usize,
    /// Number of down cells.
    pub down_slots: usize,
}

/// How blocks are moved from rank to rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockChoice {
    /// Whether all that a rank publishes fits one slot of lines.
    pub lines: bool,
    /// Bytes of a part of an up cell.
    pub part: usize,
    /// Bytes of a slice of a block: whole elements.
    pub slice: usize,
    /// Bytes of an up cell.
    pub cell: usize,
    /// Number of up cells.
    pub slots: usize,
}

impl Choice {
    /// Its text, with the names of the trees that it takes (none for those that it does not).
    #[must_use]
    pub fn describe(&self, gather: Option<&String>, release: Option<&String>) -> String {
        let mut text = self.regime.name().to_owned();
        match self.regime {
            Regime::Line if self.flat => text.push_str(" flat"),
            Regime::Line => {}
            Regime::Cells => {
                if gather.is_some() {
                    text.push_str(&format!(" up {}x{}", self.up_slots, size(self.up_cell)));
                }
                if release.is_some() {
                    text.push_str(&format!(" down {}x{}", self.down_slots, size(self.down_cell)));
                }
            }
            Regime::Exchange => text.push_str(&format!(" {}x{}", self.up_slots, size(self.up_cell))),
            Regime::Shares => {
                text.push_str(&format!(" leaders={} slices<={}", self.leaders, size(self.up_cell)));
            }
        }
        let trees = self.regime == Regime::Cells || (self.regime == Regime::Line && !self.flat);
        if trees {
            for (step, tree) in [("gather", gather), ("release", release)] {
                if let Some(tree) = tree {
                    text.push_str(&format!(" {step}={tree}"));
                }
            }
        }
        text
    }
}

/// A choice in words, and its cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// Algorithm, cells, leaders, trees.
    pub text: String,
    /// The family of the algorithm.
    pub regime: Regime,
    /// Cache lines that the ranks on the longest chain of waits fetch from other cores, one after the other.
    pub critical_lines: u64,
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Bytes as a person writes them.
fn size(bytes: usize) -> String {
    if bytes >= 1024 && bytes.is_multiple_of(1024) { format!("{}KiB", bytes / 1024) } else { format!("{bytes}B") }
}
