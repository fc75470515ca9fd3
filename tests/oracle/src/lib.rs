//! The oracle of the tests: what every rank contributes to a call ([`sample`]), and what an operator makes of it
//! ([`operation`]), in plain Rust.
//!
//! It knows nothing of communicators, and is compiled once for all that test them.

#![forbid(unsafe_code)]

pub mod algebra;
pub mod operation;
pub mod operations;
pub mod random;
pub mod sample;
