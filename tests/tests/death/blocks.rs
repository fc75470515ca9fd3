//! Ends in the calls on blocks and prefixes, in exchanges, and in what two ranks do a half each. When the victim ends,
//! and how, and who of how many it is, is drawn by the seed of the run; so is, of many cases, which third is tried.

use std::ops::Range;

use phalanx_tests::random::{Random, mixed, seed_of_run};

use crate::job::{HOWS, dies_under, leaves};
use crate::{SUDDEN, launcher_dies};

/// The calls on blocks and prefixes; `-to` the victim, or from it else.
const CALLS: [&str; 19] = [
    "gather",
    "gather-to",
    "gatherv",
    "gatherv-to",
    "scatter",
    "scatter-to",
    "scatterv",
    "scatterv-to",
    "allgather",
    "allgatherv",
    "alltoall",
    "alltoallv",
    "reduce-scatter-block",
    "reduce-scatter",
    "scan",
    "exscan",
    "allgather-in-place",
    "alltoall-in-place",
    "scan-in-place",
];

/// The ways that each of them goes: how long blocks are and where they lie, and by which rules. By lines; through cells
/// in one slice, and in so many that every ring goes round; where they lie, read by loads or by the kernel.
const WAYS: [(&str, &str); 7] = [
    ("line:private", "all:auto"),
    ("line:shared", "broadcast:line"),
    ("slice:private", "broadcast:cells;all:reach_from=never"),
    ("slice:shared", "broadcast:cells"),
    ("long:private", "broadcast:cells;all:cell=8K,cells=3,reach_from=never"),
    ("long:shared", "broadcast:cells"),
    ("long:private", "broadcast:cells;all:reach_from=1"),
];

/// All calls in all ways, by what `dying_rank` calls them, and by which rules.
fn cases() -> impl Iterator<Item = (&'static str, String, &'static str)> {
    let ways = |call| WAYS.into_iter().map(move |(lying, rules)| (call, format!("{call}:{lying}"), rules));
    CALLS.into_iter().flat_map(ways)
}

/// The ranks that combine in a call, whoever comes first.
fn combiners(call: &str, ranks: usize) -> Range<usize> {
    match call {
        "allreduce" | "reduce-scatter-block" | "reduce-scatter" => 0..ranks,
        "scan" | "scan-in-place" => 1..ranks,
        // Of two values at least; along a chain the last one takes what comes.
        "exscan" => 2..(ranks - 1).max(2),
        _ => 0..0,
    }
}

/// Lets a rank end: before the call that the others are in, amid it at some moment, or inside of it, as it combines, if
/// there are any who do.
fn somebody_dies(random: &mut Random, (place, rules): (&str, &str), ranks: usize, combiners: &Range<usize>) {
    let anybody = random.below(ranks);
    let (when, how, victim) = match random.below(if combiners.is_empty() { 2 } else { 3 }) {
        0 => ("", *random.pick(&HOWS), anybody),
        1 => ("amid:", HOWS[*random.pick(&SUDDEN)], anybody),
        _ => {
            let hows: Vec<_> = HOWS.into_iter().filter(|how| !leaves(how.0)).collect();
            ("inside:", *random.pick(&hows), combiners.start + random.below(combiners.len()))
        }
    };
    dies_under(rules, how, &format!("{when}{place}"), ranks, victim);
}

/// What the case of this number is drawn from.
fn drawn(seed: u64, at: usize) -> Random {
    Random::new(mixed(seed ^ (at as u64) << 32))
}

#[test]
fn processes_that_end_in_calls_on_blocks() {
    let seed = seed_of_run();
    println!("seed {seed}");
    for (at, (call, place, rules)) in cases().enumerate() {
        // Three seeds that follow each other try all.
        if (at as u64 + seed % 3).is_multiple_of(3) {
            let mut random = drawn(seed, at);
            let ranks = *random.pick(&[2, 3, 5]);
            somebody_dies(&mut random, (&place, rules), ranks, &combiners(call, ranks));
        }
    }
}

/// Allreduces by exchange: each rank folds a share where all buffers can be reached by loads, else all of what is lent,
/// or of what lies in cells, those of two ranks in turn; and whether those who combine surely have something to.
const EXCHANGES: [(&str, &str, bool); 7] = [
    ("allreduce:long:shared", "allreduce:exchange", true),
    ("allreduce:line:shared", "allreduce:exchange", false),
    ("allreduce:long:mixed", "allreduce:exchange", true),
    ("allreduce:long:private", "allreduce:exchange;all:reach_from=1", true),
    ("allreduce:long:private", "allreduce:exchange;all:reach_from=never", true),
    ("allreduce:slice:private", "allreduce:exchange,cell=64K;all:reach_from=never", true),
    ("allreduce:line:private", "allreduce:exchange", true),
];

#[test]
fn processes_that_end_in_exchanges() {
    let seed = seed_of_run();
    println!("seed {seed}");
    for (at, (place, rules, all_combine)) in EXCHANGES.into_iter().enumerate() {
        let mut random = drawn(!seed, at);
        for ranks in [2, *random.pick(&[3, 5])] {
            let combiners = if all_combine { combiners("allreduce", ranks) } else { 0..0 };
            somebody_dies(&mut random, (place, rules), ranks, &combiners);
        }
    }
}

/// What two ranks do together, with buffers that each reaches, or that only the giver's can be: the victim gives, or
/// takes (`-to`). With it whether it surely combines, sooner or later.
const HALVES: [(&str, &str, bool); 14] = [
    ("broadcast:long:shared", "broadcast:cells", false),
    ("broadcast-to:long:shared", "broadcast:cells", false),
    ("broadcast:slice:shared", "broadcast:cells,cell=64K", false),
    ("broadcast-to:slice:shared", "broadcast:cells,cell=64K", false),
    ("broadcast:long:mixed", "broadcast:cells", false),
    ("broadcast-to:long:mixed", "broadcast:cells", false),
    ("broadcast-to:long:private", "broadcast:cells;all:reach_from=1", false),
    ("reduce:long:shared", "reduce:cells", true),
    ("reduce-to:long:shared", "reduce:cells", true),
    // The other one is through with a slice before this one wakes.
    ("reduce:slice:shared", "reduce:cells,cell=64K", false),
    ("reduce-to:slice:shared", "reduce:cells,cell=64K", true),
    ("reduce:long:mixed", "reduce:cells", false),
    ("reduce-to:long:mixed", "reduce:cells", true),
    ("reduce-to:long:private", "reduce:cells;all:reach_from=1", true),
];

#[test]
fn one_of_two_processes_that_do_a_half_each() {
    let seed = seed_of_run();
    println!("seed {seed}");
    for (at, (place, rules, combines)) in HALVES.into_iter().enumerate() {
        let mut random = drawn(seed.rotate_left(7), at);
        somebody_dies(&mut random, (place, rules), 2, &if combines { 0..2 } else { 0..0 });
    }
}

/// What goes by relays: the victim is their head, or, of a reduction, may be any other (without `-to`). With it how many
/// ranks surely combine, from the first on.
const RELAYS: [(&str, usize); 6] = [
    ("reduce:long:private", 0),
    ("reduce-to:long:private", 1),
    ("reduce:long:mixed", 0),
    ("reduce-to:long:mixed", 1),
    ("allreduce:long:private", 1),
    ("allreduce:long:mixed", 1),
];

#[test]
fn processes_that_end_in_relays() {
    let seed = seed_of_run();
    println!("seed {seed}");
    let rules = "all:cells,cell=8K,cells=3,reach_from=never over gather: relay:crowd";
    for (at, (place, combine)) in RELAYS.into_iter().enumerate() {
        let mut random = drawn(seed.rotate_left(13), at);
        for _ in 0..2 {
            let ranks = *random.pick(&[3, 5, 7]);
            somebody_dies(&mut random, (place, rules), ranks, &(0..combine));
        }
    }
}

#[test]
fn a_launcher_that_is_killed_amid_calls_on_blocks() {
    let seed = seed_of_run();
    println!("seed {seed}");
    let exchanges = EXCHANGES.into_iter().chain(HALVES).map(|(place, rules, _)| (place.to_owned(), rules));
    let all: Vec<_> = cases().map(|(_, place, rules)| (place, rules)).chain(exchanges).collect();
    let mut random = drawn(seed.rotate_left(11), 0);
    for turn in 0..8 {
        let (place, rules) = random.pick(&all);
        launcher_dies(place, rules, 2 + turn % 3);
    }
}
