//! The operators that the sweeps hand to collectives: they associate, as a reduction may ask, and the order of ranks
//! shows in them.

#![forbid(unsafe_code)]

use phalanx_tests::algebra::{affine, matrix, permutation, triangle, triangles};
use phalanx_tests::sample::{Flavour, Sample};

fn check<T: Sample>(combine: impl Fn(T, T) -> T) {
    let mut differs = false;
    for place in 0..500 {
        let [a, b, c] = [0, 1, 2].map(|rank| T::sample(Flavour::Sum, 77, rank, place));
        assert_eq!(combine(combine(a, b), c), combine(a, combine(b, c)));
        differs |= combine(a, b) != combine(b, a);
    }
    assert!(differs);
}

#[test]
fn they_associate_but_do_not_commute() {
    check(matrix::<u64>);
    check(affine::<u8>);
    check(triangle::<u16>);
    check(triangles::<u8, 2>);
    check(permutation);
}
