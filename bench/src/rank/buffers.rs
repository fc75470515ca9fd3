//! The buffers of one case on one rank: one of each, or many that take turns.

use std::ops::{Deref, DerefMut};

use hier::{Buffer, Communicator};

use super::answer;
use super::value::Value;
use crate::error::{Error, Result};
use crate::plan::{BufferMode, Case};

const LINE: usize = 64;

/// A vector in a rank's own memory, or in the job's.
enum Memory<T> {
    Own(Vec<T>),
    Shared(Buffer<T>),
}

impl<T> Deref for Memory<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match self {
            Memory::Own(vector) => vector,
            Memory::Shared(buffer) => buffer,
        }
    }
}

impl<T> DerefMut for Memory<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            Memory::Own(vector) => vector,
            Memory::Shared(buffer) => buffer,
        }
    }
}

/// Send and receive slots of equal length, each slot on cache lines of its own.
pub struct Buffers<T> {
    send: Memory<T>,
    receive: Memory<T>,
    /// Elements to skip so that the first slot begins on a cache line.
    send_start: usize,
    receive_start: usize,
    /// Elements of what is sent, and of what is received: of all blocks together.
    lengths: [usize; 2],
    /// Elements from one slot to the next.
    stride: usize,
    /// A power of two.
    slots: usize,
}

impl<T: Value> Buffers<T> {
    /// The buffers of `case`, written once so that their pages are there.
    ///
    /// # Errors
    ///
    /// [`Error::Collective`] when the job has no shared memory left for them, [`Error::Usage`] when this process has no
    /// memory for them.
    pub fn new(comm: &Communicator, case: &Case, cold_bytes: u64) -> Result<Buffers<T>> {
        let element = size_of::<T>();
        let length = case.bytes as usize / element;
        let lengths = [case.operation.sends_blocks(), case.operation.receives_blocks()]
            .map(|blocks| if blocks { comm.size().saturating_mul(length) } else { length });
        // Whatever could not be counted does not fit memory either.
        let longest = lengths[0].max(lengths[1]).saturating_mul(element).min(isize::MAX as usize);
        let stride_bytes = longest.next_multiple_of(LINE).max(LINE);
        let slots = match case.buffers {
            BufferMode::Cold => slot_count(cold_bytes as usize, stride_bytes),
            _ => 1,
        };
        let stride = stride_bytes / element;
        let elements = slots.saturating_mul(stride).saturating_add(LINE / element);
        let vector = |value: u32| -> Result<Memory<T>> {
            if case.buffers.is_shared() {
                let mut buffer = comm.alloc(elements)?;
                buffer.fill(T::whole(value));
                return Ok(Memory::Shared(buffer));
            }
            let mut vector = Vec::new();
            vector.try_reserve_exact(elements).map_err(|_| {
                let bytes = elements.saturating_mul(element);
                Error::Usage(format!("no memory for a buffer of {bytes} bytes: try smaller --sizes, or fewer --ranks"))
            })?;
            vector.resize(elements, T::whole(value));
            Ok(Memory::Own(vector))
        };
        let (send, receive) = (vector(1)?, vector(0)?);
        let start = |buffer: &[T]| buffer.as_ptr().align_offset(LINE);
        let (send_start, receive_start) = (start(&send), start(&receive));
        Ok(Buffers { send, receive, send_start, receive_start, lengths, stride, slots })
    }

    /// The slot that call `call` uses: an odd multiple modulo a power of two visits all slots,
    /// and neighbours in time are no neighbours in memory, which a prefetcher would guess.
    fn slot(&self, call: u64) -> usize {
        (call.wrapping_mul(0x9E37_79B1) as usize) & (self.slots - 1)
    }

    /// What call `call` sends and where it receives.
    #[inline]
    pub fn pair(&mut self, call: u64) -> (&mut [T], &mut [T]) {
        let at = self.slot(call) * self.stride;
        let (send, receive) = (self.send_start + at, self.receive_start + at);
        let [sent, received] = self.lengths;
        (&mut self.send[send..send + sent], &mut self.receive[receive..receive + received])
    }

    /// Writes the checking pattern of `rank` into every send slot, and into every receive slot
    /// of the root of a broadcast; other receive slots get what no answer contains.
    pub fn fill(&mut self, rank: usize, turn: usize, receive_too: bool) {
        self.fill_one(0, rank, turn, receive_too);
        // Call 0 has the first slot. Twice as many hold the pattern after each copy.
        let mut filled = 1;
        while filled < self.slots {
            let len = filled * self.stride;
            for (memory, start) in [(&mut self.send, self.send_start), (&mut self.receive, self.receive_start)] {
                memory.copy_within(start..start + len, start + len);
            }
            filled *= 2;
        }
    }

    /// The same of the slots of one call.
    pub fn fill_one(&mut self, call: u64, rank: usize, turn: usize, receive_too: bool) {
        let (send, receive) = self.pair(call);
        answer::fill(send, rank, turn);
        if receive_too {
            answer::fill(receive, rank, turn);
        } else {
            receive.fill(T::whole(99_999));
        }
    }
}

/// The power of two of slots that fill about `bytes`, two at least and a million at most.
fn slot_count(bytes: usize, stride: usize) -> usize {
    let wanted = (bytes / stride).clamp(2, 1 << 20);
    1 << wanted.ilog2()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::plan::{ElementType, Operation, Timing};

    /// The buffers of a world of one rank.
    fn buffers(case: &Case, cold_bytes: u64) -> Buffers<f64> {
        let made = Communicator::threads(1, |comm| Buffers::<f64>::new(&comm, case, cold_bytes).unwrap());
        made.unwrap().remove(0)
    }

    fn case(bytes: u64, buffers: BufferMode) -> Case {
        Case {
            operation: Operation::Allreduce,
            buffers,
            timing: Timing::Each,
            element: ElementType::F64,
            bytes,
            root: 0,
            blocks: 1,
            block: Duration::from_millis(1),
        }
    }

    #[test]
    fn warm_calls_share_one_slot_on_its_own_lines() {
        let mut buffers = buffers(&case(24, BufferMode::Warm), 1 << 20);
        let first = buffers.pair(0).0.as_ptr();
        assert_eq!(first as usize % LINE, 0);
        assert_eq!(buffers.pair(7).0.as_ptr(), first);
        assert_eq!(buffers.pair(7).1.len(), 3);
    }

    #[test]
    fn shared_buffers_hold_their_values_on_lines_of_their_own() {
        let mut buffers = buffers(&case(24, BufferMode::Shared), 1 << 20);
        buffers.fill(0, 0, true);
        let (send, receive) = buffers.pair(3);
        assert_eq!(send, receive);
        assert_eq!((send.len(), send.as_ptr() as usize % LINE), (3, 0));
    }

    #[test]
    fn cold_calls_visit_every_slot_once_in_a_turn() {
        let mut buffers = buffers(&case(8, BufferMode::Cold), 1 << 16);
        let mut seen: Vec<usize> = (0..1024).map(|call| buffers.pair(call).1.as_ptr() as usize).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 1024);
        assert!(seen.windows(2).all(|pair| pair[1] - pair[0] == LINE));
    }

    #[test]
    fn all_slots_hold_the_pattern() {
        for bytes in [8, 24, 64, 72] {
            let mut buffers = buffers(&case(bytes, BufferMode::Cold), 1 << 16);
            buffers.fill(3, 1, false);
            let mut pattern = vec![0.0; bytes as usize / 8];
            answer::fill(&mut pattern, 3, 1);
            for call in 0..buffers.slots as u64 {
                let (send, receive) = buffers.pair(call);
                assert!(
                    send == pattern && receive.iter().all(|&value| value == 99_999.0),
                    "{bytes} bytes, call {call}"
                );
            }
        }
    }

    #[test]
    fn slots_never_run_out_and_empty_messages_have_them_too() {
        assert_eq!(slot_count(1 << 25, 8 << 20), 4);
        assert_eq!(slot_count(1, 8 << 20), 2);
        let mut buffers = buffers(&case(0, BufferMode::Cold), 1 << 16);
        assert!(buffers.pair(3).0.is_empty());
        buffers.fill(0, 0, false);
    }
}
