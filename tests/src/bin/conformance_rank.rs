//! A rank that makes the calls of a conformance sweep, and checks every answer.
//!
//! `conformance_rank MODE SEED ..`: see [`main`]. A wrong answer is a panic.

#![forbid(unsafe_code)]

use hier::Communicator;
use phalanx_tests::bits::fingerprints;
use phalanx_tests::mix::Mix;
use phalanx_tests::settings::SETTINGS;
use phalanx_tests::sweep::Sweep;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| args.get(at).and_then(|arg| arg.parse::<u64>().ok()).expect("a number");
    let seed = number(1);
    let world = Communicator::world().expect("the world");
    let size = world.size();
    assert_eq!(std::env::var("PHALANX_SIZE"), Ok(size.to_string()));
    assert_eq!(std::env::var("PHALANX_RANK"), Ok(world.rank().to_string()));
    let mut sweep = Sweep::new(&world, args.join(" "), seed, args[0] == "late");
    let made = match args[0].as_str() {
        // SETTING: types x operators, under a setting that the environment forces.
        "types" => {
            let setting = SETTINGS[number(2) as usize];
            sweep.takes(&setting).expect("an explanation");
            let edges = setting.edges(size);
            sweep.types(2, edges[size % edges.len()].min(1200));
            sweep.calls
        }
        // SETTING: lengths around every edge.
        "lengths" => {
            sweep.lengths(&SETTINGS[number(2) as usize]);
            sweep.calls
        }
        // Every root, ranks in time or late.
        "roots" | "late" => {
            sweep.roots(&[1, 8, 9, 80, 130, 700]);
            sweep.calls
        }
        // SETTING: blocks that are combined, of all types; and blocks of all lengths, under a setting that the
        // environment forces.
        "block-types" => {
            let edges = SETTINGS[number(2) as usize].edges(size);
            sweep.block_types(edges[size % edges.len()].min(1200));
            sweep.calls
        }
        "block-lengths" => {
            sweep.block_lengths(&SETTINGS[number(2) as usize]);
            sweep.calls
        }
        // Blocks that may be moved where they lie.
        "block-long" => {
            sweep.block_long();
            sweep.calls
        }
        // Blocks with every root.
        "block-roots" => {
            sweep.block_roots(&[0, 1, 9, 80, 700]);
            sweep.calls
        }
        // CALLS MOST: a random mix of so many calls, of up to so many bytes.
        "mix" => {
            let mix = Mix { seed, calls: number(2) as usize, most: number(3) as usize, late: true };
            mix.run(&world).expect("a mix")
        }
        // ORDERED: sums that round. Rank 0 prints their fingerprints.
        "bits" => {
            let found = fingerprints(&world, seed, number(2) == 1, true).expect("sums");
            if world.rank() == 0 {
                println!("bits {found:?}");
            }
            found.len()
        }
        other => panic!("{other:?} is no mode"),
    };
    world.barrier().expect("a barrier");
    if world.rank() == 0 {
        println!("made {made} calls on {size} ranks; {} private bytes became shared", world.converted());
    }
}
