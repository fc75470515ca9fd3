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

/// The figure: a row of panels for each that carries, a panel for unordered and ordered protocols of each program.
pub fn render(curves: &[Curve], title: String) -> String {
    let mut carriers: Vec<&str> = curves.iter().map(|curve| curve.over.as_str()).collect();
    carriers.dedup();
    let mut numbers: Vec<u8> = curves.iter().map(|curve| curve.protocol.number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let legend = numbers.iter().map(|&number| (format!("(0,{number}), (1,{number})"), style(number))).collect();
    let panels = carriers.iter().map(|over| panels(over, curves)).collect();
    Figure { title, legend, panels }.render()
}

fn style(number: u8) -> Style {
    Style { colour: COLOURS[usize::from(number) % COLOURS.len()], dashes: "" }
}

fn panels(over: &str, curves: &[Curve]) -> Vec<Panel> {
    let mut panels = Vec::new();
    for program in Program::ALL {
        for ordered in [false, true] {
            let shown = curves
                .iter()
                .filter(|curve| curve.over == over && curve.program == program && curve.protocol.ordered == ordered);
            let drawn: Vec<svg::Curve> = shown
                .map(|curve| {
                    let mut points: Vec<(f64, f64)> =
                        curve.points.iter().map(|point| (point.bytes, 1e3 * point.time.median)).collect();
                    points.reverse();
                    svg::Curve { points, style: style(curve.protocol.number) }
                })
                .collect();
            if !drawn.is_empty() {
                let order = if ordered { "ordered" } else { "unordered" };
                let title = format!("{over}, {order}, {program}: time [ms]");
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
        for word in ["openmpi, unordered, basic", "openmpi, ordered, basic", "(0,3), (1,3)", "a &lt; b"] {
            assert!(text.contains(word), "{word}");
        }
        assert!(!text.contains("reorganised"));
    }
}
