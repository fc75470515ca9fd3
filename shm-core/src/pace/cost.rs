//! What a way to fill cells costs, as far as figures say.

/// What one side of a way costs, for slices of one class.
#[derive(Clone, Copy, Default)]
pub(super) struct Known {
    /// The cost; 0 while it is unknown.
    pub cost: u64,
    /// Figures in a row that were far higher, and the least of them.
    highs: u32,
    high: u64,
}

/// Figures in a row that make a far higher cost the one that is known.
const AGREED: u32 = 3;

impl Known {
    /// Takes a lower figure at once, a higher one by and by, and of one that is far higher next to nothing: a rank that
    /// lost its core in the middle says little. Where they are to agree, several of these in a row are the cost.
    pub fn learn(&mut self, figure: u64, agrees: bool) {
        let Self { cost, highs, high } = *self;
        let is_high = cost != 0 && figure > 2 * cost;
        (self.highs, self.high) = match is_high {
            true => (highs + 1, if highs == 0 { figure } else { high.min(figure) }),
            false => (0, 0),
        };
        if agrees && self.highs == AGREED {
            *self = Self { cost: self.high, ..Self::default() };
            return;
        }
        self.cost = match cost {
            0 => figure,
            _ if figure < cost => figure,
            _ if is_high => cost + cost.div_ceil(32),
            _ => cost + (figure - cost).div_ceil(8),
        };
    }
}

/// What one way costs: its writer and its reader; and, of ordinary stores, to take the lines of cells that will be
/// filled, where that is done.
#[derive(Clone, Copy, Default)]
pub(super) struct Cost {
    pub write: Known,
    pub read: Known,
    pub take: Known,
}

impl Cost {
    /// What its writer pays.
    pub fn writes(&self) -> u64 {
        self.write.cost + self.take.cost / 2
    }

    /// Of a message of several slices one is filled while another is read: then the slower side alone counts, of one
    /// slice both do. So the quicker side counts for a half, unless no slice ever overlaps another. To take lines ahead
    /// does so, too: while the stores stand in line the caller does something else.
    pub fn total(&self, overlaps: bool) -> Option<u64> {
        let (write, read) = (self.writes(), self.read.cost);
        let both = if overlaps { write.max(read) + write.min(read) / 2 } else { write + read };
        (self.write.cost != 0 && read != 0).then_some(both)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A figure that is far higher changes next to nothing, nor do two in a row; three do.
    #[test]
    fn far_higher_figures_count_once_several_agree() {
        let mut known = Known::default();
        for (figure, cost) in
            [(100, 100), (900, 104), (900, 108), (140, 112), (900, 116), (700, 120), (800, 700), (90, 90), (180, 102)]
        {
            known.learn(figure, true);
            assert_eq!(known.cost, cost, "{figure}");
        }
    }
}
