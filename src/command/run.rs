//! `phalanx run`: ranks of a program.

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use hier::launch::Launch;
use hier::remark;

use super::{Bind, ranks};

/// Start N ranks of a program, and end when all of them have ended
///
/// Each rank is a process of its own. Together they are a job: the program takes its place in it with
/// `Communicator::world()`. A program that never does so may be started too.
#[derive(Debug, Args)]
#[command(after_help = AFTER, after_long_help = AFTER_LONG)]
pub struct Run {
    /// How many ranks, 1 to 256
    #[arg(short = 'n', long = "ranks", value_name = "N", value_parser = ranks)]
    ranks: usize,

    /// How ranks are bound to the machine [default: core if there are N usable cores, else none]
    #[arg(long, value_enum)]
    bind: Option<Bind>,

    /// Put each rank's number before the lines that it writes: `[3] text`
    #[arg(long)]
    tag: bool,

    /// How long ranks have to end by themselves, once one has failed or a signal came, before they are made to
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = seconds)]
    grace: Duration,

    /// The program, and its arguments; looked for on the PATH unless there is a `/` in its name
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

const AFTER: &str = "\
Examples:
  phalanx run -n 4 -- ./program --its-own options
  phalanx run -n 8 --bind none --tag -- sh -c 'echo \"rank $PHALANX_RANK of $PHALANX_SIZE\"'

`phalanx run --help` tells more: environment, input and output, signals, exit status.";

const AFTER_LONG: &str = "\
Examples:
  phalanx run -n 4 -- ./program --its-own options
  phalanx run -n 8 --bind none --tag -- sh -c 'echo \"rank $PHALANX_RANK of $PHALANX_SIZE\"'

Environment that each rank sees:
  PHALANX_RANK, PHALANX_SIZE    its rank, from 0, and the number of ranks
  PHALANX_SEGMENT, PHALANX_JOB  where it finds the job's shared memory; leave them alone

Environment that shapes the job:
  PHALANX_ALGORITHM  names algorithms outright: allreduce:shares,leaders=4; broadcast:cells; strict
  PHALANX_TREES      names trees by message size: gather:kary:3<8K,kary:2; release:flat
  PHALANX_TABLE      a table of choices that `phalanx tune` wrote; adapt:FILE takes one of another machine, none takes none
  PHALANX_ARENA      bytes of shared memory that communicators may take in all
  PHALANX_HEAP       bytes of shared memory that the buffers of all ranks may take in all
  PHALANX_CMA        never: ranks do not reach into each other's private memory through the kernel
  PHALANX_PLACE      never: ranks that share cores stay where the system has put them (otherwise neighbours come
                     together when a long call begins; the system may move them on)
  PHALANX_CONVERT    auto: long private buffers that come again and again become shared memory, at their addresses,
                     where each rank has a core; BYTES: those of so many bytes and more, however many cores there
                     are (off by default; takes Linux 6.11 and the GNU C library)
  PHALANX_DEBUG      1: rank 0 of each communicator prints which algorithms were chosen

Input and output:
  Rank 0 gets the standard input, the others an empty one. Standard output and standard error are
  inherited, untouched; with --tag they pass line by line, whole, and a last line without an end
  gets one. Programs that want a terminal of their own (editors, debuggers) do not work as ranks.

Signals:
  SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP and SIGCONT go to all ranks and to
  what they started. After one of the first four, ranks that still run when the grace time is over
  get SIGKILL; a second SIGINT does that at once. However this command ends, its ranks end too.

Exit status:
  0        all ranks exited with 0
  1        a rank exited with 0 while others still counted on it, and they did not fail first; or, with --tag,
           no rank failed and not all output could be written
  2        the command line, or a variable, was not understood
  125      the job could not be started
  126      the program could not be executed
  127      there is no such program
  128+S    the first rank that failed was killed by signal S
  other    that of the first rank that failed";

impl Run {
    pub fn run(self) -> ExitCode {
        let Some((program, args)) = self.program.split_first() else {
            unreachable!("the program is a required argument");
        };
        let mut launch = Launch::new(program, args).ranks(self.ranks).grace(self.grace).forward_signals();
        if let Some(bind) = self.bind {
            launch = launch.bind(bind.into());
        }
        if self.tag {
            launch = launch.tag();
        }
        match launch.run() {
            Ok(outcome) => outcome.status().into(),
            Err(error) => {
                remark(format_args!("{error}"));
                error.status().into()
            }
        }
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    // More would overflow the clock when it is added to the time of day.
    seconds
        .filter(|duration| duration.as_secs() < 1 << 32)
        .ok_or_else(|| "a number of seconds is expected, as in 0.5".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_grace() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(seconds("0"), Ok(Duration::ZERO));
        for wrong in ["", "-1", "soon", "NaN", "inf", "1e300"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
