//! The payload of a reduction up a tree: slices of the own contribution, combined with the children's.

use super::Reduction;
use super::cut::Cut;
use super::lend::Source;
use super::operands::{Input, Operands};
use crate::board::SharedBoard;
use crate::counters::add;
use crate::error::{Error, Result};
use crate::links::Links;
use crate::pace::{Pace, Slice, Way, reading_of};
use crate::payload::copy_in;
use crate::protocol::step::Gathers;
use crate::protocol::{Board, Location, Place};

/// The payload of a reduction: slices of the own contribution are combined with the children's, in rank order; in a
/// relay with what is behind, from the last one on, and then with that of the other children.
///
/// Who lends and who does not changes no result: what is lent in a relay is added in its turn. An operator that folds
/// more than two at once otherwise than one after the other has no relays.
pub(super) struct Combining<'a> {
    board: &'a SharedBoard,
    /// Those whose payload is combined here: the children in rank order, and where this rank stands among them; or those
    /// behind it in its relay, the nearest first, and the other children, and how many are behind.
    below: &'a [usize],
    own: usize,
    relays: bool,
    is_leaf: bool,
    parent: Option<usize>,
    /// Whose cell has the slice that was folded last, if it is another's.
    handed_on: Option<usize>,
    cell: usize,
    /// The first position, and the slots of the ring.
    ring: (u64, u64),
    pace: &'a mut Pace,
    /// How the root stores the result.
    way: Way,
    reduction: Reduction<'a>,
    slices: Cut,
    operands: &'a mut Operands,
    /// Where the contribution of each of them lies.
    sources: &'a mut Vec<Source>,
    location: Location,
    /// What was wrong with a place that a child told.
    trouble: Option<Error>,
}

impl<'a> Combining<'a> {
    pub fn new(
        board: &'a SharedBoard,
        cell: usize,
        ring: (u64, u64),
        reduction: Reduction<'a>,
        slices: Cut,
        (links, place): (&'a Links, Place),
        (operands, sources, pace, way): (&'a mut Operands, &'a mut Vec<Source>, &'a mut Pace, Way),
    ) -> Self {
        // In place it lies in the caches already.
        let way = if reduction.send == reduction.recv { Way::Cached } else { way };
        // Two ranks fold in rank order whichever way they go.
        let relays = links.has_relay() && !reduction.fold.wide && board.members().len() > 2;
        let (below, own) = match relays {
            true => links.below(),
            false => {
                let children = links.in_order();
                (children, children.partition_point(|&child| child < board.rank()))
            }
        };
        sources.clear();
        sources.resize(below.len(), Source::Cell);
        let is_leaf = links.children().is_empty();
        // A leaf lends its buffer; who combines has nothing to lend but the cell with what it combined.
        let location = match place {
            _ if links.is_root() || !is_leaf => Location::CELL,
            place => Location::whole_at(place, reduction.bytes),
        };
        let parent = links.parent();
        Self {
            board,
            below,
            own,
            relays,
            is_leaf,
            parent,
            handed_on: None,
            cell,
            ring,
            pace,
            way,
            reduction,
            slices,
            operands,
            sources,
            location,
            trouble: None,
        }
    }

    fn index(&self, child: usize) -> usize {
        let found = match self.relays {
            true => self.below.iter().position(|&rank| rank == child),
            false => self.below.binary_search(&child).ok(),
        };
        found.expect("it is among those below")
    }

    /// Bytes from `at` on of what one of those below has, in this slot if it lies in cells.
    fn input(&self, index: usize, (slot, at): (usize, usize)) -> Input {
        let (rank, source) = (self.below[index], self.sources[index]);
        let cell = self.board.up_cell(source.cell_of(rank).unwrap_or(rank), slot, self.cell);
        source.input(rank, cell.cast_const(), at)
    }
}

impl Gathers for Combining<'_> {
    fn location(&self) -> Location {
        self.location
    }

    fn relays(&self) -> bool {
        self.relays
    }

    fn folded(&self) -> Location {
        self.handed_on.map_or(Location::CELL, Location::cell_of)
    }

    fn has(&self, child: usize) -> bool {
        self.sources[self.index(child)].is_lent()
    }

    fn note(&mut self, child: usize, location: Location) {
        match Source::find(self.board, child, location, self.reduction.bytes, self.reduction.fold.align) {
            Ok(source) => {
                let child = self.index(child);
                self.sources[child] = source;
            }
            Err(error) => self.trouble = Some(error),
        }
    }

    fn fold(&mut self, slice: u64, own: Option<usize>) -> Result<()> {
        if let Some(error) = self.trouble.take() {
            return Err(error);
        }
        let (at, len) = self.slices.range(slice);
        let slot = ((self.ring.0 + slice) % self.ring.1) as usize;
        let send = Input::Own(self.reduction.send.wrapping_add(at));
        let mut inputs = std::mem::take(&mut self.operands.inputs);
        inputs.clear();
        if self.relays {
            // The nearest one that lends nothing has what those behind it have.
            let cell = self.sources[..self.own].iter().position(|source| !source.is_lent());
            inputs.extend((0..cell.map_or(self.own, |at| at + 1)).rev().map(|below| self.input(below, (slot, at))));
            inputs.push(send);
            inputs.extend((self.own..self.below.len()).map(|below| self.input(below, (slot, at))));
            // The head takes out what is there.
            self.handed_on = cell.filter(|_| self.is_leaf).and_then(|at| self.sources[at].cell_of(self.below[at]));
        } else {
            inputs.extend((0..self.below.len()).map(|below| self.input(below, (slot, at))));
            inputs.insert(self.own, send);
        }
        let Operands { results, .. } = &mut *self.operands;
        results.clear();
        results.push(match own {
            Some(own) => self.board.up_cell(self.handed_on.unwrap_or(self.board.rank()), own, self.cell),
            None => self.reduction.recv.wrapping_add(at),
        });
        self.operands.inputs = inputs;
        let Reduction { fold, bytes, .. } = self.reduction;
        let (board, position) = (self.board, self.ring.0 + slice);
        let in_cells = !self.sources.is_empty() && !self.sources.iter().any(|source| source.is_lent());
        let (operands, pace, parent, way) = (&mut *self.operands, &mut *self.pace, self.parent, self.way);
        let others = operands.inputs.len() - 1;
        let mut folded = Ok(());
        // What goes from hand to hand on one core stays in its cache.
        let in_cache = self.relays && self.is_leaf;
        if let (Some(own), Some(parent), 0) = (own, parent, others) {
            let (send, cell) = (self.reduction.send.wrapping_add(at), board.up_cell(board.rank(), own, self.cell));
            // SAFETY: the own slot is claimed, and has room for a slice; `at + len` bytes of the caller's buffer are
            // there.
            let copy = |way| unsafe { copy_in(send, cell, len, way) };
            match in_cache {
                true => copy(Way::Cached),
                false => pace.writing(board, Slice { position, slot: own, bytes: len, reader: parent }, copy),
            }
            add(&board.tally.loaded, len);
            add(&board.tally.stored, len);
            return folded;
        }
        // SAFETY: the protocol calls this while the children's slots are published (so `len` bytes of their payload are
        // written and will not change) and the own slot is claimed; `at + len` bytes of the caller's buffers are there;
        // slices are whole elements and cells are aligned to lines. The result is no operand, unless the caller works
        // in place, or it is a cell that is handed on: from the publication of the rank behind to the own one that is
        // this rank's alone, since that one is done with it, and nobody else looks before this one says where it lies.
        let mut fold = |way| folded = unsafe { operands.fold(board, &fold, (len, bytes), way) };
        let combine = || match (own, parent) {
            _ if in_cache => fold(Way::Cached),
            (Some(slot), Some(reader)) => pace.writing(board, Slice { position, slot, bytes: len, reader }, fold),
            _ => fold(way),
        };
        match in_cells && !in_cache {
            true => reading_of(board, position, (len, others), combine),
            false => combine(),
        }
        folded
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::element::Element;
    use crate::job::JobSpec;
    use crate::links::Links;
    use crate::operator::{Min, Operator, Product, Sum, User};
    use crate::plan::{Plan, Step};
    use crate::{Buffer, Communicator};

    /// Groups of so many ranks, from the root on, are relays, whose heads are below the root.
    struct Relays(usize);

    // SAFETY: answers hang on the arguments alone, and are places of one tree.
    unsafe impl Plan for Relays {
        fn class(&self, _: Step, _: usize) -> usize {
            0
        }

        fn links(&self, step: Step, _: usize, root: usize, rank: usize, size: usize) -> Links {
            if step == Step::Release {
                return Links::flat(rank, size, root);
            }
            let place = (rank + size - root) % size;
            let at = |place: usize| (root + place) % size;
            let head = place - place % self.0;
            let end = (head + self.0).min(size);
            let behind: Vec<usize> = (place + 1..end).map(at).collect();
            let heads = (0..size).step_by(self.0).skip(1).map(at);
            let children: Vec<usize> = match place {
                0 => behind.iter().copied().chain(heads).collect(),
                _ if place == head => behind.clone(),
                _ => Vec::new(),
            };
            let parent = (place > 0).then(|| if place == head { root } else { at(head) });
            let links = Links::new(parent, &children, size);
            if end > head + 1 { links.in_relay(&behind) } else { links }
        }

        fn name(&self, _: Step, _: usize) -> String {
            format!("relays of {}", self.0)
        }

        fn restrict(&self, _: &[usize]) -> Arc<dyn Plan> {
            Arc::new(Self(self.0))
        }
    }

    fn threads<R: Send>(ranks: usize, cells: &str, f: impl Fn(Communicator) -> R + Sync) -> Vec<R> {
        let mut spec = JobSpec::new(ranks).unwrap();
        spec.tuning.force(&format!("all:cells,direct=always,direct_from=1,{cells}")).unwrap();
        spec.on_threads(f)
    }

    /// What the root of a reduction gets where these ranks (bits) lend their contributions, and what everybody does of
    /// an allreduce, which is the same on all ranks.
    fn reduced<T: Element + PartialEq + std::fmt::Debug>(
        comm: &Communicator,
        (root, lend): (usize, usize),
        mine: &[T],
        operator: impl Operator<T> + Copy,
    ) -> [Option<Vec<T>>; 2] {
        let lent: Option<Buffer<T>> = (lend >> comm.rank() & 1 == 1).then(|| comm.alloc_copy(mine).unwrap());
        let send = lent.as_deref().unwrap_or(mine);
        let process = comm.process_at_rank(root);
        let mut all = mine.to_vec();
        let at_root = match comm.rank() == root {
            true => {
                process.reduce_into_root(send, &mut all, operator).unwrap();
                Some(all.clone())
            }
            false => {
                process.reduce_into(send, operator).unwrap();
                None
            }
        };
        comm.all_reduce_into(send, &mut all, operator).unwrap();
        [at_root, Some(all)]
    }

    /// All roots, groups and lenders; lengths of one slice and several, odd ones too.
    #[test]
    fn relays_sum_up_what_everybody_has() {
        for (size, group) in [(2, 2), (3, 2), (3, 3), (4, 2), (5, 3), (5, 5), (7, 3)] {
            for cells in ["up_cell=1K,up_cells=2,down_cell=1K,down_cells=3", "up_cell=4K,up_cells=3,down_cell=4K"] {
                threads(size, cells, |comm| {
                    comm.set_plan(Arc::new(Relays(group))).unwrap();
                    for count in [1, 100, 500, 1111] {
                        let mine: Vec<u64> = (0..count).map(|i| i * 7 + comm.rank() as u64).collect();
                        let ranks = size as u64;
                        let sum: Vec<u64> = (0..count).map(|i| i * 7 * ranks + ranks * (ranks - 1) / 2).collect();
                        for root in 0..size {
                            for lend in (0..1 << size).step_by(if size > 4 { 5 } else { 1 }) {
                                for got in reduced(&comm, (root, lend), &mine, Sum).into_iter().flatten() {
                                    assert!(got == sum, "{count} to {root} of {size}, {lend:b} lend");
                                }
                            }
                        }
                    }
                });
            }
        }
    }

    /// Sums that hang on the order of their operands.
    #[test]
    fn no_result_hangs_on_who_lends() {
        for (size, group) in [(2, 2), (4, 4), (5, 2), (6, 3)] {
            threads(size, "up_cell=1K,up_cells=2,down_cell=1K,down_cells=2", |comm| {
                comm.set_plan(Arc::new(Relays(group))).unwrap();
                let value =
                    |i: usize| ((i * 31 + comm.rank() * 17) as f64).sin() * 10f64.powi((i + comm.rank()) as i32 % 9);
                let mine: Vec<f64> = (0..300).map(value).collect();
                let halves: Vec<half::bf16> = mine.iter().map(|&x| half::bf16::from_f64(x.fract())).collect();
                let averaged = User::commutative(|left: &mut [f64], right: &[f64]| {
                    left.iter_mut().zip(right).for_each(|(left, right)| *left = (*left + right) / 2.0);
                });
                for root in [0, size - 1] {
                    // Of zeros the sign says whose it is.
                    let zeros = vec![if comm.rank().is_multiple_of(2) { 0.0 } else { -0.0 }; 300];
                    let [sums, products, averages, least] = [(); 4].map(|()| std::cell::OnceCell::new());
                    let wide = std::cell::OnceCell::new();
                    for lend in 0..1 << size {
                        let of = |got: [Option<Vec<f64>>; 2]| {
                            got.map(|got| got.map(|got| got.iter().map(|x| x.to_bits()).collect::<Vec<_>>()))
                        };
                        for (first, got) in [
                            (&sums, of(reduced(&comm, (root, lend), &mine, Sum))),
                            (&products, of(reduced(&comm, (root, lend), &mine, Product))),
                            (&least, of(reduced(&comm, (root, lend), &zeros, Min))),
                            (&averages, of(reduced(&comm, (root, lend), &mine, averaged))),
                        ] {
                            assert!(first.get_or_init(|| got.clone()) == &got, "{lend:b} lend to {root} of {size}");
                        }
                        let got = reduced(&comm, (root, lend), &halves, Sum);
                        assert!(wide.get_or_init(|| got.clone()) == &got, "halves, {lend:b} lend to {root} of {size}");
                    }
                }
            });
        }
    }
}
