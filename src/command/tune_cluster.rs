//! `phalanx tune --cluster`: measures the network between the nodes of an MPI job, and writes what was found into the
//! table.

/// Says that this program cannot be a rank of an MPI job.
#[cfg(not(feature = "mpi"))]
pub fn run(_: super::tune::Thorough, _: Option<&std::path::Path>, _: bool) -> Result<(), super::tune::Stopped> {
    Err(super::tune::Stopped::because(
        "--cluster: this program was built without MPI: MPICC=mpicc cargo build --release --features mpi --target-dir \
         target/mpi, and then mpirun -n 32 target/mpi/release/phalanx tune --cluster",
        2,
    ))
}

#[cfg(feature = "mpi")]
pub use ranks::run;

#[cfg(feature = "mpi")]
mod ranks {
    use std::path::{Path, PathBuf};
    use std::time::{Duration, Instant};

    use hier::HierComm;
    use hier::across::ClusterSettings;
    use hier::remark;
    use hier::table::{Fingerprint, NetworkTable, Table, with_network};
    use hier::transport::mpi::MpiTransport;
    use hier::tune::cluster::{Findings, Shape, explanation, network_of, steps, tune_cluster};
    use mpi::topology::SimpleCommunicator;
    use mpi::traits::Communicator;

    use super::super::out::tell;
    use super::super::tune::{Progress, Stopped, Thorough, failed, how_to_take, places, replace, say};

    /// How long a launcher has to pass an error on.
    const LAST_WORDS: Duration = Duration::from_millis(200);

    /// One rank of the job. Any rank's error ends all of it.
    pub fn run(thorough: Thorough, output: Option<&Path>, explain: bool) -> Result<(), Stopped> {
        let universe = mpi::initialize().ok_or_else(|| Stopped::because("MPI is initialised already", 1))?;
        let world = universe.world();
        measure(&world, thorough, output, explain).map_err(|stopped| {
            // At once, and some time before the end: what MPICH's launcher has not read by then is lost.
            remark(format_args!("{}", stopped.why));
            std::thread::sleep(LAST_WORDS);
            world.abort(i32::from(stopped.status))
        })
    }

    fn measure(
        world: &SimpleCommunicator,
        thorough: Thorough,
        output: Option<&Path>,
        explain: bool,
    ) -> Result<(), Stopped> {
        let begin = Instant::now();
        // Only the first rank reads and writes.
        let table = if world.rank() == 0 { Some(Written::find(thorough, output)?) } else { None };
        let partial = table.as_ref().map_or_else(PathBuf::new, |table| table.partial.clone());
        let stopped = |error: hier::across::Error| Stopped::because(error.to_string(), 1);
        // Rules and tables of the environment are left aside: it is they that are sought.
        let topology = ClusterSettings::from_environment().topology;
        let settings = ClusterSettings { topology, ..ClusterSettings::default() };
        let transport = MpiTransport::new(world).map_err(|error| stopped(error.into()))?;
        let comm = HierComm::over(Box::new(transport), &settings).map_err(stopped)?;
        let shape = Shape { nodes: comm.placement().nodes(), ranks_a_node: comm.placement().most() };
        let effort = thorough.across();
        let progress = table.as_ref().map(|_| Progress::follow(partial.clone(), steps(&effort, shape)));
        let found = tune_cluster(comm, &effort, &partial);
        if let Some(progress) = progress {
            progress.end();
        }
        let found = found.map_err(stopped)?;
        let Some(table) = table else { return Ok(()) };
        table.write(&found)?;
        if explain {
            say(&explanation(&found))?;
        }
        say(&format!(
            "{} written after {:.0} s, for {} nodes of {} ranks; {}\n",
            table.output.display(),
            begin.elapsed().as_secs_f64(),
            shape.nodes,
            shape.ranks_a_node,
            how_to_take(output)
        ))
    }

    /// The table that is to be written, with what it says of single nodes.
    struct Written {
        output: PathBuf,
        partial: PathBuf,
        before: String,
    }

    impl Written {
        fn find(thorough: Thorough, output: Option<&Path>) -> Result<Self, Stopped> {
            let (output, partial) =
                places(output, &format!("cluster.{}", thorough.name()), &Fingerprint::of_this_machine())?;
            let here = Fingerprint::of_this_machine();
            let before = match std::fs::read_to_string(&output) {
                Ok(text) => text,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Table::new(here.clone()).to_toml(),
                Err(error) => return Err(failed("read", &output, &error)),
            };
            let table = Table::from_toml(&before).map_err(|flaw| wrong(&output, &flaw.to_string()))?;
            let differences = here.differences(&table.machine);
            if !differences.is_empty() {
                let why = format!("it was measured on another machine (this one has {})", differences.join("; "));
                return Err(wrong(&output, &why));
            }
            tell(format_args!(
                "finished measurements are in {}: who ends this job loses none, and the same command goes on from there",
                partial.display()
            ));
            Ok(Self { output, partial, before })
        }

        fn write(&self, found: &Findings) -> Result<(), Stopped> {
            let network = network_of(found).map_err(|error| Stopped::because(error.to_string(), 1))?;
            let text = with_network(&self.before, &network);
            let shape = |network: &NetworkTable| (network.nodes, network.ranks_a_node, network.rules.len());
            let back = Table::from_toml(&text).map_err(|flaw| wrong(&self.output, &flaw.to_string()))?;
            if back.network.as_ref().map(shape) != Some(shape(&network)) {
                return Err(wrong(&self.output, "its part on the network cannot be told from the rest"));
            }
            replace(&self.output, &text)?;
            let _ = std::fs::remove_file(&self.partial);
            Ok(())
        }
    }

    fn wrong(path: &Path, why: &str) -> Stopped {
        Stopped::because(
            format!("{}: {why}; mend it, remove it, or name another file with --output", path.display()),
            1,
        )
    }
}
