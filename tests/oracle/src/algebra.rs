//! Operators of the tests' own: associative, most of them not commutative, over elements of awkward sizes.

/// A number that wraps around.
pub trait Wrapping: Copy {
    /// The sum.
    #[must_use]
    fn plus(self, other: Self) -> Self;
    /// The product.
    #[must_use]
    fn times(self, other: Self) -> Self;
}

macro_rules! wrapping {
    ($($type:ty)+) => {$(
        impl Wrapping for $type {
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            fn times(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
        }
    )+};
}

wrapping!(u8 u16 u64);

/// The product of two 2x2 matrices.
#[must_use]
pub fn matrix<W: Wrapping>(a: [W; 4], b: [W; 4]) -> [W; 4] {
    let cell = |row: usize, column: usize| a[row].times(b[column]).plus(a[row + 1].times(b[column + 2]));
    [cell(0, 0), cell(0, 1), cell(2, 0), cell(2, 1)]
}

/// First `a`, then `b`, as maps x -> m x + c, each written (m, c).
#[must_use]
pub fn affine<W: Wrapping>(a: [W; 2], b: [W; 2]) -> [W; 2] {
    [a[0].times(b[0]), a[1].times(b[0]).plus(b[1])]
}

/// The product of two upper triangular 3x3 matrices with ones on the diagonal, written by what is above it.
#[must_use]
pub fn triangle<W: Wrapping>(a: [W; 3], b: [W; 3]) -> [W; 3] {
    [a[0].plus(b[0]), a[1].plus(b[1]), a[2].plus(b[2]).plus(a[0].times(b[1]))]
}

/// Triangles side by side, as one element.
#[must_use]
pub fn triangles<W: Wrapping, const N: usize>(mut a: [[W; 3]; N], b: [[W; 3]; N]) -> [[W; 3]; N] {
    for (a, b) in a.iter_mut().zip(b) {
        *a = triangle(*a, b);
    }
    a
}

/// The six permutations of three things, one after the other, as (first, then).
const PRODUCTS: [[u8; 6]; 6] = {
    const ORDERS: [[u8; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    let mut products = [[0; 6]; 6];
    let mut pair = 0;
    while pair < 36 {
        let (a, b) = (ORDERS[pair / 6], ORDERS[pair % 6]);
        let both = [b[a[0] as usize], b[a[1] as usize], b[a[2] as usize]];
        let mut at = 0;
        while !(ORDERS[at][0] == both[0] && ORDERS[at][1] == both[1]) {
            at += 1;
        }
        products[pair / 6][pair % 6] = at as u8;
        pair += 1;
    }
    products
};

/// A permutation of three things in one byte (its remainder by six), and another after it.
#[must_use]
pub fn permutation(a: u8, b: u8) -> u8 {
    PRODUCTS[usize::from(a % 6)][usize::from(b % 6)]
}

/// Element by element.
pub fn each<T: Copy>(left: &mut [T], right: &[T], combine: impl Fn(T, T) -> T) {
    assert_eq!(left.len(), right.len(), "an operator is given slices of one length");
    for (left, &right) in left.iter_mut().zip(right) {
        *left = combine(*left, right);
    }
}
