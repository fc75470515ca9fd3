//! The options of the command line.

use std::fmt::Display;
use std::str::FromStr;

/// What `--help` prints.
pub const USAGE: &str = "\
Trains a small network on handwritten digits; the ranks share the work.

Usage: phalanx run -n RANKS -- digits [OPTIONS]

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
    /// Whether only the usage is asked for.
    pub help: bool,
}

impl Options {
    /// Takes the arguments that follow the program's name, or says what is wrong with them.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Options, String> {
        let mut options = Options { epochs: 30, batch: 128, rate: 0.1, hidden: 32, seed: 1, data: None, help: false };
        let mut arguments = arguments.into_iter();
        while let Some(name) = arguments.next() {
            if name == "--help" || name == "-h" {
                options.help = true;
                continue;
            }
            let mut value =
                || arguments.next().ok_or_else(|| format!("{name} needs a value (--help shows the options)"));
            match name.as_str() {
                "--epochs" => options.epochs = number(&name, &value()?, |n| *n > 0)?,
                "--batch" => options.batch = number(&name, &value()?, |n| *n > 0)?,
                "--rate" => {
                    options.rate = number(&name, &value()?, |x: &f64| *x > 0.0 && x.is_finite())?;
                }
                "--hidden" => {
                    options.hidden = number(&name, &value()?, |n| (1..=4096).contains(n))?;
                }
                "--seed" => options.seed = number(&name, &value()?, |_| true)?,
                "--data" => options.data = Some(value()?),
                _ => return Err(format!("unknown option {name} (--help shows the options)")),
            }
        }
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
