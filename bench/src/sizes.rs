//! Message sizes and lists of numbers, as a person writes them.

use hier::launch::MOST_RANKS;

/// The sizes from `min` to `max`: 0 when `min` is 0, then powers of two from 4 bytes on.
///
/// `max` itself is the last size even when it is no power of two.
pub fn ladder(min: u64, max: u64) -> Vec<u64> {
    let mut sizes = Vec::new();
    if min == 0 {
        sizes.push(0);
    }
    let mut size = 4;
    while size <= max {
        if size >= min {
            sizes.push(size);
        }
        size *= 2;
    }
    if sizes.last() != Some(&max) {
        sizes.push(max);
    }
    sizes
}

/// A few sizes from `min` to `max` that still show every regime: 8 B, then in steps of eight.
pub fn short_ladder(min: u64, max: u64) -> Vec<u64> {
    between(min, max, [8, 64, 512, 4 << 10, 32 << 10, 256 << 10, 1 << 20])
}

/// The sizes from `min` to `max` at which several libraries are compared: 8 B, then powers of four from 64 on.
pub fn compared_ladder(min: u64, max: u64) -> Vec<u64> {
    let fours = std::iter::successors(Some(64), |size: &u64| size.checked_mul(4));
    between(min, max, std::iter::once(8).chain(fours))
}

/// Those of rising sizes that are not below `min`, and below `max`; and `max`.
fn between(min: u64, max: u64, sizes: impl IntoIterator<Item = u64>) -> Vec<u64> {
    let below = sizes.into_iter().take_while(|&size| size < max);
    below.filter(|&size| size >= min).chain([max]).collect()
}

/// Reads a size: a number with an optional `k`, `K`, `M`, `G` (powers of 1024), `iB` or `B`.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let trimmed = text.trim();
    let digits = trimmed.len() - trimmed.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = trimmed.split_at(digits);
    let number: u64 =
        number.parse().map_err(|_| format!("'{text}' is no size: write for example 4096, 64K or 8MiB"))?;
    let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        other => {
            return Err(format!("'{other}' in '{text}' is no unit: use B, K, M or G"));
        }
    };
    number.checked_mul(factor).ok_or_else(|| format!("'{text}' is more than an address can hold"))
}

/// Reads a rank count, 1 to [`MOST_RANKS`].
pub fn parse_ranks(text: &str) -> Result<usize, String> {
    match text.trim().parse::<usize>() {
        Ok(ranks @ 1..=MOST_RANKS) => Ok(ranks),
        Ok(ranks) => Err(format!("{ranks} ranks: a job has 1 to {MOST_RANKS}")),
        Err(_) => Err(format!("'{text}' is no rank count: write for example 2 or 2,8")),
    }
}

/// Reads a count of hosts or of ranks on each, 1 or more.
///
/// # Errors
///
/// What is wrong with `text`.
pub fn parse_count(text: &str) -> Result<usize, String> {
    match text.trim().parse() {
        Ok(0) => Err("0: 1 is the least".into()),
        Ok(count) => Ok(count),
        Err(_) => Err(format!("'{text}' is no count: write for example 1 or 8")),
    }
}

/// A size that is not nothing.
///
/// # Errors
///
/// What is wrong with `text`.
pub fn parse_some(text: &str) -> Result<u64, String> {
    match parse_size(text)? {
        0 => Err("0 bytes carry nothing: 1 is the least".into()),
        bytes => Ok(bytes),
    }
}

/// Reads a number that is none below `least`, and not endless.
///
/// # Errors
///
/// What is wrong with `text`.
pub fn parse_from(least: f64, text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(number) if number >= least && number.is_finite() => Ok(number),
        Ok(_) => Err(format!("{text}: {least} or more is wanted")),
        Err(_) => Err(format!("'{text}' is no number: write for example 2 or 0.5")),
    }
}

/// A size as a person reads it: `512`, `4K`, `8M`.
pub fn show_size(bytes: u64) -> String {
    for (shift, unit) in [(30, "G"), (20, "M"), (10, "K")] {
        if bytes >= 1 << shift && bytes.is_multiple_of(1 << shift) {
            return format!("{}{unit}", bytes >> shift);
        }
    }
    bytes.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ladder_begins_at_nothing_and_ends_at_max() {
        assert_eq!(ladder(0, 32), [0, 4, 8, 16, 32]);
        assert_eq!(ladder(8, 100), [8, 16, 32, 64, 100]);
        assert_eq!(ladder(0, 0), [0]);
        assert_eq!(ladder(0, 8 << 20).len(), 23);
    }

    #[test]
    fn libraries_are_compared_in_steps_of_four() {
        assert_eq!(compared_ladder(0, 4096), [8, 64, 256, 1024, 4096]);
        assert_eq!(compared_ladder(100, 5000), [256, 1024, 4096, 5000]);
        assert_eq!(compared_ladder(0, 8), [8]);
        assert_eq!(compared_ladder(0, 8 << 20).len(), 11);
    }

    #[test]
    fn the_short_ladder_keeps_the_ends() {
        let sizes = short_ladder(0, 8 << 20);
        assert_eq!((sizes[0], sizes.last()), (8, Some(&(8 << 20))));
        assert_eq!(short_ladder(0, 8), [8]);
    }

    #[test]
    fn sizes_are_read_with_their_units() {
        for (text, bytes) in [("0", 0), ("4096", 4096), ("64K", 65536), ("8MiB", 8 << 20), ("1 g", 1 << 30)] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for text in ["", "K", "4X", "-3", "99999999999G"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn counts_begin_at_one() {
        assert_eq!(parse_count("8"), Ok(8));
        assert!(parse_count("0").unwrap_err().contains("1 is the least"));
        assert!(parse_count("-1").is_err());
    }

    #[test]
    fn numbers_have_a_least_one_and_an_end() {
        assert_eq!(parse_from(0.0, "0.5"), Ok(0.5));
        assert_eq!(parse_from(1.0, "1"), Ok(1.0));
        for text in ["-1", "0.99", "nan", "inf", "-inf"] {
            assert!(parse_from(1.0, text).unwrap_err().contains("1 or more"), "{text}");
        }
        assert!(parse_from(0.0, "two").unwrap_err().contains("no number"));
    }

    #[test]
    fn sizes_are_shown_as_they_are_read() {
        for bytes in [0, 4, 1000, 1024, 65536, 8 << 20, 3 << 30] {
            assert_eq!(parse_size(&show_size(bytes)), Ok(bytes));
        }
    }

    #[test]
    fn rank_counts_have_limits() {
        assert_eq!(parse_ranks("16"), Ok(16));
        assert!(parse_ranks("0").unwrap_err().contains("1 to 256"));
        assert!(parse_ranks("257").is_err());
        assert!(parse_ranks("two").is_err());
    }
}
