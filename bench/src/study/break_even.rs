//! Break-even points: the sizes at which the faster of two becomes the slower.

use std::fmt;

use crate::sizes::show_size;

/// Where one curve crosses another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Crossing {
    /// The abscissa.
    pub at: f64,
    /// Whether the first curve is the lower one behind it.
    pub first_below: bool,
}

/// Which of two curves is the lower one, and from where on.
#[derive(Clone, Debug, PartialEq)]
pub struct BreakEven {
    /// Whether the first curve is the lower one where both begin; none where they never differ by more than the margin.
    pub begins_below: Option<bool>,
    /// The crossings, ascending.
    pub crossings: Vec<Crossing>,
}

impl BreakEven {
    /// Compares two curves of `(abscissa, time)` at the abscissas that both have.
    ///
    /// Times that differ by no more than `margin` of the smaller one (0.05: 5 %) count as neither's: a crossing lies
    /// between two abscissas at which the curves differ by more than that, in opposite senses. Its place is found on
    /// straight lines in logarithms of abscissa and ratio; where there are several between the two, the last one
    /// counts. Abscissas and times are positive, others are left out.
    pub fn of(first: &[(f64, f64)], second: &[(f64, f64)], margin: f64) -> BreakEven {
        let mut ratios: Vec<(f64, f64)> = first
            .iter()
            .filter_map(|&(x, own)| {
                let (_, other) = second.iter().find(|(other, _)| *other == x)?;
                (x > 0.0 && own > 0.0 && *other > 0.0).then(|| (x.ln(), (own / other).ln()))
            })
            .collect();
        ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
        let edge = margin.max(0.0).ln_1p();
        let sure: Vec<usize> = (0..ratios.len()).filter(|&i| ratios[i].1.abs() > edge).collect();
        let below = |index: usize| ratios[index].1 < 0.0;
        let crossings = sure.windows(2).filter(|pair| below(pair[0]) != below(pair[1])).map(|pair| {
            let steps = (pair[0]..pair[1]).rev();
            // Signs differ at the ends, so that some step between them has the change.
            let step = steps.clone().find(|&i| (ratios[i].1 < 0.0) != (ratios[i + 1].1 < 0.0)).unwrap_or(pair[0]);
            let ((x0, y0), (x1, y1)) = (ratios[step], ratios[step + 1]);
            Crossing { at: (x0 + (x1 - x0) * y0 / (y0 - y1)).exp(), first_below: below(pair[1]) }
        });
        BreakEven { begins_below: sure.first().map(|&index| below(index)), crossings: crossings.collect() }
    }

    /// The abscissa from which on the first curve stays below; 0 where it always is, none where it does not end below.
    pub fn first_wins_from(&self) -> Option<f64> {
        match self.crossings.last() {
            Some(last) => last.first_below.then_some(last.at),
            None => (self.begins_below == Some(true)).then_some(0.0),
        }
    }
}

/// From the first curve's side, abscissas being bytes: `faster`, `slower`, `faster from 64K on`, `even`.
impl fmt::Display for BreakEven {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |below: bool| if below { "faster" } else { "slower" };
        let Some(begins_below) = self.begins_below else { return f.write_str("even") };
        f.write_str(word(begins_below))?;
        for crossing in &self.crossings {
            write!(f, ", {} from {} on", word(crossing.first_below), rounded(crossing.at))?;
        }
        Ok(())
    }
}

/// Bytes to two digits, as sizes are written: nobody knows a break-even point better.
fn rounded(bytes: f64) -> String {
    let unit = if bytes >= 1048576.0 {
        1048576.0
    } else if bytes >= 1024.0 {
        1024.0
    } else {
        1.0
    };
    let value = bytes / unit;
    let digits = if value >= 100.0 { 10.0 } else { 1.0 };
    let whole = (value / digits).round() * digits;
    if value < 10.0 && unit > 1.0 {
        let suffix = if unit > 1024.0 { "M" } else { "K" };
        return format!("{}{suffix}", (value * 10.0).round() / 10.0);
    }
    show_size((whole * unit) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(times: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
        (3..=22).map(|power| f64::from(1 << power)).map(|bytes| (bytes, times(bytes))).collect()
    }

    /// Two lines, whose crossing follows from their terms: 1 + n/1000 and 5 + n/3000 meet at n = 6000.
    #[test]
    fn lines_cross_where_they_must() {
        let (short, long) = (curve(|n| 1.0 + n / 1000.0), curve(|n| 5.0 + n / 3000.0));
        let found = BreakEven::of(&long, &short, 0.0);
        assert_eq!((found.begins_below, found.crossings.len()), (Some(false), 1));
        let at = found.first_wins_from().unwrap();
        assert!((at / 6000.0 - 1.0).abs() < 0.1, "{at}");
        let other = BreakEven::of(&short, &long, 0.0);
        assert_eq!((other.begins_below, other.first_wins_from()), (Some(true), None));
        assert!((other.crossings[0].at / at - 1.0).abs() < 1e-9 && !other.crossings[0].first_below);
    }

    #[test]
    fn power_laws_cross_exactly() {
        // Straight lines in logarithms are followed without error: n^0.5 and n/64 meet at 4096.
        let found = BreakEven::of(&curve(f64::sqrt), &curve(|n| n / 60.0), 0.0);
        assert!((found.crossings[0].at / 3600.0 - 1.0).abs() < 1e-9, "{found:?}");
        assert_eq!(found.to_string(), "slower, faster from 3.5K on");
    }

    #[test]
    fn one_that_always_wins_has_no_crossing() {
        let found = BreakEven::of(&curve(|_| 1.0), &curve(|_| 2.0), 0.05);
        assert_eq!((found.first_wins_from(), found.to_string().as_str()), (Some(0.0), "faster"));
        let found = BreakEven::of(&curve(|_| 2.0), &curve(|_| 1.0), 0.05);
        assert_eq!((found.first_wins_from(), found.to_string().as_str()), (None, "slower"));
    }

    #[test]
    fn noise_within_the_margin_crosses_nothing() {
        let noisy = curve(|n| if (n.log2() as u32).is_multiple_of(2) { 1.03 } else { 0.98 });
        let found = BreakEven::of(&noisy, &curve(|_| 1.0), 0.05);
        assert_eq!((found.crossings.len(), found.to_string().as_str()), (0, "even"));
        assert!(BreakEven::of(&noisy, &curve(|_| 1.0), 0.0).crossings.len() > 10);
        // The one change that is larger than the margin is found behind the noise.
        let bent = curve(|n| {
            if n > 65536.0 {
                0.5
            } else if n < 64.0 {
                2.0
            } else {
                1.02
            }
        });
        let found = BreakEven::of(&bent, &curve(|_| 1.0), 0.05);
        assert_eq!(found.crossings.len(), 1);
        assert!((65536.0..131072.0).contains(&found.crossings[0].at), "{found:?}");
    }

    #[test]
    fn two_crossings_are_two() {
        let found = BreakEven::of(&curve(|n| if (100.0..5e4).contains(&n) { 2.0 } else { 0.5 }), &curve(|_| 1.0), 0.1);
        let senses: Vec<bool> = found.crossings.iter().map(|crossing| crossing.first_below).collect();
        assert_eq!((found.begins_below, senses), (Some(true), vec![false, true]));
        assert!(found.to_string().starts_with("faster, slower from 9"), "{found}");
    }

    #[test]
    fn abscissas_that_only_one_has_do_not_count() {
        let found = BreakEven::of(&[(1.0, 1.0), (2.0, 1.0), (4.0, 9.0)], &[(2.0, 2.0), (0.0, 1.0), (3.0, 0.5)], 0.0);
        assert_eq!(found.to_string(), "faster");
        assert_eq!(BreakEven::of(&[], &[(1.0, 1.0)], 0.0).begins_below, None);
    }

    #[test]
    fn sizes_are_rounded_to_what_is_known() {
        for (bytes, text) in [(37.4, "37"), (1500.0, "1.5K"), (65536.0, "64K"), (300_000.0, "290K"), (3.2e6, "3.1M")] {
            assert_eq!(rounded(bytes), text);
        }
    }
}
