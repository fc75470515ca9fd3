//! Median, quartiles and extremes of repeated measurements.

use serde::{Deserialize, Serialize};

/// Five figures that stand for a set of repetitions.
///
/// Times of a program on a shared machine have a hard lower edge and a long tail, so the middle
/// is told by the median and the spread by the quartiles; a mean and a standard deviation would
/// follow the tail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The smallest value.
    pub min: f64,
    /// A quarter of the values lie below.
    pub p25: f64,
    /// Half of the values lie below.
    pub median: f64,
    /// Three quarters of the values lie below.
    pub p75: f64,
    /// The largest value.
    pub max: f64,
    /// How many values there were.
    pub count: usize,
}

impl Summary {
    /// Summarises `values`; all zero for an empty slice. Values that are not finite are left out.
    pub fn of(values: &[f64]) -> Summary {
        let mut sorted: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        if sorted.is_empty() {
            return Summary::default();
        }
        Summary {
            min: sorted[0],
            p25: quantile(&sorted, 0.25),
            median: quantile(&sorted, 0.5),
            p75: quantile(&sorted, 0.75),
            max: sorted[sorted.len() - 1],
            count: sorted.len(),
        }
    }

    /// The distance of the quartiles as a share of the median: 0.05 means that the middle half of
    /// the repetitions lies within 5% of the median.
    pub fn spread(&self) -> f64 {
        if self.median > 0.0 { (self.p75 - self.p25) / self.median } else { 0.0 }
    }

    /// The same figures, each less `value`.
    pub fn less(&self, value: f64) -> Summary {
        self.map(|figure| figure - value)
    }

    /// The same figures in another unit.
    pub fn scaled(&self, factor: f64) -> Summary {
        self.map(|figure| figure * factor)
    }

    /// What `of`, which keeps the order, makes of each figure.
    fn map(&self, of: impl Fn(f64) -> f64) -> Summary {
        let Summary { min, p25, median, p75, max, count } = *self;
        Summary { min: of(min), p25: of(p25), median: of(median), p75: of(p75), max: of(max), count }
    }
}

/// The median of `values`, 0 for an empty slice.
pub fn median(values: &[f64]) -> f64 {
    Summary::of(values).median
}

/// The mean of `values`, 0 for an empty slice.
pub fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// The value below which the share `q` of `sorted` lies, interpolated between neighbours.
fn quantile(sorted: &[f64], q: f64) -> f64 {
    let place = q * (sorted.len() - 1) as f64;
    let below = place.floor() as usize;
    let above = place.ceil() as usize;
    sorted[below] + (sorted[above] - sorted[below]) * (place - below as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_and_even_counts() {
        let odd = Summary::of(&[5.0, 1.0, 3.0, 2.0, 4.0]);
        assert_eq!((odd.min, odd.p25, odd.median, odd.p75, odd.max), (1.0, 2.0, 3.0, 4.0, 5.0));
        let even = Summary::of(&[4.0, 1.0, 3.0, 2.0]);
        assert_eq!((even.median, even.p25, even.p75), (2.5, 1.75, 3.25));
        assert_eq!(even.count, 4);
    }

    #[test]
    fn one_value_and_none() {
        let one = Summary::of(&[7.0]);
        assert_eq!((one.min, one.median, one.max, one.spread()), (7.0, 7.0, 7.0, 0.0));
        assert_eq!(Summary::of(&[]), Summary::default());
        assert_eq!(median(&[]), 0.0);
        assert_eq!(mean(&[]), 0.0);
    }

    #[test]
    fn one_outlier_moves_the_mean_and_not_the_median() {
        let values = [1.0, 1.0, 1.0, 1.0, 1000.0];
        assert_eq!(median(&values), 1.0);
        assert!(mean(&values) > 200.0);
        assert_eq!(Summary::of(&values).spread(), 0.0);
    }

    #[test]
    fn what_is_not_finite_is_left_out() {
        let summary = Summary::of(&[f64::NAN, 2.0, f64::INFINITY]);
        assert_eq!((summary.median, summary.count), (2.0, 1));
    }

    #[test]
    fn scaling_keeps_the_spread() {
        let summary = Summary::of(&[10.0, 20.0, 30.0]);
        let scaled = summary.scaled(0.001);
        assert_eq!(scaled.median, 0.02);
        assert!((scaled.spread() - summary.spread()).abs() < 1e-12);
    }
}
