//! Bakes the compiler's version into the benchmark, so that a record tells which compiler made
//! the code that was timed, and not which one happens to be in the path when it runs.

use std::env;
use std::process::Command;

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
}
