//! One case: calls of one kind by all ranks of a machine, and what a call takes.

use std::cell::RefCell;
use std::rc::Rc;

use hier::{TopologyPlan, TreeRules};
use shm_core::protocol::Board;
use shm_core::segment::layout::{SLOT_PAYLOAD, line_slots};
use shm_core::select::{Choice, Vector};
use shm_core::{Collective, Division, Links, Plan, Regime, Step, Tuning, exchange_positions};

use super::calls::{Call, ELEMENT, Rank};
use super::engine::{Stuck, World};
use super::figures::{Costs, Time};
use super::memory::{Level, Memory, Traffic};
use super::places::Place;
use crate::error::{Error, Result};

/// How calls follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// All ranks begin each call at the same moment: its time ends with the last rank.
    Each,
    /// Back to back: the time between the ends of calls.
    Stream,
}

/// An algorithm: a table, and the trees that it takes.
#[derive(Clone, Debug)]
pub struct Algorithm {
    /// For tables.
    pub name: String,
    /// The table, with what is forced.
    pub tuning: Tuning,
    /// The trees.
    pub rules: TreeRules,
}

/// What is simulated.
#[derive(Clone, Debug)]
pub struct Case<'a> {
    /// What things cost.
    pub costs: &'a Costs,
    /// Where each rank sits.
    pub places: &'a [Place],
    /// The collective.
    pub what: Collective,
    /// Bytes of the vector.
    pub bytes: usize,
    /// How it is done.
    pub algorithm: &'a Algorithm,
    /// How calls follow one another.
    pub pace: Pace,
}

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Simulated {
    /// Of one call, in microseconds.
    pub microseconds: f64,
    /// What all calls together loaded from where, those included that came before the timed ones.
    pub traffic: Traffic,
    /// How many calls those were.
    pub calls: u64,
}

/// Calls that are timed.
const TIMED: usize = 4;

impl Case<'_> {
    /// What the table chooses.
    ///
    /// # Errors
    /// [`Error::Collective`] where there is no such algorithm.
    pub fn choice(&self) -> Result<Choice> {
        let vector = match self.what {
            Collective::Reduce | Collective::Allreduce => {
                Vector { bytes: self.bytes, element: ELEMENT, align: ELEMENT, commutative: true }
            }
            _ => Vector::of_bytes(self.bytes),
        };
        // Each simulated rank has a core of its own.
        Ok(self.algorithm.tuning.select(self.places.len(), 1).choose(self.what, vector)?)
    }

    /// Simulates it.
    ///
    /// # Errors
    /// [`Error::Collective`] where there is no such algorithm, [`Error::Usage`] where ranks wait for ever.
    pub fn simulate(&self) -> Result<Simulated> {
        let call = self.call(self.choice()?);
        self.run(call).map_err(|stuck| Error::Usage(format!("{}: {stuck}", self.algorithm.name)))
    }

    fn call(&self, choice: Choice) -> Call {
        let size = self.places.len();
        let plan = TopologyPlan::new(
            self.algorithm.rules.clone(),
            self.places.iter().map(|place| place.groups()).collect(),
            1,
        );
        let links = |step: Step| -> Vec<Links> {
            let class = plan.class(step, self.bytes);
            let of = |rank| match choice.flat {
                true => Links::flat(rank, size, 0),
                false => plan.links(step, class, 0, rank, size),
            };
            (0..size).map(of).collect()
        };
        let (gather, release) = (links(Step::Gather), links(Step::Release));
        let level = self.level(Call::touched(self.what, self.bytes, &choice, size));
        Call { what: self.what, bytes: self.bytes, choice, gather, release, level }
    }

    /// Where buffers lie when each rank touches so many bytes.
    fn level(&self, touched: usize) -> Level {
        let l3s = self.places.iter().map(|place| place.l3).max().unwrap_or(0);
        let crowd = (0..=l3s).map(|l3| self.places.iter().filter(|place| place.l3 == l3).count()).max().unwrap_or(1);
        if touched <= self.costs.own_bytes {
            Level::Own
        } else if touched * crowd <= self.costs.l3_bytes {
            Level::L3
        } else {
            Level::Memory
        }
    }

    /// Calls after which every slot has been used.
    fn warming(&self, call: &Call) -> usize {
        let choice = &call.choice;
        let (slots, taken) = match choice.regime {
            Regime::Line => (line_slots(self.places.len(), 1), self.bytes.div_ceil(SLOT_PAYLOAD)),
            Regime::Cells => {
                let slots = choice.up_slots.max(choice.down_slots);
                (slots, self.bytes.div_ceil(choice.up_cell.max(choice.down_cell)))
            }
            Regime::Exchange => {
                let (slots, slices) = (choice.up_slots, self.bytes.div_ceil(choice.up_cell).max(1));
                let taken = exchange_positions(self.places.len(), slices as u64, self.bytes, slots) as usize;
                // Of two ranks cells change hands in every turn: two turns until each has been in either's.
                (if self.places.len() == 2 { 2 * slots } else { slots }, taken.min(slots))
            }
            _ => {
                let division = Division::new(self.bytes, ELEMENT, choice.leaders, choice.up_cell);
                (choice.up_slots.max(choice.down_slots), division.rounds() as usize * choice.leaders)
            }
        };
        slots.div_ceil(taken.max(1)) + 1
    }

    fn run(&self, call: Call) -> std::result::Result<Simulated, Stuck> {
        let size = self.places.len();
        let warming = self.warming(&call);
        let calls = warming + TIMED;
        let world = World::new(size, call.slots(), |lines, cells| {
            Memory::new(self.costs.clone(), self.places.to_vec(), lines, cells)
        });
        // When each call began and ended, by the first and the last of the ranks.
        let times: Rc<RefCell<Vec<(Time, Time)>>> = Rc::new(RefCell::new(vec![(Time::MAX, 0); calls]));
        let (noted, pace) = (Rc::clone(&times), self.pace);
        let traffic = world.run(&Rc::new(move |seat: &super::engine::Seat<'_>| {
            let mut rank = Rank::new(seat, &call);
            debug_assert_eq!(seat.size(), size);
            for i in 0..calls {
                if pace == Pace::Each {
                    seat.meet();
                }
                let begin = seat.now();
                rank.make()?;
                let (first, last) = noted.borrow()[i];
                noted.borrow_mut()[i] = (first.min(begin), last.max(seat.now()));
            }
            Ok(())
        }))?;
        let times = times.borrow();
        let took: Time = match self.pace {
            Pace::Each => times[warming..].iter().map(|(begin, end)| end - begin).sum(),
            Pace::Stream => times[calls - 1].1 - times[warming - 1].1,
        };
        Ok(Simulated { microseconds: took as f64 * 1e-6 / TIMED as f64, traffic, calls: calls as u64 })
    }
}
