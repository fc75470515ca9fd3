//! Bakes into the library what it was made of, so that a segment made by another build is told from one of its own.

use std::env;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::process::Command;

mod sources;

/// What says where everything lies in a segment, and what it means.
const PARTS: [&str; 1] = ["src"];

fn main() {
    let root = env::var_os("CARGO_MANIFEST_DIR").expect("cargo says where the package is");
    let compiler = env::var_os("RUSTC").expect("cargo says which compiler it calls");
    let version = Command::new(compiler).arg("--version").output().expect("the compiler says its version").stdout;
    let sources = sources::mark(Path::new(&root), &PARTS).expect("the sources that are compiled can be read");
    let mut hasher = DefaultHasher::new();
    (sources, version, env::var_os("TARGET")).hash(&mut hasher);
    PARTS.iter().for_each(|part| println!("cargo::rerun-if-changed={part}"));
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rustc-env=SHM_CORE_BUILD={:016x}", hasher.finish());
}
