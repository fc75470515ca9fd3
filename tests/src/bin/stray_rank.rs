//! A program that takes its world, whatever its environment is like: says `world of N` after a sum over it, or
//! `refused: ..` and exits with 2. Then it says `still open` if the descriptor that the environment names is that.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use hier::operator::Sum;
use hier::{Communicator, Error};

fn main() -> ExitCode {
    match sum() {
        Ok((size, sum)) => {
            assert_eq!(sum, size * (size + 1) / 2);
            println!("world of {size}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            println!("refused: {error}");
            let number = std::env::var("PHALANX_SEGMENT").unwrap_or_default();
            if std::fs::exists(format!("/proc/self/fd/{number}")).unwrap_or(false) {
                println!("still open");
            }
            ExitCode::from(2)
        }
    }
}

fn sum() -> Result<(usize, usize), Error> {
    let world = Communicator::world()?;
    // By lines, and again by shares.
    let mut short = [world.rank() + 1];
    world.all_reduce_in_place(&mut short, Sum)?;
    let mut long = vec![world.rank() + 1; 5000];
    world.all_reduce_in_place(&mut long, Sum)?;
    assert_eq!(long, vec![short[0]; 5000]);
    Ok((world.size(), short[0]))
}
