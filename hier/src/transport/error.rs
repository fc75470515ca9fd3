//! What can go wrong between ranks.

use std::time::Duration;

/// The result of a transport's calls.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a message could not be sent or received. Ranks are those of the transport that was called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A peer outside of the group.
    #[error("rank {rank}: there is no rank {peer} to send to or receive from; the group has ranks 0 to {}", size - 1)]
    NoSuchRank {
        /// The rank that was called.
        rank: usize,
        /// Ranks in the group.
        size: usize,
        /// Who was named.
        peer: usize,
    },

    /// A tag that MPI does not promise to carry.
    #[error("rank {rank}: tag {tag} is too high; tags are 0 to 16383")]
    Tag {
        /// The rank that was called.
        rank: usize,
        /// The tag.
        tag: u32,
    },

    /// A list of members that makes no group.
    #[error("rank {rank}: {members:?} makes no group of ranks: {why}")]
    Members {
        /// The rank that was called.
        rank: usize,
        /// The list.
        members: Vec<usize>,
        /// What is wrong with it.
        why: &'static str,
    },

    /// The peer has ended, or has dropped its end of the transport.
    #[error(
        "rank {rank}: rank {peer} is gone: it has ended, or dropped its transport, before all messages were through"
    )]
    Gone {
        /// The rank that noticed.
        rank: usize,
        /// Who is gone.
        peer: usize,
    },

    /// The library below has noticed that a rank's process has ended.
    #[error("rank {rank}: rank {failed} has failed: its process has ended, or cannot be reached")]
    Failed {
        /// The rank that noticed.
        rank: usize,
        /// The lowest rank of which it is known.
        failed: usize,
    },

    /// Another rank has ended the transport for all ([`Transport::revoke`](super::Transport::revoke)).
    #[error("rank {rank}: another rank has ended all messages of this group (MPI_Comm_revoke); its own error says why")]
    Revoked {
        /// The rank that was called.
        rank: usize,
    },

    /// The library below cannot go on once a rank has failed.
    #[error(
        "rank {rank}: {library} cannot go on without a rank that has failed; an MPI with ULFM can, such as Open MPI 5 \
         under `mpirun --with-ft ulfm`"
    )]
    NoRecovery {
        /// The rank that was called.
        rank: usize,
        /// The library.
        library: String,
    },

    /// A message of another length than its receive.
    #[error(
        "rank {rank} waits for {expected} bytes from rank {peer} (tag {tag}), but {arrived} came; \
         both must be in the same call with the same count"
    )]
    Length {
        /// The receiver.
        rank: usize,
        /// The sender.
        peer: usize,
        /// The tag of both.
        tag: u32,
        /// Bytes that the receiver waits for; of a message that goes in parts, of the part that differs.
        expected: usize,
        /// Bytes that came.
        arrived: usize,
    },

    /// A call of the library below that failed.
    #[error("rank {rank}: {call}{}: {text}", peer.map_or(String::new(), |peer| format!(" with rank {peer}")))]
    Library {
        /// The call.
        call: &'static str,
        /// The rank that called.
        rank: usize,
        /// The rank at the other end, if the call has one.
        peer: Option<usize>,
        /// The library's own text.
        text: String,
    },

    /// MPI has not begun.
    #[error(
        "MPI is not initialised: call MPI_Init_thread (mpi::initialize_with_threading in Rust) first, and keep it alive"
    )]
    NotInitialised,

    /// MPI is over.
    #[error(
        "MPI is finalised already: drop everything that uses it before MPI_Finalize (in Rust, before the universe)"
    )]
    Finalised,

    /// A call from a thread that may not make it.
    #[error(
        "this thread must not use MPI: the program asked for {level}; initialise it with MPI_THREAD_SERIALIZED \
         or more, or make all calls from the thread that initialised MPI"
    )]
    Thread {
        /// What MPI granted.
        level: &'static str,
    },

    /// No communicator at all.
    #[error(
        "the communicator is MPI_COMM_NULL: this process is in no group; ranks that a split left out must not make one"
    )]
    NoCommunicator,

    /// A communicator between two groups.
    #[error("the communicator is an intercommunicator, between two groups; merge them first (MPI_Intercomm_merge)")]
    Intercommunicator,

    /// Every process of the job believes to be alone.
    #[error(
        "MPI says that this process is alone, but {variable}={value}: the launcher that started it is that of another MPI than \
         {library}, for which it was built. Start it with that one's own mpirun, or build it with the launcher's \
         compiler (MPICC=..) in a fresh target directory; if it is meant to be alone, unset {variable}"
    )]
    Singletons {
        /// The launcher's variable.
        variable: &'static str,
        /// Its value.
        value: String,
        /// The library that the program is linked with.
        library: String,
    },

    /// A rank that was not heard of in time.
    #[error(
        "rank {rank} has waited {limit:?} for rank {peer}: {what}; see whether its process still runs and what it does"
    )]
    Late {
        /// The rank that waited.
        rank: usize,
        /// For whom.
        peer: usize,
        /// For what.
        what: &'static str,
        /// How long.
        limit: Duration,
    },

    /// Bytes that a peer sent and that do not mean anything.
    #[error(
        "rank {rank} does not understand what rank {peer} sent: {what}; all ranks must run the same build of the library"
    )]
    Garbled {
        /// The receiver.
        rank: usize,
        /// The sender.
        peer: usize,
        /// What was expected.
        what: &'static str,
    },

    /// A request that was begun by another transport, or has been abandoned.
    #[error("rank {rank}: the request is not one of this transport: test and abandon it where it was begun")]
    Request {
        /// The rank that was called.
        rank: usize,
    },
}

impl Error {
    /// Whether a rank is lost, or all messages were ended because of one: every later call fails likewise.
    #[must_use]
    pub fn is_loss(&self) -> bool {
        matches!(self, Self::Failed { .. } | Self::Revoked { .. })
    }
}
