# Two commands do everything, on a fresh Debian 12 with Rust: `make run` shows, `make test` checks.

.PHONY: help run test mpi-tests setup build lint record clean

help:
	@echo 'make run     build, and measure the collectives of this machine at 2 and at 8 ranks (about 5 minutes)'
	@echo 'make test    lints, models, conformance, faults, examples (15 to 30 minutes on 2 cores)'
	@echo 'make mpi-tests  the part of them that needs an MPI: one host, emulated cluster (about 7 minutes)'
	@echo 'make record  the measurement beside five MPIs, into records/ (about 20 minutes; installs three of them from PyPI)'
	@echo 'make build   target/release/phalanx, target/release/bench and the examples'
	@echo 'make setup   only installs what is missing'

setup:
	@scripts/setup

build: setup
	cargo build --release --workspace --bins --examples

run: build
	target/release/bench collectives --short --ranks 2,8

lint: setup
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	scripts/lint-mpi
	scripts/lint-arm

# What needs an MPI or namespaces says so, and is skipped, where they are missing (tests/tests/mpi).
test: lint
	scripts/test

# Only the programs that mpirun starts.
mpi-tests: setup
	cargo test --workspace --test mpi

record: build
	scripts/peers
	target/release/bench collectives --baseline all --name peers

clean:
	cargo clean
