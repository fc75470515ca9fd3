//! `bench allreduce`: all series in turns, tables, record.

use serde::Serialize;
use serde_json::json;

use super::across::OnCluster;
use super::curves::Curve;
use super::node::{self, OnNode};
use super::options::{AllReduce, DESCRIPTION};
use super::{picture, report};
use crate::across::plan::ELEMENT;
use crate::error::Result;
use crate::out::{say, show};
use crate::record::host::Host;
use crate::scratch::Scratch;
use crate::study::Session;

/// All results, as they are written to `results.json`.
#[derive(Debug, Serialize)]
struct Results<'a> {
    study: &'static str,
    host: &'a Host,
    curves: &'a [Curve],
}

/// Runs the command. Where an emulated cluster is asked for and not allowed it says so, and ends well.
///
/// # Errors
///
/// [`Error::Usage`](crate::error::Error::Usage) and [`Error::BaselineMissing`](crate::error::Error::BaselineMissing)
/// before anything is measured; [`Error::Wrong`](crate::error::Error::Wrong) at the first wrong answer;
/// [`Error::Interrupted`](crate::error::Error::Interrupted); those of the runs. What was finished is kept.
pub fn run(options: &AllReduce) -> Result<()> {
    let sizes = options.sizes()?;
    let scratch = Scratch::new()?;
    let mut host = Host::look();
    if options.cluster.hosts.is_some() {
        let study = OnCluster::of(options)?;
        let across = options.across(ELEMENT)?;
        let settings = json!({
            "cluster": study.words(), "eager": options.cluster.eager, "series": study.names(), "sizes": sizes,
            "mpi": across.mpi.iter().map(ToString::to_string).collect::<Vec<_>>(), "calls": across.work.calls,
            "turns": options.turns(),
        });
        host.baselines = across.mpi.iter().map(ToString::to_string).collect();
        let mut session = begin(options, host, settings, &study.keys())?;
        if !study.measure(&mut session, &scratch)? {
            return Ok(());
        }
        let curves = study.curves(&session);
        return conclude(options, session, &curves, ELEMENT);
    }
    let baselines = node::baselines(options, &scratch)?;
    host.baselines = baselines.iter().map(|one| format!("{}: {}", one.name, one.version)).collect();
    let study = OnNode::of(options, &baselines)?;
    let settings = json!({
        "series": study.names(), "sizes": sizes, "element": options.node.element.name(), "turns": options.turns(),
        "algorithms": options.algorithms().iter().map(ToString::to_string).collect::<Vec<_>>(),
        "block_ns": options.block(1).as_nanos() as u64,
    });
    let mut session = begin(options, host, settings, &study.keys())?;
    study.measure(&mut session, &scratch)?;
    let curves = study.curves(&session);
    conclude(options, session, &curves, options.node.element.bytes())
}

fn begin(options: &AllReduce, host: Host, settings: serde_json::Value, keys: &[String]) -> Result<Session> {
    let mut session = Session::begin(DESCRIPTION, &options.study, host, settings)?;
    say!("{}\n", session.host().line())?;
    session.expect(keys);
    Ok(session)
}

/// Prints and records what was measured.
fn conclude(options: &AllReduce, session: Session, curves: &[Curve], element: u64) -> Result<()> {
    let of = |place: &String| report::of_place(curves, place, element, options.margin / 100.0);
    let text: String = report::places(curves).iter().map(of).collect();
    let shown = session.progress().aside(|| show(&text));
    session.finish(|keeper, host| {
        keeper.write("results.csv", &report::csv(curves));
        keeper.write_json("results.json", &Results { study: DESCRIPTION.name, host, curves });
        keeper.write("tables.txt", &text);
        let title = "allreduce: median of the slowest rank's time, and n/t, by message bytes";
        keeper.write_plot("allreduce.svg", &picture::render(curves, title));
    })?;
    shown
}
