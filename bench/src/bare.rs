//! `bench floor`: the machine's floor as a command.

use std::time::Duration;

use serde::Serialize;

use crate::command::Floor;
use crate::error::Result;
use crate::floor::report::{Report, Wish, measure, steps};
use crate::keep::Keeper;
use crate::out::say;
use crate::progress::Progress;
use crate::record::host::Host;
use crate::scratch::Scratch;

#[derive(Serialize)]
struct Results<'a> {
    host: &'a Host,
    floor: &'a Report,
}

/// Runs the command.
pub fn run(options: &Floor) -> Result<()> {
    let scratch = Scratch::new()?;
    let host = Host::look();
    say!("{}\n", host.line())?;
    let mut keeper = Keeper::open(&options.record, &host, "floor");
    let wish = Wish {
        ranks: options.ranks.clone(),
        bound: options.bind,
        turns: options.turns as usize,
        blocks: options.repetitions as usize,
        block: Duration::from_millis(options.block.max(1)),
    };
    let progress = Progress::new(steps(&wish));
    let report = measure(&wish, &scratch, &progress)?;
    progress.finish();
    let shown = say!("{}", report.render());
    keeper.write("host.txt", &host.render());
    keeper.write("floor.txt", &report.render());
    keeper.write_json("floor.json", &Results { host: &host, floor: &report });
    keeper.close()?;
    shown
}
