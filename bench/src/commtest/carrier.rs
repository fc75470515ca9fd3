//! What carries packets: an MPI, or our shared memory. Both are measured by the same loop.

use super::protocol::{Program, Protocol};
use super::script::Script;
use crate::error::Result;

/// A rank's way to the others.
pub trait Carrier {
    /// This rank.
    fn rank(&self) -> usize;

    /// How many ranks there are.
    fn size(&self) -> usize;

    /// The name and version of what carries.
    fn words(&self) -> String;

    /// Whether it has the calls of a protocol.
    fn serves(&self, protocol: Protocol, program: Program) -> bool;

    /// Waits for all ranks. Collective.
    ///
    /// # Errors
    ///
    /// When another rank has failed.
    fn barrier(&mut self) -> Result<()>;

    /// The values of all ranks, by rank; as many of each. Collective.
    ///
    /// # Errors
    ///
    /// As [`barrier`](Carrier::barrier).
    fn gather(&mut self, own: &[f64]) -> Result<Vec<f64>>;

    /// Sends and receives all packets of a volume (`send` stays as it is); `synchronised` is called between the two
    /// parts of the script, and returns when the clock shall start.
    ///
    /// # Errors
    ///
    /// What a call returns.
    fn execute(
        &mut self,
        job: &Job<'_>,
        send: &mut [u8],
        receive: &mut [u8],
        synchronised: &mut dyn FnMut(&mut Self) -> Result<()>,
    ) -> Result<()>
    where
        Self: Sized;
}

/// One volume that a rank exchanges with its partners.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// How.
    pub protocol: Protocol,
    /// The calls.
    pub script: &'a Script,
    /// With whom; none where this rank takes no part.
    pub partners: Option<super::partners::Partners>,
    /// Number of packets.
    pub packets: usize,
}
