//! A figure of panels under a common legend, written as SVG.

use std::fmt::Write;

use super::axis::{Axis, Scale, label, size_label};

const PANEL_WIDTH: f64 = 360.0;
const PANEL_HEIGHT: f64 = 250.0;
// Space between a panel and its drawing area, on the four sides.
const LEFT: f64 = 58.0;
const RIGHT: f64 = 14.0;
const ABOVE: f64 = 34.0;
const BELOW: f64 = 44.0;
const MARGIN: f64 = 16.0;
const LEGEND_LINE: f64 = 20.0;
const LEGEND_COLUMN: f64 = 230.0;
const FONT: &str = "DejaVu Sans, Helvetica, Arial, sans-serif";

/// How a curve looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Its colour.
    pub colour: &'static str,
    /// Its dashes; empty for a solid line.
    pub dashes: &'static str,
}

/// Points of one series, by message size.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// (bytes, value), ascending.
    pub points: Vec<(f64, f64)>,
    /// How it looks.
    pub style: Style,
}

/// One coordinate system.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// What it shows, with the unit.
    pub title: String,
    /// The vertical scale; message sizes are always logarithmic.
    pub scale: Scale,
    /// A value that is marked by a line across.
    pub line_at: Option<f64>,
    /// What it shows.
    pub curves: Vec<Curve>,
}

/// A whole figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The title above everything.
    pub title: String,
    /// Names and looks of the series.
    pub legend: Vec<(String, Style)>,
    /// Rows of panels.
    pub panels: Vec<Vec<Panel>>,
}

impl Figure {
    /// The figure as SVG.
    pub fn render(&self) -> String {
        let columns = self.panels.iter().map(Vec::len).max().unwrap_or(0).max(2);
        let width = 2.0 * MARGIN + columns as f64 * PANEL_WIDTH;
        let per_line = (((width - 2.0 * MARGIN) / LEGEND_COLUMN) as usize).max(1);
        let legend_lines = self.legend.len().div_ceil(per_line);
        let top = MARGIN + 28.0 + LEGEND_LINE * legend_lines as f64 + 8.0;
        let height = top + self.panels.len() as f64 * PANEL_HEIGHT + MARGIN;
        let mut out = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" \
             height=\"{height}\" viewBox=\"0 0 {width} {height}\" font-family=\"{FONT}\" font-size=\"12\">\n"
        );
        push(&mut out, format_args!("<rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>"));
        text(&mut out, MARGIN + 4.0, MARGIN + 14.0, "start", "font-size=\"15\" font-weight=\"bold\"", &self.title);
        for (index, (name, style)) in self.legend.iter().enumerate() {
            let x = MARGIN + 4.0 + (index % per_line) as f64 * LEGEND_COLUMN;
            let y = MARGIN + 34.0 + (index / per_line) as f64 * LEGEND_LINE;
            stroke(&mut out, &format!("M{x:.1} {y:.1}H{:.1}", x + 34.0), *style);
            dot(&mut out, x + 17.0, y, *style);
            text(&mut out, x + 42.0, y + 4.0, "start", "", name);
        }
        for (row, panels) in self.panels.iter().enumerate() {
            for (column, panel) in panels.iter().enumerate() {
                let (x, y) = (MARGIN + column as f64 * PANEL_WIDTH, top + row as f64 * PANEL_HEIGHT);
                panel.render(&mut out, x, y);
            }
        }
        out.push_str("</svg>\n");
        out
    }
}

impl Panel {
    fn render(&self, out: &mut String, x: f64, y: f64) {
        let (left, right) = (x + LEFT, x + PANEL_WIDTH - RIGHT);
        let (above, below) = (y + ABOVE, y + PANEL_HEIGHT - BELOW);
        let points = || self.curves.iter().flat_map(|curve| &curve.points);
        let sizes = Axis::over(Scale::Logarithmic, points().map(|point| point.0), left, right);
        let values = Axis::over(self.scale, points().map(|point| point.1).chain(self.line_at), below, above);

        text(out, left, y + ABOVE - 10.0, "start", "font-weight=\"bold\"", &self.title);
        for tick in values.ticks() {
            let at = values.place(tick);
            push(
                out,
                format_args!("<path d=\"M{left:.1} {at:.1}H{right:.1}\" stroke=\"#e3e3e3\" stroke-width=\"1\"/>"),
            );
            text(out, left - 6.0, at + 4.0, "end", "fill=\"#444\"", &label(tick));
        }
        for tick in sizes.size_ticks() {
            let at = sizes.place(tick);
            push(
                out,
                format_args!("<path d=\"M{at:.1} {above:.1}V{below:.1}\" stroke=\"#efefef\" stroke-width=\"1\"/>"),
            );
            text(out, at, below + 16.0, "middle", "fill=\"#444\"", &size_label(tick));
        }
        if let Some(value) = self.line_at {
            let at = values.place(value);
            push(out, format_args!("<path d=\"M{left:.1} {at:.1}H{right:.1}\" stroke=\"#666\" stroke-width=\"1.5\"/>"));
        }
        push(
            out,
            format_args!("<path d=\"M{left:.1} {above:.1}V{below:.1}H{right:.1}\" fill=\"none\" stroke=\"#666\"/>"),
        );
        text(out, (left + right) / 2.0, below + 33.0, "middle", "fill=\"#444\"", "message [bytes]");
        for curve in &self.curves {
            let shown: Vec<(f64, f64)> = curve
                .points
                .iter()
                .filter(|(size, value)| sizes.shows(*size) && values.shows(*value))
                .map(|(size, value)| (sizes.place(*size), values.place(*value)))
                .collect();
            let mut path = String::new();
            for (index, (px, py)) in shown.iter().enumerate() {
                let _ = write!(path, "{}{px:.1} {py:.1}", if index == 0 { 'M' } else { 'L' });
            }
            stroke(out, &path, curve.style);
            for (px, py) in shown {
                dot(out, px, py, curve.style);
            }
        }
    }
}

fn push(out: &mut String, element: std::fmt::Arguments<'_>) {
    let _ = writeln!(out, "{element}");
}

fn stroke(out: &mut String, path: &str, style: Style) {
    if path.is_empty() {
        return;
    }
    let Style { colour, dashes } = style;
    let dashes = if dashes.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{dashes}\"") };
    push(out, format_args!("<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.8\"{dashes}/>"));
}

fn dot(out: &mut String, x: f64, y: f64, style: Style) {
    push(out, format_args!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.2\" fill=\"{}\"/>", style.colour));
}

fn text(out: &mut String, x: f64, y: f64, anchor: &str, attributes: &str, content: &str) {
    let content = content.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let space = if attributes.is_empty() { "" } else { " " };
    push(
        out,
        format_args!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\"{space}{attributes}>{content}</text>"),
    );
}
