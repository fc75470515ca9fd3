//! Building a tree from its description.

use super::shape::Shape;
use super::{Leaders, Level, SocketMap, Tree, TreeSpec, theory_depth};
use crate::Error;

impl TreeSpec {
    /// Makes the tree over the ranks of `map` with this root.
    ///
    /// The ranks stand in a ring that starts at the root: `root, root + 1, ..., n - 1, 0, ..., root - 1`. A tree that
    /// ignores the machine gives them its positions in this order, so another root turns the tree and nothing else.
    ///
    /// A tree that knows about the machine parts the ring into the groups of the outermost level, in the order in
    /// which they appear. The first rank of each group leads it; so the root leads its own. The leaders make a tree of
    /// the given kind among themselves, with the root at its top, and then each group is parted further by the next
    /// level, with its leader at its top. The ranks of an innermost group make a tree of the same kind. A rank that
    /// leads at several levels serves the outermost level first ([`Leaders::First`]) or last ([`Leaders::Last`]).
    ///
    /// # Cost
    ///
    /// O(n) for a given number of levels; no search, no sorting.
    ///
    /// # Errors
    ///
    /// * [`Error::NoRanks`] when `map` is empty.
    /// * [`Error::RootOutOfRange`] when `root` is not one of the ranks.
    /// * [`Error::ZeroK`] when `k` is 0 in a k-ary or k-nomial tree.
    /// * [`Error::RepeatedLevel`] when a level stands twice.
    ///
    /// # References
    ///
    /// Jain et al., "Framework for scalable intra-node collective operations using shared memory", SC 2018: the
    /// skews, and socket-leaders-first and -last. There the root is rank 0, there is one level of groups, and the
    /// leaders' tree is left-skewed whatever the rest is; here the skew holds for both.
    pub fn build(&self, map: &SocketMap, root: usize) -> Result<Tree, Error> {
        let size = map.size();
        self.validate()?;
        if size == 0 {
            return Err(Error::NoRanks);
        }
        if root >= size {
            return Err(Error::RootOutOfRange { root, size });
        }
        let mut builder = Builder {
            shape: Shape { kind: self.kind, k: self.k, skew: self.skew },
            leaders: self.leaders,
            map,
            parent: vec![None; size],
            children: vec![Vec::new(); size],
            part_of_group: vec![None; size],
            buffer: Vec::new(),
        };
        let ring: Vec<usize> = (root..size).chain(0..root).collect();
        builder.connect(&ring, &self.levels);
        let Builder { parent, children, .. } = builder;
        let depth = depths(root, &children);
        Ok(Tree { root, parent, children, depth })
    }

    /// How deep the trees over these ranks are at most: [`theory_depth`] over the most leaders that any group of the
    /// outermost level has, and so on inwards, and over the most ranks that any innermost group has, added up.
    ///
    /// It is exact for a tree that ignores the machine, and where all groups of a level have the same size.
    pub fn depth_bound(&self, map: &SocketMap) -> usize {
        let mut part_of_group = vec![None; map.size()];
        let mut groups: Vec<Vec<usize>> = vec![(0..map.size()).collect()];
        let most = |sizes: &mut dyn Iterator<Item = usize>| theory_depth(self.kind, self.k, sizes.max().unwrap_or(0));
        let mut bound = 0;
        for &level in &self.levels {
            let parted: Vec<Vec<Vec<usize>>> =
                groups.iter().map(|group| part(group, map, level, &mut part_of_group)).collect();
            bound += most(&mut parted.iter().map(Vec::len));
            groups = parted.into_iter().flatten().collect();
        }
        bound + most(&mut groups.iter().map(Vec::len))
    }
}

struct Builder<'a> {
    shape: Shape,
    leaders: Leaders,
    map: &'a SocketMap,
    parent: Vec<Option<usize>>,
    children: Vec<Vec<usize>>,
    /// Lent to [`part`]; as many as ranks, since there are no more groups than that.
    part_of_group: Vec<Option<usize>>,
    buffer: Vec<usize>,
}

impl Builder<'_> {
    /// Links these ranks below the first of them.
    fn connect(&mut self, ranks: &[usize], levels: &[Level]) {
        let Some((&level, inner)) = levels.split_first() else {
            return self.link(ranks);
        };
        let groups = part(ranks, self.map, level, &mut self.part_of_group);
        let leaders: Vec<usize> = groups.iter().map(|group| group[0]).collect();
        if self.leaders == Leaders::First {
            self.link(&leaders);
        }
        for group in &groups {
            self.connect(group, inner);
        }
        if self.leaders == Leaders::Last {
            self.link(&leaders);
        }
    }

    /// Gives these ranks the positions of the shape, and appends the links.
    fn link(&mut self, ranks: &[usize]) {
        for (position, &rank) in ranks.iter().enumerate() {
            self.shape.children(position, ranks.len(), &mut self.buffer);
            for &child in &self.buffer {
                self.parent[ranks[child]] = Some(rank);
                self.children[rank].push(ranks[child]);
            }
        }
    }
}

/// Parts ranks by their group at a level, groups and ranks in the order of appearance.
///
/// `part_of_group` holds `None` for every group, before and after.
fn part(ranks: &[usize], map: &SocketMap, level: Level, part_of_group: &mut [Option<usize>]) -> Vec<Vec<usize>> {
    let mut parts: Vec<Vec<usize>> = Vec::new();
    for &rank in ranks {
        let part = *part_of_group[map.group(rank, level)].get_or_insert(parts.len());
        if part == parts.len() {
            parts.push(Vec::new());
        }
        parts[part].push(rank);
    }
    for part in &parts {
        part_of_group[map.group(part[0], level)] = None;
    }
    parts
}

/// For each rank the number of links to the root.
fn depths(root: usize, children: &[Vec<usize>]) -> Vec<usize> {
    let mut depth = vec![0; children.len()];
    let mut waiting = vec![root];
    while let Some(rank) = waiting.pop() {
        for &child in &children[rank] {
            depth[child] = depth[rank] + 1;
            waiting.push(child);
        }
    }
    depth
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(spec: &str, map: &SocketMap, root: usize) -> Tree {
        let tree = spec.parse::<TreeSpec>().unwrap().build(map, root).unwrap();
        tree.check().unwrap();
        tree
    }

    #[test]
    fn another_root_turns_the_tree() {
        let tree = build("kary:2", &SocketMap::uniform(5), 3);
        // The ring 3, 4, 0, 1, 2: its second has the fourth and the fifth as children.
        assert_eq!(tree.children, [vec![], vec![], vec![], vec![4, 0], vec![1, 2]]);
    }

    #[test]
    fn leaders_come_first_or_last() {
        // Sockets 0-2, 3-5, 6-8; the root 4 leads the second, 6 the third and 0 the first.
        let map = SocketMap::blocks(9, 3);
        assert_eq!(build("kary:2:package", &map, 4).children[4], [6, 0, 5, 3]);
        assert_eq!(build("kary:2:package:leaders-last", &map, 4).children[4], [5, 3, 6, 0]);
        assert_eq!(build("kary:2:right:package:leaders-last", &map, 4).children[4], [3, 5, 0, 6]);
    }

    #[test]
    fn three_levels_from_outside_in_and_back() {
        // Two packages of two NUMA nodes of two L3 caches of two ranks each.
        let map = SocketMap::from_groups((0..16).map(|rank| [rank / 8, rank / 4, rank / 2]).collect());
        assert_eq!(build("flat:package:numa:l3", &map, 0).children[0], [8, 4, 2, 1]);
        assert_eq!(build("flat:package:numa:l3:leaders-last", &map, 0).children[0], [1, 2, 4, 8]);
        let spec: TreeSpec = "kary:3:package:numa:l3".parse().unwrap();
        assert_eq!(spec.depth_bound(&map), 4);
        assert_eq!(spec.build(&map, 11).unwrap().height(), 4);
    }

    #[test]
    fn errors_say_what_to_try() {
        let map = SocketMap::uniform(4);
        for (spec, map, root, why) in [
            (TreeSpec::flat(), &SocketMap::uniform(0), 0, "at least one rank"),
            (TreeSpec::flat(), &map, 4, "root 4 is not one of the 4 ranks; ranks count from 0 to 3"),
            (TreeSpec::kary(0), &map, 0, "k is 0"),
            (TreeSpec::kary(2).aware(&[Level::L3, Level::L3]), &map, 0, "`l3` stands twice"),
        ] {
            let error = spec.build(map, root).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
