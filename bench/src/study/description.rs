//! Which work a study repeats, in the words of its help and of its record.

use std::fmt::Write;

use crate::out::paragraph;

/// Lines of a help text are no longer than this.
const WIDTH: usize = 100;

/// Where a study comes from, and what is other here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Description {
    /// The study's name, as on the command line: `commtest`, `reproduce ring`.
    pub name: &'static str,
    /// Authors, title, where and when.
    pub paper: &'static str,
    /// What the paper did, one sentence or more an entry.
    pub did: &'static [&'static str],
    /// What differs here, one sentence or more an entry.
    pub differs: &'static [&'static str],
}

impl Description {
    /// The text that stands below the options in a help, and above the tables in a record.
    pub fn render(&self) -> String {
        let mut text = String::new();
        paragraph(&mut text, WIDTH, "", &format!("Paper: {}", self.paper));
        for (title, entries) in [("The paper:", self.did), ("Here:", self.differs)] {
            let _ = writeln!(text, "\n{title}");
            entries.iter().for_each(|entry| paragraph(&mut text, WIDTH, "  * ", entry));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: Description = Description {
        name: "sample",
        paper: "A. Author and B. Author, On something, Journal of Things 1(2), 2009",
        did: &[
            "It counted sheep.",
            "It then slept, for as long as it takes to write a line that must be broken somewhere near its end.",
        ],
        differs: &["Goats are counted."],
    };

    #[test]
    fn every_word_is_there_and_no_line_is_long() {
        let text = SAMPLE.render();
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        let words =
            |text: &str| text.split_whitespace().filter(|word| *word != "*").map(String::from).collect::<Vec<_>>();
        let all =
            format!("Paper: {} The paper: {} Here: {}", SAMPLE.paper, SAMPLE.did.join(" "), SAMPLE.differs.join(" "));
        assert_eq!(words(&text), words(&all));
        assert!(text.contains("\n  * It then slept") && text.contains("\n    "), "{text}");
    }
}
