//! Who may share a node, before and after it was tried.

use shm_core::segment::layout::MOST_RANKS;

use super::card::Card;
use super::error::{Error, Result};
use super::handover::Attempt;
use super::mates::Mates;
use super::placement::Placement;

/// Which ranks may share a node. Whether they can is tried in any case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Nodes {
    /// Those under one kernel and in one network namespace.
    #[default]
    Found,
    /// Those with the same number here, by rank: several nodes can be played on one machine.
    Given(Vec<usize>),
}

impl Nodes {
    /// The label of each rank's node; the library's word, where it was asked, counts for ranks of unknown kernels.
    pub(super) fn candidates(&self, cards: &[Card], mates: Option<&Mates>) -> Result<Vec<usize>> {
        let together: Box<dyn Fn(usize, usize) -> bool> = match self {
            Self::Given(numbers) if numbers.len() != cards.len() => {
                let why = format!("{} numbers for {} ranks; give each rank one", numbers.len(), cards.len());
                return Err(Error::Nodes { why });
            }
            Self::Given(numbers) => Box::new(|one, other| numbers[one] == numbers[other]),
            Self::Found => Box::new(|one, other| same_machine(cards, mates, one, other)),
        };
        let mut labels: Vec<usize> = Vec::with_capacity(cards.len());
        // The nodes so far: first rank, and how many.
        let mut nodes: Vec<(usize, usize)> = Vec::new();
        for rank in 0..cards.len() {
            let node = nodes.iter_mut().find(|(first, count)| *count < MOST_RANKS && together(*first, rank));
            match node {
                Some((first, count)) => {
                    *count += 1;
                    labels.push(*first);
                }
                None => {
                    nodes.push((rank, 1));
                    labels.push(rank);
                }
            }
        }
        Ok(labels)
    }
}

/// Whether two ranks are worth a try.
fn same_machine(cards: &[Card], mates: Option<&Mates>, one: usize, other: usize) -> bool {
    let (first, second) = (&cards[one], &cards[other]);
    match first.boot.is_empty() && second.boot.is_empty() {
        false => first.boot == second.boot && first.network == second.network,
        true => first.host == second.host && mates.is_none_or(|mates| mates[one] == mates[other]),
    }
}

/// Why each rank is not on its node, from what everybody said: none for those who are.
pub(super) fn apart(said: &[Vec<u8>]) -> Vec<Option<String>> {
    said.iter().map(|bytes| Attempt::why_apart(bytes)).collect()
}

/// The labels when those who could not attach are left to themselves: they may try with each other. The first rank of a
/// node is never among them, so that each time fewer are left.
pub(super) fn refine(labels: &[usize], apart: &[Option<String>]) -> Vec<usize> {
    let first = |label: usize| (0..labels.len()).find(|&rank| labels[rank] == label && apart[rank].is_some());
    (0..labels.len())
        .map(|rank| match &apart[rank] {
            None => labels[rank],
            Some(_) => first(labels[rank]).unwrap_or(rank),
        })
        .collect()
}

/// Who was left out, and why.
pub(super) fn remarks(apart: &[Option<String>], placement: &Placement) -> Vec<String> {
    let remark = |(rank, why): (usize, &Option<String>)| {
        let first = placement.members(placement.node_of(rank))[0];
        why.as_ref().map(|why| {
            format!("rank {rank} seems to be on the machine of rank {first}, but cannot share memory with it: {why}")
        })
    };
    apart.iter().enumerate().filter_map(remark).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(boot: &str, network: &str, host: &str) -> Card {
        let [boot, network, host] = [boot, network, host].map(str::to_owned);
        Card { host, boot, network, process: 0, quota: None, mask: vec![0] }
    }

    #[test]
    fn kernels_and_namespaces_part_ranks() {
        let cards = [("k", "1", "a"), ("k", "2", "b"), ("k", "1", "c"), ("l", "1", "a"), ("k", "2", "b")];
        let cards: Vec<Card> = cards.iter().map(|(boot, network, host)| card(boot, network, host)).collect();
        assert_eq!(Nodes::Found.candidates(&cards, None).unwrap(), [0, 1, 0, 3, 1]);
        assert_eq!(Nodes::Given(vec![9, 9, 8, 8, 9]).candidates(&cards, None).unwrap(), [0, 0, 2, 2, 0]);
        assert!(Nodes::Given(vec![1]).candidates(&cards, None).is_err());
        let without: Vec<Card> = ["a", "b", "a"].iter().map(|host| card("", "", host)).collect();
        assert_eq!(Nodes::Found.candidates(&without, None).unwrap(), [0, 1, 0]);
        let mates = vec![Some(vec![0]), Some(vec![1]), Some(vec![2])];
        assert_eq!(Nodes::Found.candidates(&without, Some(&mates)).unwrap(), [0, 1, 2]);
        assert_eq!(Nodes::Found.candidates(&cards[..3], Some(&mates)).unwrap(), [0, 1, 0]);
    }

    #[test]
    fn a_node_has_no_more_ranks_than_a_segment_serves() {
        let cards = vec![card("k", "1", "a"); 600];
        let labels = Nodes::Found.candidates(&cards, None).unwrap();
        assert_eq!([0, 255, 256, 511, 512, 599].map(|rank| labels[rank]), [0, 0, 256, 256, 512, 512]);
    }

    #[test]
    fn those_who_cannot_attach_try_with_each_other() {
        let why = || Some("refused".to_owned());
        let apart = [None, why(), None, why(), None, why()];
        assert_eq!(refine(&[0, 0, 0, 0, 4, 4], &apart), [0, 1, 0, 1, 4, 5]);
        let remarks = remarks(&apart, &Placement::new(&[0, 0, 0, 0, 4, 4]));
        assert_eq!(remarks.len(), 3);
        assert!(remarks[2].contains("rank 5") && remarks[2].contains("rank 4"), "{}", remarks[2]);
    }
}
