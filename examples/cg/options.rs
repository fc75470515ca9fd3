//! The options of the command line.

use crate::arguments::Arguments;

/// What `--help` prints.
pub const USAGE: &str = "\
Solves a Poisson problem on the unit square with conjugate gradients; the ranks share the grid.

Usage: phalanx run -n RANKS -- cg [OPTIONS]
       mpirun -n RANKS cg [OPTIONS]            (built with feature mpi)

Options:
  --grid N             N x N unknowns; at least as many as there are ranks (default 256)
  --residual X         stop when the residual is X times that of the start (default 1e-10)
  --max-iterations N   give up after so many (default 10 N)
  --max-error X        largest deviation from the known solution that is accepted, as a part of
                       the solution's largest value; else the exit status is 1 (default 1e-8)
  --help               this text
";

/// What to solve, and how well.
pub struct Options {
    /// Unknowns along each side of the square.
    pub grid: usize,
    /// The residual to reach, as a part of that of the start.
    pub residual: f64,
    /// Iterations after which to give up.
    pub max_iterations: usize,
    /// Accepted deviation from the known solution, as a part of its largest value.
    pub max_error: f64,
}

impl Options {
    /// Reads the options; none when the usage is asked for. An error says what is wrong.
    pub fn parse(arguments: &mut Arguments) -> Result<Option<Options>, String> {
        let mut options = Options { grid: 256, residual: 1e-10, max_iterations: 0, max_error: 1e-8 };
        let mut max_iterations = None;
        let small = |x: &f64| *x > 0.0 && *x < 1.0;
        while let Some(option) = arguments.option() {
            match option.as_str() {
                "--grid" => options.grid = arguments.number(|n| (1..=16384).contains(n))?,
                "--residual" => options.residual = arguments.number(small)?,
                "--max-iterations" => max_iterations = Some(arguments.number(|n| *n > 0)?),
                "--max-error" => options.max_error = arguments.number(small)?,
                "--help" | "-h" => return Ok(None),
                _ => return Err(arguments.unknown()),
            }
        }
        options.max_iterations = max_iterations.unwrap_or(10 * options.grid);
        Ok(Some(options))
    }
}
