//! One call, with all that it takes at hand: what is chosen before the clock is read is not timed.

use hier::operator::Operator;
use hier::{Communicator, SharedResult};

use super::buffers::Buffers;
use super::value::Value;
use crate::error::Result;
use crate::plan::{BufferMode, Case, Operation};

/// A call that is about to be made.
pub struct Call<'a, T, O> {
    comm: &'a Communicator,
    operation: Operation,
    root: usize,
    operator: O,
    send: &'a [T],
    receive: &'a mut [T],
    /// Where the result goes that all ranks look at, with buffers of that kind.
    view: Option<&'a mut Option<SharedResult<T>>>,
}

impl<'a, T: Value, O: Operator<T>> Call<'a, T, O> {
    /// Call number `number` of `case`.
    pub fn new(
        comm: &'a Communicator,
        case: &Case,
        operator: O,
        (buffers, number): (&'a mut Buffers<T>, u64),
        view: &'a mut Option<SharedResult<T>>,
    ) -> Call<'a, T, O> {
        let (send, receive) = buffers.pair(number);
        let looks = case.buffers == BufferMode::View && case.operation == Operation::Allreduce;
        let view = looks.then_some(view);
        Call { comm, operation: case.operation, root: case.root, operator, send, receive, view }
    }

    /// Makes it.
    ///
    /// # Errors
    ///
    /// [`Error::Collective`](crate::error::Error::Collective).
    pub fn make(self) -> Result<()> {
        let Call { comm, operation, root, operator, send, receive, view } = self;
        if let Some(view) = view {
            // A program drops one result before it asks for the next.
            *view = None;
            *view = Some(comm.all_reduce_shared(send, operator)?);
            return Ok(());
        }
        match operation {
            Operation::Barrier => comm.barrier(),
            Operation::Allreduce => comm.all_reduce_into(send, receive, operator),
            Operation::Broadcast => comm.process_at_rank(root).broadcast_into(receive),
            Operation::Reduce if comm.rank() == root => {
                comm.process_at_rank(root).reduce_into_root(send, receive, operator)
            }
            Operation::Reduce => comm.process_at_rank(root).reduce_into(send, operator),
            Operation::Gather if comm.rank() == root => comm.process_at_rank(root).gather_into_root(send, receive),
            Operation::Gather => comm.process_at_rank(root).gather_into(send),
            Operation::Scatter if comm.rank() == root => comm.process_at_rank(root).scatter_into_root(send, receive),
            Operation::Scatter => comm.process_at_rank(root).scatter_into(receive),
            Operation::Allgather => comm.all_gather_into(send, receive),
            Operation::Alltoall => comm.all_to_all_into(send, receive),
            Operation::ReduceScatter => comm.reduce_scatter_block_into(send, receive, operator),
            Operation::Scan => comm.scan_into(send, receive, operator),
            Operation::Empty => Ok(()),
        }?;
        Ok(())
    }
}
