//! The plot: time and bandwidth of the sum against the length, a row of panels for each place.

use super::curves::Curve;
use super::report::{places, sums};
use crate::plot::axis::Scale;
use crate::plot::svg::{self, Figure, Panel, Style};

/// Colours of the series, in their order.
const COLOURS: [&str; 12] = [
    "#1f5fa8", "#d9722b", "#4c9a5b", "#8e4fa8", "#7a6a52", "#c23b4a", "#2f9c95", "#b59a1b", "#5b6770", "#d46fb0",
    "#333333", "#88a8d8",
];

/// The figure of all sums.
pub fn render(curves: &[Curve], title: &str) -> String {
    let mut legend: Vec<(String, Style)> = Vec::new();
    let places = places(curves);
    for curve in places.iter().flat_map(|place| sums(curves, place)) {
        if !legend.iter().any(|(name, _)| *name == curve.series) {
            let colour = COLOURS[legend.len() % COLOURS.len()];
            let dashes = if legend.len() < COLOURS.len() { "" } else { "7 3" };
            legend.push((curve.series.clone(), Style { colour, dashes }));
        }
    }
    let style = |series: &str| {
        let known = legend.iter().find(|(name, _)| name == series);
        known.map_or(Style { colour: "#111111", dashes: "" }, |(_, style)| *style)
    };
    let panel = |place: &str, what: &str, scale: Scale, value: &dyn Fn(f64, f64) -> f64| Panel {
        title: format!("{place}: {what}"),
        scale,
        line_at: None,
        curves: sums(curves, place)
            .into_iter()
            .map(|curve| svg::Curve {
                points: curve.times().into_iter().map(|(bytes, time)| (bytes, value(bytes, time))).collect(),
                style: style(&curve.series),
            })
            .collect(),
    };
    let panels = places
        .iter()
        .map(|place| {
            vec![
                panel(place, "time [us]", Scale::Logarithmic, &|_, time| 1e6 * time),
                panel(place, "n/t [MB/s]", Scale::Logarithmic, &|bytes, time| 1e-6 * bytes / time),
            ]
        })
        .collect();
    Figure { title: title.into(), legend, panels }.render()
}

#[cfg(test)]
mod tests {
    use super::super::curves::tests::line;
    use super::*;

    #[test]
    fn sums_are_drawn_and_other_operators_are_not() {
        let curves = [line("auto", "sum", 1e-6, 1e9), line("a<b", "sum", 1e-5, 1e9), line("late", "user", 1e-5, 1e9)];
        let text = render(&curves, "t");
        crate::plot::tests::assert_well_formed(&text);
        assert!(text.contains("2 ranks: time [us]") && text.contains("a&lt;b") && !text.contains("late"));
    }
}
