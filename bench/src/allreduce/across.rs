//! Runs on an emulated cluster: every schedule and the library's own in one job, one job a length and turn.

use std::path::PathBuf;

use super::curves::{Curve, Times};
use super::options::AllReduce;
use crate::across::cluster;
use crate::across::measured::{Case, Measured};
use crate::across::mode::Mode;
use crate::across::plan::Plan;
use crate::across::program::{self, Library};
use crate::across::series::Series;
use crate::error::{Error, Result};
use crate::plan::Combine;
use crate::scratch::Scratch;
use crate::study::{Session, Stop};

/// What is measured across nodes.
pub struct OnCluster<'a> {
    options: &'a AllReduce,
    sizes: Vec<u64>,
    programs: Vec<(Library, PathBuf)>,
    series: Vec<Series>,
    mode: Mode,
}

impl<'a> OnCluster<'a> {
    /// The study of some options; programs of ranks are built where they are missing.
    ///
    /// # Errors
    ///
    /// [`Error::Usage`] for what cannot be, [`Error::BaselineMissing`] without an MPI.
    pub fn of(options: &'a AllReduce) -> Result<OnCluster<'a>> {
        let across = options.across(8)?;
        if across.hosts * across.slots < 2 {
            return Err(Error::Usage(
                "--hosts 1 --slots 1: an allreduce across nodes takes two ranks; leave out --hosts".into(),
            ));
        }
        let series = Plan::of_work(&across.work)?.series;
        cluster::script(&across)?;
        if across.program.is_some() && across.mpi.len() > 1 {
            return Err(Error::Usage("--program is built for one library: give one --mpi".into()));
        }
        let sizes = options.sizes()?;
        let program =
            |&library: &Library| Ok((library, across.program.clone().map_or_else(|| program::build(library), Ok)?));
        let programs = across.mpi.iter().map(program).collect::<Result<_>>()?;
        let mode = Mode::usual(options.cluster.eager);
        Ok(OnCluster { options, sizes, programs, series, mode })
    }

    fn key(&self, library: Library, bytes: u64, turn: usize) -> String {
        format!("{library}/{}/{bytes}/{turn}", self.mode.name())
    }

    /// The keys of all runs, turns outermost.
    pub fn keys(&self) -> Vec<String> {
        let mut keys = Vec::new();
        for turn in 1..=self.options.turns() {
            for &(library, _) in &self.programs {
                keys.extend(self.sizes.iter().map(|&bytes| self.key(library, bytes, turn)));
            }
        }
        keys
    }

    /// The names of all series.
    pub fn names(&self) -> Vec<String> {
        self.series.iter().map(Series::to_string).collect()
    }

    /// Measures what is missing. False where an emulated cluster is not allowed.
    ///
    /// # Errors
    ///
    /// As of [`cluster::launch`]; [`Error::Interrupted`].
    pub fn measure(&self, session: &mut Session, scratch: &Scratch) -> Result<bool> {
        let mut allowed = true;
        for turn in 1..=self.options.turns() {
            for (library, program) in &self.programs {
                for &bytes in &self.sizes {
                    let key = self.key(*library, bytes, turn);
                    let measured = session.measure(&key, |_, stop| {
                        let measured = self.run(*library, program, bytes, scratch, stop)?;
                        allowed = measured.is_some();
                        measured.ok_or_else(|| Error::Usage("namespaces are not allowed here".into()))
                    });
                    if !allowed {
                        return Ok(false);
                    }
                    let _: Vec<Case> = measured?;
                }
            }
        }
        Ok(true)
    }

    fn run(
        &self,
        library: Library,
        program: &std::path::Path,
        bytes: u64,
        scratch: &Scratch,
        stop: &Stop,
    ) -> Result<Option<Vec<Case>>> {
        let across = self.options.across(bytes)?;
        let folder = scratch.fresh(&self.mode.name())?;
        let result = folder.join("measured.json");
        let ranks = Some(across.hosts * across.slots);
        let plan = Plan { ranks, json: Some(result.clone()), ..Plan::of_work(&across.work)? };
        let ran = cluster::launch(&across, library, self.mode, program, &plan.to_words(), &folder, Some(stop))?;
        if ran { Measured::read(&result).map(|measured| Some(measured.cases)) } else { Ok(None) }
    }

    /// The cluster in words.
    pub fn words(&self) -> String {
        let own = &self.options.cluster;
        let hosts = own.hosts.unwrap_or(1);
        let mut text = format!("{hosts} hosts x {}, links {}", own.slots, own.rate);
        if let Some(each) = own.per_switch.filter(|each| *each < hosts) {
            text += &format!(", {each} hosts a switch, trunks {}", own.trunk_rate.as_ref().unwrap_or(&own.rate));
        }
        format!("{text}, {}", own.placement)
    }

    /// What is finished, as curves.
    pub fn curves(&self, session: &Session) -> Vec<Curve> {
        let mut curves = Vec::new();
        for &(library, _) in &self.programs {
            let place = format!("{}, {library} {}", self.words(), self.mode.name());
            let keys = (1..=self.options.turns())
                .flat_map(|turn| self.sizes.iter().map(move |&bytes| self.key(library, bytes, turn)));
            let cases: Vec<Case> = keys.filter_map(|key| session.store().get::<Vec<Case>>(&key)).flatten().collect();
            for series in &self.series {
                let own = cases.iter().filter(|case| case.series == series.name);
                let times =
                    own.map(|case| Times { bytes: case.bytes, slowest: case.seconds.clone(), how: case.how.clone() });
                curves.extend(Curve::of(&place, &series.name, Combine::Sum.name(), times));
            }
        }
        curves
    }
}
