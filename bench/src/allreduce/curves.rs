//! From finished measurements to curves: medians, fits, break-even points.

use serde::{Deserialize, Serialize};

use crate::statistics::{Summary, median};
use crate::study::{BreakEven, Fit};

/// The times of one series at one length in one turn, as they are kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// Message bytes.
    pub bytes: u64,
    /// Seconds of the slowest rank, by repetition.
    pub slowest: Vec<f64>,
    /// What a call does, for people.
    pub how: String,
}

/// One length of a curve.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point {
    /// Message bytes.
    pub bytes: u64,
    /// Seconds of the slowest rank.
    pub time: Summary,
    /// The medians of the turns, in their order.
    pub turns: Vec<f64>,
    /// What a call does, for people.
    pub how: String,
}

/// One series at one place.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Curve {
    /// Where: `2 ranks`, `8 hosts x 1, openmpi`.
    pub place: String,
    /// The series.
    pub series: String,
    /// The operator.
    pub operator: String,
    /// By length, ascending.
    pub points: Vec<Point>,
    /// Latency and bandwidth over all lengths.
    pub fit: Option<Fit>,
}

impl Curve {
    /// The curve of what all turns found, which come one after another. None where that is nothing.
    pub fn of(place: &str, series: &str, operator: &str, times: impl IntoIterator<Item = Times>) -> Option<Curve> {
        let mut all: Vec<(Times, Vec<f64>)> = Vec::new();
        for times in times.into_iter().filter(|times| !times.slowest.is_empty()) {
            let turn = median(&times.slowest);
            match all.iter_mut().find(|(known, _)| known.bytes == times.bytes) {
                Some((known, turns)) => {
                    known.slowest.extend(times.slowest);
                    turns.push(turn);
                }
                None => all.push((times, vec![turn])),
            }
        }
        all.sort_by_key(|(times, _)| times.bytes);
        let point = |(times, turns): (Times, Vec<f64>)| Point {
            bytes: times.bytes,
            time: Summary::of(&times.slowest),
            turns,
            how: times.how,
        };
        let points: Vec<Point> = all.into_iter().map(point).collect();
        if points.is_empty() {
            return None;
        }
        let mut curve =
            Curve { place: place.into(), series: series.into(), operator: operator.into(), points, fit: None };
        curve.fit = Fit::of_messages(&curve.times());
        Some(curve)
    }

    /// (bytes, seconds), medians.
    pub fn times(&self) -> Vec<(f64, f64)> {
        self.points.iter().map(|point| (point.bytes as f64, point.time.median)).collect()
    }

    /// This curve's time over another's at a length, turn by turn: the median. Turns lie close to each other, and a
    /// machine that changes from turn to turn changes both.
    pub fn over(&self, other: &Curve, bytes: u64) -> Option<f64> {
        let point = |curve: &Curve| curve.points.iter().find(|point| point.bytes == bytes).cloned();
        let (own, other) = (point(self)?, point(other)?);
        let ratios: Vec<f64> = own.turns.iter().zip(&other.turns).map(|(own, other)| own / other).collect();
        (!ratios.is_empty()).then(|| median(&ratios))
    }

    /// Seconds at a length.
    pub fn at(&self, bytes: u64) -> Option<f64> {
        self.points.iter().find(|point| point.bytes == bytes).map(|point| point.time.median)
    }
}

/// Two series, and where one becomes quicker than the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair<'a> {
    /// The first.
    pub first: &'a Curve,
    /// The second.
    pub second: &'a Curve,
    /// From the first one's side.
    pub found: BreakEven,
}

/// All pairs of `curves`, in their order.
pub fn pairs<'a>(curves: &[&'a Curve], margin: f64) -> Vec<Pair<'a>> {
    let mut pairs = Vec::new();
    for (place, first) in curves.iter().enumerate() {
        for second in &curves[place + 1..] {
            pairs.push(Pair { first, second, found: BreakEven::of(&first.times(), &second.times(), margin) });
        }
    }
    pairs
}

/// The quickest of `curves` at each length: bytes, its place in `curves`, and the time of the next one over its own.
pub fn quickest(curves: &[&Curve]) -> Vec<(u64, usize, Option<f64>)> {
    let mut sizes: Vec<u64> = curves.iter().flat_map(|curve| curve.points.iter().map(|point| point.bytes)).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let at = |bytes: u64| {
        let mut times: Vec<(f64, usize)> =
            curves.iter().enumerate().filter_map(|(place, curve)| Some((curve.at(bytes)?, place))).collect();
        times.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (time, place) = *times.first()?;
        Some((bytes, place, times.get(1).map(|next| next.0 / time)))
    };
    sizes.into_iter().filter_map(at).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// `latency + n / bandwidth` from 8 bytes on, in two turns, the second of which is a tenth slower.
    pub fn line(series: &str, operator: &str, latency: f64, bandwidth: f64) -> Curve {
        let turn = |slower: f64| {
            (0..8).map(move |power| {
                let bytes = 8_u64 << (2 * power);
                let time = slower * (latency + bytes as f64 / bandwidth);
                Times { bytes, slowest: vec![time; 3], how: "as it likes".into() }
            })
        };
        Curve::of("2 ranks", series, operator, turn(1.0).chain(turn(1.1))).unwrap()
    }

    #[test]
    fn turns_are_one_curve_with_its_line() {
        let curve = line("line", "sum", 1e-6, 1e9);
        assert_eq!((curve.points.len(), curve.points[0].time.count), (8, 6));
        let fit = curve.fit.unwrap();
        assert!(
            (fit.latency / 1.05e-6 - 1.0).abs() < 1e-6 && (fit.bandwidth().unwrap() / (1e9 / 1.05) - 1.0).abs() < 1e-6
        );
        assert_eq!(Curve::of("p", "s", "sum", [Times { bytes: 8, slowest: vec![], how: String::new() }]), None);
    }

    #[test]
    fn ratios_are_taken_turn_by_turn() {
        let of = |series: &str, turns: [f64; 3]| {
            let times = turns.map(|time| Times { bytes: 8, slowest: vec![time, time, 2.0 * time], how: String::new() });
            Curve::of("p", series, "sum", times).unwrap()
        };
        // The machine is ten times slower in the last turn; the ratio of medians would be 10.
        let (one, other) = (of("one", [2.0, 20.0, 20.0]), of("other", [1.0, 1.0, 10.0]));
        assert_eq!((one.over(&other, 8), one.over(&other, 9)), (Some(2.0), None));
    }

    #[test]
    fn every_pair_is_compared_once() {
        let (short, long, slow) =
            (line("short", "sum", 1e-6, 1e8), line("long", "sum", 1e-5, 1e9), line("slow", "sum", 1e-3, 1e7));
        let pairs = pairs(&[&short, &long, &slow], 0.05);
        let words: Vec<String> =
            pairs.iter().map(|pair| format!("{} {}: {}", pair.first.series, pair.second.series, pair.found)).collect();
        // 1 us + n / 100 MB/s and 10 us + n / GB/s meet at n = 1000.
        assert_eq!(words, ["short long: faster, slower from 1000 on", "short slow: faster", "long slow: faster"]);
    }

    #[test]
    fn the_quickest_changes_where_they_break_even() {
        let (short, long) = (line("short", "sum", 1e-6, 1e8), line("long", "sum", 1e-5, 1e9));
        let found = quickest(&[&short, &long]);
        assert_eq!(found.iter().map(|one| one.1).collect::<Vec<_>>(), [0, 0, 0, 0, 1, 1, 1, 1]);
        assert!(found.iter().all(|one| one.2.unwrap() > 1.0));
        assert_eq!(quickest(&[&short])[0].2, None);
    }
}
