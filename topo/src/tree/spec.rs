//! What a tree is to look like.

use std::fmt;

/// The shape of a tree, or of each of its parts when it knows about sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The root serves everybody.
    Flat,
    /// Each rank serves up to `k` children, level after level: position `i` has the children `k*i + 1` to `k*i + k`.
    Kary,
    /// The parent of position `i` is `i` with its last digit other than 0, in base `k`, made 0. For `k` = 2 this is
    /// the binomial tree. Every subtree is a run of neighbouring positions.
    Knomial,
}

/// On which side the large subtrees hang. The parents are the same; the order in which they serve is reversed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Skew {
    /// The child with the largest subtree is served first, ties by position: good for a release step, in which the
    /// longest way should start first.
    #[default]
    Left,
    /// The mirror image: the child with the largest subtree comes last. Good for a gather step, in which the longest
    /// way ends last.
    Right,
}

/// What ranks have in common when they are close to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Level {
    /// They sit on the same package (socket).
    Package,
    /// They are near to the same NUMA node.
    Numa,
    /// They share an L3 cache.
    L3,
}

impl Level {
    /// All levels, usually the outermost first.
    pub const ALL: [Level; 3] = [Level::Package, Level::Numa, Level::L3];
}

/// Whom the leader of a group serves first in a tree that knows about sockets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Leaders {
    /// The leaders of other groups before the ranks of its own group: good for a release step.
    #[default]
    First,
    /// The ranks of its own group before the leaders of other groups: good for a gather step.
    Last,
}

/// A description of trees, from which [`TreeSpec::build`] makes one for given ranks and a given root.
///
/// In text, as `FromStr` reads and `Display` writes it:
///
/// ```text
/// tree    = kind { ":" option }
/// kind    = "flat" | "kary:" k | "knomial:" k         k is a number from 1
/// option  = "left" | "right"                          the skew; left unless said
///         | "package" | "numa" | "l3"                 levels, the outermost first; "socket" is "package"
///         | "leaders-first" | "leaders-last"          leaders-first unless said; without a level of no effect
/// ```
///
/// Options stand in any order, each at most once, except that the levels' order counts.
///
/// ```
/// use topo::{Leaders, Level, Skew, TreeSpec};
///
/// # fn main() -> Result<(), topo::Error> {
/// let spec: TreeSpec = "kary:3:right:package:leaders-last".parse()?;
/// let same = TreeSpec::kary(3).skewed(Skew::Right).aware(&[Level::Package]).leaders(Leaders::Last);
/// assert_eq!(spec, same);
/// assert_eq!(spec.to_string(), "kary:3:right:package:leaders-last");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TreeSpec {
    /// The shape of the tree, or of each of its parts.
    pub kind: Kind,
    /// How many children ([`Kind::Kary`]) or which base ([`Kind::Knomial`]); at least 1, which makes a chain.
    /// [`Kind::Flat`] does not look at it.
    pub k: usize,
    /// On which side the large subtrees hang.
    pub skew: Skew,
    /// What the tree is to know about the machine, the outermost level first; empty for a tree that ignores it.
    pub levels: Vec<Level>,
    /// Whom a leader serves first.
    pub leaders: Leaders,
}

impl TreeSpec {
    fn new(kind: Kind, k: usize) -> Self {
        TreeSpec { kind, k, skew: Skew::Left, levels: Vec::new(), leaders: Leaders::First }
    }

    /// A flat tree: left-skewed, and ignoring the machine.
    pub fn flat() -> Self {
        TreeSpec::new(Kind::Flat, 1)
    }

    /// A k-ary tree: left-skewed, and ignoring the machine.
    pub fn kary(k: usize) -> Self {
        TreeSpec::new(Kind::Kary, k)
    }

    /// A k-nomial tree: left-skewed, and ignoring the machine.
    pub fn knomial(k: usize) -> Self {
        TreeSpec::new(Kind::Knomial, k)
    }

    /// The same with this skew.
    pub fn skewed(self, skew: Skew) -> Self {
        TreeSpec { skew, ..self }
    }

    /// The same, aware of these levels of the machine, the outermost first.
    pub fn aware(self, levels: &[Level]) -> Self {
        TreeSpec { levels: levels.to_vec(), ..self }
    }

    /// The same with the leaders in this place.
    pub fn leaders(self, leaders: Leaders) -> Self {
        TreeSpec { leaders, ..self }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Level::Package => "package",
            Level::Numa => "numa",
            Level::L3 => "l3",
        })
    }
}
