//! A rank that makes and drops communicators: `churning_rank TIMES`. Says `flat` when nothing has grown by it.

#![forbid(unsafe_code)]

use hier::Communicator;
use hier::operator::Sum;
use phalanx_tests::footprint::Footprint;

fn main() {
    let times: usize = std::env::args().nth(1).and_then(|arg| arg.parse().ok()).expect("churning_rank TIMES");
    let world = Communicator::world().expect("the world");
    let turn = |turn: usize| {
        let copy = world.duplicate().expect("a duplicate");
        let part = world.split(Some((world.rank() + turn) as u32 % 2), -(world.rank() as i64)).expect("a split");
        let part = part.expect("a part");
        let mut sum = [1usize; 20];
        part.all_reduce_in_place(&mut sum, Sum).expect("a sum");
        assert_eq!(sum, [part.size(); 20]);
        copy.barrier().expect("a barrier");
    };
    (0..200).for_each(turn);
    let before = Footprint::own();
    (0..times).for_each(turn);
    let after = Footprint::own();
    if let Some(growth) = after.growth(&before) {
        panic!("rank {}: {growth}", world.rank());
    }
    println!("flat rank={} {after:?}", world.rank());
}
