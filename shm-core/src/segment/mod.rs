//! The segment: one region of memory that all ranks of a job map.
//!
//! ```text
//! header | bells, one a rank | note | maps of arena and heap | arena: blocks of communicators | heap: buffers
//! ```
//!
//! A `memfd`, so that there is no name to guess and nothing stays behind however a job ends; sealed against growing and
//! shrinking; every part that is used is reserved (`fallocate`) before it is touched, so that too little memory is an
//! error and never a signal; cells only where the system counts what it promises, since most communicators use few of
//! them. Its layout is a pure function of the job's size ([`layout`]), and what makes two builds agree on it goes into
//! the header's hash.

pub(crate) mod arena;
pub(crate) mod header;
pub(crate) mod heap;
pub mod layout;
pub(crate) mod map;
mod map_lock;
pub(crate) mod mapping;
pub(crate) mod memory_file;
pub(crate) mod memory_left;
pub(crate) mod pool;
