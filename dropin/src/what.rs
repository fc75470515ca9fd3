//! The collectives that are looked at.

use hier::Collective;

/// A collective of MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum What {
    /// MPI_Barrier.
    Barrier,
    /// MPI_Bcast.
    Broadcast,
    /// MPI_Reduce.
    Reduce,
    /// MPI_Allreduce.
    Allreduce,
    /// MPI_Allgather.
    Allgather,
    /// MPI_Allgatherv.
    Allgatherv,
    /// MPI_Alltoall.
    Alltoall,
    /// MPI_Alltoallv.
    Alltoallv,
    /// MPI_Gather.
    Gather,
    /// MPI_Gatherv.
    Gatherv,
    /// MPI_Scatter.
    Scatter,
    /// MPI_Scatterv.
    Scatterv,
    /// MPI_Scan.
    Scan,
    /// MPI_Exscan.
    Exscan,
    /// MPI_Reduce_scatter.
    ReduceScatter,
    /// MPI_Reduce_scatter_block.
    ReduceScatterBlock,
}

/// How many there are.
pub const COUNT: usize = 16;

/// Their names in `PHALANX_DISABLE` and in statistics, in their order.
pub const NAMES: [&str; COUNT] = [
    "barrier",
    "bcast",
    "reduce",
    "allreduce",
    "allgather",
    "allgatherv",
    "alltoall",
    "alltoallv",
    "gather",
    "gatherv",
    "scatter",
    "scatterv",
    "scan",
    "exscan",
    "reduce_scatter",
    "reduce_scatter_block",
];

impl What {
    /// Its name, in small letters.
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMES[self as usize]
    }

    /// MPI's name of its function.
    #[must_use]
    pub fn function(self) -> String {
        let mut letters = self.name().chars();
        let first = letters.next().map_or(String::new(), |letter| letter.to_uppercase().to_string());
        format!("MPI_{first}{}", letters.as_str())
    }

    /// The collective of Phalanx that has a choice of algorithms for it, and works across nodes; the others are carried out on a node alone.
    #[inline]
    #[must_use]
    pub fn collective(self) -> Option<Collective> {
        Collective::ALL.get(self as usize).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit() {
        assert_eq!((What::Barrier.name(), What::Exscan.name()), ("barrier", "exscan"));
        assert_eq!(
            (What::Broadcast.function(), What::Alltoallv.function()),
            ("MPI_Bcast".to_owned(), "MPI_Alltoallv".to_owned())
        );
        assert_eq!(What::ReduceScatterBlock.function(), "MPI_Reduce_scatter_block");
        let four = [What::Barrier, What::Broadcast, What::Reduce, What::Allreduce].map(What::collective);
        assert_eq!(four, Collective::ALL.map(Some));
        assert_eq!(What::Allgather.collective(), None);
    }
}
