//! The options of the command line.

use std::fmt::Display;
use std::str::FromStr;

/// What `--help` prints.
pub const USAGE: &str = "\
Solves a Poisson problem on the unit square with conjugate gradients; the ranks share the grid.

Usage: phalanx run -n RANKS -- cg [OPTIONS]

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
    /// Whether only the usage is asked for.
    pub help: bool,
}

impl Options {
    /// Takes the arguments that follow the program's name, or says what is wrong with them.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Options, String> {
        let mut options = Options { grid: 256, residual: 1e-10, max_iterations: 0, max_error: 1e-8, help: false };
        let mut max_iterations = None;
        let mut arguments = arguments.into_iter();
        while let Some(name) = arguments.next() {
            if name == "--help" || name == "-h" {
                options.help = true;
                continue;
            }
            let mut value =
                || arguments.next().ok_or_else(|| format!("{name} needs a value (--help shows the options)"));
            let small = |x: &f64| *x > 0.0 && *x < 1.0;
            match name.as_str() {
                "--grid" => options.grid = number(&name, &value()?, |n| (1..=16384).contains(n))?,
                "--residual" => options.residual = number(&name, &value()?, small)?,
                "--max-iterations" => {
                    max_iterations = Some(number(&name, &value()?, |n| *n > 0)?);
                }
                "--max-error" => options.max_error = number(&name, &value()?, small)?,
                _ => return Err(format!("unknown option {name} (--help shows the options)")),
            }
        }
        options.max_iterations = max_iterations.unwrap_or(10 * options.grid);
        Ok(options)
    }
}

/// The number that `text` spells, when `valid` accepts it.
fn number<T: FromStr + Display>(name: &str, text: &str, valid: impl FnOnce(&T) -> bool) -> Result<T, String> {
    match text.parse() {
        Ok(value) if valid(&value) => Ok(value),
        Ok(value) => Err(format!("{name}: {value} is out of range")),
        Err(_) => Err(format!("{name}: {text:?} is not a number of the right kind")),
    }
}
