//! Whatever the kind, k, number of ranks, socket map, root, skew, levels and leaders: it is a tree, the one that the
//! definitions give, and as deep as theory says.
//!
//! The oracle below finds parents from the children's side, one rank at a time and slowly; the library finds children
//! from the parents' side. They share no code.

use proptest::prelude::*;
use topo::{Kind, Leaders, Level, Skew, SocketMap, Tree, TreeSpec, theory_depth};

/// The position of the parent of a position other than 0.
fn parent_position(kind: Kind, k: usize, position: usize) -> usize {
    match kind {
        Kind::Flat => 0,
        _ if k == 1 => position - 1,
        Kind::Kary => (position - 1) / k,
        Kind::Knomial => {
            let mut power = 1;
            while (position / power).is_multiple_of(k) {
                power *= k;
            }
            position - (position / power) % k * power
        }
    }
}

/// The rank's parent: its parent among the ranks of its innermost group, or, when it leads that, among the leaders of
/// the groups around it, and so on outwards.
fn parent(spec: &TreeSpec, map: &SocketMap, root: usize, rank: usize) -> Option<usize> {
    let n = map.size();
    let ring: Vec<usize> = (0..n).map(|i| (root + i) % n).collect();
    for depth in (0..=spec.levels.len()).rev() {
        let (around, inside) = (&spec.levels[..depth], spec.levels.get(depth));
        let same = |levels: &[Level], a, b| levels.iter().all(|&level| map.group(a, level) == map.group(b, level));
        // Those that are linked at this depth: the ranks of the group, or the first of each of its parts.
        let mut linked: Vec<usize> = Vec::new();
        for &other in ring.iter().filter(|&&other| same(around, other, rank)) {
            let known = inside.is_some_and(|&level| linked.iter().any(|&first| same(&[level], first, other)));
            if !known {
                linked.push(other);
            }
        }
        match linked.iter().position(|&other| other == rank) {
            Some(0) => {}
            Some(position) => return Some(linked[parent_position(spec.kind, spec.k, position)]),
            None => unreachable!("rank {rank} leads its group, or it would have a parent further inside"),
        }
    }
    None
}

/// How many ranks hang at and below each rank.
fn subtree_sizes(tree: &Tree) -> Vec<usize> {
    let mut order: Vec<usize> = (0..tree.size()).collect();
    order.sort_by_key(|&rank| std::cmp::Reverse(tree.depth[rank]));
    let mut sizes = vec![1; tree.size()];
    for rank in order {
        if let Some(parent) = tree.parent[rank] {
            sizes[parent] += sizes[rank];
        }
    }
    sizes
}

fn assert_right(spec: &TreeSpec, map: &SocketMap, root: usize) {
    let n = map.size();
    let what = || format!("{spec} over {n} ranks, root {root}, {map:?}");
    let tree = spec.build(map, root).unwrap_or_else(|error| panic!("{}: {error}", what()));
    tree.check().unwrap_or_else(|error| panic!("{}: {error}", what()));
    assert_eq!((tree.size(), tree.root), (n, root), "{}", what());
    assert_eq!(tree.children.iter().map(Vec::len).sum::<usize>(), n - 1, "{}", what());

    assert!(tree.height() <= spec.depth_bound(map), "{}: depth {}", what(), tree.height());
    if spec.levels.is_empty() {
        assert_eq!(tree.height(), theory_depth(spec.kind, spec.k, n), "{}", what());
        assert_eq!(tree.height(), spec.depth_bound(map), "{}", what());
        // Skewed to the left, no child has more below it than one that is served before it.
        let sizes = subtree_sizes(&tree);
        for children in &tree.children {
            let mut below: Vec<usize> = children.iter().map(|&child| sizes[child]).collect();
            if spec.skew == Skew::Right {
                below.reverse();
            }
            assert!(below.is_sorted_by(|before, after| before >= after), "{}: {below:?}", what());
        }
    }
    if let Some(&outermost) = spec.levels.first() {
        // Each group but the root's is entered over one link, and leaders serve the others at one end of their list.
        let mut entered = 0;
        for (rank, children) in tree.children.iter().enumerate() {
            let mut leaves: Vec<bool> =
                children.iter().map(|&child| map.group(child, outermost) != map.group(rank, outermost)).collect();
            entered += leaves.iter().filter(|&&leaves| leaves).count();
            if spec.leaders == Leaders::Last {
                leaves.reverse();
            }
            assert!(leaves.is_sorted_by(|before, after| before >= after), "{}: rank {rank}", what());
        }
        assert_eq!(entered, map.groups(outermost) - 1, "{}", what());
    }
}

/// Right-skewed is left-skewed mirrored within each list of one level, so the parents are the same.
fn assert_mirrored(spec: &TreeSpec, map: &SocketMap, root: usize) {
    let left = spec.clone().skewed(Skew::Left).build(map, root).unwrap();
    let right = spec.clone().skewed(Skew::Right).build(map, root).unwrap();
    assert_eq!(left.parent, right.parent);
    if spec.levels.is_empty() {
        let mirrored: Vec<Vec<usize>> =
            right.children.iter().map(|children| children.iter().rev().copied().collect()).collect();
        assert_eq!(left.children, mirrored);
    }
}

fn specs() -> impl Strategy<Value = TreeSpec> {
    let kind = prop_oneof![Just(Kind::Flat), Just(Kind::Kary), Just(Kind::Knomial)];
    let skew = prop_oneof![Just(Skew::Left), Just(Skew::Right)];
    let leaders = prop_oneof![Just(Leaders::First), Just(Leaders::Last)];
    let levels = (Just(Level::ALL.to_vec()).prop_shuffle(), 0..=3usize);
    // Small k more often: large ones make almost flat trees.
    let k = prop_oneof![1..=5usize, 1..=64usize];
    (kind, k, skew, levels, leaders).prop_map(|(kind, k, skew, (mut levels, count), leaders)| {
        levels.truncate(count);
        TreeSpec { kind, k, skew, levels, leaders }
    })
}

/// Ranks in blocks, ranks dealt around, and ranks anywhere.
fn maps(ranks: impl Strategy<Value = usize>) -> impl Strategy<Value = SocketMap> {
    ranks.prop_flat_map(|n| {
        prop_oneof![
            (1..=8usize).prop_map(move |groups| SocketMap::blocks(n, groups)),
            (1..=4usize, 1..=3usize, 1..=3usize).prop_map(move |(p, q, r)| {
                SocketMap::from_groups((0..n).map(|i| [i % p, i % (p * q), i % (p * q * r)]).collect())
            }),
            prop::collection::vec([0..4usize, 0..6usize, 0..9usize], n).prop_map(SocketMap::from_groups),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_tree_is_a_tree(spec in specs(), map in maps(1..=300usize), root: prop::sample::Index) {
        let root = root.index(map.size());
        assert_right(&spec, &map, root);
        assert_mirrored(&spec, &map, root);
    }

    #[test]
    fn every_tree_is_the_one_that_is_defined(spec in specs(), map in maps(1..=40usize)) {
        for root in 0..map.size() {
            assert_right(&spec, &map, root);
            let tree = spec.build(&map, root).unwrap();
            let expected: Vec<_> = (0..map.size()).map(|rank| parent(&spec, &map, root, rank)).collect();
            prop_assert_eq!(tree.parent, expected, "{} root {}", spec, root);
        }
    }

    #[test]
    fn equal_groups_make_the_depth_exact(
        spec in specs(),
        (packages, nodes, caches, ranks) in (1..=4usize, 1..=3usize, 1..=3usize, 1..=6usize),
    ) {
        let spec = TreeSpec { levels: Level::ALL[..spec.levels.len()].to_vec(), ..spec };
        let n = packages * nodes * caches * ranks;
        let groups = (0..n).map(|i| [i / (nodes * caches * ranks), i / (caches * ranks), i / ranks]);
        let map = SocketMap::from_groups(groups.collect());
        prop_assert_eq!(spec.build(&map, 0).unwrap().height(), spec.depth_bound(&map));
    }

    #[test]
    fn every_spec_is_read_back(spec in specs()) {
        let text = spec.to_string();
        let back: TreeSpec = text.parse().unwrap();
        prop_assert_eq!(back.to_string(), text);
        if spec.kind != Kind::Flat {
            prop_assert_eq!(back, spec);
        }
    }
}

/// Every k and every n in full, for the trees that ignore the machine: no dice.
#[test]
fn every_k_and_every_n() {
    for k in 1..=64 {
        for n in 1..=300 {
            for spec in [TreeSpec::kary(k), TreeSpec::knomial(k)] {
                let tree = spec.build(&SocketMap::uniform(n), 0).unwrap();
                tree.check().unwrap();
                assert_eq!(tree.height(), theory_depth(spec.kind, k, n), "{spec} over {n}");
                for rank in 1..n {
                    assert_eq!(tree.parent[rank], Some(parent_position(spec.kind, k, rank)), "{spec} over {n}");
                }
            }
        }
    }
}

/// Depth from other definitions than the library's formula: the level of the last position of a k-ary tree, and the
/// most digits other than 0 among the positions of a k-nomial tree.
#[test]
fn theory_agrees_with_itself() {
    for k in 2..=64 {
        for n in 1..=300 {
            let (mut level, mut position) = (0, n - 1);
            while position > 0 {
                (level, position) = (level + 1, (position - 1) / k);
            }
            assert_eq!(theory_depth(Kind::Kary, k, n), level, "kary {k} over {n}");
            let digits = |mut position: usize| {
                let mut count = 0;
                while position > 0 {
                    count += usize::from(!position.is_multiple_of(k));
                    position /= k;
                }
                count
            };
            assert_eq!(theory_depth(Kind::Knomial, k, n), (0..n).map(digits).max().unwrap(), "knomial {k} over {n}");
        }
    }
    for kind in [Kind::Kary, Kind::Knomial] {
        assert_eq!((1..=5).map(|n| theory_depth(kind, 1, n)).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    }
    assert_eq!((1..=4).map(|n| theory_depth(Kind::Flat, 1, n)).collect::<Vec<_>>(), [0, 1, 1, 1]);
}

/// In a k-nomial tree the ranks at and below each rank are neighbours, in order: what a gather step or an operator
/// that does not commute can use.
#[test]
fn subtrees_of_knomial_trees_are_runs_of_neighbours() {
    for k in 1..=9 {
        for n in 1..=100 {
            let tree = TreeSpec::knomial(k).build(&SocketMap::uniform(n), 0).unwrap();
            let sizes = subtree_sizes(&tree);
            for rank in 0..n {
                let mut below: Vec<usize> = tree.children[rank].clone();
                below.sort_unstable();
                let mut next = rank + 1;
                for child in below {
                    assert_eq!(child, next, "k {k}, n {n}, rank {rank}");
                    next += sizes[child];
                }
            }
        }
    }
}

/// Many ranks take little time, and a chain of them no deep recursion.
#[test]
fn a_million_ranks() {
    let map = SocketMap::blocks(1_000_000, 64);
    for spec in ["kary:1", "kary:2:package", "knomial:2", "knomial:3:right:package:leaders-last", "flat"] {
        let tree = spec.parse::<TreeSpec>().unwrap().build(&map, 777_777).unwrap();
        tree.check().unwrap();
    }
}
