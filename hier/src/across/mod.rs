//! Collectives across nodes: shared memory within a node, a schedule of messages between nodes.
//!
//! [`HierComm`] is the communicator. An allreduce has three parts, which overlap slice by slice: the ranks of a node
//! reduce a slice into the shares of their leaders, the leaders of a share reduce it with those of the other nodes by a
//! [schedule](crate::schedule), and each node hands the shares out. One leader a node makes it the classic hierarchy,
//! several make it the data-partitioned one (Bayatpour et al., SC 2017), slices in flight make it a pipeline (SALaR,
//! CLUSTER 2018).
//!
//! | file | what |
//! |---|---|
//! | `communicator` | the communicator: made, divided, duplicated, ended |
//! | `choosing` | what a call does: its choice, its leaders, its schedule |
//! | `faults` | how a call begins, and what an error in it ends |
//! | `group` | communicators that their members make among themselves |
//! | `allreduce`, `rooted` | the collectives |
//! | `settings` | how it is made, and how ranks agree on that; `PHALANX_TOPOLOGY` |
//! | `one_sided` | the allreduce in which nodes read and write each other's memory |
//! | `rules` | which schedule, leaders and slices a call takes; `PHALANX_CLUSTER` |
//! | `model` | what the network costs, measured |
//! | `cut` | slices that leave the order of additions alone |
//! | `stages` | what the node does meanwhile, where a message goes whole |
//! | `adapt` | slices that find their size |
//! | `run` | a schedule under way, executed without waiting |
//! | `network` | all that a rank has under way |
//! | `shrink` | going on without ranks that have failed |
//! | `alarm` | how nodes hear of a rank that cannot go on |

mod adapt;
mod alarm;
mod allreduce;
mod choosing;
mod communicator;
mod cut;
mod error;
mod faults;
mod flight;
mod group;
mod model;
mod network;
mod one_sided;
mod rooted;
mod rules;
mod run;
mod settings;
mod shrink;
mod stages;

pub use communicator::HierComm;
pub use error::{Error, Result};
pub use group::Opening;
pub use model::{Line, NetworkModel};
pub use rooted::HierProcess;
pub use rules::{Choice, ClusterRules, Rule, Setting, Slice};
pub use settings::{ClusterSettings, Cost};
