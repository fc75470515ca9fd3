//! The command `phalanx`: starts jobs, shows machines and trees, looks whether this machine is fit.

#![forbid(unsafe_code)]

mod command;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    command::Arguments::parse().run()
}
