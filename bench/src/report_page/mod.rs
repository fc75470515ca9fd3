//! `bench report`: records gathered into one page of HTML, which needs no network and no script.
//!
//! | file | what |
//! |---|---|
//! | `records` | what the records hold |
//! | `page` | the page |
//! | `chart` | a chart as SVG |
//! | `style.css` | how it looks: on a phone, in the dark, on paper |

pub mod chart;
pub mod page;
pub mod records;

use std::fs;
use std::path::PathBuf;

use clap::Args;

use crate::error::{Error, Result};
use crate::out::say;

/// Options of `bench report`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
The page holds what was run where, each paper's findings with ours beside them, what agrees, what does not and why, plots and tables.
  bench reproduce ring && bench report")]
pub struct Report {
    /// Record folders, which --output is wanted for [default: all in --records]
    #[arg(requires = "output")]
    pub folders: Vec<PathBuf>,
    /// The folder of all records
    #[arg(long, value_name = "DIR", default_value = "records")]
    pub records: PathBuf,
    /// The page [default: report.html in the folder of all records]
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The page's title
    #[arg(long, default_value = "Phalanx: measurements, and the experiments of the papers")]
    pub title: String,
}

/// Runs the command.
///
/// # Errors
///
/// [`Error::Usage`] where there is no record; [`Error::File`] for folders that cannot be read and a page that cannot be
/// written. A record that cannot be read is named on the page and on standard error.
pub fn run(options: &Report) -> Result<()> {
    let folders = if options.folders.is_empty() { records::find(&options.records)? } else { options.folders.clone() };
    if folders.is_empty() {
        let place = options.records.display();
        return Err(Error::Usage(format!("{place}: there is no record; `bench reproduce` and others make them")));
    }
    let output = options.output.clone().unwrap_or_else(|| options.records.join("report.html"));
    let entries = records::read(&folders, &output)?;
    for entry in &entries {
        if let records::Content::Damaged(why) = &entry.content {
            eprintln!("{}: {why}", entry.name);
        }
    }
    let text = page::render(&options.title, &entries).into_string();
    let part = output.with_extension("part");
    fs::write(&part, text + "\n").and_then(|()| fs::rename(&part, &output)).map_err(|error| {
        let _ = fs::remove_file(&part);
        Error::file("cannot write the page", &output)(error)
    })?;
    say!("report:  {} ({} records)", output.display(), entries.len())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    fn options(records: PathBuf) -> Report {
        Report { folders: Vec::new(), records, output: None, title: "T".into() }
    }

    #[test]
    fn a_page_is_made_of_all_records() {
        let scratch = Scratch::new().unwrap();
        let folder = scratch.path().join("a");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("results.json"), "{}").unwrap();
        run(&options(scratch.path().into())).unwrap();
        let text = fs::read_to_string(scratch.path().join("report.html")).unwrap();
        assert!(text.starts_with("<!DOCTYPE html>") && text.contains("href=\"a/results.json\""));
    }

    #[test]
    fn without_records_or_room_it_says_so() {
        let scratch = Scratch::new().unwrap();
        assert!(run(&options(scratch.path().into())).unwrap_err().to_string().contains("no record"));
        let folder = scratch.path().join("a");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("results.json"), "{}").unwrap();
        std::os::unix::fs::symlink("/dev/full", scratch.path().join("report.part")).unwrap();
        let error = run(&options(scratch.path().into())).unwrap_err().to_string();
        assert!(error.contains("report.html") && error.contains("No space left"), "{error}");
    }
}
