//! The empty call: how much of a call that is timed alone is the clock's.
//!
//! A call that is timed alone has about one reading of the clock inside its time, and so has every peer's. No figure is
//! corrected by it. But of a call that takes little more than the clock does the ratio of two times says little: both
//! consist of the clock for a good part. So a run that times calls alone also times a call that does nothing
//! ([`Operation::Empty`]), in the same loop behind the same gate, for each series by itself. Beside the ratio of the
//! times stands, for short calls, that of what is left of both: each less the empty call of its own series.

use crate::plan::{BufferMode, Case, Operation};
use crate::rows::{Ratio, Row};
use crate::runs::ours;
use crate::statistics::Summary;
use crate::table::{microseconds, ranks};

/// Calls of ours below so many microseconds are compared without the empty call, too.
const SHORT: f64 = 1.0;

/// The case that times the empty call beside `cases`, where one of them is timed alone and nobody asked for it already.
pub fn beside(cases: &[Case]) -> Option<Case> {
    let asked = cases.iter().any(|case| case.operation == Operation::Empty);
    let alone = cases.iter().find(|case| case.timing.is_alone())?;
    (!asked).then_some(Case { operation: Operation::Empty, buffers: BufferMode::Warm, bytes: 0, ..*alone })
}

/// What the empty call of this row's series took, where one was timed.
fn of<'a>(row: &Row, rows: &'a [Row]) -> Option<&'a Summary> {
    let same =
        |other: &&Row| (other.operation, other.ranks, &other.series) == (Operation::Empty, row.ranks, &row.series);
    rows.iter().find(same).map(|row| &row.time)
}

/// The time of `theirs` over that of `ours`, by `ratio`, where each is less the empty call of its series: of short
/// calls that were timed alone.
pub fn net(ours: &Row, theirs: &Row, rows: &[Row], ratio: impl Fn(&Row, &Row) -> Option<Ratio>) -> Option<Ratio> {
    if !ours.timing.is_alone() || ours.time.median >= SHORT {
        return None;
    }
    let less = |row: &Row| Some(row.less(of(row, rows)?.median));
    let net = ratio(&less(ours)?, &less(theirs)?)?;
    // An empty call that took longer than one that does something says nothing.
    (net.low > 0.0 && net.high.is_finite()).then_some(net)
}

/// A line on what the empty calls with so many ranks took; empty where none was timed.
pub fn line(count: usize, rows: &[Row]) -> String {
    let empty: Vec<&Row> = rows.iter().filter(|row| row.ranks == count && row.operation == Operation::Empty).collect();
    let Some(mine) = empty.iter().find(|row| row.series == ours::NAME) else { return String::new() };
    let spread = 100.0 * mine.time.spread();
    let mut text = format!(
        "a call that does nothing, {}, timed alone as the calls below are: {} us (spread {spread:.0}%)",
        ranks(count),
        microseconds(mine.time.median),
    );
    let theirs: Vec<f64> = empty.iter().filter(|row| row.series != ours::NAME).map(|row| row.time.median).collect();
    if !theirs.is_empty() {
        let Summary { min, max, .. } = Summary::of(&theirs);
        text += &format!("; beside it {} to {} us", microseconds(min), microseconds(max));
    }
    text + "\n  No time is less by it; net is best/ours with each less the empty call of its series, where ours is below 1 us.\n\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Timing;
    use crate::rows::tests::{case, samples};

    fn row(series: &str, operation: Operation, ns: f64) -> Row {
        let case = Case { timing: Timing::Each, ..case(operation, 8) };
        Row::of(series, 2, &case, &[samples(ns), samples(ns)])
    }

    #[test]
    fn the_empty_call_of_each_series_is_left_out_of_its_times() {
        let rows = [
            row("phalanx", Operation::Allreduce, 100.0),
            row("impi", Operation::Allreduce, 300.0),
            row("phalanx", Operation::Empty, 20.0),
            row("impi", Operation::Empty, 60.0),
        ];
        let by = |row: &Row, other: &Row| row.ratio_to(other);
        assert_eq!(net(&rows[0], &rows[1], &rows, by).map(|net| (net.value * 1e6).round()), Some(3e6));
        assert_eq!(net(&rows[0], &rows[1], &rows[..2], by), None, "no empty call was timed");
        assert_eq!(net(&rows[2], &rows[3], &rows, by), None, "nothing is left");
        let text = line(2, &rows);
        assert!(text.contains("0.030 us (spread 0%); beside it 0.090 to 0.090 us"), "{text}");
        assert_eq!(line(3, &rows), "");
    }

    #[test]
    fn long_calls_and_calls_back_to_back_have_no_net_ratio() {
        let stream = |series| Row::of(series, 2, &case(Operation::Allreduce, 8), &[samples(100.0)]);
        let empty = [row("phalanx", Operation::Empty, 20.0), row("impi", Operation::Empty, 20.0)];
        let by = |row: &Row, other: &Row| row.ratio_to(other);
        let long = row("phalanx", Operation::Allreduce, 1000.0);
        assert_eq!(net(&long, &row("impi", Operation::Allreduce, 3000.0), &empty, by), None);
        assert_eq!(net(&stream("phalanx"), &stream("impi"), &empty, by), None);
    }

    #[test]
    fn it_is_timed_once_where_a_call_is_timed_alone() {
        let stream = case(Operation::Allreduce, 8);
        let alone = Case { timing: Timing::Each, buffers: BufferMode::Rewritten, ..stream };
        assert_eq!(beside(&[stream]), None);
        let empty = beside(&[stream, alone]).unwrap();
        assert_eq!(
            (empty.operation, empty.timing, empty.buffers, empty.bytes),
            (Operation::Empty, Timing::Each, BufferMode::Warm, 0)
        );
        assert_eq!(beside(&[alone, empty]), None);
    }
}
