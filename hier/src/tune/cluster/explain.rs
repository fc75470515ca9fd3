//! The findings as a table, and as text.

use std::fmt::Write;

use super::Findings;
use crate::across::{Line, Result};
use crate::table::{NetworkBand, NetworkRule, NetworkTable, bare};

/// The part of a table that says what was found.
///
/// # Errors
/// None, for findings of a search.
pub fn network_of(found: &Findings) -> Result<NetworkTable> {
    let rules = found.collectives.iter().map(|finding| {
        let bands = finding.ladder.iter().map(|(from, candidate, remark)| {
            let (take, rule) = (candidate.words(finding.what), candidate.rule(finding.what)?);
            Ok(NetworkBand { from: *from as u64, take, rule, remark: remark.clone() })
        });
        Ok(NetworkRule { what: finding.what, bands: bands.collect::<Result<_>>()? })
    });
    let (nodes, ranks_a_node) = (found.shape.nodes, found.shape.ranks_a_node);
    Ok(NetworkTable { nodes, ranks_a_node, model: found.network, rules: rules.collect::<Result<_>>()? })
}

/// What was measured, size by size: the candidates' times, which one was taken, and why.
#[must_use]
pub fn explanation(found: &Findings) -> String {
    let line = |line: Line| format!("{:.1} us a message and {:.3} us a KiB", line.latency, line.per_byte * 1024.0);
    let (nodes, ranks) = (found.shape.nodes, found.shape.ranks_a_node);
    let mut text = format!(
        "network of {nodes} nodes x {ranks} ranks: a shift round the ring {}, an exchange of pairs {}\n\n",
        line(found.network.shift),
        line(found.network.exchange)
    );
    for finding in &found.collectives {
        // Writing to a String does not fail.
        let _ = writeln!(
            text,
            "{} on {nodes} nodes x {ranks} ranks: microseconds, +- half the distance of the quartiles",
            finding.what
        );
        for looked in &finding.looked {
            for (at, (candidate, figures)) in looked.times.iter().enumerate() {
                let size = if at == 0 { bare(looked.bytes as u64) } else { String::new() };
                let mark = if at == looked.taken { format!("  <- {}", looked.why) } else { String::new() };
                let (median, half) = (figures.median(), figures.half_spread() * 100.0);
                let name = candidate.words(finding.what);
                let _ = writeln!(text, "{size:>8}  {name:44} {median:>12.1} +-{half:3.0}%{mark}");
            }
        }
        let rungs: Vec<String> = finding
            .ladder
            .iter()
            .map(|(from, candidate, _)| format!("from {}: {}", bare(*from as u64), candidate.words(finding.what)))
            .collect();
        let _ = writeln!(text, "  => {}\n", rungs.join("; "));
    }
    text
}
