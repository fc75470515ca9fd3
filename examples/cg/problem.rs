//! The equation, its known solution, and one rank's strip of the grid.
//!
//! `-u_xx - u_yy = f` on the unit square, `u = 0` on its border. The grid has `n x n` inner points, `h = 1 / (n + 1)`
//! apart. The second derivatives become differences of neighbours (the 5-point formula); times `h * h` this reads `4
//! u - up - down - left - right = h * h * f` at every point.
//!
//! The known solution is `u = x (1 - x) y (1 - y) (1 + x + 2 y)`: a cubic along every grid line. The 5-point
//! formula is exact for cubics, so `u` solves the equations of the grid as well, and whatever is missing at the end is
//! the solver's fault, not the grid's. A sine would be an eigenvector of the grid, and solved in one iteration.

use std::ops::Range;

/// The rows of the grid that one rank owns.
#[derive(Clone)]
pub struct Strip {
    /// Points in a row, and rows of the whole grid.
    n: usize,
    /// The rows of this rank.
    rows: Range<usize>,
}

impl Strip {
    /// The strip of `rank` among `size` ranks: strips differ by one row at most. No strip is empty when `size <= n`.
    pub fn new(n: usize, rank: usize, size: usize) -> Strip {
        let bound = |rank: usize| n * rank / size;
        Strip { n, rows: bound(rank)..bound(rank + 1) }
    }

    /// Points in a row.
    pub fn width(&self) -> usize {
        self.n
    }

    /// Points of the strip.
    pub fn points(&self) -> usize {
        self.n * self.rows.len()
    }

    /// The values of a function of `x` and `y` at the points of the strip, row by row.
    fn sample(&self, function: impl Fn(f64, f64) -> f64) -> Vec<f64> {
        let h = 1.0 / (self.n + 1) as f64;
        let mut values = Vec::with_capacity(self.points());
        for row in self.rows.clone() {
            let y = (row + 1) as f64 * h;
            values.extend((1..=self.n).map(|column| function(column as f64 * h, y)));
        }
        values
    }

    /// The known solution.
    pub fn solution(&self) -> Vec<f64> {
        self.sample(|x, y| x * (1.0 - x) * y * (1.0 - y) * (1.0 + x + 2.0 * y))
    }

    /// The right-hand side `h * h * f`, with the `f` that belongs to the known solution.
    pub fn right_hand_side(&self) -> Vec<f64> {
        let h = 1.0 / (self.n + 1) as f64;
        self.sample(|x, y| {
            let minus_u_xx = y * (1.0 - y) * (6.0 * x + 4.0 * y);
            let minus_u_yy = x * (1.0 - x) * (2.0 * x + 12.0 * y - 2.0);
            h * h * (minus_u_xx + minus_u_yy)
        })
    }

    /// `result = A field`: the left-hand side of the equations, for the rows of this strip.
    ///
    /// `field` has the rows of the strip and one more at either end, which hold the neighbours' rows (see
    /// [`crate::halo`]), or zeros where the strip ends at the border.
    pub fn apply(&self, field: &[f64], result: &mut [f64]) {
        let n = self.n;
        for (row, out) in result.chunks_exact_mut(n).enumerate() {
            let up = &field[row * n..][..n];
            let here = &field[(row + 1) * n..][..n];
            let down = &field[(row + 2) * n..][..n];
            for column in 0..n {
                let left = if column > 0 { here[column - 1] } else { 0.0 };
                let right = if column + 1 < n { here[column + 1] } else { 0.0 };
                out[column] = 4.0 * here[column] - up[column] - down[column] - left - right;
            }
        }
    }
}
