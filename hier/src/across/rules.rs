//! How calls across nodes are carried out: the model's choice, and the environment's word on it, `PHALANX_CLUSTER`.
//!
//! ```text
//! PHALANX_CLUSTER = rule [ ; rule ]..
//! rule            = collective : [schedule] [ , parameter = value ]..
//! collective      = barrier | broadcast | reduce | allreduce | all
//! schedule        = auto | ring | recursive-doubling | halving-nearest | halving-farthest | halving-exchange
//!                 | halving-exchange-2 | halving-exchange-3 | binomial | circulant | scatter-ring | scatter-ring-native | dissemination | one-sided
//! parameter       = leaders | slice | flight
//! ```
//! `leaders` is how many ranks of each node take a share of the vector to the network (at most the ranks of the
//! smallest node, and 16). `slice` is how many bytes go through the pipeline at a time, or `whole`, or `adaptive`;
//! `flight` is how many slices may be on the network at once. `leaders` and `slice = adaptive` are for allreduce alone,
//! `slice` and `flight` for all but the barrier; after `all` each collective takes of them what it knows. `one-sided` is
//! for allreduce: nodes read and write each other's memory (MPI's RMA), where the network does that and the operator
//! commutes. The rules of rank 0 count.

use shm_core::Collective;
use shm_core::select::number_of_bytes;

use super::error::{Error, Result};
use super::model::NetworkModel;
use crate::schedule::{Algorithm, Exchanges, Goal, Order};

/// The variable.
pub(super) const VARIABLE: &str = "PHALANX_CLUSTER";

/// How a message is cut for the pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slice {
    /// Slices grow from call to call until they are too large (Bayatpour et al., SALaR, 2018).
    Adaptive,
    /// So many bytes.
    Bytes(usize),
    /// Not at all.
    Whole,
}

/// What is forced for one collective; `None` is left to the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// The schedule between nodes.
    pub algorithm: Option<Algorithm>,
    /// Leaders a node.
    pub leaders: Option<usize>,
    /// How messages are cut.
    pub slice: Option<Slice>,
    /// Slices on the network at once.
    pub flight: Option<usize>,
    /// Whether nodes read and write each other's memory.
    pub one_sided: bool,
}

impl Rule {
    /// What is not forced here is as `other` has it.
    fn or(self, other: Self) -> Self {
        let one_sided = self.one_sided || (self.algorithm.is_none() && other.one_sided);
        Self {
            algorithm: self.algorithm.or(other.algorithm),
            leaders: self.leaders.or(other.leaders),
            slice: self.slice.or(other.slice),
            flight: self.flight.or(other.flight),
            one_sided,
        }
    }
}

/// The rules for all collectives, as `PHALANX_CLUSTER` has them.
///
/// ```text
/// rules      = rule [ ; rule ]..
/// rule       = collective : [schedule] [ , parameter = value ]..
/// collective = barrier | broadcast | reduce | allreduce | all
/// schedule   = auto | ring | recursive-doubling | halving-nearest | halving-farthest | halving-exchange
///            | halving-exchange-2 | halving-exchange-3 | binomial | circulant | scatter-ring | scatter-ring-native | dissemination | one-sided
/// parameter  = leaders | slice | flight
/// ```
/// `leaders` and `slice = adaptive` are for allreduce alone, `slice` and `flight` for all but the barrier; after `all`
/// each collective takes of them what it knows.
///
/// A schedule that does not serve a call (one that is not in rank order, for an operator that does not commute) gives
/// way to the model's choice.
///
/// ```
/// let rules: hier::across::ClusterRules = "allreduce:ring,leaders=2,slice=256K; broadcast:binomial".parse().unwrap();
/// assert_eq!(rules.of(hier::Collective::Allreduce).leaders, Some(2));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterRules {
    rules: [Rule; 4],
}

/// What one call does across nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The schedule between nodes.
    pub algorithm: Algorithm,
    /// Leaders a node.
    pub leaders: usize,
    /// How the message is cut.
    pub slice: Slice,
    /// Slices on the network at once.
    pub flight: usize,
    /// Whether nodes read and write each other's memory, where the network can do that; no schedule then.
    pub one_sided: bool,
    /// Whether nodes are left out, and the schedule is one between all ranks: the only way to combine in rank order
    /// where the ranks of a node do not follow one another.
    pub flat: bool,
}

/// What a choice hangs on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setting {
    /// Nodes.
    pub nodes: usize,
    /// Ranks in all.
    pub ranks: usize,
    /// Ranks on the node that has the fewest.
    pub fewest: usize,
    /// Whether the ranks of each node follow one another.
    pub block: bool,
    /// Whether the order of operands is free.
    pub commutative: bool,
    /// What the network costs.
    pub network: NetworkModel,
}

/// More leaders have never been of use; so few, every node cuts shares alike.
const MOST_LEADERS: usize = 16;
/// Slices on the network at once, by default.
const FLIGHT: usize = 2;
/// Allreduces have a leader for so many bytes, and at most so many by default.
const SHARE: usize = 128 << 10;
/// And where there are many nodes, for so many bytes of each: the node works on a segment at a time.
const SEGMENT: usize = 16 << 10;
const LEADERS: usize = 4;
/// Broadcasts and reductions from here on are cut.
const CUT_FROM: usize = 512 << 10;
/// Allreduces from here on look for the size of their slices.
const ADAPT_FROM: usize = 128 << 10;
/// The schedules among which the model of the network chooses, by collective.
const BARRIERS: [Algorithm; 1] = [Algorithm::Dissemination];
const BROADCASTS: [Algorithm; 2] = [Algorithm::Binomial, Algorithm::ScatterRing { saving: true }];
const REDUCTIONS: [Algorithm; 2] = [Algorithm::Binomial, Algorithm::HalvingDoubling { order: Order::Nearest }];
/// Two exchanges in the place of halvings are left out: where the model has them as the best, one or three were
/// measured to be no worse.
const ALLREDUCES: [Algorithm; 6] = [
    Algorithm::RecursiveDoubling,
    Algorithm::HalvingExchange { exchanges: Exchanges::Three },
    Algorithm::HalvingExchange { exchanges: Exchanges::One },
    Algorithm::Ring,
    Algorithm::Circulant,
    Algorithm::Binomial,
];

impl ClusterRules {
    /// The rule of one collective.
    #[must_use]
    pub fn of(&self, what: Collective) -> Rule {
        self.rules[what as usize]
    }

    /// What a call on `bytes` bytes does: a pure function, the same on all ranks. What these rules leave open,
    /// `measured` says (a table's word on such a call), and what that leaves open, the model of the network.
    #[must_use]
    pub fn choose(&self, what: Collective, bytes: usize, setting: Setting, measured: Rule) -> Choice {
        let rule = self.of(what).or(measured);
        let flat = !setting.commutative && !setting.block;
        let ranks = if flat { setting.ranks } else { setting.nodes }.max(1);
        let goal = goal_of(what);
        let serves = |algorithm: &Algorithm| {
            algorithm.pattern(goal, ranks as u32).is_ok() && (setting.commutative || algorithm.is_ordered(goal))
        };
        let (candidates, last): (&[Algorithm], Algorithm) = match what {
            Collective::Barrier => (&BARRIERS, Algorithm::Dissemination),
            Collective::Broadcast => (&BROADCASTS, Algorithm::Binomial),
            Collective::Reduce => (&REDUCTIONS, Algorithm::Binomial),
            Collective::Allreduce => (&ALLREDUCES, Algorithm::Binomial),
        };
        let candidates: Vec<Algorithm> = candidates.iter().copied().filter(serves).collect();
        let natural = || setting.network.fastest(&candidates, goal, ranks, bytes).unwrap_or(last);
        let algorithm = rule.algorithm.filter(serves).unwrap_or_else(natural);
        let long = bytes >= CUT_FROM && what != Collective::Barrier;
        let slice = match rule.slice {
            Some(slice) => slice,
            // With one rank a node, too, where there is no work of a node to hide: messages that are short enough go
            // without a question to the receiver, which stock settings put before long ones.
            None if what == Collective::Allreduce && bytes >= ADAPT_FROM => Slice::Adaptive,
            None if what == Collective::Allreduce => Slice::Whole,
            None if long => Slice::Bytes(CUT_FROM.max(ranks * 8 * 1024)),
            None => Slice::Whole,
        };
        let leaders = match what {
            Collective::Allreduce if !flat => {
                let leaders = rule.leaders.unwrap_or((bytes / SHARE.max(setting.nodes * SEGMENT)).min(LEADERS));
                leaders.clamp(1, setting.fewest.clamp(1, MOST_LEADERS))
            }
            _ => 1,
        };
        let flight = rule.flight.unwrap_or(FLIGHT).max(1);
        let one_sided = rule.one_sided && what == Collective::Allreduce && setting.commutative;
        Choice { algorithm, leaders, slice, flight, one_sided, flat }
    }
}

/// What a schedule must achieve, for root 0.
fn goal_of(what: Collective) -> Goal {
    match what {
        Collective::Barrier => Goal::Barrier,
        Collective::Broadcast => Goal::Broadcast { root: 0 },
        Collective::Reduce => Goal::Reduce { root: 0 },
        Collective::Allreduce => Goal::Allreduce,
    }
}

impl std::str::FromStr for ClusterRules {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = |why: String| Error::Rules { text: text.to_owned(), why };
        let mut rules = Self::default();
        for rule in text.split(';').map(str::trim).filter(|rule| !rule.is_empty()) {
            let (what, how) = rule.split_once(':').ok_or_else(|| {
                wrong(format!(
                    "{rule:?} is no rule: write COLLECTIVE:SCHEDULE[,PARAMETER=VALUE..], as in allreduce:ring,leaders=2"
                ))
            })?;
            let targets = Collective::meant_by(what.trim()).map_err(wrong)?;
            for part in how.split(',').map(str::trim).filter(|part| !part.is_empty()) {
                let applies = |&target: &Collective| applies(target, part);
                // For all: for those that know such a thing. One that is named must know it.
                if targets.len() == 1 && !targets.iter().all(applies) {
                    let known = known(targets[0]);
                    return Err(wrong(format!("{part:?} means nothing for {}: {known}", targets[0])));
                }
                for target in targets.iter().copied().filter(|target| applies(target)) {
                    set(&mut rules.rules[target as usize], target, part).map_err(wrong)?;
                }
            }
        }
        Ok(rules)
    }
}

/// Whether a part of a rule has a meaning for a collective.
fn applies(what: Collective, part: &str) -> bool {
    match part.split_once('=').map(|(name, value)| (name.trim(), value.trim())) {
        Some(("leaders", _) | ("slice", "adaptive")) => what == Collective::Allreduce,
        Some(("slice" | "flight", _)) => what != Collective::Barrier,
        _ => true,
    }
}

/// The parameters that have a meaning for a collective, for people.
fn known(what: Collective) -> &'static str {
    match what {
        Collective::Barrier => "it takes a schedule alone",
        Collective::Broadcast | Collective::Reduce => {
            "leaders and slice=adaptive are for allreduce alone; write slice=BYTES, slice=whole, or flight=SLICES"
        }
        Collective::Allreduce => "write leaders, slice, or flight",
    }
}

/// The schedules of a collective, for people.
fn schedules(what: Collective) -> String {
    let serves = |algorithm: &Algorithm| algorithm.pattern(goal_of(what), 2).is_ok();
    let mut names: Vec<String> = Algorithm::ALL.into_iter().filter(serves).map(|one| one.to_string()).collect();
    names.extend((what == Collective::Allreduce).then(|| "one-sided".to_owned()));
    format!("{what} takes {}, or auto", names.join(", "))
}

/// Sets one part of a rule.
fn set(rule: &mut Rule, what: Collective, part: &str) -> std::result::Result<(), String> {
    let number = |value: &str, most: usize| match number_of_bytes(value) {
        Some(number) if (1..=most as u64).contains(&number) => Ok(number as usize),
        _ => Err(format!("{part:?}: write a number from 1 to {most}")),
    };
    match part.split_once('=').map(|(name, value)| (name.trim(), value.trim())) {
        None if part == "auto" => (rule.algorithm, rule.one_sided) = (None, false),
        None if part == "one-sided" && what == Collective::Allreduce => rule.one_sided = true,
        None => {
            let algorithm: Algorithm =
                part.parse().map_err(|_| format!("{part:?} is no schedule: {}", schedules(what)))?;
            algorithm.pattern(goal_of(what), 2).map_err(|error| format!("{what}: {error}"))?;
            rule.algorithm = Some(algorithm);
        }
        Some(("leaders", value)) => rule.leaders = Some(number(value, MOST_LEADERS)?),
        Some(("flight", value)) => rule.flight = Some(number(value, 64)?),
        Some(("slice", "adaptive")) => rule.slice = Some(Slice::Adaptive),
        Some(("slice", "whole")) => rule.slice = Some(Slice::Whole),
        Some(("slice", value)) => rule.slice = Some(Slice::Bytes(number(value, 1 << 40)?)),
        Some((name, _)) => return Err(format!("{name:?} is no parameter: leaders, slice, flight")),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster() -> Setting {
        Setting { nodes: 8, ranks: 32, fewest: 4, block: true, commutative: true, network: NetworkModel::default() }
    }

    #[test]
    fn operators_that_do_not_commute_are_kept_in_order() {
        let rules = ClusterRules::default();
        let fixed = Setting { commutative: false, ..cluster() };
        let choice = |setting| rules.choose(Collective::Allreduce, 1 << 20, setting, Rule::default());
        assert!(choice(fixed).algorithm.is_ordered(Goal::Allreduce) && !choice(fixed).flat);
        assert!(choice(Setting { block: false, ..fixed }).flat);
        assert!(!choice(Setting { block: false, ..cluster() }).flat);
    }

    #[test]
    fn every_choice_is_served_and_ordered_where_it_must_be() {
        for text in
            ["", "all:flight=3", "allreduce:ring", "allreduce:halving-exchange-3", "allreduce:binomial;reduce:binomial"]
        {
            let rules: ClusterRules = text.parse().unwrap();
            for what in Collective::ALL {
                for bytes in [0, 1, 2048, 2049, 100_000, 1 << 20, 1 << 30] {
                    for nodes in 1..40 {
                        for (block, commutative) in [(true, true), (true, false), (false, true), (false, false)] {
                            let setting =
                                Setting { nodes, ranks: 3 * nodes, fewest: 2, block, commutative, ..cluster() };
                            let choice = rules.choose(what, bytes, setting, Rule::default());
                            let ranks = if choice.flat { 3 * nodes } else { nodes };
                            choice.algorithm.pattern(goal_of(what), ranks as u32).unwrap();
                            assert!(commutative || choice.algorithm.is_ordered(goal_of(what)));
                            assert!((1..=2).contains(&choice.leaders));
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn rules_are_read() {
        let rules: ClusterRules =
            "allreduce: ring, leaders=2, slice=64K; broadcast:binomial,slice=whole".parse().unwrap();
        let choice = rules.choose(Collective::Allreduce, 100, cluster(), Rule::default());
        assert_eq!((choice.algorithm, choice.leaders, choice.slice), (Algorithm::Ring, 2, Slice::Bytes(64 << 10)));
        assert_eq!(rules.of(Collective::Broadcast).slice, Some(Slice::Whole));
        for (text, word) in [
            ("allreduce", "is no rule"),
            ("sum:ring", "no collective"),
            ("allreduce:rung", "rung"),
            ("broadcast:ring", "broadcast"),
            ("allreduce:leaders=0", "from 1"),
            ("allreduce:speed=9", "no parameter"),
            ("barrier:flight=2", "means nothing for barrier: it takes a schedule alone"),
            ("broadcast:leaders=2", "means nothing for broadcast: leaders and slice=adaptive are for allreduce alone"),
            ("reduce:binomial,leaders=3", "\"leaders=3\" means nothing for reduce: leaders"),
            ("reduce:slice=adaptive", "slice=whole, or flight"),
        ] {
            let error = text.parse::<ClusterRules>().unwrap_err().to_string();
            assert!(error.contains(word) && error.contains(text), "{error}");
        }
        let all: ClusterRules = "all:leaders=3,slice=adaptive,flight=4".parse().unwrap();
        assert_eq!(all.of(Collective::Reduce), Rule { flight: Some(4), ..Rule::default() });
        assert_eq!(all.of(Collective::Allreduce).leaders, Some(3));
        assert_eq!(all.of(Collective::Barrier), Rule::default());
    }
}
