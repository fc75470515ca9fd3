//! Axes: from values to positions, and where the ticks stand.

use crate::sizes::show_size;

/// How values are spread over an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Equal steps.
    Linear,
    /// Equal factors.
    Logarithmic,
}

/// An axis over a range of values, drawn from `from` to `to`.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    scale: Scale,
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Axis {
    /// An axis that shows all of `values`; a logarithmic one leaves out what is not positive.
    pub fn over(scale: Scale, values: impl IntoIterator<Item = f64>, from: f64, to: f64) -> Axis {
        let usable = values.into_iter().filter(|v| v.is_finite() && (scale == Scale::Linear || *v > 0.0));
        let (mut low, mut high) = usable.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
        if low > high {
            (low, high) = (1.0, 2.0);
        }
        match scale {
            Scale::Linear => {
                low = low.min(0.0);
                let step = step(high - low);
                high = (high / step).ceil().max(1.0) * step;
            }
            Scale::Logarithmic => {
                low /= 1.15;
                high *= 1.15;
                if high / low < 4.0 {
                    let middle = (low * high).sqrt();
                    (low, high) = (middle / 2.0, middle * 2.0);
                }
            }
        }
        Axis { scale, low, high, from, to }
    }

    /// Where `value` is drawn.
    pub fn place(&self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Logarithmic => (value / self.low).ln() / (self.high / self.low).ln(),
        };
        self.from + share * (self.to - self.from)
    }

    /// Whether `value` lies on the axis.
    pub fn shows(&self, value: f64) -> bool {
        value >= self.low * 0.999 && value <= self.high * 1.001
    }

    /// Values with a tick and a label: decimal steps.
    pub fn ticks(&self) -> Vec<f64> {
        match self.scale {
            Scale::Linear => {
                let step = step(self.high - self.low);
                let count = ((self.high - self.low) / step).round() as i64;
                (0..=count).map(|i| self.low + i as f64 * step).collect()
            }
            Scale::Logarithmic => {
                let factors: &[f64] = match self.high / self.low {
                    ratio if ratio > 300.0 => &[1.0],
                    ratio if ratio > 12.0 => &[1.0, 2.0, 5.0],
                    _ => &[1.0, 1.5, 2.0, 3.0, 5.0, 7.0],
                };
                let decades = self.low.log10().floor() as i32..=self.high.log10().ceil() as i32;
                decades
                    .flat_map(|decade| factors.iter().map(move |factor| factor * 10f64.powi(decade)))
                    .filter(|value| self.shows(*value))
                    .collect()
            }
        }
    }

    /// Message sizes with a tick: powers of two, at most about seven of them.
    pub fn size_ticks(&self) -> Vec<f64> {
        let (first, last) = (self.low.log2().ceil() as i32, self.high.log2().floor() as i32);
        let step = ((last - first) / 6).max(1);
        (first..=last).step_by(step as usize).map(|power| 2f64.powi(power)).collect()
    }
}

/// A round step that divides `range` into about five.
fn step(range: f64) -> f64 {
    if range <= 0.0 {
        return 1.0;
    }
    let rough = range / 5.0;
    let power = 10f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| factor * power >= rough * 0.999);
    factor.unwrap_or(10.0) * power
}

/// A number as a tick's label.
pub fn label(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        v if v >= 1e6 => format!("{:.0}e6", value / 1e6),
        v if v >= 10.0 => format!("{value:.0}"),
        _ => {
            let text = format!("{value:.3}");
            text.trim_end_matches('0').trim_end_matches('.').to_string()
        }
    }
}

/// A message size as a tick's label.
pub fn size_label(bytes: f64) -> String {
    show_size(bytes.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_logarithmic_axis_gives_equal_factors_equal_lengths() {
        let axis = Axis::over(Scale::Logarithmic, [1.0, 1e4], 0.0, 100.0);
        let (a, b, c) = (axis.place(1.0), axis.place(100.0), axis.place(1e4));
        assert!((b - a - (c - b)).abs() < 1e-9);
        assert_eq!(axis.ticks(), [1.0, 10.0, 100.0, 1000.0, 1e4]);
    }

    #[test]
    fn a_linear_axis_begins_at_nothing_and_ends_round() {
        let axis = Axis::over(Scale::Linear, [3.0, 9.3], 100.0, 0.0);
        assert_eq!(axis.place(0.0), 100.0);
        assert_eq!(axis.ticks(), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(axis.place(10.0), 0.0);
    }

    #[test]
    fn narrow_and_empty_ranges_have_ticks_too() {
        for values in [vec![], vec![5.0], vec![0.9, 1.1]] {
            for scale in [Scale::Linear, Scale::Logarithmic] {
                let axis = Axis::over(scale, values.clone(), 0.0, 1.0);
                assert!(axis.ticks().len() >= 2, "{scale:?} {values:?}");
            }
        }
    }

    #[test]
    fn sizes_have_few_ticks() {
        let axis = Axis::over(Scale::Logarithmic, [4.0, 8e6], 0.0, 1.0);
        let ticks = axis.size_ticks();
        assert!((4..=8).contains(&ticks.len()), "{ticks:?}");
        assert_eq!(size_label(65536.0), "64K");
        assert_eq!([label(0.05), label(2.0), label(250.0), label(2e6)], ["0.05", "2", "250", "2e6"]);
    }
}
