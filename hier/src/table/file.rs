//! The form of the file, as TOML has it.

use serde::Deserialize;
use toml::Spanned;

/// The whole file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    /// Looked at before anything else is: [`Versioned`].
    #[serde(rename = "version")]
    _version: u32,
    pub machine: Machine,
    #[serde(default)]
    pub node: Node,
    #[serde(default)]
    pub rules: Vec<Spanned<Rule>>,
    pub network: Option<Network>,
}

/// What every version of the form has.
#[derive(Deserialize)]
pub(super) struct Versioned {
    pub version: Spanned<u32>,
}

/// `[machine]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Machine {
    pub model: String,
    pub packages: usize,
    pub cores: usize,
    pub pus: usize,
    pub l2: Spanned<Number>,
    pub l3: Spanned<Number>,
}

/// `[node]`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Node {
    pub flat_ranks: Option<Spanned<u32>>,
    pub flat_ranks_crowded: Option<Spanned<u32>>,
    pub direct_from: Option<Spanned<Number>>,
    #[serde(default)]
    pub reach_from: std::collections::BTreeMap<Spanned<String>, Spanned<Number>>,
    pub readers: Option<Spanned<u32>>,
    pub trees: Option<Spanned<String>>,
}

/// `[[rules]]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rule {
    pub collective: Spanned<String>,
    pub ranks: Option<Spanned<Number>>,
    pub ranks_per_core: Option<Spanned<Number>>,
    pub l2_from: Option<Spanned<Number>>,
    pub order: Option<Spanned<String>>,
    pub direct_from: Option<Spanned<Number>>,
    pub reach_from: Option<Spanned<Number>>,
    pub ladder: Vec<Spanned<Band>>,
}

/// One row of a ladder.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Band {
    pub from: Spanned<Number>,
    pub take: Spanned<String>,
    pub up: Option<Spanned<String>>,
    pub down: Option<Spanned<String>>,
    pub leaders: Option<Spanned<Number>>,
    pub slice: Option<Spanned<Number>>,
    pub down_cells: Option<u32>,
}

/// `[network]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Network {
    pub nodes: usize,
    pub ranks_a_node: usize,
    pub shift: Line,
    pub exchange: Line,
    #[serde(default)]
    pub rules: Vec<NetworkRule>,
}

/// What a pattern of messages costs.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Line {
    pub latency_us: Spanned<f64>,
    pub us_per_kib: Spanned<f64>,
}

/// `[[network.rules]]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NetworkRule {
    pub collective: Spanned<String>,
    pub ladder: Vec<NetworkBand>,
}

/// One row of it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NetworkBand {
    pub from: Spanned<Number>,
    /// What stands behind the collective in `PHALANX_CLUSTER`.
    pub take: Spanned<String>,
}

/// A number, or text that means one or several: `8192`, `"8K"`, `"3..8"`, `"all"`.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a number is expected, or text that means one")]
pub(super) enum Number {
    /// Below 0 it is refused as what it is.
    Plain(i64),
    /// So is this, whatever it is.
    Fraction(f64),
    Text(String),
}

impl Number {
    pub fn text(&self) -> String {
        match self {
            Number::Plain(number) => number.to_string(),
            Number::Fraction(number) => format!("{number:?}"),
            Number::Text(text) => text.clone(),
        }
    }
}
