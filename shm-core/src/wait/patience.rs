//! How long a rank spins and yields before it sleeps.

/// The stages of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Patience {
    /// Looks with a CPU pause between them.
    pub spins: u32,
    /// Looks with a yield to the scheduler between them.
    pub yields: u32,
    /// Looks before each yield, while nobody else on the core has anything to do.
    pub alone: u32,
}

impl Patience {
    /// For `ranks` ranks on `cores` cores that they may use.
    ///
    /// With a core for each rank, spinning costs nobody anything and catches what is a few line transfers away. Behind
    /// it a rank sleeps. A yield would give the core to whoever works beside it, as a thread of the program, for a turn
    /// of the scheduler, milliseconds, where who is woken is let in at once: steps of 200 us of work and an allreduce,
    /// beside a thread of each rank that always works, took 2.4 to 3.4 ms with 200 yields, and 0.4 without.
    ///
    /// With more ranks than cores spinning only keeps from the core the very rank that is waited for, so the core is given
    /// away at once, for about as many times as it takes all others to have had it several times. Unless all others on
    /// the core have come as far as this rank: then what is missing comes from another core, sooner than this one would
    /// have changed hands.
    pub fn new(ranks: usize, cores: usize) -> Self {
        if ranks <= cores {
            Self { spins: 3_000, yields: 0, alone: 0 }
        } else {
            Self { spins: 0, yields: 400, alone: 64 }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spins_only_where_a_core_is_free() {
        assert!(Patience::new(2, 2).spins > 0);
        assert_eq!(Patience::new(3, 2).spins, 0);
        assert!(Patience::new(16, 2).yields > 0);
    }
}
