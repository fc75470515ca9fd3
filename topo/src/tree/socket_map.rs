//! Which ranks are close to each other.

use super::Level;
use crate::Location;
use crate::machine::Counter;

/// For each rank the package, the NUMA node and the L3 cache that it runs on.
///
/// Groups are counted from 0 without gaps over the whole machine, in the order in which the ranks first name them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SocketMap {
    /// For each rank its group at each of [`Level::ALL`].
    groups: Vec<[usize; 3]>,
    /// For each level how many groups there are.
    counts: [usize; 3],
}

impl SocketMap {
    /// `n` ranks that are all equally close: one group at every level.
    pub fn uniform(n: usize) -> Self {
        SocketMap::from_groups(vec![[0; 3]; n])
    }

    /// `n` ranks in blocks of neighbours, as long as each other give or take one: each block is a package with one
    /// NUMA node and one L3 cache. More groups than ranks make one for each rank; 0 groups are taken as 1.
    pub fn blocks(n: usize, groups: usize) -> Self {
        let groups = groups.clamp(1, n.max(1));
        SocketMap::from_groups((0..n).map(|rank| [rank * groups / n; 3]).collect())
    }

    /// For each rank any numbers of its package, its NUMA node and its L3 cache; each counted over the whole machine.
    pub fn from_groups(mut groups: Vec<[usize; 3]>) -> Self {
        let counts = [0, 1, 2].map(|level| {
            let mut counter = Counter::default();
            for group in &mut groups {
                group[level] = counter.number(group[level]);
            }
            counter.count()
        });
        SocketMap { groups, counts }
    }

    /// For each rank where it is bound. At a level where that is not one place (it may run on both sockets, say), a
    /// rank belongs to a group of those without a place: they are no closer to one socket than to another.
    pub fn from_locations(locations: &[Location]) -> Self {
        // 0 for no place; `usize::MAX` is the index of nothing.
        let number = |place: Option<usize>| place.map_or(0, |index| index.saturating_add(1));
        let groups = locations.iter().map(|at| [at.package, at.numa, at.l3].map(number)).collect();
        SocketMap::from_groups(groups)
    }

    /// The number of ranks.
    pub fn size(&self) -> usize {
        self.groups.len()
    }

    /// The group of a rank at a level.
    ///
    /// # Panics
    ///
    /// When there is no such rank.
    pub fn group(&self, rank: usize, level: Level) -> usize {
        self.groups[rank][level as usize]
    }

    /// How many groups there are at a level.
    pub fn groups(&self, level: Level) -> usize {
        self.counts[level as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packages(map: &SocketMap) -> Vec<usize> {
        (0..map.size()).map(|rank| map.group(rank, Level::Package)).collect()
    }

    #[test]
    fn blocks_differ_by_one_at_most() {
        assert_eq!(packages(&SocketMap::blocks(7, 3)), [0, 0, 0, 1, 1, 2, 2]);
        assert_eq!(packages(&SocketMap::blocks(3, 9)), [0, 1, 2]);
        assert_eq!(packages(&SocketMap::blocks(3, 0)), [0, 0, 0]);
        assert_eq!(SocketMap::blocks(0, 2).size(), 0);
        assert_eq!(SocketMap::blocks(7, 3).groups(Level::L3), 3);
    }

    #[test]
    fn ranks_without_a_place_belong_together() {
        let on = |package| Location { package, ..Location::default() };
        let map = SocketMap::from_locations(&[on(Some(1)), on(None), on(Some(0)), on(None)]);
        assert_eq!(packages(&map), [0, 1, 2, 1]);
        assert_eq!(map.groups(Level::Numa), 1);
    }

    #[test]
    fn groups_are_counted_anew() {
        let map = SocketMap::from_groups(vec![[9, 7, 1], [9, 5, 1], [2, 7, 1]]);
        assert_eq!(packages(&map), [0, 0, 1]);
        assert_eq!(map.group(2, Level::Numa), 0);
        assert_eq!([Level::Package, Level::Numa, Level::L3].map(|level| map.groups(level)), [2, 2, 1]);
    }
}
