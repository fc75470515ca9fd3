//! From finished measurements to figures: medians, fits, discrepancies.

use serde::Serialize;

use super::measure::Times;
use super::plan::{key, prefix};
use super::protocol::{Program, Protocol};
use crate::statistics::Summary;
use crate::study::{Fit, Sample, Store, fit};

/// The elapsed time is noted where it is more than this part longer than that of the slowest rank.
pub const DISCREPANCY: f64 = 0.2;

/// One protocol and program at one packetisation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point {
    /// Packets.
    pub packets: usize,
    /// Bytes of a packet.
    pub bytes: f64,
    /// Seconds of the slowest rank.
    pub time: Summary,
    /// Seconds from the first beginning to the last end, where ranks have one clock.
    pub elapsed: Option<Summary>,
    /// Seconds that a packet more takes: the difference to the packetisation before, over the difference of packets.
    pub spot: Option<f64>,
}

impl Point {
    /// By how much the elapsed time is longer, where that is worth a note.
    pub fn discrepancy(&self) -> Option<f64> {
        let elapsed = self.elapsed.filter(|_| self.time.median > 0.0)?;
        let part = elapsed.median / self.time.median - 1.0;
        (part > DISCREPANCY).then_some(part)
    }
}

/// One protocol and program over one carrier.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Curve {
    /// What carried: `openmpi`, `cells`.
    pub over: String,
    /// The carrier in its own words.
    pub carrier: String,
    /// The protocol.
    #[serde(serialize_with = "as_text")]
    pub protocol: Protocol,
    /// The program.
    #[serde(serialize_with = "as_text")]
    pub program: Program,
    /// By packetisation.
    pub points: Vec<Point>,
    /// Latency of a packet and bandwidth each way, fitted.
    pub fit: Option<Fit>,
    /// Bytes a second each way at the least median, and the packets there.
    pub achieved: Option<(f64, usize)>,
}

fn as_text<S: serde::Serializer>(value: &impl std::fmt::Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

impl Curve {
    /// What is finished of a protocol and program; none where nothing is.
    pub fn of(
        store: &Store,
        over: &str,
        turns: usize,
        (protocol, program): (Protocol, Program),
        total: usize,
        packets: &[usize],
    ) -> Option<Curve> {
        let mut points: Vec<Point> = Vec::new();
        let mut carrier = String::new();
        for &packets in packets {
            let found: Vec<Times> = (1..=turns)
                .filter_map(|turn| store.get(&key(&prefix(over, turn), protocol, program, packets)))
                .collect();
            let Some(first) = found.first() else { continue };
            carrier.clone_from(&first.carrier);
            let slowest: Vec<f64> = found.iter().flat_map(|times| times.slowest.iter().copied()).collect();
            let elapsed: Option<Vec<Vec<f64>>> = found.iter().map(|times| times.elapsed.clone()).collect();
            let time = Summary::of(&slowest);
            let spot =
                points.last().map(|before| (time.median - before.time.median) / (packets - before.packets) as f64);
            let bytes = total as f64 / packets as f64;
            let elapsed = elapsed.map(|elapsed| Summary::of(&elapsed.concat()));
            points.push(Point { packets, bytes, time, elapsed, spot });
        }
        if points.is_empty() {
            return None;
        }
        let samples: Vec<Sample> = points
            .iter()
            .map(|point| Sample { messages: point.packets as f64, bytes: total as f64, seconds: point.time.median })
            .collect();
        let least = points.iter().min_by(|a, b| a.time.median.total_cmp(&b.time.median));
        let achieved =
            least.and_then(|point| Some((fit::achieved(total as f64, &[point.time.median])?, point.packets)));
        Some(Curve { over: over.into(), carrier, protocol, program, points, fit: Fit::of(&samples), achieved })
    }

    /// The name in a table: protocol, and `+` for the second program.
    pub fn name(&self) -> String {
        format!("{}{}", self.protocol, if self.program == Program::Reorganised { "+" } else { "" })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Two turns of `1 ms + packets * 10 us` over one carrier, with elapsed times that are a tenth longer, from 8
    /// packets on a half.
    pub fn store() -> Store {
        let mut store = Store::in_memory();
        for turn in 1..=2 {
            for packets in [1, 2, 4, 8, 16] {
                let time = 1e-3 + packets as f64 * 1e-5;
                let more = if packets >= 8 { 1.5 } else { 1.1 };
                let slowest = vec![time, 0.9 * time, 1.1 * time];
                let elapsed = Some(slowest.iter().map(|time| more * time).collect());
                let times = Times { slowest, elapsed, carrier: "An MPI 1.0".into() };
                for name in ["0.3", "1.0"] {
                    let key = key(&prefix("openmpi", turn), name.parse().unwrap(), Program::Basic, packets);
                    store.put(&key, &times).unwrap();
                }
            }
        }
        store
    }

    pub fn curve(name: &str) -> Curve {
        let which = (name.parse().unwrap(), Program::Basic);
        Curve::of(&store(), "openmpi", 2, which, 1 << 20, &[1, 2, 4, 8, 16]).unwrap()
    }

    #[test]
    fn a_line_gives_latency_and_bandwidth_back() {
        let curve = curve("0.3");
        let fit = curve.fit.unwrap();
        assert!((fit.latency / 1e-5 - 1.0).abs() < 1e-6 && (fit.bandwidth().unwrap() / 1048576e3 - 1.0).abs() < 1e-6);
        assert!(fit.residual < 1e-9);
        assert!((curve.points[3].spot.unwrap() / 1e-5 - 1.0).abs() < 1e-6 && curve.points[0].spot.is_none());
        assert_eq!((curve.points[0].time.count, curve.achieved.unwrap().1), (6, 1));
        assert!((curve.achieved.unwrap().0 / (1048576.0 / 1.01e-3) - 1.0).abs() < 1e-6);
    }

    #[test]
    fn clocks_that_disagree_are_noted() {
        let noted: Vec<bool> = curve("0.3").points.iter().map(|point| point.discrepancy().is_some()).collect();
        assert_eq!(noted, [false, false, false, true, true]);
    }

    #[test]
    fn what_is_not_finished_has_no_figure() {
        let of = |name: &str, packets: &[usize]| {
            Curve::of(&store(), "openmpi", 2, (name.parse().unwrap(), Program::Basic), 1 << 20, packets)
        };
        assert_eq!(of("0.1", &[1, 2]), None);
        let part = of("1.0", &[1, 32]).unwrap();
        assert_eq!((part.points.len(), part.fit), (1, None));
    }
}
