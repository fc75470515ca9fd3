//! The plot: time of the volume against the size of a packet, for every protocol.

use super::figures::Curve;
use super::protocol::Program;
use crate::plot::axis::Scale;
use crate::plot::svg::{self, Figure, Panel, Style};

/// Colours by the second number of the protocol.
const COLOURS: [&str; 11] = [
    "#1f5fa8", "#d9722b", "#4c9a5b", "#8e4fa8", "#7a6a52", "#c23b4a", "#2f9c95", "#b59a1b", "#5b6770", "#d46fb0",
    "#333333",
];

/// The looks of our channels, which are drawn into the panels of every MPI.
const CHANNELS: [(&str, Style); 2] =
    [("lines", Style { colour: "#111111", dashes: "2 3" }), ("cells", Style { colour: "#111111", dashes: "7 3" })];

/// The figure: a row of panels for each MPI (for our channels, where there is none), a panel for unordered and ordered
/// protocols of each program.
pub fn render(curves: &[Curve], title: String) -> String {
    let mut rows: Vec<&str> = curves.iter().map(|curve| curve.over.as_str()).collect();
    rows.dedup();
    if rows.iter().any(|over| channel(over).is_none()) {
        rows.retain(|over| channel(over).is_none());
    } else {
        rows.truncate(1);
    }
    let of_mpis = || curves.iter().filter(|curve| channel(&curve.over).is_none());
    let mut numbers: Vec<u8> = of_mpis().map(|curve| curve.protocol.number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let name = |number: u8| {
        let has =
            |ordered: bool| of_mpis().any(|curve| curve.protocol.number == number && curve.protocol.ordered == ordered);
        let names = [has(false).then(|| format!("(0,{number})")), has(true).then(|| format!("(1,{number})"))];
        names.into_iter().flatten().collect::<Vec<_>>().join(", ")
    };
    let mut legend: Vec<(String, Style)> = numbers.iter().map(|&number| (name(number), numbered(number))).collect();
    for (over, style) in CHANNELS {
        if curves.iter().any(|curve| curve.over == over) {
            legend.push((format!("shared memory, {over}"), style));
        }
    }
    let panels = rows.iter().map(|over| panels(over, curves)).collect();
    Figure { title, legend, panels }.render()
}

fn channel(over: &str) -> Option<Style> {
    CHANNELS.iter().find(|(name, _)| *name == over).map(|(_, style)| *style)
}

fn numbered(number: u8) -> Style {
    Style { colour: COLOURS[usize::from(number) % COLOURS.len()], dashes: "" }
}

fn panels(over: &str, curves: &[Curve]) -> Vec<Panel> {
    let who = if channel(over).is_some() { "shared memory" } else { over };
    let mut panels = Vec::new();
    for program in Program::ALL {
        for ordered in [false, true] {
            let shown = curves
                .iter()
                .filter(|curve| curve.over == over || channel(&curve.over).is_some())
                .filter(|curve| curve.program == program && curve.protocol.ordered == ordered);
            let drawn: Vec<svg::Curve> = shown
                .map(|curve| {
                    let mut points: Vec<(f64, f64)> =
                        curve.points.iter().map(|point| (point.bytes, 1e3 * point.time.median)).collect();
                    points.reverse();
                    svg::Curve { points, style: channel(&curve.over).unwrap_or(numbered(curve.protocol.number)) }
                })
                .collect();
            if !drawn.is_empty() {
                let order = if ordered { "ordered" } else { "unordered" };
                let title = format!("{who}, {order}, {program}: time [ms]");
                panels.push(Panel { title, scale: Scale::Logarithmic, line_at: None, curves: drawn });
            }
        }
    }
    panels
}

#[cfg(test)]
mod tests {
    use super::super::figures::tests::curve;
    use super::*;

    #[test]
    fn protocols_of_both_kinds_have_panels() {
        let text = render(&[curve("0.3"), curve("1.0")], "a < b".into());
        crate::plot::tests::assert_well_formed(&text);
        for word in ["openmpi, unordered, basic", "openmpi, ordered, basic", ">(0,3)<", ">(1,0)<", "a &lt; b"] {
            assert!(text.contains(word), "{word}");
        }
        assert!(!text.contains("reorganised"));
    }

    #[test]
    fn channels_are_drawn_beside_an_mpi_or_alone() {
        let cells = Curve { over: "cells".into(), ..curve("1.0") };
        let both = render(&[curve("1.0"), cells.clone()], "t".into());
        assert!(both.contains("shared memory, cells") && both.contains("openmpi, ordered"), "{both}");
        assert!(!both.contains("shared memory, ordered"));
        let alone = render(&[cells], "t".into());
        crate::plot::tests::assert_well_formed(&alone);
        assert!(alone.contains("shared memory, ordered"));
    }
}
