//! Pairs of a value of eight bytes and a place of four, with a gap behind: MPI_DOUBLE_INT and MPI_LONG_INT (MPI 4.1,
//! section 6.9.4).

use std::marker::PhantomData;

use hier::operator::Operator;

/// A value of eight bytes.
pub trait Value: Copy + PartialOrd + Send + Sync + 'static {
    /// The value of these bits.
    fn from_bits(bits: u64) -> Self;
}

impl Value for f64 {
    fn from_bits(bits: u64) -> Self {
        f64::from_bits(bits)
    }
}

impl Value for i64 {
    fn from_bits(bits: u64) -> Self {
        bits.cast_signed()
    }
}

/// The place: the first four bytes of the second half, in memory's order.
fn place(pair: [u64; 2]) -> i32 {
    let [a, b, c, d, ..] = pair[1].to_ne_bytes();
    i32::from_ne_bytes([a, b, c, d])
}

/// The least value, and its least place (MPI_MINLOC). The gap goes with it.
#[derive(Clone, Copy, Debug, Default)]
pub struct GapMin<V>(PhantomData<V>);

/// The greatest value, and its least place (MPI_MAXLOC).
#[derive(Clone, Copy, Debug, Default)]
pub struct GapMax<V>(PhantomData<V>);

macro_rules! operator {
    ($name:ident, $compare:tt, $code:literal) => {
        // SAFETY: every element of the result is written.
        unsafe impl<V: Value> Operator<[u64; 2]> for $name<V> {
            fn is_commutative(&self) -> bool {
                true
            }

            fn code(&self) -> u8 {
                $code
            }

            unsafe fn fold(&self, dst: *mut [u64; 2], operands: &[*const [u64; 2]], n: usize) {
                let (first, others) = operands.split_first().expect("there is at least one operand");
                for i in 0..n {
                    // SAFETY: by contract `n` elements are there.
                    let mut best = unsafe { first.wrapping_add(i).read() };
                    for other in others {
                        // SAFETY: the same.
                        let next = unsafe { other.wrapping_add(i).read() };
                        let (old, new) = (V::from_bits(best[0]), V::from_bits(next[0]));
                        if new $compare old || (new == old && place(next) < place(best)) {
                            best = next;
                        }
                    }
                    // SAFETY: by contract `n` elements may be written; the operands' are read already.
                    unsafe { dst.wrapping_add(i).write(best) };
                }
            }
        }
    };
}

operator!(GapMin, <, 0xe1);
operator!(GapMax, >, 0xe2);

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(C)]
    struct DoubleInt {
        value: f64,
        place: i32,
        gap: u32,
    }

    fn pair(value: f64, place: i32, gap: u32) -> [u64; 2] {
        // SAFETY: both have sixteen bytes, all of them set.
        unsafe { std::mem::transmute::<DoubleInt, [u64; 2]>(DoubleInt { value, place, gap }) }
    }

    #[test]
    fn the_gap_is_not_compared() {
        let operands = [pair(2.0, 5, 9), pair(-1.0, 7, 0), pair(-1.0, -3, 1), pair(-1.0, 4, 0)];
        let pointers = operands.each_ref().map(std::ptr::from_ref);
        let mut result = [0; 2];
        // SAFETY: one element each.
        unsafe { GapMin::<f64>::default().fold(&mut result, &pointers, 1) };
        assert_eq!(result, operands[2]);
        // SAFETY: the same.
        unsafe { GapMax::<f64>::default().fold(&mut result, &pointers, 1) };
        assert_eq!(result, operands[0]);
    }
}
