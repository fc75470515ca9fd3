//! What every collective does in shared memory, by each way that it can go, counted beside the formulas: what
//! `scripts/counts` runs.
//!
//! `counts [RANKS ..]`. Ends with 1 where a rank does something else than its formula says.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use shm_core::Error;
use shm_core::counts::Counts;
use shm_core::counts::cases::{CELL, Case};
use shm_core::counts::expected::expected;

fn main() -> Result<ExitCode, Error> {
    let given: Vec<usize> = std::env::args().skip(1).map(|text| text.parse().expect("a number of ranks")).collect();
    let ranks = if given.is_empty() { vec![2, 3, 4, 8, 16, 32, 64] } else { given };
    println!("One call, all ranks together / the busiest rank. Cells of {CELL} bytes. Root: rank 0.\n");
    print!("{:<15} {:<15} {:>6} {:>5}", "collective", "way", "bytes", "ranks");
    Counts::NAMES.iter().take(6).for_each(|name| print!(" {name:>15}"));
    println!(" {:>9}  formulas", "bytes/n");
    let (mut all, mut differing) = (0, 0);
    for case in Case::all() {
        for &ranks in ranks.iter().filter(|&&ranks| case.is_decided(ranks)) {
            let counted = case.count(ranks)?;
            let differences: Vec<String> = counted
                .iter()
                .enumerate()
                .flat_map(|(rank, counts)| {
                    let pairs = counts.values().into_iter().zip(expected(case, ranks, rank).values());
                    let differs = move |(name, (found, formula)): (&&str, (u64, u64))| {
                        (found != formula).then(|| format!("{name} of rank {rank}: {found}, formula {formula}"))
                    };
                    Counts::NAMES.iter().zip(pairs).filter_map(differs)
                })
                .collect();
            all += 1;
            differing += usize::from(!differences.is_empty());
            let [sum, most] = Counts::sum_and_most(&counted);
            print!("{:<15} {:<15} {:>6} {ranks:>5}", case.what.name(), case.way.name(), case.bytes());
            for (sum, most) in sum.values().into_iter().zip(most.values()).take(6) {
                print!(" {:>15}", format!("{sum} / {most}"));
            }
            let times = (sum.bytes_loaded + sum.bytes_stored) as f64 / case.bytes().max(1) as f64;
            let verdict = if differences.is_empty() { "equal".to_owned() } else { differences.join("; ") };
            println!(" {:>9}  {verdict}", format!("{times:.4}").trim_end_matches('0').trim_end_matches('.'));
        }
    }
    println!("\n{} of {all} as the formulas say", all - differing);
    Ok(ExitCode::from(u8::from(differing > 0)))
}
