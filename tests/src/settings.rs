//! Regimes, cells and trees under which the conformance tests run, with the sizes at which each changes its ways.

use hier::Regime;
use hier::job::JobSpec;

use crate::random::mixed;

/// A forced choice of algorithm.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// As `PHALANX_ALGORITHM` takes it.
    pub rules: &'static str,
    /// The regime that reductions must take, whatever their size; none where the size decides.
    pub regime: Option<Regime>,
    /// Message sizes in bytes around which something changes: a slot or a cell is full, the ring has gone round.
    edges: &'static [usize],
    /// Shares: leaders (0 for all ranks) and bytes of a slice; nothing otherwise.
    shares: Option<(usize, usize)>,
}

impl Setting {
    /// Bytes around which something changes with `ranks` ranks, rising.
    #[must_use]
    pub fn edges(&self, ranks: usize) -> Vec<usize> {
        let mut edges = self.edges.to_vec();
        if let Some((leaders, slice)) = self.shares {
            let leaders = if leaders == 0 { ranks } else { leaders.min(ranks) };
            // A line for each leader; a slice for each; two, and so many that every ring has gone round.
            edges.extend([leaders * 64, leaders * slice, 2 * leaders * slice, 5 * leaders * slice + 8]);
        }
        edges.sort_unstable();
        edges.dedup();
        edges
    }
}

const fn setting(
    rules: &'static str,
    regime: Option<Regime>,
    edges: &'static [usize],
    shares: Option<(usize, usize)>,
) -> Setting {
    Setting { rules, regime, edges, shares }
}

/// The forced choices. Cells are tiny in most, so that every ring goes round many times in a call.
pub const SETTINGS: [Setting; 24] = [
    setting("all:auto", None, &[504, 1144, 8192], None),
    setting("all:line", Some(Regime::Line), &[56, 504, 1144, 2288, 17 * 1144], None),
    setting("all:line,flat_ranks=1", Some(Regime::Line), &[56, 1144, 3432], None),
    setting("all:cells", Some(Regime::Cells), &[64, 4608, 8192, 40960], None),
    setting("all:cells,cell=64,cells=2", Some(Regime::Cells), &[64, 128, 640], None),
    setting(
        "all:cells,up_cell=192,up_cells=3,down_cell=64,down_cells=5",
        Some(Regime::Cells),
        &[64, 192, 320, 1152],
        None,
    ),
    setting("allreduce:exchange", Some(Regime::Exchange), &[8192, 40960], None),
    setting("allreduce:exchange,cell=64,cells=2", Some(Regime::Exchange), &[64, 128, 640], None),
    setting("allreduce:exchange,cell=192,cells=5,reach_from=1", Some(Regime::Exchange), &[192, 960], None),
    setting("all:shares", Some(Regime::Shares), &[8192], Some((0, 2048))),
    setting("all:shares,leaders=1,share_cell=64", Some(Regime::Shares), &[64], Some((1, 64))),
    setting("all:shares,leaders=2,share_cell=64,share_downs=2", Some(Regime::Shares), &[64], Some((2, 64))),
    setting("all:shares,leaders=3,share_cell=192,share_downs=3", Some(Regime::Shares), &[200], Some((3, 192))),
    // Private buffers are read where they lie, from the first byte on.
    setting("all:cells,cell=64,cells=2,reach_from=1,readers=1", Some(Regime::Cells), &[64, 128, 640], None),
    setting("all:shares,share_cell=128,reach_from=1", Some(Regime::Shares), &[64], Some((0, 128))),
    setting("all:shares,share_cell=128", Some(Regime::Shares), &[64], Some((0, 128))),
    // Private buffers become shared memory as soon as they are seen.
    setting(
        "all:cells,cell=1K,cells=2,convert_from=1,convert_after=0",
        Some(Regime::Cells),
        &[1024, 4096, 8192, 12_288],
        None,
    ),
    // Cells so large that they are filled past the caches, always; by the string instruction; and copied out by it.
    setting("all:cells,cell=8K,cells=3,stream=2", Some(Regime::Cells), &[5120, 8192, 24_576, 40_960], None),
    setting("all:shares,share_cell=8K,share_downs=2,stream=2", Some(Regime::Shares), &[5120], Some((2, 8192))),
    setting("all:cells,cell=8K,cells=3,stream=4", Some(Regime::Cells), &[5120, 8192, 24_576, 40_960], None),
    setting("all:shares,share_cell=8K,share_downs=2,stream=3", Some(Regime::Shares), &[5120], Some((2, 8192))),
    setting("allreduce:exchange,cell=16K,cells=4;all:cell=16K,stream=3", None, &[5120, 16_384, 32_768], None),
    setting(
        "all:auto,line_most=100,shares_from=9000,cell=6K,cells=2,share_cell=6K,leaders=2,stream=2,reach_from=15000",
        None,
        &[100, 6144, 9000, 15_000],
        Some((2, 6144)),
    ),
    setting(
        "all:auto,line_most=120,shares_from=1500,cell=128,cells=3,share_cell=256",
        None,
        &[120, 128, 384, 1500],
        Some((0, 256)),
    ),
];

/// Whether what has the number `at`, a setting or the like, is tried on so many ranks by the run of this seed: all on
/// few ranks, and a third on each other number, drawn so that remainders by three are not always the same. Three seeds
/// that follow each other try all on all.
#[must_use]
pub fn is_tried(at: usize, ranks: usize, seed: u64) -> bool {
    ranks <= 5 || (at as u64 + mixed(ranks as u64) % 3 + seed % 3).is_multiple_of(3)
}

/// Trees, as `PHALANX_TREES` takes them: every kind, both skews, chains, levels, relays, and trees that change with the
/// size.
pub const TREES: [&str; 16] = [
    "",
    "gather:flat;release:flat",
    "gather:kary:1;release:kary:1",
    "gather:kary:2;release:kary:2",
    "gather:kary:3:right;release:kary:2:right",
    "gather:kary:5;release:knomial:3",
    "gather:knomial:2;release:knomial:2",
    "gather:knomial:2:right;release:kary:1",
    "gather:knomial:4;release:kary:3",
    "gather:knomial:8:right;release:flat",
    "gather:kary:1:right;release:knomial:2:right",
    "gather:kary:2:package:leaders-last;release:kary:2:package",
    "gather:knomial:2:right:package:numa:l3:leaders-last;release:knomial:4:package:l3:right",
    "gather:relay:crowd",
    "gather:flat<65,relay:crowd<640,knomial:crowd<4K,relay:crowd;release:knomial:crowd",
    "gather:kary:1<65,knomial:3<640,kary:2;release:knomial:2<65,kary:1<320,flat<1K,kary:4",
];

/// These rules, with short buffers in shared memory used where they lie too, if nothing else is said of them.
/// `all:auto` alone is what it says.
#[must_use]
pub fn forced(rules: &str) -> String {
    if rules == "all:auto" { rules.to_owned() } else { format!("all:direct_from=1;{rules}") }
}

/// A job of ranks that are threads, under [`forced`] rules. By the seed, it takes its ranks for having a core each,
/// whatever cores there are, so that the rules for such ranks are run as well as those for ranks that share cores:
/// rarely where ranks are many, since each then spins for others.
///
/// # Panics
/// When the rules cannot be forced.
#[must_use]
pub fn job(ranks: usize, rules: &str, seed: u64) -> JobSpec {
    let mut spec = JobSpec::new(ranks).unwrap();
    spec.tuning.force(&forced(rules)).unwrap();
    let turn = if ranks <= 4 { 2 } else { 8 };
    if seed.is_multiple_of(turn) {
        spec.cores = ranks;
    }
    spec
}

/// Where ranks could be bound: package, NUMA node and L3 of each, as on machines that nobody here owns.
#[must_use]
pub fn places(ranks: usize, seed: u64) -> Vec<[usize; 3]> {
    let mut random = crate::random::Random::new(seed);
    let packages = 1 + random.below(3);
    let in_order = random.once_in(2);
    (0..ranks)
        .map(|rank| {
            let package = if in_order { rank * packages / ranks } else { random.below(packages) };
            let numa = 2 * package + random.below(2);
            [package, numa, 2 * numa + random.below(2)]
        })
        .collect()
}
