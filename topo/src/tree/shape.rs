//! Flat, k-ary and k-nomial trees over positions `0..count`, with position 0 at the root.

use super::{Kind, Skew};

/// One of the shapes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub(super) kind: Kind,
    pub(super) k: usize,
    pub(super) skew: Skew,
}

impl Shape {
    /// The children of a position among `count`, in the order in which they are served.
    pub(super) fn children(self, position: usize, count: usize, children: &mut Vec<usize>) {
        children.clear();
        match self.kind {
            Kind::Flat if position == 0 => children.extend(1..count),
            Kind::Flat => {}
            // A chain in either kind: base 1 has no digits to speak of.
            _ if self.k == 1 => children.extend((position + 1 < count).then_some(position + 1)),
            Kind::Kary => {
                let first = position.saturating_mul(self.k).saturating_add(1);
                let after = first.saturating_add(self.k);
                // Filled from the left, so that no subtree is larger than one before it.
                children.extend(first..after.min(count));
            }
            Kind::Knomial => knomial(position, self.k, count, children),
        }
        if self.skew == Skew::Right {
            children.reverse();
        }
    }
}

/// The children of a position in a k-nomial tree, the largest subtree first.
///
/// A child differs from its parent in one digit (base k) below the parent's last digit other than 0: the parent's is
/// 0 and the child's is not. With that digit at the power `p` of `k`, the child's subtree is the `p` positions from
/// the child on, as far as there are so many.
fn knomial(position: usize, k: usize, count: usize, children: &mut Vec<usize>) {
    // The powers to try: those below the last digit other than 0, or those below `count` for the root.
    let mut power = 1;
    let mut powers = Vec::new();
    while power < count && (position / power).is_multiple_of(k) {
        powers.push(power);
        let Some(next) = power.checked_mul(k) else {
            break;
        };
        power = next;
    }
    for &power in powers.iter().rev() {
        children.extend((1..k).map(|digit| position + digit * power).take_while(|&child| child < count));
    }
    // Only the child with the highest position can be cut short. It comes first here and may belong further back.
    let last_power = powers.iter().rev().find(|&&power| position + power < count);
    let (Some(&power), Some(highest)) = (last_power, children.iter().copied().max()) else {
        return;
    };
    let size = power.min(count - highest);
    if size < power {
        let from = children.iter().position(|&child| child == highest).unwrap_or(0);
        let mut to = from;
        // Those behind it are whole: as large as the power that their digit stands at.
        while to + 1 < children.len() && lowest_power(children[to + 1] - position, k) >= size {
            to += 1;
        }
        children[from..=to].rotate_left(1);
    }
}

/// The power of `k` at the last digit other than 0.
fn lowest_power(number: usize, k: usize) -> usize {
    let mut power = 1;
    while (number / power).is_multiple_of(k) {
        power *= k;
    }
    power
}

/// How many links the longest way from the root has, in a tree over `n` ranks that ignores the machine.
///
/// A flat tree has 1 (0 when the root is alone). For k-ary and k-nomial trees it is the largest `d` with
/// `1 + k + ... + k^(d-1) < n`, for different reasons. A k-ary tree reaches level `d` when all levels before it are
/// full. In a k-nomial tree a position is as deep as it has digits other than 0, and the first one with `d` of them
/// is `11...1` in base `k`. So both are equally deep; they differ in how many children the ranks near the root serve.
/// For `k` = 1 both are a chain, and `d` is `n - 1`.
///
/// `k` = 0 is taken as 1.
///
/// ```
/// use topo::{Kind, theory_depth};
///
/// assert_eq!(theory_depth(Kind::Flat, 1, 40), 1);
/// assert_eq!(theory_depth(Kind::Kary, 2, 40), 5); // 1 + 2 + 4 + 8 + 16 = 31 < 40
/// assert_eq!(theory_depth(Kind::Knomial, 4, 40), 3); // 1 + 4 + 16 = 21 < 40
/// ```
pub fn theory_depth(kind: Kind, k: usize, n: usize) -> usize {
    match kind {
        Kind::Flat => n.saturating_sub(1).min(1),
        Kind::Kary | Kind::Knomial if k <= 1 => n.saturating_sub(1),
        Kind::Kary | Kind::Knomial => {
            let (mut depth, mut power, mut sum) = (0, 1, 1);
            while sum < n {
                depth += 1;
                power = k.saturating_mul(power);
                sum = power.saturating_add(sum);
            }
            depth
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn children(kind: Kind, k: usize, position: usize, count: usize) -> Vec<usize> {
        let mut children = Vec::new();
        Shape { kind, k, skew: Skew::Left }.children(position, count, &mut children);
        let mut mirrored = Vec::new();
        Shape { kind, k, skew: Skew::Right }.children(position, count, &mut mirrored);
        mirrored.reverse();
        assert_eq!(children, mirrored);
        children
    }

    #[test]
    fn binomial_of_eight() {
        let expected: [&[usize]; 8] = [&[4, 2, 1], &[], &[3], &[], &[6, 5], &[], &[7], &[]];
        for (position, expected) in expected.iter().enumerate() {
            assert_eq!(&children(Kind::Knomial, 2, position, 8), expected);
        }
    }

    #[test]
    fn a_subtree_that_is_cut_short_moves_back() {
        // 4 is alone in its subtree, as 1 is; 2 has 3 below it.
        assert_eq!(children(Kind::Knomial, 2, 0, 5), [2, 1, 4]);
        // 4 and 5, 2 and 3: as large as each other, so by position.
        assert_eq!(children(Kind::Knomial, 2, 0, 6), [2, 4, 1]);
        // 9 and 10 only; 3 and 6 have three each.
        assert_eq!(children(Kind::Knomial, 3, 0, 11), [3, 6, 9, 1, 2]);
    }

    #[test]
    fn every_position_of_a_trinomial_tree_has_a_parent() {
        // Where "k to the power 0" is taken for k, the positions 1 and 2 lose theirs.
        assert_eq!(children(Kind::Knomial, 3, 0, 9), [3, 6, 1, 2]);
        assert_eq!(children(Kind::Knomial, 3, 3, 9), [4, 5]);
        assert_eq!(children(Kind::Knomial, 3, 6, 9), [7, 8]);
    }

    #[test]
    fn large_numbers_do_not_overflow() {
        assert_eq!(children(Kind::Knomial, usize::MAX, 0, 4), [1, 2, 3]);
        assert_eq!(children(Kind::Kary, usize::MAX, 0, 4), [1, 2, 3]);
        assert_eq!(children(Kind::Kary, usize::MAX, 2, 4), [] as [usize; 0]);
        assert_eq!(theory_depth(Kind::Kary, usize::MAX, usize::MAX), 1);
        assert_eq!(theory_depth(Kind::Knomial, 2, usize::MAX), 63);
    }
}
