//! Where ranks are: nodes, and places on them. A pure value.

/// Which node each rank is on. Nodes are numbered by their first rank; the ranks of a node are in ascending order, and
/// their places in that order are their *local ranks*. Local rank 0 is the node's first rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    nodes: Vec<Vec<usize>>,
    /// Node and local rank, by rank.
    places: Vec<(usize, usize)>,
}

impl Placement {
    /// The placement of ranks whose node's label, whatever it is, is given by rank.
    #[must_use]
    pub fn new<L: PartialEq>(labels: &[L]) -> Self {
        let mut nodes: Vec<Vec<usize>> = Vec::new();
        let mut places = Vec::with_capacity(labels.len());
        let mut last = 0;
        for (rank, label) in labels.iter().enumerate() {
            let is = |members: &Vec<usize>| labels[members[0]] == *label;
            // Ranks mostly lie in blocks or in turn: that of the rank before, the next, or the first, without a search.
            let near = [last, last + 1, 0].into_iter().find(|&node| nodes.get(node).is_some_and(is));
            let node = near.or_else(|| nodes.iter().position(is)).unwrap_or(nodes.len());
            last = node;
            if node == nodes.len() {
                nodes.push(Vec::new());
            }
            places.push((node, nodes[node].len()));
            nodes[node].push(rank);
        }
        Self { nodes, places }
    }

    /// How many ranks there are.
    #[must_use]
    pub fn ranks(&self) -> usize {
        self.places.len()
    }

    /// How many nodes there are.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// The node of a rank.
    #[must_use]
    pub fn node_of(&self, rank: usize) -> usize {
        self.places[rank].0
    }

    /// The place of a rank among those of its node.
    #[must_use]
    pub fn local_rank(&self, rank: usize) -> usize {
        self.places[rank].1
    }

    /// The ranks of a node, by local rank, ascending.
    #[must_use]
    pub fn members(&self, node: usize) -> &[usize] {
        &self.nodes[node]
    }

    /// The rank at a place.
    #[must_use]
    pub fn rank_at(&self, node: usize, local: usize) -> Option<usize> {
        self.nodes.get(node)?.get(local).copied()
    }

    /// Ranks on the node that has the fewest.
    #[must_use]
    pub fn fewest(&self) -> usize {
        self.nodes.iter().map(Vec::len).min().unwrap_or(0)
    }

    /// Ranks on the node that has the most.
    #[must_use]
    pub fn most(&self) -> usize {
        self.nodes.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// Whether the ranks of each node follow one another: then combining node by node keeps the order of ranks.
    #[must_use]
    pub fn is_block(&self) -> bool {
        self.nodes.iter().all(|members| members.windows(2).all(|pair| pair[1] == pair[0] + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether all that a placement says fits together.
    fn check<L: PartialEq>(labels: &[L]) -> Placement {
        let placement = Placement::new(labels);
        assert_eq!(placement.ranks(), labels.len());
        let mut seen = vec![false; labels.len()];
        let mut firsts = Vec::new();
        for node in 0..placement.nodes() {
            let members = placement.members(node);
            assert!(members.is_sorted() && !members.is_empty());
            firsts.push(members[0]);
            for (local, &rank) in members.iter().enumerate() {
                assert!(!std::mem::replace(&mut seen[rank], true));
                assert_eq!((placement.node_of(rank), placement.local_rank(rank)), (node, local));
                assert_eq!(placement.rank_at(node, local), Some(rank));
                assert!(labels[rank] == labels[members[0]]);
            }
            assert_eq!(placement.rank_at(node, members.len()), None);
        }
        assert!(seen.into_iter().all(|seen| seen));
        assert!(firsts.is_sorted());
        let distinct = (0..labels.len()).filter(|&rank| labels[..rank].iter().all(|label| *label != labels[rank]));
        assert_eq!(distinct.count(), placement.nodes());
        placement
    }

    #[test]
    fn blocks() {
        let placement = check(&["a", "a", "a", "b", "b", "b"]);
        assert_eq!((placement.members(0), placement.members(1)), (&[0, 1, 2][..], &[3, 4, 5][..]));
        assert!(placement.is_block());
        assert_eq!((placement.fewest(), placement.most()), (3, 3));
    }

    #[test]
    fn round_robin() {
        let placement = check(&[7, 3, 7, 3, 7]);
        assert_eq!((placement.members(0), placement.members(1)), (&[0, 2, 4][..], &[1, 3][..]));
        assert!(!placement.is_block());
        assert_eq!((placement.fewest(), placement.most()), (2, 3));
    }

    #[test]
    fn uneven() {
        let placement = check(&[0, 1, 1, 1, 2, 2]);
        assert_eq!([0, 1, 2].map(|node| placement.members(node).len()), [1, 3, 2]);
        assert!(placement.is_block());
        assert_eq!((placement.fewest(), placement.most()), (1, 3));
    }

    #[test]
    fn one_a_node_and_all_on_one() {
        let alone = check(&[4, 3, 2, 1]);
        assert_eq!((alone.nodes(), alone.most()), (4, 1));
        assert!(alone.is_block());
        let together = check(&["n"; 9]);
        assert_eq!((together.nodes(), together.fewest(), together.is_block()), (1, 9, true));
    }

    #[test]
    fn random_labels() {
        let mut random = 1_u64;
        for ranks in 1..60 {
            let labels: Vec<u64> = (0..ranks)
                .map(|_| {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    (random >> 33) % (1 + ranks / 3)
                })
                .collect();
            check(&labels);
        }
    }
}
