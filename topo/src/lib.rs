//! Machines as plain data, and the trees that collectives run over.
//!
//! Three questions are answered here, and all answers are values that can be printed, compared and tested on machines
//! that nobody at hand owns:
//!
//! * **What does the machine look like, and where may a rank run?** [`Machine`] lists every PU (what the operating
//!   system schedules on: a hardware thread) with its core, L3 cache, NUMA node and package. It comes from the live
//!   machine ([`Machine::discover`]), from one line of text ([`Machine::synthetic`]) or from a file that `lstopo`
//!   wrote ([`Machine::from_xml_file`]). [`Usable`] tells which PUs this process may use and how much processor time
//!   it is allowed; [`Machine::place`] deals them out to ranks; [`binding_of`] and [`Machine::location`] tell where a
//!   rank really is.
//! * **Who talks to whom?** A [`TreeSpec`] such as `kary:3:right:package:leaders-last` describes a tree, and
//!   [`TreeSpec::build`] makes it for given ranks and a given root: [`Tree`] holds each rank's parent and its
//!   children in the order in which they are served.
//! * **How are the machines of a cluster wired, and in which order does a ring visit them?** A [`Cluster`] is a tree of
//!   switches, read from Slurm's `topology.conf`; [`Cluster::ring`] is an order that loads no link twice, and
//!   [`Cluster::loads`] counts what any flows put on each link.
//!
//! The crate knows no shared memory and no MPI. hwloc is known to one module only, which hands out plain data.
//!
//! ```
//! use topo::{BindPolicy, Machine, SocketMap, TreeSpec, Usable};
//!
//! # fn main() -> Result<(), topo::Error> {
//! // Eight ranks, one a core, on a machine with two sockets.
//! let machine = Machine::synthetic("pack:2 core:4 pu:1")?;
//! let places = machine.place(8, BindPolicy::Core, &Usable::all_of(&machine));
//! let locations: Vec<_> = places.iter().flatten().map(|pus| machine.location(pus)).collect();
//! let map = SocketMap::from_locations(&locations);
//!
//! // A tree in which one message only crosses from socket to socket.
//! let spec: TreeSpec = "kary:2:right:package:leaders-last".parse()?;
//! let tree = spec.build(&map, 0)?;
//! assert_eq!(tree.children[0], [2, 1, 4]); // its own socket first, then the leader of the other
//! # Ok(())
//! # }
//! ```
//!
//! `docs/TREES.md` in this crate's folder explains the trees with pictures, and `docs/CLUSTERS.md` the rings.

#![forbid(unsafe_code)]

mod cgroup;
pub mod cluster;
mod compact;
mod discover;
mod error;
mod index_list;
mod machine;
mod picture;
mod place;
mod svg;
mod text;
mod tree;
mod usable;

pub use cluster::Cluster;
pub use error::Error;
pub use machine::{Location, Machine, Pu};
pub use place::BindPolicy;
pub use text::read_text;
pub use tree::{Kind, Leaders, Level, Skew, SocketMap, Tree, TreeSpec, theory_depth};
pub use usable::{Usable, binding_of};
