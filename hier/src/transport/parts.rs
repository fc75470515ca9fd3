//! Long messages as several: MPI counts in `int`.
//!
//! A message of at most [`LONGEST_WHOLE`] bytes goes as it is. A longer one goes in a first part of `LONGEST_WHOLE + k`
//! bytes and `k` further parts, as many as are needed. The first part of a long message is longer than any whole
//! message and tells `k`; so a sender and a receiver with different lengths always meet at a part whose lengths differ,
//! and never wait for a part that does not come.

/// The longest message that goes in one part: 1 GiB.
pub(super) const LONGEST_WHOLE: usize = 1 << 30;

/// The lengths of the parts of a message of `bytes` bytes. Neither is longer than twice `longest_whole`.
pub(super) fn parts(bytes: usize, longest_whole: usize) -> impl Iterator<Item = usize> {
    let further = bytes.saturating_sub(longest_whole).div_ceil(longest_whole + 1);
    let first = if further == 0 { bytes } else { longest_whole + further };
    let rest = bytes - first;
    let further_parts = (0..further).map(move |part| rest / further + usize::from(part < rest % further));
    std::iter::once(first).chain(further_parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: usize = 5;

    #[test]
    fn parts_add_up_and_fit() {
        for bytes in 0..500 {
            let parts: Vec<_> = parts(bytes, WHOLE).collect();
            assert_eq!(parts.iter().sum::<usize>(), bytes);
            assert_eq!(parts.len() == 1, bytes <= WHOLE, "{bytes}: {parts:?}");
            assert!(parts[1..].iter().all(|&part| part <= WHOLE + 1), "{bytes}: {parts:?}");
        }
        assert_eq!(parts(6 << 30, LONGEST_WHOLE).max(), Some(LONGEST_WHOLE + 5));
    }

    #[test]
    fn two_lengths_differ_in_a_part_that_both_have() {
        for (sent, expected) in (0..200).flat_map(|sent| (0..200).map(move |expected| (sent, expected))) {
            let differ = parts(sent, WHOLE).zip(parts(expected, WHOLE)).any(|(sent, expected)| sent != expected);
            assert_eq!(differ, sent != expected, "{sent} and {expected}");
        }
    }
}
