//! What `tests/mpi` builds for each MPI and runs under its mpirun: `mpi_rank WHAT ..`. A wrong answer is a panic, which
//! ends the job; when all is well rank 0 writes a line that begins with `ok`.

#![forbid(unsafe_code)]

mod conformance;
mod failures;
mod isolation;
mod progress;
mod recovery;
mod watch;

use mpi::topology::SimpleCommunicator;
use phalanx_tests::Communicator;

fn main() {
    // A rank that panics must not wait for the others in MPI_Finalize.
    let says = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        says(panic);
        std::process::exit(101);
    }));
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| -> u64 {
        args.get(at).and_then(|arg| arg.parse().ok()).unwrap_or_else(|| panic!("argument {at} of {args:?} is a number"))
    };
    if args.first().map(String::as_str) == Some("unready") {
        return failures::unready();
    }
    watch::start(args.join(" "));
    let universe = mpi::initialize().expect("MPI is initialised once");
    let world = universe.world();
    match args[0].as_str() {
        // SEED: lengths around every threshold, every root; first all types, or a few in turn.
        "types" => conformance::sweep(&world, number(1), true),
        "sizes" => conformance::sweep(&world, number(1), false),
        // SEED CALLS MOST: a random mix of so many calls, of up to so many bytes, over communicators that come and go.
        "mix" => conformance::mix(&world, number(1), number(2) as usize, number(3) as usize),
        // Messages of more than 2^31 bytes.
        "long" => conformance::long(&world),
        // More than 2^31 elements.
        "octets" => conformance::octets(&world),
        // TIMES: communicators that are made and dropped.
        "churn" => conformance::churn(&world, number(1) as usize),
        // BYTES: the program's own messages move on inside of collectives.
        "progress" => progress::run(&world, number(1) as usize),
        "isolation" => isolation::run(&world),
        // From here on, what each rank was told instead of an answer.
        "alone" => failures::alone(&world),
        "lengths" => failures::lengths(&world, number(1) as usize),
        // MORE: so many elements more on one node than on the others.
        "counts" => failures::counts(&world, number(1) as usize),
        // HOW RANK: a rank ends MPI while the others are in a call.
        "leave" => failures::leave(&world, &args[1], number(2) as usize),
        "die" => failures::die(&world, number(1) as usize),
        // HOW RANK MICROSECONDS [connected]: a rank ends so long after the start, whatever it does then; or after a
        // barrier, amid allreduces.
        "end" => failures::end(&world, &args[1], number(2) as usize, number(3), args.len() > 4),
        // ELEMENTS NODES [HOW:RANK ..]: ranks that fail one after another, of as they are numbered at first; the others
        // go on.
        "recover" => recovery::run(&world, number(1) as usize, &args[2], &args[3..]),
        "no-recovery" => recovery::refused(&world),
        other => panic!("{other:?} is nothing that this program does"),
    }
}

/// The communicator under test.
fn collectives(world: &SimpleCommunicator) -> Communicator {
    Communicator::from_mpi(world).unwrap_or_else(|error| panic!("no communicator: {error}"))
}

/// Says on rank 0 that all is well, once all ranks have come here.
fn well(comm: &Communicator, text: &str) {
    comm.barrier().expect("a barrier");
    if comm.rank() == 0 {
        println!("ok: {} ranks on {} nodes: {text}", comm.size(), comm.placement().nodes());
    }
}
