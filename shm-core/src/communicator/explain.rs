//! What a call takes, said to people: explanations, and what `PHALANX_DEBUG` has a rank write.

use std::cell::Cell;

use super::Communicator;
use crate::cost::{self, Chain, Payload};
use crate::error::Result;
use crate::plan::Step;
use crate::protocol::Place;
use crate::remark::remark;
use crate::select::{Collective, Explanation, Regime, Vector};

/// Kinds of places, and what is said of payload there.
const PLACES: usize = 3;
const PLACE_WORDS: [&str; PLACES] = ["through cells", "where it lies in shared memory", "by kernel-assisted copies"];

/// The size classes that were traced, by collective and by where the payload lies.
pub(super) type Traced = [[Cell<u64>; PLACES * PLACES]; 4];

impl Communicator {
    /// What the table chooses for a message of `bytes` bytes of small elements (root 0), and what it costs with buffers
    /// whose payload goes through cells.
    ///
    /// # Errors
    /// [`Busy`](crate::Error::Busy), inside of a call.
    pub fn explain(&self, what: Collective, bytes: usize) -> Result<Explanation> {
        self.explain_payload(what, bytes, Payload::InCells)
    }

    /// [`explain`](Communicator::explain), where all buffers lie in shared memory ([`alloc`](Communicator::alloc)):
    /// where they are too short to be used there, their payload goes through cells all the same.
    ///
    /// # Errors
    /// [`Busy`](crate::Error::Busy), inside of a call.
    pub fn explain_shared(&self, what: Collective, bytes: usize) -> Result<Explanation> {
        let is_lent = bytes as u64 >= self.selection.direct_from(what);
        self.explain_payload(what, bytes, if is_lent { Payload::Lent } else { Payload::InCells })
    }

    /// [`explain`](Communicator::explain), where all ranks use each other's buffers where they lie: in shared memory,
    /// or in private memory by kernel-assisted copies.
    ///
    /// # Errors
    /// [`Busy`](crate::Error::Busy), inside of a call.
    pub fn explain_lent(&self, what: Collective, bytes: usize) -> Result<Explanation> {
        self.explain_payload(what, bytes, Payload::Lent)
    }

    fn explain_payload(&self, what: Collective, bytes: usize, payload: Payload) -> Result<Explanation> {
        let choice = self.selection.choose(what, Vector::of_bytes(bytes))?;
        let mut engine = self.enter()?;
        let plan = engine.trees().plan();
        let tree = |step| match choice.flat {
            true => ("flat".to_owned(), Chain::flat(step, self.size)),
            false => {
                let class = plan.class(step, bytes);
                (plan.name(step, class), Chain::of(plan.as_ref(), step, class, 0, self.size))
            }
        };
        let ((gather, up), (release, down)) = (tree(Step::Gather), tree(Step::Release));
        let text = choice.describe(
            (what != Collective::Broadcast).then_some(&gather),
            (what != Collective::Reduce).then_some(&release),
        );
        let critical_lines = cost::critical_lines(&choice, what, (bytes, payload), self.size, up, down);
        Ok(Explanation { text, regime: choice.regime, critical_lines })
    }

    /// Says on stderr what was chosen, and where rank 0 has its payload (what it sends, and what it gets; null for
    /// none), once for each size class and place, if the job is to (`PHALANX_DEBUG`).
    #[inline]
    pub(crate) fn trace(&self, what: Collective, bytes: usize, buffers: [*const u8; 2]) {
        if self.selection.debug && self.rank == 0 {
            self.trace_slowly(what, bytes, buffers);
        }
    }

    #[cold]
    fn trace_slowly(&self, what: Collective, bytes: usize, buffers: [*const u8; 2]) {
        let Ok(places) = self.enter().map(|engine| buffers.map(|buffer| engine.place(what, buffer, bytes))) else {
            return;
        };
        let class = 1u64 << (usize::BITS - bytes.leading_zeros()).min(63);
        let [sent, received] = places.map(kind_of);
        let seen = &self.traced[what as usize][sent * PLACES + received];
        if seen.get() & class == 0 {
            seen.set(seen.get() | class);
            let lent = buffers.iter().zip(&places).all(|(buffer, place)| buffer.is_null() || *place != Place::Cell);
            let payload = if lent { Payload::Lent } else { Payload::InCells };
            if let Ok(explanation) = self.explain_payload(what, bytes, payload) {
                let (size, lines) = (self.size, explanation.critical_lines);
                let names = if what == Collective::Broadcast { ["", "message"] } else { ["contribution", "result"] };
                let mut lying = String::new();
                if explanation.regime != Regime::Line {
                    for (name, kind) in names
                        .into_iter()
                        .zip([sent, received])
                        .zip(buffers)
                        .filter_map(|(said, buffer)| (!buffer.is_null()).then_some(said))
                    {
                        lying.push_str(&format!(", {name} {}", PLACE_WORDS[kind]));
                    }
                }
                remark(format_args!(
                    "{what} of {bytes} bytes on {size} ranks: {explanation}{lying} ({lines} lines on the longest chain)"
                ));
            }
        }
    }
}

fn kind_of(place: Place) -> usize {
    match place {
        Place::Cell | Place::Back | Place::CellOf(_) => 0,
        Place::Heap(_) => 1,
        Place::Private(_) => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::select::Tuning;

    /// Shared buffers cost what those in cells cost below the table's threshold, and what lent ones cost from there on.
    #[test]
    fn explanations_know_from_which_size_on_shared_buffers_are_lent() {
        Communicator::threads(2, |mut comm| {
            let mut tuning = Tuning::default();
            tuning.force("all:cells;broadcast:direct_from=90000;allreduce:direct_from=70000").unwrap();
            comm.set_tuning(&tuning).unwrap();
            for (what, least) in [(Collective::Broadcast, 90_000), (Collective::Allreduce, 70_000)] {
                let explained = |bytes| {
                    let all =
                        [comm.explain(what, bytes), comm.explain_lent(what, bytes), comm.explain_shared(what, bytes)];
                    all.map(|explanation| explanation.unwrap().critical_lines)
                };
                let ([cells, lent, shared], [long_cells, long_lent, long_shared]) =
                    (explained(least - 1), explained(least));
                assert!(lent < cells && long_lent < long_cells, "{what}");
                assert_eq!((shared, long_shared), (cells, long_lent), "{what}");
            }
        })
        .unwrap();
    }
}
