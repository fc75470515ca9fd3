//! Latency and bandwidth: the line through times, by least squares.
//!
//! The model is `seconds = messages * latency + bytes / bandwidth`. Times of a study span some powers of ten, so the
//! sum of the squares of *relative* errors is made least: `sum ((model - measured) / measured)^2`; otherwise the
//! longest messages alone would decide. Neither term can be less than nothing: where the best line has a negative one,
//! it is nought and the other is fitted alone.

use serde::{Deserialize, Serialize};

use crate::statistics::Summary;

/// One measured time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Messages that were sent one after another.
    pub messages: f64,
    /// Bytes of all of them.
    pub bytes: f64,
    /// The time.
    pub seconds: f64,
}

/// A fitted line, and how well it fits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fit {
    /// Seconds a message.
    pub latency: f64,
    /// Seconds a byte; 0 where bytes cost nothing that could be seen.
    pub per_byte: f64,
    /// The root of the mean square of relative errors: 0.05 means that the line misses by 5 % as a rule.
    pub residual: f64,
    /// The largest relative error.
    pub worst: f64,
    /// Samples that were fitted.
    pub samples: usize,
}

impl Fit {
    /// The line through `samples`. None with fewer than two, and where all have the same ratio of messages to bytes, so
    /// that the terms cannot be told apart. Samples without a positive time are left out.
    pub fn of(samples: &[Sample]) -> Option<Fit> {
        let usable = |sample: &&Sample| sample.seconds > 0.0 && sample.seconds.is_finite();
        // Relative to the time each term becomes a column, and the right side 1.
        let columns: Vec<(f64, f64)> =
            samples.iter().filter(usable).map(|s| (s.messages / s.seconds, s.bytes / s.seconds)).collect();
        if columns.len() < 2 {
            return None;
        }
        let sum = |term: &dyn Fn(&(f64, f64)) -> f64| columns.iter().map(term).sum::<f64>();
        let (mm, mb, bb) = (sum(&|c| c.0 * c.0), sum(&|c| c.0 * c.1), sum(&|c| c.1 * c.1));
        let (m, b) = (sum(&|c| c.0), sum(&|c| c.1));
        let determinant = mm * bb - mb * mb;
        if determinant.is_nan() || determinant <= 1e-12 * mm * bb {
            return None;
        }
        let both = ((m * bb - b * mb) / determinant, (b * mm - m * mb) / determinant);
        let (latency, per_byte) = match both {
            (latency, _) if latency < 0.0 => (0.0, b / bb),
            (_, per_byte) if per_byte < 0.0 => (m / mm, 0.0),
            both => both,
        };
        let error = |c: &(f64, f64)| (latency * c.0 + per_byte * c.1 - 1.0).abs();
        Some(Fit {
            latency,
            per_byte,
            residual: (sum(&|c| error(c) * error(c)) / columns.len() as f64).sqrt(),
            worst: columns.iter().map(error).fold(0.0, f64::max),
            samples: columns.len(),
        })
    }

    /// The line through times of single messages, `(bytes, seconds)`.
    pub fn of_messages(times: &[(f64, f64)]) -> Option<Fit> {
        let samples: Vec<Sample> =
            times.iter().map(|&(bytes, seconds)| Sample { messages: 1.0, bytes, seconds }).collect();
        Fit::of(&samples)
    }

    /// What the line says of a time.
    pub fn seconds(&self, messages: f64, bytes: f64) -> f64 {
        messages * self.latency + bytes * self.per_byte
    }

    /// Bytes a second; none where bytes cost nothing that could be seen.
    pub fn bandwidth(&self) -> Option<f64> {
        (self.per_byte > 0.0).then(|| 1.0 / self.per_byte)
    }

    /// The message of which latency and bytes take as long as each other (Hockney's half-performance length), in bytes.
    pub fn half_length(&self) -> Option<f64> {
        self.bandwidth().map(|bandwidth| bandwidth * self.latency)
    }
}

/// The least of some times over a volume, as bytes a second: the greatest bandwidth that was achieved. None without
/// times.
pub fn achieved(bytes: f64, seconds: &[f64]) -> Option<f64> {
    let least = Summary::of(seconds).min;
    (least > 0.0).then(|| bytes / least)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packets(volume: f64, seconds: impl Fn(f64) -> f64) -> Vec<Sample> {
        (0..=10)
            .map(|power| f64::from(1 << power))
            .map(|messages| Sample { messages, bytes: volume, seconds: seconds(messages) })
            .collect()
    }

    fn near(found: f64, wanted: f64) -> bool {
        (found / wanted - 1.0).abs() < 1e-9
    }

    #[test]
    fn a_true_line_is_found_at_fixed_volume_and_at_single_messages() {
        let fit = Fit::of(&packets(2e6, |messages| messages * 3e-6 + 2e6 / 1e9)).unwrap();
        assert!(near(fit.latency, 3e-6) && near(fit.bandwidth().unwrap(), 1e9) && fit.residual < 1e-9, "{fit:?}");
        let times: Vec<(f64, f64)> = [8.0, 1e3, 1e5, 1e7].map(|bytes| (bytes, 1e-6 + bytes / 5e8)).into();
        let fit = Fit::of_messages(&times).unwrap();
        assert!(near(fit.latency, 1e-6) && near(fit.half_length().unwrap(), 500.0), "{fit:?}");
        assert!(near(fit.seconds(2.0, 1e6), 2e-6 + 2e-3) && fit.samples == 4);
    }

    /// The fitted line has no greater sum of squares than any neighbour.
    #[test]
    fn no_neighbour_fits_better() {
        let noisy = packets(1e6, |messages| {
            let noise = 1.0 + 0.3 * ((messages * 12.9898).sin() * 43758.5453).fract();
            (messages * 5e-6 + 1e6 / 4e8) * noise
        });
        let fit = Fit::of(&noisy).unwrap();
        let square = |latency: f64, per_byte: f64| -> f64 {
            noisy.iter().map(|s| ((latency * s.messages + per_byte * s.bytes) / s.seconds - 1.0).powi(2)).sum()
        };
        let least = square(fit.latency, fit.per_byte);
        assert!(near(fit.residual, (least / 11.0).sqrt()) && fit.worst >= fit.residual && fit.residual > 0.01);
        for (a, b) in [(1.01, 1.0), (0.99, 1.0), (1.0, 1.01), (1.0, 0.99), (1.01, 0.99), (0.99, 1.01)] {
            assert!(square(a * fit.latency, b * fit.per_byte) > least, "{a} {b}");
        }
    }

    #[test]
    fn no_term_is_less_than_nothing() {
        // Packets make it faster, so that a message seems to cost less than nothing.
        let fit = Fit::of(&packets(1e6, |messages| 1e-3 / messages.sqrt())).unwrap();
        assert!(fit.latency == 0.0 && fit.per_byte > 0.0, "{fit:?}");
        // Longer messages take no longer, rather less.
        let fit = Fit::of_messages(&[(1.0, 2e-6), (1e6, 1e-6)]).unwrap();
        assert!(fit.latency > 0.0 && fit.per_byte == 0.0 && fit.bandwidth().is_none(), "{fit:?}");
    }

    #[test]
    fn what_cannot_be_told_apart_has_no_line() {
        assert_eq!(Fit::of_messages(&[(1e3, 1e-6)]), None);
        assert_eq!(Fit::of_messages(&[(1e3, 1e-6), (1e3, 2e-6), (1e3, 3e-6)]), None);
        assert_eq!(Fit::of_messages(&[(1e3, 1e-6), (1e6, 0.0), (1e6, f64::NAN)]), None);
        assert_eq!(Fit::of(&[]), None);
    }

    #[test]
    fn the_greatest_bandwidth_is_that_of_the_least_time() {
        assert_eq!(achieved(100.0, &[4.0, 2.0, 8.0]), Some(50.0));
        assert_eq!(achieved(100.0, &[]), None);
    }
}
