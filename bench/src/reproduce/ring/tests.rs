use super::super::outcome::Verdict;
use super::super::taken::tests::across;
use super::*;
use crate::reproduce::options::{Reproduce, tests::asked};

fn study(words: &[&str]) -> Result<Ring> {
    match asked("ring", words) {
        Reproduce::Ring(options) => Ring::of(&options, &Known::default()),
        other => panic!("{other:?}"),
    }
}

/// By hand, for 32 hosts: the nearest-first butterfly crosses once with 1/32 n of each host of a switch, there and
/// back; the farthest-first one with n/2 of 16 hosts, there and back.
#[test]
fn trunks_by_hand() {
    let loads = trunk_loads(32);
    let load = |name| load_of(&loads, name);
    assert_eq!(load("ring, switch by switch"), 2.0 * 31.0 / 32.0);
    assert_eq!(load("ring, alternating"), 16.0 * 2.0 * 31.0 / 32.0);
    assert_eq!((load("butterfly, nearest first"), load("butterfly, farthest first")), (1.0, 16.0));
    assert_eq!((load("whole vectors (recursive doubling)"), load("binomial trees")), (16.0, 1.0));
}

#[test]
fn the_pieces_of_the_long_and_the_short_form() {
    let long = study(&[]).unwrap();
    assert_eq!((long.block.hosts, long.block.per_switch), (32, Some(16)));
    assert_eq!(long.pieces().len(), 8 + 3 + 2 + 4);
    let short = study(&["--quick"]).unwrap();
    assert_eq!((short.block.hosts, short.pieces().len()), (4, 3));
    let mut keys: Vec<String> = long.pieces().into_iter().map(|piece| piece.key).collect();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 17);
}

#[test]
fn too_few_hosts_are_refused() {
    for (words, word) in [(["--hosts", "2"], "4 or more"), (["--hosts", "7"], "even"), (["--sizes", "4"], "8 bytes")] {
        let Err(error) = study(&words) else { panic!("{words:?}") };
        assert!(error.to_string().contains(word) && error.status() == 2, "{error}");
    }
}

/// Times as the paper has them: the library is faster up to 128 KB, and slower from 512 KB on.
#[test]
fn a_break_even_as_in_the_paper_agrees() {
    let mut taken = Taken::default();
    for (name, bytes, ring, native) in [
        ("a", 64 << 10, 20.0, 10.0),
        ("b", 128 << 10, 20.0, 15.0),
        ("c", 512 << 10, 50.0, 80.0),
        ("d", 2 << 20, 380.0, 800.0),
    ] {
        let [own, library, near, far] = [[ring], [native], [1.2 * ring], [8.0 * ring]];
        taken.put(
            &format!("block/{name}"),
            across(&[(RING, bytes, &own), (NATIVE, bytes, &library), (NEAR, bytes, &near), (FAR, bytes, &far)]),
        );
    }
    let outcome = study(&["--quick"]).unwrap().conclude(&taken).unwrap();
    let finding = &outcome.findings[0];
    assert_eq!(finding.verdict, Verdict::Agrees, "{finding:?}");
    assert!(finding.ours.contains("KB") && finding.ours.contains("n/N"), "{finding:?}");
    // 2 MB on 4 hosts at 10 MB/s: 1.5 x 209.7 ms; 380 / 314.6.
    let bound = outcome.findings.iter().find(|finding| finding.about.contains("bound")).unwrap();
    assert!(bound.ours.starts_with("1.21 times"), "{bound:?}");
}

#[test]
fn without_a_cluster_counts_and_simulations_remain() {
    let outcome = study(&[]).unwrap().conclude(&Taken::default()).unwrap();
    assert_eq!(outcome.findings.iter().map(|finding| finding.how).collect::<Vec<_>>(), [How::Simulated]);
    assert_eq!(outcome.charts.len(), 1);
    // The simulation at the paper's rates is within the margin of the paper.
    assert_ne!(outcome.findings[0].verdict, Verdict::Differs, "{:?}", outcome.findings);
}
