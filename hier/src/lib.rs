//! The communicators of programs: topo's trees joined to shm-core's links on one node ([`Communicator`]), and nodes
//! joined by messages ([`HierComm`]).
//!
//! shm-core knows no machine, topo knows no memory; here a tree that was built for the places where the ranks really
//! run becomes each rank's links. Between nodes go [schedules](schedule) over a [`transport`], MPI as a rule. The
//! launcher is here too, since it must know machines and segments: [`launch`]. So are the [`table`] of choices, and
//! what measures it ([`tune`]).

pub mod across;
mod communicator;
mod cores;
pub mod launch;
pub mod nodes;
mod note;
mod plan;
mod rules;
pub mod schedule;
pub mod simulate;
pub mod table;
pub mod transport;
pub mod tune;

pub use across::HierComm;
pub use communicator::Communicator;
pub use note::Note;
pub use plan::TopologyPlan;
pub use rules::TreeRules;
/// The communicator of one node ([`HierComm::single_node`]).
pub use shm_core::Communicator as NodeCommunicator;
#[doc(hidden)]
pub use shm_core::remark;
pub use shm_core::{
    Blocks, Buffer, Collective, Counters, Element, Error, Explanation, Pair, Partition, PartitionMut, Process,
    Reaching, Regime, Result, SharedResult, Tuning, Zeroable, bytemuck, half, job, num_complex, operator,
};
