use proptest::prelude::*;

use super::*;
use crate::job::JobSpec;
use crate::operator::Sum;
use crate::select::Rule;

fn vector(bytes: usize) -> Vector {
    Vector { element: 8, align: 8, ..Vector::of_bytes(bytes / 8 * 8) }
}

/// A rule from numbers that were drawn.
fn drawn(what: Collective, ranks: (u32, u32), crowd: (u32, u32), mut sizes: Vec<u64>, strict: bool) -> Rule {
    sizes.push(0);
    sizes.sort_unstable();
    sizes.dedup();
    sizes.truncate(MOST_BANDS);
    let serving: Vec<Regime> = Regime::ALL.into_iter().filter(|regime| regime.serves(what)).collect();
    let bands: Vec<Band> =
        sizes.iter().map(|&from| Band::new(from, serving[(from % serving.len() as u64) as usize])).collect();
    let range = |(a, b): (u32, u32)| a.min(b)..=a.max(b);
    Rule::new(what, &bands).unwrap().on_ranks(range(ranks)).on_crowds(range(crowd)).in_strict_mode(strict)
}

proptest! {
    /// Every call has an answer, the one that reading the rules from the top gives, and the short way agrees with
    /// it.
    #[test]
    fn every_call_has_the_answer_of_the_first_rule_that_fits(
        rows in prop::collection::vec(
            (0usize..4, (1u32..=256, 1u32..=256), (1u32..20, 1u32..20), prop::collection::vec(0u64..1 << 20, 0..8), any::<bool>()),
            0..12,
        ),
        size in 1usize..=256, crowd in 1u32..30, bytes in prop::collection::vec(0usize..1 << 21, 20), strict in any::<bool>(),
    ) {
        let rules: Vec<Rule> = rows
            .into_iter()
            .map(|(what, ranks, crowd, sizes, strict)| drawn(Collective::ALL[what], ranks, crowd, sizes, strict))
            .collect();
        let mut table = Tuning::of(&rules).unwrap();
        table.strict = u32::from(strict);
        let selection = table.select(size, crowd);
        prop_assert_eq!(selection, table.select(size, crowd));
        for what in Collective::ALL {
            let fitting = || table.rules().iter().filter(|rule| {
                rule.collective() == Some(what) && rule.ranks().contains(&(size as u32)) && rule.crowd().contains(&crowd)
            });
            let first = match strict {
                true => fitting().find(|rule| rule.is_strict()).or(fitting().next()),
                false => fitting().find(|rule| !rule.is_strict()),
            };
            let bands = first.unwrap().bands();
            for &bytes in &bytes {
                let expected = bands.iter().rfind(|band| band.from <= bytes as u64).unwrap();
                let choice = selection.choose(what, vector(bytes / 8 * 8)).unwrap();
                let expected_there = bands.iter().rfind(|band| band.from <= (bytes / 8 * 8) as u64).unwrap();
                prop_assert_eq!(Some(choice.regime), expected_there.regime());
                prop_assert!(expected.from <= bytes as u64);
                if bytes < selection.slot_below(what) {
                    let choice = selection.choose(what, Vector::of_bytes(bytes)).unwrap();
                    prop_assert!(choice.regime == Regime::Line && choice.flat && bytes <= SLOT_PAYLOAD);
                }
                let ordered = Vector { commutative: false, ..vector(bytes) };
                let choice = selection.choose(what, ordered).unwrap();
                prop_assert!(choice.flat || choice.regime == Regime::Shares);
            }
        }
        selection.block_layout();
    }

    /// In the strict mode nothing is combined in a tree, whatever the rules say.
    #[test]
    fn the_strict_mode_has_no_deep_trees(size in 1usize..=256, bytes in 0usize..1 << 22, forced in 0u32..5) {
        let mut table = Tuning::default();
        table.strict = 1;
        table.forced = [0, 0, forced % 4, forced];
        let selection = table.select(size, 1);
        for what in [Collective::Reduce, Collective::Allreduce] {
            let choice = selection.choose(what, vector(bytes)).unwrap();
            prop_assert!(choice.flat || choice.regime == Regime::Shares);
        }
    }
}

#[test]
fn large_elements_are_refused_alike_before_any_flag_moves() {
    let selection = Tuning::default().select(4, 1);
    let of = |bytes, element| selection.choose(Collective::Allreduce, Vector { element, ..vector(bytes) });
    assert!(of(1 << 20, 1 << 19).is_err());
    assert!(of(1 << 14, 1 << 14).is_ok());
}

/// More leaders than leave slices of some length wait for more than they fold; who is named, or asks for halves, leads.
#[test]
fn all_lead_as_far_as_slices_are_long_enough() {
    let choose = |band: Band, size, crowd| {
        let rules = [Collective::Reduce, Collective::Allreduce].map(|what| Rule::new(what, &[band]).unwrap());
        let selection = Tuning::of(&rules).unwrap().select(size, crowd);
        let all = rules.map(|rule| selection.choose(rule.collective().unwrap(), vector(4 << 20)).unwrap());
        assert_eq!(selection.choose_shares(0, vector(4 << 20)).unwrap().leaders, size);
        assert_eq!(selection.choose_shares(size, vector(4 << 20)).unwrap().leaders, size);
        assert_eq!(all[0].leaders, all[1].leaders);
        all[1]
    };
    let all = Band::shares(0, 0, 64 << 10, 32);
    for (size, crowd) in (1..=256).flat_map(|size| [(size, 1), (size, 7)]) {
        let choice = choose(all, size, crowd);
        let expected = match size {
            ..=32 => size,
            33..=64 => 32,
            _ => size.div_ceil(2),
        };
        assert_eq!(choice.leaders, expected, "{size} ranks");
        assert!(choice.up_cell >= 4096 || choice.leaders == size.div_ceil(2), "{size} ranks: {choice:?}");
        assert!(choice.up_slots >= least_up_slots(choice.leaders));
        let named = choose(Band::shares(0, size as u32, 64 << 10, 32), size, crowd);
        assert_eq!(named.leaders, size);
        // Slices that are to be short may be.
        assert_eq!(choose(Band::shares(0, 0, 256, 32), size, crowd).leaders, size);
    }
}

/// The bits of a sum do not tell how many ranks led: they are those of a loop over the ranks.
#[test]
fn results_have_the_same_bits_whoever_leads() {
    let number = |rank: usize, at: usize| (1.0 + at as f64) / (3.0 + rank as f64) * [1e-9, 1e9, 1.0][rank % 3];
    let count = 50_000;
    let sum = |at: usize| (1..7).fold(number(0, at), |sum, rank| sum + number(rank, at));
    let sums: Vec<u64> = (0..count).map(|at| sum(at).to_bits()).collect();
    for (asked, leaders) in [(0, 4), (7, 7), (3, 3)] {
        let rules =
            format!("all:auto,up_bytes=32K,down_bytes=32K,up_cell=4K,down_cell=4K; allreduce:shares,leaders={asked}");
        let mut spec = JobSpec::new(7).unwrap();
        spec.tuning = Tuning::default();
        spec.tuning.force(&rules).unwrap();
        let chosen = spec.tuning.select(7, 1).choose(Collective::Allreduce, vector(8 * count)).unwrap();
        assert_eq!(chosen.leaders, leaders);
        spec.on_threads(|comm| {
            let send: Vec<f64> = (0..count).map(|at| number(comm.rank(), at)).collect();
            let mut recv = vec![0.0; count];
            comm.all_reduce_into(&send, &mut recv, Sum).unwrap();
            assert!(recv.iter().map(|sum| sum.to_bits()).eq(sums.iter().copied()), "{leaders} leaders");
        });
    }
}

#[test]
fn another_table_must_fit_the_cells_that_are_there() {
    let layout = Tuning::default().select(4, 1).block_layout();
    let large = Rule::new(Collective::Broadcast, &[Band::cells(0, (2, 64), (2, 1 << 20))]).unwrap();
    let error = Tuning::of(&[large]).unwrap().select(4, 1).within(&layout).unwrap_err().to_string();
    assert!(error.contains("bytes of cells"), "{error}");
    assert!(Tuning::default().select(4, 1).within(&layout).is_ok());
}

#[test]
fn blocks_are_cut_as_medium_allreduces_are() {
    let cut = |bands: &[Band]| {
        let table = Tuning::of(&[Rule::new(Collective::Allreduce, bands).unwrap()]).unwrap();
        block_cut(&table.select(8, 4).ladders).up_cell
    };
    let (short, medium, long) = (Band::exchange(512, (64, 8 << 10)), (32, 32 << 10), (2, 256 << 10));
    let line = Band::line(0);
    assert_eq!(cut(&[line, short, Band::cells(16 << 10, medium, medium)]), 32 << 10);
    assert_eq!(cut(&[line, short, Band::shares(16 << 10, 0, 64 << 10, 32), Band::cells(1 << 20, long, long)]), 8 << 10);
    assert_eq!(cut(&[line, Band::cells(16 << 10, long, long)]), 256 << 10);
    for (size, crowd) in [(3, 1), (8, 4), (16, 8), (256, 2)] {
        let cell = block_cut(&Tuning::default().select(size, crowd).ladders).up_cell;
        assert!((SMALL_CELL..=LARGE_CELL).contains(&cell), "{size} ranks, {crowd} a core: {cell}");
    }
}

/// Long rows take four large cells where each slice costs a turn of everybody, and the usual ones elsewhere; short
/// ones always these, and so do blocks that one rank gathers.
#[test]
fn long_rows_have_few_slices_in_a_crowd() {
    let choose = |crowd, parts, bytes| {
        let selection = Tuning::default().select(8, crowd).with_rows(1 << 30);
        selection.choose_blocks(parts, true, Vector::of_bytes(bytes)).unwrap()
    };
    let (alone, crowded) = (choose(1, 7, 64 << 10), choose(4, 7, 64 << 10));
    assert_eq!((crowded.slots, crowded.cell), (4, 256 << 10));
    assert!(crowded.slice >= 3 * alone.slice && 7 * crowded.part <= crowded.cell, "{crowded:?} {alone:?}");
    for parts in [1, 7] {
        assert_eq!(choose(1, parts, 2 << 10), choose(4, parts, 2 << 10));
    }
    assert_eq!(choose(1, 1, 1 << 20), choose(4, 1, 1 << 20));
    for (size, cell) in [(3, 256 << 10), (16, 256 << 10), (32, 128 << 10), (128, 32 << 10)] {
        let selection = Tuning::default().select(size, 4).with_rows(1 << 30);
        let choice = selection.choose_blocks(size - 1, true, Vector::of_bytes(1 << 20)).unwrap();
        let owned = selection.block_layout().up_bytes;
        assert!(choice.cell == cell && choice.slots * cell <= owned, "{size} ranks: {choice:?} of {owned} bytes");
    }
    // Who asks for cells gets rows in those, and so does who asks for a small arena, or has a small block.
    let mut asked = Tuning::default();
    asked.force("all:up_bytes=512K").unwrap();
    let usual = Tuning::default().select(8, 4);
    let layout = usual.block_layout();
    assert!(usual.with_rows(1 << 30).block_layout().total() > layout.total());
    let small = usual.with_rows(1 << 30).within(&layout).unwrap();
    for selection in [asked.select(8, 4).with_rows(1 << 30), usual.with_rows(64 << 20), usual, small] {
        let choice = selection.choose_blocks(7, true, Vector::of_bytes(64 << 10)).unwrap();
        assert_eq!((choice.slots, choice.cell), (4, 128 << 10));
    }
}
