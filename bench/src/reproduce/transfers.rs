//! The transfers of a scatter-ring broadcast, counted from the schedules, beside the formula.

use hier::schedule::{Algorithm, Goal};

use crate::error::{Error, Result};

/// What one broadcast transfers in its ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    /// Messages.
    pub messages: u64,
    /// Bytes of all of them.
    pub bytes: u64,
}

/// A broadcast of `ranks` ranks, native and saving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfers {
    /// Ranks.
    pub ranks: u32,
    /// With the ring that hands everybody everything.
    pub native: Ring,
    /// With the one that leaves out what ranks have from the scatter.
    pub saving: Ring,
    /// Bytes of the scatter, the same for both.
    pub scatter: u64,
}

impl Transfers {
    /// Counts a broadcast of `bytes` bytes from rank 0.
    ///
    /// # Errors
    ///
    /// [`Error::Usage`] for fewer than two ranks.
    pub fn count(ranks: u32, bytes: u64) -> Result<Transfers> {
        if ranks < 2 {
            return Err(Error::Usage(format!("a broadcast of {ranks} ranks has no transfers: give 2 or more")));
        }
        // The first rounds are the scatter: P-1 messages, one to each rank but the root. The ring has a round for each
        // rank but one.
        let count = |saving: bool| -> Result<(Ring, Ring)> {
            let pattern = Algorithm::ScatterRing { saving }
                .pattern(Goal::Broadcast { root: 0 }, ranks)
                .map_err(|error| Error::Usage(error.to_string()))?;
            let scatter = pattern.rounds() - (ranks - 1);
            let (mut before, mut ring) = (Ring { messages: 0, bytes: 0 }, Ring { messages: 0, bytes: 0 });
            for round in 0..pattern.rounds() {
                let part = if round < scatter { &mut before } else { &mut ring };
                for (_, _, sent) in pattern.flows(round, bytes as usize, 1) {
                    part.messages += 1;
                    part.bytes += sent;
                }
            }
            Ok((before, ring))
        };
        let ((scatter, native), (_, saving)) = (count(false)?, count(true)?);
        Ok(Transfers { ranks, native, saving, scatter: scatter.bytes })
    }

    /// The share of the ring's transfers that is left out.
    pub fn saved(&self) -> f64 {
        1.0 - self.saving.messages as f64 / self.native.messages as f64
    }

    /// How many times the bytes of the whole broadcast, scatter and all, are with the native ring of those with the
    /// saving one.
    pub fn bytes_ratio(&self) -> f64 {
        (self.scatter + self.native.bytes) as f64 / (self.scatter + self.saving.bytes) as f64
    }
}

/// The transfers of the saving ring by the formula: P² less the segments that ranks own after the scatter.
pub fn by_formula(ranks: u64) -> u64 {
    let own = |rank: u64| match rank {
        0 => ranks,
        rank => (1 << rank.trailing_zeros()).min(ranks - rank),
    };
    ranks * ranks - (0..ranks).map(own).sum::<u64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 8 and 10 ranks are those of the paper's figures 3 to 5.
    #[test]
    fn the_papers_figures_and_larger_ones() {
        for (ranks, native, saving) in [
            (8, 56, 44),
            (9, 72, 59),
            (10, 90, 75),
            (16, 240, 208),
            (17, 272, 239),
            (33, 1056, 975),
            (64, 4032, 3840),
            (65, 4160, 3967),
            (129, 16512, 16063),
            (256, 65280, 64256),
        ] {
            let counted = Transfers::count(ranks, 1 << 20).unwrap();
            assert_eq!((counted.native.messages, counted.saving.messages), (native, saving), "{ranks}");
        }
    }

    #[test]
    fn counting_finds_the_formula() {
        for ranks in 2..=80 {
            let counted = Transfers::count(ranks, 12288).unwrap();
            assert_eq!(counted.saving.messages, by_formula(u64::from(ranks)), "{ranks}");
            assert_eq!(counted.native.messages, u64::from(ranks) * u64::from(ranks - 1));
        }
    }

    /// Every rank but the root gets each byte at least once, and with the saving ring exactly once; the native one
    /// brings P-1 times all.
    #[test]
    fn bytes_are_those_that_are_needed() {
        for (ranks, bytes) in [(9, 12288), (10, 524_287), (16, 1 << 20), (33, 12288)] {
            let counted = Transfers::count(ranks, bytes).unwrap();
            assert_eq!(counted.native.bytes, bytes * u64::from(ranks - 1));
            assert!(counted.saving.bytes < counted.native.bytes && counted.bytes_ratio() > 1.0);
        }
        assert!(Transfers::count(1, 8).is_err());
    }
}
