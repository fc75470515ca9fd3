//! Transport and nodes over real MPI: `examples/transport_mpi.rs`, built for each MPI that is here and started by its
//! mpirun. Where there is none the tests say so and pass, unless `PHALANX_TEST_MPI=required`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock, PoisonError};

/// The MPIs of Debian, by the suffix of their commands.
const MPIS: [&str; 2] = ["openmpi", "mpich"];

/// One job at a time: ranks that spin slow each other down beyond measure.
static TURN: Mutex<()> = Mutex::new(());

/// The program built for an MPI, if that is here.
fn program(mpi: &str) -> Option<PathBuf> {
    static BUILT: [OnceLock<Option<PathBuf>>; 2] = [OnceLock::new(), OnceLock::new()];
    let place = MPIS.iter().position(|&known| known == mpi).unwrap();
    BUILT[place].get_or_init(|| build(mpi)).clone()
}

fn build(mpi: &str) -> Option<PathBuf> {
    let (compiler, launcher) = (format!("mpicc.{mpi}"), format!("mpirun.{mpi}"));
    let here = |name: &str| Command::new(name).arg("--version").output().is_ok();
    if !here(&compiler) || !here(&launcher) {
        assert!(
            std::env::var("PHALANX_TEST_MPI").as_deref() != Ok("required"),
            "PHALANX_TEST_MPI=required, but {compiler} or {launcher} is missing: \
             apt-get install lib{mpi}-dev and its launcher, libclang1-14 and libclang-common-14-dev"
        );
        eprintln!("skipped: {compiler} or {launcher} is not installed");
        return None;
    }
    // A target directory for each MPI: the bindings are not made anew when the compiler changes.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("../mpi-{mpi}"));
    let output = Command::new(env!("CARGO"))
        .args(["build", "-j2", "-p", "hier", "--features", "mpi", "--example", "transport_mpi", "--target-dir"])
        .arg(&target)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("MPICC", &compiler)
        .output()
        .unwrap();
    assert!(output.status.success(), "build for {mpi}:\n{}", String::from_utf8_lossy(&output.stderr));
    Some(target.join("debug/examples/transport_mpi"))
}

/// What a job printed, and whether its launcher was content.
fn run(launcher: &str, ranks: usize, program: &Path, args: &[&str]) -> (String, bool) {
    run_told(launcher, ranks, program, args, None)
}

/// The same; the ranks' lines go to a file, too.
fn run_told(launcher: &str, ranks: usize, program: &Path, args: &[&str], told: Option<&Path>) -> (String, bool) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", "100", &format!("mpirun.{launcher}")]);
    match launcher {
        "openmpi" => command.args(["--oversubscribe", "--bind-to", "none"]),
        // The others shall live to tell of a rank's death.
        _ => command.arg("-disable-auto-cleanup"),
    };
    command.args(["-n", &ranks.to_string()]).arg(program).args(args);
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1").env("RUST_BACKTRACE", "0");
    if let Some(path) = told {
        command.env("TELL", path);
    }
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    (text, output.status.success())
}

/// The ranks that said `ok`.
fn fine(text: &str) -> Vec<usize> {
    let mut ranks: Vec<usize> = text
        .lines()
        .filter_map(|line| line.strip_prefix("ok rank=")?.split_whitespace().next()?.parse().ok())
        .collect();
    ranks.sort_unstable();
    ranks
}

/// Runs a job under each MPI, in which every rank must be content.
fn everywhere(ranks: usize, args: &[&str]) {
    for (mpi, program) in MPIS.iter().filter_map(|&mpi| Some((mpi, program(mpi)?))) {
        let (text, success) = run(mpi, ranks, &program, args);
        assert!(success, "{mpi}, {args:?}:\n{text}");
        assert_eq!(fine(&text), (0..ranks).collect::<Vec<_>>(), "{mpi}, {args:?}:\n{text}");
    }
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
    let programs: Vec<_> = MPIS.iter().filter_map(|&mpi| Some((mpi, program(mpi)?))).collect();
    for (mpi, program) in &programs {
        for (launcher, _) in &programs {
            let (text, _) = run(launcher, 2, program, &["alone"]);
            match launcher == mpi {
                true => assert_eq!(fine(&text), [0, 1], "{text}"),
                false => {
                    let refused = text.lines().filter(|line| line.starts_with("refused: MPI says")).count();
                    assert_eq!(refused, 2, "{mpi} under the mpirun of {launcher}:\n{text}");
                }
            }
        }
        // Alone by intent.
        let output = Command::new(program).arg("alone").output().unwrap();
        assert_eq!(fine(&String::from_utf8_lossy(&output.stdout)), [0]);
    }
}

#[test]
fn the_death_of_a_rank_is_noticed_within_a_second() {
    for (mpi, program) in MPIS.iter().filter_map(|&mpi| Some((mpi, program(mpi)?))) {
        for (how, victim) in [("kill", 1), ("kill", 0), ("abort", 3), ("exit", 2)] {
            let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("death-{mpi}-{how}-{victim}"));
            let _ = std::fs::remove_file(&file);
            let (said, _) = run_told(mpi, 4, &program, &["die", how, &victim.to_string()], Some(&file));
            let text = std::fs::read_to_string(&file).unwrap_or(said);
            let what = format!("{how} of rank {victim} under {mpi}:\n{text}");
            let value = |line: &str, key: &str| -> u64 {
                let word = line.split_whitespace().find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
                word.and_then(|word| word.parse().ok()).unwrap_or_else(|| panic!("{line} in {what}"))
            };
            let died = text.lines().find(|line| line.contains(" died ")).unwrap_or_else(|| panic!("{what}"));
            let survivors: Vec<_> = text.lines().filter(|line| line.contains(" survived ")).collect();
            // MPICH's launcher kills the others at once when a rank ends by some signals, often before they can speak.
            let least = if mpi == "openmpi" { 3 } else { 0 };
            assert!(survivors.len() >= least, "{what}");
            for line in survivors {
                assert_eq!(value(line, "blames"), victim, "{what}");
                assert!(value(line, "at").saturating_sub(value(died, "at")) < 1000, "{what}");
            }
        }
    }
}

#[test]
#[ignore = "takes 5 GiB of memory"]
fn a_message_of_more_than_2_gib() {
    everywhere(2, &["long"]);
}
