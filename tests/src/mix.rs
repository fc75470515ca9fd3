//! Random mixes: collectives of all kinds over several communicators that come and go, from one seed. Across nodes,
//! those that there are.

use hier::Collective;

use crate::call::{Call, Lying};
use crate::cases::cases;
use crate::random::Random;
use crate::{Communicator, Error};

/// A mix.
#[derive(Clone, Copy, Debug)]
pub struct Mix {
    /// From which everything follows.
    pub seed: u64,
    /// Calls.
    pub calls: usize,
    /// The most bytes of a message.
    pub most: usize,
    /// Whether ranks come late at random.
    pub late: bool,
}

/// Communicators at a time, beside the world.
const PLACES: usize = 5;

/// A communicator of the mix, as seen by one rank.
#[expect(clippy::large_enum_variant, reason = "there is a handful of them")]
enum Place {
    /// Nobody has one there.
    Empty,
    /// Others may have one there, this rank has not.
    Apart,
    /// This rank has one.
    Member(Communicator),
}

impl Mix {
    /// Makes the calls; returns how many collective calls this rank took part in.
    ///
    /// # Errors
    /// That of the first call which failed.
    ///
    /// # Panics
    /// When an answer is wrong.
    pub fn run(&self, world: &Communicator) -> Result<usize, Error> {
        let cases = cases();
        let mut plan = Random::new(self.seed);
        let mut own = Random::new(self.seed ^ (world.rank() as u64 + 1) << 32);
        let mut places: [Place; PLACES] = [const { Place::Empty }; PLACES];
        let mut taken = 0;
        for _ in 0..self.calls {
            let at = plan.below(PLACES);
            match plan.below(40) {
                0 => places[at] = self.make(world, &mut plan, &mut own, &places)?,
                1 => places[at] = Place::Empty,
                _ => {
                    // All random numbers are drawn on all ranks, members or not.
                    let case = plan.pick(&cases);
                    let what = *plan.pick(&Collective::ALL);
                    let (root, seed) = (plan.number() as usize, plan.number());
                    let bytes = self.bytes(&mut plan);
                    if self.late {
                        own.loiter();
                    }
                    let comm = match &places[at] {
                        Place::Empty => world,
                        Place::Apart => continue,
                        Place::Member(comm) => comm,
                    };
                    #[cfg(not(feature = "mpi"))]
                    if seed.is_multiple_of(3) {
                        let call = (root % comm.size(), bytes);
                        crate::block_sweep::mixed_block(comm, &mut Random::new(seed), &mut own, call)?;
                        taken += 1;
                        continue;
                    }
                    let lying = Lying { send: own.once_in(3), recv: own.once_in(3) };
                    let (root, len) = (root % comm.size(), bytes / case.element.max(1));
                    let call = Call { what, root, len, in_place: own.once_in(2), lying, seed };
                    case.make(comm, &call)?;
                    taken += 1;
                }
            }
        }
        drop(places);
        world.barrier()?;
        Ok(taken)
    }

    /// Sizes of every order of magnitude alike, 0 among them.
    fn bytes(&self, plan: &mut Random) -> usize {
        let order = plan.below(1 + self.most.ilog2() as usize);
        plan.below(2 << order).min(self.most)
    }

    fn make(
        &self,
        world: &Communicator,
        plan: &mut Random,
        own: &mut Random,
        places: &[Place; PLACES],
    ) -> Result<Place, Error> {
        let (parent, colors, duplicates) = (plan.below(2 * PLACES), 1 + plan.below(3), plan.once_in(3));
        let parent = match places.get(parent) {
            None | Some(Place::Empty) => world,
            Some(Place::Apart) => return Ok(Place::Apart),
            Some(Place::Member(comm)) => comm,
        };
        if self.late {
            own.loiter();
        }
        let new = if duplicates {
            Some(parent.duplicate()?)
        } else {
            let color = (!own.once_in(6)).then(|| own.below(colors) as u32);
            parent.split(color, own.below(5) as i64 - 2)?
        };
        Ok(new.map_or(Place::Apart, Place::Member))
    }
}
