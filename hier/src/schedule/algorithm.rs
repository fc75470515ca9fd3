//! The algorithms, and what they achieve.

use super::{Error, Pattern, Program};

/// What a schedule achieves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Goal {
    /// All ranks end with all operands combined.
    Allreduce,
    /// The root ends with all operands combined; what the others end with is undefined.
    Reduce {
        /// The rank that gets the result.
        root: u32,
    },
    /// All ranks end with the root's vector.
    Broadcast {
        /// The rank whose vector it is.
        root: u32,
    },
    /// Rank i ends with segment i of all operands combined, and there are as many segments as ranks. What it ends with
    /// in the other segments is undefined.
    ReduceScatter,
    /// Rank i starts with segment i, and there are as many segments as ranks. All ranks end with all segments.
    Allgather,
    /// No rank ends before all have started. No payload.
    Barrier,
}

impl Goal {
    /// The root, if the goal has one.
    pub fn root(self) -> Option<u32> {
        match self {
            Goal::Reduce { root } | Goal::Broadcast { root } => Some(root),
            Goal::Allreduce | Goal::ReduceScatter | Goal::Allgather | Goal::Barrier => None,
        }
    }
}

/// Which partner comes first while halving.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    /// Distances 1, 2, 4, ..: the largest messages go to neighbours, which usually share a switch.
    Nearest,
    /// Distances N/2, N/4, .., 1: the largest messages go far.
    Farthest,
}

/// How many of the last halvings, and of the doublings that undo them, are exchanges of all that is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Exchanges {
    /// One: a round less than by halving and doubling throughout, and no byte more.
    One,
    /// Two: another round less, and 2/N of the vector more.
    Two,
    /// Three: another round less, and 8/N of the vector more.
    Three,
}

impl Exchanges {
    /// All of them.
    pub const ALL: [Exchanges; 3] = [Exchanges::One, Exchanges::Two, Exchanges::Three];

    /// As a number.
    pub fn number(self) -> u32 {
        match self {
            Exchanges::One => 1,
            Exchanges::Two => 2,
            Exchanges::Three => 3,
        }
    }
}

/// The algorithms. The page of the module says which serves what.
///
/// They are written and read (`Display`, `FromStr`) by the names in brackets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// Reduce-scatter and allgather round a ring (`ring`): each rank sends to its successor only.
    ///
    /// Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations" (JPDC 2009): no
    /// allreduce sends fewer bytes, and where the ring follows the switches, no link carries two messages at a time.
    Ring,
    /// Pairs at distances 1, 2, 4, .. exchange whole vectors (`recursive-doubling`).
    ///
    /// Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH" (IJHPCA 2005).
    RecursiveDoubling,
    /// Rabenseifner's: pairs exchange halves, quarters, .. and then gather them the same way back (`halving-nearest`,
    /// `halving-farthest`).
    ///
    /// Rabenseifner, "Optimization of collective reduction operations" (ICCS 2004). A reduce gathers to the root only.
    HalvingDoubling {
        /// Which partner comes first while halving.
        order: Order,
    },
    /// Halving and doubling, nearest first, whose last halvings and their doublings are exchanges of all that is left
    /// (`halving-exchange`, `halving-exchange-2`, `halving-exchange-3`).
    ///
    /// A hybrid of the ways for long and for short vectors: Chan, Heimlich, Purkayastha and van de Geijn, "Collective
    /// communication: theory, practice, and experience" (CCPE 2007).
    HalvingExchange {
        /// How many.
        exchanges: Exchanges,
    },
    /// Trees over ranges of ranks, whole vectors (`binomial`). For root 0 it is the binomial tree. For another root the
    /// ranges are the same, and the root leads every range that it is in, so that operands stay in rank order.
    Binomial,
    /// Reduce-scatter and allgather over a circulant graph, for any number of ranks (`circulant`).
    ///
    /// Träff, "Optimal, non-pipelined reduce-scatter and allreduce algorithms" (2024): fewest rounds and fewest bytes
    /// at once; a rank's partners are at distances ceil(N/2), ceil(N/4), .., 1. The longest messages go farthest, as in
    /// [`Order::Farthest`].
    Circulant,
    /// Binomial scatter and ring allgather, for long broadcasts (`scatter-ring-native`, and `scatter-ring`, which
    /// saves).
    ///
    /// Zhou, Marjanović, Niethammer and Gracia, "A bandwidth-saving optimization for MPI broadcast collective
    /// operation" (2015): the native ring hands many ranks segments which they have from the scatter; the saving one
    /// leaves these messages out.
    ScatterRing {
        /// Whether messages that bring nothing new are left out.
        saving: bool,
    },
    /// Everybody tells the ranks at distances 1, 2, 4, .. that it is there (`dissemination`).
    ///
    /// Hensgen, Finkel and Manber, "Two algorithms for barrier synchronization" (IJPP 1988).
    Dissemination,
}

impl Algorithm {
    /// All algorithms, with all their variants.
    pub const ALL: [Algorithm; 12] = [
        Algorithm::Ring,
        Algorithm::RecursiveDoubling,
        Algorithm::HalvingDoubling { order: Order::Nearest },
        Algorithm::HalvingDoubling { order: Order::Farthest },
        Algorithm::HalvingExchange { exchanges: Exchanges::One },
        Algorithm::HalvingExchange { exchanges: Exchanges::Two },
        Algorithm::HalvingExchange { exchanges: Exchanges::Three },
        Algorithm::Binomial,
        Algorithm::Circulant,
        Algorithm::ScatterRing { saving: false },
        Algorithm::ScatterRing { saving: true },
        Algorithm::Dissemination,
    ];

    /// What `rank` of `ranks` ranks does. All ranks must ask for the same algorithm, goal and number of ranks.
    ///
    /// # Cost
    ///
    /// Time and memory for the rank's own rounds, whatever the number of ranks.
    ///
    /// # Errors
    ///
    /// * Those of [`Algorithm::pattern`].
    /// * [`Error::RankOutOfRange`] when `rank` does not take part.
    pub fn program(self, goal: Goal, ranks: u32, rank: u32) -> Result<Program, Error> {
        self.pattern(goal, ranks)?.program(rank)
    }

    /// The programs of all ranks, unmade: [`Pattern`] makes any round of any rank when asked.
    ///
    /// # Errors
    ///
    /// * [`Error::Ranks`] when `ranks` is 0 or larger than [`MOST_RANKS`](super::MOST_RANKS).
    /// * [`Error::RootOutOfRange`] when the goal's root does not take part.
    /// * [`Error::Unserved`] when the algorithm does not serve the goal over so many ranks.
    pub fn pattern(self, goal: Goal, ranks: u32) -> Result<Pattern, Error> {
        Pattern::new(self, goal, ranks)
    }

    /// Whether operands are combined strictly in rank order, for every number of ranks: then the algorithm serves
    /// operators that are associative and do not commute. True where nothing is combined.
    pub fn is_ordered(self, goal: Goal) -> bool {
        match self {
            Algorithm::Ring | Algorithm::Circulant | Algorithm::HalvingDoubling { order: Order::Farthest } => {
                matches!(goal, Goal::Allgather | Goal::Broadcast { .. } | Goal::Barrier)
            }
            Algorithm::RecursiveDoubling
            | Algorithm::HalvingDoubling { order: Order::Nearest }
            | Algorithm::HalvingExchange { .. }
            | Algorithm::Binomial
            | Algorithm::ScatterRing { .. }
            | Algorithm::Dissemination => true,
        }
    }
}
