//! What each rank should do in a call, by formula.
//!
//! A message of `n` bytes (for blocks: one block) is `lines` cache lines long and goes in `slices` slices; a share of
//! it in `rounds`. Each stamp of a cell has a line of its own, each rank one line for all its `done` words. Only rank
//! 0, the root, and the last rank of a scan differ from the others.

use super::Counts;
use super::cases::{CELL, Case, Way, What};
use crate::segment::layout::LINE;

/// What `rank` of `ranks` does in a call; as many ranks as divide its bytes into whole lines.
#[must_use]
pub fn expected(case: Case, ranks: usize, rank: usize) -> Counts {
    let (p, r, n) = (ranks as u64, rank as u64, case.bytes() as u64);
    let peers = p - 1;
    let is_root = rank == 0;
    match case.way {
        Way::Lines => in_lines(case.what, p, r, n),
        Way::Exchange => {
            let (lines, slices) = (n / LINE as u64, n.div_ceil(CELL as u64));
            Counts {
                stamps: slices,
                // One more for the position that nobody publishes at.
                dones: slices + 1,
                waits: slices * peers,
                lines_stored: lines + slices + slices + 1,
                lines_loaded: (lines + slices) * peers,
                bytes_loaded: n + p * n,
                bytes_stored: 2 * n,
                ..Counts::default()
            }
        }
        Way::DirectExchange => {
            let share = n / LINE as u64 / p;
            Counts {
                stamps: 2,
                dones: 2,
                waits: 2 * peers,
                lines_stored: p * share + 4,
                lines_loaded: p * share + 2 * peers,
                bytes_loaded: n,
                bytes_stored: n,
                ..Counts::default()
            }
        }
        Way::Cells => match case.what {
            What::Broadcast | What::Reduce | What::Allreduce => over_trees(case.what, p, is_root, n),
            _ => of_blocks(case.what, p, r, n),
        },
        Way::Shares => by_shares(case.what, p, is_root, n),
        Way::Direct => match case.what {
            What::Broadcast => {
                let lines = n / LINE as u64;
                match is_root {
                    true => Counts {
                        stamps: 1,
                        dones: 1,
                        done_waits: peers,
                        lines_stored: 2,
                        lines_loaded: peers,
                        ..Counts::default()
                    },
                    false => Counts {
                        dones: 1,
                        waits: 1,
                        lines_stored: lines + 1,
                        lines_loaded: lines + 1,
                        bytes_loaded: n,
                        bytes_stored: n,
                        ..Counts::default()
                    },
                }
            }
            What::Reduce | What::Allreduce => lent_to_shares(case.what, p, is_root, n),
            _ => lent_blocks(case.what, p, is_root, n),
        },
    }
}

/// The lines of a slot that hold `bytes` bytes of payload behind its stamp.
fn slot(bytes: u64) -> u64 {
    (8 + bytes).div_ceil(LINE as u64)
}

fn in_lines(what: What, p: u64, r: u64, n: u64) -> Counts {
    let (peers, is_root) = (p - 1, r == 0);
    // The lines of a row, and those that a reader of its part `part` loads: the stamp's, and the part's if that lies in
    // another.
    let row = slot(peers * n);
    let of_part = |part: u64| 1 + u64::from((8 + part * n) / LINE as u64 > 0);
    let part_in = |row_of: u64| r - u64::from(r > row_of);
    let parts = || (0..p).filter(|&from| from != r).map(part_in).map(of_part).sum::<u64>();
    let (loaded, stored) = match (what, is_root) {
        (What::Barrier, _) => (0, 0),
        (What::Broadcast, _) => (n, n),
        (What::Reduce, true) => (p * n, n),
        (What::Reduce, false) => (n, n),
        (What::Allreduce, _) => ((p + 1) * n, 2 * n),
        (What::Gather | What::Scatter, true) => (p * n, p * n),
        (What::Gather | What::Scatter, false) => (n, n),
        (What::Allgather, _) => ((p + 1) * n, (p + 1) * n),
        (What::Alltoall, _) => ((2 * p - 1) * n, (2 * p - 1) * n),
        (What::ReduceScatter, _) => ((2 * p - 1) * n, p * n),
        (What::Scan | What::LongScan, _) => {
            let (published, folded) = (u64::from(r < peers), r + 1);
            ((published + folded) * n, (published + 1) * n)
        }
    };
    let publishes = match what {
        What::Broadcast | What::Scatter => is_root,
        What::Reduce | What::Gather => !is_root,
        What::Scan | What::LongScan => r < peers,
        _ => true,
    };
    let sources = match what {
        What::Broadcast | What::Scatter => u64::from(!is_root),
        What::Reduce | What::Gather => peers * u64::from(is_root),
        What::Scan | What::LongScan => r,
        _ => peers,
    };
    Counts {
        stamps: u64::from(publishes),
        dones: 1,
        waits: sources,
        done_waits: 0,
        lines_stored: 1 + u64::from(publishes) * if what.has_rows() { row } else { slot(n) },
        lines_loaded: match what {
            What::Scatter => sources * of_part(part_in(0)),
            _ if what.has_rows() => parts(),
            _ => sources * slot(n),
        },
        bytes_loaded: loaded,
        bytes_stored: stored,
    }
}

fn over_trees(what: What, p: u64, is_root: bool, n: u64) -> Counts {
    let (peers, lines, slices) = (p - 1, n / LINE as u64, n.div_ceil(CELL as u64));
    // A cell and its stamp, of all slices; the words that say that all was read.
    let message = lines + slices;
    // Of who sends: a leaf on the way up, the root on the way down. It reads nothing, and says so once.
    let published = Counts {
        stamps: slices,
        dones: 1,
        lines_stored: message + 1,
        bytes_loaded: n,
        bytes_stored: n,
        ..Counts::default()
    };
    let up = match is_root {
        true => Counts {
            dones: slices,
            waits: slices * peers,
            lines_stored: slices,
            lines_loaded: message * peers,
            bytes_loaded: p * n,
            bytes_stored: n,
            ..Counts::default()
        },
        false => published,
    };
    let down = match is_root {
        true => published,
        false => Counts {
            dones: slices,
            waits: slices,
            lines_stored: slices,
            lines_loaded: message,
            bytes_loaded: n,
            bytes_stored: n,
            ..Counts::default()
        },
    };
    // Of two ranks either might have lent its buffer: who takes looks for that first, and nobody answers.
    let look = |takes: bool| Counts {
        dones: u64::from(p == 2),
        waits: u64::from(p == 2 && takes),
        lines_stored: u64::from(p == 2),
        ..Counts::default()
    };
    let parts = match what {
        What::Broadcast => [down, look(!is_root)],
        What::Reduce => [up, look(is_root)],
        _ => [up, down],
    };
    Counts::sum_and_most(&parts)[0]
}

/// The lines of a share, and the rounds that it takes, of `p` shares of `n` bytes.
fn share(p: u64, n: u64) -> (u64, u64) {
    (n / p / LINE as u64, (n / p).div_ceil(CELL as u64))
}

fn by_shares(what: What, p: u64, is_root: bool, n: u64) -> Counts {
    let (peers, (lines, rounds)) = (p - 1, share(p, n));
    // One slice of all rounds, in cells: its payload and its stamps.
    let one = lines + rounds;
    let publishes_down = what == What::Allreduce || !is_root;
    let takes = what == What::Allreduce || is_root;
    let (down, taken) = (u64::from(publishes_down), u64::from(takes));
    let dones = rounds + taken * rounds + 2;
    Counts {
        stamps: rounds * peers + down * rounds,
        dones,
        waits: rounds * peers * (1 + taken),
        done_waits: 0,
        lines_stored: one * peers + down * one + dones,
        lines_loaded: one * peers * (1 + taken),
        bytes_loaded: (n / p) * (peers + p + taken * peers),
        // What is folded goes to the own buffer where it is kept, and to the cell for those who take it.
        bytes_stored: (n / p) * (peers + taken + down + taken * peers),
    }
}

fn lent_to_shares(what: What, p: u64, is_root: bool, n: u64) -> Counts {
    let (peers, (lines, rounds)) = (p - 1, share(p, n));
    let takes = what == What::Allreduce || is_root;
    let (taken, serves) = (u64::from(takes), what == What::Allreduce || !is_root);
    // Who takes has said so before the first of several rounds, and says so after the last; but a root that the other
    // one of two ranks may go on without says so of the last alone.
    let before = u64::from(rounds > 1 && !(p == 2 && what == What::Reduce));
    let dones = taken * (before + 1) + 2;
    let stamps = peers + u64::from(serves);
    // Who takes nothing waits until all have read what it lent; the others know it.
    let done_waits = if takes { 0 } else { peers };
    let places = if what == What::Allreduce { p } else { 1 };
    Counts {
        stamps,
        dones,
        waits: peers * (1 + taken),
        done_waits,
        lines_stored: stamps + lines * places + dones,
        lines_loaded: peers * (1 + taken) + lines * p + done_waits,
        bytes_loaded: n,
        bytes_stored: n / p * places,
    }
}

/// The slices of a block of `n` bytes of which `parts` lie in a cell.
fn slices_of_blocks(parts: u64, n: u64) -> u64 {
    let (cell, line) = (CELL as u64, LINE as u64);
    n.div_ceil(if parts == 1 { cell } else { cell / parts / line * line })
}

fn of_blocks(what: What, p: u64, r: u64, n: u64) -> Counts {
    let (peers, lines) = (p - 1, n / LINE as u64);
    let slices = slices_of_blocks(if what.has_rows() { peers } else { 1 }, n);
    let chain = what == What::LongScan && p > 2;
    let shape = in_lines(what, p, r, n);
    let (publishes, sources) = match chain {
        true => (u64::from(r < peers), u64::from(r > 0)),
        false => (shape.stamps, shape.waits),
    };
    let stored = if what.has_rows() { peers * lines } else { lines };
    // Who reads nothing says so once.
    let dones = if sources > 0 { slices } else { 1 };
    let (bytes_loaded, bytes_stored) = match chain {
        true => (2 * n, (publishes + 1) * n),
        false => (shape.bytes_loaded, shape.bytes_stored),
    };
    Counts {
        stamps: slices * publishes,
        dones,
        waits: slices * sources,
        done_waits: 0,
        lines_stored: publishes * (stored + slices) + dones,
        lines_loaded: sources * (lines + slices),
        bytes_loaded,
        bytes_stored,
    }
}

fn lent_blocks(what: What, p: u64, is_root: bool, n: u64) -> Counts {
    let (peers, lines) = (p - 1, n / LINE as u64);
    let (publishes, sources, readers) = match what {
        What::Gather => (!is_root, if is_root { peers } else { 0 }, 1),
        What::Scatter => (is_root, if is_root { 0 } else { 1 }, peers),
        _ => (true, peers, peers),
    };
    let (stamps, dones) = (u64::from(publishes), 1);
    let done_waits = stamps * readers;
    // The blocks that it gets, the own one among them unless it has none.
    let has_own = u64::from(!matches!(what, What::Gather | What::Scatter) || is_root);
    let (blocks, results) = match what {
        What::ReduceScatter => (p, 1),
        _ => (sources + has_own, sources + has_own),
    };
    Counts {
        stamps,
        dones,
        waits: sources,
        done_waits,
        lines_stored: stamps + dones + results * lines,
        lines_loaded: sources + blocks * lines + done_waits,
        bytes_loaded: blocks * n,
        bytes_stored: results * n,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every rank does what the formulas say, in every way.
    #[test]
    fn calls_do_what_the_formulas_say() {
        for ranks in [2, 3, 4, 6, 8] {
            for case in Case::all().into_iter().filter(|case| case.is_decided(ranks)) {
                for (rank, counted) in case.count(ranks).unwrap().into_iter().enumerate() {
                    let (what, way) = (case.what.name(), case.way.name());
                    assert_eq!(counted, expected(case, ranks, rank), "{what} by {way} on rank {rank} of {ranks}");
                }
            }
        }
    }

    /// The bytes of all ranks are those of the fold-in row.
    #[test]
    fn bytes_of_all_ranks_are_those_of_the_closed_forms() {
        for p in [2, 3, 4, 8, 16, 32, 64] {
            let moved = |what, way| {
                let case = Case { what, way };
                let all: Vec<Counts> = (0..p).map(|rank| expected(case, p, rank)).collect();
                let sum = Counts::sum_and_most(&all)[0];
                (sum.bytes_loaded + sum.bytes_stored) as usize * p / case.bytes()
            };
            for (what, way, times) in [
                (What::Reduce, Way::Cells, (3 * p - 1) * p),
                (What::Allreduce, Way::Cells, (5 * p - 1) * p),
                (What::Broadcast, Way::Cells, 2 * p * p),
                (What::Allreduce, Way::Exchange, p * (p + 3) * p),
                (What::Allreduce, Way::Shares, (5 * p - 2) * p),
                (What::Reduce, Way::Shares, (3 * p - 1) * p + 2 * (p - 1)),
                (What::Allreduce, Way::Direct, 2 * p * p),
                (What::Allreduce, Way::DirectExchange, 2 * p * p),
                (What::Reduce, Way::Direct, (p + 1) * p),
                (What::Broadcast, Way::Direct, 2 * (p - 1) * p),
                (What::Gather, Way::Cells, (4 * p - 2) * p),
                (What::Scatter, Way::Cells, (4 * p - 2) * p),
                (What::Allgather, Way::Cells, 2 * p * (p + 1) * p),
                (What::Alltoall, Way::Cells, p * (4 * p - 2) * p),
                (What::ReduceScatter, Way::Cells, p * (3 * p - 1) * p),
                (What::LongScan, Way::Cells, (4 * p - 1) * p),
            ] {
                assert_eq!(moved(what, way), times, "{} by {} on {p}", what.name(), way.name());
            }
        }
    }
}
