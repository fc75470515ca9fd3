//! Ours beside every peer: for each collective and size the best of them, who that is, and by how much.

use serde::Serialize;

use crate::cores::{Cores, Part};
use crate::empty;
use crate::plan::{BufferMode, Operation, Timing};
use crate::rows::{Ratio, Row, ratio_while};
use crate::runs::ours;
use crate::runs::peers::STOCK;
use crate::sizes::show_size;
use crate::statistics::{Summary, median};
use crate::table::{Table, microseconds, three_digits};

/// One series of a peer beside ours.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Beside {
    /// The peer and, behind a colon, its setting.
    pub series: String,
    /// Microseconds a call.
    pub time: Summary,
    /// Its time over ours. Above 1, ours is faster.
    pub ratio: Ratio,
    /// The same of both times less the empty call of their series; of short calls that were timed alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub net: Option<Ratio>,
}

impl Beside {
    /// Whose series it is.
    pub fn peer(&self) -> &str {
        peer_of(&self.series)
    }

    /// Whether the peer runs as it comes.
    pub fn is_stock(&self) -> bool {
        is_stock(&self.series)
    }
}

/// One of our rows with all that stands beside it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// How many ranks.
    pub ranks: usize,
    /// The collective.
    pub operation: Operation,
    /// The state of our buffers.
    pub buffers: BufferMode,
    /// How the calls were timed.
    pub timing: Timing,
    /// Message bytes.
    pub bytes: u64,
    /// The state of the cores; none for all blocks together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cores: Option<Cores>,
    /// Microseconds a call, ours.
    pub ours: Summary,
    /// The series of all peers, the quickest first.
    pub beside: Vec<Beside>,
}

fn peer_of(series: &str) -> &str {
    series.split(':').next().unwrap_or(series)
}

fn is_stock(series: &str) -> bool {
    series.split_once(':').is_some_and(|(_, setting)| setting == STOCK)
}

impl Comparison {
    /// The quickest of all peers and settings.
    pub fn best(&self) -> Option<&Beside> {
        self.beside.first()
    }

    /// The quickest of all peers as they come.
    pub fn best_stock(&self) -> Option<&Beside> {
        self.beside.iter().find(|beside| beside.is_stock())
    }

    /// What `peer` does at its best, or as it comes.
    fn of(&self, peer: &str, stock: bool) -> Option<&Beside> {
        self.beside.iter().find(|beside| beside.peer() == peer && beside.is_stock() == stock)
    }
}

/// Every row of ours that has a peer beside it, in the order of `rows`.
pub fn comparisons(rows: &[Row]) -> Vec<Comparison> {
    comparisons_by(rows, None, |row| Some(row.time), |row, other| row.ratio_to(other))
}

/// The same of the blocks of each state of the cores, where several occurred with as many ranks.
pub fn comparisons_by_cores(rows: &[Row]) -> Vec<Comparison> {
    let all = Cores::ALL.into_iter().flat_map(|cores| comparisons_while(cores, rows));
    all.filter(|comparison| states_in(rows, comparison.ranks).len() > 1).collect()
}

fn comparisons_while(cores: Cores, rows: &[Row]) -> Vec<Comparison> {
    let time = |row: &Row| row.part(cores).map(|part| part.time);
    comparisons_by(rows, Some(cores), time, |row, other| ratio_while(cores, other, row))
}

/// What was measured with `ranks` ranks in a state of the cores.
fn parts_in(rows: &[Row], ranks: usize, cores: Cores) -> impl Iterator<Item = &Part> {
    rows.iter().filter(move |row| row.ranks == ranks).filter_map(move |row| row.part(cores))
}

/// The states of the cores that blocks of `ranks` ranks were measured in.
fn states_in(rows: &[Row], ranks: usize) -> Vec<Cores> {
    Cores::ALL.into_iter().filter(|&cores| parts_in(rows, ranks, cores).next().is_some()).collect()
}

/// Which state of the cores a table of `ranks` ranks is about: of a table of all blocks, only that all of them ran on
/// threads of one core.
pub fn cores_words(cores: Option<Cores>, rows: &[Row], ranks: usize) -> String {
    let all_shared = || (states_in(rows, ranks) == [Cores::Shared]).then_some(Cores::Shared);
    let Some(cores) = cores.or_else(all_shared) else {
        return String::new();
    };
    let exchanges: Vec<f64> = parts_in(rows, ranks, cores).map(|part| part.exchange).collect();
    format!(", {} (a bare exchange took {} us)", cores.words(), microseconds(median(&exchanges)))
}

fn comparisons_by(
    rows: &[Row],
    cores: Option<Cores>,
    time_of: impl Fn(&Row) -> Option<Summary>,
    ratio: impl Fn(&Row, &Row) -> Option<Ratio>,
) -> Vec<Comparison> {
    let ours = rows.iter().filter(|row| row.series == ours::NAME && row.operation != Operation::Empty);
    let all = ours.filter_map(|row| {
        let ours = time_of(row)?;
        let theirs = rows.iter().filter(|other| other.series != ours::NAME && row.is_beside(other));
        let mut beside: Vec<Beside> = theirs
            .filter_map(|other| {
                let net = empty::net(row, other, rows, &ratio);
                Some(Beside { series: other.series.clone(), time: time_of(other)?, ratio: ratio(row, other)?, net })
            })
            .collect();
        // By the ratio, which is taken turn by turn: what slowed a whole turn down slowed both.
        beside.sort_by(|a, b| a.ratio.value.total_cmp(&b.ratio.value));
        let Row { ranks, operation, buffers, timing, bytes, .. } = *row;
        Some(Comparison { ranks, operation, buffers, timing, bytes, cores, ours, beside })
    });
    all.filter(|comparison| !comparison.beside.is_empty()).collect()
}

/// For each peer and case its quickest setting, under the peer's name; ours unchanged. For plots, where every series of
/// every peer would be a thicket.
pub fn by_peer(rows: &[Row]) -> Vec<Row> {
    let mut kept: Vec<Row> = Vec::new();
    for row in rows {
        let row = Row { series: peer_of(&row.series).into(), ..row.clone() };
        match kept.iter_mut().find(|other| other.series == row.series && other.is_same_case(&row)) {
            Some(other) if row.time.median < other.time.median => *other = row,
            Some(_) => {}
            None => kept.push(row),
        }
    }
    kept
}

/// The comparisons of one rank count, collective and buffer mode as a table with a line below that says where ours is
/// worst.
pub fn render(all: &[&Comparison]) -> String {
    let series = || all.iter().flat_map(|comparison| &comparison.beside);
    let stock = series().any(Beside::is_stock);
    let mut peers: Vec<(&str, bool)> = Vec::new();
    for wanted in [false, true] {
        for beside in series().filter(|beside| beside.is_stock() == wanted) {
            if !peers.contains(&(beside.peer(), wanted)) {
                peers.push((beside.peer(), wanted));
            }
        }
    }
    peers.sort_by_key(|&(peer, stock)| (stock, known_place(peer)));
    let mut heads: Vec<String> =
        ["bytes", "ours", "spread", "best", "of<", "best/ours", "range<"].map(Into::into).into();
    let alone = all.iter().any(|comparison| comparison.timing.is_alone());
    if alone {
        heads.push("net".into());
    }
    if stock {
        heads.extend(["stock best", "of<", "stock/ours"].map(Into::into));
    }
    for &(peer, stock) in &peers {
        heads.push(if stock { format!("{peer}:{STOCK}") } else { peer.into() });
        heads.push("spread".into());
    }
    let mut table = Table::new(&heads);
    let spread = |time: &Summary| format!("{:.0}%", 100.0 * time.spread());
    for comparison in all {
        let has_bytes = comparison.operation.has_bytes();
        let mut cells = vec![if has_bytes { show_size(comparison.bytes) } else { "-".into() }];
        cells.extend([microseconds(comparison.ours.median), spread(&comparison.ours)]);
        let cells_of = |beside: Option<&Beside>| match beside {
            None => vec!["-".into(); 3],
            Some(Beside { series, time, ratio, .. }) => {
                vec![microseconds(time.median), series.clone(), three_digits(ratio.value)]
            }
        };
        cells.extend(cells_of(comparison.best()));
        cells.push(comparison.best().map_or_else(String::new, |b| format!("{:.2}..{:.2}", b.ratio.low, b.ratio.high)));
        if alone {
            let net = comparison.best().and_then(|best| best.net);
            cells.push(net.map_or_else(|| "-".into(), |net| three_digits(net.value)));
        }
        if stock {
            cells.extend(cells_of(comparison.best_stock()));
        }
        for &(peer, stock) in &peers {
            let time = comparison.of(peer, stock).map(|beside| &beside.time);
            cells.push(time.map_or_else(|| "-".into(), |time| microseconds(time.median)));
            cells.push(time.map_or_else(String::new, spread));
        }
        table.row(cells);
    }
    let mut text = table.render();
    for (words, of) in
        [("best", Comparison::best as fn(&Comparison) -> Option<&Beside>), (STOCK, Comparison::best_stock)]
    {
        if let Some(worst) = Worst::of(all, of) {
            text += &format!("  smallest {words}/ours: {}\n", worst.words());
        }
    }
    text
}

/// The place of a peer among the known ones; unknown ones come last.
fn known_place(peer: &str) -> usize {
    let peers = &crate::runs::peers::PEERS;
    peers.iter().position(|known| known.name == peer).unwrap_or(peers.len())
}

/// Where ours looks worst.
struct Worst<'a> {
    at: &'a Comparison,
    beside: &'a Beside,
    /// Cases in which ours is slower; in which it is not, but is in some turn; and all.
    slower: usize,
    doubtful: usize,
    all: usize,
}

impl<'a> Worst<'a> {
    fn of(all: &[&'a Comparison], of: fn(&Comparison) -> Option<&Beside>) -> Option<Worst<'a>> {
        let ratios: Vec<_> = all.iter().filter_map(|&comparison| Some((comparison, of(comparison)?))).collect();
        let slower = ratios.iter().filter(|(_, beside)| beside.ratio.value < 1.0).count();
        let ever = ratios.iter().filter(|(_, beside)| beside.ratio.low < 1.0).count();
        let least = ratios.iter().min_by(|a, b| a.1.ratio.value.total_cmp(&b.1.ratio.value))?;
        Some(Worst { at: least.0, beside: least.1, slower, doubtful: ever - slower, all: ratios.len() })
    }

    fn place(&self) -> String {
        if self.at.operation == Operation::Barrier { "-".into() } else { show_size(self.at.bytes) }
    }

    fn words(&self) -> String {
        let ratio = three_digits(self.beside.ratio.value);
        let Worst { slower, doubtful, all, .. } = self;
        let at = if self.at.operation == Operation::Barrier { String::new() } else { format!(" at {}", self.place()) };
        format!(
            "{ratio}{at}, {}; ours is slower at {slower} of {all}, and in some turns at {doubtful}",
            self.beside.series
        )
    }
}

/// One line for each rank count, collective and buffer mode: the smallest ratio and where it is.
pub fn summary(all: &[Comparison]) -> String {
    let mut table = Table::new(&[
        "ranks",
        "collective<",
        "buffers<",
        "best/ours",
        "at",
        "of<",
        "slower at",
        "in some turns",
        "stock/ours",
        "at",
        "of<",
        "slower at",
        "in some turns",
    ]);
    let mut groups: Vec<(usize, Operation, BufferMode)> = Vec::new();
    for c in all {
        if !groups.contains(&(c.ranks, c.operation, c.buffers)) {
            groups.push((c.ranks, c.operation, c.buffers));
        }
    }
    for (ranks, operation, buffers) in groups {
        let of_group = |c: &&Comparison| (c.ranks, c.operation, c.buffers) == (ranks, operation, buffers);
        let group: Vec<&Comparison> = all.iter().filter(of_group).collect();
        let barrier = operation == Operation::Barrier;
        let mut cells = vec![ranks.to_string(), operation.to_string()];
        cells.push(if barrier { "-".into() } else { buffers.to_string() });
        for of in [Comparison::best as fn(&Comparison) -> Option<&Beside>, Comparison::best_stock] {
            cells.extend(Worst::of(&group, of).map_or_else(
                || vec!["-".into(), String::new(), String::new(), String::new(), String::new()],
                |worst| {
                    let Worst { slower, doubtful, all, .. } = worst;
                    let ratio = three_digits(worst.beside.ratio.value);
                    let counts = [format!("{slower} of {all}"), doubtful.to_string()];
                    [vec![ratio, worst.place(), worst.beside.series.clone()], counts.into()].concat()
                },
            ));
        }
        table.row(cells);
    }
    table.render()
}

#[cfg(test)]
mod tests;
