//! The findings as a table, and as text.

use std::fmt::Write;

use shm_core::segment::layout::MOST_RANKS;
use shm_core::select::{Band, Rule};
use shm_core::{Collective, Error, Tuning};

use super::search::searched;
use super::{Effort, Findings};
use crate::table::{Fingerprint, Table, bare};

/// The table of what was found on some numbers of ranks, rising. Each counts for the numbers that it is the next to,
/// and the last one for all that are larger.
///
/// # Errors
/// `Tuning` when there are too many rules.
pub fn table_of(machine: Fingerprint, findings: &[Findings]) -> Result<Table, Error> {
    let mut table = Table::new(machine);
    let barrier = Rule::new(Collective::Barrier, &[Band::line(0)])?;
    table.rules.push(barrier);
    table.remarks.push(Vec::new());
    let mut trees: Vec<String> = Vec::new();
    let mut least = 1;
    for (at, found) in findings.iter().enumerate() {
        let most = if at + 1 == findings.len() { MOST_RANKS } else { found.ranks };
        let part = |part: &String| part.replacen(&format!("({}", found.ranks), &format!("({least}..{most}"), 1);
        trees.extend(found.tree_parts.iter().map(part));
        if found.flat_lines_lose {
            table.flat_ranks = table.flat_ranks.min((least - 1).max(1) as u32);
        }
        for finding in &found.collectives {
            let bands: Vec<Band> = finding
                .ladder
                .iter()
                .map(|(from, candidate, _)| Band { from: *from as u64, ..candidate.band })
                .collect();
            let rule =
                Rule::new(finding.what, &bands)?.on_ranks(least as u32..=most as u32).direct_from(finding.direct);
            table.rules.push(rule.in_strict_mode(finding.strict));
            table.remarks.push(finding.ladder.iter().map(|(_, _, remark)| remark.clone()).collect());
        }
        least = found.ranks + 1;
    }
    table.trees = trees.join("; ").parse()?;
    table.tuning()?;
    Ok(table)
}

/// Whether a table has room for what will be found on these numbers of ranks: to be asked before anything is measured.
///
/// # Errors
/// `Tuning` when it has not, with how many numbers it has room for.
pub fn check_room(effort: &Effort, ranks: &[usize]) -> Result<(), Error> {
    let rules = |ranks: &[usize]| -> Result<(), Error> {
        let one = |what| Rule::new(what, &[Band::line(0)]);
        let mut rules = vec![one(Collective::Barrier)?];
        for searched in ranks.iter().flat_map(|&ranks| searched(effort, ranks)) {
            rules.push(one(searched.0)?.in_strict_mode(searched.1));
        }
        Tuning::of(&rules).map(drop)
    };
    let error = match rules(ranks) {
        Ok(()) => return Ok(()),
        Err(Error::Tuning { why }) => why,
        Err(other) => return Err(other),
    };
    let most = (0..ranks.len()).rev().find(|&count| rules(&ranks[..count]).is_ok()).unwrap_or(0);
    Err(Error::Tuning { why: format!("{} numbers of ranks make {error}; name {most} at most", ranks.len()) })
}

/// What was measured, size by size: the candidates' times, which one was taken, and why.
#[must_use]
pub fn explanation(findings: &[Findings]) -> String {
    let mut text = String::new();
    for found in findings {
        for finding in &found.collectives {
            let order = if finding.strict { ", in rank order" } else { "" };
            // Writing to a String does not fail.
            let _ = writeln!(text, "{} on {} ranks{order}: microseconds, +- the spread", finding.what, found.ranks);
            for looked in finding.looked.iter().chain(&finding.direct_looked) {
                for (at, (name, figures)) in looked.times.iter().enumerate() {
                    let size = if at == 0 { bare(looked.bytes as u64) } else { String::new() };
                    let mark = if at == looked.taken { format!("  <- {}", looked.why) } else { String::new() };
                    let (median, spread) = (figures.median(), figures.spread() * 100.0);
                    let _ = writeln!(text, "{size:>8}  {name:28} {median:>12.3} +-{spread:3.0}%{mark}");
                }
            }
            let rungs: Vec<String> = finding
                .ladder
                .iter()
                .map(|(from, candidate, _)| format!("from {}: {}", bare(*from as u64), candidate.name(finding.what)))
                .collect();
            let _ = writeln!(text, "  => {}", rungs.join("; "));
            let _ = match finding.direct {
                u64::MAX => writeln!(text, "  => buffers in shared memory are copied, always\n"),
                from => {
                    writeln!(text, "  => buffers in shared memory are used where they lie from {} on\n", bare(from))
                }
            };
        }
        for part in &found.tree_parts {
            let _ = writeln!(text, "trees: {part}\n");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_numbers_of_ranks_than_a_table_has_room_for_are_told_before_anything_is_measured() {
        for effort in [Effort::usual(), Effort::quick(), Effort::tiny()] {
            check_room(&effort, &[2, 4, 8]).unwrap();
            let many: Vec<usize> = (2..22).collect();
            let error = check_room(&effort, &many).unwrap_err().to_string();
            let most: usize = error.split("name ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
            assert!((5..20).contains(&most), "{error}");
            check_room(&effort, &many[..most]).unwrap();
            check_room(&effort, &many[..=most]).unwrap_err();
        }
    }
}
