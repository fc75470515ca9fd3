use super::super::taken::tests::across;
use super::*;
use crate::reproduce::options::{Reproduce, tests::asked};

fn study(words: &[&str]) -> Result<Dpml> {
    match asked("dpml", words) {
        Reproduce::Dpml(options) => Dpml::of(&options, &Known::default()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn as_many_leaders_as_ranks_a_host() {
    assert_eq!(study(&[]).unwrap().job.series.len(), 5);
    assert_eq!(study(&["--slots", "8", "--hosts", "2"]).unwrap().job.series.len(), 9);
    for (words, word) in [(["--slots", "9"], "2 to 8"), (["--slots", "1"], "2 to 8"), (["--hosts", "1"], "2 or more")] {
        let Err(error) = study(&words) else { panic!("{words:?}") };
        assert!(error.to_string().contains(word), "{error}");
    }
}

#[test]
fn the_best_number_of_leaders_and_its_gain() {
    let mut taken = Taken::default();
    taken.put(
        "leaders/1K",
        across(&[("1-leader", 1024, &[1.0, 1.0]), ("2-leaders", 1024, &[1.5, 1.6]), ("native", 1024, &[0.9, 0.9])]),
    );
    taken.put(
        "leaders/1M",
        across(&[
            ("1-leader", 1 << 20, &[30.0, 31.0]),
            ("2-leaders", 1 << 20, &[20.0, 20.0]),
            ("native", 1 << 20, &[60.0, 62.0]),
        ]),
    );
    let outcome = study(&["--quick"]).unwrap().conclude(&taken).unwrap();
    let best: Vec<&str> = outcome.tables[0].rows.iter().map(|row| row[4].as_str()).collect();
    assert_eq!(best, ["1", "2"]);
    assert_eq!((outcome.findings[0].verdict, outcome.findings[1].verdict), (Verdict::Agrees, Verdict::Agrees));
    assert!(outcome.findings[0].ours.contains("1M (2)"), "{}", outcome.findings[0].ours);
}

#[test]
fn zones_by_the_growth_of_rates() {
    let zone = |rates: [f64; 3]| Zone {
        bytes: 64,
        rates: [1, 2, 4].into_iter().zip(rates.map(|rate| Summary::of(&[rate]))).collect(),
    };
    assert!(zone([100.0, 200.0, 390.0]).name().starts_with('A'));
    assert!(zone([100.0, 180.0, 250.0]).name().starts_with('B'));
    assert!(zone([100.0, 100.0, 98.0]).name().starts_with('C'));
}
