//! Which tree a message takes: rules by size, for each step.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

#[cfg(doc)]
use shm_core::Links;
use shm_core::job::variable;
use shm_core::segment::layout::MOST_RANKS;
use shm_core::select::number_of_bytes;
use shm_core::{Error, MOST_CLASSES, Step};
use topo::{Level, TreeSpec};

/// The variable that changes the rules.
pub(crate) const VARIABLE: &str = "PHALANX_TREES";

/// Trees by message size, for the release step (broadcast) and the gather step (reduction), set apart.
///
/// ```text
/// rules = part [ ; part ]..
/// part  = step [ ( whom ) ] : tree [ < bytes ] [ , tree [ < bytes ] ]..
/// step  = release | gather
/// whom  = ranks | jobs | ranks jobs
/// jobs  = crowded | uncrowded
/// ranks = 4 | 3..8
/// ```
/// A message takes the first tree whose limit it is below; the last one has no limit. `tree` is spelled as topo spells
/// it: `flat`, `knomial:4`, `kary:3:right`; `knomial:crowd` is the k-nomial tree whose k is the number of ranks for
/// each core, rounded up (2 at least), and `relay:crowd` the same, of which each group of k neighbours is a
/// [relay](Links::in_relay). Limits take the suffixes K and M. A part that names numbers of ranks is for
/// communicators of so many, one that says `crowded` for jobs with more ranks than cores, one that says `uncrowded` for
/// the others; the first part that fits counts, whatever stands after it, and one that names nothing is for all others.
///
/// The default is that of Jain et al. (SC18), but unaware of sockets: by default the bits of a sum depend on where the
/// ranks are bound only as far as they share cores then. Where they do, each level of a tree costs a turn of everybody
/// on the core, which is more than a root that reads everybody's message takes, unless that is long: so gather trees of
/// up to 64 ranks are flat there. Long messages are combined by the ranks of each core first, and then across cores: in
/// a tree of base c, where c ranks share each core, neighbours in rank order, one of them gathers what the others have;
/// or, in a relay, each adds to one cell what it has and hands it on, so that the cache of a core need not hold cells of
/// all of them.
/// (Groups begin with ranks 0, c, 2c and so on; where c does not divide the ranks, with that of the root.)
/// `PHALANX_TREES` asks for others, before a table does; an empty text is as none.
///
/// ```
/// let rules: hier::TreeRules = "gather(1..4 crowded): flat < 48K, knomial:crowd; \
///                               gather(5..16 crowded): flat < 48K, knomial:crowd < 128K, relay:crowd; \
///                               gather(17..64 crowded): flat < 24K, knomial:crowd < 128K, relay:crowd; \
///                               gather: knomial:4 < 512, kary:3 < 8K, kary:2; release: flat".parse().unwrap();
/// assert_eq!(rules, hier::TreeRules::default());
/// assert_eq!(rules.to_string().parse(), Ok(rules));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeRules {
    /// T1: the last list of each step is for all numbers of ranks, in jobs of every kind.
    release: Vec<List>,
    gather: Vec<List>,
}

/// The trees of a step on communicators of some sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct List {
    ranks: RangeInclusive<usize>,
    jobs: Jobs,
    /// T2: not empty; limits rise, and the last one is `usize::MAX`.
    rules: Vec<Rule>,
}

/// The jobs that a list is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Jobs {
    All,
    /// Those with more ranks than cores.
    Crowded,
    /// Those with a core for each rank.
    Uncrowded,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    tree: TreeSpec,
    /// How it goes by how many ranks each core has, where it does: that is its k, or will be once it is known.
    of_crowd: Option<OfCrowd>,
    /// Messages below so many bytes.
    below: usize,
}

/// A tree that goes by how many ranks share each core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OfCrowd {
    /// Of the ranks of each core one gathers what the others have.
    Knomial,
    /// They hand on one cell, to which each adds what it has.
    Relay,
}

impl OfCrowd {
    const ALL: [OfCrowd; 2] = [OfCrowd::Knomial, OfCrowd::Relay];

    /// The kind of tree, as it is spelled.
    fn kind(self) -> &'static str {
        match self {
            OfCrowd::Knomial => "knomial",
            OfCrowd::Relay => "relay",
        }
    }
}

/// All numbers of ranks.
const ALL: RangeInclusive<usize> = 1..=MOST_RANKS;

impl Default for TreeRules {
    fn default() -> Self {
        let rule = |tree, below| Rule { tree, of_crowd: None, below };
        let list = |rules| List { ranks: ALL, jobs: Jobs::All, rules };
        // Measured with 3 to 32 ranks on two cores; for more, as for 32.
        let crowded = |ranks, flat_below, knomial_below| {
            let of = |kind, below| Rule { of_crowd: Some(kind), ..rule(of_crowd(2), below) };
            let mut rules = vec![rule(TreeSpec::flat(), flat_below), of(OfCrowd::Knomial, knomial_below)];
            if knomial_below < usize::MAX {
                rules.push(of(OfCrowd::Relay, usize::MAX));
            }
            List { ranks, jobs: Jobs::Crowded, rules }
        };
        let usual =
            vec![rule(TreeSpec::knomial(4), 512), rule(TreeSpec::kary(3), 8192), rule(TreeSpec::kary(2), usize::MAX)];
        Self {
            release: vec![list(vec![rule(TreeSpec::flat(), usize::MAX)])],
            gather: vec![
                crowded(1..=4, 48 << 10, usize::MAX),
                crowded(5..=16, 48 << 10, 128 << 10),
                crowded(17..=64, 24 << 10, 128 << 10),
                list(usual),
            ],
        }
    }
}

impl TreeRules {
    /// The default rules, as `PHALANX_TREES` changes them.
    ///
    /// # Errors
    /// `Environment` when it is not understood.
    pub fn from_environment() -> Result<Self, Error> {
        Self::default().by(&variable)
    }

    /// These rules, unless the `PHALANX_TREES` that `lookup` has asks for others.
    pub(crate) fn by(self, lookup: &dyn Fn(&str) -> Option<String>) -> Result<Self, Error> {
        lookup(VARIABLE).map_or(Ok(self), |text| text.parse())
    }

    /// The rules for a job with `crowd` ranks for each core (rounded up): what is for such jobs counts there as what is
    /// for all, and what is for others is gone.
    #[must_use]
    pub fn on_crowd(mut self, crowd: u32) -> Self {
        for lists in [&mut self.release, &mut self.gather] {
            let others = if crowd > 1 { Jobs::Uncrowded } else { Jobs::Crowded };
            lists.retain(|list| list.jobs != others);
            for list in lists {
                list.jobs = Jobs::All;
                for rule in list.rules.iter_mut().filter(|rule| rule.of_crowd.is_some()) {
                    rule.tree = of_crowd(crowd);
                }
            }
        }
        self
    }

    /// The class of a message on so many ranks, in a job that is not crowded.
    #[must_use]
    pub fn class(&self, step: Step, ranks: usize, bytes: usize) -> usize {
        let rules = self.of(step, ranks);
        rules.iter().position(|rule| bytes < rule.below).unwrap_or(rules.len() - 1)
    }

    /// The tree of a class on so many ranks, in a job that is not crowded.
    #[must_use]
    pub fn tree(&self, step: Step, ranks: usize, class: usize) -> &TreeSpec {
        &self.rule(step, ranks, class).tree
    }

    /// How many neighbours that tree takes for ranks of one core, and how it puts them together, if it is one that goes
    /// by this.
    pub(crate) fn neighbours(&self, step: Step, ranks: usize, class: usize) -> Option<(usize, OfCrowd)> {
        let rule = self.rule(step, ranks, class);
        Some((rule.tree.k, rule.of_crowd?))
    }

    /// The name of that tree, for people.
    #[must_use]
    pub fn name(&self, step: Step, ranks: usize, class: usize) -> String {
        let rule = self.rule(step, ranks, class);
        match rule.of_crowd {
            Some(of_crowd) => format!("{}:{}", of_crowd.kind(), rule.tree.k),
            None => rule.tree.to_string(),
        }
    }

    /// The trees of a step on so many ranks of a crowded job, as they are written, for messages of `least` bytes and
    /// more.
    pub(crate) fn crowded_text(&self, step: Step, ranks: usize, least: usize) -> String {
        let long = self.for_jobs_but(Jobs::Uncrowded, step, ranks).iter().filter(|rule| rule.below > least);
        long.map(Rule::to_string).collect::<Vec<_>>().join(", ")
    }

    /// Whether some tree depends on where the ranks are.
    #[must_use]
    pub fn are_aware(&self) -> bool {
        let lists = self.release.iter().chain(&self.gather);
        lists.flat_map(|list| &list.rules).any(|rule| rule.tree.levels != Vec::<Level>::new())
    }

    fn rule(&self, step: Step, ranks: usize, class: usize) -> &Rule {
        let rules = self.of(step, ranks);
        &rules[class.min(rules.len() - 1)]
    }

    fn of(&self, step: Step, ranks: usize) -> &[Rule] {
        self.for_jobs_but(Jobs::Crowded, step, ranks)
    }

    /// What counts of a step on so many ranks in jobs that are not such.
    fn for_jobs_but(&self, others: Jobs, step: Step, ranks: usize) -> &[Rule] {
        let lists = match step {
            Step::Release => &self.release,
            Step::Gather => &self.gather,
        };
        let list = lists.iter().find(|list| list.jobs != others && list.ranks.contains(&ranks)).or(lists.last());
        list.map_or(&[], |list| &list.rules)
    }
}

impl Jobs {
    /// As it is written: nothing for all.
    fn name(self) -> &'static str {
        match self {
            Jobs::All => "",
            Jobs::Crowded => "crowded",
            Jobs::Uncrowded => "uncrowded",
        }
    }
}

impl fmt::Display for TreeRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let release = self.release.iter().map(|list| ("release", list));
        let gather = self.gather.iter().map(|list| ("gather", list));
        for (i, (step, list)) in release.chain(gather).enumerate() {
            write!(f, "{}{step}", if i == 0 { "" } else { "; " })?;
            match (list.ranks == ALL, list.jobs.name()) {
                (true, "") => {}
                (true, jobs) => write!(f, "({jobs})")?,
                (false, jobs) => {
                    let ranks = format!("{}..{} {jobs}", list.ranks.start(), list.ranks.end());
                    write!(f, "({})", ranks.trim_end())?;
                }
            }
            for (i, rule) in list.rules.iter().enumerate() {
                write!(f, "{} {rule}", if i == 0 { ":" } else { "," })?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.of_crowd {
            Some(of_crowd) => write!(f, "{}:{CROWD}", of_crowd.kind())?,
            None => write!(f, "{}", self.tree)?,
        }
        if self.below != usize::MAX { write!(f, " < {}", self.below) } else { Ok(()) }
    }
}

impl FromStr for TreeRules {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = |why: String| Error::Environment { name: VARIABLE, value: text.to_owned(), why };
        let mut rules = Self::default();
        let (mut release, mut gather) = (Vec::new(), Vec::new());
        for part in text.split(';').map(str::trim).filter(|part| !part.is_empty()) {
            let (step, list) = part.split_once(':').ok_or_else(|| {
                wrong(format!("{part:?} is no rule: write STEP:TREE[<BYTES],.., as in gather:kary:3<8K,kary:2"))
            })?;
            let parsed = list.split(',').map(|rule| parse_rule(rule).map_err(wrong)).collect::<Result<Vec<_>, _>>()?;
            if parsed.len() > MOST_CLASSES {
                return Err(wrong(format!("{} trees for one step; there can be {MOST_CLASSES}", parsed.len())));
            }
            if !parsed.is_sorted_by(|a, b| a.below < b.below)
                || parsed.last().is_none_or(|rule| rule.below != usize::MAX)
            {
                return Err(wrong(format!("{list:?}: limits must rise, and the last tree has none")));
            }
            let (step, (ranks, jobs)) = match step.trim().strip_suffix(')').and_then(|step| step.split_once('(')) {
                Some((step, whom)) => (step, parse_whom(whom).map_err(wrong)?),
                None => (step, (ALL, Jobs::All)),
            };
            let lists = match step.trim() {
                "release" => &mut release,
                "gather" => &mut gather,
                other => return Err(wrong(format!("{other:?} is no step: release or gather"))),
            };
            lists.push(List { ranks, jobs, rules: parsed });
        }
        for (lists, given) in [(&mut rules.release, release), (&mut rules.gather, gather)] {
            // T1: what the parts do not speak of is as usual.
            let usual = std::mem::replace(lists, given);
            if lists.last().is_none_or(|list| list.ranks != ALL || list.jobs != Jobs::All) {
                lists.extend(usual);
            }
        }
        Ok(rules)
    }
}

/// Whom a part is for: numbers of ranks, and jobs.
fn parse_whom(text: &str) -> Result<(RangeInclusive<usize>, Jobs), String> {
    let text = text.trim();
    // The longer word first, which ends in the other.
    for jobs in [Jobs::Uncrowded, Jobs::Crowded] {
        match text.strip_suffix(jobs.name()) {
            Some("") => return Ok((ALL, jobs)),
            Some(ranks) => return Ok((parse_ranks(ranks)?, jobs)),
            None => {}
        }
    }
    parse_ranks(text).map(|ranks| (ranks, Jobs::All)).map_err(|why| format!("{why}; or crowded or uncrowded, or both"))
}

/// One number of ranks, or a range of them.
pub(crate) fn parse_ranks(text: &str) -> Result<RangeInclusive<usize>, String> {
    let (least, most) = text.split_once("..").unwrap_or((text, text));
    match (least.trim().parse::<usize>(), most.trim().parse::<usize>()) {
        (Ok(least), Ok(most)) if 1 <= least && least <= most && most <= MOST_RANKS => Ok(least..=most),
        _ => Err(format!("{text:?} are no numbers of ranks: write 4, or 3..8, from 1 to {MOST_RANKS}")),
    }
}

fn parse_rule(text: &str) -> Result<Rule, String> {
    let (tree, below) = match text.split_once('<') {
        Some((tree, limit)) => {
            let bytes = number_of_bytes(limit.trim()).and_then(|bytes| usize::try_from(bytes).ok());
            (tree, bytes.ok_or_else(|| format!("{limit:?} is no number of bytes"))?)
        }
        None => (text, usize::MAX),
    };
    let tree = tree.trim();
    let kind = tree.strip_suffix(CROWD).and_then(|kind| kind.strip_suffix(':'));
    Ok(match OfCrowd::ALL.into_iter().find(|of_crowd| kind == Some(of_crowd.kind())) {
        Some(kind) => Rule { tree: of_crowd(2), of_crowd: Some(kind), below },
        None => Rule { tree: tree.parse::<TreeSpec>().map_err(|error| error.to_string())?, of_crowd: None, below },
    })
}

/// What is said for the k of a tree that hangs on how many ranks each core has.
const CROWD: &str = "crowd";

/// The k-nomial one, where so many ranks share each core.
fn of_crowd(crowd: u32) -> TreeSpec {
    TreeSpec::knomial(crowd.max(2) as usize)
}

#[cfg(test)]
mod tests;
