//! Which tree a message takes: rules by size, for each step.

use std::fmt;
use std::str::FromStr;

use shm_core::select::number_of_bytes;
use shm_core::{Error, MOST_CLASSES, Step};
use topo::{Level, TreeSpec};

/// The variable that changes the rules.
pub(crate) const VARIABLE: &str = "PHALANX_TREES";

/// Trees by message size, for the release step (broadcast) and the gather step (reduction), set apart.
///
/// ```text
/// rules = step : tree [ < bytes ] [ , tree [ < bytes ] ].. [ ; step : .. ]
/// step  = release | gather
/// ```
/// A message takes the first tree whose limit it is below; the last one has no limit. `tree` is spelled as topo spells
/// it: `flat`, `knomial:4`, `kary:3:right`. Limits take the suffixes K and M.
///
/// The default is that of Jain et al. (SC18), but unaware of sockets: by default the bits of a sum do not depend on where
/// the ranks are bound. `PHALANX_TREES` asks for others.
///
/// ```
/// let rules: hier::TreeRules = "gather: knomial:4 < 512, kary:3 < 8K, kary:2; release: flat".parse().unwrap();
/// assert_eq!(rules, hier::TreeRules::default());
/// assert_eq!(rules.to_string().parse(), Ok(rules));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeRules {
    release: Vec<Rule>,
    gather: Vec<Rule>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    tree: TreeSpec,
    /// Messages below so many bytes.
    below: usize,
}

impl Default for TreeRules {
    fn default() -> Self {
        let rule = |tree, below| Rule { tree, below };
        Self {
            release: vec![rule(TreeSpec::flat(), usize::MAX)],
            gather: vec![
                rule(TreeSpec::knomial(4), 512),
                rule(TreeSpec::kary(3), 8192),
                rule(TreeSpec::kary(2), usize::MAX),
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
        match std::env::var(VARIABLE) {
            Ok(text) => text.parse(),
            Err(_) => Ok(Self::default()),
        }
    }

    /// The class of a message.
    #[must_use]
    pub fn class(&self, step: Step, bytes: usize) -> usize {
        let rules = self.of(step);
        rules.iter().position(|rule| bytes < rule.below).unwrap_or(rules.len() - 1)
    }

    /// The tree of a class.
    #[must_use]
    pub fn tree(&self, step: Step, class: usize) -> &TreeSpec {
        let rules = self.of(step);
        &rules[class.min(rules.len() - 1)].tree
    }

    /// Whether some tree depends on where the ranks are.
    #[must_use]
    pub fn are_aware(&self) -> bool {
        self.release.iter().chain(&self.gather).any(|rule| rule.tree.levels != Vec::<Level>::new())
    }

    fn of(&self, step: Step) -> &[Rule] {
        match step {
            Step::Release => &self.release,
            Step::Gather => &self.gather,
        }
    }
}

impl fmt::Display for TreeRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (step, rules) in [("release: ", &self.release), ("; gather: ", &self.gather)] {
            f.write_str(step)?;
            for (i, rule) in rules.iter().enumerate() {
                write!(f, "{}{}", if i == 0 { "" } else { ", " }, rule.tree)?;
                if rule.below != usize::MAX {
                    write!(f, " < {}", rule.below)?;
                }
            }
        }
        Ok(())
    }
}

impl FromStr for TreeRules {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = |why: String| Error::Environment { name: VARIABLE, value: text.to_owned(), why };
        let mut rules = Self::default();
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
            match step.trim() {
                "release" => rules.release = parsed,
                "gather" => rules.gather = parsed,
                other => return Err(wrong(format!("{other:?} is no step: release or gather"))),
            }
        }
        Ok(rules)
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
    let tree = tree.trim().parse::<TreeSpec>().map_err(|error| error.to_string())?;
    Ok(Rule { tree, below })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_follow_the_limits() {
        let rules = TreeRules::default();
        let class = |bytes| rules.class(Step::Gather, bytes);
        assert_eq!([class(0), class(511), class(512), class(8191), class(8192), class(1 << 30)], [0, 0, 1, 1, 2, 2]);
        assert_eq!(rules.tree(Step::Gather, 1).to_string(), TreeSpec::kary(3).to_string());
        assert!(!rules.are_aware());
    }

    #[test]
    fn wrong_rules_say_what_would_be_right() {
        for (text, word) in [
            ("kary", "no rule"),
            ("scatter:flat", "no step"),
            ("gather:kary:3<many,kary:2", "no number"),
            ("gather:kary:3,kary:2", "limits must rise"),
            ("gather:kary:3<8K", "the last tree has none"),
            ("gather:bush:3", "bush"),
        ] {
            let error = text.parse::<TreeRules>().unwrap_err().to_string();
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}
