//! Programs that nobody here wrote, with the library and without: `scripts/dropin-programs`, of which a part is run
//! that takes seconds.
//!
//! They are not installed by a test. Where they are missing the test says so and passes, unless
//! `PHALANX_TEST_PROGRAMS=required`; to have them: `scripts/dropin-programs install --programs mpi4py,hpcc`.

use std::time::Duration;

use phalanx_tests::command;

use crate::programs;
use phalanx_tests::library::{Library, find, root, skip, target};

/// The variable that makes a missing program a failure.
const REQUIRED: &str = "PHALANX_TEST_PROGRAMS";

#[test]
fn real_programs_give_the_same_results() {
    let folder = target().join("dropin-programs");
    let mpis: Vec<&str> = ["openmpi", "mpich"]
        .into_iter()
        .filter(|name| Library::all().iter().any(|library| library.name == *name && library.is_here()))
        .collect();
    if mpis.is_empty() {
        return;
    }
    let mut names = Vec::new();
    for (name, is_here) in [("mpi4py", folder.join("venv/bin/python").exists()), ("hpcc", find("hpcc").is_some())] {
        if is_here {
            names.push(name);
        } else {
            skip(REQUIRED, &format!("{name} is not here: scripts/dropin-programs install --programs {name}"));
        }
    }
    if names.is_empty() {
        return;
    }
    let mut script = command::bare(&root().join("scripts/dropin-programs"));
    script.args(["run", "table", "--again", "--turns", "1", "--ranks", "2", "--limit", "100"]);
    script.args(["--programs", &names.join(","), "--mpis", &mpis.join(",")]).arg("--into").arg(&folder);
    script.arg("--library").arg(programs::preloaded().parent().expect("a file is in a folder"));
    // Communicators of tests live too briefly to be taken over otherwise.
    script.env("PHALANX_AFTER", "2");
    let done = command::run(&mut script, Duration::from_secs(550));
    assert!(done.status.success(), "{}\n{}", done.stdout, done.stderr);
    // The table has a line for each program and MPI: none of them may be without calls that were taken over.
    for name in names {
        let rows: Vec<&str> = done.stdout.lines().filter(|line| line.starts_with(name)).collect();
        assert!(!rows.is_empty(), "{}", done.stdout);
        for row in rows {
            let share: f64 = row.split_whitespace().nth(5).and_then(|word| word.parse().ok()).unwrap_or(0.0);
            assert!(share > 0.0, "nothing was taken over:\n{}", done.stdout);
        }
    }
}
