//! What is measured beside what.

use std::fmt;
use std::str::FromStr;

use hier::across::ClusterRules;

/// How a series carries out a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// Our communicator across nodes, by these rules; the order of nodes follows the switches, where they are known.
    Nodes(String),
    /// The same as the literature has it: nodes in the order of their first ranks.
    Unordered(String),
    /// Our communicator, with every rank a node of its own.
    Flat(String),
    /// The collective of the MPI library.
    Native,
}

/// A series: a name, and how it carries out a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    /// The name in tables and plots.
    pub name: String,
    /// What it does.
    pub way: Way,
}

/// The name of our series with its default rules.
pub const OURS: &str = "ours";
/// The name of the library's own collectives.
pub const NATIVE: &str = "native";
/// That name where Open MPI is told to prefer coll/han.
pub const HAN: &str = "han";
/// That name where the library is told which algorithm to take.
pub const FORCED: &str = "forced";

/// Behind the name of rules: every rank is a node of its own.
const FLAT_WAY: &str = "@flat";
/// Behind the name of rules: nodes in the order of their first ranks, whatever the switches.
const UNORDERED: &str = "@unordered";

/// One leader a node and binomial trees: what MPI libraries do on clusters of SMPs.
const SMP_BINOMIAL: &str = "allreduce:binomial,leaders=1,slice=whole;broadcast:binomial,slice=whole";
/// One leader a node, whole vectors between them in log2 N exchanges.
const SMP_BUTTERFLY: &str =
    "allreduce:recursive-doubling,leaders=1,slice=whole;broadcast:scatter-ring-native,slice=whole";
/// A ring of all ranks (Patarasuk and Yuan, JPDC 2009).
const RING: &str = "allreduce:ring,slice=whole;broadcast:scatter-ring,slice=whole";
/// Rabenseifner's algorithm (ICCS 2004), short distances first.
const NEAR: &str = "allreduce:halving-nearest,slice=whole;broadcast:scatter-ring,slice=whole";
/// The same, long distances first.
const FAR: &str = "allreduce:halving-farthest,slice=whole;broadcast:scatter-ring,slice=whole";

/// All series that have a name, in the order in which they take turns.
pub const NAMES: [&str; 7] =
    [OURS, NATIVE, "flat", "smp-binomial", "smp-butterfly", "rabenseifner-near", "rabenseifner-far"];

impl Series {
    /// All series that have a name.
    pub fn all() -> Vec<Series> {
        NAMES.iter().filter_map(|name| Series::named(name)).collect()
    }

    /// The series of this name.
    pub fn named(name: &str) -> Option<Series> {
        let way = match name {
            OURS => Way::Nodes(String::new()),
            NATIVE | HAN | FORCED => Way::Native,
            "flat" => Way::Flat(RING.into()),
            "smp-binomial" => Way::Unordered(SMP_BINOMIAL.into()),
            "smp-butterfly" => Way::Unordered(SMP_BUTTERFLY.into()),
            "rabenseifner-near" => Way::Flat(NEAR.into()),
            "rabenseifner-far" => Way::Flat(FAR.into()),
            _ => return None,
        };
        Some(Series { name: name.into(), way })
    }

    /// The rules of a series of ours.
    pub fn rules(&self) -> Option<&str> {
        match &self.way {
            Way::Nodes(rules) | Way::Unordered(rules) | Way::Flat(rules) => Some(rules),
            Way::Native => None,
        }
    }
}

/// As it is read.
impl fmt::Display for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.way {
            Way::Nodes(rules) if *rules == self.name => f.write_str(rules),
            _ if Series::named(&self.name).as_ref() == Some(self) => f.write_str(&self.name),
            Way::Unordered(rules) => write!(f, "{}{UNORDERED}={rules}", self.name),
            Way::Flat(rules) => write!(f, "{}{FLAT_WAY}={rules}", self.name),
            _ => write!(f, "{}={}", self.name, self.rules().unwrap_or_default()),
        }
    }
}

impl FromStr for Series {
    type Err = String;

    fn from_str(text: &str) -> Result<Series, String> {
        let text = text.trim();
        if let Some(series) = Series::named(text) {
            return Ok(series);
        }
        // Rules have `=` too, but a `:` before it.
        let (name, rules) = match text.split_once('=') {
            Some((name, rules)) if !name.contains(':') => (name, rules),
            _ => (text, text),
        };
        if !rules.contains(':') {
            return Err(format!(
                "{text:?} is no series: {}, NAME=RULES, NAME@flat=RULES (every rank a node of its own), NAME@unordered=RULES or RULES, \
                 as in allreduce:ring,leaders=2",
                NAMES.join(", ")
            ));
        }
        let way: fn(String) -> Way = match name {
            _ if name == text => Way::Nodes,
            _ if name.ends_with(FLAT_WAY) => Way::Flat,
            _ if name.ends_with(UNORDERED) => Way::Unordered,
            _ => Way::Nodes,
        };
        let name = if name == text { name } else { name.trim_end_matches(FLAT_WAY).trim_end_matches(UNORDERED) };
        if name.is_empty() || Series::named(name).is_some() {
            return Err(format!("{name:?} cannot be the name of other rules: choose another"));
        }
        rules.parse::<ClusterRules>().map_err(|error| error.to_string())?;
        Ok(Series { name: name.into(), way: way(rules.into()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written() {
        assert_eq!(Series::all().len(), NAMES.len());
        for series in Series::all() {
            assert_eq!(series.to_string().parse(), Ok(series.clone()));
            if let Some(rules) = series.rules() {
                rules.parse::<ClusterRules>().unwrap();
            }
        }
    }

    #[test]
    fn rules_are_series_with_and_without_a_name() {
        let plain: Series = "allreduce:ring,leaders=2".parse().unwrap();
        assert_eq!(
            (plain.name.as_str(), plain.rules()),
            ("allreduce:ring,leaders=2", Some("allreduce:ring,leaders=2"))
        );
        let named: Series = "two=allreduce:auto,leaders=2;broadcast:binomial".parse().unwrap();
        assert_eq!((named.name.as_str(), named.rules()), ("two", Some("allreduce:auto,leaders=2;broadcast:binomial")));
        let flat: Series = "wide@flat=broadcast:scatter-ring".parse().unwrap();
        assert_eq!((flat.name.as_str(), &flat.way), ("wide", &Way::Flat("broadcast:scatter-ring".into())));
        let unordered: Series = "plain@unordered=allreduce:ring".parse().unwrap();
        assert_eq!(unordered.way, Way::Unordered("allreduce:ring".into()));
        for series in [plain, named, flat, unordered] {
            assert_eq!(series.to_string().parse(), Ok(series));
        }
    }

    #[test]
    fn what_is_no_series_is_refused_with_a_word() {
        for (text, word) in [
            ("theirs", "smp-butterfly"),
            ("ours=allreduce:ring", "another"),
            ("x=allreduce:rung", "rung"),
            ("allreduce:ring,speed=2", "speed"),
            ("=allreduce:ring", "name"),
            ("@flat=allreduce:ring", "name"),
        ] {
            let error = text.parse::<Series>().unwrap_err();
            assert!(error.contains(word), "{error}");
        }
    }
}
