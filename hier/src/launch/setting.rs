//! What the job gets: of the machine, and of the environment.

use std::ffi::{OsStr, OsString};

use nix::sched::CpuSet;
use shm_core::job::JobSpec;
use shm_core::segment::layout::crowd_of;
use topo::{BindPolicy, Machine, Usable};

use super::{LaunchError, spawn};
use crate::cores;
use crate::note::Note;
use crate::table;

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

    /// The job, as the variables given to the ranks and, after them, this process's environment want it. One that is
    /// given hides that of the environment, even if it is empty.
    pub(super) fn spec(self, ranks: usize, given: &[(OsString, OsString)]) -> Result<JobSpec, LaunchError> {
        self.spec_by(ranks, &|name| text(given, name).or_else(|| table::own_variable(name)))
    }

    fn spec_by(self, ranks: usize, value: &dyn Fn(&str) -> Option<String>) -> Result<JobSpec, LaunchError> {
        let (mut spec, rules) = table::job_spec(ranks, value).map_err(LaunchError::Job)?;
        spec.cores = self.cores;
        // Who is bound stays there.
        spec.place &= self.masks.iter().all(Option::is_none);
        spec.note = Note { machine: self.machine, rules }.to_bytes();
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

#[cfg(test)]
mod tests {
    use super::*;
    use shm_core::Collective;
    use shm_core::job::Conversion;

    fn spec(given: &[(&str, &str)]) -> Result<JobSpec, LaunchError> {
        let given: Vec<(OsString, OsString)> = given.iter().map(|(key, value)| (key.into(), value.into())).collect();
        Setting { machine: None, cores: 3, masks: vec![] }.spec(2, &given)
    }

    const WRONG: [(&str, &str); 7] = [
        ("PHALANX_HEAP", "-1"),
        ("PHALANX_CMA", "perhaps"),
        ("PHALANX_PLACE", "always"),
        ("PHALANX_CONVERT", "always"),
        ("PHALANX_ARENA", "much"),
        ("PHALANX_ALGORITHM", "best"),
        ("PHALANX_TREES", "bush"),
    ];

    #[test]
    fn what_is_given_anew_is_not_asked_of_the_own_environment() {
        let absent = ("PHALANX_TABLE", "/nowhere/table.toml");
        for (name, own) in WRONG.into_iter().chain([absent]) {
            let made = |given: &[(OsString, OsString)]| {
                let value = |asked: &str| text(given, asked).or_else(|| (asked == name).then(|| own.to_owned()));
                // No table of whoever runs the test.
                let value =
                    |asked: &str| value(asked).or_else(|| (asked == "PHALANX_TABLE").then(|| "none".to_owned()));
                Setting { machine: None, cores: 3, masks: vec![] }.spec_by(2, &value)
            };
            let error = made(&[]).err().unwrap();
            assert!(error.to_string().contains(name), "{error}");
            let anew = match name {
                "PHALANX_ARENA" | "PHALANX_HEAP" => "3M",
                "PHALANX_ALGORITHM" => "all:cells",
                "PHALANX_TREES" => "gather:kary:7",
                "PHALANX_TABLE" => "none",
                _ => "never",
            };
            for given in [anew, ""] {
                made(&[(name.into(), given.into())]).unwrap_or_else(|error| panic!("{name}={given}: {error}"));
            }
        }
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
        for wrong in WRONG {
            let error = spec(&[wrong]).err().unwrap();
            assert!(error.to_string().contains(wrong.0), "{error}");
            assert_eq!(error.status(), 2);
        }
    }
}
