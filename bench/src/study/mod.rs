//! What all studies have in common: `bench commtest`, `bench allreduce`, `bench reproduce`.
//!
//! A study measures many things one after another, for minutes or hours. Each that is finished goes to the end of one
//! file of the study's record at once ([`store`]), so that a study that is stopped loses nothing and goes on with
//! `--resume` where it was.
//!
//! | file | what |
//! |---|---|
//! | `description` | the paper, what it did, what differs here |
//! | `options` | `--quick`, `--name`, `--output`, `--resume` |
//! | `session` | a study while it runs: record, store, progress, stop |
//! | `store` | finished measurements, one a line |
//! | `stop` | SIGINT and SIGTERM |
//! | `fit` | latency and bandwidth by least squares |
//! | `break_even` | where one curve crosses another |

pub mod break_even;
pub mod description;
pub mod fit;
pub mod options;
pub mod session;
pub mod stop;
pub mod store;

pub use break_even::{BreakEven, Crossing};
pub use description::Description;
pub use fit::{Fit, Sample};
pub use options::StudyOptions;
pub use session::Session;
pub use stop::Stop;
pub use store::Store;
