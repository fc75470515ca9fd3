//! Results compared with those of the library (`PHALANX_VERIFY=1`): every call is made twice, and a difference ends the
//! job.
//!
//! Integers, booleans and messages must be equal; sums and products of floating-point numbers may differ as `agreement`
//! allows. Users' operators are compared on integers alone: on others their results may depend on the order, and only
//! they know how.

use std::ffi::{c_int, c_void};

use hier::{HierComm, NodeCommunicator};
use mpi::ffi;

use crate::abi::{self, Word};
use crate::agreement::{Bounds, Numbers};
use crate::calls::bcast::Message;
use crate::calls::fault::Fault;
use crate::calls::packing::{pack, zeroed};
use crate::calls::reduction::{Arguments, Goal, Plan};
use crate::calls::{blocks, planned};
use crate::operators::{Kind, Op};
use crate::types;
use crate::what::What;

/// Elements of a call of the library's, whose counts are integers of C.
const PIECE: usize = 1 << 24;

/// A broadcast, by both.
pub fn broadcast(
    message: &Message,
    bytes: usize,
    comm: Word,
    ours: &HierComm,
    carry_out: impl FnOnce() -> Result<(), Fault>,
) -> Result<(), Fault> {
    let root = message.root as usize;
    let mut theirs = if ours.rank() == root { message.packed(bytes)? } else { zeroed(bytes)? };
    carry_out()?;
    for piece in theirs.chunks_mut(PIECE) {
        // SAFETY: a constant that is filled before main.
        let kind = unsafe { ffi::RSMPI_UINT8_T };
        // SAFETY: all ranks have as many bytes in the piece.
        let _ = unsafe {
            ffi::PMPI_Bcast(piece.as_mut_ptr().cast(), piece.len() as c_int, kind, root as c_int, abi::comm(comm))
        };
    }
    let own = message.packed(bytes)?;
    if let Some(at) = own.iter().zip(&theirs).position(|(own, their)| own != their) {
        let what = format!("MPI_Bcast of {bytes} bytes from rank {root}");
        differ(&what, ours.rank(), comm, &format!("byte {at} is {}, with the library {}", own[at], theirs[at]));
    }
    Ok(())
}

/// A reduction, by both.
pub fn reduction(
    arguments: &Arguments<'_>,
    plan: &Plan,
    comm: Word,
    rank: usize,
    carry_out: impl FnOnce() -> Result<(), Fault>,
) -> Result<(), Fault> {
    let gets = arguments.goal.gets(rank);
    let has_place = arguments.goal.has_place(rank);
    let in_place = abi::is_in_place(arguments.send) || has_place && arguments.send == arguments.recv;
    let from = if in_place { arguments.recv } else { arguments.send };
    let extent = plan.of().extent as usize;
    // Words, so that elements are aligned.
    let mut input = vec![0_u128; (plan.count * extent).div_ceil(16)];
    let start = plan.of().start;
    let held = (plan.count - 1) * extent + plan.of().reach - start;
    let (data, into) = ((from as *const u8).wrapping_add(start), input.as_mut_ptr().cast::<u8>().wrapping_add(start));
    // SAFETY: by MPI's contract the elements' data lie there, and the copy has room.
    unsafe { std::ptr::copy_nonoverlapping(data, into, held) };
    let packed = |at: *const c_void, count: usize| pack(at, count, arguments.datatype, count * plan.of().size);
    let operator = types::operator(arguments.op);
    let kind = plan.of().kind.unwrap_or(Kind::Other);
    let size = plan.of().size;
    // Here a rank that cannot go on keeps nobody waiting: calls of the library's follow.
    let numbers = Numbers::of(&packed(input.as_ptr().cast(), plan.count)?, kind, size);
    carry_out()?;
    let mut output = vec![0_u128; input.len()];
    let reduce = |datatype, op, input: *const u8, output: *mut u8, extent: usize| {
        if let Goal::Parts(parts) = arguments.goal {
            return reduce_scatter(parts.own, datatype, op, input, output, comm);
        }
        for at in (0..plan.count).step_by(PIECE) {
            let count = PIECE.min(plan.count - at) as c_int;
            let (send, recv) = (input.wrapping_add(at * extent), output.wrapping_add(at * extent));
            let (send, recv) = (send.cast(), recv.cast());
            let _ = match arguments.goal {
                // SAFETY: so many elements are there, or may be written.
                Goal::All => unsafe { ffi::PMPI_Allreduce(send, recv, count, datatype, op, abi::comm(comm)) },
                // SAFETY: the same.
                Goal::Root(root) => unsafe {
                    ffi::PMPI_Reduce(send, recv, count, datatype, op, root as c_int, abi::comm(comm))
                },
                // SAFETY: the same.
                Goal::Scan => unsafe { ffi::PMPI_Scan(send, recv, count, datatype, op, abi::comm(comm)) },
                // SAFETY: the same.
                Goal::Exscan => unsafe { ffi::PMPI_Exscan(send, recv, count, datatype, op, abi::comm(comm)) },
                Goal::Parts(_) => abi::SUCCESS,
            };
        }
    };
    let (datatype, op) = (abi::datatype(arguments.datatype), abi::op(arguments.op));
    reduce(datatype, op, input.as_ptr().cast(), output.as_mut_ptr().cast(), extent);
    // What all ranks contributed bounds what the order of operations may change.
    let bounds = numbers.zip(operator).map(|(numbers, op)| {
        let sums = sums(numbers.shares(op), comm);
        Bounds(sums[arguments.goal.before() * numbers.width..].to_vec())
    });
    if !gets {
        return Ok(());
    }
    let results = arguments.goal.results(plan.count);
    let (own, theirs) = (packed(arguments.recv as *const c_void, results)?, packed(output.as_ptr().cast(), results)?);
    let what = || {
        let (name, root) = match arguments.goal {
            Goal::All => ("MPI_Allreduce", String::new()),
            Goal::Root(root) => ("MPI_Reduce", format!(" at rank {root}")),
            Goal::Scan => ("MPI_Scan", String::new()),
            Goal::Exscan => ("MPI_Exscan", String::new()),
            Goal::Parts(_) => ("MPI_Reduce_scatter", format!(", part of {results}")),
        };
        format!("{name}{root} of {} elements, {kind:?} of {} bytes, {operator:?}", plan.count, size)
    };
    match (Numbers::of(&own, kind, size).zip(Numbers::of(&theirs, kind, size)), operator, bounds) {
        (Some((own, theirs)), Some(op), Some(bounds)) => {
            if let Some(at) = own.first_off(&theirs, op, &bounds, ranks(comm)) {
                let text = format!("number {at} is {:e}, with the library {:e}", own.values[at], theirs.values[at]);
                differ(&what(), rank, comm, &text);
            }
        }
        _ if is_exact(kind, operator) => {
            if let Some(at) = own.iter().zip(&theirs).position(|(own, their)| own != their) {
                let text = format!(
                    "element {} has {:02x?}, with the library {:02x?}",
                    at / size,
                    &own[at - at % size..][..size],
                    &theirs[at - at % size..][..size]
                );
                differ(&what(), rank, comm, &text);
            }
        }
        _ => {}
    }
    Ok(())
}

/// The library's MPI_Reduce_scatter, whose counts are those that all ranks say.
fn reduce_scatter(
    own: usize,
    datatype: ffi::MPI_Datatype,
    op: ffi::MPI_Op,
    input: *const u8,
    output: *mut u8,
    comm: Word,
) {
    let (own, mut counts) = (own as i32, vec![0_i32; ranks(comm)]);
    // SAFETY: a constant that is filled before main.
    let kind = unsafe { ffi::RSMPI_INT32_T };
    let all = counts.as_mut_ptr().cast();
    // SAFETY: one number to send, and room for one of each rank.
    let _ = unsafe { ffi::PMPI_Allgather((&raw const own).cast(), 1, kind, all, 1, kind, abi::comm(comm)) };
    // SAFETY: so many elements are there as all counts together, and there is room for this rank's.
    let _ = unsafe {
        ffi::PMPI_Reduce_scatter(input.cast(), output.cast(), counts.as_ptr(), datatype, op, abi::comm(comm))
    };
}

/// A call that moves blocks, by both. `theirs` makes the library's call, with its result so many bytes further on.
pub fn blocks(
    what: What,
    (arguments, plan): (&blocks::Arguments, &planned::Plan),
    comm: Word,
    ours: &NodeCommunicator,
    theirs: impl Fn(isize) -> c_int,
    carry_out: impl FnOnce() -> Result<(), Fault>,
) -> Result<(), Fault> {
    let (rank, ranks) = (ours.rank(), ours.size());
    let compare = |own: &[u8], theirs: &[u8]| {
        if let Some(at) = own.iter().zip(theirs).position(|(own, their)| own != their) {
            let text = format!("byte {at} of {} is {}, with the library {}", own.len(), own[at], theirs[at]);
            differ(&what.function(), rank, comm, &text);
        }
    };
    let Some((at, bytes)) = plan.written(arguments, ranks) else {
        // The library's result lies where ours does: what an in-place call reads there is put back first.
        let before = plan.result(arguments, ranks)?;
        carry_out()?;
        // The others go on to the library's call: a rank that does not come there ends the job.
        let sure = |fault: &Fault| differ(&what.function(), rank, comm, &fault.to_string());
        let own = plan.result(arguments, ranks).inspect_err(sure)?;
        plan.put_back(arguments, &before, ranks).inspect_err(sure)?;
        theirs(0);
        compare(&own, &plan.result(arguments, ranks)?);
        return Ok(());
    };
    // SAFETY: by MPI's contract so many bytes may be written there, and so they may be read.
    let read = || unsafe { std::slice::from_raw_parts(at as *const u8, bytes) };
    // Blocks in place are read from there. Words, so that elements are aligned as they are there.
    let mut scratch = vec![0_u128; bytes.div_ceil(16) + 2];
    let place = scratch.as_mut_ptr().cast::<u8>().wrapping_add(at % 16);
    // SAFETY: there is room, and the two do not overlap.
    unsafe { std::ptr::copy_nonoverlapping(read().as_ptr(), place, bytes) };
    carry_out()?;
    theirs((place as isize).wrapping_sub(at as isize));
    // SAFETY: initialised above, or written by the library.
    let theirs = unsafe { std::slice::from_raw_parts(place.cast_const(), bytes) };
    compare(read(), theirs);
    Ok(())
}

/// Whether results do not depend on the order of operands.
fn is_exact(kind: Kind, operator: Option<Op>) -> bool {
    match kind {
        Kind::Signed | Kind::Integer | Kind::Unsigned | Kind::Bool | Kind::Logical | Kind::Byte => true,
        // Long ones, of which Rust knows nothing.
        Kind::Real | Kind::Complex => !matches!(operator, None | Some(Op::Sum | Op::Product)),
        Kind::Other => false,
        _ => operator.is_some(),
    }
}

/// The sums over all ranks.
fn sums(mut values: Vec<f64>, comm: Word) -> Vec<f64> {
    for piece in values.chunks_mut(PIECE) {
        let own = piece.to_vec();
        // SAFETY: constants that are filled before main.
        let (kind, sum) = (unsafe { ffi::RSMPI_DOUBLE }, unsafe { ffi::RSMPI_SUM });
        // SAFETY: as many numbers to send as there is room for, the same number on all ranks.
        let _ = unsafe {
            ffi::PMPI_Allreduce(
                own.as_ptr().cast(),
                piece.as_mut_ptr().cast(),
                own.len() as c_int,
                kind,
                sum,
                abi::comm(comm),
            )
        };
    }
    values
}

fn ranks(comm: Word) -> usize {
    let mut ranks = 1;
    // SAFETY: a communicator that the library knows.
    let _ = unsafe { ffi::PMPI_Comm_size(abi::comm(comm), &mut ranks) };
    ranks as usize
}

/// Says what differs, and ends the job.
#[cold]
fn differ(what: &str, rank: usize, comm: Word, text: &str) {
    hier::remark(format_args!("PHALANX_VERIFY: rank {rank}: {what}: {text}"));
    // SAFETY: a communicator that the library knows. It does not return.
    let _ = unsafe { ffi::PMPI_Abort(abi::comm(comm), 1) };
}
