//! Tables: times beside the bound and beside the library, bytes beside what the schedule sends.

use serde::Serialize;

use super::bound::{Links, multiple};
use super::counters::busiest;
use super::measured::Measured;
use super::mode::Mode;
use super::series::{FORCED, HAN, NATIVE, OURS};
use crate::plan::Operation;
use crate::sizes::show_size;
use crate::statistics::Summary;
use crate::table::{Table, ranks, three_digits};

/// One run of ranks, and what it ran on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Run {
    /// The library's name.
    pub mpi: String,
    /// How it sent.
    pub mode: Mode,
    /// The cluster, in words.
    pub cluster: String,
    /// Its switches, as topo reads them: `flat:8`, `4+4`.
    pub shape: String,
    /// Bytes a second of a trunk, each way, less headers.
    pub trunk: Option<f64>,
    /// The links, as the bound sees them.
    #[serde(skip)]
    pub links: Option<Links>,
    /// What was measured.
    pub measured: Measured,
}

/// The least milliseconds of a case, where links are known.
pub fn bound(links: Option<&Links>, operation: &str, bytes: u64) -> Option<f64> {
    let links = links.filter(|links| links.hosts > 1)?;
    let broadcast = operation == Operation::Broadcast.name();
    Some(1e3 * if broadcast { links.broadcast(bytes) } else { links.allreduce(bytes) })
}

/// The series that others are compared with: the library's own, or else ours.
pub fn reference(measured: &Measured) -> Option<&'static str> {
    let names = measured.series();
    [NATIVE, HAN, FORCED, OURS].into_iter().find(|name| names.contains(name))
}

/// Times of all series and sizes, one row a size.
pub fn times(measured: &Measured, links: Option<&Links>) -> String {
    let series = measured.series();
    let mut heads = vec!["bytes", "bound"];
    heads.extend(&series);
    let mut table = Table::new(&heads);
    for bytes in measured.sizes() {
        let mut cells = vec![show_size(bytes), milliseconds(bound(links, &measured.operation, bytes))];
        cells.extend(
            series.iter().map(|name| milliseconds(measured.case(name, bytes).map(|case| case.milliseconds().median))),
        );
        table.row(cells);
    }
    table.render()
}

/// Every case with its spread, its ratios and its bytes.
pub fn details(measured: &Measured, links: Option<&Links>) -> String {
    let counted = measured.cases.iter().any(|case| !case.carried.is_empty());
    let trunks = measured.cases.iter().any(|case| busiest(&case.carried).1.is_some());
    let reference = reference(measured);
    let beside = reference.map(|name| format!("x {name}"));
    let mut heads = vec!["bytes", "series<", "ms", "spread", "x bound"];
    heads.extend(beside.as_deref());
    heads.push("range");
    if counted {
        heads.extend(["host/n", "schedule"]);
    }
    if trunks {
        heads.extend(["trunk/n", "schedule"]);
    }
    heads.extend(["before", "how<"]);
    let mut table = Table::new(&heads);
    for case in &measured.cases {
        let time = case.milliseconds();
        let least = bound(links, &measured.operation, case.bytes);
        let mut cells = vec![show_size(case.bytes), case.series.clone(), milliseconds(Some(time.median))];
        cells.push(format!("{:.0}%", 100.0 * time.spread()));
        cells.push(number(least.map(|least| time.median / least)));
        let ratio = reference.and_then(|name| Some(case.over(measured.case(name, case.bytes)?)));
        if reference.is_some() {
            cells.push(number(ratio.map(|ratio| ratio.median)));
        }
        cells.push(ratio.map_or_else(|| "-".into(), |ratio: Summary| format!("{:.2}-{:.2}", ratio.min, ratio.max)));
        let (host, trunk) = busiest(&case.carried);
        let parts = |bytes: Option<f64>| number(bytes.map(|bytes| bytes / case.bytes as f64));
        if counted {
            cells.extend([parts(host), parts(case.expected.map(|e| e.host as f64))]);
        }
        if trunks {
            cells.extend([parts(trunk), parts(case.expected.and_then(|e| e.trunk).map(|bytes| bytes as f64))]);
        }
        cells.extend([case.before.to_string(), case.how.clone()]);
        table.row(cells);
    }
    table.render()
}

/// All tables of a run, under a title.
pub fn run(run: &Run) -> String {
    titled(&format!("{}, {}", run.mpi, run.mode.name()), run)
}

fn titled(sent: &str, run: &Run) -> String {
    let Run { cluster, links, measured, .. } = run;
    let Measured { operation, nodes, .. } = measured;
    let links_words = links.map_or_else(|| "no bound: the rate of links is not known".into(), |links| links.words());
    let mut text = format!(
        "{operation} of {} on {nodes} node{} ({cluster}), {sent}: {} [ms]\n",
        ranks(measured.ranks),
        if *nodes == 1 { "" } else { "s" },
        measured.library
    );
    if operation == Operation::Allreduce.name() {
        text += &format!("bound 2(N-1)/N n/B with 2(N-1)/N = {:.3}, {links_words}\n\n", multiple(*nodes));
    } else {
        text += &format!("bound n/B, {links_words}\n\n");
    }
    text + &times(measured, links.as_ref()) + "\n" + &details(measured, links.as_ref()) + start(measured) + LEGEND
}

/// From when on a call is timed.
fn start(measured: &Measured) -> &'static str {
    if measured.common_start {
        "  all ranks begin at one time of one clock;\n"
    } else {
        "  each rank's time begins where it leaves a barrier;\n"
    }
}

const LEGEND: &str = "  median over calls in turns of the time until the last rank has ended; x NAME: own time over that of NAME, turn by turn, and its range;
  host/n and trunk/n: the most bytes over such a link in one direction for each byte of the message, headers and barriers in it,
  and what the schedule sends; before: untimed calls\n\n";

/// The tables of a job that was started by hand: nothing is known of its links but what was measured.
pub fn plain(measured: &Measured) -> String {
    let source = super::bound::Source::Measured;
    let links = measured.goodput.map(|host| Links { hosts: measured.nodes, host, trunk: None, source });
    let run = Run {
        mpi: String::new(),
        mode: Mode::usual(false),
        cluster: format!("{} to {} ranks each", measured.per_node.0, measured.per_node.1),
        shape: format!("flat:{}", measured.nodes),
        trunk: None,
        links,
        measured: measured.clone(),
    };
    titled("started by hand", &run)
}

fn milliseconds(value: Option<f64>) -> String {
    value.map_or_else(|| "-".into(), three_digits)
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(|| "-".into(), |value| format!("{value:.2}"))
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::bound::Source;
    use super::super::measured::tests::sample;
    use super::*;

    /// A run whose bound is 1.5 n / 12 MB/s.
    pub fn of_sample() -> Run {
        Run {
            mpi: "openmpi".into(),
            mode: Mode::usual(true),
            cluster: "4 hosts x 2".into(),
            shape: "flat:4".into(),
            trunk: None,
            links: Some(Links { hosts: 4, host: 12e6, trunk: None, source: Source::Measured }),
            measured: sample(),
        }
    }

    fn words(text: &str, line: usize) -> Vec<String> {
        text.lines().nth(line).unwrap_or_default().split_whitespace().map(String::from).collect()
    }

    #[test]
    fn times_stand_beside_the_bound() {
        let text = times(&sample(), of_sample().links.as_ref());
        assert_eq!(words(&text, 0), ["bytes", "bound", "ours", "native"]);
        assert_eq!(words(&text, 1), ["1K", "0.13", "2.00", "2.00"]);
        assert_eq!(words(&text, 2), ["1M", "131", "150", "280"]);
    }

    #[test]
    fn details_have_ratios_and_bytes() {
        let text = details(&sample(), of_sample().links.as_ref());
        let heads = "bytes series ms spread x bound x native range host/n schedule trunk/n schedule before how";
        assert_eq!(words(&text, 0).join(" "), heads);
        let ours = "1M ours 150 7% 1.14 0.50 0.33-1.00 1.50 1.50 1.50 1.50 2 ring among 4 nodes";
        assert_eq!(words(&text, 3).join(" "), ours);
        assert_eq!(words(&text, 4)[5..11].join(" "), "1.00 1.00-1.00 1.50 - 1.50 -");
    }

    #[test]
    fn without_links_there_is_no_bound() {
        let text = times(&sample(), None);
        assert_eq!(words(&text, 1)[1], "-");
        assert!(plain(&Measured { goodput: None, ..sample() }).contains("no bound"));
        assert!(plain(&sample()).contains("B = 12.00 MB/s, measured"));
    }

    #[test]
    fn the_title_says_what_ran() {
        let text = run(&of_sample());
        for word in ["allreduce of 8 ranks on 4 nodes", "openmpi, eager", "An MPI 1.0", "2(N-1)/N = 1.500"] {
            assert!(text.contains(word), "{word} in\n{text}");
        }
    }
}
