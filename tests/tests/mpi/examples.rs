//! The examples with ranks that mpirun starts: unchanged, with the answers that they give under `phalanx run`.

use crate::job::{Hosts, run};
use crate::{BLOCK, UNEVEN, each};
use phalanx_tests::library::Library;

/// What follows a label, in the first line that begins with it.
fn field<'a>(output: &'a str, label: &str) -> &'a str {
    let rest = output.lines().find_map(|line| line.strip_prefix(label));
    rest.unwrap_or_else(|| panic!("no {label:?} in\n{output}")).trim()
}

/// The first word behind a label, as a number.
fn number(output: &str, label: &str) -> f64 {
    let text = field(output, label).split_whitespace().next().unwrap_or_default();
    text.parse().unwrap_or_else(|_| panic!("{text:?} behind {label:?} is no number in\n{output}"))
}

/// The lines that must be the same in every run: all but those with times and counts.
fn repeatable(output: &str) -> Vec<&str> {
    output.lines().filter(|line| !line.starts_with("time") && !line.starts_with("collectives")).collect()
}

fn output(library: Library, hosts: Hosts, words: &[&str]) -> Option<String> {
    Some(run(library, hosts, &[], words)?.succeeded())
}

#[test]
fn digits_learns_alike_on_every_cluster() {
    each(|library| {
        let words = ["digits", "--epochs", "10"];
        let Some(alone) = output(library, Hosts::One(1), &words) else { return };
        let right = |output: &str| -> usize {
            let words = field(output, "test accuracy").split(['(', ' ']).filter(|word| !word.is_empty());
            words.skip(2).find_map(|word| word.parse().ok()).unwrap_or_else(|| panic!("no count in\n{output}"))
        };
        for hosts in [Hosts::One(4), BLOCK, UNEVEN] {
            let Some(first) = output(library, hosts, &words) else { continue };
            let Some(second) = output(library, hosts, &words) else { continue };
            assert_eq!(repeatable(&first), repeatable(&second), "{library:?}, {hosts:?}: two runs differ");
            let deviation = number(&first, "final loss") / number(&alone, "final loss") - 1.0;
            assert!(deviation.abs() <= 1e-9, "{library:?}, {hosts:?}:\n{first}\none:\n{alone}");
            // Sums in another order may move an image that lies between two digits.
            assert!(right(&first).abs_diff(right(&alone)) <= 2, "{library:?}, {hosts:?}:\n{first}\none:\n{alone}");
        }
    });
}

#[test]
fn cg_finds_the_known_solution_on_every_cluster() {
    each(|library| {
        let words = ["cg", "--grid", "48"];
        let Some(alone) = output(library, Hosts::One(1), &words) else { return };
        for hosts in [Hosts::One(3), BLOCK, UNEVEN] {
            let Some(found) = output(library, hosts, &words) else { continue };
            assert!(number(&found, "error") <= 1e-8, "{library:?}, {hosts:?}:\n{found}");
            let apart = number(&found, "iterations") - number(&alone, "iterations");
            assert!(apart.abs() <= 2.0, "{library:?}, {hosts:?}:\n{found}\none:\n{alone}");
        }
    });
}

#[test]
fn wrong_options_are_refused_once() {
    each(|library| {
        let Some(done) = run(library, Hosts::One(2), &[], &["digits", "--epoch", "3"]) else { return };
        assert_eq!(done.text().matches("unknown option --epoch").count(), 1, "{}", done.text());
        assert!(!done.ended.status.success());
    });
}
