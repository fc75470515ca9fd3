//! The command line, and what its subcommands share.

mod cluster;
mod copying;
mod doctor;
mod mpirun;
mod out;
mod run;
mod topo;
mod tune;
mod tune_cluster;
mod variables;

use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};
use phalanx::topo::BindPolicy;

/// Collective operations between the processes of one machine, over shared memory.
#[derive(Debug, Parser)]
#[command(name = "phalanx", version, arg_required_else_help = true, after_help = EXAMPLES)]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

const EXAMPLES: &str = "\
Examples:
  phalanx run -n 4 -- ./program --its-own options
  phalanx mpirun -n 4 -- ./mpi-program
  phalanx topo --ranks 8 --tree kary:3
  phalanx doctor
  phalanx tune --quick";

#[derive(Debug, Subcommand)]
enum What {
    Run(run::Run),
    Mpirun(mpirun::Mpirun),
    Topo(topo::Topo),
    Doctor(doctor::Doctor),
    Tune(tune::Tune),
}

impl Arguments {
    /// Does what they say, and returns the exit status.
    pub fn run(self) -> ExitCode {
        variables::name_strangers();
        match self.what {
            What::Run(run) => run.run(),
            What::Mpirun(mpirun) => mpirun.run(),
            What::Topo(topo) => topo.run(),
            What::Doctor(doctor) => doctor.run(),
            What::Tune(tune) => tune.run(),
        }
    }
}

/// `--bind`, as it is written.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Bind {
    /// Each rank to a core of its own, neighbouring ranks to the same one when there are more ranks
    Core,
    /// Each rank to a NUMA node, neighbouring ranks to the same one
    Numa,
    /// No rank to anything: the operating system decides
    None,
}

impl From<Bind> for BindPolicy {
    fn from(bind: Bind) -> Self {
        match bind {
            Bind::Core => BindPolicy::Core,
            Bind::Numa => BindPolicy::Numa,
            Bind::None => BindPolicy::None,
        }
    }
}

/// A number of ranks, as it is written.
fn ranks(text: &str) -> Result<usize, String> {
    let most = hier::launch::MOST_RANKS;
    match text.parse() {
        Ok(ranks) if (1..=most).contains(&ranks) => Ok(ranks),
        Ok(0) => Err("a job has at least 1 rank; try `-n 2`".to_owned()),
        Ok(_) => Err(format!("a job has at most {most} ranks; give each more to do, as with threads of its own")),
        Err(_) => Err(format!("a number of ranks is expected, 1 to {most}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn numbers_of_ranks() {
        assert_eq!(ranks("1"), Ok(1));
        assert_eq!(ranks("256"), Ok(256));
        for (text, why) in [("0", "at least 1"), ("257", "at most 256"), ("-3", "a number"), ("two", "a number")] {
            assert!(ranks(text).unwrap_err().contains(why), "{text}");
        }
    }
}
