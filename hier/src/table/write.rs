//! A table as text for people, with a remark beside each choice.

use std::fmt::Write;

use shm_core::Collective;
use shm_core::segment::layout::MOST_RANKS;
use shm_core::select::{Band, DIRECT_FROM, REACH_TRIED, READERS, Regime, Rule};

use super::read::VERSION;
use super::{NetworkTable, Table};
use crate::across::Line;

const HEAD: &str = "\
# Phalanx: what collective calls take, by message size. `phalanx tune` writes such files.
#
# PHALANX_TABLE=FILE takes one for a job; it is taken unasked where it lies at $XDG_CONFIG_HOME/phalanx/table.toml
# (~/.config/phalanx/table.toml).
# The first rule that fits counts; what no rule speaks of is as in the built-in table. Sizes are bytes, K and M.
#   line    stamp and payload in one cache line        cells   trees, pipelined; number x bytes of cells up and down
#   exchange  everybody folds everybody's contribution, through cells
#   shares  every leader folds a share of the vector, in slices of at most so many bytes
#   direct_from  from so many bytes on buffers in shared memory are used where they lie: nothing is copied, and their owner waits for the others
#   reach_from  from so many bytes on private buffers are reached by kernel-assisted copies
#   ranks_per_core  ranks of the job for each core, rounded up: 1 where each rank has a core, \"2..\" where ranks share cores
#   l2_from  for machines alone whose processors have a second-level cache of so many bytes or more
";

impl Table {
    /// The text; [`from_toml`](Table::from_toml) reads it.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let mut text = HEAD.to_owned();
        let machine = &self.machine;
        // Writing to a String does not fail.
        let _ = write!(
            text,
            "\nversion = {VERSION}\n\n[machine]\nmodel = {}\npackages = {}\ncores = {}\npus = {}\nl2 = {}\nl3 = {}\n",
            quoted(&machine.model),
            machine.packages,
            machine.cores,
            machine.pus,
            size(machine.l2),
            size(machine.l3)
        );
        let direct = self.direct_from.map_or(String::new(), |least| {
            format!("# The same as in rules, for those that do not say it.\ndirect_from = {}\n", threshold(least))
        });
        let crowded = match self.flat_ranks_crowded {
            most if most == self.flat_ranks => String::new(),
            most => format!("# The same where ranks share cores.\nflat_ranks_crowded = {most}\n"),
        };
        let readers = match self.readers {
            READERS => String::new(),
            most => format!(
                "# Ranks that reach into one rank's memory at a time, at most; 0 for any number.\nreaders = {most}\n"
            ),
        };
        let _ = write!(
            text,
            "\n[node]\n# Ranks up to which everybody reads everybody's line.\nflat_ranks = {}\n{crowded}{direct}# Bytes from which private buffers are reached by kernel-assisted copies (\"tried\": where calls that try both find that quicker).\nreach_from = {{ {} }}\n{readers}# Trees, as PHALANX_TREES has them.\ntrees = {}\n",
            self.flat_ranks,
            Collective::ALL.map(|what| format!("{what} = {}", reach(self.reach_from[what as usize]))).join(", "),
            quoted(&self.trees.to_string())
        );
        for (at, rule) in self.rules.iter().enumerate() {
            let unsaid = self.direct_from.unwrap_or(DIRECT_FROM);
            write_rule(&mut text, rule, unsaid, self.remarks.get(at).map_or(&[], Vec::as_slice));
        }
        if let Some(network) = &self.network {
            write_network(&mut text, network);
        }
        text
    }
}

/// Writes a rule; one that does not say from when on buffers in shared memory are used where they lie has them used so
/// from `unsaid` bytes on.
fn write_rule(text: &mut String, rule: &Rule, unsaid: u64, remarks: &[String]) {
    let Some(what) = rule.collective() else { return };
    let _ = write!(text, "\n[[rules]]\ncollective = \"{what}\"\n");
    let (least, most) = rule.ranks().into_inner();
    if (least, most) != (1, MOST_RANKS as u32) {
        let _ = writeln!(text, "ranks = \"{least}..{most}\"");
    }
    let (least, most) = rule.crowd().into_inner();
    if (least, most) != (1, u32::MAX) {
        let most = if most == u32::MAX { String::new() } else { most.to_string() };
        let _ = writeln!(text, "ranks_per_core = \"{least}..{most}\"");
    }
    if rule.l2_from() > 0 {
        let _ = writeln!(text, "l2_from = {}", threshold(1024 * u64::from(rule.l2_from())));
    }
    if rule.is_strict() {
        text.push_str("order = \"rank\"\n");
    }
    if what != Collective::Barrier || rule.direct_from() != unsaid {
        let _ = writeln!(text, "direct_from = {}", threshold(rule.direct_from()));
    }
    if let Some(least) = rule.reach_from() {
        let _ = writeln!(text, "reach_from = {}", reach(least));
    }
    text.push_str("ladder = [\n");
    for (at, band) in rule.bands().iter().enumerate() {
        let row = row(what, band);
        match remarks.get(at).filter(|remark| !remark.is_empty()) {
            Some(remark) => {
                let _ = writeln!(text, "  {row},  # {}", remark.replace('\n', " "));
            }
            None => {
                let _ = writeln!(text, "  {row},");
            }
        }
    }
    text.push_str("]\n");
}

/// A row of a ladder; of the parameters, those that mean something there.
fn row(what: Collective, band: &Band) -> String {
    let from = size(band.from);
    let cells = |name, number, bytes: u32| format!(", {name} = \"{number} x {}\"", bare(u64::from(bytes)));
    match band.regime() {
        Some(Regime::Cells) => {
            let up =
                if what == Collective::Broadcast { String::new() } else { cells("up", band.up_cells, band.up_cell) };
            let down =
                if what == Collective::Reduce { String::new() } else { cells("down", band.down_cells, band.down_cell) };
            format!("{{ from = {from}, take = \"cells\"{up}{down} }}")
        }
        Some(Regime::Exchange) => {
            format!("{{ from = {from}, take = \"exchange\"{} }}", cells("up", band.up_cells, band.up_cell))
        }
        Some(Regime::Shares) => {
            let leaders = if band.leaders == 0 { "\"all\"".to_owned() } else { band.leaders.to_string() };
            let (slice, downs) = (size(u64::from(band.share_cell)), band.share_downs);
            format!(
                "{{ from = {from}, take = \"shares\", leaders = {leaders}, slice = {slice}, down_cells = {downs} }}"
            )
        }
        _ => format!("{{ from = {from}, take = \"line\" }}"),
    }
}

/// The line above the part on the network.
const NETWORK_HEAD: &str =
    "# Across nodes; taken on so many nodes with so many ranks each. Rows as in PHALANX_CLUSTER.";

fn write_network(text: &mut String, network: &NetworkTable) {
    let line = |line: Line| format!("{{ latency_us = {:?}, us_per_kib = {:?} }}", line.latency, line.per_byte * 1024.0);
    let _ = write!(
        text,
        "\n{NETWORK_HEAD}\n[network]\nnodes = {}\nranks_a_node = {}\nshift = {}\nexchange = {}\n",
        network.nodes,
        network.ranks_a_node,
        line(network.model.shift),
        line(network.model.exchange)
    );
    for rule in &network.rules {
        let _ = write!(text, "\n[[network.rules]]\ncollective = \"{}\"\nladder = [\n", rule.what);
        for band in &rule.bands {
            let remark = match band.remark.as_str() {
                "" => String::new(),
                remark => format!("  # {}", remark.replace('\n', " ")),
            };
            let _ = writeln!(text, "  {{ from = {}, take = {} }},{remark}", size(band.from), quoted(&band.take));
        }
        text.push_str("]\n");
    }
}

/// The text of a table with another part on the network: all the rest stays as it is, remarks of people included.
#[must_use]
pub fn with_network(table: &str, network: &NetworkTable) -> String {
    let (mut text, _) = parts(table);
    write_network(&mut text, network);
    text
}

/// The text of a table with the part on the network that another text has, as it stands there, remarks included.
#[must_use]
pub fn with_network_of(table: &str, other: &str) -> String {
    let (mut text, _) = parts(table);
    let (_, network) = parts(other);
    if !network.trim().is_empty() {
        text.extend(["\n", NETWORK_HEAD, "\n", network.trim(), "\n"]);
    }
    text
}

/// What a table's text says of single nodes, and what it says of the network.
fn parts(table: &str) -> (String, String) {
    let (mut nodes, mut network) = (String::new(), String::new());
    // Remarks above a table belong to it.
    let (mut is_of_nodes, mut remarks) = (true, Vec::new());
    for line in table.lines().filter(|line| line.trim() != NETWORK_HEAD) {
        let bare = line.trim_matches(|character: char| character.is_whitespace() || character == '[');
        if line.trim_start().starts_with('[') {
            is_of_nodes = !(bare.starts_with("network]") || bare.starts_with("network."));
        } else if bare.is_empty() || bare.starts_with('#') {
            remarks.push(line);
            continue;
        }
        let part = if is_of_nodes { &mut nodes } else { &mut network };
        remarks.drain(..).chain([line]).for_each(|line| part.extend([line, "\n"]));
    }
    remarks.drain(..).for_each(|line| nodes.extend([line, "\n"]));
    nodes.truncate(nodes.trim_end().len());
    nodes.push('\n');
    (nodes, network)
}

/// A number of bytes, or never.
fn threshold(bytes: u64) -> String {
    if bytes == u64::MAX { "\"never\"".to_owned() } else { size(bytes) }
}

fn reach(least: u64) -> String {
    if least == REACH_TRIED { "\"tried\"".to_owned() } else { threshold(least) }
}

/// A number of bytes as TOML: plain, or text with a unit.
fn size(bytes: u64) -> String {
    let bare = bare(bytes);
    if bare.ends_with(['K', 'M']) { format!("\"{bare}\"") } else { bare }
}

/// A number of bytes with the largest unit that leaves it whole.
pub(crate) fn bare(bytes: u64) -> String {
    match bytes {
        0 => "0".to_owned(),
        bytes if bytes.is_multiple_of(1 << 20) => format!("{}M", bytes >> 20),
        bytes if bytes.is_multiple_of(1 << 10) => format!("{}K", bytes >> 10),
        bytes => bytes.to_string(),
    }
}

fn quoted(text: &str) -> String {
    let plain: String = text.chars().filter(|character| !character.is_control()).collect();
    format!("\"{}\"", plain.replace('\\', "\\\\").replace('"', "\\\""))
}
