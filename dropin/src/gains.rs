//! Where the library beneath is faster: a table, from what was measured side by side.

use crate::what::What;

/// The library beneath, as far as its speed goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Beneath {
    /// Open MPI.
    #[default]
    OpenMpi,
    /// MPICH, or one made from it.
    Mpich,
    /// Intel MPI.
    Intel,
}

impl Beneath {
    /// The library that says this of itself.
    #[must_use]
    pub fn of(version: &str) -> Self {
        match version {
            text if text.contains("Intel(R) MPI") => Self::Intel,
            text if text.contains("Open MPI") => Self::OpenMpi,
            _ => Self::Mpich,
        }
    }

    /// As a word that rank 0 sends to the others.
    #[must_use]
    pub fn to_word(self) -> u64 {
        self as u64
    }

    /// Back from a word.
    #[must_use]
    pub fn from_word(word: u64) -> Self {
        [Self::OpenMpi, Self::Mpich].get(word as usize).copied().unwrap_or(Self::Intel)
    }
}

/// Whether a call on a communicator of one node is worth carrying out here, by what all ranks know: the bytes of a
/// block, or of all blocks together where their lengths differ. In a gatherv, scatterv and alltoallv no rank knows them
/// all, and `bytes` does not count.
#[must_use]
pub fn gains(beneath: Beneath, what: What, ranks: usize, bytes: usize) -> bool {
    use Beneath::{Intel, Mpich, OpenMpi};
    const K: usize = 1 << 10;
    const M: usize = 1 << 20;
    let each = bytes / ranks.max(1);
    match (what, beneath) {
        _ if loses(beneath, what) => false,
        (What::Barrier | What::Broadcast | What::Reduce | What::Allreduce, _) => true,
        // Of more ranks rows of very different lengths would wait for the longest.
        (What::Alltoallv, OpenMpi) => ranks == 2,
        // Longer ones of two ranks leave the caches: the library copies them once.
        // Steps of a program that writes and reads all of it: from 1 MiB on 0.76 to 0.95 of MPICH 5's speed.
        (What::Alltoall, Mpich) => ranks > 2 || bytes <= 512 * K,
        (What::Allgather | What::Alltoall, OpenMpi | Mpich) => ranks > 2 || bytes <= 2 * M,
        (What::Allgatherv, OpenMpi | Mpich) => ranks > 2 || each <= 2 * M,
        (What::Allgatherv, Intel) => each <= 64 * K,
        (What::Allgather | What::Alltoall, Intel) => bytes <= 16 * K,
        // Long ones of two ranks on cores that are near each other: between far ones they would gain.
        (What::Gather, Intel) => ranks > 2 || bytes < 16 * K,
        (What::Scatter, Intel) => ranks > 2 || !(4 * K..64 * K).contains(&bytes),
        (What::Gatherv, Intel) => ranks > 2,
        (What::ReduceScatter, Intel) => ranks > 2 || each <= 2 * K,
        (What::ReduceScatterBlock, Intel) => ranks > 2 || bytes <= 2 * K,
        (_, OpenMpi | Mpich | Intel) => true,
    }
}

/// Whether no call of a collective gains.
#[must_use]
pub fn loses(beneath: Beneath, what: What) -> bool {
    match beneath {
        Beneath::OpenMpi => matches!(what, What::Gatherv | What::Scatterv),
        Beneath::Intel => matches!(what, What::Scatterv | What::Alltoallv),
        Beneath::Mpich => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_told_by_what_they_say() {
        assert_eq!(Beneath::of("Open MPI v4.1.4, package: Debian OpenMPI"), Beneath::OpenMpi);
        assert_eq!(Beneath::of("Intel(R) MPI Library 2021.18 for Linux* OS"), Beneath::Intel);
        assert_eq!(Beneath::of("MPICH Version:\t4.0.2"), Beneath::Mpich);
        for beneath in [Beneath::OpenMpi, Beneath::Mpich, Beneath::Intel] {
            assert_eq!(Beneath::from_word(beneath.to_word()), beneath);
        }
    }

    /// Ranks that know different numbers of bytes must decide alike.
    #[test]
    fn calls_whose_lengths_nobody_knows_depend_on_no_length() {
        for beneath in [Beneath::OpenMpi, Beneath::Mpich, Beneath::Intel] {
            for what in [What::Alltoallv, What::Gatherv, What::Scatterv] {
                let at = |bytes| gains(beneath, what, 4, bytes);
                assert!([0, 1, 100, 5000, 1 << 20].iter().all(|&bytes| at(bytes) == at(7)), "{beneath:?}, {what:?}");
            }
        }
    }
}
