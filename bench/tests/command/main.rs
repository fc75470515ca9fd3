//! The command as a person runs it, with real ranks, in its short forms.
//!
//! What needs an MPI or an emulated cluster says so, and is skipped, where they are missing, unless
//! `PHALANX_TEST_MPI=required` or `PHALANX_TEST_CLUSTER=required`.

#![forbid(unsafe_code)]

mod across;
mod reproduce;
mod running;
mod short_run;
mod steps;
mod studies;
