//! Operators that take several elements for one: no group is parted, by nodes, leaders or segments.

use std::num::NonZeroUsize;

use hier::operator::Operator;

use crate::{BEHAVIOURS, PLACEMENTS, cluster};

/// Products of polynomials modulo `x^group - 1`, in vectors of their coefficients: each number of a group goes into all
/// of them, and the order of factors into none.
#[derive(Clone, Copy)]
struct Polynomials {
    group: usize,
    commutative: bool,
}

impl Polynomials {
    fn product(self, left: &[u64], right: &[u64]) -> Vec<u64> {
        let mut product = vec![0_u64; self.group];
        for (i, a) in left.iter().enumerate() {
            for (j, b) in right.iter().enumerate() {
                let at = (i + j) % self.group;
                product[at] = product[at].wrapping_add(a.wrapping_mul(*b));
            }
        }
        product
    }
}

// SAFETY: all elements of the result are written.
unsafe impl Operator<u64> for Polynomials {
    fn is_commutative(&self) -> bool {
        self.commutative
    }

    fn code(&self) -> u8 {
        0x70
    }

    fn group(&self) -> NonZeroUsize {
        NonZeroUsize::new(self.group).unwrap()
    }

    unsafe fn fold(&self, dst: *mut u64, operands: &[*const u64], n: usize) {
        assert_eq!(n % self.group, 0, "whole groups");
        for at in (0..n).step_by(self.group) {
            // SAFETY: by contract so many elements are there.
            let group = |from: *const u64| unsafe { std::slice::from_raw_parts(from.wrapping_add(at), self.group) };
            let first = group(operands[0]).to_vec();
            let made = operands[1..].iter().fold(first, |made, &operand| self.product(&made, group(operand)));
            // SAFETY: by contract so many may be written; an operand that lies there is not read any more.
            unsafe { std::ptr::copy_nonoverlapping(made.as_ptr(), dst.wrapping_add(at), self.group) };
        }
    }
}

#[test]
fn groups_are_never_parted_across_nodes() {
    let coefficients = |rank: usize, count: usize| -> Vec<u64> {
        (0..count).map(|i| 1 + (rank as u64 * 5 + i as u64 * 3) % 7).collect()
    };
    let factor = |rank: usize, count: usize, operator: Polynomials| -> Vec<u64> {
        (1..=rank).fold(coefficients(0, count), |all, rank| {
            let next = coefficients(rank, count);
            let groups = all.chunks(operator.group).zip(next.chunks(operator.group));
            groups.flat_map(|(left, right)| operator.product(left, right)).collect()
        })
    };
    for (at, labels) in PLACEMENTS.into_iter().enumerate() {
        for rules in [
            "",
            "allreduce:ring,leaders=2,slice=1K;reduce:slice=600",
            "allreduce:circulant,leaders=3;reduce:halving-farthest",
            "allreduce:one-sided",
            "allreduce:halving-exchange,leaders=2,slice=3000;reduce:binomial,slice=100",
        ] {
            cluster(labels, rules, BEHAVIOURS[at % BEHAVIOURS.len()], |comm| {
                for (group, commutative) in [(2, true), (2, false), (3, true), (40, true), (40, false), (600, true)] {
                    let operator = Polynomials { group, commutative };
                    for groups in [1, 2, 7, 50, 700].into_iter().filter(|groups| groups * group * group <= 100_000) {
                        let count = groups * group;
                        let (send, expected) =
                            (coefficients(comm.rank(), count), factor(comm.size() - 1, count, operator));
                        let mut found = vec![0; count];
                        comm.all_reduce_into(&send, &mut found, operator).unwrap();
                        assert!(found == expected, "{labels:?}, {rules:?}: {groups} groups of {group}");
                        let root = comm.process_at_rank(comm.size() / 2);
                        if comm.rank() == comm.size() / 2 {
                            found.copy_from_slice(&send);
                            root.reduce_into_root_in_place(&mut found, operator).unwrap();
                            assert!(
                                found == expected,
                                "{labels:?}, {rules:?}: reduction of {groups} groups of {group}"
                            );
                        } else {
                            root.reduce_into(&send, operator).unwrap();
                        }
                    }
                }
            });
        }
    }
}

#[test]
fn lengths_that_are_no_whole_groups_are_refused() {
    let told = cluster(&[0, 0, 1], "", BEHAVIOURS[0], |comm| {
        let operator = Polynomials { group: 2, commutative: true };
        comm.all_reduce_in_place(&mut [1; 5], operator).unwrap_err().to_string()
    });
    // Who comes late hears of the others' refusal first.
    assert!(told.iter().any(|told| told.contains("whole groups")), "{told:?}");
}
