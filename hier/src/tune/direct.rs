//! From which size on buffers in shared memory are used where they lie: judged by the calls alone, without the trials
//! by which ranks judge it later, for the program that they are part of.

use shm_core::{Collective, Error, Regime};

use super::candidate::{Candidate, Lying};
use super::search::{Looked, Search, Times, choose};

impl<T: Times> Search<'_, T> {
    /// From how many bytes on buffers in shared memory are used where they lie: as the built-in table says, where
    /// nothing else wins by more than the spread.
    pub(super) fn direct(
        &mut self,
        what: Collective,
        ladder: &[(usize, Candidate, String)],
        built_in: u64,
    ) -> Result<(u64, Vec<Looked>), Error> {
        let two_at = |bytes: usize| {
            let (_, taken, _) = ladder.iter().rfind(|(from, ..)| *from <= bytes)?;
            let lying = |lying| Candidate { lying, ..taken.clone() };
            (taken.band.regime() != Some(Regime::Line)).then(|| [lying(Lying::Copied), lying(Lying::Direct)])
        };
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
            if built_in <= bytes as u64 {
                candidates.reverse();
            }
            let figures = self.times.times(what, bytes, &candidates)?;
            let (taken, why) = choose(&figures, None);
            wins.push(candidates[taken].lying == Lying::Direct);
            let times = candidates.iter().map(|candidate| candidate.name(what)).zip(figures).collect();
            looked.push(Looked { bytes, times, taken, why });
        }
        let as_built_in = looked.iter().all(|looked| looked.taken == 0);
        let direct = match wins.iter().rposition(|wins| !wins) {
            _ if as_built_in => built_in,
            // Of shorter messages nothing was measured.
            None => looked[0].bytes as u64,
            // Nor of longer ones.
            Some(last) if last + 1 == wins.len() => built_in.max(2 * looked[last].bytes as u64),
            Some(last) => {
                let (low, high) = (looked[last].bytes, looked[last + 1].bytes);
                match two_at(high) {
                    Some([copied, direct]) => self.edge(what, [&copied, &direct], low, high)? as u64,
                    None => high as u64,
                }
            }
        };
        Ok((direct, looked))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::{Effort, Figures, Finding, explanation, table_of};

    /// A machine on which calls on lent buffers take as long as copies of `even` bytes: less for longer ones, or for
    /// shorter ones.
    struct Lends {
        even: f64,
        long_ones: bool,
    }

    impl Times for Lends {
        fn times(&mut self, what: Collective, bytes: usize, candidates: &[Candidate]) -> Result<Vec<Figures>, Error> {
            Ok(candidates
                .iter()
                .map(|candidate| {
                    // What lends is what the table of the candidate has lend.
                    let table = candidate.tuning(what).unwrap().select(2, 1);
                    let lends = candidate.lying != Lying::Private && table.direct_least(what) <= bytes as u64;
                    let ratio = bytes as f64 / self.even;
                    let time = match (lends, self.long_ones) {
                        (false, _) => 1.0,
                        (true, true) => 1.0 / ratio,
                        (true, false) => ratio,
                    };
                    Figures { blocks: vec![time; 5] }
                })
                .collect())
        }
    }

    fn found(even: f64, long_ones: bool) -> Vec<Finding> {
        let effort = Effort { halvings: 8, ..Effort::usual() };
        let mut search = Search { effort: &effort, ranks: 2, crowd: 1, times: Lends { even, long_ones } };
        let findings = search.run().unwrap();
        let table = table_of(crate::table::Fingerprint::of_this_machine(), std::slice::from_ref(&findings)).unwrap();
        let selection = table.tuning().unwrap().select(2, 1);
        let text = explanation(std::slice::from_ref(&findings));
        for finding in &findings.collectives {
            assert_eq!(selection.direct_least(finding.what), finding.direct, "{}", finding.what);
            assert!(finding.direct_looked.len() >= 5);
        }
        assert!(text.contains("used where they lie from"), "{text}");
        findings.collectives
    }

    #[test]
    fn the_size_at_which_both_take_as_long_is_found() {
        for even in [20_000.0, 100_000.0, 1e6] {
            for finding in found(even, true) {
                let direct = finding.direct as f64;
                assert!((even / 1.05..=even * 1.05).contains(&direct), "{} of {even}", finding.direct);
            }
        }
    }

    #[test]
    fn nothing_is_said_of_sizes_that_were_not_measured() {
        let built_in = shm_core::Tuning::default().select(2, 1);
        // Always quicker: from the shortest on that was measured.
        for finding in found(1.0, true) {
            assert_eq!(finding.direct, finding.direct_looked[0].bytes as u64);
            assert!(finding.direct < built_in.direct_least(finding.what), "{}", finding.what);
        }
        // Never: beyond the longest.
        for finding in found(1e12, true) {
            let longest = finding.direct_looked.last().unwrap().bytes as u64;
            assert_eq!(finding.direct, 2 * longest, "{}", finding.what);
        }
        // Quicker for short ones: no threshold says that, and the longest decides.
        for finding in found(50_000.0, false) {
            let longest = finding.direct_looked.last().unwrap().bytes as u64;
            assert_eq!(finding.direct, 2 * longest, "{}", finding.what);
        }
    }
}
