//! What the job gets: of the machine, and of the environment.

use std::ffi::{OsStr, OsString};

use nix::sched::CpuSet;
use shm_core::Tuning;
use shm_core::job::{JobSpec, is_on, read_bytes, read_cma, read_convert, read_place};
use shm_core::segment::layout::crowd_of;
use topo::{BindPolicy, Machine, Usable};

use super::{LaunchError, spawn};
use crate::cores;
use crate::note::Note;
use crate::rules::TreeRules;
use crate::table::{self, Asked};

/// The places of the ranks, and what the job knows of the machine.
pub(super) struct Setting {
    machine: Option<Machine>,
    cores: usize,
    /// By rank: where it is bound to.
    pub(super) masks: Vec<Option<CpuSet>>,
}

impl Setting {
    /// Looks at the machine, and deals it out.
    pub(super) fn discover(ranks: usize, bind: Option<BindPolicy>) -> Result<Self, LaunchError> {
        let usable = Usable::discover().map_err(LaunchError::Machine)?;
        let machine = match (Machine::discover(), bind) {
            (Ok(machine), _) => machine,
            (Err(error), Some(BindPolicy::Core | BindPolicy::Numa)) => return Err(LaunchError::Machine(error)),
            // Nobody asked for a binding, and without one the machine is not needed.
            (Err(_), _) => {
                return Ok(Setting { machine: None, cores: cores::count(&usable, None), masks: vec![None; ranks] });
            }
        };
        let cores = usable.cores(&machine);
        let policy = bind.unwrap_or(default_policy(ranks, cores));
        let places = machine.place(ranks, policy, &usable);
        let masks = places.iter().map(|pus| pus.as_deref().map(spawn::mask).transpose()).collect::<Result<_, _>>()?;
        Ok(Setting { machine: Some(machine), cores, masks })
    }

    /// The job, as this process's environment and, before it, the variables given to the ranks want it.
    pub(super) fn spec(self, ranks: usize, given: &[(OsString, OsString)]) -> Result<JobSpec, LaunchError> {
        let asked = match text(given, table::VARIABLE) {
            Some(value) => Asked::from_value(Some(&value)),
            None => Asked::from_environment(),
        };
        let (mut spec, trees) = table::job_spec(ranks, &asked).map_err(LaunchError::Job)?;
        let rules = match text(given, "PHALANX_TREES") {
            // An empty text asks for nothing, and hides what this process's own environment asks for.
            Some(rules) if rules.is_empty() => {
                let table = table::found(&asked).map_err(LaunchError::Job)?;
                Ok(table.map_or_else(TreeRules::default, |table| table.trees))
            }
            Some(rules) => rules.parse(),
            None => Ok(trees),
        };
        if let Some(algorithm) = text(given, "PHALANX_ALGORITHM") {
            let debug = spec.tuning.debug;
            // What this process's own environment says of algorithms does not count then.
            let table = table::found(&asked).map_err(LaunchError::Job)?;
            spec.tuning = table.map_or(Ok(Tuning::default()), |table| table.tuning()).map_err(LaunchError::Job)?;
            spec.tuning.debug = debug;
            spec.tuning.force(&algorithm).map_err(LaunchError::Job)?;
        }
        if let Some(debug) = text(given, "PHALANX_DEBUG") {
            spec.tuning.debug = u32::from(is_on(&debug));
        }
        if let Some(value) = text(given, "PHALANX_ARENA") {
            spec.arena = wanted(value, |value| read_bytes("PHALANX_ARENA", value, 1))?;
        }
        if let Some(value) = text(given, "PHALANX_HEAP") {
            spec.heap = wanted(value, |value| read_bytes("PHALANX_HEAP", value, 0))?;
        }
        if let Some(value) = text(given, "PHALANX_CMA") {
            spec.cma = wanted(value, read_cma)?.unwrap_or(true);
        }
        if let Some(value) = text(given, "PHALANX_PLACE") {
            spec.place = wanted(value, read_place)?.unwrap_or(true);
        }
        if let Some(value) = text(given, "PHALANX_CONVERT") {
            spec.convert = wanted(value, read_convert)?.unwrap_or_default();
        }
        spec.cores = self.cores;
        // Who is bound stays there.
        spec.place &= self.masks.iter().all(Option::is_none);
        spec.note = Note { machine: self.machine, rules: rules.map_err(LaunchError::Job)? }.to_bytes();
        Ok(spec)
    }
}

/// How ranks are bound when nobody says how: each to a core if there are enough of them, and else not at all.
pub fn default_policy(ranks: usize, usable_cores: usize) -> BindPolicy {
    if ranks <= usable_cores { BindPolicy::Core } else { BindPolicy::None }
}

/// Cores that this process may use, and so the ranks of a job that it starts.
///
/// # Errors
/// When the system does not say which ones these are.
pub fn usable_cores() -> Result<usize, LaunchError> {
    cores::usable().map_err(LaunchError::Machine)
}

/// Ranks for each core that this process may use, rounded up, in a job of `ranks` ranks that it starts.
///
/// # Errors
/// As of [`usable_cores`].
pub fn crowd(ranks: usize) -> Result<u32, LaunchError> {
    Ok(crowd_of(ranks, usable_cores()?))
}

fn text(given: &[(OsString, OsString)], name: &str) -> Option<String> {
    let (_, value) = given.iter().rev().find(|(key, _)| key == OsStr::new(name))?;
    Some(value.to_string_lossy().into_owned())
}

/// What a value asks for. An empty one asks for nothing, and hides what this process's own environment asks for.
fn wanted<T>(value: String, read: impl FnOnce(&str) -> shm_core::Result<T>) -> Result<Option<T>, LaunchError> {
    Some(value).filter(|value| !value.is_empty()).map(|value| read(&value)).transpose().map_err(LaunchError::Job)
}

#[cfg(test)]
mod tests {
    use super::*;
    use shm_core::Collective;
    use shm_core::job::Conversion;

    fn spec(given: &[(&str, &str)]) -> Result<JobSpec, LaunchError> {
        let given: Vec<(OsString, OsString)> = given.iter().map(|(key, value)| (key.into(), value.into())).collect();
        Setting { machine: None, cores: 3, masks: vec![] }.spec(2, &given)
    }

    #[test]
    fn variables_that_are_given_to_the_ranks_count() {
        let made =
            spec(&[("PHALANX_ALGORITHM", "all:line"), ("PHALANX_ALGORITHM", "allreduce:shares,leaders=2")]).unwrap();
        assert_eq!(
            (made.tuning.select(2, 1).bands(Collective::Allreduce)[0].leaders, made.cores, made.ranks),
            (2, 3, 2)
        );
        assert_eq!(made.tuning.forced[0], 0);
        assert_eq!(spec(&[("PHALANX_ARENA", "1048576"), ("PHALANX_DEBUG", "1")]).unwrap().arena, Some(1 << 20));
        let note = spec(&[("PHALANX_TREES", "gather:kary:7")]).unwrap().note;
        assert!(String::from_utf8(note).unwrap().contains("kary:7"));
        assert!(spec(&[]).unwrap().cma && !spec(&[("PHALANX_CMA", "never")]).unwrap().cma);
        assert!(spec(&[]).unwrap().place && !spec(&[("PHALANX_PLACE", "never")]).unwrap().place);
        let bound = Setting { machine: None, cores: 3, masks: vec![None, Some(CpuSet::new())] };
        assert!(!bound.spec(2, &[]).unwrap().place, "who is bound stays there");
        let converts = |given| spec(given).unwrap().convert;
        assert_eq!(converts(&[]), Conversion::Never);
        assert_eq!(converts(&[("PHALANX_CONVERT", "auto")]), Conversion::Auto);
        assert_eq!(
            converts(&[("PHALANX_CONVERT", "1M"), ("PHALANX_ALGORITHM", "all:cells")]),
            Conversion::From(1 << 20)
        );
        assert_eq!(spec(&[("PHALANX_HEAP", "3M")]).unwrap().heap, Some(3 << 20));
        let variables = ["ARENA", "HEAP", "CMA", "PLACE", "CONVERT", "ALGORITHM"].map(|name| format!("PHALANX_{name}"));
        for nothing in &variables {
            let (made, usual) = (spec(&[(nothing, "")]).unwrap(), spec(&[]).unwrap());
            assert_eq!((made.arena, made.heap, made.cma), (usual.arena, usual.heap, usual.cma), "{nothing}");
            assert_eq!(
                (made.place, made.convert, made.tuning),
                (usual.place, usual.convert, usual.tuning),
                "{nothing}"
            );
        }
        // A table's trees count unless others are asked for; an empty text asks for none.
        let file = std::env::temp_dir().join(format!("phalanx-table-with-trees-{}", std::process::id()));
        let machine = "model = \"\"\npackages = 1\ncores = 2\npus = 2\nl2 = \"1M\"\nl3 = \"32M\"\n";
        std::fs::write(&file, format!("version = 1\n[machine]\n{machine}[node]\ntrees = \"gather: kary:9\"\n"))
            .unwrap();
        let table = format!("adapt:{}", file.display());
        for (given, tree) in [(None, "kary:9"), (Some(""), "kary:9"), (Some("gather:kary:7"), "kary:7")] {
            let trees = given.map(|text| ("PHALANX_TREES", text));
            let given: Vec<_> = std::iter::once(("PHALANX_TABLE", &*table)).chain(trees).collect();
            let note = String::from_utf8(spec(&given).unwrap().note).unwrap();
            assert!(note.contains(tree), "{given:?}: {note}");
        }
        std::fs::remove_file(&file).unwrap();
        for wrong in [
            ("PHALANX_HEAP", "-1"),
            ("PHALANX_CMA", "perhaps"),
            ("PHALANX_PLACE", "always"),
            ("PHALANX_CONVERT", "always"),
            ("PHALANX_ARENA", "much"),
            ("PHALANX_ALGORITHM", "best"),
            ("PHALANX_TREES", "bush"),
        ] {
            let error = spec(&[wrong]).err().unwrap();
            assert!(error.to_string().contains(wrong.0), "{error}");
            assert_eq!(error.status(), 2);
        }
    }
}
