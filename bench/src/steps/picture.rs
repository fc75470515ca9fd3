//! A plot of the ratios of those patterns whose argument is a size.

use super::figures::Row;
use super::patterns::{PATTERNS, Unit};
use crate::plot::axis::Scale;
use crate::plot::svg::{Curve, Figure, Panel, Style};
use crate::plot::{COLOURS, svg};
use crate::runs::Binding;
use crate::table;

/// Panels beside each other.
const COLUMNS: usize = 4;

/// Ratios by size, a panel for each pattern that has several; none where there are no such patterns.
pub fn ratios(rows: &[Row], ranks: usize, baselines: &[String]) -> Option<String> {
    let style = |at: usize| Style { colour: COLOURS[at % COLOURS.len()], dashes: "" };
    let panel = |name: &'static str| {
        let curve = |(at, baseline): (usize, &String)| {
            let here = rows.iter().filter(|row| (row.ranks, row.pattern, &row.baseline) == (ranks, name, baseline));
            let mut points: Vec<(f64, f64)> = here.map(|row| (row.argument as f64, row.ratio.value)).collect();
            points.sort_by(|one, other| one.0.total_cmp(&other.0));
            Curve { points, style: style(at) }
        };
        let curves: Vec<svg::Curve> =
            baselines.iter().enumerate().map(curve).filter(|curve| curve.points.len() > 1).collect();
        let title = format!("{name}: without / with");
        (!curves.is_empty()).then_some(Panel { title, scale: Scale::Logarithmic, line_at: Some(1.0), curves })
    };
    let sized = PATTERNS.iter().filter(|pattern| pattern.unit == Unit::Bytes);
    let panels: Vec<Panel> = sized.filter_map(|pattern| panel(pattern.name)).collect();
    if panels.is_empty() {
        return None;
    }
    let binding = Binding::Auto.resolve(ranks).words();
    let title = format!("{} {binding}: time of a step without the library over that with it", table::ranks(ranks));
    let legend = baselines.iter().enumerate().map(|(at, name)| (name.clone(), style(at))).collect();
    let panels = panels.chunks(COLUMNS).map(<[Panel]>::to_vec).collect();
    Some(Figure { title, legend, panels }.render())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::tests::assert_well_formed;
    use crate::steps::figures::tests::row;

    #[test]
    fn patterns_of_several_sizes_have_a_panel() {
        let turns = [[2.0, 1.0]];
        let rows = [
            row("openmpi", "pivot:64K", &turns),
            row("openmpi", "pivot:2K", &turns),
            row("openmpi", "sort:4K", &turns),
            row("openmpi", "late:20", &turns),
        ];
        let text = ratios(&rows, 2, &["openmpi".into()]).unwrap();
        assert_well_formed(&text);
        assert!(text.contains("pivot: without / with") && !text.contains("sort") && !text.contains("late"));
        assert!(ratios(&rows[2..], 2, &["openmpi".into()]).is_none());
    }
}
