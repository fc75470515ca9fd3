//! `bench across`: builds the program of ranks, runs it on emulated clusters, prints, records.

use std::path::PathBuf;
use std::time::Instant;

use serde::Serialize;

use super::bound::Links;
use super::cluster;
use super::mode::Mode;
use super::options::Across;
use super::plan::Plan;
use super::program::{self, Library};
use super::report::{self, Run};
use super::series::{FORCED, HAN, OURS, Series};
use super::{picture, sheet};
use crate::error::{Error, Result};
use crate::keep::Keeper;
use crate::out::{say, show};
use crate::record::host::Host;
use crate::scratch::Scratch;

/// All results, as they are written to `results.json`.
#[derive(Debug, Serialize)]
struct Results<'a> {
    host: &'a Host,
    runs: &'a [Run],
}

/// Runs the command. Where namespaces are not allowed it says so, and ends well.
///
/// # Errors
///
/// Those of [`Plan::of_work`], [`program::build`] and [`cluster::run`]; what was measured before is printed and
/// recorded.
pub fn run(options: &Across) -> Result<()> {
    let plan = Plan::of_work(&options.work)?;
    cluster::script(options)?;
    if options.program.is_some() && options.mpi.len() > 1 {
        return Err(Error::Usage("--program is built for one library: give one --mpi".into()));
    }
    let mut host = Host::look();
    let programs = options
        .mpi
        .iter()
        .map(|&library| Ok((library, options.program.clone().map_or_else(|| program::build(library), Ok)?)))
        .collect::<Result<Vec<(Library, PathBuf)>>>()?;
    say!("{}\n", host.line())?;
    let scratch = Scratch::new()?;
    let mut runs: Vec<Run> = Vec::new();
    let mut outcome = Ok(());
    let begin = Instant::now();
    let wanted: Vec<(Library, &PathBuf, Mode)> = programs
        .iter()
        .flat_map(|(library, path)| Mode::of(options, *library).into_iter().map(move |mode| (*library, path, mode)))
        .collect();
    for (place, &(library, path, mode)) in wanted.iter().enumerate() {
        let of = wanted.len();
        eprintln!("run {} of {of}: {library}, {}, {}", place + 1, mode.name(), words(options));
        match cluster::run(options, library, mode, &of_mode(&plan, mode), path, &scratch) {
            Ok(None) => return Ok(()),
            Ok(Some(measured)) => {
                let trunk = options.per_switch.filter(|&hosts| hosts < options.hosts);
                let trunk = trunk.map(|_| options.trunk_rate.as_ref().unwrap_or(&options.rate));
                let links = Links::of(measured.nodes, measured.goodput, &options.rate, trunk);
                let run = Run {
                    mpi: library.to_string(),
                    mode,
                    cluster: words(options),
                    shape: shape(options),
                    trunk: links.and_then(|links| links.trunk),
                    links,
                    measured,
                };
                outcome = outcome.and(show(report::run(&run)));
                runs.push(run);
            }
            Err(error) => {
                eprintln!("{error}");
                outcome = outcome.and(Err(error));
            }
        }
    }
    host.baselines = runs.iter().map(|run| format!("{}: {}", run.mpi, run.measured.library)).collect();
    host.baselines.dedup();
    eprintln!("measured for {:.0} s", begin.elapsed().as_secs_f64());
    let kept = if runs.is_empty() { Ok(()) } else { keep(options, &host, &runs) };
    outcome?;
    kept
}

fn keep(options: &Across, host: &Host, runs: &[Run]) -> Result<()> {
    let mut keeper = Keeper::open(&options.record, host, &format!("across-{}x{}", options.hosts, options.slots));
    keeper.write("host.txt", &host.render());
    keeper.write("results.csv", &sheet::render(runs));
    keeper.write_json("results.json", &Results { host, runs });
    keeper.write("tables.txt", &runs.iter().map(report::run).collect::<String>());
    keeper.write_plot("across.svg", &picture::render(runs));
    keeper.close()
}

/// The cluster in words.
fn words(options: &Across) -> String {
    let Across { hosts, slots, rate, .. } = options;
    let mut text = format!("{hosts} hosts x {slots}, links {rate}");
    if let Some(per_switch) = options.per_switch.filter(|per_switch| per_switch < hosts) {
        let trunk = options.trunk_rate.as_ref().unwrap_or(rate);
        text += &format!(", {per_switch} hosts a switch, trunks {trunk}");
    }
    text + ", " + &options.placement
}

/// The switches of the cluster, as topo reads them.
fn shape(options: &Across) -> String {
    let hosts = options.hosts;
    match options.per_switch.filter(|&each| each > 0 && each < hosts) {
        None => format!("flat:{hosts}"),
        Some(each) => {
            let on = |switch: usize| each.min(hosts - switch * each).to_string();
            (0..hosts.div_ceil(each)).map(on).collect::<Vec<_>>().join("+")
        }
    }
}

/// The plan of a run: where the library is told what to take, that and ours only.
fn of_mode(plan: &Plan, mode: Mode) -> Plan {
    if !mode.is_told() {
        return plan.clone();
    }
    let told = if mode.han { HAN } else { FORCED };
    Plan { series: [OURS, told].into_iter().filter_map(Series::named).collect(), ..plan.clone() }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::command::{Cli, Command};

    fn options(words: &[&str]) -> Across {
        match Cli::try_parse_from(["bench", "across"].iter().chain(words)).unwrap().command {
            Command::Across(options) => *options,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn han_is_measured_beside_ours_alone() {
        let plan = Plan::of_work(&options(&[]).work).unwrap();
        let series = of_mode(&plan, Mode { han: true, ..Mode::usual(false) }).series;
        assert_eq!(series.iter().map(|series| series.name.as_str()).collect::<Vec<_>>(), ["ours", "han"]);
        assert_eq!(of_mode(&plan, Mode::usual(true)), plan);
    }

    #[test]
    fn the_cluster_in_words() {
        assert_eq!(words(&options(&["--slots", "4"])), "8 hosts x 4, links 100mbit, block");
        let two = options(&["--per-switch", "4", "--trunk-rate", "50mbit", "--placement", "round-robin"]);
        assert_eq!(words(&two), "8 hosts x 1, links 100mbit, 4 hosts a switch, trunks 50mbit, round-robin");
    }

    #[test]
    fn the_shape_is_a_cluster_of_topo() {
        for (words, text) in
            [(vec![], "flat:8"), (vec!["--per-switch", "4"], "4+4"), (vec!["--per-switch", "3"], "3+3+2")]
        {
            assert_eq!(shape(&options(&words)), text);
            assert_eq!(text.parse::<topo::Cluster>().unwrap().hosts().len(), 8);
        }
    }

    #[test]
    fn a_program_is_of_one_library() {
        let options = options(&["--program", "/bin/true", "--mpi", "openmpi,mpich"]);
        assert!(run(&options).unwrap_err().to_string().contains("one --mpi"));
    }
}
