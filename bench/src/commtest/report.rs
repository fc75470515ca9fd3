//! Tables and CSV.

use std::fmt::Write;

use super::figures::{Curve, DISCREPANCY};
use crate::record::csv::quoted;
use crate::sizes::show_size;
use crate::statistics::Summary;
use crate::table::{Table, three_digits};

/// Every protocol and program: fitted latency and bandwidth, and the best that was achieved.
pub fn fits(curves: &[Curve]) -> String {
    let mut table = Table::new(&[
        "over<",
        "protocol<",
        "calls<",
        "program<",
        "us/packet",
        "MB/s",
        "residual",
        "worst",
        "best MB/s",
        "packets",
    ]);
    for curve in curves {
        let fit = curve.fit;
        let number = |value: Option<f64>| value.map_or_else(|| "-".into(), three_digits);
        let percent = |value: Option<f64>| value.map_or_else(|| "-".into(), |value| format!("{:.0}%", 100.0 * value));
        table.row(vec![
            curve.over.clone(),
            format!("{} {}", curve.protocol, curve.protocol.words()),
            calls(curve),
            curve.program.to_string(),
            fit.map_or_else(|| "-".into(), |fit| microseconds(fit.latency)),
            number(fit.and_then(|fit| fit.bandwidth()).map(|bandwidth| bandwidth / 1e6)),
            percent(fit.map(|fit| fit.residual)),
            percent(fit.map(|fit| fit.worst)),
            number(curve.achieved.map(|(bandwidth, _)| bandwidth / 1e6)),
            curve.achieved.map_or_else(|| "-".into(), |(_, packets)| packets.to_string()),
        ]);
    }
    table.render()
        + "  us/packet, MB/s: least squares of relative errors through time = packets * us/packet + bytes / MB/s, for what a\n  \
           packet costs to send and to receive and for the bytes of one way; residual: the root of the mean square, worst: the largest;\n  \
           best: bytes of one way over the least median, and the packets there\n"
}

/// Microseconds of a fitted latency, which may be nothing at all.
pub fn microseconds(seconds: f64) -> String {
    if seconds == 0.0 { "0".into() } else { three_digits(1e6 * seconds) }
}

/// What is called: our channels have calls of their own.
fn calls(curve: &Curve) -> String {
    let ours = ["lines", "cells"].contains(&curve.over.as_str());
    if ours { "broadcast among two".into() } else { curve.protocol.calls() }
}

/// Times of all packetisations, a line a protocol and program, a table for each that carries.
pub fn times(curves: &[Curve], total: usize, packets: &[usize]) -> String {
    let mut text = String::new();
    let mut carriers: Vec<(&str, &str)> =
        curves.iter().map(|curve| (curve.over.as_str(), curve.carrier.as_str())).collect();
    carriers.dedup();
    for (over, words) in carriers {
        let mut heads = vec!["protocol<".to_owned()];
        heads.extend(packets.iter().map(|packets| format!("{packets} x {}", packet_bytes(total, *packets))));
        let mut table = Table::new(&heads);
        for curve in curves.iter().filter(|curve| curve.over == over) {
            let mut cells = vec![curve.name()];
            cells.extend(packets.iter().map(|packets| {
                let point = curve.points.iter().find(|point| point.packets == *packets);
                point.map_or_else(
                    || "-".into(),
                    |point| {
                        three_digits(1e6 * point.time.median) + if point.discrepancy().is_some() { "*" } else { " " }
                    },
                )
            }));
            table.row(cells);
        }
        let _ = write!(text, "{over} ({words}): time by packets x bytes [us]\n\n{}", table.render());
        let _ = writeln!(
            text,
            "  median over repetitions of the slowest rank's time; +: receives posted ahead, sends completed later; *: from the first\n  \
             rank's beginning to the last one's end, by the clock that all ranks read, it takes over {:.0} % longer\n",
            100.0 * DISCREPANCY
        );
    }
    text
}

/// Bytes of a packet; `~` where packets differ by one.
fn packet_bytes(total: usize, packets: usize) -> String {
    let bytes = show_size((total / packets) as u64);
    if total.is_multiple_of(packets) { bytes } else { format!("~{bytes}") }
}

/// The head of the CSV: times in microseconds, bandwidths in bytes a microsecond (MB/s).
pub const HEAD: &str = "over,protocol,calls,program,packets,packet_bytes,repetitions,median_us,min_us,p25_us,p75_us,max_us,\
elapsed_median_us,elapsed_max_us,discrepancy,spot_us_per_packet,MB_per_s,fit_us_per_packet,fit_MB_per_s,fit_residual,fit_worst,carrier";

/// All points of all curves, with the head above them.
pub fn csv(curves: &[Curve]) -> String {
    let mut text = format!("{HEAD}\n");
    for curve in curves {
        for point in &curve.points {
            let total = point.bytes * point.packets as f64;
            let us = |seconds: f64| format!("{:.3}", 1e6 * seconds);
            let optional = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.4}"));
            let Summary { median, min, p25, p75, max, count } = point.time;
            let fit = curve.fit;
            let cells = [
                curve.over.clone(),
                curve.protocol.to_string(),
                quoted(&calls(curve)),
                curve.program.to_string(),
                point.packets.to_string(),
                format!("{:.1}", point.bytes),
                count.to_string(),
                us(median),
                us(min),
                us(p25),
                us(p75),
                us(max),
                point.elapsed.map_or_else(String::new, |elapsed| us(elapsed.median)),
                point.elapsed.map_or_else(String::new, |elapsed| us(elapsed.max)),
                optional(point.discrepancy()),
                optional(point.spot.map(|spot| 1e6 * spot)),
                optional(Some(total / median / 1e6)),
                optional(fit.map(|fit| 1e6 * fit.latency)),
                optional(fit.and_then(|fit| fit.bandwidth()).map(|bandwidth| bandwidth / 1e6)),
                optional(fit.map(|fit| fit.residual)),
                optional(fit.map(|fit| fit.worst)),
                quoted(&curve.carrier),
            ];
            let _ = writeln!(text, "{}", cells.join(","));
        }
    }
    text
}

/// The quickest protocols at the smallest and at the largest packets, a line for each that carries.
pub fn best(curves: &[Curve]) -> String {
    let mut text = String::new();
    let mut carriers: Vec<&str> = curves.iter().map(|curve| curve.over.as_str()).collect();
    carriers.dedup();
    for over in carriers {
        let of = || curves.iter().filter(|curve| curve.over == over);
        for (what, packets) in [
            ("one packet", of().flat_map(|curve| &curve.points).map(|point| point.packets).min()),
            ("the most packets", of().flat_map(|curve| &curve.points).map(|point| point.packets).max()),
        ] {
            let times = of().filter_map(|curve| {
                let point = curve.points.iter().find(|point| Some(point.packets) == packets)?;
                Some((curve.name(), point.time.median))
            });
            if let Some((name, time)) = times.min_by(|a, b| a.1.total_cmp(&b.1)) {
                let _ = writeln!(text, "  {over}, {what}: {name} is quickest, {} us", three_digits(1e6 * time));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::figures::tests::curve;
    use super::*;

    #[test]
    fn a_fit_stands_beside_its_residual() {
        let text = fits(&[curve("0.3")]);
        let line = text.lines().nth(1).unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(
            words.join(" "),
            "openmpi 0.3 nonblocking send and receive IRECV ISEND basic 10.0 1049 0% 0% 1038 1"
        );
    }

    #[test]
    fn discrepancies_are_marked() {
        let text = times(&[curve("0.3"), curve("1.0")], 1 << 20, &[1, 2, 4, 8, 16]);
        assert!(text.contains("1 x 1M") && text.contains("16 x 64K") && text.contains("(An MPI 1.0)"), "{text}");
        let line = text.lines().find(|line| line.trim_start().starts_with("0.3")).unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words, ["0.3", "1010", "1020", "1040", "1080*", "1160*"]);
        assert_eq!(text.matches("protocol").count(), 1);
    }

    #[test]
    fn every_line_of_the_csv_has_every_column() {
        let text = csv(&[curve("0.3"), curve("1.0")]);
        let columns: Vec<usize> = text.lines().map(|line| line.split(',').count()).collect();
        assert_eq!(columns, [22; 11]);
        assert!(text.contains("openmpi,1.0,SEND RECV,basic,8,131072.0,6,1080.000"), "{text}");
    }

    #[test]
    fn the_quickest_is_named() {
        let mut slow = curve("0.3");
        slow.points.iter_mut().for_each(|point| point.time = point.time.scaled(3.0));
        let text = best(&[slow, curve("1.0")]);
        assert_eq!(text.lines().count(), 2);
        assert!(text.lines().all(|line| line.contains("1.0 is quickest")), "{text}");
    }

    #[test]
    fn packets_that_differ_by_a_byte_are_marked() {
        assert_eq!((packet_bytes(1000, 8), packet_bytes(1001, 8)), ("125".into(), "~125".into()));
    }
}
