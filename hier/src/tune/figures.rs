//! Blocks of times.

/// Microseconds a call, by block; the blocks of candidates that were measured together belong together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// By block.
    pub blocks: Vec<f64>,
}

/// What is won must be more than this part of it, whatever the spread.
const LEAST_GAIN: f64 = 0.03;

impl Figures {
    /// The middle one.
    #[must_use]
    pub fn median(&self) -> f64 {
        quantile(&self.blocks, 0.5)
    }

    /// Half the distance between the quartiles, as a part of the median.
    #[must_use]
    pub fn half_spread(&self) -> f64 {
        let median = self.median();
        if median <= 0.0 { 0.0 } else { (quantile(&self.blocks, 0.75) - quantile(&self.blocks, 0.25)) / 2.0 / median }
    }

    /// Whether these times are shorter than `other`'s by more than the spread: in three of four blocks.
    #[must_use]
    pub fn beat(&self, other: &Self) -> bool {
        let ratios: Vec<f64> =
            self.blocks.iter().zip(&other.blocks).map(|(own, others)| others / own.max(f64::MIN_POSITIVE)).collect();
        !ratios.is_empty() && quantile(&ratios, 0.25) > 1.0 + LEAST_GAIN
    }
}

/// A quantile, between two values where it falls there.
fn quantile(values: &[f64], part: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let place = part * last as f64;
    let (low, rest) = (place.floor() as usize, place.fract());
    sorted[low] + (sorted[(low + 1).min(last)] - sorted[low]) * rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(blocks: &[f64]) -> Figures {
        Figures { blocks: blocks.to_vec() }
    }

    #[test]
    fn only_more_than_the_spread_wins() {
        let slow = figures(&[10.0, 11.0, 30.0, 10.5, 10.2]);
        assert_eq!(slow.median(), 10.5);
        // Shorter in each block, even if all vary together.
        assert!(figures(&[9.0, 10.0, 27.0, 9.4, 9.3]).beat(&slow));
        // Shorter at times.
        assert!(!figures(&[9.0, 12.0, 9.0, 12.0, 9.0]).beat(&figures(&[10.0; 5])));
        // Shorter by a trifle.
        assert!(!figures(&[9.9; 5]).beat(&figures(&[10.0; 5])));
        assert!(!slow.beat(&slow) && !figures(&[]).beat(&slow));
        assert!((figures(&[8.0, 9.0, 10.0, 11.0, 12.0]).half_spread() - 0.1).abs() < 1e-12);
    }
}
