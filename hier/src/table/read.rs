//! A table out of a file's text, or the line that is wrong.

use std::fmt;
use std::ops::{Range, RangeInclusive};

use shm_core::Collective;
use shm_core::segment::layout::MOST_RANKS;
use shm_core::select::{Band, REACH_TRIED, Regime, Rule, number_of_bytes};
use toml::Spanned;

use super::{Fingerprint, NetworkBand, NetworkRule, NetworkTable, Table, file};
use crate::across::{ClusterRules, Line, NetworkModel};
use crate::rules::parse_ranks;

/// The only version of the form.
pub(super) const VERSION: u32 = 1;

/// What is wrong with a table's text, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// The line, from 1 on, where one is to blame.
    pub line: Option<usize>,
    /// What is wrong.
    pub why: String,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.why),
            None => f.write_str(&self.why),
        }
    }
}

/// What is wrong with a piece of the text.
type Piece<T> = Result<T, (Range<usize>, String)>;

impl Table {
    /// Reads a table.
    ///
    /// # Errors
    /// The first line that is wrong, and what would be right.
    pub fn from_toml(text: &str) -> Result<Self, Flaw> {
        let line = |span: Range<usize>| Some(text[..span.start.min(text.len())].matches('\n').count() + 1);
        // First: a form of another version may have anything.
        if let Ok(file::Versioned { version }) = toml::from_str(text)
            && *version.as_ref() != VERSION
        {
            let why =
                format!("version {}, where {VERSION} is expected: measure anew with `phalanx tune`", version.as_ref());
            return Err(Flaw { line: line(version.span()), why });
        }
        let file: file::File = toml::from_str(text).map_err(|error| Flaw {
            line: error.span().and_then(line),
            why: error.message().trim().replace('\n', "; "),
        })?;
        let table = table(file).map_err(|(span, why)| Flaw { line: line(span), why })?;
        table.tuning().map_err(|error| Flaw { line: None, why: error.to_string() })?;
        Ok(table)
    }
}

fn table(file: file::File) -> Piece<Table> {
    let machine = Fingerprint {
        model: file.machine.model,
        packages: file.machine.packages,
        cores: file.machine.cores,
        pus: file.machine.pus,
        l2: bytes(&file.machine.l2)?,
        l3: bytes(&file.machine.l3)?,
    };
    let mut table = Table::new(machine);
    let within = |name, least, number: Option<&Spanned<u32>>, usual| {
        number.map_or(Ok(usual), |number| ranks_within(name, number, least))
    };
    table.flat_ranks = within("flat_ranks", 1, file.node.flat_ranks.as_ref(), table.flat_ranks)?;
    table.flat_ranks_crowded =
        within("flat_ranks_crowded", 1, file.node.flat_ranks_crowded.as_ref(), table.flat_ranks)?;
    table.direct_from = file.node.direct_from.as_ref().map(threshold).transpose()?;
    for (what, least) in &file.node.reach_from {
        let what = collective(what)?;
        table.reach_from[what as usize] = reach(what, least)?;
    }
    table.readers = within("readers", 0, file.node.readers.as_ref(), table.readers)?;
    if let Some(trees) = file.node.trees {
        let wrong =
            |error: shm_core::Error| (trees.span(), format!("trees = {:?}: {}", trees.as_ref(), error.reason()));
        table.trees = trees.as_ref().parse().map_err(wrong)?;
    }
    table.rules = file.rules.iter().map(|form| rule(form, table.direct_from)).collect::<Result<_, _>>()?;
    table.network = file.network.map(network).transpose()?;
    Ok(table)
}

/// A number of ranks, which is at most that of the largest job.
fn ranks_within(name: &str, number: &Spanned<u32>, least: u32) -> Piece<u32> {
    let ranks = *number.as_ref();
    if (least..=MOST_RANKS as u32).contains(&ranks) {
        return Ok(ranks);
    }
    Err((number.span(), format!("{name} = {ranks}, where a number of ranks from {least} to {MOST_RANKS} is expected")))
}

fn bytes(number: &Spanned<file::Number>) -> Piece<u64> {
    let text = number.as_ref().text();
    number_of_bytes(&text)
        .ok_or_else(|| (number.span(), format!("{text:?} is no number of bytes: write 8192, or \"8K\"")))
}

fn threshold(number: &Spanned<file::Number>) -> Piece<u64> {
    if number.as_ref().text() == "never" {
        return Ok(u64::MAX);
    }
    bytes(number).map_err(|(span, why)| (span, format!("{why}, or \"never\"")))
}

/// From how many bytes on calls of a collective reach private buffers.
fn reach(what: Collective, least: &Spanned<file::Number>) -> Piece<u64> {
    match least.as_ref().text().as_str() {
        "tried" if what == Collective::Broadcast => Ok(REACH_TRIED),
        "tried" => Err((least.span(), format!("\"tried\" is for broadcasts, not for {what}"))),
        _ => threshold(least),
    }
}

fn narrow(number: &Spanned<file::Number>) -> Piece<u32> {
    let wide = bytes(number)?;
    u32::try_from(wide).map_err(|_| (number.span(), format!("{wide} is too large")))
}

fn collective(name: &Spanned<String>) -> Piece<Collective> {
    let found = Collective::ALL.into_iter().find(|what| what.name() == name.as_ref());
    found.ok_or_else(|| {
        (name.span(), format!("{:?} is no collective: barrier, broadcast, reduce, allreduce", name.as_ref()))
    })
}

/// A rule; where it does not say it, buffers in the job's heap are used where they lie from `direct` bytes on.
fn rule(form: &Spanned<file::Rule>, direct: Option<u64>) -> Piece<Rule> {
    let span = form.span();
    let form = form.as_ref();
    let what = collective(&form.collective)?;
    let bands = form.ladder.iter().map(|row| band(what, row)).collect::<Result<Vec<_>, _>>()?;
    let mut rule =
        Rule::new(what, &bands).map_err(|error| (form.ladder.first().map_or(span, Spanned::span), error.reason()))?;
    if let Some(ranks) = &form.ranks {
        let range = parse_ranks(&ranks.as_ref().text()).map_err(|why| (ranks.span(), why))?;
        rule = rule.on_ranks(*range.start() as u32..=*range.end() as u32);
    }
    if let Some(crowd) = &form.ranks_per_core {
        rule = rule.on_crowds(crowds(&crowd.as_ref().text()).map_err(|why| (crowd.span(), why))?);
    }
    if let Some(l2) = &form.l2_from {
        let kib =
            u32::try_from(bytes(l2)?.div_ceil(1024)).map_err(|_| (l2.span(), "no cache is as large".to_owned()))?;
        rule = rule.with_l2_from(kib);
    }
    if let Some(least) = form.direct_from.as_ref().map(threshold).transpose()?.or(direct) {
        rule = rule.with_direct_from(least);
    }
    if let Some(least) = form.reach_from.as_ref().map(|least| reach(what, least)).transpose()? {
        // Of no bytes nothing is reached.
        rule = rule.with_reach_from(least.max(1));
    }
    match &form.order {
        None => Ok(rule),
        Some(order) if order.as_ref() == "rank" => Ok(rule.in_strict_mode(true)),
        Some(order) => Err((order.span(), format!("{:?} is no order: \"rank\", or nothing", order.as_ref()))),
    }
}

/// Ranks per core: `2`, `2..4`, or `2..` for that many and more.
fn crowds(text: &str) -> Result<RangeInclusive<u32>, String> {
    let (least, most) = text.split_once("..").unwrap_or((text, text));
    let most = if most.trim().is_empty() { Ok(u32::MAX) } else { most.trim().parse::<u32>() };
    match (least.trim().parse::<u32>(), most) {
        (Ok(least), Ok(most)) if 1 <= least && least <= most => Ok(least..=most),
        _ => Err(format!("{text:?} are no numbers of ranks per core: write 1, \"2..4\", or \"2..\"")),
    }
}

fn band(what: Collective, form: &Spanned<file::Band>) -> Piece<Band> {
    let row = form.as_ref();
    let named = Regime::ALL.into_iter().find(|regime| regime.name() == row.take.as_ref());
    let regime = named.filter(|regime| regime.serves(what)).ok_or_else(|| {
        let serving: Vec<&str> =
            Regime::ALL.into_iter().filter(|regime| regime.serves(what)).map(Regime::name).collect();
        (row.take.span(), format!("{what} has no algorithm {:?}: {}", row.take.as_ref(), serving.join(", ")))
    })?;
    let means_nothing = |name: &str| (form.span(), format!("{name:?} means nothing for {regime}"));
    let mut band = Band::new(bytes(&row.from)?, regime);
    if let Some(up) = &row.up {
        let serves = matches!(regime, Regime::Cells | Regime::Exchange);
        if !serves || what == Collective::Broadcast {
            return Err(means_nothing("up"));
        }
        (band.up_cells, band.up_cell) = cells(up)?;
    }
    if let Some(down) = &row.down {
        if regime != Regime::Cells || what == Collective::Reduce {
            return Err(means_nothing("down"));
        }
        (band.down_cells, band.down_cell) = cells(down)?;
    }
    if regime != Regime::Shares {
        for (name, given) in [
            ("leaders", row.leaders.is_some()),
            ("slice", row.slice.is_some()),
            ("down_cells", row.down_cells.is_some()),
        ] {
            if given {
                return Err(means_nothing(name));
            }
        }
    }
    if let Some(leaders) = &row.leaders {
        band.leaders = if leaders.as_ref().text() == "all" { 0 } else { narrow(leaders)? };
    }
    if let Some(slice) = &row.slice {
        band.share_cell = narrow(slice)?;
    }
    band.share_downs = row.down_cells.unwrap_or(band.share_downs);
    Ok(band)
}

/// Number and bytes of cells: `4 x 8K`.
fn cells(text: &Spanned<String>) -> Piece<(u32, u32)> {
    let parsed = text.as_ref().split_once('x').and_then(|(number, bytes)| {
        let bytes = number_of_bytes(bytes.trim()).and_then(|bytes| u32::try_from(bytes).ok())?;
        Some((number.trim().parse().ok()?, bytes))
    });
    parsed.ok_or_else(|| (text.span(), format!("{:?} are no cells: write \"4 x 8K\"", text.as_ref())))
}

fn network(form: file::Network) -> Piece<NetworkTable> {
    let costs = [&form.shift.latency_us, &form.shift.us_per_kib, &form.exchange.latency_us, &form.exchange.us_per_kib];
    if let Some(wrong) = costs.into_iter().find(|cost| !cost.as_ref().is_finite() || *cost.as_ref() < 0.0) {
        return Err((wrong.span(), "what the network costs must be numbers from 0 on".to_owned()));
    }
    let line =
        |line: &file::Line| Line { latency: *line.latency_us.as_ref(), per_byte: line.us_per_kib.as_ref() / 1024.0 };
    let mut rules = Vec::new();
    for rule in form.rules {
        let what = collective(&rule.collective)?;
        let mut bands = Vec::new();
        for row in rule.ladder {
            let text = format!("{what}:{}", row.take.as_ref());
            let parsed: ClusterRules = text.parse().map_err(|error| {
                let why = match error {
                    crate::across::Error::Rules { why, .. } => why,
                    other => other.to_string(),
                };
                (row.take.span(), format!("take = {:?}: {why}", row.take.as_ref()))
            })?;
            let (from, take, remark) = (bytes(&row.from)?, row.take.as_ref().clone(), String::new());
            bands.push(NetworkBand { from, take, rule: parsed.of(what), remark });
        }
        if bands.first().is_none_or(|band| band.from != 0) || !bands.is_sorted_by(|a, b| a.from < b.from) {
            return Err((rule.collective.span(), "the sizes of bands must rise, from 0 bytes on".to_owned()));
        }
        rules.push(NetworkRule { what, bands });
    }
    let model = NetworkModel { shift: line(&form.shift), exchange: line(&form.exchange) };
    Ok(NetworkTable { nodes: form.nodes, ranks_a_node: form.ranks_a_node, model, rules })
}
