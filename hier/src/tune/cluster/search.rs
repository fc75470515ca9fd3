//! Which candidate for which sizes.

use shm_core::Collective;

use super::super::search::choose;
use super::super::{Effort, Figures};
use super::candidate::{Candidate, Shape, leaders, schedules, slices};
use crate::across::{NetworkModel, Result};
use crate::table::bare;

/// Where times come from.
pub trait Times {
    /// The times of candidates for messages of `bytes` bytes, taken in turns. The same on all ranks.
    ///
    /// # Errors
    /// When a call fails, or its answer is wrong.
    fn times(&mut self, what: Collective, bytes: usize, candidates: &[Candidate]) -> Result<Vec<Figures>>;

    /// What messages cost.
    ///
    /// # Errors
    /// When they fail.
    fn network(&mut self) -> Result<NetworkModel>;
}

/// What one question at one message size was answered with.
#[derive(Clone, Debug, PartialEq)]
pub struct Looked {
    /// Bytes.
    pub bytes: usize,
    /// The candidates, with their times.
    pub times: Vec<(Candidate, Figures)>,
    /// Which one was taken.
    pub taken: usize,
    /// Why.
    pub why: String,
}

/// What was found for one collective.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The collective.
    pub what: Collective,
    /// From how many bytes on, which candidate, and a remark with the times beside it.
    pub ladder: Vec<(usize, Candidate, String)>,
    /// All that was looked at, by size.
    pub looked: Vec<Looked>,
}

/// What was found on a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Findings {
    /// Nodes and ranks.
    pub shape: Shape,
    /// What messages cost.
    pub network: NetworkModel,
    /// By collective.
    pub collectives: Vec<Finding>,
}

/// The search on a cluster.
pub struct Search<'a, T> {
    /// How thorough it is.
    pub effort: &'a Effort,
    /// Nodes and ranks.
    pub shape: Shape,
    /// Where times come from.
    pub times: T,
}

impl<T: Times> Search<'_, T> {
    /// Searches everything.
    ///
    /// # Errors
    /// Those of the measurements.
    pub fn run(&mut self) -> Result<Findings> {
        let network = self.times.network()?;
        let all = [Collective::Allreduce, Collective::Broadcast, Collective::Reduce];
        let collectives = all.into_iter().map(|what| self.collective(what, &network)).collect::<Result<_>>()?;
        Ok(Findings { shape: self.shape, network, collectives })
    }

    fn collective(&mut self, what: Collective, network: &NetworkModel) -> Result<Finding> {
        let mut looked = Vec::new();
        let mut ladder: Vec<(usize, Candidate, String)> = Vec::new();
        let mut below = 0;
        let shape = self.shape;
        for &bytes in &self.effort.sizes {
            let last = ladder.last().map(|(_, candidate, _)| *candidate);
            let mut taken = self.look(what, schedules(what, bytes, shape, network), last, bytes, &mut looked)?;
            for others in [|what, _, taken, shape| leaders(what, taken, shape), slices] {
                taken = self.look(what, others(what, bytes, taken, shape), last, bytes, &mut looked)?;
            }
            match last {
                None => ladder.push((0, taken, remark(what, &looked, bytes))),
                Some(last) if last != taken => {
                    let edge = self.edge(what, [last, taken], below, bytes)?;
                    ladder.push((edge, taken, remark(what, &looked, bytes)));
                }
                Some(_) => {}
            }
            below = bytes;
        }
        Ok(Finding { what, ladder, looked })
    }

    /// Compares candidates, the usual one first. `last` is what the size below takes: of others that are as fast it
    /// stays.
    fn look(
        &mut self,
        what: Collective,
        candidates: Vec<Candidate>,
        last: Option<Candidate>,
        bytes: usize,
        looked: &mut Vec<Looked>,
    ) -> Result<Candidate> {
        if let [only] = candidates[..] {
            return Ok(only);
        }
        let figures = self.times.times(what, bytes, &candidates)?;
        let before = candidates.iter().position(|candidate| Some(*candidate) == last);
        let (taken, why) = choose(&figures, before);
        // The first one is what the model, or the answer to the last question, would have.
        let why = why.replace("the built-in one", "the usual one").replace("built in", "usual");
        let candidate = candidates[taken];
        looked.push(Looked { bytes, times: candidates.into_iter().zip(figures).collect(), taken, why });
        Ok(candidate)
    }

    /// From how many bytes on the second one of two is faster, between a size that takes the first and one that takes
    /// the second.
    fn edge(&mut self, what: Collective, two: [Candidate; 2], mut low: usize, mut high: usize) -> Result<usize> {
        for _ in 0..self.effort.halvings {
            let middle = ((low as f64 * high as f64).sqrt() / 64.0).round() as usize * 64;
            if middle <= low || middle >= high {
                break;
            }
            let figures = self.times.times(what, middle, &two)?;
            if figures[1].median() < figures[0].median() {
                high = middle;
            } else {
                low = middle;
            }
        }
        Ok(high)
    }
}

/// The times beside a choice, for the file: the fastest three of one size.
fn remark(what: Collective, looked: &[Looked], bytes: usize) -> String {
    let mut times: Vec<&(Candidate, Figures)> =
        looked.iter().filter(|looked| looked.bytes == bytes).flat_map(|looked| &looked.times).collect();
    times.sort_by(|a, b| a.1.median().total_cmp(&b.1.median()));
    let mut words: Vec<String> = Vec::new();
    for (candidate, figures) in times {
        let name = candidate.words(what);
        if words.len() < 3 && !words.iter().any(|word| word.starts_with(&format!("{name} "))) {
            words.push(format!("{name} {:.1}", figures.median()));
        }
    }
    format!("{}: {} us", bare(bytes as u64), words.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::across::Line;
    use crate::schedule::Algorithm;

    /// A network whose costs are known, on which leaders halve the time of messages from some size on, and slices save
    /// a tenth.
    struct Known {
        network: NetworkModel,
        nodes: u32,
        asked: usize,
    }

    impl Times for Known {
        fn times(&mut self, what: Collective, bytes: usize, candidates: &[Candidate]) -> Result<Vec<Figures>> {
            self.asked += 1;
            let goal = match what {
                Collective::Broadcast => crate::schedule::Goal::Broadcast { root: 0 },
                Collective::Reduce => crate::schedule::Goal::Reduce { root: 0 },
                _ => crate::schedule::Goal::Allreduce,
            };
            let figures = candidates.iter().map(|candidate| {
                let mut time = self.network.time(&candidate.algorithm.pattern(goal, self.nodes).unwrap(), bytes);
                if bytes > 100_000 {
                    time /= candidate.leaders.min(2) as f64;
                }
                if candidate.slice == Some(256 << 10) {
                    time *= 0.9;
                }
                Figures { blocks: vec![time, time * 1.01, time * 0.99] }
            });
            Ok(figures.collect())
        }

        fn network(&mut self) -> Result<NetworkModel> {
            // Measured wrong, so that choices are not those of the model alone.
            Ok(NetworkModel::default())
        }
    }

    #[test]
    fn a_known_network_is_found_out() {
        let network = NetworkModel {
            shift: Line { latency: 100.0, per_byte: 0.08 },
            exchange: Line { latency: 100.0, per_byte: 0.16 },
        };
        let shape = Shape { nodes: 8, ranks_a_node: 4 };
        let effort = Effort { halvings: 8, ..Effort::usual_across() };
        let mut search = Search { effort: &effort, shape, times: Known { network, nodes: 8, asked: 0 } };
        let findings = search.run().unwrap();
        let allreduce = findings.collectives.iter().find(|finding| finding.what == Collective::Allreduce).unwrap();
        let ladder: Vec<_> = allreduce.ladder.iter().map(|(from, candidate, _)| (*from, *candidate)).collect();
        // Rounds: 3 of n bytes, against 4 of 2 n in all; even at 100 / 0.16 bytes.
        assert_eq!((ladder[0].0, ladder[0].1.algorithm), (0, Algorithm::RecursiveDoubling));
        assert!((560..=750).contains(&ladder[1].0), "{ladder:?}");
        let last = ladder.last().unwrap().1;
        assert_eq!((last.algorithm, last.leaders, last.slice), (Algorithm::Ring, 2, Some(256 << 10)), "{ladder:?}");
        for finding in &findings.collectives {
            assert!(finding.ladder[0].0 == 0 && finding.ladder.is_sorted_by(|a, b| a.0 < b.0), "{:?}", finding.ladder);
        }
        assert!(search.times.asked < 120, "{}", search.times.asked);
    }

    #[test]
    fn where_all_are_equal_the_model_decides() {
        struct Equal;
        impl Times for Equal {
            fn times(&mut self, _: Collective, _: usize, candidates: &[Candidate]) -> Result<Vec<Figures>> {
                Ok(vec![Figures { blocks: vec![1.0, 1.2, 0.9] }; candidates.len()])
            }
            fn network(&mut self) -> Result<NetworkModel> {
                Ok(NetworkModel::default())
            }
        }
        let (effort, shape) = (Effort::usual_across(), Shape { nodes: 5, ranks_a_node: 2 });
        let findings = Search { effort: &effort, shape, times: Equal }.run().unwrap();
        for finding in &findings.collectives {
            assert!(finding.looked.iter().all(|looked| looked.taken == 0));
            assert!(finding.ladder.iter().all(|(_, one, _)| one.leaders == 1 && one.slice.is_none()));
        }
    }
}
