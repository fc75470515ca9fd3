//! Bakes into the benchmark what it was made of, so that a record tells the compiler and the sources of the code that
//! was timed, and not those which happen to lie there when it runs.

use std::env;
use std::path::Path;
use std::process::Command;

#[path = "src/record/sources.rs"]
mod sources;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let compiler = env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let version = Command::new(compiler)
        .arg("--version")
        .output()
        .ok()
        .and_then(|output| String::from_utf8(output.stdout).ok())
        .unwrap_or_default();
    println!("cargo::rustc-env=BENCH_RUSTC={}", version.trim());
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for part in sources::PARTS {
        println!("cargo::rerun-if-changed={}", repository.join(part).display());
    }
    println!("cargo::rustc-env=BENCH_SOURCES={}", sources::mark(&repository).unwrap_or_default());
}
