//! Waiting: how long to spin, when to yield, and how to sleep without losing a wake-up.

pub mod bell;
mod patience;

pub(crate) use patience::Patience;
