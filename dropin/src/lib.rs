//! The core of the drop-in library: MPI's collectives carried out by Phalanx, for programs that know nothing of it.
//!
//! The front, which is preloaded, finds the MPI of the process and loads this core for its ABI; each of MPI's names
//! that concern us then leads here. A call is carried out here or handed on to the library, and all ranks decide alike:
//! README.md beside this crate says how.
//!
//! | file | what |
//! |---|---|
//! | `settings` | what the environment asks for |
//! | `stats` | what was called, how often, for how long |
//! | `abi` | handles, constants and functions of the library |
//! | `what`, `gains` | the collectives that are looked at; where the library beneath is faster |
//! | `types`, `operators`, `pairs`, `local` | what datatypes and operators are, and how they are folded |
//! | `life` | MPI begins and ends |
//! | `communicators`, `making`, `freeing` | which communicator a handle stands for; when it is taken over; its end |
//! | `calls` | the functions that programs call |
//! | `fortran` | the same for Fortran |
//! | `heap` | what malloc keeps of what a program frees |
//! | `memory` | MPI_Alloc_mem |
//! | `verify`, `agreement` | results compared with the library's |
//! | `entry` | the front is answered |
//! | `direct` | what the added cost of a call is measured against |

pub mod agreement;
pub mod gains;
pub mod operators;
pub mod pairs;
pub mod settings;
pub mod stats;
pub mod table;
pub mod what;

#[cfg(feature = "mpi")]
mod abi;
#[cfg(feature = "mpi")]
mod calls;
#[cfg(feature = "mpi")]
mod communicators;
#[cfg(feature = "mpi")]
mod direct;
#[cfg(feature = "mpi")]
mod entry;
#[cfg(feature = "mpi")]
mod fortran;
#[cfg(feature = "mpi")]
mod freeing;
#[cfg(feature = "mpi")]
mod heap;
#[cfg(feature = "mpi")]
mod life;
#[cfg(feature = "mpi")]
mod local;
#[cfg(feature = "mpi")]
mod making;
#[cfg(feature = "mpi")]
mod memory;
#[cfg(feature = "mpi")]
mod types;
#[cfg(feature = "mpi")]
mod verify;
