//! The arguments of a command line, read one by one.
//!
//! The examples share this file by `#[path = "../shared/arguments.rs"] mod arguments;`.

use std::fmt::Display;
use std::str::FromStr;

/// The arguments that follow the program's name.
pub struct Arguments {
    rest: std::vec::IntoIter<String>,
    /// The option that was read last.
    option: String,
}

impl Arguments {
    /// Arguments of which none is read yet.
    pub fn new(arguments: impl IntoIterator<Item = String>) -> Arguments {
        Arguments { rest: arguments.into_iter().collect::<Vec<_>>().into_iter(), option: String::new() }
    }

    /// The next option.
    pub fn option(&mut self) -> Option<String> {
        self.option = self.rest.next()?;
        Some(self.option.clone())
    }

    /// The value of the option that was read last.
    pub fn value(&mut self) -> Result<String, String> {
        self.rest.next().ok_or_else(|| format!("{} needs a value (--help shows the options)", self.option))
    }

    /// The number that is the value of the option that was read last, when `valid` accepts it.
    pub fn number<T: FromStr + Display>(&mut self, valid: impl FnOnce(&T) -> bool) -> Result<T, String> {
        let text = self.value()?;
        match text.parse() {
            Ok(value) if valid(&value) => Ok(value),
            Ok(value) => Err(format!("{}: {value} is out of range", self.option)),
            Err(_) => Err(format!("{}: {text:?} is not a number of the right kind", self.option)),
        }
    }

    /// What to say of an option that there is not.
    pub fn unknown(&self) -> String {
        format!("unknown option {} (--help shows the options)", self.option)
    }
}
