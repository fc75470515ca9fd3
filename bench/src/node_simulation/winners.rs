//! Which algorithm is fastest, by size and ranks.

use shm_core::Collective;

use super::candidates;
use super::figures::MachineFile;
use super::options::SimulateNode;
use super::picture::Series;
use super::places::{Place, Placement};
use super::simulate::{Algorithm, Case, Pace};
use crate::error::Result;
use crate::plan::Operation;
use crate::sizes::show_size;
use crate::table::{Table, microseconds};

/// As many within this factor of the fastest are named.
const TIE: f64 = 1.02;

/// The tables of one machine; what they show goes to `series` too.
///
/// # Errors
/// What [`Case::simulate`] says.
pub fn run(machine: &MachineFile, options: &SimulateNode, series: &mut Vec<Series>) -> Result<String> {
    let cores = machine.places()?;
    let costs = machine.costs();
    let placements = if options.placement.is_empty() { vec![Placement::Spread] } else { options.placement.clone() };
    let mut text = String::new();
    for placement in placements {
        for what in Collective::ALL.into_iter().filter(|&what| asked(options, what)) {
            let mut heads: Vec<String> = vec!["ranks".into(), "bytes".into(), "fastest us".into(), "fastest<".into()];
            heads.extend(["table us".into(), "/ fastest".into(), "others us<".into()]);
            let mut table = Table::new(&heads);
            for ranks in rank_counts(options, &cores) {
                let places = placement.places(&cores, ranks)?;
                for bytes in sizes(options, what) {
                    let mut found: Vec<(f64, String)> = Vec::new();
                    for algorithm in algorithms(options, what, bytes, &places)? {
                        let case = Case {
                            costs: &costs,
                            places: &places,
                            what,
                            bytes,
                            algorithm: &algorithm,
                            pace: Pace::Each,
                        };
                        found.push((case.simulate()?.microseconds, algorithm.name.clone()));
                    }
                    let own = found[0].0;
                    for (time, name) in &found {
                        let panel = format!("{what}, {ranks} ranks, {placement}: time [us]");
                        note(series, panel, name, bytes, *time, false);
                    }
                    found.sort_by(|a, b| a.0.total_cmp(&b.0));
                    let best = found[0].0;
                    let (near, far): (Vec<_>, Vec<_>) = found.iter().partition(|(time, _)| *time <= TIE * best);
                    let names: Vec<&str> = near.iter().map(|(_, name)| name.as_str()).collect();
                    let others = far.iter().map(|(time, name)| format!("{name} {}", microseconds(*time)));
                    table.row(vec![
                        ranks.to_string(),
                        if what == Collective::Barrier { "-".into() } else { show_size(bytes as u64) },
                        microseconds(best),
                        names.join(" = "),
                        microseconds(own),
                        format!("{:.2}", own / best),
                        others.collect::<Vec<_>>().join(", "),
                    ]);
                }
            }
            text +=
                &format!("SIMULATED {what}, ranks placed {placement}, all ranks begin at once\n{}\n", table.render());
        }
    }
    Ok(text)
}

/// Whether a collective was asked for.
pub fn asked(options: &SimulateNode, what: Collective) -> bool {
    let operation = match what {
        Collective::Barrier => Operation::Barrier,
        Collective::Broadcast => Operation::Broadcast,
        Collective::Reduce => Operation::Reduce,
        Collective::Allreduce => Operation::Allreduce,
    };
    options.collectives.is_empty() || options.collectives.contains(&operation)
}

/// The rank counts that were asked for, or a few that tell.
fn rank_counts(options: &SimulateNode, cores: &[Place]) -> Vec<usize> {
    if !options.ranks.is_empty() {
        return options.ranks.clone();
    }
    let all = cores.len();
    let socket = cores.iter().filter(|core| core.package == 0).count();
    let mut counts: Vec<usize> = [2, 8, socket, all].into_iter().filter(|&count| count <= all).collect();
    counts.sort_unstable();
    counts.dedup();
    counts
}

fn sizes(options: &SimulateNode, what: Collective) -> Vec<usize> {
    if what == Collective::Barrier {
        return vec![0];
    }
    options.sizes.iter().map(|&bytes| bytes as usize).collect()
}

/// The table's own choice first, then what is forced.
fn algorithms(options: &SimulateNode, what: Collective, bytes: usize, places: &[Place]) -> Result<Vec<Algorithm>> {
    let mut all = vec![candidates::table()?];
    all.extend(candidates::of(what, bytes, places)?);
    for rules in &options.algorithm {
        all.push(candidates::algorithm(rules, rules, "")?);
    }
    if what != Collective::Barrier {
        for trees in &options.trees {
            all.push(candidates::algorithm(trees, &format!("{what}:cells"), trees)?);
        }
    }
    Ok(all)
}

/// Adds a point to a series.
pub fn note(series: &mut Vec<Series>, panel: String, name: &str, bytes: usize, value: f64, ratio: bool) {
    let point = (bytes.max(1) as f64, value);
    match series.iter_mut().find(|one| one.panel == panel && one.name == name) {
        Some(one) => one.points.push(point),
        None => series.push(Series { panel, name: name.to_owned(), points: vec![point], ratio }),
    }
}
