//! Communicators that their members make among themselves (MPI 4.1, section 7.4.2: the idea of
//! `MPI_Comm_create_group`).

use std::sync::Arc;

use crate::communicator::Communicator;
use crate::error::{Error, Result};

impl Communicator {
    /// Opens the block of a communicator of `size` ranks of this one. One of them does so, tells the others the number
    /// by means of its own, and all of them [join](Communicator::join_group). Should somebody be unable to, nobody must
    /// join, and this rank [gives the block back](Communicator::close_group).
    ///
    /// Not collective, unlike [`split`](Communicator::split): ranks that will not be members have no part in it.
    ///
    /// # Errors
    /// [`ArenaExhausted`](Error::ArenaExhausted), [`Memory`](Error::Memory): nothing is kept.
    pub fn open_group(&self, size: usize) -> Result<u64> {
        if !(1..=self.size()).contains(&size) {
            return Err(Error::Ranks { ranks: size, most: self.size() });
        }
        let mapping = self.seat().mapping();
        let layout = mapping.header().select(size).block_layout();
        let offset = mapping.take_block(self.seat().rank(), &layout)?;
        // SAFETY: the block was just taken with this layout.
        unsafe { Self::open_block(mapping, offset, &layout, size) };
        Ok(offset)
    }

    /// Joins a communicator whose block was [opened](Communicator::open_group), as one of `members`: ranks of this
    /// communicator, in the order of their ranks in the new one. Its calls are independent of this one's. Not
    /// collective.
    ///
    /// # Errors
    /// [`Segment`](Error::Segment): a number that no block has. [`Busy`](Error::Busy), inside of a call.
    ///
    /// # Panics
    /// Unless this rank is a member, and all members are ranks of this communicator.
    ///
    /// # Safety
    /// A rank of this communicator has opened `number` for as many ranks as there are members, told it to these alone,
    /// and has done so after it was opened, by a channel that orders memory (a message, say). All members pass the same
    /// list. Each joins once.
    pub unsafe fn join_group(&self, number: u64, members: &[usize]) -> Result<Self> {
        let mapping = self.seat().mapping();
        mapping.check_block(number, mapping.header().select(members.len()).block_layout().total())?;
        let rank = members.iter().position(|&member| member == self.rank()).expect("this rank is a member");
        let (plan, world) = {
            let mut engine = self.enter()?;
            let world = members.iter().map(|&member| engine.board.members()[member]).collect();
            (engine.trees().plan().restrict(members), world)
        };
        // SAFETY: by contract.
        Ok(unsafe { Self::join(Arc::clone(self.seat()), number, rank, world, plan) })
    }

    /// Gives back a block that was opened and that nobody will join.
    ///
    /// # Safety
    /// This rank has opened `number` for `size` ranks. Nobody has joined it or will, and it is closed once.
    pub unsafe fn close_group(&self, number: u64, size: usize) {
        let layout = self.seat().mapping().header().select(size).block_layout();
        self.seat().mapping().give_block_back(self.seat().rank(), number, layout.total());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc::channel;

    use super::*;
    use crate::operator::User;

    /// Two groups of a world, one of them in another order of ranks, made without the rank that is in none.
    #[test]
    fn members_make_a_group_by_themselves() {
        let (senders, receivers): (Vec<_>, Vec<_>) = (0..5).map(|_| channel::<u64>()).unzip();
        let receivers: Vec<_> = receivers.into_iter().map(Mutex::new).collect();
        let orders = Communicator::threads(5, |comm| {
            let members: &[usize] = match comm.rank() {
                0 | 2 | 4 => &[4, 0, 2],
                1 => &[1],
                _ => return String::new(),
            };
            if comm.rank() == members[0] {
                let number = comm.open_group(members.len()).unwrap();
                members.iter().for_each(|&member| senders[member].send(number).unwrap());
            }
            let number = receivers[comm.rank()].lock().unwrap().recv().unwrap();
            // SAFETY: the first member has opened it for these members, and told them by a channel.
            let group = unsafe { comm.join_group(number, members) }.unwrap();
            assert_eq!(group.members(), members);
            // An operator that keeps the order: digits are put behind one another.
            let behind = User::ordered(|left: &mut [[u8; 8]], right: &[[u8; 8]]| {
                for (left, right) in left.iter_mut().zip(right) {
                    let end = left.iter().take_while(|&&byte| byte != 0).count();
                    left[end] = right[0];
                }
            });
            let mut all = [[0; 8]];
            let own = [b'0' + comm.rank() as u8, 0, 0, 0, 0, 0, 0, 0];
            group.all_reduce_into(&[own], &mut all, behind).unwrap();
            String::from_utf8(all[0].iter().copied().take_while(|&byte| byte != 0).collect()).unwrap()
        })
        .unwrap();
        assert_eq!(orders, ["402", "1", "402", "", "402"]);
    }

    #[test]
    fn blocks_are_given_back_and_numbers_checked() {
        Communicator::threads(1, |comm| {
            let before = comm.seat().mapping().arena_taken();
            for _ in 0..10_000 {
                let number = comm.open_group(1).unwrap();
                // SAFETY: it was just opened, and nobody joins it.
                unsafe { comm.close_group(number, 1) };
            }
            for _ in 0..100 {
                let number = comm.open_group(1).unwrap();
                // SAFETY: it was just opened for this rank alone.
                drop(unsafe { comm.join_group(number, &[0]) }.unwrap());
            }
            assert_eq!(comm.seat().mapping().arena_taken(), before);
            // SAFETY: a number that no block has is refused.
            let refused = unsafe { comm.join_group(12_345, &[0]) };
            assert!(matches!(refused, Err(Error::Segment { .. })));
            assert!(matches!(comm.open_group(2), Err(Error::Ranks { .. })));
            assert!(matches!(comm.open_group(0), Err(Error::Ranks { .. })));
        })
        .unwrap();
    }
}
