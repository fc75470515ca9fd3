//! A chart as SVG within the page: colours come from the page's style, so that it follows light, dark and paper.

use maud::{Markup, html};

use crate::plot::axis::{Axis, Scale, label, size_label};
use crate::reproduce::outcome::Chart;

const WIDTH: f64 = 380.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = 12.0;
const ABOVE: f64 = 10.0;
const BELOW: f64 = 40.0;
/// How many colours the style has; behind them curves are dashed.
const COLOURS: usize = 8;
/// Half the size of a mark.
const MARK: f64 = 3.2;

/// The chart with its title and legend.
pub fn render(chart: &Chart) -> Markup {
    let (left, right, above, below) = (LEFT, WIDTH - RIGHT, ABOVE, HEIGHT - BELOW);
    let points = || chart.curves.iter().flat_map(|curve| &curve.points);
    let scale = if chart.logarithmic { Scale::Logarithmic } else { Scale::Linear };
    let sizes = Axis::over(Scale::Logarithmic, points().map(|point| point.0), left, right);
    let values = Axis::over(scale, points().map(|point| point.1).chain(chart.line_at), below, above);
    html! {
        figure class="chart" {
            figcaption { (chart.title) " " span class="how" { (chart.how.word()) } }
            svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(description(chart)) {
                @for tick in values.ticks() {
                    path class="grid" d=(format!("M{left:.1} {0:.1}H{right:.1}", values.place(tick))) {}
                    text class="tick" x=(format!("{:.1}", left - 5.0)) y=(format!("{:.1}", values.place(tick) + 4.0)) text-anchor="end" { (label(tick)) }
                }
                @for tick in sizes.size_ticks() {
                    path class="grid" d=(format!("M{0:.1} {above:.1}V{below:.1}", sizes.place(tick))) {}
                    text class="tick" x=(format!("{:.1}", sizes.place(tick))) y=(format!("{:.1}", below + 15.0)) text-anchor="middle" { (size_label(tick)) }
                }
                @if let Some(value) = chart.line_at {
                    path class="line" d=(format!("M{left:.1} {0:.1}H{right:.1}", values.place(value))) {}
                }
                path class="axis" d=(format!("M{left:.1} {above:.1}V{below:.1}H{right:.1}")) {}
                text class="tick" x=(format!("{:.1}", (left + right) / 2.0)) y=(format!("{:.1}", below + 32.0)) text-anchor="middle" { "bytes" }
                @for (index, curve) in chart.curves.iter().enumerate() {
                    @let shown = shown(&curve.points, &sizes, &values);
                    path class=(class(index)) d=(through(&shown)) {}
                    @for place in &shown {
                        path class=(mark_class(index)) d=(mark(index, *place)) {}
                    }
                }
            }
            ul class="legend" {
                @for (index, curve) in chart.curves.iter().enumerate() {
                    li {
                        svg class="key" viewBox="0 0 30 10" aria-hidden="true" {
                            path class=(class(index)) d="M0 5H30" {}
                            path class=(mark_class(index)) d=(mark(index, (15.0, 5.0))) {}
                        }
                        (curve.name)
                    }
                }
            }
        }
    }
}

/// What it shows, for those who do not see it.
fn description(chart: &Chart) -> String {
    let names: Vec<&str> = chart.curves.iter().map(|curve| curve.name.as_str()).collect();
    format!("{}, {}: {}", chart.title, chart.how.word(), names.join("; "))
}

/// The points that the axes show, where they are drawn.
fn shown(points: &[(f64, f64)], sizes: &Axis, values: &Axis) -> Vec<(f64, f64)> {
    let seen = points.iter().filter(|(size, value)| sizes.shows(*size) && values.shows(*value));
    seen.map(|(size, value)| (sizes.place(*size), values.place(*value))).collect()
}

fn through(places: &[(f64, f64)]) -> String {
    let step = |(index, (x, y)): (usize, &(f64, f64))| format!("{}{x:.1} {y:.1}", if index == 0 { 'M' } else { 'L' });
    places.iter().enumerate().map(step).collect()
}

fn class(index: usize) -> String {
    format!("curve s{}{}", index % COLOURS, if index < COLOURS { "" } else { " dashed" })
}

fn mark_class(index: usize) -> String {
    format!("mark f{}", index % COLOURS)
}

/// A mark: circle, square, diamond, triangle in turn, so that curves can be told apart without colours.
fn mark(index: usize, (x, y): (f64, f64)) -> String {
    let r = MARK;
    match index % 4 {
        0 => format!("M{:.1} {y:.1}a{r} {r} 0 1 0 {:.1} 0a{r} {r} 0 1 0 {:.1} 0z", x - r, 2.0 * r, -2.0 * r),
        1 => format!("M{:.1} {:.1}h{d:.1}v{d:.1}h-{d:.1}z", x - 0.9 * r, y - 0.9 * r, d = 1.8 * r),
        2 => format!("M{x:.1} {:.1}l{d:.1} {d:.1}l-{d:.1} {d:.1}l-{d:.1} -{d:.1}z", y - 1.2 * r, d = 1.2 * r),
        _ => format!("M{x:.1} {:.1}l{d:.1} {h:.1}h-{w:.1}z", y - 1.1 * r, d = 1.1 * r, h = 2.0 * r, w = 2.2 * r),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::outcome::How;

    #[test]
    fn every_point_has_a_mark_and_every_curve_a_name() {
        let mut chart = Chart::new("time <ms>", How::Simulated);
        chart.curve("a & b", vec![(1024.0, 1.0), (4096.0, 2.0)]);
        chart.curve("c", vec![(1024.0, 3.0)]);
        let text = render(&chart).into_string();
        assert_eq!(text.matches("class=\"mark").count(), 3 + 2);
        assert!(text.contains("a &amp; b") && text.contains("time &lt;ms&gt;") && text.contains("simulated"));
        assert!(!text.contains("NaN") && !text.contains("inf"));
    }

    #[test]
    fn ratios_have_a_line_and_many_curves_are_dashed() {
        let mut chart = Chart::of_ratios("ratio", How::Measured);
        (0..10).for_each(|index| chart.curve(format!("c{index}"), vec![(8.0, f64::from(index))]));
        let text = render(&chart).into_string();
        assert!(text.contains("class=\"line\"") && text.contains("s0 dashed"));
    }
}
