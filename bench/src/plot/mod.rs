//! Plots of the results: latency and bandwidth against size, and the ratio to a baseline.

pub mod axis;
pub mod svg;

use crate::plan::{BufferMode, Operation};
use crate::rows::Row;
use crate::runs::ours;
use axis::Scale;
use svg::{Curve, Figure, Panel, Style};

/// Colours of the series: ours first. They differ in brightness too, for those who see no hue.
pub(crate) const COLOURS: [&str; 7] = ["#1f5fa8", "#d9722b", "#4c9a5b", "#8e4fa8", "#7a6a52", "#c2455d", "#3aa6b0"];

/// The figure of all results with `ranks` ranks, as SVG. `binding` is for the title.
pub fn results(rows: &[Row], ranks: usize, binding: &str, baselines: &[String]) -> String {
    let rows: Vec<&Row> = rows.iter().filter(|row| row.ranks == ranks && row.operation.has_bytes()).collect();
    let operations: Vec<Operation> =
        Operation::ALL.iter().copied().filter(|&op| rows.iter().any(|row| row.operation == op)).collect();
    let modes: Vec<BufferMode> =
        BufferMode::ALL.iter().copied().filter(|&mode| rows.iter().any(|row| row.buffers == mode)).collect();
    let series: Vec<&str> = std::iter::once(ours::NAME).chain(baselines.iter().map(String::as_str)).collect();

    let curves = |operation: Operation, all: &[&str], value: &dyn Fn(&Row) -> Option<f64>| -> Vec<Curve> {
        let mut curves = Vec::new();
        for name in all {
            for mode in &modes {
                let points: Vec<(f64, f64)> = rows
                    .iter()
                    .filter(|row| row.operation == operation && row.series == **name && row.buffers == *mode)
                    .filter(|row| row.bytes > 0)
                    .filter_map(|row| Some((row.bytes as f64, value(row)?)))
                    .collect();
                if !points.is_empty() {
                    curves.push(Curve { points, style: style(&series, name, *mode) });
                }
            }
        }
        curves
    };

    let mut panels: Vec<Vec<Panel>> = Vec::new();
    let row_of =
        |label: &str, scale: Scale, line_at: Option<f64>, all: &[&str], value: &dyn Fn(&Row) -> Option<f64>| {
            operations
                .iter()
                .map(|&operation| Panel {
                    title: format!("{operation}: {label}"),
                    scale,
                    line_at,
                    curves: curves(operation, all, value),
                })
                .collect()
        };
    panels.push(row_of("time [us]", Scale::Logarithmic, None, &series, &|row| Some(row.time.median)));
    panels.push(row_of("bandwidth n/t [GB/s]", Scale::Linear, None, &series, &|row| Some(row.bandwidth)));
    if rows.iter().any(|row| row.ratio.is_some()) {
        let others = &series[1..];
        panels.push(row_of("their time / ours", Scale::Logarithmic, Some(1.0), others, &|row| {
            row.ratio.map(|ratio| ratio.value)
        }));
    }

    let mut legend = Vec::new();
    for name in &series {
        for mode in &modes {
            if rows.iter().any(|row| row.series == *name && row.buffers == *mode) {
                legend.push((format!("{name}, {mode} buffers"), style(&series, name, *mode)));
            }
        }
    }
    let title = format!("{} {binding}: median over blocks of the slowest rank's time", crate::table::ranks(ranks));
    Figure { title, legend, panels }.render()
}

/// Colour by series, stroke by buffers.
fn style(series: &[&str], name: &str, mode: BufferMode) -> Style {
    let place = series.iter().position(|other| *other == name).unwrap_or(0);
    let dashes = match mode {
        BufferMode::Warm => "",
        BufferMode::Rewritten => "7 3",
        BufferMode::Cold => "2 3",
        BufferMode::Shared => "10 3 2 3",
        BufferMode::View => "10 3 2 3 2 3",
    };
    Style { colour: COLOURS[place % COLOURS.len()], dashes }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::rows::Ratio;
    use crate::rows::tests::{case, samples};

    /// Fails unless every tag is closed in turn and every attribute is quoted.
    pub fn assert_well_formed(text: &str) {
        let mut open: Vec<&str> = Vec::new();
        let mut rest = text;
        while let Some(start) = rest.find('<') {
            assert!(!rest[..start].contains('>'), "stray '>' before {}", &rest[start..start + 20]);
            let end = start + rest[start..].find('>').expect("a tag without end");
            let tag = &rest[start + 1..end];
            rest = &rest[end + 1..];
            assert!(tag.matches('"').count().is_multiple_of(2), "unbalanced quotes in <{tag}>");
            if tag.starts_with('?') || tag.ends_with('/') {
                continue;
            }
            match tag.strip_prefix('/') {
                Some(name) => assert_eq!(open.pop(), Some(name)),
                None => open.push(tag.split_whitespace().next().expect("a tag without name")),
            }
        }
        assert!(open.is_empty(), "not closed: {open:?}");
        assert!(!text.replace("&amp;", "").replace("&lt;", "").replace("&gt;", "").contains('&'));
        assert!(!text.contains("NaN") && !text.contains("inf"), "a coordinate that is no number");
    }

    fn rows() -> Vec<Row> {
        let mut rows = Vec::new();
        for operation in [Operation::Barrier, Operation::Broadcast, Operation::Allreduce] {
            for (size, ns) in [(0, 100.0), (8, 120.0), (4096, 900.0), (8 << 20, 3e6)] {
                rows.push(Row::of("phalanx", 2, &case(operation, size), &[samples(ns)]));
                let mut theirs = Row::of("a<b&c", 2, &case(operation, size), &[samples(2.0 * ns)]);
                theirs.ratio = Some(Ratio { value: 2.0, low: 1.5, high: 2.5 });
                rows.push(theirs);
            }
        }
        rows
    }

    #[test]
    fn a_figure_is_well_formed_and_has_every_panel_and_series() {
        let text = results(&rows(), 2, "bound to cores", &["a<b&c".into()]);
        assert_well_formed(&text);
        for word in ["broadcast: time [us]", "allreduce: their time / ours", "phalanx, warm buffers", "a&lt;b&amp;c"] {
            assert!(text.contains(word), "{word}");
        }
        assert!(!text.contains("reduce: time [us]</text><text>barrier"));
    }

    #[test]
    fn a_figure_of_one_point_or_none_is_still_a_figure() {
        let one = vec![Row::of("phalanx", 2, &case(Operation::Reduce, 8), &[samples(5.0)])];
        assert_well_formed(&results(&one, 2, "", &[]));
        assert_well_formed(&results(&[], 2, "", &[]));
    }
}
