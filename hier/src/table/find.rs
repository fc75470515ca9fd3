//! Which table a job takes: the environment's word, or what lies in the usual place.

use std::ffi::OsString;
use std::path::PathBuf;

use shm_core::Error;
use shm_core::job::JobSpec;

use super::{Fingerprint, Table};
use crate::cores;
use crate::rules::TreeRules;

/// The variable that names a file: `FILE`, `adapt:FILE` for one that was measured on another machine, `none` for the
/// built-in table.
pub const VARIABLE: &str = "PHALANX_TABLE";

/// What stands before the name of a file that may be of another machine.
const ADAPT: &str = "adapt:";

/// Which table is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Asked {
    /// The one in the usual place, if there is one and it was measured here.
    Usual(Option<PathBuf>),
    /// The built-in one.
    #[default]
    BuiltIn,
    /// This one.
    File {
        /// Where it is.
        path: PathBuf,
        /// Whether it may be one of another machine.
        adapt: bool,
    },
}

/// A table that was looked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// The table, and where it was.
    pub table: Option<(Table, PathBuf)>,
    /// What to tell the user, once.
    pub remark: Option<String>,
}

/// `$XDG_CONFIG_HOME/phalanx/table.toml`, or the same in `$HOME/.config`.
#[must_use]
pub fn default_place() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value: &OsString| !value.is_empty()).map(PathBuf::from);
    let folder = set("XDG_CONFIG_HOME").or_else(|| set("HOME").map(|home| home.join(".config")))?;
    Some(folder.join("phalanx").join("table.toml"))
}

impl Asked {
    /// What the value of [`VARIABLE`] asks for.
    #[must_use]
    pub fn from_value(value: Option<&str>) -> Self {
        match value {
            None => Asked::Usual(default_place()),
            Some("" | "none") => Asked::BuiltIn,
            Some(value) => match value.strip_prefix(ADAPT) {
                Some(path) => Asked::File { path: path.into(), adapt: true },
                None => Asked::File { path: value.into(), adapt: false },
            },
        }
    }

    /// What this process's environment asks for.
    #[must_use]
    pub fn from_environment() -> Self {
        Self::from_value(own_variable(VARIABLE).as_deref())
    }

    /// Looks for it.
    ///
    /// # Errors
    /// `Environment`: the file that was named cannot be read, or was measured on another machine; a file is no table.
    pub fn find(&self, machine: impl FnOnce() -> Fingerprint) -> Result<Found, Error> {
        match self {
            Asked::BuiltIn | Asked::Usual(None) => Ok(Found::default()),
            Asked::File { path, adapt } => {
                let named = format!("{}{}", if *adapt { ADAPT } else { "" }, path.display());
                let text = topo::read_text(path).map_err(|error| {
                    let advice = format!("measure one with `phalanx tune`, or start without it: {VARIABLE}=none");
                    wrong(&named, format!("it cannot be read: {error}; {advice}"))
                })?;
                let table = read(&named, &text)?;
                let differences = machine().differences(&table.machine);
                if differences.is_empty() {
                    return Ok(Found { table: Some((table, path.clone())), remark: None });
                }
                let differences = differences.join("; ");
                if !adapt {
                    let why = format!(
                        "it was measured on another machine (this one has {differences}): measure this one with \
                         `phalanx tune`, or take it all the same with {VARIABLE}={ADAPT}{named}"
                    );
                    return Err(wrong(&named, why));
                }
                let remark = format!(
                    "{} was measured on another machine (this one has {differences}); its rules are taken by ranks and ranks per core",
                    path.display()
                );
                // What messages cost is no matter of the processor.
                Ok(Found { table: Some((table, path.clone())), remark: Some(remark) })
            }
            Asked::Usual(Some(path)) => {
                // What is not there, or may not be read, is not asked for.
                let Ok(text) = topo::read_text(path) else { return Ok(Found::default()) };
                let table = read(&path.display().to_string(), &text)?;
                let differences = machine().differences(&table.machine);
                if differences.is_empty() {
                    return Ok(Found { table: Some((table, path.clone())), remark: None });
                }
                let remark = format!(
                    "{} was measured on another machine (this one has {}): the built-in table is taken; \
                     `phalanx tune` measures this machine, {VARIABLE}=none ends this message",
                    path.display(),
                    differences.join("; ")
                );
                Ok(Found { table: None, remark: Some(remark) })
            }
        }
    }
}

/// The table that this process's environment asks for; remarks go to standard error, once in a process.
///
/// # Errors
/// As of [`Asked::find`].
pub fn found(asked: &Asked) -> Result<Option<Table>, Error> {
    static SAID: std::sync::Once = std::sync::Once::new();
    let found = asked.find(Fingerprint::of_this_machine)?;
    if let Some(remark) = &found.remark {
        SAID.call_once(|| shm_core::remark(format_args!("{remark}")));
    }
    Ok(found.table.map(|(table, _)| table))
}

/// A variable of this process's own environment, which may be empty.
pub(crate) fn own_variable(name: &str) -> Option<String> {
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
}

/// A job of `ranks` ranks, and its trees, as the variables that `value` has and, after them, the table that they name
/// want them. An empty variable asks for nothing; of tables, for none.
///
/// # Errors
/// `Environment` when a variable or a table is not understood; `Tuning` when it cannot be carried out.
pub(crate) fn job_spec(ranks: usize, value: &dyn Fn(&str) -> Option<String>) -> Result<(JobSpec, TreeRules), Error> {
    let (tuning, trees) = match found(&Asked::from_value(value(VARIABLE).as_deref()))? {
        Some(table) => (table.tuning()?, table.trees),
        None => Default::default(),
    };
    let wanted = |name: &str| value(name).filter(|value| !value.is_empty());
    Ok((JobSpec::by(ranks, tuning, &wanted)?, trees.by(&wanted)?))
}

/// The job of `ranks` ranks that are threads of this process, and its trees, as its environment wants them.
///
/// # Errors
/// As of [`job_spec`].
pub(crate) fn threads_spec(ranks: usize) -> Result<(JobSpec, TreeRules), Error> {
    let (mut spec, trees) = job_spec(ranks, &own_variable)?;
    // A single rank has a core, however many there are.
    if ranks > 1 {
        spec.cores = cores::usable().unwrap_or(spec.cores);
    }
    Ok((spec, trees))
}

/// The table that a file holds, which the user knows by this name.
fn read(named: &str, text: &str) -> Result<Table, Error> {
    Table::from_toml(text).map_err(|flaw| {
        wrong(named, format!("{flaw}; mend it, measure anew with `phalanx tune`, or do without with {VARIABLE}=none"))
    })
}

fn wrong(named: &str, why: String) -> Error {
    Error::Environment { name: VARIABLE, value: named.to_owned(), why }
}
