//! From which size on buffers in shared memory are used where they lie: judged by the calls alone, without the trials
//! by which ranks judge it later, for the program that they are part of.

use shm_core::{Collective, Error};

use super::candidate::{Candidate, Lying};
use super::search::{Looked, Search, Times};
use super::threshold::not_in_lines;

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
            let taken = not_in_lines(ladder, bytes)?;
            Some([Lying::Copied, Lying::Direct].map(|lying| taken.lying(lying)))
        };
        self.threshold(what, built_in, two_at)
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
                    let lends = candidate.lying != Lying::Private && table.direct_from(what) <= bytes as u64;
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
            assert_eq!(selection.direct_from(finding.what), finding.direct, "{}", finding.what);
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
            assert!(finding.direct < built_in.direct_from(finding.what), "{}", finding.what);
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
