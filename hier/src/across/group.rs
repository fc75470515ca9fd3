//! Communicators that their members make among themselves, without the other ranks.

use super::communicator::HierComm;
use super::error::{Error, Result};
use crate::nodes::Placement;
use crate::transport::Transport;

/// A communicator that is about to be made of some ranks of another: what one of its members has ready.
#[derive(Debug)]
pub struct Opening {
    members: Vec<usize>,
    placement: Placement,
    own: usize,
    /// The block of this rank's node, where this rank is the one that has it opened.
    opened: Option<shm_core::Result<u64>>,
}

impl Opening {
    /// What this rank has to tell the other members: 0, if its node has no room.
    #[must_use]
    pub fn word(&self) -> u64 {
        match &self.opened {
            Some(Ok(number)) => number + 1,
            Some(Err(_)) => 0,
            None => 1,
        }
    }

    /// Nodes on which there are members.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.placement.nodes()
    }

    /// The members of this rank's node.
    fn mates(&self) -> &[usize] {
        self.placement.members(self.placement.node_of(self.own))
    }
}

impl HierComm {
    /// Begins to make a communicator of some ranks of this one: `members`, in the order of their new ranks, this rank
    /// among them. They then tell each other their [words](Opening::word), by a way of their own, and all call
    /// [`join_group`](HierComm::join_group) if no word is 0, or all [`close_group`](HierComm::close_group).
    ///
    /// Unlike [`split`](HierComm::split), which is collective over all ranks, this takes the members alone. Not
    /// collective.
    ///
    /// # Errors
    /// [`Error::Broken`]: this rank is not among the members.
    pub fn open_group(&self, members: &[usize]) -> Result<Opening> {
        let own = members.iter().position(|&rank| rank == self.rank);
        let own = own.ok_or(Error::Broken { rank: self.rank })?;
        let labels: Vec<usize> = members.iter().map(|&rank| self.placement.node_of(rank)).collect();
        let mut opening = Opening { members: members.to_vec(), placement: Placement::new(&labels), own, opened: None };
        if opening.mates()[0] == own {
            opening.opened = Some(self.node.open_group(opening.mates().len()));
        }
        Ok(opening)
    }

    /// Makes the communicator. `words` are those of all members, by new rank; `transport` is between the members, and
    /// serves the new communicator alone. Where they are all on one node it carries no messages, and is only asked to
    /// let those of the program move.
    ///
    /// # Errors
    /// [`Error::Network`].
    ///
    /// # Safety
    /// All members have opened the same list of members, and call this with the same words, none of which is 0; a
    /// member reads another's word after that has made it, by a channel that orders memory (a message, say).
    pub unsafe fn join_group(&self, opening: Opening, words: &[u64], transport: Box<dyn Transport>) -> Result<Self> {
        let mates = opening.mates();
        let local: Vec<usize> = mates.iter().map(|&mate| self.placement.local_rank(opening.members[mate])).collect();
        // SAFETY: by contract, the first of the node's members has opened it for these, and each comes here once.
        let node = unsafe { self.node.join_group(words[mates[0]] - 1, &local) }?;
        self.part(&opening.members, node, transport)
    }

    /// Gives up what was opened.
    ///
    /// # Safety
    /// No member joins.
    pub unsafe fn close_group(&self, opening: &Opening) {
        if let Some(Ok(number)) = opening.opened {
            // SAFETY: this rank has opened it for so many, and by contract nobody joins.
            unsafe { self.node.close_group(number, opening.mates().len()) };
        }
    }

    /// The communicator of this rank's node, where that has all the ranks: calls on it are those of this one, without
    /// what only several nodes need. Errors are in its terms, and are not told to anybody else.
    #[inline]
    #[must_use]
    pub fn single_node(&self) -> Option<&shm_core::Communicator> {
        (self.placement.nodes() == 1).then_some(&self.node)
    }
}
