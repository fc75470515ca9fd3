//! `bench bytes`: what is loaded and stored, counted, beside the formulas. No times.

use std::time::Duration;

use crate::command::Bytes;
use crate::error::{Error, Result};
use crate::out::{say, show};
use crate::plan::{BufferMode, Case, ElementType, Operation, Plan, Timing};
use crate::progress::Progress;
use crate::runs::{Binding, Order, ours};
use crate::samples::{CaseSamples, Count};
use crate::scratch::Scratch;
use crate::sizes::show_size;
use crate::table::Table;

/// What is counted; the last has no form in which ranks share the work.
const OPERATIONS: [Operation; 3] = [Operation::Reduce, Operation::Allreduce, Operation::Broadcast];
/// What moves blocks; the message is one block.
const OF_BLOCKS: [Operation; 6] = [
    Operation::Gather,
    Operation::Scatter,
    Operation::Allgather,
    Operation::Alltoall,
    Operation::ReduceScatter,
    Operation::Scan,
];
/// Blocks from which on a scan of more than two ranks goes along a chain: those of several slices.
const CHAIN: u64 = 256 << 10;
const LIMIT: Duration = Duration::from_secs(120);

/// Bytes loaded and stored by all of `ranks` ranks, as a multiple of the message, when every
/// operand is folded where it first arrives.
///
/// Reduce: every rank but the root publishes its operand (a load and a store), somebody reads each of them once and
/// folds it into an operand of its own (two loads and a store), of which the fold at the root goes straight into the
/// user's buffer. Allreduce adds the way back, on which a leader of a share stores its result twice from one register,
/// where a root of a tree copies it. An exchange: every rank publishes its operand and folds all of them, its own from
/// the user's buffer, into the user's buffer.
///
/// Direct: operands are folded where they lie, and the result is stored where it is wanted; of a
/// broadcast every rank but the root copies the message once.
///
/// Blocks: each block that travels is copied into a cell and out of it by each rank that wants it, the own one from
/// buffer to buffer. A reduce-scatter folds the p contributions to a rank's block where they arrive. A long scan goes
/// along a chain: a rank folds what arrives into its result, and hands that on.
pub fn expected(regime: &str, operation: Operation, ranks: u64) -> u64 {
    match (regime, operation) {
        (_, Operation::Gather | Operation::Scatter) => 4 * ranks - 2,
        (_, Operation::Allgather) => 2 * ranks * (ranks + 1),
        (_, Operation::Alltoall) => ranks * (4 * ranks - 2),
        (_, Operation::ReduceScatter) => ranks * (3 * ranks - 1),
        (_, Operation::Scan) => 4 * ranks - 1,
        (_, Operation::Barrier | Operation::Empty) => 0,
        ("direct", Operation::Broadcast) => 2 * (ranks - 1),
        ("direct", Operation::Reduce) => ranks + 1,
        ("direct", Operation::Allreduce) => 2 * ranks,
        (_, Operation::Broadcast) => 2 * ranks,
        (_, Operation::Reduce) => 3 * ranks - 1,
        ("shares", Operation::Allreduce) => 5 * ranks - 2,
        ("exchange", Operation::Allreduce) => ranks * (ranks + 3),
        (_, Operation::Allreduce) => 5 * ranks - 1,
    }
}

/// The formulas of a regime, for people.
fn formulas(regime: &str) -> &'static str {
    match regime {
        "direct" => "reduce p+1, allreduce 2p, broadcast 2p-2",
        "shares" => "reduce 3p-1, allreduce 5p-2",
        "exchange" => "allreduce p(p+3)",
        "blocks" => "gather, scatter 4p-2, allgather 2p(p+1), alltoall p(4p-2), reduce-scatter p(3p-1), scan 4p-1",
        _ => "reduce 3p-1, allreduce 5p-1, broadcast 2p",
    }
}

/// Runs the command: one table, and an error when a count differs.
pub fn run(options: &Bytes) -> Result<()> {
    if options.size == 0 || !options.size.is_multiple_of(8) {
        return Err(Error::Usage(format!("{} bytes: a whole number of f64 is needed", options.size)));
    }
    if options.ranks.contains(&1) {
        let why = "a rank alone hands nothing on, and the formulas are those of 2 ranks and more";
        return Err(Error::Usage(format!("-n 1: {why}; try -n 2")));
    }
    if options.regime == "blocks" && options.size < CHAIN {
        let (size, least) = (show_size(options.size), show_size(CHAIN));
        return Err(Error::Usage(format!(
            "{size}: blocks are counted from {least} on, where a scan goes along a chain"
        )));
    }
    let ranks = if options.ranks.is_empty() { (2..=16).collect() } else { options.ranks.clone() };
    let scratch = Scratch::new()?;
    let operations = match options.regime.as_str() {
        "shares" => &OPERATIONS[..2],
        "exchange" => &[Operation::Allreduce],
        "blocks" => &OF_BLOCKS[..],
        _ => &OPERATIONS[..],
    };
    let all = ranks.len() * operations.len();
    let progress = Progress::new(all);
    let mut table = Table::new(&[
        "ranks",
        "collective<",
        "loaded / n",
        "stored / n",
        "sum / n",
        "formula",
        "difference<",
        "algorithm<",
    ]);
    let mut differences = 0;
    for &ranks in &ranks {
        for &operation in operations {
            progress.stage(format!("{operation} with {ranks} ranks"));
            let samples = count(operation, ranks, options, &scratch, &progress)?;
            let calls = samples.counts.first().map_or(0, |count| count.calls);
            if calls == 0 {
                let detail = "nothing was counted".into();
                return Err(Error::Run { series: ours::NAME.into(), ranks, detail });
            }
            let n = options.size as f64;
            let per_call =
                |field: fn(&Count) -> u64| samples.counts.iter().map(field).sum::<u64>() as f64 / calls as f64;
            let (loaded, stored) = (per_call(|count| count.loaded), per_call(|count| count.stored));
            let formula = expected(&options.regime, operation, ranks as u64);
            let difference = loaded + stored - formula as f64 * n;
            differences += usize::from(difference != 0.0);
            table.row(vec![
                ranks.to_string(),
                operation.to_string(),
                format!("{:.4}", loaded / n),
                format!("{:.4}", stored / n),
                format!("{:.4}", (loaded + stored) / n),
                formula.to_string(),
                if difference == 0.0 { "equal".into() } else { format!("{difference:+.0} bytes") },
                samples.choice.map(|(_, algorithm)| algorithm).unwrap_or_default(),
            ]);
        }
    }
    progress.finish();
    say!("bytes loaded and stored by all ranks in one call, n = {} of f64\n", show_size(options.size))?;
    show(table.render())?;
    say!("\nformulas: {}; {} of {all} equal", formulas(&options.regime), all - differences)?;
    if differences == 0 { Ok(()) } else { Err(Error::Counts { differences, all }) }
}

/// One run of a few calls.
fn count(
    operation: Operation,
    ranks: usize,
    options: &Bytes,
    scratch: &Scratch,
    progress: &Progress,
) -> Result<CaseSamples> {
    let direct = options.regime == "direct";
    let case = Case {
        operation,
        buffers: if direct { BufferMode::Shared } else { BufferMode::Warm },
        timing: Timing::Each,
        element: ElementType::F64,
        bytes: options.size,
        root: 0,
        blocks: 1,
        block: Duration::from_micros(1),
    };
    let plan = Plan { cases: vec![case], ..Plan::default() };
    let order = Order { plan: &plan, ranks, binding: Binding::Auto.resolve(ranks), limit: LIMIT };
    let regime = match operation {
        Operation::Broadcast if direct => "cells",
        _ if direct => "shares",
        _ => &options.regime,
    };
    // Nothing past the cells: what is read by kernel-assisted copies is not what is counted here.
    let algorithm = match OF_BLOCKS.contains(&operation) {
        true => "all:direct_from=1,direct=always,reach_from=never".to_owned(),
        false => format!("{operation}:{regime};all:direct_from=1,direct=always,reach_from=never"),
    };
    ours::run(&order, Some(&algorithm), scratch, progress)?.into_single()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_formulas_of_the_fold_in_row() {
        let all = |ranks| OPERATIONS.map(|operation| expected("cells", operation, ranks));
        assert_eq!(all(2), [5, 9, 4]);
        assert_eq!(all(16), [47, 79, 32]);
        assert_eq!([2, 4].map(|ranks| expected("exchange", Operation::Allreduce, ranks)), [10, 28]);
        let of_blocks = |ranks| OF_BLOCKS.map(|operation| expected("blocks", operation, ranks));
        assert_eq!(of_blocks(2), [6, 6, 12, 12, 10, 7]);
        assert_eq!(of_blocks(4), [14, 14, 40, 56, 44, 15]);
    }
}
