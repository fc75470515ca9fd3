//! The network that is simulated.

/// Links, and who uses which.
#[derive(Debug, Clone)]
pub struct Network<R> {
    /// For each directed link how many bytes a second it carries.
    pub capacities: Vec<f64>,
    /// Seconds from the start of a message until its first byte flows.
    pub latency: f64,
    /// Seconds that a rank takes to combine a byte that has arrived.
    pub reduction: f64,
    /// `route(from, to, links)` appends the links on the way from one rank to another, as places in `capacities`. A way
    /// without links takes no time but the latency.
    pub route: R,
}

/// Why a network cannot be simulated.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A link that carries nothing.
    #[error("link {link} carries {capacity} bytes a second; give every link a finite number above 0")]
    Capacity {
        /// The link.
        link: usize,
        /// What was given.
        capacity: f64,
    },

    /// A latency or a cost that cannot be.
    #[error("the {name} is {value} s; give a finite number from 0 on")]
    Parameter {
        /// `latency` or `reduction`.
        name: &'static str,
        /// What was given.
        value: f64,
    },

    /// A way over a link that is not there.
    #[error("the way from rank {from} to rank {to} uses link {link}, but only {links} have a capacity; add the others")]
    UnknownLink {
        /// Who sends.
        from: usize,
        /// Who receives.
        to: usize,
        /// The link.
        link: usize,
        /// How many links there are.
        links: usize,
    },
}

impl<R> Network<R> {
    pub(super) fn check(&self) -> Result<(), Error> {
        let bad = |capacity: f64| !(capacity.is_finite() && capacity > 0.0);
        if let Some(link) = self.capacities.iter().position(|&capacity| bad(capacity)) {
            return Err(Error::Capacity { link, capacity: self.capacities[link] });
        }
        for (name, value) in [("latency", self.latency), ("reduction", self.reduction)] {
            if !(value.is_finite() && value >= 0.0) {
                return Err(Error::Parameter { name, value });
            }
        }
        Ok(())
    }
}
