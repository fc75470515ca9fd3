//! The plot: time against size for each series, with the bound as a line, and times over the bound.

use super::measured::Case;
use super::report::{Run, bound};
use crate::plot::axis::Scale;
use crate::plot::svg::{Curve, Figure, Panel, Style};

/// Colours of the series, in their order.
const COLOURS: [&str; 9] =
    ["#1f5fa8", "#d9722b", "#4c9a5b", "#8e4fa8", "#7a6a52", "#c23b4a", "#2f9c95", "#b59a1b", "#5b6770"];
/// The bound.
const BOUND: Style = Style { colour: "#111111", dashes: "2 3" };

/// The figure of some runs, one row of panels for each.
pub fn render(runs: &[Run]) -> String {
    let mut legend: Vec<(String, Style)> = Vec::new();
    for name in runs.iter().flat_map(|run| run.measured.series()) {
        if !legend.iter().any(|(other, _)| other == name) {
            let colour = COLOURS[legend.len() % COLOURS.len()];
            let dashes = if legend.len() < COLOURS.len() { "" } else { "7 3" };
            legend.push((name.to_owned(), Style { colour, dashes }));
        }
    }
    let panels = runs.iter().map(|run| panels(run, &legend)).collect();
    if runs.iter().any(|run| run.links.is_some()) {
        legend.push(("bound".into(), BOUND));
    }
    let title = runs.first().map_or_else(String::new, |run| {
        let measured = &run.measured;
        format!("{} of {} ranks on {} nodes: {}", measured.operation, measured.ranks, measured.nodes, run.cluster)
    });
    Figure { title, legend, panels }.render()
}

fn panels(run: &Run, legend: &[(String, Style)]) -> Vec<Panel> {
    let measured = &run.measured;
    let least = |bytes: u64| bound(run.links.as_ref(), &measured.operation, bytes);
    let curves = |value: &dyn Fn(&Case) -> Option<f64>| -> Vec<Curve> {
        let curve = |name: &str| {
            let cases = measured.cases.iter().filter(|case| case.series == name);
            let points: Vec<(f64, f64)> = cases.filter_map(|case| Some((case.bytes as f64, value(case)?))).collect();
            let style = legend.iter().find(|(other, _)| other == name).map_or(BOUND, |(_, style)| *style);
            (!points.is_empty()).then_some(Curve { points, style })
        };
        measured.series().into_iter().filter_map(curve).collect()
    };
    let mut times = curves(&|case| Some(case.milliseconds().median));
    let points: Vec<(f64, f64)> =
        measured.sizes().into_iter().filter_map(|bytes| Some((bytes as f64, least(bytes)?))).collect();
    if !points.is_empty() {
        times.push(Curve { points, style: BOUND });
    }
    let name = format!("{}, {}", run.mpi, run.mode.name());
    let scale = Scale::Logarithmic;
    let mut panels = vec![Panel { title: format!("{name}: time [ms]"), scale, line_at: None, curves: times }];
    if run.links.is_some() {
        let curves = curves(&|case| Some(case.milliseconds().median / least(case.bytes)?));
        panels.push(Panel { title: format!("{name}: time / bound"), scale, line_at: Some(1.0), curves });
    }
    panels
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::of_sample;
    use super::*;

    #[test]
    fn a_row_for_each_run_and_a_curve_for_each_series_and_the_bound() {
        let text = render(&[of_sample(), of_sample()]);
        assert_eq!(text.matches("time [ms]").count(), 2);
        assert_eq!(text.matches("time / bound").count(), 2);
        // Three curves and two, in each run, and the legend's three.
        assert_eq!(text.matches("fill=\"none\" stroke=\"#111111\"").count(), 2 + 1);
        assert_eq!(text.matches(&format!("fill=\"none\" stroke=\"{}\"", COLOURS[0])).count(), 4 + 1);
        assert!(!text.contains("NaN") && !text.contains("inf"));
    }

    #[test]
    fn without_a_bound_or_without_runs_it_is_a_figure_still() {
        let run = Run { links: None, ..of_sample() };
        assert!(!render(&[run]).contains("bound"));
        assert!(render(&[]).ends_with("</svg>\n"));
    }
}
