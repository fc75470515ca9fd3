//! The program of the README: every rank contributes, everybody learns the sum and the largest.
//!
//! ```sh
//! cargo build --release --bins --examples
//! target/release/phalanx run -n 4 -- target/release/examples/hello
//! ```

use phalanx::{
    Communicator,
    operator::{Max, Sum},
};

fn main() -> Result<(), phalanx::Error> {
    let world = Communicator::world()?;
    let mine = [world.rank() as f64, 1.0];

    // Everybody gets the sum, the same bits on all ranks.
    let mut sum = [0.0; 2];
    world.all_reduce_into(&mine, &mut sum, Sum)?;

    // Rank 0 gets the largest, and then tells the others.
    let root = world.process_at_rank(0);
    let mut most = [0.0; 2];
    if world.rank() == root.rank() {
        root.reduce_into_root(&mine, &mut most, Max)?;
    } else {
        root.reduce_into(&mine, Max)?;
    }
    root.broadcast_into(&mut most)?;

    println!("rank {} of {}: sum {sum:?}, largest {most:?}", world.rank(), world.size());
    Ok(())
}
