//! The options that all studies have.

use std::path::PathBuf;

use clap::Args;

/// How long a study is, and where its record goes.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Options of every study")]
pub struct StudyOptions {
    /// The short form: a few sizes, few repetitions, under a minute
    #[arg(long)]
    pub quick: bool,
    /// Folder in which the record folder is made
    #[arg(long, value_name = "DIR", default_value = "records", alias = "record")]
    pub output: PathBuf,
    /// Last part of the record folder's name [default: that of the study]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Goes on with a study that was stopped, in its record folder; all other options must be as they were
    #[arg(long, value_name = "FOLDER", conflicts_with = "name")]
    pub resume: Option<PathBuf>,
}
