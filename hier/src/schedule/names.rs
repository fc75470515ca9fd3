//! Algorithms and goals as text.

use std::fmt;
use std::str::FromStr;

use super::{Algorithm, Error, Exchanges, Goal, Order};

impl Algorithm {
    /// The name of the algorithm, as `Display` writes it.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Ring => "ring",
            Algorithm::RecursiveDoubling => "recursive-doubling",
            Algorithm::HalvingDoubling { order: Order::Nearest } => "halving-nearest",
            Algorithm::HalvingDoubling { order: Order::Farthest } => "halving-farthest",
            Algorithm::HalvingExchange { exchanges: Exchanges::One } => "halving-exchange",
            Algorithm::HalvingExchange { exchanges: Exchanges::Two } => "halving-exchange-2",
            Algorithm::HalvingExchange { exchanges: Exchanges::Three } => "halving-exchange-3",
            Algorithm::Binomial => "binomial",
            Algorithm::Circulant => "circulant",
            Algorithm::ScatterRing { saving: false } => "scatter-ring-native",
            Algorithm::ScatterRing { saving: true } => "scatter-ring",
            Algorithm::Dissemination => "dissemination",
        }
    }

    /// The names of all algorithms, for messages.
    pub(super) fn names() -> String {
        Algorithm::ALL.map(|algorithm| format!("`{algorithm}`")).join(", ")
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Algorithm {
    type Err = Error;

    /// # Errors
    ///
    /// * [`Error::UnknownAlgorithm`] with the names that there are.
    fn from_str(name: &str) -> Result<Self, Error> {
        let found = Algorithm::ALL.into_iter().find(|algorithm| algorithm.name() == name);
        found.ok_or_else(|| Error::UnknownAlgorithm { name: name.to_owned() })
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Goal::Allreduce => f.write_str("allreduce"),
            Goal::Reduce { root } => write!(f, "reduce to rank {root}"),
            Goal::Broadcast { root } => write!(f, "broadcast from rank {root}"),
            Goal::ReduceScatter => f.write_str("reduce-scatter"),
            Goal::Allgather => f.write_str("allgather"),
            Goal::Barrier => f.write_str("barrier"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for algorithm in Algorithm::ALL {
            assert_eq!(algorithm.to_string().parse(), Ok(algorithm));
        }
        let names: std::collections::HashSet<_> = Algorithm::ALL.map(Algorithm::name).into();
        assert_eq!(names.len(), Algorithm::ALL.len());
    }

    #[test]
    fn unknown_names_are_told_the_known_ones() {
        for name in ["", "Ring", "rings", "halving", "ring "] {
            let error = name.parse::<Algorithm>().unwrap_err().to_string();
            assert!(error.contains("`ring`, `recursive-doubling`, `halving-nearest`"), "{error}");
            assert!(error.contains(&format!("{name:?}")), "{error}");
        }
    }
}
