//! Starts the floor's processes and collects what they measured.

use std::env;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::Task;
use super::moves;
use super::rounds::make_thread_barrier;
use crate::error::{Error, Result};
use crate::gate;
use crate::machine::usable_cores;
use crate::mapping::{Mapping, anonymous_file};
use crate::samples::{CaseSamples, read_run};
use crate::scratch::Scratch;

/// Runs `task` in processes of their own and returns the times of each.
///
/// The processes are this program again, under a hidden subcommand: they share nothing with the
/// caller but the mapping, and the kernel ends them when the caller ends.
pub fn run(task: &Task, scratch: &Scratch) -> Result<CaseSamples> {
    if task.kind.is_of_two() && task.ranks != 2 {
        return Err(Error::Floor(format!("{} is between 2 processes, not {}", task.kind, task.ranks)));
    }
    let folder = scratch.fresh("floor")?;
    let lines = moves::lines(task.kind, task.bytes);
    let file = anonymous_file(lines)?;
    let mapping = Mapping::of(&file, lines)?;
    make_thread_barrier(&mapping, task.ranks)?;
    let program = env::current_exe().map_err(Error::system("path of this program"))?;
    let cores = usable_cores();
    gate::make(&folder, task.ranks, !task.bound || task.ranks > cores.len())?;
    let mut started = Started(Vec::new());
    for rank in 0..task.ranks {
        let mut command = Command::new(&program);
        command.arg("floor-process");
        command.args(["--kind", &task.kind.to_string()]);
        command.args(["--rank", &rank.to_string(), "--ranks", &task.ranks.to_string()]);
        if task.bound {
            command.args(["--core", &cores[rank % cores.len()].to_string()]);
        }
        command.args(["--bytes", &task.bytes.to_string(), "--blocks", &task.blocks.to_string()]);
        command.args(["--block", &task.block.as_nanos().to_string()]);
        command.args(["--parent", &std::process::id().to_string()]);
        command.arg("--results").arg(&folder);
        let input = file.try_clone().map_err(Error::system("second handle on the floor's mapping"))?;
        command.stdin(Stdio::from(input)).stdout(Stdio::null());
        let child = command.spawn().map_err(Error::system("start of a floor process"))?;
        started.0.push(child);
    }
    started.wait(time_limit(task))?;
    read_run(&folder, task.ranks)?.into_single()
}

/// Generous: processes that share cores take their time slices one after the other.
fn time_limit(task: &Task) -> Duration {
    Duration::from_secs(30) + task.block * (20 * (task.blocks as u32 + 5) * task.ranks as u32)
}

/// Processes that are ended when this is dropped.
struct Started(Vec<Child>);

impl Started {
    /// Waits for all; the first that fails, or the limit, ends the wait.
    fn wait(mut self, limit: Duration) -> Result<()> {
        let begin = Instant::now();
        loop {
            let mut running = false;
            for (rank, child) in self.0.iter_mut().enumerate() {
                match child.try_wait().map_err(Error::system("wait for a floor process"))? {
                    None => running = true,
                    Some(status) if status.success() => {}
                    Some(status) => return Err(Error::Floor(format!("process {rank} ended with {status}"))),
                }
            }
            if !running {
                return Ok(());
            }
            if begin.elapsed() > limit {
                return Err(Error::Floor(format!("its processes did not end within {} s", limit.as_secs())));
            }
            sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        for child in &mut self.0 {
            if matches!(child.try_wait(), Ok(None)) {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }
}
