//! Sweeps over the calls that move blocks, or combine them: the same under threads and under processes.

use crate::block_call::{BlockCall, Kind, Moved, moved};
use crate::cases::{Case, cases, named, own_cases};
use crate::random::Random;
use crate::settings::Setting;
use crate::sweep::Sweep;

/// What a block is made of.
#[derive(Clone, Copy)]
enum Of<'a> {
    Moved(&'a Moved),
    Folded(&'a Case),
}

impl Of<'_> {
    fn element(&self) -> usize {
        match self {
            Of::Moved(moved) => moved.element,
            Of::Folded(case) => case.element,
        }
    }
}

impl Sweep<'_> {
    fn block(&mut self, kind: Kind, of: Of<'_>, uneven: bool, root: usize, len: usize) {
        let (comm, seed, in_place, lying) = self.draw();
        let call = BlockCall { kind, uneven, root, len, in_place, lying, seed };
        let made = match of {
            Of::Moved(moved) => moved.make(comm, &call),
            Of::Folded(case) => case.fold(comm, &call),
        };
        if let Err(error) = made {
            panic!("{}: rank {} of {}: {call:?}: {error}", self.label(), comm.rank(), comm.size());
        }
    }

    /// Every case by reduce-scatter and both scans, each with a length of 1 to 3 and one around `bytes` bytes.
    pub fn block_types(&mut self, bytes: usize) {
        for case in cases() {
            for whole in [2, bytes.checked_div(case.element).unwrap_or(9).max(3)] {
                let len = whole - 1 + self.below(3);
                for kind in Kind::FOLDED {
                    let uneven = kind == Kind::ReduceScatter && self.below(2) == 0;
                    self.block(kind, Of::Folded(&case), uneven, 0, len);
                }
            }
        }
    }

    /// Lengths 0, 1, 2, odd ones, and one element below, at and above every edge of the setting and of its division
    /// among the other ranks, with every root, blocks even or not; types take turns.
    pub fn block_lengths(&mut self, setting: &Setting) {
        let size = self.size();
        let moved = moved();
        let mut folded = named(&["u8 Sum", "u64 Sum", "f32 Sum", "Complex<f64> Sum", "bf16 Max"]);
        folded.extend(own_cases());
        let parts = (size - 1).max(1);
        let mut edges: Vec<usize> = setting.edges(size);
        edges.truncate(4);
        edges.extend(edges.clone().into_iter().map(|edge| edge / parts));
        edges.push(504 / parts / 8 * 8);
        edges.retain(|&edge| edge * size <= 1 << 19);
        edges.sort_unstable();
        edges.dedup();
        let mut turn = self.below(folded.len());
        let mut root = self.below(size);
        for edge in std::iter::once(0).chain(edges) {
            for around in [-1, 0, 1, 7] {
                let len = |element: usize| ((edge / element.max(1)) as isize + around).max(0) as usize;
                for kind in Kind::MOVED {
                    turn += 1;
                    root = (root + 1) % size;
                    let moved = moved[turn % moved.len()];
                    self.block(kind, Of::Moved(&moved), turn.is_multiple_of(3), root, len(moved.element));
                    self.block(kind, Of::Moved(&moved), !turn.is_multiple_of(3), (root + 1) % size, len(moved.element));
                }
                for kind in Kind::FOLDED {
                    turn += 1;
                    let case = folded[turn % folded.len()];
                    self.block(
                        kind,
                        Of::Folded(&case),
                        kind == Kind::ReduceScatter && turn.is_multiple_of(2),
                        0,
                        len(case.element),
                    );
                }
            }
        }
    }

    /// Blocks around the lengths from which private ones are moved where they lie, where ranks share cores: of 64 and
    /// 128 KiB, and of so many that all of a root's have 512 KiB; two roots each, even and uneven, among shorter ones.
    pub fn block_long(&mut self) {
        let (size, moved) = (self.size(), moved());
        let mut edges = vec![64 << 10, 128 << 10, ((512 << 10) / size).max(64 << 10)];
        edges.dedup();
        for edge in edges {
            for around in [-1, 0, 1] {
                for kind in Kind::MOVED {
                    let moved = moved[self.below(moved.len())];
                    let len = ((edge / moved.element.max(1)) as isize + around) as usize;
                    let root = self.below(size);
                    for (uneven, root, len) in
                        [(false, root, len), (true, root, len), (false, (root + 1) % size, len / 9)]
                    {
                        self.block(kind, Of::Moved(&moved), uneven, root, len);
                    }
                }
            }
        }
    }

    /// A few lengths with every root, all kinds in random order, the four other collectives between them: slots of
    /// lines and cells pass from one to the other with nothing between.
    pub fn block_roots(&mut self, lens: &[usize]) {
        let size = self.size();
        let (moved, folded) = (moved(), named(&["u64 Sum", "u16 BitXor", "u8 ordered", "[u64; 3] ordered"]));
        for &len in lens {
            for root in 0..size {
                for _ in 0..6 {
                    let which = self.below(9);
                    let case = folded[self.below(folded.len())];
                    let moved = moved[self.below(moved.len())];
                    let of = if which < 4 { Of::Moved(&moved) } else { Of::Folded(&case) };
                    let len = len * 8 / of.element().max(1);
                    let uneven = self.below(2) == 0 && which < 5;
                    match which {
                        0..4 => self.block(Kind::MOVED[which], of, uneven, root, len),
                        4..7 => self.block(Kind::FOLDED[which - 4], of, uneven, root, len),
                        _ => {
                            let what = hier::Collective::ALL[self.below(4)];
                            self.call(&case, what, root, len);
                        }
                    }
                }
            }
        }
    }
}

impl Sweep<'_> {
    /// A few lengths with one root, for very many ranks.
    pub fn block_few(&mut self, lens: &[usize]) {
        let (moved, folded) = (moved(), named(&["u64 Sum", "[u64; 3] ordered"]));
        for &len in lens {
            let size = self.size();
            let root = self.below(size);
            for kind in Kind::MOVED {
                let of = moved[1 + self.below(3)];
                for uneven in [false, true] {
                    self.block(kind, Of::Moved(&of), uneven, root, len);
                }
            }
            for kind in Kind::FOLDED {
                let of = folded[self.below(2)];
                self.block(kind, Of::Folded(&of), kind == Kind::ReduceScatter && len == 3, 0, len);
            }
        }
    }
}

/// A call of a mix, drawn from what all ranks draw alike (`plan`) and each for itself (`own`).
///
/// # Errors
/// That of the collective.
pub fn mixed_block(
    comm: &crate::Communicator,
    plan: &mut Random,
    own: &mut Random,
    (root, bytes): (usize, usize),
) -> Result<(), crate::Error> {
    let which = plan.below(7);
    let (moved, case) =
        (*plan.pick(&moved()), *plan.pick(&named(&["u64 Sum", "i32 Max", "u8 ordered", "[u64; 3] ordered"])));
    let (uneven, seed) = (plan.once_in(2), plan.number());
    let lying = crate::call::Lying { send: own.once_in(3), recv: own.once_in(3) };
    let kind = if which < 4 { Kind::MOVED[which] } else { Kind::FOLDED[which - 4] };
    // Blocks of all ranks together are about as long as the messages of the other calls.
    let element = if which < 4 { moved.element } else { case.element };
    let len = bytes / element.max(1) / comm.size() + usize::from(bytes.is_multiple_of(5));
    let uneven = uneven && which < 5;
    let call = BlockCall { kind, uneven, root, len, in_place: own.once_in(2), lying, seed };
    if which < 4 { moved.make(comm, &call) } else { case.fold(comm, &call) }
}
