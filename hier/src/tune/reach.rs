//! From which size on private buffers are reached by kernel-assisted copies, and by how many ranks at a time.

use shm_core::select::READERS;
use shm_core::{Collective, Error};

use super::candidate::{Candidate, Lying};
use super::search::{Finding, Looked, Search, Times, choose};
use super::threshold::not_in_lines;

/// A copy by the kernel takes a system call: shorter messages are not looked at.
pub const LEAST_REACHED: usize = 16 << 10;

/// Ranks at a time, beside the built-in number; 0 is any number.
const OTHERS: [u32; 3] = [2, 8, 0];

impl<T: Times> Search<'_, T> {
    /// Finds both for a collective whose ladder is known, where ranks reach each other. Broadcasts of two ranks find it
    /// by trials of their own, and in the strict mode nothing is reached that the built-in table does not have reached.
    pub(super) fn reach(&mut self, finding: &mut Finding) -> Result<(), Error> {
        let what = finding.what;
        let has_trials = what == Collective::Broadcast && self.ranks == 2;
        if finding.strict || has_trials || self.ranks < 2 || !self.times.reaches() {
            return Ok(());
        }
        let ladder = &finding.ladder;
        let two_at = |bytes: usize| {
            let taken = not_in_lines(ladder, bytes).filter(|_| bytes >= LEAST_REACHED)?;
            Some([taken.clone(), taken.lying(Lying::Reached(READERS))])
        };
        let (reach, looked) = self.threshold(what, u64::MAX, two_at)?;
        finding.reach = (!looked.is_empty()).then_some(reach);
        finding.reach_looked = looked;
        let longest = self.effort.sizes.last().copied().unwrap_or(0);
        if reach > longest as u64 || self.ranks - 1 <= OTHERS[0] as usize {
            return Ok(());
        }
        let Some([_, usual]) = two_at(longest) else { return Ok(()) };
        // Numbers that all ranks are within are one, which is any.
        let most = self.ranks - 1;
        let others = OTHERS.into_iter().filter(|&readers| match readers {
            0 => most > READERS as usize,
            some => most > some as usize,
        });
        let numbers: Vec<u32> = std::iter::once(READERS).chain(others).collect();
        let candidates: Vec<Candidate> = numbers.iter().map(|&readers| usual.lying(Lying::Reached(readers))).collect();
        let figures = self.times.times(what, longest, &candidates)?;
        let (taken, why) = choose(&figures, None);
        finding.readers = Some(numbers[taken]);
        let times = candidates.iter().map(|candidate| candidate.name(what)).zip(figures).collect();
        finding.reach_looked.push(Looked { bytes: longest, times, taken, why });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Fingerprint, Table};
    use crate::tune::{Effort, Figures, Findings, explanation, table_of};

    /// A machine on which a reached buffer takes as long as a copied one of `even` bytes, and less if it is longer; and
    /// so many at a time are the quickest.
    struct Reaches {
        even: f64,
        best: u32,
        may: bool,
    }

    impl Times for Reaches {
        fn times(&mut self, what: Collective, bytes: usize, candidates: &[Candidate]) -> Result<Vec<Figures>, Error> {
            let time = |candidate: &Candidate| {
                let tuning = candidate.tuning(what).unwrap();
                // What reaches is what the table of the candidate has reach.
                let reaches = tuning.select(8, 1).reach_from(what) <= bytes as u64;
                assert_eq!(reaches, matches!(candidate.lying, Lying::Reached(_)));
                assert!(self.may || !reaches);
                match candidate.lying {
                    Lying::Reached(readers) => {
                        assert_eq!(tuning.readers, readers);
                        let penalty = if readers == self.best { 1.0 } else { 1.2 };
                        penalty * self.even / bytes as f64
                    }
                    _ => 1.0,
                }
            };
            Ok(candidates.iter().map(|candidate| Figures { blocks: vec![time(candidate); 5] }).collect())
        }

        fn reaches(&self) -> bool {
            self.may
        }
    }

    fn found(ranks: usize, times: Reaches) -> (Findings, Table, String) {
        let effort = Effort { halvings: 8, ..Effort::usual() };
        let findings = Search { effort: &effort, ranks, crowd: 1, times }.run().unwrap();
        let table = table_of(Fingerprint::of_this_machine(), std::slice::from_ref(&findings)).unwrap();
        let text = explanation(std::slice::from_ref(&findings));
        let read = Table::from_toml(&table.to_toml()).unwrap();
        assert_eq!(read.tuning().unwrap(), table.tuning().unwrap());
        (findings, read, text)
    }

    #[test]
    fn the_size_from_which_reaching_gains_is_found_and_how_many_at_a_time() {
        for (best, readers) in [(READERS, READERS), (2, 2), (0, 0)] {
            let (findings, table, text) = found(8, Reaches { even: 100_000.0, best, may: true });
            let tuning = table.tuning().unwrap();
            assert_eq!(tuning.readers, readers);
            let even = if best == READERS { 100_000.0 } else { 120_000.0 };
            for finding in findings.collectives.iter().filter(|finding| !finding.strict) {
                let from = finding.reach.unwrap() as f64;
                assert!((even / 1.05..=even * 1.05).contains(&from), "{}: {from}", finding.what);
                let reach = |size, crowd| tuning.select(size, crowd).reach_from(finding.what);
                assert_eq!(reach(8, 1) as f64, from);
                // Elsewhere nothing is said of it.
                assert_eq!(reach(8, 2), shm_core::select::REACH_FROM[finding.what as usize]);
            }
            assert!(text.contains("private buffers are reached by the kernel from"), "{text}");
        }
    }

    #[test]
    fn where_it_never_gains_or_cannot_be_it_is_as_it_was() {
        for (even, may) in [(1e12, true), (1.0, false)] {
            let (findings, table, _) = found(8, Reaches { even, best: READERS, may });
            let tuning = table.tuning().unwrap();
            assert_eq!(tuning.readers, READERS);
            for finding in findings.collectives {
                assert_eq!(finding.reach, (may && !finding.strict).then_some(u64::MAX));
                let least = tuning.select(8, 1).reach_from(finding.what);
                assert!(least >= shm_core::select::REACH_TRIED, "{}: {least}", finding.what);
            }
        }
    }

    #[test]
    fn broadcasts_of_two_ranks_are_left_to_their_trials() {
        let (findings, table, _) = found(2, Reaches { even: 100_000.0, best: READERS, may: true });
        let selection = table.tuning().unwrap().select(2, 1);
        for finding in findings.collectives {
            let tried = finding.what == Collective::Broadcast;
            assert_eq!(finding.reach.is_none(), tried);
            assert_eq!(selection.reach_from(finding.what) == shm_core::select::REACH_TRIED, tried);
        }
    }
}
