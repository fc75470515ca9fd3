//! What the command says on standard output.

use std::fmt;
use std::io::{self, Write};

use crate::error::{Error, Result};

/// Writes a text, as `print!` does.
///
/// # Errors
///
/// [`Error::Unwritten`], which says nothing further where only the reader has left.
pub fn show(text: impl fmt::Display) -> Result<()> {
    let mut out = io::stdout().lock();
    write!(out, "{text}").and_then(|()| out.flush()).map_err(Error::Unwritten)
}

/// Writes a line, as `println!` does: what cannot be written is the error of [`show`] instead of a panic.
macro_rules! say {
    ($format:literal $($arguments:tt)*) => {
        $crate::out::show(format_args!("{}\n", format_args!($format $($arguments)*)))
    };
}
pub(crate) use say;

/// Lines of prose beside tables are no longer than this.
pub const WIDTH: usize = 118;

/// Appends words in lines of so many characters; all lines behind the first are as deep as `mark`.
pub fn paragraph(text: &mut String, width: usize, mark: &str, words: &str) {
    let depth = " ".repeat(mark.chars().count());
    let mut line = mark.to_owned();
    let mut empty = true;
    for word in words.split_whitespace() {
        if !empty && line.chars().count() + 1 + word.chars().count() > width {
            *text += &format!("{line}\n");
            line.clone_from(&depth);
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line += word;
        empty = false;
    }
    *text += &format!("{}\n", line.trim_end());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_words_are_broken_into_lines() {
        let mut text = String::new();
        paragraph(&mut text, WIDTH, "  x: ", &"word ".repeat(60));
        assert!(text.lines().count() > 2 && text.lines().all(|line| line.len() <= WIDTH));
        assert!(text.lines().skip(1).all(|line| line.starts_with("     word")));
        assert_eq!(text.split_whitespace().filter(|word| *word == "word").count(), 60);
    }
}
