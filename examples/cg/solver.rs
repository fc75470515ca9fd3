//! The method of conjugate gradients, its vectors divided over the ranks.
//!
//! An iteration is one exchange of border rows, one product with the matrix, three updates of vectors, and two dot
//! products, each an allreduce of 8 bytes. All ranks get the same bits out of an allreduce, so they all see the same
//! residual and stop in the same iteration; without that, one rank could leave the loop while the others wait for it.
//!
//! # References
//!
//! M. R. Hestenes and E. Stiefel, Methods of Conjugate Gradients for Solving Linear Systems, 1952.

use phalanx::operator::Sum;

use crate::halo::Neighbours;
use crate::problem::Strip;
use crate::start::{Communicator, Result};
use crate::stopwatch::Stopwatch;

/// What the solver needs to know about this rank's place.
pub struct Place<'a> {
    /// All ranks.
    pub world: &'a Communicator,
    /// The ranks above and below.
    pub neighbours: &'a Neighbours,
    /// The rows of this rank.
    pub strip: &'a Strip,
    /// Measures the collectives.
    pub watch: &'a Stopwatch,
}

/// What became of a solve.
pub struct Outcome {
    /// The solution in the rows of this rank.
    pub solution: Vec<f64>,
    /// Iterations made.
    pub iterations: usize,
    /// The residual at the end as a part of that at the start, calculated anew from the solution.
    pub residual: f64,
    /// Whether the wanted residual was reached.
    pub converged: bool,
}

impl Place<'_> {
    /// Solves `A u = right` from `u = 0`; collective.
    ///
    /// Stops when the residual is `wanted` times that of the start, or after `max_iterations`. `progress` is given the
    /// iteration and the residual, as a part of that of the start, of each iteration.
    pub fn solve(
        &self,
        right: &[f64],
        wanted: f64,
        max_iterations: usize,
        mut progress: impl FnMut(usize, f64),
    ) -> Result<Outcome> {
        let width = self.strip.width();
        let mut solution = vec![0.0; right.len()];
        let mut residual = right.to_vec();
        let mut product = vec![0.0; right.len()];
        // The search direction has a row more at either end, for the neighbours' rows.
        let mut direction = vec![0.0; right.len() + 2 * width];
        let own = width..width + right.len();
        direction[own.clone()].copy_from_slice(right);

        let start = self.dot(&residual, &residual)?;
        let mut square = start;
        let mut iterations = 0;
        progress(0, 1.0);
        while square > wanted * wanted * start && iterations < max_iterations {
            self.neighbours.exchange(self.watch, &mut direction, width)?;
            self.strip.apply(&direction, &mut product);
            let alpha = square / self.dot(&direction[own.clone()], &product)?;
            add_scaled(&mut solution, alpha, &direction[own.clone()]);
            add_scaled(&mut residual, -alpha, &product);

            let next = self.dot(&residual, &residual)?;
            let beta = next / square;
            for (value, residual) in direction[own.clone()].iter_mut().zip(&residual) {
                *value = residual + beta * *value;
            }
            square = next;
            iterations += 1;
            progress(iterations, (square / start).sqrt());
        }

        // The updates above gather rounding errors, so the residual that counts is `right - A u` itself. The direction
        // has served, and lends its room.
        direction[own].copy_from_slice(&solution);
        self.neighbours.exchange(self.watch, &mut direction, width)?;
        self.strip.apply(&direction, &mut product);
        for (value, right) in product.iter_mut().zip(right) {
            *value = right - *value;
        }
        let last = self.dot(&product, &product)?;
        Ok(Outcome {
            solution,
            iterations,
            residual: (last / start).sqrt(),
            converged: square <= wanted * wanted * start,
        })
    }

    /// The dot product of two vectors that are divided over the ranks.
    fn dot(&self, left: &[f64], right: &[f64]) -> Result<f64> {
        let mine = [left.iter().zip(right).map(|(l, r)| l * r).sum::<f64>()];
        let mut all = [0.0];
        self.watch.collective(|| self.world.all_reduce_into(&mine, &mut all, Sum))?;
        Ok(all[0])
    }
}

/// `sums += factor * vector`.
fn add_scaled(sums: &mut [f64], factor: f64, vector: &[f64]) {
    for (sum, value) in sums.iter_mut().zip(vector) {
        *sum += factor * value;
    }
}
