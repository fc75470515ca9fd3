//! `bench steps`: whole steps of application patterns, with the drop-in library in front of an MPI and without.
//!
//! A step is more than a call: input is written, work is done, several calls are made, results are read and checked.
//! What a call gains may be lost in what stands around it, and the other way round; only whole steps tell. The program of
//! ranks is in C (`baseline/steps.c`) and is compiled for each MPI.
//!
//! # How a row is measured
//!
//! - Every figure is of a fresh job. Jobs with the library and without take turns (A B B A ..), and so do the MPIs.
//! - A job makes steps until a quarter of its time is over; then it times blocks of steps that fill its time, all ranks
//!   the same number. A step's time is that on the slowest rank, its processor time that of all ranks together; both are
//!   medians over the blocks.
//! - A ratio is the median of the turns' ratios, time without the library by time with it.
//! - Every answer is checked, in full where the result is read anyway: a wrong one ends the run.
//! - Work is a fixed number of operations, and what varies from step to step repeats after 32: all jobs do the same.
//! - MPIs run as they come. Ranks are bound to cores where there are enough of them.
//! - SIGINT and SIGTERM end the job that runs, with its ranks, and what is finished is kept.
//! - Of each job with the library the path of the library that its calls lead to is compared with what was asked for.
//!
//! | file | what |
//! |---|---|
//! | `patterns` | names, words, arguments |
//! | `options` | the command line |
//! | `job` | one job: started, ended, read |
//! | `figures` | turns of jobs as a row; what loses |
//! | `report`, `picture` | tables, summary, plot |
//! | `drive` | the command |

pub mod drive;
pub mod figures;
pub mod job;
pub mod options;
pub mod patterns;
pub mod picture;
pub mod report;

pub use drive::run;
