//! Compiles the list of MPI's constants with the compiler of the MPI that the library is for.

fn main() {
    println!("cargo::rerun-if-env-changed=MPICC");
    println!("cargo::rerun-if-env-changed=PHALANX_MPICC");
    println!("cargo::rerun-if-changed=src/abi/constants.c");
    println!("cargo::rerun-if-env-changed=PHALANX_MPI_ABI");
    println!("cargo::rustc-check-cfg=cfg(open_mpi)");
    println!("cargo::rustc-check-cfg=cfg(handles_are_pointers)");
    #[cfg(feature = "mpi")]
    compile();
}

#[cfg(feature = "mpi")]
fn compile() {
    let compiler = std::env::var_os("MPICC").unwrap_or_else(|| "mpicc".into());
    let mut build = cc::Build::new();
    build.compiler(&compiler).file("src/abi/constants.c").warnings(true);
    // Which ABI it is, its header says.
    let expanded = cc::Build::new().compiler(&compiler).file("src/abi/constants.c").expand();
    let expanded = String::from_utf8_lossy(&expanded);
    let is_open_mpi = expanded.contains("ompi_mpi_comm_world");
    if is_open_mpi {
        println!("cargo::rustc-cfg=open_mpi");
    }
    if is_open_mpi || expanded.contains("struct MPI_ABI_Comm") {
        println!("cargo::rustc-cfg=handles_are_pointers");
    }
    build.compile("phalanx_mpi_constants");
}
