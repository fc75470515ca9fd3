//! A world for the model checker: words, payload, waiting and bells made of loom's parts, beneath the production protocols.
//!
//! | file | holds |
//! |---|---|
//! | `mutant` | what may be broken in a world, one thing at a time |
//! | `world` | the board: words with weakenable orderings, payload, a wait that ends |
//! | `watched` | payload that sees every race |
//! | `bell` | a futex, fences and bell words |
//! | `calls` | one call of each protocol, with payload whose every value is known |
//! | `check` | running a model, and asserting that it holds or that it is rejected, and how |
//!
//! The protocols are not told that they are being watched: they are generic over `Board` and `Sleepers`, and so need no
//! private cfg. Each file `loom_*.rs` uses a part of this module.

#![allow(dead_code, unused_imports, unused_macros)]

pub mod bell;
pub mod calls;
pub mod check;
pub mod mutant;
pub mod watched;
pub mod world;

pub use check::{Bound, Rejected};
pub use mutant::Mutant;
pub use watched::Watched;
pub use world::{ModelBoard, Shape, World, run_ranks};
