//! A study from its beginning to its record.

use std::env;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use super::options::ClusterStudy;
use super::outcome::{Outcome, Results};
use super::piece::{self, Piece, Words, Work};
use super::taken::Taken;
use super::text;
use crate::across::program;
use crate::error::{Error, Result};
use crate::out::{say, show};
use crate::record::host::Host;
use crate::scratch::Scratch;
use crate::study::{Description, Session, StudyOptions};

/// A study: pieces, and what follows from them. Both are functions of the settings alone.
pub trait Study {
    /// The paper, what it did, what differs here.
    fn description(&self) -> Description;
    /// All that shapes what is measured.
    fn settings(&self) -> Value;
    /// The measurements, in their order.
    fn pieces(&self) -> Vec<Piece>;
    /// What follows from them. Pieces that were left out are missing in `taken`.
    ///
    /// # Errors
    ///
    /// None but those of counting and simulating.
    fn conclude(&self, taken: &Taken) -> Result<Outcome>;
}

/// What is known of the cluster's software before a study begins.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Words that name the program of ranks and the script.
    pub private: Vec<String>,
}

/// Runs a study that needs the emulated cluster: builds the program of ranks first.
///
/// # Errors
///
/// [`Error::BaselineMissing`] without the MPI; [`Error::Usage`] for options that the study refuses; those of [`run`].
pub fn on_cluster<S: Study>(options: &ClusterStudy, study: impl Fn(&ClusterStudy, &Known) -> Result<S>) -> Result<()> {
    let mut known = Known::default();
    // Refuses what it will refuse before anything is built.
    study(options, &known)?;
    if !options.no_cluster {
        let program = options.program.clone().map_or_else(|| program::build(options.mpi), Ok)?;
        known.private.extend(["--program".into(), path(&program)?]);
        if let Some(script) = &options.cluster {
            known.private.extend(["--cluster".into(), path(script)?]);
        }
    }
    run(&study(options, &known)?, &options.study, Duration::from_secs(options.timeout), !options.no_cluster)
}

fn path(path: &PathBuf) -> Result<String> {
    let absolute = std::path::absolute(path).map_err(Error::file("cannot find", path))?;
    let text =
        absolute.to_str().ok_or_else(|| Error::Usage(format!("{}: a path in UTF-8 is needed", path.display())))?;
    Ok(text.to_owned())
}

/// Runs a study: pieces that are missing are taken and kept, then what follows is printed and recorded. `limit` is for
/// one command.
///
/// # Errors
///
/// [`Error::Interrupted`], with how to go on; those of the first piece that fails, which is tried again on `--resume`;
/// and of the record.
pub fn run(study: &impl Study, options: &StudyOptions, limit: Duration, cluster: bool) -> Result<()> {
    let scratch = Scratch::new()?;
    let host = Host::look();
    say!("{}\n", host.line())?;
    let settings = json!({"quick": options.quick, "study": study.settings()});
    let mut session = Session::begin(study.description(), options, host, settings)?;
    let pieces = study.pieces();
    let wanted: Vec<&Piece> = pieces.iter().filter(|piece| cluster || !needs_cluster(piece)).collect();
    session.expect(&wanted.iter().map(|piece| piece.key.as_str()).collect::<Vec<_>>());
    let mut taken = Taken::default();
    if !cluster {
        taken.skip("all that needs the emulated cluster (--no-cluster)");
    }
    let program = env::current_exe().map_err(Error::system("path of this program"))?;
    let mut refused = None;
    for piece in wanted {
        if refused.is_some() && needs_cluster(piece) {
            continue;
        }
        let result = session.measure(&piece.key, |_, stop| match &piece.work {
            Work::Here(compute) => compute(),
            Work::Command(words) => match words.run(&program, &scratch, limit, stop)? {
                piece::Outcome::Results(results) => Ok(results),
                piece::Outcome::Skipped(why) => {
                    refused = Some(why.clone());
                    Err(skipped(words, why))
                }
            },
        });
        match (result, &refused) {
            (Ok(results), _) => taken.put(&piece.key, results),
            // Nothing is kept of it, so that a machine that allows it measures it with `--resume`.
            (Err(_), Some(why)) => {
                session.progress().note(&format!("skipped: the emulated cluster: {why}"));
                taken.skip(&format!("all that needs the emulated cluster: {why}"));
            }
            (Err(error), None) => return Err(error),
        }
    }
    let mut outcome = study.conclude(&taken)?;
    outcome.missing.splice(0..0, taken.skipped.iter().cloned());
    let rendered = text::render(&outcome);
    session.progress().finish();
    let shown = show(&rendered);
    let charts = text::csv(&outcome.charts);
    let plot = text::plot(&outcome);
    let name = outcome.study.clone();
    session.finish(|keeper, host| {
        keeper.write("tables.txt", &rendered);
        keeper.write("results.csv", &charts);
        keeper.write_json("results.json", &Results { host: host.clone(), reproduced: outcome });
        keeper.write_plot(&format!("{name}.svg"), &plot);
    })?;
    shown
}

fn needs_cluster(piece: &Piece) -> bool {
    matches!(&piece.work, Work::Command(words) if words.cluster)
}

fn skipped(words: &Words, why: String) -> Error {
    Error::Run { series: words.to_string(), ranks: words.ranks(), detail: why }
}

/// An outcome with nothing in it but what the description says.
pub fn empty(description: &Description, study: &str, quick: bool) -> Outcome {
    let own = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    Outcome {
        study: study.into(),
        quick,
        paper: description.paper.into(),
        did: own(description.did),
        differs: own(description.differs),
        ran: Vec::new(),
        findings: Vec::new(),
        charts: Vec::new(),
        tables: Vec::new(),
        missing: Vec::new(),
    }
}
