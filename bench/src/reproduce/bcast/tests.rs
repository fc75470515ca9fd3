use super::super::taken::tests::across;
use super::*;
use crate::reproduce::options::{Reproduce, tests::asked};

fn study(words: &[&str]) -> Result<Bcast> {
    match asked("bcast", words) {
        Reproduce::Bcast(options) => Bcast::of(&options, &Known::default()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_pieces_of_the_long_and_the_short_form() {
    let ranks = |study: &Bcast| study.jobs.iter().map(|(ranks, _)| *ranks).collect::<Vec<_>>();
    let long = study(&[]).unwrap();
    assert_eq!(ranks(&long), [9, 10, 16, 17, 33, 9, 16, 17]);
    assert_eq!(long.pieces().len(), 4 * 3 + 6 + 2 * 3 + 2);
    assert_eq!(ranks(&study(&["--quick"]).unwrap()), [5, 4]);
    assert_eq!(ranks(&study(&["--hosts", "10"]).unwrap()), [9, 10, 9, 16]);
    assert_eq!(ranks(&study(&["--hosts", "65"]).unwrap()), [9, 10, 16, 17, 33, 65, 9, 16, 17]);
}

#[test]
fn options_without_a_meaning_are_refused() {
    for (words, word) in [(["--hosts", "4"], "5 or more"), (["--slots", "2"], "--hosts"), (["--sizes", "7"], "7 bytes")]
    {
        let Err(error) = study(&words) else { panic!("{words:?}") };
        assert!(error.to_string().contains(word) && error.status() == 2, "{error}");
    }
}

fn with(times: [&[f64]; 2]) -> Outcome {
    let mut taken = Taken::default();
    let cases: [(&str, u64, &[f64]); 2] = [(NATIVE_RING, 1 << 20, times[0]), (SAVING, 1 << 20, times[1])];
    taken.put("9-hosts/1M", across(&cases));
    study(&[]).unwrap().conclude(&taken).unwrap()
}

/// At 9 ranks the count says 84.9 / 71.9 or so: about 1.18.
#[test]
fn it_says_whether_time_follows_the_count() {
    let word = |outcome: &Outcome| outcome.tables[1].rows[0].last().unwrap().clone();
    assert_eq!(word(&with([&[11.8, 11.9, 11.7], &[10.0, 10.0, 10.0]])), "follows the count");
    assert_eq!(word(&with([&[10.0, 10.1, 9.9], &[10.0, 10.0, 10.0]])), "does not follow: no gain");
    assert_eq!(word(&with([&[9.0, 11.5, 12.0], &[10.0, 10.0, 10.0]])), "does not follow: noise");
    assert_eq!(word(&with([&[20.0, 21.0, 22.0], &[10.0, 10.0, 10.0]])), "gains more than the count");
    assert_eq!(word(&with([&[5.0, 5.0, 5.0], &[10.0, 10.0, 10.0]])), "does not follow: slower");
    let of = |outcome: &Outcome, about: &str| {
        outcome.findings.iter().find(|finding| finding.about.contains(about)).unwrap().verdict
    };
    let verdict = |outcome: &Outcome| of(outcome, "a link for each");
    assert_eq!(of(&with([&[5.0, 5.0, 5.0], &[10.0, 10.0, 10.0]]), "cost time"), Verdict::Differs);
    assert_eq!(of(&with([&[10.0], &[10.0]]), "cost time"), Verdict::Agrees);
    assert_eq!(verdict(&with([&[11.8], &[10.0]])), Verdict::Agrees);
    assert_eq!(verdict(&with([&[10.0], &[10.0]])), Verdict::Differs);
}

#[test]
fn counts_need_no_cluster() {
    let outcome = study(&[]).unwrap().conclude(&Taken::default()).unwrap();
    assert_eq!((outcome.findings.len(), outcome.findings[0].verdict), (1, Verdict::Agrees));
    assert_eq!(outcome.tables[0].rows[0][1..4], ["56", "44", "44"].map(String::from));
}
