//! Finished measurements on disk: one line each, so that a run that is interrupted loses none.
//!
//! ```text
//! # machine: the one that was measured
//! ranks collective bytes candidates <tab> microseconds by block .. <tab> .. <tab> end
//! ```

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use super::Figures;

/// What a measurement is known by: ranks, collective and bytes, trees, candidates.
type Key = String;

/// Measurements that were finished, and where more are written.
#[derive(Debug, Default)]
pub struct Ledger {
    known: HashMap<Key, Vec<Figures>>,
    file: Option<File>,
}

impl Ledger {
    /// The measurements in a text, and no file.
    #[must_use]
    pub fn of_text(text: &str) -> Self {
        let entries = text.lines().filter_map(parse);
        Self { known: entries.collect(), file: None }
    }

    /// Writes what comes from now on to the end of a file too.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn append_to(&mut self, path: &Path) -> io::Result<()> {
        self.file = Some(OpenOptions::new().create(true).append(true).open(path)?);
        Ok(())
    }

    /// A measurement that was finished before.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Vec<Figures>> {
        self.known.get(key)
    }

    /// Notes a measurement.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn put(&mut self, key: &str, figures: &[Figures]) -> io::Result<()> {
        self.known.insert(key.to_owned(), figures.to_vec());
        let Some(file) = &mut self.file else { return Ok(()) };
        let blocks =
            |figures: &Figures| figures.blocks.iter().map(|time| format!("{time:?}")).collect::<Vec<_>>().join(" ");
        let columns: Vec<String> = figures.iter().map(blocks).collect();
        // One write: a line is there whole, or not at all.
        file.write_all(format!("{key}\t{}\tend\n", columns.join("\t")).as_bytes())
    }
}

fn parse(line: &str) -> Option<(Key, Vec<Figures>)> {
    let mut columns: Vec<&str> = line.split('\t').collect();
    (columns.pop()? == "end" && columns.len() >= 2).then_some(())?;
    let figures = columns[1..].iter().map(|column| {
        let blocks = column.split(' ').map(|time| time.parse().ok()).collect::<Option<Vec<f64>>>()?;
        Some(Figures { blocks })
    });
    Some((columns[0].to_owned(), figures.collect::<Option<Vec<_>>>()?))
}

/// Begins a ledger for a machine, in its words, if there is none yet; one that has measurements must be of the same
/// machine.
///
/// # Errors
/// What is wrong with the file.
pub fn begin_ledger(path: &Path, machine: &str) -> Result<(), String> {
    let text = read_ledger(path);
    let first = format!("{MACHINE}{machine}");
    match text.lines().next() {
        Some(line) if line == first => Ok(()),
        Some(line) if text.lines().any(|line| parse(line).is_some()) => Err(format!(
            "{} has measurements of {}, and this is {machine}: remove it, or name another file with --output",
            path.display(),
            line.strip_prefix(MACHINE).unwrap_or("a machine that it does not name"),
        )),
        // None, or one without a finished measurement.
        _ => std::fs::write(path, first + "\n").map_err(|error| format!("cannot write {}: {error}", path.display())),
    }
}

/// Before the machine's words, in the first line of a ledger.
const MACHINE: &str = "# machine: ";

/// The text of a ledger; empty if there is none.
#[must_use]
pub fn read_ledger(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_finished_comes_back_and_half_a_line_does_not() {
        let path = std::env::temp_dir().join(format!("phalanx-ledger-{}", std::process::id()));
        let mut ledger = Ledger::default();
        ledger.append_to(&path).unwrap();
        let figures = [Figures { blocks: vec![1.5, 0.1] }, Figures { blocks: vec![3.25, 1e-9] }];
        ledger.put("2 reduce 64", &figures).unwrap();
        ledger.put("4 reduce 64", &figures[..1]).unwrap();
        let text = read_ledger(&path);
        std::fs::remove_file(&path).unwrap();
        let back = Ledger::of_text(&text[..text.len() - 3]);
        assert_eq!(back.get("2 reduce 64").unwrap(), &figures);
        assert_eq!(back.get("4 reduce 64"), None);
        assert_eq!(Ledger::of_text(&text).get("4 reduce 64").unwrap(), &figures[..1]);
        assert!(Ledger::of_text("# machine: one\ngarbage\n\tend\n\n").known.is_empty());
    }

    #[test]
    fn a_ledger_belongs_to_one_machine() {
        let path = std::env::temp_dir().join(format!("phalanx-ledger-of-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        begin_ledger(&path, "one").unwrap();
        // Nothing was measured yet.
        begin_ledger(&path, "another").unwrap();
        begin_ledger(&path, "one").unwrap();
        let mut ledger = Ledger::default();
        ledger.append_to(&path).unwrap();
        ledger.put("2 reduce 64", &[Figures { blocks: vec![1.5] }]).unwrap();
        begin_ledger(&path, "one").unwrap();
        let error = begin_ledger(&path, "another").unwrap_err();
        assert!(error.contains("measurements of one, and this is another"), "{error}");
        assert!(Ledger::of_text(&read_ledger(&path)).get("2 reduce 64").is_some());
        // One whose machine is not named.
        let text = read_ledger(&path).replace("# machine: one\n", "");
        std::fs::write(&path, text).unwrap();
        assert!(begin_ledger(&path, "one").unwrap_err().contains("does not name"));
        std::fs::remove_file(&path).unwrap();
    }
}
