//! Packets through our shared memory.
//!
//! Phalanx has no point-to-point calls. What stands here for them is a communicator of two ranks from which one and the
//! same rank always broadcasts: a ring of slots with one writer and one reader. The writer goes on as soon as its
//! packet is in slots, and waits only where the ring is full; the reader waits for the packet. A rank has one such
//! communicator to each of its partners, and one from each. By lines, a packet travels in slots of eighteen cache
//! lines; by cells, in slots of 32 KiB.

use hier::Communicator;
use shm_core::segment::layout::{LINE_SLOTS, SLOT_PAYLOAD};

use super::carrier::{Carrier, Job};
use super::packets::packet;
use super::partners::Partners;
use super::protocol::{Program, Protocol};
use super::script::Step;
use crate::error::{Error, Result};

/// Cells of a channel, and bytes of each.
const CELLS: usize = 32;
const CELL: usize = 32 << 10;

/// What the slots are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Slots {
    /// Cache lines that carry a sequence number and payload together.
    Lines,
    /// Slots of 32 KiB, flags beside them.
    Cells,
}

impl Slots {
    /// The rule for `PHALANX_ALGORITHM`. Nothing is lent, since who lends waits for the reader.
    pub fn rule(self) -> String {
        match self {
            Slots::Lines => "broadcast:line".to_owned(),
            Slots::Cells => format!("broadcast:cells,cell={CELL},cells={CELLS},reach_from=never"),
        }
    }

    /// The name of the series.
    pub fn name(self) -> &'static str {
        match self {
            Slots::Lines => "lines",
            Slots::Cells => "cells",
        }
    }

    /// Bytes that fill half of the ring: when all send before they receive, nobody may send more at once.
    fn half(self) -> usize {
        match self {
            // The fewest that a communicator has.
            Slots::Lines => LINE_SLOTS / 2 * SLOT_PAYLOAD,
            Slots::Cells => CELLS / 2 * CELL,
        }
    }
}

/// Our shared memory.
pub struct Channels {
    world: Communicator,
    slots: Slots,
    /// To the partner, and from the partner; the writer is rank 0 in both.
    to: Option<Communicator>,
    from: Option<Communicator>,
}

/// In which round of splits the channel to each rank's partner is made, so that no rank is in two of a round.
fn rounds(partners: &[Option<Partners>]) -> Vec<Option<u32>> {
    let mut rounds = vec![None; partners.len()];
    for start in 0..partners.len() {
        let (mut rank, mut place) = (start, 0);
        while let Some(own) = partners[rank].filter(|_| rounds[rank].is_none()) {
            // The last of an odd cycle lies between two that alternate.
            let odd_end = own.to == start && place % 2 == 0;
            rounds[rank] = Some(if odd_end { 2 } else { place % 2 });
            (rank, place) = (own.to, place + 1);
        }
    }
    rounds
}

impl Channels {
    /// Makes the channels between partners. Collective over `world`.
    ///
    /// # Errors
    ///
    /// [`Error::Collective`] where a communicator cannot be had.
    pub fn new(world: Communicator, slots: Slots, partners: &[Option<Partners>]) -> Result<Channels> {
        let rounds = rounds(partners);
        let (mut to, mut from) = (None, None);
        let rank = world.rank();
        for round in 0..3 {
            let own = partners[rank];
            let sends = own.filter(|_| rounds[rank] == Some(round)).map(|_| rank);
            let receives = own.map(|own| own.from).filter(|&from| rounds[from] == Some(round));
            // The channel is named after its writer, who comes first in it.
            let channel = world.split(sends.or(receives).map(|writer| writer as u32), i64::from(sends.is_none()))?;
            if sends.is_some() {
                to = channel;
            } else if receives.is_some() {
                from = channel;
            }
        }
        Ok(Channels { world, slots, to, from })
    }

    fn send(&self, data: &mut [u8]) -> Result<()> {
        let channel = self.to.as_ref().ok_or_else(|| Error::Usage("this rank has no partner".into()))?;
        channel.process_at_rank(0).broadcast_into(data).map_err(Error::from)
    }

    fn receive(&self, into: &mut [u8]) -> Result<()> {
        let channel = self.from.as_ref().ok_or_else(|| Error::Usage("this rank has no partner".into()))?;
        channel.process_at_rank(0).broadcast_into(into).map_err(Error::from)
    }

    /// Both ways at once: by pieces that rings have room for, since all send before they receive.
    fn exchange(&self, data: &mut [u8], into: &mut [u8]) -> Result<()> {
        let half = self.slots.half();
        for (data, into) in data.chunks_mut(half).zip(into.chunks_mut(half)) {
            self.send(data)?;
            self.receive(into)?;
        }
        Ok(())
    }
}

impl Carrier for Channels {
    fn rank(&self) -> usize {
        self.world.rank()
    }

    fn size(&self) -> usize {
        self.world.size()
    }

    fn words(&self) -> String {
        format!("Phalanx, channels of {}", self.slots.name())
    }

    fn serves(&self, protocol: Protocol, program: Program) -> bool {
        protocol.number == 0 && program == Program::Basic
    }

    fn barrier(&mut self) -> Result<()> {
        self.world.barrier().map_err(Error::from)
    }

    fn gather(&mut self, own: &[f64]) -> Result<Vec<f64>> {
        let (rank, size) = (self.rank(), self.size());
        let mut all = vec![0.0; own.len() * size];
        for from in 0..size {
            let part = &mut all[from * own.len()..(from + 1) * own.len()];
            if from == rank {
                part.copy_from_slice(own);
            }
            self.world.process_at_rank(from).broadcast_into(part)?;
        }
        Ok(all)
    }

    fn execute(
        &mut self,
        job: &Job<'_>,
        send: &mut [u8],
        receive: &mut [u8],
        synchronised: &mut dyn FnMut(&mut Self) -> Result<()>,
    ) -> Result<()> {
        synchronised(self)?;
        if job.partners.is_none() {
            return Ok(());
        }
        let total = send.len();
        if !job.protocol.ordered {
            for index in 0..job.packets {
                let part = packet(total, job.packets, index);
                self.exchange(&mut send[part.clone()], &mut receive[part])?;
            }
            return Ok(());
        }
        for step in &job.script.timed {
            match *step {
                Step::Send(index, _) => self.send(&mut send[packet(total, job.packets, index)])?,
                Step::Receive(index) => self.receive(&mut receive[packet(total, job.packets, index)])?,
                _ => return Err(Error::Usage(format!("{} has calls that channels do not have", job.protocol))),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::partners::{Command, Pattern};
    use super::*;

    #[test]
    fn no_rank_is_in_two_channels_of_a_round() {
        for command in [Command::Swap, Command::SendRecv] {
            for size in 2..14 {
                for distance in 1..size {
                    for only_zero in [false, true] {
                        let pattern = Pattern { command, distance, only_zero, cycles: None };
                        let Ok(partners) = pattern.partners(size) else { continue };
                        let rounds = rounds(&partners);
                        for (rank, own) in partners.iter().enumerate() {
                            let Some(own) = own else {
                                assert_eq!(rounds[rank], None);
                                continue;
                            };
                            assert!(rounds[rank].is_some_and(|round| round < 3));
                            assert_ne!(rounds[rank], rounds[own.from], "{command} {size} {distance} {rank}");
                        }
                    }
                }
            }
        }
    }
}
