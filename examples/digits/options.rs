//! The options of the command line.

use crate::arguments::Arguments;

/// What `--help` prints.
pub const USAGE: &str = "\
Trains a small network on handwritten digits; the ranks share the work.

Usage: phalanx run -n RANKS -- digits [OPTIONS]
       mpirun -n RANKS digits [OPTIONS]            (built with feature mpi)

Options:
  --epochs N    passes over the training images (default 30)
  --batch N     images in a step, all ranks together (default 128)
  --rate X      step size (default 0.1)
  --hidden N    units of the hidden layer (default 32)
  --seed N      of the split, the first weights and the order of the images (default 1)
  --data PATH   a file of 64 pixels (0 to 16) and a digit a line, separated by commas
                (default: the 1,797 UCI digits, built in)
  --help        this text
";

/// How to train.
pub struct Options {
    /// Passes over the training images.
    pub epochs: usize,
    /// Images in a step, all ranks together.
    pub batch: usize,
    /// Step size.
    pub rate: f64,
    /// Units of the hidden layer.
    pub hidden: usize,
    /// Seed of everything random.
    pub seed: u64,
    /// The data's file, when it is not the built-in one.
    pub data: Option<String>,
}

impl Options {
    /// Reads the options; none when the usage is asked for. An error says what is wrong.
    pub fn parse(arguments: &mut Arguments) -> Result<Option<Options>, String> {
        let mut options = Options { epochs: 30, batch: 128, rate: 0.1, hidden: 32, seed: 1, data: None };
        while let Some(option) = arguments.option() {
            match option.as_str() {
                "--epochs" => options.epochs = arguments.number(|n| *n > 0)?,
                "--batch" => options.batch = arguments.number(|n| *n > 0)?,
                "--rate" => options.rate = arguments.number(|x: &f64| *x > 0.0 && x.is_finite())?,
                "--hidden" => options.hidden = arguments.number(|n| (1..=4096).contains(n))?,
                "--seed" => options.seed = arguments.number(|_| true)?,
                "--data" => options.data = Some(arguments.value()?),
                "--help" | "-h" => return Ok(None),
                _ => return Err(arguments.unknown()),
            }
        }
        Ok(Some(options))
    }
}
