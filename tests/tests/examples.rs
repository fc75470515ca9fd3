//! The programs in `examples/`, run under the command with real processes: the same bits in every run, one rank's
//! answer at any number of ranks, and errors that say what is wrong.

#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use phalanx_tests::command::{self, Ended};

/// Past this a run counts as hung. A run takes well below a second on an idle machine.
const WATCHDOG: Duration = Duration::from_secs(60);

/// Test images that two runs with different numbers of ranks may read differently. The gradients are added in another
/// order then, so an image on the edge between two digits may fall to the other side.
const SAMPLES: usize = 2;

/// How far apart, as a part of the loss, the losses of different numbers of ranks may be, for the same reason.
const LOSS: f64 = 1e-9;

/// Where cargo puts the examples that belong to this test: beside the folder of the test itself.
fn example(name: &str) -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let test = std::env::current_exe().expect("the path of this test");
        let profile = test.parent().and_then(Path::parent).expect("TARGET/PROFILE/deps/TEST");
        // `cargo test --workspace` has built the examples already, `cargo test -p phalanx-tests` has not. Of
        // `--package phalanx` alone, the crates would have other features, and all be built once more. The profile is
        // that of this test: `cargo test` and `cargo test --release` are the two that exist.
        let release = profile.file_name().is_some_and(|name| name == "release");
        let status = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--workspace", "--examples"])
            .args(["--profile", if release { "bench" } else { "test" }])
            .arg("--target-dir")
            .arg(profile.parent().expect("TARGET"))
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("root"))
            .status()
            .expect("cargo starts");
        assert!(status.success(), "the examples do not build: {status}");
        profile.join("examples")
    });
    folder.join(name)
}

/// Runs an example with `ranks` ranks under the command.
fn run(name: &str, ranks: usize, arguments: &[&str]) -> Ended {
    let program = example(name);
    command::run(&mut command::job(program.to_str().expect("a path in UTF-8"), ranks, arguments), WATCHDOG)
}

/// The word number `word`, from 0, of the first line that begins with `label`, counted behind the label.
fn field<'a>(output: &'a str, label: &str, word: usize) -> &'a str {
    output
        .lines()
        .find_map(|line| line.strip_prefix(label))
        .and_then(|rest| rest.split_whitespace().nth(word))
        .unwrap_or_else(|| panic!("no word {word} behind {label:?} in\n{output}"))
        .trim_matches(['(', ')', ','])
}

/// A field that is a number.
fn number<T: std::str::FromStr>(output: &str, label: &str, word: usize) -> T {
    let text = field(output, label, word);
    text.parse().unwrap_or_else(|_| panic!("{text:?} behind {label:?} is not a number in\n{output}"))
}

/// The lines that must be the same in every run: all but those with times and counts.
fn repeatable(output: &str) -> Vec<&str> {
    output.lines().filter(|line| !line.starts_with("time") && !line.starts_with("collectives")).collect()
}

#[test]
fn digits_gives_the_same_bits_in_every_run() {
    let first = run("digits", 4, &[]).succeeded();
    let second = run("digits", 4, &[]).succeeded();
    assert_eq!(field(&first, "final loss", 2), field(&second, "final loss", 2));
    assert_eq!(repeatable(&first), repeatable(&second));
}

#[test]
fn digits_has_one_ranks_accuracy_at_two_and_four_ranks() {
    let alone = run("digits", 1, &[]).succeeded();
    let right: usize = number(&alone, "test accuracy", 2);
    let tested: usize = number(&alone, "test accuracy", 4);
    let loss: f64 = number(&alone, "final loss", 0);
    assert_eq!(tested, 359, "{alone}");
    assert!(right * 100 >= tested * 95, "the network has not learned:\n{alone}");
    for ranks in [2, 4] {
        let output = run("digits", ranks, &[]).succeeded();
        let apart = right.abs_diff(number(&output, "test accuracy", 2));
        assert!(apart <= SAMPLES, "{ranks} ranks:\n{output}\none:\n{alone}");
        let deviation = (number::<f64>(&output, "final loss", 0) / loss - 1.0).abs();
        assert!(deviation <= LOSS, "{ranks} ranks:\n{output}\none:\n{alone}");
    }
}

#[test]
fn digits_serves_more_ranks_than_a_batch_has_images() {
    let arguments = ["--epochs", "1", "--batch", "5"];
    let alone = run("digits", 1, &arguments).succeeded();
    let many = run("digits", 7, &arguments).succeeded();
    let deviation: f64 = number::<f64>(&many, "final loss", 0) / number::<f64>(&alone, "final loss", 0) - 1.0;
    assert!(deviation.abs() <= LOSS, "7 ranks:\n{many}\none:\n{alone}");
}

#[test]
fn digits_names_the_bad_line_of_its_data() {
    let folder = std::env::temp_dir().join(format!("phalanx-digits-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for the data");
    let path = folder.join("bad.csv");
    let good = format!("{}7", "3,".repeat(64));
    let bad = format!("{}7", "17,".repeat(64));
    std::fs::write(&path, format!("{good}\n{good}\n{bad}\n")).expect("the data can be written");

    let path_text = path.to_str().expect("a path of plain letters");
    let ended = run("digits", 3, &["--data", path_text]);
    std::fs::remove_dir_all(&folder).expect("the folder can be removed");
    assert_eq!(ended.status.code(), Some(1), "{}", ended.stderr);
    let expected = format!("{path_text}, line 3: field 1: \"17\" is not a pixel");
    assert!(ended.stderr.contains(&expected), "{}", ended.stderr);
    assert_eq!(ended.stderr.matches("not a pixel").count(), 1, "one rank speaks for all:\n{}", ended.stderr);
}

#[test]
fn digits_refuses_an_unknown_option() {
    let ended = run("digits", 2, &["--epoch", "3"]);
    assert_eq!(ended.status.code(), Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("unknown option --epoch"), "{}", ended.stderr);
}

#[test]
fn cg_finds_the_known_solution_at_any_number_of_ranks() {
    let arguments = ["--grid", "96"];
    let alone = run("cg", 1, &arguments).succeeded();
    let iterations: usize = number(&alone, "iterations", 0);
    for ranks in [1, 2, 3, 4, 7] {
        let output = run("cg", ranks, &arguments).succeeded();
        let error: f64 = number(&output, "error", 0);
        assert!(error <= 1e-8, "{ranks} ranks:\n{output}");
        // Rounding differs with the strips, and may move the last iteration.
        let apart = iterations.abs_diff(number(&output, "iterations", 0));
        assert!(apart <= 2, "{ranks} ranks:\n{output}\none:\n{alone}");
    }
}

#[test]
fn cg_gives_the_same_bits_in_every_run() {
    let first = run("cg", 4, &["--grid", "96"]).succeeded();
    let second = run("cg", 4, &["--grid", "96"]).succeeded();
    assert_eq!(field(&first, "final residual", 2), field(&second, "final residual", 2));
    assert_eq!(repeatable(&first), repeatable(&second));
}

#[test]
fn cg_gives_every_rank_one_row() {
    let output = run("cg", 8, &["--grid", "8"]).succeeded();
    assert!(number::<f64>(&output, "error", 0) <= 1e-8, "{output}");
}

#[test]
fn cg_refuses_more_ranks_than_rows() {
    let ended = run("cg", 3, &["--grid", "2"]);
    assert_eq!(ended.status.code(), Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("3 ranks cannot share 2 rows"), "{}", ended.stderr);
}

#[test]
fn cg_fails_when_the_solution_is_not_reached() {
    let ended = run("cg", 2, &["--grid", "96", "--max-iterations", "5"]);
    assert_eq!(ended.status.code(), Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("was not reached in 5 iterations"), "{}", ended.stderr);
}
