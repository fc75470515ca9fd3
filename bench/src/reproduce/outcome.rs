//! What a study found, as data: printed, written to `results.json`, and gathered into a page by `bench report`.

use serde::{Deserialize, Serialize};

use crate::record::host::Host;

/// All that a study found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The study's name: `ring`.
    pub study: String,
    /// Whether it was the short form, whose figures show that it works and little else.
    pub quick: bool,
    /// Authors, title, where and when.
    pub paper: String,
    /// What the paper did.
    pub did: Vec<String>,
    /// What differs here.
    pub differs: Vec<String>,
    /// What was run where, one entry for each kind of run.
    pub ran: Vec<Ran>,
    /// The paper's findings, with ours beside them.
    pub findings: Vec<Finding>,
    /// Curves.
    pub charts: Vec<Chart>,
    /// Tables.
    pub tables: Vec<Sheet>,
    /// What was left out, and why.
    pub missing: Vec<String>,
}

/// An outcome with the machine that it was found on: the whole of `results.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// The machine.
    pub host: Host,
    /// What was found.
    pub reproduced: Outcome,
}

/// How something was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum How {
    /// Timed on real processes.
    Measured,
    /// Computed by a model.
    Simulated,
    /// Counted from the schedules themselves.
    Counted,
}

impl How {
    /// For people.
    pub fn word(self) -> &'static str {
        match self {
            How::Measured => "measured",
            How::Simulated => "simulated",
            How::Counted => "counted",
        }
    }
}

/// One kind of run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ran {
    /// What it is called in tables and charts.
    pub name: String,
    /// How its figures came about.
    pub how: How,
    /// Where: ranks, hosts, links, library.
    pub place: String,
    /// The command that takes the same figures by hand; empty where there is none.
    pub command: String,
}

/// How our finding stands to the paper's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The same, within the margin that `why` names.
    Agrees,
    /// The same in part.
    Partly,
    /// Something else.
    Differs,
    /// What is here does not allow a comparison.
    Open,
}

impl Verdict {
    /// For people.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Agrees => "agrees",
            Verdict::Partly => "agrees in part",
            Verdict::Differs => "differs",
            Verdict::Open => "cannot be compared",
        }
    }
}

/// One finding of the paper, with ours beside it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// What it is about.
    pub about: String,
    /// What the paper found.
    pub paper: String,
    /// Where the paper says so: figure, table, page, slide.
    pub source: String,
    /// What was found here.
    pub ours: String,
    /// How that was found.
    pub how: How,
    /// How they stand to each other.
    pub verdict: Verdict,
    /// Why.
    pub why: String,
}

/// A coordinate system with curves, over message bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Chart {
    /// What it shows, with the unit.
    pub title: String,
    /// How its figures came about.
    pub how: How,
    /// Whether values stand on a logarithmic axis.
    pub logarithmic: bool,
    /// A value with a line across: 1 of ratios.
    pub line_at: Option<f64>,
    /// The curves.
    pub curves: Vec<Points>,
}

/// A curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Points {
    /// Its name in the legend.
    pub name: String,
    /// (bytes, value), ascending.
    pub points: Vec<(f64, f64)>,
}

/// A table. Heads that end in `<` stand over words, the others over figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sheet {
    /// What it shows, with the unit.
    pub title: String,
    /// Column heads.
    pub heads: Vec<String>,
    /// The cells, row by row.
    pub rows: Vec<Vec<String>>,
}

impl Sheet {
    /// A table without rows.
    pub fn new(title: impl Into<String>, heads: &[&str]) -> Sheet {
        Sheet { title: title.into(), heads: heads.iter().map(|head| (*head).into()).collect(), rows: Vec::new() }
    }

    /// Appends a row.
    pub fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.heads.len());
        self.rows.push(cells);
    }
}

impl Chart {
    /// A chart of times or the like, on logarithmic axes.
    pub fn new(title: impl Into<String>, how: How) -> Chart {
        Chart { title: title.into(), how, logarithmic: true, line_at: None, curves: Vec::new() }
    }

    /// A chart of ratios, with a line at 1.
    pub fn of_ratios(title: impl Into<String>, how: How) -> Chart {
        Chart { logarithmic: false, line_at: Some(1.0), ..Chart::new(title, how) }
    }

    /// Adds a curve; one without points is left out.
    pub fn curve(&mut self, name: impl Into<String>, points: Vec<(f64, f64)>) {
        if !points.is_empty() {
            self.curves.push(Points { name: name.into(), points });
        }
    }
}
