//! An outcome as text for a terminal, as comma-separated values, and as a plot.

use super::outcome::{Chart, Outcome};
use crate::node_simulation::picture::{self, Series};
use crate::out::{WIDTH, paragraph};
use crate::record::csv::quoted;
use crate::table::Table;

/// All of it, findings first.
pub fn render(outcome: &Outcome) -> String {
    let mut text = format!("reproduce {}: {}\n", outcome.study, outcome.paper);
    if outcome.quick {
        text += "short form: it shows that the study works; take no figure from it\n";
    }
    text.push('\n');
    for ran in &outcome.ran {
        paragraph(&mut text, WIDTH, "  ", &format!("{}, {}: {}", ran.name, ran.how.word(), ran.place));
    }
    for missing in &outcome.missing {
        paragraph(&mut text, WIDTH, "  ", &format!("left out: {missing}"));
    }
    for sheet in &outcome.tables {
        let mut table = Table::new(&sheet.heads);
        sheet.rows.iter().for_each(|row| table.row(row.clone()));
        text += &format!("\n{}\n{}", sheet.title, table.render());
    }
    if !outcome.findings.is_empty() {
        text += "\nbeside the paper\n";
    }
    for finding in &outcome.findings {
        text += &format!("\n  {}: {}\n", finding.about, finding.verdict.word());
        paragraph(&mut text, WIDTH, "    paper: ", &format!("{} [{}]", finding.paper, finding.source));
        paragraph(&mut text, WIDTH, "    here:  ", &format!("{} ({})", finding.ours, finding.how.word()));
        paragraph(&mut text, WIDTH, "    why:   ", &finding.why);
    }
    text
}

/// Every point of every chart, one a line.
pub fn csv(charts: &[Chart]) -> String {
    let mut text = String::from("chart,how,curve,bytes,value\n");
    for chart in charts {
        for curve in &chart.curves {
            for (bytes, value) in &curve.points {
                let (title, name) = (quoted(&chart.title), quoted(&curve.name));
                text += &format!("{title},{},{name},{bytes},{value:.6}\n", chart.how.word());
            }
        }
    }
    text
}

/// The charts as one SVG.
pub fn plot(outcome: &Outcome) -> String {
    let series = outcome.charts.iter().flat_map(|chart| {
        chart.curves.iter().map(|curve| Series {
            panel: chart.title.clone(),
            name: curve.name.clone(),
            points: curve.points.clone(),
            ratio: !chart.logarithmic,
        })
    });
    picture::render(&format!("reproduce {}", outcome.study), &series.collect::<Vec<_>>())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::outcome::{Finding, How, Ran, Sheet, Verdict};
    use super::*;

    /// An outcome with one of everything, and characters that HTML and CSV must quote.
    pub fn sample() -> Outcome {
        let mut sheet = Sheet::new("times [ms]", &["bytes", "what<"]);
        sheet.row(vec!["1K".into(), "a < b & \"c\"".into()]);
        let mut chart = Chart::new("time [ms], <fast> & slow", How::Measured);
        chart.curve("ring, \"dfs\"", vec![(1024.0, 1.0), (4096.0, 3.0)]);
        chart.curve("none", Vec::new());
        Outcome {
            study: "sample".into(),
            quick: true,
            paper: "A. Author, <On> things & others, 2009".into(),
            did: vec!["Counted.".into()],
            differs: vec!["Other sheep.".into()],
            ran: vec![Ran {
                name: "two".into(),
                how: How::Measured,
                place: "2 hosts".into(),
                command: "bench across --hosts 2".into(),
            }],
            findings: vec![Finding {
                about: "Break-even".into(),
                paper: "256 KB".into(),
                source: "Figure 6, page 19".into(),
                ours: "300 KB".into(),
                how: How::Measured,
                verdict: Verdict::Agrees,
                why: "within a factor of two".into(),
            }],
            charts: vec![chart],
            tables: vec![sheet],
            missing: vec!["x: no <MPI>".into()],
        }
    }

    #[test]
    fn everything_is_in_the_text() {
        let text = render(&sample());
        for word in [
            "short form",
            "two, measured: 2 hosts",
            "a < b",
            "Break-even: agrees",
            "256 KB [Figure 6, page 19]",
            "left out: x",
        ] {
            assert!(text.contains(word), "{word} in\n{text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH));
    }

    #[test]
    fn a_line_a_point() {
        let text = csv(&sample().charts);
        assert_eq!(text.lines().count(), 3);
        assert!(text.contains("\"time [ms], <fast> & slow\",measured,\"ring, \"\"dfs\"\"\",1024,1.000000"), "{text}");
        assert!(plot(&sample()).contains("&lt;fast&gt;"));
    }

    #[test]
    fn an_outcome_is_read_as_it_was_written() {
        let text = serde_json::to_string(&sample()).unwrap();
        assert_eq!(serde_json::from_str::<Outcome>(&text).unwrap(), sample());
        assert!(text.contains("\"verdict\":\"agrees\""));
    }
}
