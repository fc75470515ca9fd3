//! Conjugate gradients on a Poisson problem in two dimensions, the grid divided over the ranks in strips of rows.
//!
//! ```sh
//! cargo build --release --bins --examples
//! target/release/phalanx run -n 4 -- target/release/examples/cg
//! ```
//!
//! Collectives on the way: dot products are allreduces of 8 bytes, the worst case for a library's latency; border
//! rows go between neighbours through communicators of two (see `halo.rs`). The result is compared with the known
//! solution (see `problem.rs`); the exit status is 1 when it is further off than `--max-error` allows.
//!
//! Any number of ranks from 1 to the number of rows will do. Started without the launcher, the program is a world of
//! one rank.

#[path = "../shared/arguments.rs"]
mod arguments;
mod halo;
mod options;
mod problem;
mod solver;
#[path = "../shared/start.rs"]
mod start;
#[path = "../shared/stopwatch.rs"]
mod stopwatch;

use std::process::ExitCode;

use phalanx::operator::Max;

use halo::Neighbours;
use options::{Options, USAGE};
use problem::Strip;
use solver::Place;
use start::{Communicator, Result, leader_says};
use stopwatch::Stopwatch;

/// The history of the residual gets a line each time that it has fallen by this factor.
const REPORT_FACTOR: f64 = 100.0;

fn main() -> ExitCode {
    start::run("cg", USAGE, Options::parse, run)
}

/// The whole program on one rank. An error comes from a collective; everything else is said here.
fn run(world: &Communicator, options: &Options) -> Result<ExitCode> {
    if options.grid < world.size() {
        leader_says(world, || {
            eprintln!(
                "cg: {} ranks cannot share {} rows; use a larger --grid or fewer ranks",
                world.size(),
                options.grid
            );
        })?;
        return Ok(ExitCode::from(2));
    }
    solve(world, options)
}

/// Solves, compares with the known solution and reports.
fn solve(world: &Communicator, options: &Options) -> Result<ExitCode> {
    let leader = world.rank() == 0;
    let strip = Strip::new(options.grid, world.rank(), world.size());
    let neighbours = Neighbours::new(world)?;
    let communicators: Vec<&Communicator> = neighbours.communicators().chain([world]).collect();
    if leader {
        println!(
            "cg              ranks {}, grid {n} x {n}, unknowns {}",
            world.size(),
            options.grid * options.grid,
            n = options.grid
        );
    }

    let watch = Stopwatch::start(world, &communicators)?;
    let place = Place { world, neighbours: &neighbours, strip: &strip, watch: &watch };
    let mut report_at = 1.0;
    let outcome =
        place.solve(&strip.right_hand_side(), options.residual, options.max_iterations, |iteration, residual| {
            if leader && residual <= report_at {
                println!("iteration {iteration:>5} residual {residual:.2e}");
                report_at = residual / REPORT_FACTOR;
            }
        })?;
    let figures = watch.stop(world, &communicators)?;

    let mut deviation = [0.0, 0.0];
    for (found, known) in outcome.solution.iter().zip(strip.solution()) {
        deviation[0] = f64::max(deviation[0], (found - known).abs());
        deviation[1] = f64::max(deviation[1], known.abs());
    }
    world.all_reduce_in_place(&mut deviation, Max)?;
    let error = deviation[0] / deviation[1];
    // A comparison with a number that is none is false: such a result is not accepted.
    let accepted = error <= options.max_error;

    if leader {
        println!("iterations      {}", outcome.iterations);
        println!("final residual  {:.3e} (bits {:016x})", outcome.residual, outcome.residual.to_bits());
        println!("error           {error:.3e} against the known solution (accepted up to {:e})", options.max_error);
        println!("{figures}");
        if !outcome.converged {
            eprintln!(
                "cg: the residual {:e} was not reached in {} iterations; try a larger --max-iterations",
                options.residual, outcome.iterations
            );
        }
        if !accepted {
            eprintln!("cg: the error {error:.3e} is larger than {:e}", options.max_error);
        }
    }
    Ok(if outcome.converged && accepted { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
