//! From which size on one candidate takes another's place.

use shm_core::{Collective, Error, Regime};

use super::candidate::Candidate;
use super::search::{Looked, Search, Times, choose};

/// What a ladder takes for a message of so many bytes, if that is not lines, which are copied wherever buffers lie.
pub(super) fn not_in_lines(ladder: &[(usize, Candidate, String)], bytes: usize) -> Option<&Candidate> {
    let (_, taken, _) = ladder.iter().rfind(|(from, ..)| *from <= bytes)?;
    (taken.band.regime() != Some(Regime::Line)).then_some(taken)
}

impl<T: Times> Search<'_, T> {
    /// From how many bytes on the second one of two is taken, which there are at each size, if any: as the built-in table
    /// says, where nothing else wins by more than the spread; `u64::MAX` for never.
    pub(super) fn threshold(
        &mut self,
        what: Collective,
        built_in: u64,
        two_at: impl Fn(usize) -> Option<[Candidate; 2]>,
    ) -> Result<(u64, Vec<Looked>), Error> {
        let mut looked: Vec<Looked> = Vec::new();
        let mut wins = Vec::new();
        // The built-in table's edge is looked at too: what is measured on both sides of it alone would agree with it
        // wherever the machine's own lies between.
        let mut sizes = self.effort.sizes.clone();
        if let (Some(&first), Some(&last)) = (sizes.first(), sizes.last()) {
            sizes.extend(usize::try_from(built_in).ok().filter(|edge| (first..last).contains(edge)));
        }
        sizes.sort_unstable();
        sizes.dedup();
        for bytes in sizes {
            let Some(mut candidates) = two_at(bytes) else { continue };
            let second_is_usual = built_in <= bytes as u64;
            if second_is_usual {
                candidates.reverse();
            }
            let figures = self.times.times(what, bytes, &candidates)?;
            let (taken, why) = choose(&figures, None);
            wins.push((taken == 0) == second_is_usual);
            let times = candidates.iter().map(|candidate| candidate.name(what)).zip(figures).collect();
            looked.push(Looked { bytes, times, taken, why });
        }
        let as_built_in = looked.iter().all(|looked| looked.taken == 0);
        let from = match wins.iter().rposition(|wins| !wins) {
            _ if as_built_in => built_in,
            // Of shorter messages nothing was measured.
            None => looked[0].bytes as u64,
            // Nor of longer ones.
            Some(last) if last + 1 == wins.len() => built_in.max(2 * looked[last].bytes as u64),
            Some(last) => {
                let (low, high) = (looked[last].bytes, looked[last + 1].bytes);
                match two_at(high) {
                    Some([first, second]) => self.edge(what, [&first, &second], low, high)? as u64,
                    None => high as u64,
                }
            }
        };
        Ok((from, looked))
    }
}
