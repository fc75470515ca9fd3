//! The operators of the tests' own are what they should be. Here, since the oracle takes long to compile: it would be once
//! more for tests of its own.

use phalanx_oracle::algebra::{affine, matrix, permutation, triangle, triangles};
use phalanx_oracle::sample::{Flavour, Sample};

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
