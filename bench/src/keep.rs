//! Writing the record while nothing that goes wrong there costs the results on the terminal.

use std::path::PathBuf;

use serde::Serialize;

use crate::command::RecordWish;
use crate::error::{Error, Result};
use crate::out::say;
use crate::record::Record;
use crate::record::host::Host;

/// A record that may be missing or become unwritable: the first error is told and kept.
#[derive(Debug)]
pub struct Keeper {
    record: Option<Record>,
    error: Option<Error>,
    plots: Vec<PathBuf>,
}

impl Keeper {
    /// Opens the record that `wish` asks for; `name` where the wish has none.
    pub fn open(wish: &RecordWish, host: &Host, name: &str) -> Keeper {
        let mut keeper = Keeper { record: None, error: None, plots: Vec::new() };
        if !wish.no_record {
            match Record::open(&wish.folder, host.date(), &host.host, wish.name.as_deref().unwrap_or(name)) {
                Ok(record) => keeper.record = Some(record),
                Err(error) => keeper.fail(error),
            }
        }
        keeper
    }

    /// Keeps an open record.
    pub fn of(record: Record) -> Keeper {
        Keeper { record: Some(record), error: None, plots: Vec::new() }
    }

    fn fail(&mut self, error: Error) {
        if self.error.is_none() {
            eprintln!(
                "{error}: there will be no whole record; results are printed all the same (--record DIR names another place)"
            );
            self.error = Some(error);
        }
    }

    fn keep(&mut self, write: impl FnOnce(&Record) -> Result<PathBuf>) -> Option<PathBuf> {
        match write(self.record.as_ref()?) {
            Ok(path) => Some(path),
            Err(error) => {
                self.fail(error);
                None
            }
        }
    }

    /// Writes one file.
    pub fn write(&mut self, name: &str, text: &str) {
        self.keep(|record| record.write(name, text));
    }

    /// Writes one file as JSON.
    pub fn write_json(&mut self, name: &str, value: &impl Serialize) {
        self.keep(|record| record.write_json(name, value));
    }

    /// Writes a plot, which is named at the end.
    pub fn write_plot(&mut self, name: &str, text: &str) {
        let path = self.keep(|record| record.write(name, text));
        self.plots.extend(path);
    }

    /// Says where everything is; the first error, if there was one.
    pub fn close(self) -> Result<()> {
        let said = self.tell();
        self.error.map_or(said, Err)
    }

    fn tell(&self) -> Result<()> {
        let Some(record) = &self.record else { return Ok(()) };
        say!("record:  {}", record.folder().display())?;
        self.plots.iter().try_for_each(|plot| say!("plot:    {}", plot.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn an_unwritable_place_costs_the_record_and_nothing_else() {
        let wish = RecordWish { folder: "/proc/nowhere".into(), name: None, no_record: false };
        let mut keeper = Keeper::open(&wish, &Host::look(), "x");
        keeper.write("a.txt", "a");
        assert!(keeper.close().unwrap_err().to_string().contains("/proc/nowhere"));
    }

    #[test]
    fn a_wish_for_none_is_no_error() {
        let scratch = Scratch::new().unwrap();
        let wish = RecordWish { folder: scratch.path().into(), name: None, no_record: true };
        let mut keeper = Keeper::open(&wish, &Host::look(), "x");
        keeper.write("a.txt", "a");
        keeper.close().unwrap();
        assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0);
    }
}
