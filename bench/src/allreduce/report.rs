//! Tables and CSV.

use std::fmt::Write;

use super::curves::{Curve, pairs, quickest};
use crate::commtest::report::microseconds;
use crate::plan::Combine;
use crate::record::csv::quoted;
use crate::sizes::show_size;
use crate::table::{Table, three_digits};

/// The places of some curves, in their order.
pub fn places(curves: &[Curve]) -> Vec<String> {
    let mut places: Vec<String> = Vec::new();
    for curve in curves {
        if !places.contains(&curve.place) {
            places.push(curve.place.clone());
        }
    }
    places
}

/// The curves of the sum at one place.
pub fn sums<'a>(curves: &'a [Curve], place: &str) -> Vec<&'a Curve> {
    curves.iter().filter(|curve| curve.place == place && curve.operator == Combine::Sum.name()).collect()
}

/// All tables of a place.
pub fn of_place(curves: &[Curve], place: &str, element: u64, margin: f64) -> String {
    let sums = sums(curves, place);
    let mut text = format!("allreduce, {place}: time of the sum [us]\n\n{}", times(&sums, element));
    text += "  median over repetitions of the slowest rank's time\n\n";
    let _ = write!(text, "latency and bandwidth, {place}\n\n{}\n", fits(curves, place));
    let _ = write!(
        text,
        "break-even points, {place}, where times differ by more than {:.0} %\n\n{}\n",
        100.0 * margin,
        break_even(&sums, margin)
    );
    if let Some(operators) = operators(curves, place) {
        let _ = write!(text, "operators, {place}: time over that of the sum, turn by turn\n\n{operators}\n");
    }
    text
}

/// A line a length, a column a series, and the quickest at the end.
fn times(sums: &[&Curve], element: u64) -> String {
    let mut heads = vec!["elements".to_owned(), "bytes".into()];
    heads.extend(sums.iter().map(|curve| curve.series.clone()));
    heads.extend(["quickest<".into(), "next".into()]);
    let mut table = Table::new(&heads);
    for (bytes, first, next) in quickest(sums) {
        let mut cells = vec![(bytes / element).to_string(), show_size(bytes)];
        cells.extend(
            sums.iter().map(|curve| curve.at(bytes).map_or_else(|| "-".into(), |time| three_digits(1e6 * time))),
        );
        cells.push(sums[first].series.clone());
        cells.push(next.map_or_else(|| "-".into(), |next| format!("x {next:.2}")));
        table.row(cells);
    }
    table.render()
}

fn fits(curves: &[Curve], place: &str) -> String {
    let mut table =
        Table::new(&["series<", "operator<", "latency us", "MB/s", "half at", "residual", "worst", "spread"]);
    for curve in curves.iter().filter(|curve| curve.place == place) {
        let mut cells = vec![curve.series.clone(), curve.operator.clone()];
        let spreads: Vec<f64> = curve.points.iter().map(|point| point.time.spread()).collect();
        match curve.fit {
            None => cells.extend(std::iter::repeat_n("-".to_owned(), 5)),
            Some(fit) => {
                cells.push(microseconds(fit.latency));
                cells.push(fit.bandwidth().map_or_else(|| "-".into(), |bandwidth| three_digits(bandwidth / 1e6)));
                cells.push(fit.half_length().map_or_else(|| "-".into(), |bytes| show_size(bytes.round() as u64)));
                cells.extend([fit.residual, fit.worst].map(|part| format!("{:.0}%", 100.0 * part)));
            }
        }
        cells.push(format!("{:.0}%", 100.0 * crate::statistics::median(&spreads)));
        table.row(cells);
    }
    table.render()
        + "  least squares of relative errors through time = latency + bytes / MB/s over all lengths; half at: bytes that take as long as\n  \
           the latency; residual: root of the mean square, worst: the largest; spread: of the quartiles at a length, the median\n"
}

fn break_even(sums: &[&Curve], margin: f64) -> String {
    let mut table = Table::new(&["series<", "beside<", "series is<"]);
    for pair in pairs(sums, margin) {
        table.row(vec![pair.first.series.clone(), pair.second.series.clone(), pair.found.to_string()]);
    }
    table.render()
}

/// A line a length, a column for each series and operator but the sum. None without any.
fn operators(curves: &[Curve], place: &str) -> Option<String> {
    let others: Vec<(&Curve, &Curve)> = curves
        .iter()
        .filter(|curve| curve.place == place && curve.operator != Combine::Sum.name())
        .filter_map(|curve| Some((curve, sums(curves, place).into_iter().find(|sum| sum.series == curve.series)?)))
        .collect();
    let (first, _) = others.first()?;
    let mut heads = vec!["bytes".to_owned()];
    heads.extend(others.iter().map(|(curve, _)| format!("{} {}", curve.series, curve.operator)));
    let mut table = Table::new(&heads);
    for point in &first.points {
        let ratio = |(curve, sum): &(&Curve, &Curve)| curve.over(sum, point.bytes);
        let mut cells = vec![show_size(point.bytes)];
        cells.extend(others.iter().map(|pair| ratio(pair).map_or_else(|| "-".into(), |ratio| format!("{ratio:.2}"))));
        table.row(cells);
    }
    Some(table.render())
}

/// The head of the CSV: times in microseconds.
pub const HEAD: &str = "place,series,operator,bytes,repetitions,median_us,min_us,p25_us,p75_us,max_us,MB_per_s,\
fit_latency_us,fit_MB_per_s,fit_residual,fit_worst,how";

/// All points of all curves, with the head above them.
pub fn csv(curves: &[Curve]) -> String {
    let mut text = format!("{HEAD}\n");
    for curve in curves {
        for point in &curve.points {
            let time = point.time.scaled(1e6);
            let optional = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.4}"));
            let fit = curve.fit;
            let mut cells = vec![quoted(&curve.place), quoted(&curve.series), curve.operator.clone()];
            cells.extend([point.bytes.to_string(), time.count.to_string()]);
            cells.extend([time.median, time.min, time.p25, time.p75, time.max].map(|us| format!("{us:.4}")));
            cells.push(optional(Some(point.bytes as f64 / time.median)));
            cells.push(optional(fit.map(|fit| 1e6 * fit.latency)));
            cells.push(optional(fit.and_then(|fit| fit.bandwidth()).map(|bandwidth| bandwidth / 1e6)));
            cells.extend([optional(fit.map(|fit| fit.residual)), optional(fit.map(|fit| fit.worst))]);
            cells.push(quoted(&point.how));
            let _ = writeln!(text, "{}", cells.join(","));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::curves::tests::line;
    use super::*;

    fn curves() -> Vec<Curve> {
        vec![line("auto", "sum", 1e-6, 1e8), line("openmpi", "sum", 1e-5, 1e9), line("auto", "user", 3e-6, 5e7)]
    }

    #[test]
    fn a_place_has_times_fits_break_even_points_and_operators() {
        let text = of_place(&curves(), "2 ranks", 8, 0.05);
        let line = |start: &str, nth: usize| -> String {
            let mut lines = text.lines().filter(|line| line.trim_start().starts_with(start));
            lines.nth(nth).unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(line("1 ", 0), "1 8 1.13 10.5 auto x 9.27", "{text}");
        assert_eq!(line("auto", 0), "auto sum 1.05 95.2 100 0% 0% 10%");
        assert_eq!(line("auto", 2), "auto openmpi faster, slower from 1000 on");
        assert_eq!(line("bytes", 0), "bytes auto user");
        assert_eq!(line("8 ", 0), "8 2.93");
    }

    #[test]
    fn every_line_of_the_csv_has_every_column() {
        let columns: Vec<usize> = csv(&curves()).lines().map(|line| line.split(',').count()).collect();
        assert_eq!(columns, [16; 25]);
    }

    #[test]
    fn without_other_operators_there_is_no_such_table() {
        assert!(!of_place(&curves()[..2], "2 ranks", 8, 0.05).contains("operators"));
        assert_eq!(places(&curves()), ["2 ranks"]);
    }
}
