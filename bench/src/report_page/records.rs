//! Records as the page shows them: studies with their findings, and other records with their curves.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::across::measured::Measured;
use crate::error::{Error, Result};
use crate::record::host::Host;
use crate::reproduce::outcome::{Chart, How, Outcome, Sheet};
use crate::runs::ours;
use crate::sizes::show_size;
use crate::table::{microseconds, three_digits};

/// A record.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The folder's name.
    pub name: String,
    /// Where the page finds the folder.
    pub link: String,
    /// Its files, by name.
    pub files: Vec<String>,
    /// The machine; none where the record does not say.
    pub host: Option<Host>,
    /// What is in it.
    pub content: Content,
}

/// What a record holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// A paper's experiment, repeated.
    Reproduced(Box<Outcome>),
    /// Times, as curves and tables.
    Times {
        /// What was measured, in a line.
        about: String,
        /// Curves.
        charts: Vec<Chart>,
        /// Tables.
        tables: Vec<Sheet>,
        /// Tables as the record has them; empty where `tables` has them.
        text: String,
    },
    /// Something else: the text of its tables.
    Text(String),
    /// Nothing that can be read, and why.
    Damaged(String),
}

/// Reads the records in `folders`, in the order of their names.
///
/// # Errors
///
/// [`Error::File`] for a folder that cannot be looked into. A record that cannot be read is [`Content::Damaged`].
pub fn read(folders: &[PathBuf], page: &Path) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for folder in folders {
        let list = fs::read_dir(folder).map_err(Error::file("cannot look into", folder))?;
        let mut files: Vec<String> = list
            .filter_map(|entry| entry.ok().filter(|entry| entry.path().is_file()))
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .filter(|name| !name.ends_with(".part"))
            .collect();
        files.sort();
        let name =
            folder.file_name().map_or_else(|| folder.display().to_string(), |name| name.to_string_lossy().into_owned());
        let (host, content) = match content(folder) {
            Ok(found) => found,
            Err(error) => (None, Content::Damaged(error.to_string())),
        };
        entries.push(Entry { name, link: relative(page, folder), files, host, content });
    }
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(entries)
}

/// The folders in `records` that hold a record.
///
/// # Errors
///
/// [`Error::File`].
pub fn find(records: &Path) -> Result<Vec<PathBuf>> {
    let list = fs::read_dir(records).map_err(Error::file("cannot look into", records))?;
    let folders = list.filter_map(|entry| Some(entry.ok()?.path()));
    Ok(folders.filter(|path| ["results.json", "host.txt"].iter().any(|name| path.join(name).is_file())).collect())
}

/// The way from the page's folder to a record.
fn relative(page: &Path, folder: &Path) -> String {
    let whole = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let from = whole(page.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new(".")));
    let to = whole(folder);
    let same = from.components().zip(to.components()).take_while(|(a, b)| a == b).count();
    let up = std::iter::repeat_n("..".to_owned(), from.components().count() - same);
    let down = to.components().skip(same).map(|part| part.as_os_str().to_string_lossy().into_owned());
    up.chain(down).collect::<Vec<_>>().join("/")
}

fn content(folder: &Path) -> Result<(Option<Host>, Content)> {
    let path = folder.join("results.json");
    let text = || fs::read_to_string(folder.join("tables.txt")).unwrap_or_default();
    let results: Value = match fs::read_to_string(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok((None, unfinished(folder, text()))),
        Err(error) => return Err(Error::file("cannot read", path)(error)),
        Ok(text) => serde_json::from_str(&text).map_err(|error| wrong(&path, &error))?,
    };
    let host = serde_json::from_value(results["host"].clone()).ok();
    let content = if let Some(outcome) = results.get("reproduced") {
        Content::Reproduced(serde_json::from_value(outcome.clone()).map_err(|error| wrong(&path, &error))?)
    } else if results["runs"][0].get("measured").is_some() {
        across(&results)
    } else if results["rows"][0].get("operation").is_some() {
        node(&results)
    } else if results["curves"][0].get("points").is_some() {
        let study = fs::read_to_string(folder.join("study.txt")).map(|study| study + "\n").unwrap_or_default();
        curves(&results, study + &text())
    } else {
        Content::Text(text())
    };
    Ok((host, content))
}

/// A record without results: what a study left that was stopped, or a text.
fn unfinished(folder: &Path, text: String) -> Content {
    if text.is_empty() && folder.join(crate::study::store::NAME).is_file() {
        return Content::Damaged("the study was stopped before its end: bench with --resume goes on with it".into());
    }
    Content::Text(text)
}

fn wrong(path: &Path, error: &serde_json::Error) -> Error {
    Error::Samples { path: path.into(), line: error.line(), detail: error.to_string() }
}

/// The curves of a record of `bench across`: one chart a run.
fn across(results: &Value) -> Content {
    let (mut charts, mut tables, mut about) = (Vec::new(), Vec::new(), String::new());
    let mut libraries: Vec<&str> = Vec::new();
    for run in results["runs"].as_array().into_iter().flatten() {
        let Ok(measured) = serde_json::from_value::<Measured>(run["measured"].clone()) else { continue };
        let mode = if run["mode"]["eager"] == true { "eager" } else { "stock" };
        let told = if run["mode"]["han"] == true { Some("han") } else { run["mode"]["forced"].as_str() };
        let mode = told.map_or(mode.to_string(), |told| format!("{mode}, {told}"));
        let library = run["mpi"].as_str().unwrap_or_default();
        let title = format!("{library}, {mode}: {} [ms]", measured.operation);
        if !libraries.contains(&library) {
            libraries.push(library);
        }
        let cluster = run["cluster"].as_str().unwrap_or_default();
        about = format!("{} of {} ranks on {cluster}, {}", measured.operation, measured.ranks, libraries.join(", "));
        let mut chart = Chart::new(title.clone(), How::Measured);
        let series = measured.series();
        let mut heads = vec!["bytes"];
        heads.extend(&series);
        let mut sheet = Sheet::new(format!("{title}, median"), &heads);
        for name in &series {
            let cases = measured.cases.iter().filter(|case| case.series == *name);
            chart.curve(*name, cases.map(|case| (case.bytes as f64, case.milliseconds().median)).collect());
        }
        for bytes in measured.sizes() {
            let time = |name: &&str| {
                measured.case(name, bytes).map_or_else(|| "-".into(), |case| three_digits(case.milliseconds().median))
            };
            sheet.row(std::iter::once(show_size(bytes)).chain(series.iter().map(time)).collect());
        }
        charts.push(chart);
        tables.push(sheet);
    }
    Content::Times { about, charts, tables, text: String::new() }
}

/// The curves of a record of `bench collectives`: one chart a rank count and collective, over the buffers that others
/// have too.
fn node(results: &Value) -> Content {
    let rows = results["rows"].as_array().cloned().unwrap_or_default();
    let has_peers = rows.iter().any(|row| row["series"] != ours::NAME);
    let mode = if has_peers { "rewritten" } else { "warm" };
    let (mut charts, mut tables) = (Vec::new(), Vec::new());
    let mut shown: Vec<(u64, String)> = Vec::new();
    for row in rows.iter().filter(|row| row["buffers"] == mode && row["bytes"].as_u64().is_some_and(|bytes| bytes > 0))
    {
        let place = (row["ranks"].as_u64().unwrap_or(0), row["operation"].as_str().unwrap_or_default().to_owned());
        if !shown.contains(&place) {
            shown.push(place);
        }
    }
    let mut counts: Vec<String> = Vec::new();
    for (ranks, operation) in &shown {
        if !counts.contains(&ranks.to_string()) {
            counts.push(ranks.to_string());
        }
        let here: Vec<&Value> = rows
            .iter()
            .filter(|row| row["ranks"] == *ranks && row["operation"] == operation.as_str() && row["buffers"] == mode)
            .collect();
        let mut names: Vec<&str> = Vec::new();
        here.iter().filter_map(|row| row["series"].as_str()).for_each(|name| {
            if !names.contains(&name) {
                names.push(name);
            }
        });
        let title = format!("{operation}, {ranks} ranks, {mode} buffers [us]");
        let mut chart = Chart::new(title.clone(), How::Measured);
        let mut heads = vec!["bytes"];
        heads.extend(&names);
        let mut sheet = Sheet::new(format!("{title}, median"), &heads);
        let time = |name: &str, bytes: u64| {
            let row = here.iter().find(|row| row["series"] == name && row["bytes"] == bytes)?;
            row["time"]["median"].as_f64()
        };
        let mut sizes: Vec<u64> = here.iter().filter_map(|row| row["bytes"].as_u64()).collect();
        sizes.sort_unstable();
        sizes.dedup();
        for name in &names {
            chart.curve(*name, sizes.iter().filter_map(|&bytes| Some((bytes as f64, time(name, bytes)?))).collect());
        }
        for &bytes in &sizes {
            let cell = |name: &&str| time(name, bytes).map_or_else(|| "-".into(), microseconds);
            sheet.row(std::iter::once(show_size(bytes)).chain(names.iter().map(cell)).collect());
        }
        charts.push(chart);
        tables.push(sheet);
    }
    let about = format!("collectives of {} ranks on one node", counts.join(", "));
    Content::Times { about, charts, tables, text: String::new() }
}

/// The curves of `bench commtest` and `bench allreduce`: so many of one place a chart as have colours of their own.
fn curves(results: &Value, text: String) -> Content {
    const TOGETHER: usize = 8;
    let curves = results["curves"].as_array().cloned().unwrap_or_default();
    let word = |curve: &Value, name: &str| curve[name].as_str().unwrap_or_default().to_owned();
    let place = |curve: &Value| format!("{}{}", word(curve, "place"), word(curve, "over"));
    let mut places: Vec<String> = curves.iter().map(place).collect();
    places.dedup();
    let mut charts = Vec::new();
    for here in &places {
        let those: Vec<&Value> = curves.iter().filter(|curve| place(curve) == *here).collect();
        for (part, together) in those.chunks(TOGETHER).enumerate() {
            let part = if those.len() > TOGETHER { format!(", part {}", part + 1) } else { String::new() };
            let mut chart = Chart::new(format!("{here}{part}: time [ms]"), How::Measured);
            for curve in together {
                let words: Vec<String> = ["series", "operator", "protocol", "program"]
                    .iter()
                    .map(|name| word(curve, name))
                    .filter(|word| !word.is_empty())
                    .collect();
                let points = curve["points"].as_array().into_iter().flatten();
                let mut points: Vec<(f64, f64)> = points
                    .filter_map(|point| Some((point["bytes"].as_f64()?, 1e3 * point["time"]["median"].as_f64()?)))
                    .collect();
                points.sort_by(|a, b| a.0.total_cmp(&b.0));
                chart.curve(words.join(", "), points);
            }
            charts.push(chart);
        }
    }
    let study = match results["study"].as_str().unwrap_or_default() {
        "commtest" => "messages between pairs of ranks (COMMTEST)",
        "allreduce" => "allreduce by length, algorithm and operator (ALLREDUCE)",
        other => other,
    };
    let about = format!("{study}: {}", places.join(", "));
    Content::Times { about, charts, tables: Vec::new(), text }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::reproduce::text::tests::sample;
    use crate::scratch::Scratch;

    fn record(root: &Path, name: &str, results: &str) {
        let folder = root.join(name);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("results.json"), results).unwrap();
        fs::write(folder.join("tables.txt"), "tables").unwrap();
    }

    fn contents(results: &str) -> Content {
        let scratch = Scratch::new().unwrap();
        record(scratch.path(), "one", results);
        let folders = find(scratch.path()).unwrap();
        read(&folders, &scratch.path().join("report.html")).unwrap().remove(0).content
    }

    #[test]
    fn every_kind_is_known_by_what_it_holds() {
        let study = json!({"host": {}, "reproduced": sample()}).to_string();
        assert_eq!(contents(&study), Content::Reproduced(Box::new(sample())));
        assert_eq!(contents("{\"something\": 1}"), Content::Text("tables".into()));
        assert!(matches!(contents("{"), Content::Damaged(why) if why.contains("results.json")));
        assert!(matches!(contents("{\"reproduced\": {}}"), Content::Damaged(_)));
        let node = json!({"rows": [
            {"series": "phalanx", "ranks": 2, "operation": "reduce", "buffers": "warm", "bytes": 8, "time": {"median": 0.5}},
            {"series": "phalanx", "ranks": 2, "operation": "reduce", "buffers": "warm", "bytes": 64, "time": {"median": 1.5}},
        ]});
        let Content::Times { charts, tables, about, .. } = contents(&node.to_string()) else { panic!() };
        assert_eq!((charts.len(), charts[0].curves[0].points.len(), tables[0].rows.len()), (1, 2, 2));
        assert!(about.contains("2 ranks"));
        let across = crate::reproduce::taken::tests::across(&[("ours", 8, &[1.0]), ("native", 8, &[2.0])]);
        let Content::Times { charts, .. } = contents(&across.to_string()) else { panic!() };
        assert_eq!(charts[0].curves.len(), 2);
        let many: Vec<Value> = (0..10)
            .map(|number| json!({"over": "cells", "protocol": number.to_string(), "points": [{"bytes": 8.0, "time": {"median": 0.5}}]}))
            .collect();
        let Content::Times { charts, text, .. } = contents(&json!({"study": "commtest", "curves": many}).to_string())
        else {
            panic!()
        };
        assert_eq!((charts.len(), charts[1].curves.len(), text.as_str()), (2, 2, "tables"));
        assert_eq!(charts[0].curves[0].points, [(8.0, 500.0)]);
    }

    #[test]
    fn the_way_from_the_page_to_a_record() {
        let scratch = Scratch::new().unwrap();
        record(scratch.path(), "records/a", "{}");
        fs::create_dir_all(scratch.path().join("docs")).unwrap();
        let folder = scratch.path().join("records/a");
        assert_eq!(relative(&scratch.path().join("records/report.html"), &folder), "a");
        assert_eq!(relative(&scratch.path().join("docs/report.html"), &folder), "../records/a");
    }

    #[test]
    fn what_was_stopped_says_so() {
        let scratch = Scratch::new().unwrap();
        let folder = scratch.path().join("a");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("host.txt"), "host").unwrap();
        fs::write(folder.join(crate::study::store::NAME), "{}").unwrap();
        let entries = read(&[folder], &scratch.path().join("x.html")).unwrap();
        assert!(matches!(&entries[0].content, Content::Damaged(why) if why.contains("--resume")));
        assert!(find(Path::new("/nowhere")).is_err());
    }
}
