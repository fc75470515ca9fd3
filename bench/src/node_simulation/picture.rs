//! Plots of what was simulated.

use crate::plot::axis::Scale;
use crate::plot::svg::{Curve, Figure, Panel, Style};

/// Colours of the curves, in their order.
const COLOURS: [&str; 9] =
    ["#1f5fa8", "#d9722b", "#4c9a5b", "#8e4fa8", "#7a6a52", "#c23b4a", "#2f9c95", "#b59a1b", "#5b6770"];

/// A curve of a panel.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The title of its panel; panels of one row share what stands before the colon.
    pub panel: String,
    /// Its name in the legend.
    pub name: String,
    /// (bytes, value), ascending.
    pub points: Vec<(f64, f64)>,
    /// Whether the panel shows ratios, with a line at 1.
    pub ratio: bool,
}

/// The figure of some series: a panel for each title, two in a row.
pub fn render(title: &str, series: &[Series]) -> String {
    let mut legend: Vec<(String, Style)> = Vec::new();
    for one in series {
        if !legend.iter().any(|(name, _)| *name == one.name) {
            let dashes = if legend.len() < COLOURS.len() { "" } else { "7 3" };
            legend.push((one.name.clone(), Style { colour: COLOURS[legend.len() % COLOURS.len()], dashes }));
        }
    }
    let mut panels: Vec<Panel> = Vec::new();
    for one in series {
        let style = legend.iter().find(|(name, _)| *name == one.name).map(|(_, style)| *style);
        let Some(style) = style else { continue };
        let curve = Curve { points: one.points.clone(), style };
        match panels.iter_mut().find(|panel| panel.title == one.panel) {
            Some(panel) => panel.curves.push(curve),
            None => panels.push(Panel {
                title: one.panel.clone(),
                scale: if one.ratio { Scale::Linear } else { Scale::Logarithmic },
                line_at: one.ratio.then_some(1.0),
                curves: vec![curve],
            }),
        }
    }
    let panels = panels.chunks(2).map(<[Panel]>::to_vec).collect();
    Figure { title: title.to_owned(), legend, panels }.render()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panel_for_each_title_and_a_curve_for_each_series() {
        let one = |panel: &str, name: &str| Series {
            panel: panel.into(),
            name: name.into(),
            points: vec![(8.0, 1.0), (64.0, 2.0)],
            ratio: false,
        };
        let text = render("SIMULATION", &[one("a", "x"), one("a", "y"), one("b", "x")]);
        assert!(text.contains("SIMULATION"));
        assert_eq!(text.matches(&format!("fill=\"none\" stroke=\"{}\"", COLOURS[0])).count(), 2 + 1);
        assert_eq!(text.matches(&format!("fill=\"none\" stroke=\"{}\"", COLOURS[1])).count(), 1 + 1);
        assert!(!text.contains("NaN"));
    }
}
