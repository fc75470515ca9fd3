//! Whether two results of a reduction of floating-point numbers may be those of one call, made in two orders.
//!
//! Sums and products may differ as the order of operations does: by as many units in the last place as there are ranks,
//! times four, of the sum of absolute values, or of the product. What is not finite must be so in both, and of the same
//! kind: an infinity or a NaN among the contributions decides a sum or a product in any order. That is not looked at
//! where an order may pass the largest or the least number on its way ([`Bounds`] tells), nor are least and greatest
//! values of `float` and `double` with NaNs among them, which MPI leaves open.

use crate::operators::{Kind, Op};

/// Floating-point numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Numbers {
    /// One after the other.
    pub values: Vec<f64>,
    /// How many an element has.
    pub width: usize,
    /// The unit of their last place.
    unit: f64,
    /// The largest of their type.
    most: f64,
}

/// What every order of operations stays within, number by number: sums over the ranks of what [`Numbers::shares`]
/// gives.
#[derive(Clone, Debug, PartialEq)]
pub struct Bounds(pub Vec<f64>);

impl Numbers {
    /// Those in the bytes of elements; nothing for other data, and for such as Rust knows nothing of.
    #[must_use]
    pub fn of(data: &[u8], kind: Kind, size: usize) -> Option<Self> {
        let width = match kind {
            Kind::Real => 1,
            Kind::Complex => 2,
            _ => return None,
        };
        match size / width {
            4 => {
                let values =
                    data.as_chunks::<4>().0.iter().map(|&bytes| f64::from(f32::from_ne_bytes(bytes))).collect();
                Some(Self { values, width, unit: f64::from(f32::EPSILON), most: f64::from(f32::MAX) })
            }
            8 => {
                let values = data.as_chunks::<8>().0.iter().map(|&bytes| f64::from_ne_bytes(bytes)).collect();
                Some(Self { values, width, unit: f64::EPSILON, most: f64::MAX })
            }
            _ => None,
        }
    }

    /// What this rank's contribution adds to the bounds.
    #[must_use]
    pub fn shares(&self, op: Op) -> Vec<f64> {
        let finite = |value: f64| if value.is_finite() { value.abs() } else { 0.0 };
        match op {
            Op::Product if self.width == 2 => {
                // What an infinite factor does differs from one implementation to the other: there is no bound with
                // one.
                let logarithm = |pair: &[f64]| match pair[0].hypot(pair[1]) {
                    0.0 => 0.0,
                    size if size.is_finite() => size.log2().abs() + 1.0,
                    _ => f64::INFINITY,
                };
                self.values.chunks_exact(2).flat_map(|pair| [logarithm(pair); 2]).collect()
            }
            Op::Product => self.values.iter().map(|value| finite(value.abs().log2())).collect(),
            Op::Sum => self.values.iter().map(|&value| finite(value)).collect(),
            _ => self.values.iter().map(|value| if value.is_nan() { f64::INFINITY } else { 0.0 }).collect(),
        }
    }

    /// The first number that cannot be another order's of the same call of `ranks` ranks. The bounds are those of these
    /// numbers.
    #[must_use]
    pub fn first_off(&self, others: &Self, op: Op, bounds: &Bounds, ranks: usize) -> Option<usize> {
        (0..self.values.len()).find(|&at| self.is_off(others, at, op, bounds.0[at], ranks))
    }

    fn is_off(&self, others: &Self, at: usize, op: Op, bound: f64, ranks: usize) -> bool {
        let (own, other) = (self.values[at], others.values[at]);
        let slack = 4.0 * ranks as f64 * self.unit;
        // Whether all that is combined on the way is a number of the type, and not too small for its precision.
        let is_safe = match op {
            Op::Sum => bound < self.most / 2.0,
            Op::Product => bound < self.most.log2() - 2.0,
            _ => bound.is_finite(),
        };
        let is_finite = own.is_finite() && other.is_finite();
        if !(is_safe || is_finite && op == Op::Sum) {
            return false;
        }
        if !is_finite {
            return !(own == other || own.is_nan() && other.is_nan());
        }
        let allowed = match op {
            Op::Sum => slack * bound,
            // Parts of a complex product: by the larger part.
            Op::Product if self.width == 2 => slack * self.values[at & !1].hypot(self.values[at | 1]),
            Op::Product => slack * own.abs(),
            _ => 0.0,
        };
        (own - other).abs() > allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANKS: usize = 3;

    fn numbers(values: &[f64], kind: Kind) -> Numbers {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        let size = if kind == Kind::Complex { 16 } else { 8 };
        Numbers::of(&bytes, kind, size).expect("they are of a type that is known")
    }

    /// Whether two results of these contributions, one of each rank, are told apart.
    fn is_told(kind: Kind, op: Op, contributions: &[&[f64]], own: &[f64], other: &[f64]) -> bool {
        let mut bounds = vec![0.0; own.len()];
        for values in contributions {
            let shares = numbers(values, kind).shares(op);
            bounds.iter_mut().zip(shares).for_each(|(bound, share)| *bound += share);
        }
        numbers(own, kind).first_off(&numbers(other, kind), op, &Bounds(bounds), RANKS).is_some()
    }

    #[test]
    fn what_is_not_finite_must_be_so_in_both() {
        const INF: f64 = f64::INFINITY;
        for op in [Op::Sum, Op::Product, Op::Min, Op::Max] {
            for wrong in [INF, -INF, f64::NAN] {
                assert!(is_told(Kind::Real, op, &[&[1.0], &[2.0]], &[wrong], &[2.0]), "{op:?} {wrong}");
                assert!(is_told(Kind::Real, op, &[&[1.0], &[2.0]], &[2.0], &[wrong]), "{op:?} {wrong}");
            }
            assert!(is_told(Kind::Real, op, &[&[INF], &[2.0]], &[INF], &[-INF]), "{op:?}");
            assert!(!is_told(Kind::Real, op, &[&[INF], &[2.0]], &[INF], &[INF]), "{op:?}");
            assert!(!is_told(Kind::Real, op, &[&[f64::NAN], &[2.0]], &[f64::NAN], &[f64::NAN]), "{op:?}");
        }
        assert!(is_told(Kind::Real, Op::Sum, &[&[f64::NAN], &[2.0]], &[f64::NAN], &[2.0]));
        assert!(is_told(Kind::Complex, Op::Product, &[&[1.0, 2.0], &[3.0, 0.5]], &[2.0, f64::NAN], &[2.0, 6.5]));
    }

    #[test]
    fn what_the_order_decides_is_let_pass() {
        const INF: f64 = f64::INFINITY;
        let huge: [&[f64]; 3] = [&[1e308], &[1.5e308], &[-1e308]];
        assert!(!is_told(Kind::Real, Op::Sum, &huge, &[INF], &[1.5e308]));
        let far: [&[f64]; 3] = [&[1e300], &[1e300], &[1e-300]];
        assert!(!is_told(Kind::Real, Op::Product, &far, &[INF], &[1e300]));
        let far: [&[f64]; 3] = [&[1e300], &[1e-200], &[1e-200]];
        assert!(!is_told(Kind::Real, Op::Product, &far, &[0.0], &[1e-100]));
        assert!(!is_told(Kind::Real, Op::Max, &[&[f64::NAN], &[1.0], &[2.0]], &[1.0], &[2.0]));
        assert!(!is_told(Kind::Complex, Op::Product, &[&[INF, 0.0], &[1.0, 1.0]], &[INF, f64::NAN], &[INF, INF]));
    }

    #[test]
    fn finite_numbers_may_differ_in_their_last_places() {
        let values: [&[f64]; 3] = [&[1e10], &[1.0], &[-1e10]];
        assert!(!is_told(Kind::Real, Op::Sum, &values, &[1.0], &[1.0 + 1e-6]));
        assert!(is_told(Kind::Real, Op::Sum, &values, &[1.0], &[1.1]));
        assert!(!is_told(Kind::Real, Op::Product, &[&[3.0], &[7.0]], &[21.0], &[21.0 + 1e-14]));
        assert!(is_told(Kind::Real, Op::Product, &[&[3.0], &[7.0]], &[21.0], &[21.1]));
        assert!(is_told(Kind::Real, Op::Max, &[&[3.0], &[7.0]], &[7.0], &[7.0 + 1e-14]));
        assert!(is_told(Kind::Complex, Op::Product, &[&[3.0, 1.0], &[0.0, 0.0]], &[0.0, 0.0], &[0.0, 1.0]));
    }
}
