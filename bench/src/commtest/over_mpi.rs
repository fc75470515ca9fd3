//! Packets through MPI's point-to-point calls (MPI 4.1, chapter 3).
//!
//! This file alone calls them. rsmpi drops return codes; here they are errors.

use std::ffi::{c_int, c_void};

use mpi::ffi::{self, MPI_Comm, MPI_Request};
use mpi::raw::AsRaw;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives};

use super::carrier::{Carrier, Job};
use super::packets::packet;
use super::partners::Partners;
use super::protocol::{Program, Protocol, SendKind};
use super::script::Step;
use crate::error::{Error, Result};

/// Tags of packets, and of the words between partners.
const PACKET: c_int = 1;
const WORD: c_int = 2;

/// An MPI.
pub struct OverMpi<'a> {
    world: &'a SimpleCommunicator,
    /// The buffer of buffered sends; attached until this is dropped.
    attached: Vec<u8>,
    /// Requests of receives and sends, by packet.
    receives: Vec<MPI_Request>,
    sends: Vec<MPI_Request>,
}

impl<'a> OverMpi<'a> {
    /// Over the ranks of `world`, for volumes of up to `total` bytes in up to `packets` packets. Calls return errors
    /// from here on.
    ///
    /// # Errors
    ///
    /// [`Error::Usage`] for a volume that MPI cannot count; what MPI returns.
    pub fn new(world: &'a SimpleCommunicator, total: usize, packets: usize) -> Result<OverMpi<'a>> {
        // Twice: buffered sends of a repetition may still be in it when the next one begins.
        let bytes = 2 * (total + packets * (ffi::MPI_BSEND_OVERHEAD as usize + 64)) + (1 << 16);
        if c_int::try_from(bytes).is_err() {
            return Err(Error::Usage(format!("--total: {total} bytes are more than MPI counts; at most 512M")));
        }
        let mut carrier = OverMpi {
            world,
            attached: vec![0; bytes],
            receives: vec![null_request(); packets],
            sends: vec![null_request(); packets],
        };
        // SAFETY: a constant of MPI.
        let handler = unsafe { ffi::RSMPI_ERRORS_RETURN };
        // SAFETY: the communicator is valid.
        carrier.check("MPI_Comm_set_errhandler", unsafe { ffi::MPI_Comm_set_errhandler(world.as_raw(), handler) })?;
        let buffer = carrier.attached.as_mut_ptr().cast::<c_void>();
        // SAFETY: the buffer stays where it is until it is detached, when this is dropped.
        carrier.check("MPI_Buffer_attach", unsafe { ffi::MPI_Buffer_attach(buffer, bytes as c_int) })?;
        Ok(carrier)
    }

    fn comm(&self) -> MPI_Comm {
        self.world.as_raw()
    }

    fn check(&self, call: &str, code: c_int) -> Result<()> {
        if code == ffi::MPI_SUCCESS as c_int {
            return Ok(());
        }
        let (rank, size) = (self.world.rank(), self.world.size());
        let detail = format!("rank {rank}: {call} failed with code {code}");
        Err(Error::Run { series: "MPI".into(), ranks: size as usize, detail })
    }

    fn step(&mut self, step: Step, packets: usize, partners: Partners, send: &[u8], receive: &mut [u8]) -> Result<()> {
        let (to, from, comm) = (partners.to as c_int, partners.from as c_int, self.comm());
        // SAFETY: a constant of MPI.
        let byte = unsafe { ffi::RSMPI_UINT8_T };
        let status = ignored();
        match step {
            Step::Post(index) => {
                let part = &mut receive[packet(send.len(), packets, index)];
                let (into, bytes) = (part.as_mut_ptr().cast::<c_void>(), part.len() as c_int);
                let request = &mut self.receives[index];
                // SAFETY: `execute` waits for all that it posts before the buffer is touched again.
                let code = unsafe { ffi::MPI_Irecv(into, bytes, byte, from, PACKET, comm, request) };
                self.check("MPI_Irecv", code)
            }
            Step::Go => {
                // SAFETY: no bytes are sent.
                let code = unsafe { ffi::MPI_Send(std::ptr::null(), 0, byte, from, WORD, comm) };
                self.check("MPI_Send of a word", code)
            }
            Step::AwaitGo => {
                // SAFETY: no bytes are received.
                let code = unsafe { ffi::MPI_Recv(std::ptr::null_mut(), 0, byte, to, WORD, comm, status) };
                self.check("MPI_Recv of a word", code)
            }
            Step::Send(index, kind) => {
                let part = &send[packet(send.len(), packets, index)];
                let (data, bytes) = (part.as_ptr().cast::<c_void>(), part.len() as c_int);
                let request = &mut self.sends[index];
                // SAFETY: `execute` waits for all immediate sends before the buffer is touched again.
                let code = unsafe { send_by(kind)(data, bytes, byte, to, comm, request) };
                self.check(kind.name(), code)
            }
            Step::Receive(index) => {
                let part = &mut receive[packet(send.len(), packets, index)];
                let (into, bytes) = (part.as_mut_ptr().cast::<c_void>(), part.len() as c_int);
                // SAFETY: the buffer is borrowed for the call.
                let code = unsafe { ffi::MPI_Recv(into, bytes, byte, from, PACKET, comm, status) };
                self.check("MPI_Recv", code)
            }
            Step::Complete(index) => {
                // SAFETY: the request is of a receive that was posted, or null.
                let code = unsafe { ffi::MPI_Wait(&mut self.receives[index], status) };
                self.check("MPI_Wait for a receive", code)
            }
            Step::Sent(index) => {
                // SAFETY: the request is of a send that has begun, or null.
                let code = unsafe { ffi::MPI_Wait(&mut self.sends[index], status) };
                self.check("MPI_Wait for a send", code)
            }
            Step::Exchange(index) => {
                let part = packet(send.len(), packets, index);
                let (data, into) = (&send[part.clone()], &mut receive[part]);
                let bytes = data.len() as c_int;
                let (data, into) = (data.as_ptr().cast::<c_void>(), into.as_mut_ptr().cast::<c_void>());
                // SAFETY: both buffers are borrowed for the call and do not overlap.
                let code = unsafe {
                    ffi::MPI_Sendrecv(data, bytes, byte, to, PACKET, into, bytes, byte, from, PACKET, comm, status)
                };
                self.check("MPI_Sendrecv", code)
            }
        }
    }
}

fn null_request() -> MPI_Request {
    // SAFETY: a constant of MPI.
    unsafe { ffi::RSMPI_REQUEST_NULL }
}

fn ignored() -> *mut ffi::MPI_Status {
    // SAFETY: a constant of MPI.
    unsafe { ffi::RSMPI_STATUS_IGNORE }
}

type Sending = unsafe fn(*const c_void, c_int, ffi::MPI_Datatype, c_int, MPI_Comm, *mut MPI_Request) -> c_int;

/// The call of a kind of send, with one form for all; those that are not immediate leave the request alone.
///
/// The data must stay as they are until the call has returned, or, of an immediate one, until its request is complete.
fn send_by(kind: SendKind) -> Sending {
    macro_rules! blocking {
        ($call:ident) => {{
            unsafe fn call(
                data: *const c_void,
                bytes: c_int,
                byte: ffi::MPI_Datatype,
                to: c_int,
                comm: MPI_Comm,
                _: *mut MPI_Request,
            ) -> c_int {
                // SAFETY: as of this function.
                unsafe { ffi::$call(data, bytes, byte, to, PACKET, comm) }
            }
            call
        }};
    }
    macro_rules! immediate {
        ($call:ident) => {{
            unsafe fn call(
                data: *const c_void,
                bytes: c_int,
                byte: ffi::MPI_Datatype,
                to: c_int,
                comm: MPI_Comm,
                request: *mut MPI_Request,
            ) -> c_int {
                // SAFETY: as of this function.
                unsafe { ffi::$call(data, bytes, byte, to, PACKET, comm, request) }
            }
            call
        }};
    }
    match kind {
        SendKind::Buffered => blocking!(MPI_Bsend),
        SendKind::Standard => blocking!(MPI_Send),
        SendKind::Ready => blocking!(MPI_Rsend),
        SendKind::Synchronous => blocking!(MPI_Ssend),
        SendKind::Immediate => immediate!(MPI_Isend),
        SendKind::ImmediateReady => immediate!(MPI_Irsend),
        SendKind::ImmediateSynchronous => immediate!(MPI_Issend),
    }
}

impl Carrier for OverMpi<'_> {
    fn rank(&self) -> usize {
        self.world.rank() as usize
    }

    fn size(&self) -> usize {
        self.world.size() as usize
    }

    fn words(&self) -> String {
        let text = mpi::environment::library_version().unwrap_or_default().replace(['\0', '\t'], " ");
        text.lines().next().unwrap_or_default().trim().to_owned()
    }

    fn serves(&self, _: Protocol, _: Program) -> bool {
        true
    }

    fn barrier(&mut self) -> Result<()> {
        self.world.barrier();
        Ok(())
    }

    fn gather(&mut self, own: &[f64]) -> Result<Vec<f64>> {
        let mut all = vec![0.0; own.len() * self.size()];
        self.world.all_gather_into(own, &mut all[..]);
        Ok(all)
    }

    fn execute(
        &mut self,
        job: &Job<'_>,
        send: &mut [u8],
        receive: &mut [u8],
        synchronised: &mut dyn FnMut(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let Some(partners) = job.partners else { return synchronised(self) };
        for &step in &job.script.before {
            self.step(step, job.packets, partners, send, receive)?;
        }
        synchronised(self)?;
        for &step in &job.script.timed {
            self.step(step, job.packets, partners, send, receive)?;
        }
        Ok(())
    }
}

impl Drop for OverMpi<'_> {
    fn drop(&mut self) {
        let (mut buffer, mut bytes) = (std::ptr::null_mut::<c_void>(), 0);
        // SAFETY: waits until no buffered message is left in the buffer, and gives it back.
        let _ = unsafe { ffi::MPI_Buffer_detach((&raw mut buffer).cast::<c_void>(), &mut bytes) };
    }
}
