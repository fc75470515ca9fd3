//! Which candidate for which sizes.

use shm_core::select::Band;
use shm_core::{Collective, Error, Regime, Step, Tuning};

use super::candidate::{Candidate, Lying, candidates};
use super::{Effort, Figures};
use crate::rules::TreeRules;
use crate::table::bare;

/// Where times come from.
pub trait Times {
    /// The times of candidates for messages of `bytes` bytes, taken in turns. The same on all ranks.
    ///
    /// # Errors
    /// When a call fails, or its answer is wrong.
    fn times(&mut self, what: Collective, bytes: usize, candidates: &[Candidate]) -> Result<Vec<Figures>, Error>;

    /// Whether candidates that reach into private memory can be carried out. The same on all ranks.
    fn reaches(&self) -> bool {
        false
    }
}

/// What was looked at for one message size.
#[derive(Clone, Debug, PartialEq)]
pub struct Looked {
    /// Bytes.
    pub bytes: usize,
    /// The candidates' names, with their times.
    pub times: Vec<(String, Figures)>,
    /// Which one was taken, and why.
    pub taken: usize,
    /// Why.
    pub why: String,
}

/// What was found for one collective.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The collective.
    pub what: Collective,
    /// Whether this is for the strict mode.
    pub strict: bool,
    /// From how many bytes on, which candidate, and a remark with the times beside it.
    pub ladder: Vec<(usize, Candidate, String)>,
    /// All that was looked at, by size.
    pub looked: Vec<Looked>,
    /// Bytes from which buffers in shared memory are used where they lie; `u64::MAX` for never.
    pub direct: u64,
    /// What was looked at for that, by size.
    pub direct_looked: Vec<Looked>,
    /// Bytes from which private buffers are reached by kernel-assisted copies, `u64::MAX` for never; nothing where that
    /// was not looked at, and is as in the built-in table.
    pub reach: Option<u64>,
    /// What was looked at for that, by size, and at last for how many do so at a time.
    pub reach_looked: Vec<Looked>,
    /// How many ranks are best to reach into one rank's memory at a time, 0 for any number, where that was looked at.
    pub readers: Option<u32>,
}

/// What was found on one number of ranks.
#[derive(Clone, Debug, PartialEq)]
pub struct Findings {
    /// Ranks.
    pub ranks: usize,
    /// Ranks for each core: what is found where each has its own says nothing of jobs whose ranks share cores, nor the
    /// other way round.
    pub crowd: u32,
    /// The trees.
    pub trees: TreeRules,
    /// Parts of `PHALANX_TREES` that say where they differ from the usual ones.
    pub tree_parts: Vec<String>,
    /// Whether lines that are exchanged flat were beaten by lines over trees.
    pub flat_lines_lose: bool,
    /// By collective.
    pub collectives: Vec<Finding>,
}

/// The search on one number of ranks.
pub struct Search<'a, T> {
    /// How thorough it is.
    pub effort: &'a Effort,
    /// Ranks.
    pub ranks: usize,
    /// Ranks for each core.
    pub crowd: u32,
    /// Where times come from.
    pub times: T,
}

/// The collectives that are searched on so many ranks, and whether in the strict mode.
pub(super) fn searched(effort: &Effort, ranks: usize) -> Vec<(Collective, bool)> {
    let mut all = [Collective::Broadcast, Collective::Reduce, Collective::Allreduce].map(|what| (what, false)).to_vec();
    // Two ranks have no deep trees: everything is in rank order there.
    if effort.strict && ranks > 2 {
        all.extend([Collective::Reduce, Collective::Allreduce].map(|what| (what, true)));
    }
    all
}

/// The sizes at which candidates are compared: these, and one in each of the built-in bands that has none of them, or
/// it would be gone unlooked at.
fn sizes(usual: &[usize], built_in: &[Band]) -> Vec<usize> {
    let mut sizes = usual.to_vec();
    for (at, band) in built_in.iter().enumerate() {
        let end = built_in.get(at + 1).map_or(u64::MAX, |next| next.from);
        let is_within = |bytes: u64| (band.from..end).contains(&bytes);
        if !usual.iter().any(|&bytes| is_within(bytes as u64)) {
            let round = band.from.next_power_of_two();
            sizes.push(if is_within(round) { round } else { band.from } as usize);
        }
    }
    sizes.sort_unstable();
    sizes
}

/// Trees that are compared, by step.
const RELEASES: [&str; 4] = ["flat", "knomial:2", "kary:2", "kary:4"];
const GATHERS: [&str; 4] = ["kary:3", "kary:2", "flat", "knomial:2"];
/// For messages below this, and from there on.
const TREE_EDGE: usize = 8 << 10;
const TREE_SIZES: [usize; 2] = [2 << 10, 64 << 10];

/// The step of which a collective shows how long it takes.
fn step_of(what: Collective) -> Step {
    if what == Collective::Broadcast { Step::Release } else { Step::Gather }
}

/// The trees that calls take where no table and nobody says otherwise, for messages of the sizes at which trees are
/// compared.
fn usual_trees(what: Collective, ranks: usize, crowd: u32) -> [String; 2] {
    let rules = TreeRules::default().on_crowd(crowd);
    let step = step_of(what);
    TREE_SIZES.map(|bytes| rules.tree(step, ranks, rules.class(step, ranks, bytes)).to_string())
}

impl<T: Times> Search<'_, T> {
    /// Searches everything.
    ///
    /// # Errors
    /// Those of the measurements.
    pub fn run(&mut self) -> Result<Findings, Error> {
        let (trees, tree_parts) = self.trees()?;
        let flat_lines_lose = self.barriers(&trees)?;
        let collectives = searched(self.effort, self.ranks)
            .into_iter()
            .map(|(what, strict)| self.collective(what, strict, &trees))
            .collect::<Result<Vec<_>, Error>>()?;
        Ok(Findings { ranks: self.ranks, crowd: self.crowd, trees, tree_parts, flat_lines_lose, collectives })
    }

    /// The trees: the usual ones, where no other wins by more than the spread.
    fn trees(&mut self) -> Result<(TreeRules, Vec<String>), Error> {
        let mut parts = Vec::new();
        if self.ranks > 2 {
            for (step, names, what) in
                [("release", RELEASES, Collective::Broadcast), ("gather", GATHERS, Collective::Reduce)]
            {
                let mut best = [""; 2];
                let usual = usual_trees(what, self.ranks, self.crowd);
                for (at, bytes) in TREE_SIZES.into_iter().enumerate() {
                    let usual = usual[at].as_str();
                    let order: Vec<&str> =
                        std::iter::once(usual).chain(names.into_iter().filter(|&name| name != usual)).collect();
                    let band = Band::new(0, Regime::Cells);
                    let candidates = order
                        .iter()
                        .map(|name| {
                            let trees = format!("{step}: {name}").parse()?;
                            Ok(Candidate { band, trees, strict: false, flat: true, lying: Lying::Private })
                        })
                        .collect::<Result<Vec<_>, Error>>()?;
                    let figures = self.times.times(what, bytes, &candidates)?;
                    best[at] = order[choose(&figures, None).0];
                }
                if best != usual {
                    // As of rules: what is found says nothing of jobs of the other kind.
                    let jobs = if self.crowd > 1 { "crowded" } else { "uncrowded" };
                    let whom = format!("({} {jobs})", self.ranks);
                    let short = if step == "gather" && self.crowd <= 1 { "knomial:4 < 512, " } else { "" };
                    parts.push(match best {
                        [one, other] if one == other => format!("{step}{whom}: {short}{one}"),
                        // As it is for long ones, however many ranks a core has.
                        [one, other] if other == usual[1] && self.crowd > 1 => {
                            let long = TreeRules::default().crowded_text(step_of(what), self.ranks, TREE_EDGE);
                            format!("{step}{whom}: {one} < {TREE_EDGE}, {long}")
                        }
                        [one, other] => format!("{step}{whom}: {short}{one} < {TREE_EDGE}, {other}"),
                    });
                }
            }
        }
        Ok((parts.join("; ").parse()?, parts))
    }

    /// Whether a barrier over trees of lines beats the flat one.
    fn barriers(&mut self, trees: &TreeRules) -> Result<bool, Error> {
        // Nobody is flat beyond these.
        if !(3..=shm_core::select::FLAT_RANKS as usize).contains(&self.ranks) {
            return Ok(false);
        }
        let band = Band::line(0);
        let candidates = [true, false].map(|flat| Candidate {
            band,
            trees: trees.clone(),
            strict: false,
            flat,
            lying: Lying::Private,
        });
        let figures = self.times.times(Collective::Barrier, 0, &candidates)?;
        Ok(choose(&figures, None).0 == 1)
    }

    /// All candidates at some sizes, and the edges between those that were taken.
    fn collective(&mut self, what: Collective, strict: bool, trees: &TreeRules) -> Result<Finding, Error> {
        let mut built_in = Tuning::default();
        built_in.strict = u32::from(strict);
        let built_in = built_in.here().select(self.ranks, self.crowd);
        let mut looked: Vec<Looked> = Vec::new();
        let mut taken: Vec<Candidate> = Vec::new();
        for bytes in sizes(&self.effort.sizes, built_in.bands(what)) {
            let mut candidates = candidates(what, bytes, self.ranks, strict, &built_in, trees);
            // The one of the size below is there too: it goes on unless another one wins.
            if let Some(last) = taken.last().filter(|last| last.band.regime() != Some(Regime::Line))
                && candidates.iter().all(|one| one.name(what) != last.name(what))
            {
                candidates.push(last.clone());
            }
            let figures = self.times.times(what, bytes, &candidates)?;
            let name = |candidate: &Candidate| candidate.name(what);
            let before = taken.last().and_then(|last| candidates.iter().position(|one| name(one) == name(last)));
            let (at, why) = choose(&figures, before);
            let times = candidates.iter().map(name).zip(figures).collect();
            looked.push(Looked { bytes, times, taken: at, why });
            taken.push(candidates[at].clone());
        }
        let mut ladder = vec![(0, taken[0].clone(), remark(&looked[0]))];
        for at in 1..taken.len() {
            let (one, other) = (taken[at - 1].clone(), taken[at].clone());
            if one.name(what) != other.name(what) {
                let (low, high) = (looked[at - 1].bytes, looked[at].bytes);
                // Between sizes so close nothing is to be gained by more of them.
                let edge = if high <= 2 * low { high } else { self.edge(what, [&one, &other], low, high)? };
                ladder.push((edge, other, remark(&looked[at])));
            }
        }
        // A ladder has so many rungs: those that span the least are given to the one below.
        while ladder.len() > shm_core::select::MOST_BANDS {
            let span =
                |at: usize| ladder.get(at + 1).map_or(f64::INFINITY, |next| next.0 as f64 / ladder[at].0.max(1) as f64);
            let least = (1..ladder.len()).min_by(|&a, &b| span(a).total_cmp(&span(b))).unwrap_or(1);
            ladder.remove(least);
        }
        let built_in = built_in.direct_from(what);
        // Of calls in rank order nothing else is to be expected.
        let (direct, direct_looked) = match strict {
            true => (built_in, Vec::new()),
            false => self.direct(what, &ladder, built_in)?,
        };
        let mut finding = Finding {
            what,
            strict,
            ladder,
            looked,
            direct,
            direct_looked,
            reach: None,
            reach_looked: vec![],
            readers: None,
        };
        self.reach(&mut finding)?;
        Ok(finding)
    }

    /// From how many bytes on the second one of two is faster, between a size where the first is and one where the
    /// second is.
    pub(super) fn edge(
        &mut self,
        what: Collective,
        two: [&Candidate; 2],
        low: usize,
        high: usize,
    ) -> Result<usize, Error> {
        let (mut low, mut high) = (low, high);
        for _ in 0..self.effort.halvings {
            let middle = ((low as f64 * high as f64).sqrt() / 64.0).round() as usize * 64;
            if middle <= low || middle >= high {
                break;
            }
            let figures = self.times.times(what, middle, &[two[0].clone(), two[1].clone()])?;
            if figures[1].median() < figures[0].median() {
                high = middle;
            } else {
                low = middle;
            }
        }
        Ok(high)
    }
}

/// Which one to take, and why: the first (that of the built-in table), unless another wins by more than the spread;
/// then the one of the size below, unless the fastest wins over that too.
pub(super) fn choose(figures: &[Figures], before: Option<usize>) -> (usize, String) {
    let fastest = (0..figures.len()).min_by(|&a, &b| figures[a].median().total_cmp(&figures[b].median())).unwrap_or(0);
    if fastest == 0 {
        return (0, "built in, and fastest".to_owned());
    }
    if !figures[fastest].beat(&figures[0]) {
        return (0, "built in, and not beaten by more than the spread".to_owned());
    }
    if let Some(before) = before.filter(|&before| before != fastest)
        && figures[before].beat(&figures[0])
        && !figures[fastest].beat(&figures[before])
    {
        return (before, "as below, where the fastest is not faster by more than the spread".to_owned());
    }
    let gain = figures[0].median() / figures[fastest].median();
    (fastest, format!("{gain:.2} times as fast as the built-in one"))
}

/// The times beside a choice, for the file.
fn remark(looked: &Looked) -> String {
    let mut order: Vec<&(String, Figures)> = looked.times.iter().collect();
    order.sort_by(|a, b| a.1.median().total_cmp(&b.1.median()));
    let words: Vec<String> =
        order.iter().take(3).map(|(name, figures)| format!("{name} {:.3}", figures.median())).collect();
    format!("{}: {} us", bare(looked.bytes as u64), words.join(", "))
}

#[cfg(test)]
mod tests;
