//! What is drawn, and the memories of a rank, with what must be in them.

use bytemuck::{Pod, cast_slice, cast_slice_mut};
use shm_core::{Buffer, Communicator};

/// A sequence of numbers that all ranks draw alike.
#[derive(Clone)]
pub struct Draw(pub u64);

impl Draw {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, most: usize) -> usize {
        (self.next() % most as u64) as usize
    }

    /// Elements of a vector: mostly around whole cells and lines, and never more than half a memory has room for.
    pub fn length(&mut self, element: usize) -> usize {
        const CELLS: [usize; 6] = [64, 256, 512, 1024, 2048, 32768];
        let bytes = match self.below(4) {
            0 => self.below(ROOM / 2),
            1 => self.below(3000),
            _ => CELLS[self.below(CELLS.len())] * self.below(6),
        };
        (bytes / element + self.below(3)).saturating_sub(1).min(ROOM / 2 / element)
    }
}

/// Bytes of a memory.
pub const ROOM: usize = 160 << 10;

/// Bytes that follow from a seed.
pub fn fill(seed: u64, to: &mut [u8]) {
    let mut draw = Draw(seed);
    for word in to.chunks_mut(8) {
        let value = draw.next().to_ne_bytes();
        word.copy_from_slice(&value[..word.len()]);
    }
}

/// Memory of a rank, and what must be in it.
pub struct Memory {
    words: Words,
    mirror: Vec<u8>,
}

enum Words {
    Private(Vec<u64>),
    Shared(Buffer<u64>),
}

impl Memory {
    pub fn new(comm: &Communicator, shared: bool, seed: u64) -> Self {
        let mut mirror = vec![0; ROOM];
        fill(seed, &mut mirror);
        let words = cast_slice(&mirror);
        let words =
            if shared { Words::Shared(comm.alloc_copy(words).unwrap()) } else { Words::Private(words.to_vec()) };
        Self { words, mirror }
    }

    fn bytes(&mut self) -> &mut [u8] {
        cast_slice_mut(match &mut self.words {
            Words::Private(words) => words,
            Words::Shared(words) => words,
        })
    }

    pub fn part<T: Pod>(&mut self, at: usize, n: usize) -> &mut [T] {
        cast_slice_mut(&mut self.bytes()[at..][..n * size_of::<T>()])
    }

    /// Writes a part, whose bytes it must have from now on.
    pub fn set(&mut self, at: usize, values: &[u8]) {
        self.bytes()[at..][..values.len()].copy_from_slice(values);
        self.expect(at, values);
    }

    pub fn expect(&mut self, at: usize, values: &[u8]) {
        self.mirror[at..][..values.len()].copy_from_slice(values);
    }

    #[track_caller]
    pub fn check(&mut self, what: &str) {
        let Self { mirror, .. } = self;
        let mirror = std::mem::take(mirror);
        let found = self.bytes();
        if *found != mirror {
            let wrong: Vec<usize> = (0..ROOM).filter(|&at| found[at] != mirror[at]).collect();
            panic!("{what}: {} bytes are wrong, from {} to {}", wrong.len(), wrong[0], wrong[wrong.len() - 1]);
        }
        self.mirror = mirror;
    }
}
