//! Trees that know sockets beside trees that do not, as in the study of Jain et al. (SC18, "Impact of topology aware
//! trees").
//!
//! Three comparisons, since the paper's own changes two things at once. *Same shape*: the k-ary trees of the paper,
//! with and without their knowledge of sockets. *Paper*: its aware trees (k-ary, 3 up to 4 KiB, then 2) beside its best
//! unaware ones (k-nomial, 8 up to 16 KiB, then 2). *Best*: the fastest aware tree beside the fastest unaware one, of
//! the same list of shapes.

use shm_core::Collective;

use super::candidates::{algorithm, levels};
use super::figures::{Costs, MachineFile};
use super::options::SimulateNode;
use super::picture::Series;
use super::places::{Place, Placement};
use super::simulate::{Case, Pace, Simulated};
use super::winners::{asked, note};
use crate::error::{Error, Result};
use crate::sizes::show_size;
use crate::table::{Table, microseconds};

/// Shapes among which the best is looked for.
const SHAPES: [&str; 8] = ["flat", "kary:2", "kary:3", "kary:4", "kary:8", "knomial:2", "knomial:4", "knomial:8"];

/// The paper's shape for a message.
fn papers_shape(bytes: usize, aware: bool) -> &'static str {
    match (aware, bytes) {
        (true, 0..=4096) => "kary:3",
        (true, _) => "kary:2",
        (false, 0..=16384) => "knomial:8",
        (false, _) => "knomial:2",
    }
}

/// One machine, one placement, one collective.
struct Comparison<'a> {
    costs: &'a Costs,
    places: &'a [Place],
    what: Collective,
    levels: &'a str,
}

impl Comparison<'_> {
    /// A tree's text: skew and leaders as the paper has them for this step.
    fn spelled(&self, shape: &str, aware: bool) -> String {
        let (skew, leaders) = match self.what {
            Collective::Broadcast => ("left", "leaders-first"),
            _ => ("right", "leaders-last"),
        };
        match aware {
            true => format!("{shape}:{skew}:{}:{leaders}", self.levels),
            false => format!("{shape}:{skew}"),
        }
    }

    fn time(&self, tree: &str, bytes: usize) -> Result<Simulated> {
        let trees = match self.what {
            Collective::Broadcast => format!("release: {tree}"),
            _ => format!("gather: {tree}; release: flat"),
        };
        // The cells of the paper.
        let algorithm = algorithm(tree, &format!("{}:cells,up_cell=8K,up_cells=4", self.what), &trees)?;
        let (costs, places, what) = (self.costs, self.places, self.what);
        Case { costs, places, what, bytes, algorithm: &algorithm, pace: Pace::Each }.simulate()
    }

    fn papers_gain(&self, bytes: usize) -> Result<f64> {
        let aware = self.time(&self.spelled(papers_shape(bytes, true), true), bytes)?;
        let unaware = self.time(&self.spelled(papers_shape(bytes, false), false), bytes)?;
        Ok(unaware.microseconds / aware.microseconds)
    }

    fn best(&self, aware: bool, bytes: usize) -> Result<(f64, &'static str)> {
        let mut best = (f64::INFINITY, "");
        for shape in SHAPES {
            let time = self.time(&self.spelled(shape, aware), bytes)?.microseconds;
            if time < best.0 {
                best = (time, shape);
            }
        }
        Ok(best)
    }
}

/// The gain of the paper's trees: the time of its unaware one over that of its aware one.
///
/// # Errors
/// What [`Case::simulate`] says.
pub fn papers_gain(costs: &Costs, places: &[Place], what: Collective, bytes: usize) -> Result<f64> {
    Comparison { costs, places, what, levels: levels(places) }.papers_gain(bytes)
}

/// The tables of one machine.
///
/// # Errors
/// What [`Case::simulate`] says.
pub fn run(machine: &MachineFile, options: &SimulateNode, series: &mut Vec<Series>) -> Result<String> {
    let (cores, costs) = (machine.places()?, machine.costs());
    let both = [Placement::Spread, Placement::Cyclic];
    let placements: &[Placement] = if options.placement.is_empty() { &both } else { &options.placement };
    let counts = if options.ranks.is_empty() { vec![cores.len()] } else { options.ranks.clone() };
    let mut text = String::new();
    for what in [Collective::Broadcast, Collective::Reduce, Collective::Allreduce] {
        if !(asked(options, what) && (what == Collective::Reduce || !options.collectives.is_empty())) {
            continue;
        }
        for (&ranks, &placement) in counts.iter().flat_map(|ranks| placements.iter().map(move |place| (ranks, place))) {
            let places = placement.places(&cores, ranks)?;
            if let Some(factor) = options.vary {
                let table = varied(machine, &places, what, options, factor)?;
                text += &format!(
                    "SIMULATED {what}, {ranks} ranks, {placement}: the gain of the paper's trees when one figure that is not \
                     published or measured is {factor} times more or less\n{table}\n"
                );
                continue;
            }
            let comparison = Comparison { costs: &costs, places: &places, what, levels: levels(&places) };
            let title = format!("{what}, {ranks} ranks, {placement}");
            text += &format!(
                "SIMULATED {title}: trees aware of {} beside unaware ones, through cells; microseconds\n{}\n",
                comparison.levels,
                table(&comparison, options, &title, series)?
            );
        }
    }
    Ok(text)
}

fn table(comparison: &Comparison<'_>, options: &SimulateNode, title: &str, series: &mut Vec<Series>) -> Result<String> {
    let mut table = Table::new(&[
        "bytes",
        "aware",
        "unaware",
        "gain",
        "crossings",
        "paper's unaware",
        "gain",
        "best aware<",
        "best unaware<",
        "gain",
    ]);
    for &bytes in &options.sizes {
        let bytes = bytes as usize;
        let (shape, paper) = (papers_shape(bytes, true), papers_shape(bytes, false));
        let aware = comparison.time(&comparison.spelled(shape, true), bytes)?;
        let unaware = comparison.time(&comparison.spelled(shape, false), bytes)?;
        let paper = comparison.time(&comparison.spelled(paper, false), bytes)?;
        let (near, far) = (comparison.best(true, bytes)?, comparison.best(false, bytes)?);
        let crossings = [aware, unaware].map(|found| found.traffic.cells[2] as f64 / found.calls as f64);
        let gains = [unaware.microseconds, paper.microseconds].map(|time| time / aware.microseconds);
        for (name, gain) in [("same shape", gains[0]), ("paper's trees", gains[1]), ("best of each", far.0 / near.0)] {
            note(series, format!("{title}: unaware / aware"), name, bytes, gain, true);
        }
        table.row(vec![
            show_size(bytes as u64),
            microseconds(aware.microseconds),
            microseconds(unaware.microseconds),
            format!("{:.2}", gains[0]),
            format!("{:.0} / {:.0}", crossings[0], crossings[1]),
            microseconds(paper.microseconds),
            format!("{:.2}", gains[1]),
            format!("{} {}", near.1, microseconds(near.0)),
            format!("{} {}", far.1, microseconds(far.0)),
            format!("{:.2}", far.0 / near.0),
        ]);
    }
    Ok(table.render())
}

/// The range of the paper's gain, and which figure moves it most.
fn varied(
    machine: &MachineFile,
    places: &[Place],
    what: Collective,
    options: &SimulateNode,
    factor: f64,
) -> Result<String> {
    if !(factor > 1.0 && factor <= 100.0) {
        return Err(Error::Usage(format!("--vary {factor}: a factor above 1, such as 2")));
    }
    let mut table = Table::new(&["bytes", "gain", "least", "by<", "most", "by<"]);
    for &bytes in &options.sizes {
        let gain = |machine: &MachineFile| papers_gain(&machine.costs(), places, what, bytes as usize);
        let plain = gain(machine)?;
        let (mut least, mut most) = ((plain, "-".to_owned()), (plain, "-".to_owned()));
        for (name, figure) in machine.figures() {
            if !["assumed", "derived"].contains(&figure.kind()) {
                continue;
            }
            for (factor, sign) in [(factor, "x"), (1.0 / factor, "/")] {
                let found = gain(&machine.varied(&name, factor))?;
                if found < least.0 {
                    least = (found, format!("{name} {sign}"));
                }
                if found > most.0 {
                    most = (found, format!("{name} {sign}"));
                }
            }
        }
        table.row(vec![
            show_size(bytes),
            format!("{plain:.2}"),
            format!("{:.2}", least.0),
            least.1,
            format!("{:.2}", most.0),
            most.1,
        ]);
    }
    Ok(table.render())
}
