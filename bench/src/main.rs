//! The command `bench`.

use std::process::ExitCode;

use bench::command::{Cli, Command};
use bench::error::Result;
use bench::{
    across, allreduce, bare, bytes, collectives, commtest, floor, kernels, node_simulation, rank, report_page,
    reproduce, steps, tether,
};
use clap::Parser;

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if !error.is_unread() {
                eprintln!("bench: {error}");
            }
            ExitCode::from(error.status())
        }
    }
}

fn run(command: Command) -> Result<()> {
    match command {
        Command::Collectives(options) => collectives::run(&options),
        Command::Floor(options) => bare::run(&options),
        Command::Bytes(options) => bytes::run(&options),
        Command::Kernels(options) => kernels::run(&options),
        Command::Across(options) => across::run(&options),
        Command::AcrossRank(options) => across::run_rank(&options),
        Command::AllReduce(options) => allreduce::run(&options),
        Command::CommTest(options) => commtest::run(&options),
        Command::CommTestRank(options) => commtest::run_rank(&options),
        Command::Simulate(options) => across::simulate::run(&options),
        Command::SimulateNode(options) => node_simulation::run(&options),
        Command::Reproduce { study } => reproduce::run(&study),
        Command::Steps(options) => steps::run(&options),
        Command::Report(options) => report_page::run(&options),
        Command::Rank(spec) => rank::run(&spec),
        Command::FloorProcess(spec) => floor::process::run(&spec),
        Command::Tethered { parent, program } => tether::become_program(parent, &program).map(|never| match never {}),
    }
}
