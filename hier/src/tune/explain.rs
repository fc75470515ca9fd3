//! The findings as a table, and as text.

use std::fmt::Write;
use std::ops::RangeInclusive;

use shm_core::segment::layout::MOST_RANKS;
use shm_core::select::{Band, READERS, Rule};
use shm_core::{Collective, Error, Tuning};

use super::search::searched;
use super::{Effort, Findings};
use crate::table::{Fingerprint, Table, bare};

/// The table of what was found on some numbers of ranks, rising. What was found on one counts for jobs of its kind only,
/// those with a core for each rank or those whose ranks share cores, and there for numbers near it; all else is as in
/// the built-in table.
///
/// # Errors
/// `Tuning` when there are too many rules.
pub fn table_of(machine: Fingerprint, findings: &[Findings]) -> Result<Table, Error> {
    let mut table = Table::new(machine);
    let barrier = Rule::new(Collective::Barrier, &[Band::line(0)])?;
    table.rules.push(barrier);
    table.remarks.push(Vec::new());
    let mut trees: Vec<String> = Vec::new();
    for (found, reach) in findings.iter().zip(reaches(findings)) {
        let (least, most) = reach.into_inner();
        let crowds = if shares_cores(found) { 2..=u32::MAX } else { 1..=1 };
        let part = |part: &String| part.replacen(&format!("({}", found.ranks), &format!("({least}..{most}"), 1);
        trees.extend(found.tree_parts.iter().map(part));
        // Of these there is one number only: that of the most ranks, and of its collectives the least.
        let readers = found.collectives.iter().filter_map(|finding| finding.readers);
        table.readers = readers.min_by_key(|&most| if most == 0 { u32::MAX } else { most }).unwrap_or(table.readers);
        if found.flat_lines_lose {
            // More ranks lose more by it: of these there is one number only.
            let flat = if shares_cores(found) { &mut table.flat_ranks_crowded } else { &mut table.flat_ranks };
            *flat = (*flat).min((least - 1).max(1) as u32);
        }
        for finding in &found.collectives {
            let bands: Vec<Band> = finding
                .ladder
                .iter()
                .map(|(from, candidate, _)| Band { from: *from as u64, ..candidate.band })
                .collect();
            let rule = Rule::new(finding.what, &bands)?.on_ranks(least as u32..=most as u32).on_crowds(crowds.clone());
            let rule = rule.with_direct_from(finding.direct).with_reach_from(finding.reach.unwrap_or(0));
            table.rules.push(rule.in_strict_mode(finding.strict));
            table.remarks.push(finding.ladder.iter().map(|(_, _, remark)| remark.clone()).collect());
        }
    }
    table.trees = trees.join("; ").parse()?;
    table.tuning()?;
    Ok(table)
}

/// For how many ranks each of the findings counts, in jobs of its kind: from more than half of those that it was
/// measured on, and more than the next smaller number of that kind that was, to a quarter more, and less than what
/// counts for the next larger one. Trees that are twice as deep, and slices of half the length, are another matter: the
/// built-in table, which was measured or simulated on such numbers somewhere else, is nearer to them. Two ranks are of
/// a kind of their own, and have no quarter more.
fn reaches(findings: &[Findings]) -> Vec<RangeInclusive<usize>> {
    let alike = |a: &Findings, b: &Findings| shares_cores(a) == shares_cores(b);
    let least = |at: usize| {
        let found = &findings[at];
        let before = findings[..at].iter().rfind(|other| alike(other, found)).map_or(0, |other| other.ranks);
        (found.ranks / 2).max(before) + 1
    };
    let most = |at: usize| {
        let found = &findings[at];
        let next = (at + 1..findings.len()).find(|&other| alike(&findings[other], found));
        (found.ranks + found.ranks / 4).min(next.map_or(MOST_RANKS, |next| least(next) - 1))
    };
    (0..findings.len()).map(|at| least(at)..=most(at)).collect()
}

/// Whether ranks shared cores where this was found.
fn shares_cores(found: &Findings) -> bool {
    found.crowd > 1
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

/// What was measured, size by size: the candidates' times, which one was taken, and why; and for whom that counts.
#[must_use]
pub fn explanation(findings: &[Findings]) -> String {
    let mut text = String::new();
    for (found, reach) in findings.iter().zip(reaches(findings)) {
        let crowd = match found.crowd {
            0 | 1 => "a core for each".to_owned(),
            crowd => format!("{crowd} for each core"),
        };
        for finding in &found.collectives {
            let order = if finding.strict { ", in rank order" } else { "" };
            // Writing to a String does not fail.
            let (what, ranks) = (finding.what, found.ranks);
            let _ = writeln!(
                text,
                "{what} on {ranks} ranks, {crowd}{order}: microseconds, +- half the distance of the quartiles"
            );
            for looked in finding.looked.iter().chain(&finding.direct_looked).chain(&finding.reach_looked) {
                for (at, (name, figures)) in looked.times.iter().enumerate() {
                    let size = if at == 0 { bare(looked.bytes as u64) } else { String::new() };
                    let mark = if at == looked.taken { format!("  <- {}", looked.why) } else { String::new() };
                    let (median, half) = (figures.median(), figures.half_spread() * 100.0);
                    let _ = writeln!(text, "{size:>8}  {name:28} {median:>12.3} +-{half:3.0}%{mark}");
                }
            }
            let rungs: Vec<String> = finding
                .ladder
                .iter()
                .map(|(from, candidate, _)| format!("from {}: {}", bare(*from as u64), candidate.name(finding.what)))
                .collect();
            let _ = writeln!(text, "  => {}", rungs.join("; "));
            let _ = match finding.direct {
                u64::MAX => writeln!(text, "  => buffers in shared memory are copied, always"),
                from => writeln!(text, "  => buffers in shared memory are used where they lie from {} on", bare(from)),
            };
            let _ = match (finding.reach, finding.readers) {
                (None, _) => Ok(()),
                (Some(u64::MAX), _) => writeln!(text, "  => private buffers are copied, always"),
                (Some(from), readers) => {
                    let many = match readers.unwrap_or(READERS) {
                        0 => "any number of ranks".to_owned(),
                        readers => format!("{readers} ranks"),
                    };
                    let from = bare(from);
                    writeln!(text, "  => private buffers are reached by the kernel from {from} on, by {many} at a time")
                }
            };
            text.push('\n');
        }
        for part in &found.tree_parts {
            let _ = writeln!(text, "trees: {part}\n");
        }
        let (least, most) = reach.into_inner();
        let jobs = if shares_cores(found) { "whose ranks share cores" } else { "with a core for each rank" };
        let _ = writeln!(text, "What {} ranks took counts for {least} to {most}, in jobs {jobs}.\n", found.ranks);
    }
    text
}

#[cfg(test)]
mod tests {
    use shm_core::{Regime, Step};

    use super::*;
    use crate::rules::TreeRules;
    use crate::tune::{Candidate, Figures, Search, Times};

    /// A machine on which nothing is as the built-in table has it: cells of one kind win, a deep release tree, and lines
    /// over trees.
    struct Odd;

    const ODD: (u32, u32) = (64, 16 << 10);

    /// Whether it has these cells, of those that mean something.
    fn is_odd(what: Collective, band: &Band) -> bool {
        let up = what == Collective::Broadcast || (band.up_cells, band.up_cell) == ODD;
        let down = what == Collective::Reduce || (band.down_cells, band.down_cell) == ODD;
        band.regime() == Some(Regime::Cells) && up && down
    }

    impl Times for Odd {
        fn times(&mut self, what: Collective, _: usize, candidates: &[Candidate]) -> Result<Vec<Figures>, Error> {
            let odd = |candidate: &Candidate| match what {
                Collective::Barrier => !candidate.flat,
                _ => is_odd(what, &candidate.band) || candidate.trees.to_string().starts_with("release: kary:4"),
            };
            let time = |candidate| if odd(candidate) { 1.0 } else { 2.0 };
            Ok(candidates.iter().map(|candidate| Figures { blocks: vec![time(candidate); 5] }).collect())
        }
    }

    fn odd(ranks: usize, crowd: u32) -> Findings {
        let mut effort = Effort::usual();
        effort.strict = false;
        Search { effort: &effort, ranks, crowd, times: Odd }.run().unwrap()
    }

    /// The table of findings, once written and read.
    fn table(findings: &[Findings]) -> Table {
        let table = table_of(Fingerprint::of_this_machine(), findings).unwrap();
        let back = Table::from_toml(&table.to_toml()).unwrap();
        let whom =
            |rule: &Rule| (rule.collective(), rule.ranks(), rule.crowd(), rule.direct_from(), rule.bands().len());
        assert!(back.rules.iter().map(whom).eq(table.rules.iter().map(whom)), "{:?}", back.rules);
        assert_eq!(Table::from_toml(&back.to_toml()).unwrap(), back);
        assert_eq!(back.trees, table.trees);
        assert_eq!((back.flat_ranks, back.flat_ranks_crowded), (table.flat_ranks, table.flat_ranks_crowded));
        back
    }

    fn release_tree(rules: &TreeRules, size: usize, crowd: u32) -> String {
        let rules = rules.clone().on_crowd(crowd);
        rules.tree(Step::Release, size, rules.class(Step::Release, size, 100)).to_string()
    }

    const SEARCHED: [Collective; 3] = [Collective::Broadcast, Collective::Reduce, Collective::Allreduce];

    /// What a table says where `found` counts is what was found, and elsewhere what the built-in table says.
    fn check_reach(found: Findings, reach: RangeInclusive<usize>) {
        let crowded = found.crowd > 1;
        let table = table(std::slice::from_ref(&found));
        let (tuning, usual) = (table.tuning().unwrap(), Tuning::default());
        for (size, crowd) in (1..=256).flat_map(|size| [(size, 1), (size, 2), (size, 7)]) {
            let (chosen, built_in) = (tuning.select(size, crowd), usual.select(size, crowd));
            let counts = reach.contains(&size) && (crowd > 1) == crowded;
            for what in SEARCHED {
                let odd = chosen.bands(what).iter().any(|band| is_odd(what, band));
                assert_eq!(odd, counts, "{what} on {size} ranks, {crowd} a core");
                if !counts {
                    assert_eq!(chosen.bands(what), built_in.bands(what));
                    assert_eq!(chosen.direct_from(what), built_in.direct_from(what));
                }
            }
            let tree = if counts { "kary:4".to_owned() } else { release_tree(&TreeRules::default(), size, crowd) };
            assert_eq!(release_tree(&table.trees, size, crowd), tree, "{size} ranks, {crowd} a core");
            if (crowd > 1) != crowded {
                assert_eq!(chosen, built_in, "{size} ranks, {crowd} a core");
            }
        }
        // Lines were found to lose where they are flat: in jobs of this kind.
        let flat = [table.flat_ranks, table.flat_ranks_crowded];
        assert_eq!(flat, if crowded { [32, *reach.start() as u32 - 1] } else { [*reach.start() as u32 - 1, 32] });
    }

    #[test]
    fn what_is_found_with_a_core_for_each_rank_says_nothing_of_ranks_that_share_cores() {
        check_reach(odd(8, 1), 5..=10);
        check_reach(odd(16, 1), 9..=20);
    }

    #[test]
    fn what_is_found_where_ranks_share_cores_says_nothing_of_others() {
        check_reach(odd(8, 4), 5..=10);
        check_reach(odd(4, 2), 3..=5);
    }

    #[test]
    fn findings_count_for_numbers_near_those_that_were_measured() {
        let reach = |jobs: &[(usize, u32)]| {
            let one = odd(2, 1);
            let findings: Vec<Findings> =
                jobs.iter().map(|&(ranks, crowd)| Findings { ranks, crowd, ..one.clone() }).collect();
            reaches(&findings)
        };
        assert_eq!(reach(&[(2, 1), (4, 2), (8, 4)]), [2..=2, 3..=4, 5..=10]);
        assert_eq!(reach(&[(2, 1), (4, 1), (8, 2)]), [2..=2, 3..=5, 5..=10]);
        assert_eq!(reach(&[(2, 1), (4, 1), (6, 1), (8, 2)]), [2..=2, 3..=4, 5..=7, 5..=10]);
        assert_eq!(reach(&[(2, 1), (4, 1), (8, 1), (64, 1)]), [2..=2, 3..=4, 5..=10, 33..=80]);
        assert_eq!(reach(&[(8, 1), (9, 1), (256, 1)]), [5..=8, 9..=11, 129..=256]);
        assert_eq!(reach(&[(1, 1), (3, 2)]), [1..=1, 2..=3]);
    }

    #[test]
    fn the_text_says_for_whom_a_finding_counts() {
        let text = explanation(&[odd(4, 1), odd(8, 2)]);
        for words in [
            "allreduce on 4 ranks, a core for each: microseconds",
            "What 4 ranks took counts for 3 to 5, in jobs with a core for each rank.",
            "allreduce on 8 ranks, 2 for each core: microseconds",
            "What 8 ranks took counts for 5 to 10, in jobs whose ranks share cores.",
            "trees: release(8 crowded): kary:4",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
    }

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
