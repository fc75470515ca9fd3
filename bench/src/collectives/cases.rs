//! What is measured: rank counts, sizes, cases.

use crate::command::{Collectives, TimingWish};
use crate::empty;
use crate::error::{Error, Result};
use crate::machine::{last_level_cache, usable_cores};
use crate::plan::{BufferMode, Case, Combine, Operation, Plan, Timing};
use crate::sizes::{compared_ladder, ladder, short_ladder};

/// The cold buffers of all ranks together take no more than this.
const MOST_COLD_BYTES: u64 = 1 << 30;

/// The rank counts that are asked for.
pub fn rank_counts(options: &Collectives) -> Vec<usize> {
    match (options.ranks.as_slice(), options.quick) {
        ([], true) => vec![2, 8],
        ([], false) => {
            let mut counts = vec![usable_cores().len().max(2)];
            counts.extend(options.compares().then_some(8));
            counts.sort_unstable();
            counts.dedup();
            counts
        }
        (given, _) => given.to_vec(),
    }
}

/// Refuses roots and late ranks that there are not, and sizes the wrong way round.
pub fn check_ranks(options: &Collectives, ranks: usize) -> Result<()> {
    if options.root >= ranks {
        return Err(Error::Usage(format!("root {} of {ranks} ranks: roots are 0 to {}", options.root, ranks - 1)));
    }
    match options.late.iter().find(|late| late.rank >= ranks) {
        Some(late) => {
            Err(Error::Usage(format!("late rank {} of {ranks} ranks: ranks are 0 to {}", late.rank, ranks - 1)))
        }
        None if options.min > options.max => Err(Error::Usage("--min is larger than --max".into())),
        None => Ok(()),
    }
}

/// The message sizes of a run with `ranks` ranks.
fn sizes(options: &Collectives, ranks: usize) -> Vec<u64> {
    let crowded = ranks > usable_cores().len();
    match options {
        _ if !options.sizes.is_empty() => options.sizes.clone(),
        _ if options.quick || (options.compares() && crowded) => short_ladder(options.min, options.max),
        _ if options.compares() => compared_ladder(options.min, options.max),
        _ => ladder(options.min, options.max),
    }
}

/// The cases of a run with `ranks` ranks. A barrier has no buffers: it is one case, measured as with warm ones. The
/// empty call comes last, where a call is timed alone.
fn cases(options: &Collectives, ranks: usize) -> Vec<Case> {
    let asked = |operation: &Operation| match options.collectives.is_empty() {
        true => Operation::USUAL.contains(operation),
        false => options.collectives.contains(operation),
    };
    let sizes = sizes(options, ranks);
    let mut cases = Vec::new();
    for operation in Operation::ALL.iter().copied().filter(asked) {
        let modes = if operation.has_bytes() { options.buffer_modes() } else { vec![BufferMode::Warm] };
        for mode in modes.into_iter().filter(|mode| mode.serves(operation)) {
            let case = |bytes: u64| {
                let element = options.element.fitting(bytes);
                Case {
                    operation,
                    buffers: mode,
                    timing: timing(options, operation, mode),
                    element,
                    bytes: bytes / element.bytes() * element.bytes(),
                    root: options.root,
                    blocks: options.repetitions as usize,
                    block: options.block(),
                }
            };
            match operation {
                operation if !operation.has_bytes() => cases.push(case(0)),
                _ => cases.extend(sizes.iter().map(|&bytes| case(bytes))),
            }
        }
    }
    cases.extend(empty::beside(&cases));
    cases
}

fn timing(options: &Collectives, operation: Operation, mode: BufferMode) -> Timing {
    match (options.timing, mode) {
        _ if operation == Operation::Empty => Timing::Each,
        (_, mode) if options.steps && mode.is_rewritten() && operation.has_bytes() => Timing::Step,
        _ if options.reads && operation.has_bytes() => Timing::Loaded,
        _ if !options.late.is_empty() => Timing::Each,
        (_, mode) if mode.is_rewritten() => Timing::Each,
        (TimingWish::Each, _) | (TimingWish::Auto, BufferMode::Cold) => Timing::Each,
        (TimingWish::Stream | TimingWish::Auto, _) => Timing::Stream,
    }
}

/// The plan for `ranks` ranks.
pub fn plan(options: &Collectives, ranks: usize) -> Plan {
    let cold = (2 * last_level_cache()).min(MOST_COLD_BYTES / 2) / ranks as u64;
    Plan {
        cold_bytes: cold,
        late: options.late.clone(),
        operator: Combine::Sum,
        calls: options.calls,
        cases: cases(options, ranks),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use clap::Parser;

    use super::*;
    use crate::command::{Cli, Command};
    use crate::plan::ElementType;

    pub fn options(words: &[&str]) -> Collectives {
        match Cli::try_parse_from(["bench", "collectives"].iter().chain(words)).unwrap().command {
            Command::Collectives(options) => *options,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_barrier_is_one_case_and_the_others_one_a_size_and_mode() {
        let cases = cases(&options(&["--max", "16"]), 2);
        assert_eq!(cases.iter().filter(|case| case.operation == Operation::Barrier).count(), 1);
        // Cold buffers are among them: calls that are timed alone.
        assert_eq!(cases.len(), 1 + 3 * 3 * 4 + 1);
        assert_eq!(cases.last().map(|case| (case.operation, case.timing)), Some((Operation::Empty, Timing::Each)));
        let four = cases.iter().find(|case| case.bytes == 4).unwrap();
        assert_eq!(four.element, ElementType::F32);
    }

    #[test]
    fn timing_follows_the_buffers_unless_said_otherwise() {
        let of = |words: &[&str], mode| timing(&options(words), Operation::Reduce, mode);
        assert_eq!(of(&[], BufferMode::Warm), Timing::Stream);
        assert_eq!(of(&[], BufferMode::Cold), Timing::Each);
        assert_eq!(of(&["--timing", "stream"], BufferMode::Cold), Timing::Stream);
        assert_eq!(of(&["--timing", "stream"], BufferMode::Rewritten), Timing::Each);
        assert_eq!(of(&["--late", "0:10"], BufferMode::Warm), Timing::Each);
        assert_eq!(of(&["--reads"], BufferMode::Warm), Timing::Loaded);
        assert_eq!(of(&["--steps"], BufferMode::Rewritten), Timing::Step);
        assert_eq!(of(&["--steps"], BufferMode::Warm), Timing::Stream);
    }

    #[test]
    fn sizes_that_the_element_does_not_divide_are_rounded_down() {
        assert!(cases(&options(&["--max", "1001"]), 2).iter().all(|case| case.bytes % case.element.bytes() == 0));
    }

    #[test]
    fn roots_and_late_ranks_must_exist() {
        assert!(check_ranks(&options(&["--root", "2"]), 2).unwrap_err().to_string().contains("0 to 1"));
        assert!(check_ranks(&options(&["--late", "5:10"]), 4).is_err());
        assert!(check_ranks(&options(&[]), 1).is_ok());
    }
}
