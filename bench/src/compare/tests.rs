use super::*;
use crate::cores::States;
use crate::gate::look::Look;
use crate::rows::tests::{case, samples};

fn rows() -> Vec<Row> {
    let row = |series: &str, bytes, ns| Row::of(series, 2, &case(Operation::Allreduce, bytes), &[samples(ns)]);
    vec![
        row("phalanx", 8, 1000.0),
        row("openmpi", 8, 4000.0),
        row("openmpi:sm", 8, 3000.0),
        row("impi:stock", 8, 2000.0),
        row("phalanx", 4096, 8000.0),
        row("openmpi", 4096, 4000.0),
        row("phalanx", 1 << 20, 1.0),
    ]
}

#[test]
fn the_best_is_the_quickest_series_of_all() {
    let all = comparisons(&rows());
    assert_eq!(all.len(), 2, "a row with nobody beside it is no comparison");
    assert_eq!(all[0].best().unwrap().series, "impi:stock");
    assert_eq!(all[0].best_stock().unwrap().ratio.value, 2.0);
    assert_eq!(all[0].of("openmpi", false).unwrap().series, "openmpi:sm");
    assert_eq!(all[1].best().unwrap().ratio.value, 0.5);
    assert_eq!(all[1].best_stock(), None);
}

/// Ours beside another, with so many microseconds in each of three states: shared, near, far.
fn in_states(ours: [f64; 3], theirs: [f64; 3], looks: [[f64; 2]; 3]) -> [Row; 2] {
    let looks = looks.map(|[exchange, slowdown]| [Look { exchange, slowdown }; 2]);
    let states = States::of(looks.as_flattened());
    [("phalanx", ours), ("impi", theirs)].map(|(series, us)| {
        let [shared, near, far] = us.map(|us| 1e3 * us);
        let mut turn = samples(near);
        turn.slowest = vec![shared, 0.5 * near, near, 0.5 * far, far];
        turn.looks = looks.concat();
        Row::of(series, 2, &case(Operation::Allreduce, 8), std::slice::from_ref(&turn)).parted(&[turn], &states)
    })
}

#[test]
fn blocks_stand_beside_blocks_of_the_same_state() {
    let looks = [[20.0, 2.0], [36.0, 1.0], [190.0, 1.0]];
    let rows = in_states([8.0, 1.0, 5.0], [6.0, 2.0, 5.0], looks);
    let ratio = |of: &Comparison| (of.cores, of.best().unwrap().ratio.value);
    let by_cores: Vec<_> = comparisons_by_cores(&rows).iter().map(ratio).collect();
    assert_eq!(by_cores, Cores::ALL.map(Some).into_iter().zip([0.75, 2.0, 1.0]).collect::<Vec<_>>());
    assert_eq!(comparisons(&rows).iter().map(ratio).collect::<Vec<_>>(), [(None, 1.0)]);
    let words = |cores| cores_words(cores, &rows, 2);
    assert_eq!(words(Some(Cores::Shared)), ", threads of one core (a bare exchange took 0.020 us)");
    assert_eq!(words(Some(Cores::Far)), ", cores far apart (a bare exchange took 0.190 us)");
    assert_eq!(words(None), "");
    assert!(comparisons_by_cores(&self::rows()).is_empty(), "nobody looked");
}

#[test]
fn ranks_that_nobody_looked_at_have_no_state_of_others() {
    let shared = in_states([1.0; 3], [1.0; 3], [[20.0, 2.0]; 3]);
    let eight = ["phalanx", "impi"].map(|series| Row::of(series, 8, &case(Operation::Allreduce, 8), &[samples(1e3)]));
    let rows = [shared, eight].concat();
    assert_eq!([2, 8].map(|ranks| cores_words(None, &rows, ranks).is_empty()), [false, true]);
}

#[test]
fn any_two_states_have_tables_of_their_own_and_one_has_none() {
    let [shared, near, far] = [[20.0, 2.0], [36.0, 1.0], [190.0, 1.0]];
    let states = |looks| {
        let rows = in_states([1.0; 3], [1.0; 3], looks);
        let of = comparisons_by_cores(&rows).iter().filter_map(|comparison| comparison.cores).collect::<Vec<_>>();
        (of, cores_words(None, &rows, 2).len() > 1)
    };
    assert_eq!(states([near, near, far]), (vec![Cores::Near, Cores::Far], false));
    assert_eq!(states([shared, near, near]), (vec![Cores::Shared, Cores::Near], false));
    assert_eq!(states([shared, far, far]), (vec![Cores::Shared, Cores::Near], false), "the nearest there are");
    assert_eq!(states([far; 3]), (vec![], false));
    assert_eq!(states([shared; 3]), (vec![], true), "the table of all blocks says it");
}

#[test]
fn the_table_says_where_ours_is_worst() {
    let all = comparisons(&rows());
    let text = render(&all.iter().collect::<Vec<_>>());
    assert!(text.contains("smallest best/ours: 0.50 at 4K, openmpi; ours is slower at 1 of 2"), "{text}");
    assert!(text.contains("smallest stock/ours: 2.00 at 8, impi:stock; ours is slower at 0 of 1"), "{text}");
    assert_eq!(text.lines().count(), 5);
    let summary = summary(&all);
    assert_eq!(summary.lines().count(), 2);
    assert!(summary.contains("1 of 2"), "{summary}");
}

#[test]
fn a_plot_has_one_curve_for_each_peer() {
    let kept = by_peer(&rows());
    let series: Vec<&str> = kept.iter().filter(|row| row.bytes == 8).map(|row| row.series.as_str()).collect();
    assert_eq!(series, ["phalanx", "openmpi", "impi"]);
    assert_eq!(kept[1].time.median, 4.5);
}
