//! Transport and nodes over real MPI: hier's `examples/transport_mpi.rs`.

use std::path::{Path, PathBuf};

use phalanx_tests::library::{Family, Library};

use crate::each;
use crate::failures::is_foreign;
use crate::job::{Done, Hosts, others_live, run_built_for, run_with};

/// The ranks that said `ok`.
fn fine(text: &str) -> Vec<usize> {
    let rank = |line: &str| line.strip_prefix("ok rank=")?.split_whitespace().next()?.parse().ok();
    let mut ranks: Vec<usize> = text.lines().filter_map(rank).collect();
    ranks.sort_unstable();
    ranks
}

fn job(library: Library, ranks: usize, variables: &[(&str, &str)], words: &[&str]) -> Option<Done> {
    let words = [&["transport_mpi"], words].concat();
    run_with(library, library, Hosts::One(ranks), others_live(library), variables, &words)
}

/// A job under each MPI, in which every rank must be content.
fn everywhere(ranks: usize, words: &[&str]) {
    each(|library| {
        let Some(done) = job(library, ranks, &[], words) else { return };
        let text = done.succeeded();
        assert_eq!(fine(&text), (0..ranks).collect::<Vec<_>>(), "{library:?}, {words:?}:\n{text}");
    });
}

#[test]
fn the_contract_holds() {
    for ranks in [1, 2, 3, 4] {
        everywhere(ranks, &["contract"]);
    }
}

#[test]
fn threads_are_refused_below_serialized() {
    for level in ["single", "funneled", "serialized", "multiple"] {
        everywhere(2, &["level", level]);
    }
}

#[test]
fn mpi_that_has_not_begun_or_is_over() {
    everywhere(2, &["unready"]);
}

#[test]
fn communicators_and_calls_that_cannot_be() {
    for ranks in [2, 3] {
        everywhere(ranks, &["misuse"]);
    }
}

#[test]
fn nodes_found_and_given() {
    for nodes in ["found", "0,0,1,1", "0,1,0,1", "0,1,1,1", "0,1,2,3"] {
        everywhere(4, &["join", nodes]);
    }
}

#[test]
fn joining_again_and_again_leaves_nothing_behind() {
    everywhere(3, &["again"]);
}

#[test]
fn a_rank_that_leaves_in_good_order_stops_nobody_who_does_not_need_it() {
    everywhere(4, &["leave"]);
}

#[test]
fn the_launcher_of_another_mpi_is_recognised() {
    each(|built| {
        for &launcher in Library::all().iter().filter(|launcher| launcher.is_here()) {
            let Some(done) = run_built_for(built, launcher, Hosts::One(2), &[], &["transport_mpi", "alone"]) else {
                return;
            };
            let text = done.text();
            if !is_foreign(built.family, launcher.family) {
                assert_eq!(fine(&text), [0, 1], "{text}");
                continue;
            }
            let refused = text.lines().filter(|line| line.starts_with("refused: MPI says")).count();
            assert_eq!(refused, 2, "{built:?} under the mpirun of {launcher:?}:\n{text}");
        }
        // Alone by intent.
        let program = built.programs().join("examples/transport_mpi");
        let output = phalanx_tests::command::bare(&program).arg("alone").output().expect("it starts");
        assert_eq!(fine(&String::from_utf8_lossy(&output.stdout)), [0]);
    });
}

/// A file that the ranks of a job add their lines to, whatever the launcher does to their output.
fn file_to_tell(name: &str) -> PathBuf {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_file(&file);
    file
}

/// A number in a line of words `name=number`.
fn value(line: &str, name: &str) -> u64 {
    let word = line.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    word.and_then(|word| word.parse().ok()).unwrap_or_else(|| panic!("no number {name} in {line}"))
}

#[test]
fn the_death_of_a_rank_is_noticed_within_a_second() {
    each(|library| {
        for (how, victim) in [("kill", 1), ("kill", 0), ("abort", 3), ("exit", 2)] {
            let file = file_to_tell(&format!("death-{}-{how}-{victim}", library.name));
            let told = [("TELL", file.to_str().expect("the path is text"))];
            let Some(done) = job(library, 4, &told, &["die", how, &victim.to_string()]) else { return };
            let text = std::fs::read_to_string(&file).unwrap_or_else(|_| done.text());
            let what = format!("{how} of rank {victim} under {library:?}:\n{text}");
            let died = text.lines().find(|line| line.contains(" died ")).unwrap_or_else(|| panic!("{what}"));
            let survivors: Vec<_> = text.lines().filter(|line| line.contains(" survived ")).collect();
            // MPICH's launcher kills the others at once when a rank ends by some signals, often before they can speak.
            let least = if library.family == Family::OpenMpi { 3 } else { 0 };
            assert!(survivors.len() >= least, "{what}");
            for line in survivors {
                assert_eq!(value(line, "blames"), victim, "{what}");
                assert!(value(line, "at").saturating_sub(value(died, "at")) < 1000, "{what}");
            }
        }
    });
}

#[test]
#[ignore = "takes 5 GiB of memory"]
fn a_message_of_more_than_2_gib() {
    everywhere(2, &["long"]);
}
