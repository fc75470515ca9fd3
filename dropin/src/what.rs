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

/// What the spellings of a name of Fortran's have in common, in small letters: `bcast` of mpi_bcast_, mpi_bcast__,
/// MPI_BCAST and ompi_bcast_f. Nothing for names of C.
#[must_use]
pub fn fortran_stem(name: &str) -> Option<String> {
    let stem = match name.strip_prefix("ompi_") {
        Some(rest) => rest.strip_suffix("_f")?,
        None => {
            let stem = name.trim_end_matches('_');
            let is_upper = |stem: &&str| !stem.contains(|letter: char| letter.is_ascii_lowercase());
            let lower = stem.strip_prefix("mpi_").filter(|_| name.ends_with('_'));
            lower.or_else(|| stem.strip_prefix("MPI_").filter(is_upper))?
        }
    };
    Some(stem.to_lowercase())
}

impl What {
    /// All of them.
    pub const ALL: [Self; COUNT] = [
        Self::Barrier,
        Self::Broadcast,
        Self::Reduce,
        Self::Allreduce,
        Self::Allgather,
        Self::Allgatherv,
        Self::Alltoall,
        Self::Alltoallv,
        Self::Gather,
        Self::Gatherv,
        Self::Scatter,
        Self::Scatterv,
        Self::Scan,
        Self::Exscan,
        Self::ReduceScatter,
        Self::ReduceScatterBlock,
    ];

    /// That of a function: MPI_Gatherv, MPI_Gatherv_c, or a spelling of Fortran's (mpi_gatherv__, ompi_gatherv_f).
    #[must_use]
    pub fn of_name(function: &str) -> Option<Self> {
        let stem = match fortran_stem(function.strip_suffix("f08_").unwrap_or(function)) {
            Some(stem) => stem,
            None => {
                let stem = function.strip_prefix("MPI_")?;
                stem.strip_suffix("_c").unwrap_or(stem).to_lowercase()
            }
        };
        Self::ALL.into_iter().find(|what| what.name() == stem)
    }

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

    /// The collective of Phalanx that has a choice of algorithms for it, and works across nodes; the others are carried
    /// out on a node alone.
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
    fn functions_are_known_by_all_their_names() {
        assert!(What::ALL.iter().enumerate().all(|(place, what)| place == *what as usize));
        let spellings =
            ["MPI_Gatherv", "MPI_Gatherv_c", "mpi_gatherv_", "mpi_gatherv__", "MPI_GATHERV", "ompi_gatherv_f"];
        assert!(spellings.iter().all(|name| What::of_name(name) == Some(What::Gatherv)));
        assert!(spellings[..2].iter().all(|name| fortran_stem(name).is_none()));
        assert!(spellings[2..].iter().all(|name| fortran_stem(name).is_some_and(|stem| stem == "gatherv")));
        assert_eq!(What::of_name("mpi_barrier_f08_"), Some(What::Barrier));
        assert_eq!(What::of_name("MPI_Reduce_scatter_block_c"), Some(What::ReduceScatterBlock));
        assert!(
            ["MPI_Init", "MPI_Comm_create_from_group", "PMPI_Barrier", "mpi_free_mem_", "mpi_gatherv"]
                .iter()
                .all(|name| What::of_name(name).is_none())
        );
    }

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
