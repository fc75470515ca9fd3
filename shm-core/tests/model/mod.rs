//! A world for the model checker: words, payload, waiting and bells made of loom's parts, beneath the production
//! protocols.
//!
//! | file | holds |
//! |---|---|
//! | `mutant` | what may be broken in a world, one thing at a time |
//! | `world` | the board: words with weakenable orderings, payload, a wait that ends |
//! | `watched` | payload that sees every race |
//! | `bell` | a futex, fences and bell words |
//! | `rank` | what a model's rank has: the board as it sees it, and its three rings |
//! | `tree` | the trees of models, and what a rank knows of them |
//! | `calls` | what a rank calls: exchanges, steps over trees, pipelines, with payload whose every value is known |
//! | `shares` | what it calls besides: reductions through shares, and their two halves |
//! | `deliveries` | calls in which some ranks publish and some read |
//! | `joint` | calls of two ranks that both work on what one of them lends |
//! | `loans` | calls in which ranks lend buffers of their own |
//! | `stacks` | memory of ranks' stacks, kept from one execution to the next |
//! | `check` | running a model, and asserting that it holds or that it is rejected, and how |
//!
//! The protocols are not told that they are being watched: they are generic over `Board` and `Sleepers`, and so need no
//! private cfg. Each file `loom_*.rs` uses a part of this module.

#![allow(dead_code, unused_imports, unused_macros)]

pub mod bell;
pub mod calls;
pub mod check;
pub mod deliveries;
pub mod joint;
pub mod loans;
pub mod mutant;
pub mod rank;
pub mod shares;
mod stacks;
pub mod tree;
pub mod watched;
pub mod world;

pub use check::{Bound, Rejected};
pub use mutant::{D1, D2, L1, L2, Mutant, U1, U2};
pub use rank::Rank;
pub use tree::Tree;
pub use watched::Watched;
pub use world::{ModelBoard, World};
