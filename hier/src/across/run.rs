//! A program under way: a schedule executed over a transport, as far as it goes without waiting.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use shm_core::Element;
use shm_core::operator::Operator;
use smallvec::SmallVec;

use super::stages::Gate;
use crate::schedule::{Combine, Program, Span};
use crate::transport::{self, Request, Transport};

/// How long a message that is given up may take to end.
const FAREWELL: Duration = Duration::from_secs(2);

/// Arrivals that wait to be combined begin at multiples of this, so that elements of any type are aligned.
const LINE: usize = 64;

/// A piece of the buffer for arrivals.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; LINE]);

/// Memory for arrivals that wait.
#[derive(Default)]
pub(super) struct Buffer(Vec<Line>);

impl Buffer {
    /// How many bytes it has taken of the heap.
    pub fn bytes(&self) -> usize {
        self.0.capacity() * LINE
    }
}

/// An operator with its element type forgotten.
#[derive(Clone, Copy)]
pub(super) struct Combiner {
    operator: *const (),
    call: unsafe fn(*const (), *mut u8, [*const u8; 2], usize),
}

impl Combiner {
    pub fn of<T: Element, O: Operator<T>>(operator: &O) -> Self {
        /// # Safety
        /// `operator` points to a live `O`; the rest as for `Operator::<T>::fold` of `n` of its groups of elements.
        unsafe fn call<T: Element, O: Operator<T>>(
            operator: *const (),
            dst: *mut u8,
            operands: [*const u8; 2],
            n: usize,
        ) {
            // SAFETY: by contract it points to a live `O`.
            let operator = unsafe { &*operator.cast::<O>() };
            let operands = operands.map(|operand| operand.cast::<T>());
            // SAFETY: by contract as `fold` wants it.
            unsafe { operator.fold(dst.cast(), &operands, n * operator.group().get()) }
        }
        Self { operator: std::ptr::from_ref(operator).cast(), call: call::<T, O> }
    }
}

/// The memory that a program works on: where each of its segments lies.
pub(super) struct Memory {
    data: *mut u8,
    /// Bytes of an element, or of a group that an operator takes for one.
    element: usize,
    segments: Segments,
}

enum Segments {
    /// A vector of so many elements, in segments that differ by one element at most.
    Even(usize),
    /// Bytes from `data` on, by segment; ascending.
    Given(Vec<Range<usize>>),
}

impl Memory {
    /// None: for programs without payload.
    pub fn nothing() -> Self {
        Self { data: std::ptr::null_mut(), element: 0, segments: Segments::Even(0) }
    }

    /// A whole vector, in segments that differ by one element at most, or by one group of so many.
    pub fn whole<T: Element>(vector: &mut [T], group: usize) -> Self {
        let segments = Segments::Even(vector.len() / group);
        Self { data: vector.as_mut_ptr().cast(), element: size_of::<T>() * group, segments }
    }

    /// Parts of the vector that begins at `data`, in elements; they are whole groups of so many.
    pub fn parts<T: Element>(data: *mut T, group: usize, segments: impl Iterator<Item = Range<usize>>) -> Self {
        let element = size_of::<T>();
        let segments = segments.map(|range| range.start * element..range.end * element).collect();
        Self { data: data.cast(), element: element * group, segments: Segments::Given(segments) }
    }

    /// The bytes of a span, in as few pieces as they lie in, the same number on all ranks; an empty span is an empty
    /// piece.
    fn pieces(&self, span: Span, segments: u32) -> SmallVec<[Range<usize>; 2]> {
        let mut pieces: SmallVec<[Range<usize>; 2]> = SmallVec::new();
        let mut add = |range: Range<usize>| match pieces.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => pieces.push(range),
        };
        match &self.segments {
            Segments::Even(count) => {
                let [first, second] = span.elements(*count, segments);
                add(first.start * self.element..first.end * self.element);
                // A second piece hangs on the span alone, and not on how many elements there are.
                if u64::from(span.first) + u64::from(span.count) > u64::from(segments) {
                    add(second.start * self.element..second.end * self.element);
                }
            }
            Segments::Given(ranges) => {
                span.segments(segments).filter_map(|segment| ranges.get(segment as usize).cloned()).for_each(add);
            }
        }
        if pieces.is_empty() {
            pieces.push(0..0);
        }
        pieces
    }
}

/// A message on its way in.
struct Arrival {
    request: Request,
    /// Where it belongs.
    place: Range<usize>,
    /// Where it is until the round ends, and how it is combined then; none where it goes straight to its place.
    waits: Option<(usize, Combine)>,
}

/// A program under way.
///
/// # Safety
/// Who makes one keeps the memory and the operator alive, and leaves both alone, until [`step`](Run::step) has returned
/// `Ok(true)` or [`give_up`](Run::give_up) was called: but for what is behind its [gate](Run::set_gate), and for
/// reading what no round that is left receives.
pub(super) struct Run {
    program: Arc<Program>,
    /// The transport's ranks, by rank of the program.
    peers: Arc<[usize]>,
    tag: u32,
    memory: Memory,
    combiner: Option<Combiner>,
    /// How far it may go yet.
    gate: Gate,
    /// Whether nothing else is waited for meanwhile.
    expects: bool,
    round: usize,
    /// Whether the messages of this round were begun.
    begun: bool,
    departures: SmallVec<[Request; 2]>,
    arrivals: SmallVec<[Arrival; 2]>,
    /// Arrivals that wait.
    buffer: Buffer,
}

// SAFETY: the pointers are to memory that the maker keeps for this run alone, and to an operator that is only read.
unsafe impl Send for Run {}

impl Run {
    /// # Safety
    /// As the type says.
    pub unsafe fn new(
        program: Arc<Program>,
        peers: Arc<[usize]>,
        tag: u32,
        memory: Memory,
        combiner: Option<Combiner>,
    ) -> Self {
        Self {
            program,
            peers,
            tag,
            memory,
            combiner,
            gate: Gate::OPEN,
            expects: false,
            round: 0,
            begun: false,
            departures: SmallVec::new(),
            arrivals: SmallVec::new(),
            buffer: Buffer::default(),
        }
    }

    /// The same, of a rank that waits for this run alone.
    pub fn expecting(mut self, expects: bool) -> Self {
        self.expects = expects;
        self
    }

    /// Whether the rank waits for this run alone.
    pub fn expects(&self) -> bool {
        self.expects
    }

    /// Sets how far it may go: what it does not send or receive before that may be written meanwhile.
    pub fn set_gate(&mut self, gate: Gate) {
        self.gate = gate;
    }

    /// Has it use a buffer that another run has left, before it begins.
    pub fn lend(&mut self, buffer: Buffer) {
        self.buffer = buffer;
    }

    /// The buffer of a run that has ended.
    pub fn into_buffer(self) -> Buffer {
        self.buffer
    }

    /// Goes as far as it can without waiting. Returns whether all is done.
    pub fn step(&mut self, transport: &dyn Transport) -> transport::Result<bool> {
        while self.round < self.program.rounds.len() {
            if !self.begun {
                if !self.gate.lets_begin(self.round) {
                    return Ok(false);
                }
                self.begin(transport)?;
                self.begun = true;
            }
            if !self.test(transport)? || !self.gate.lets_combine(self.round) {
                return Ok(false);
            }
            self.apply();
            self.begun = false;
            self.round += 1;
        }
        Ok(true)
    }

    /// Rounds whose messages have all ended.
    pub fn rounds_ended(&self) -> usize {
        self.round
    }

    /// Whether nothing can happen to it before a message comes of which nothing has come yet.
    pub fn awaits_message(&self, transport: &dyn Transport) -> bool {
        let mut waiting = self.arrivals.iter().map(|arrival| &arrival.request).filter(|request| !request.has_ended());
        self.begun
            && self.departures.iter().all(Request::has_ended)
            && waiting.next().is_some_and(|request| !transport.may_have_ended(request))
    }

    /// Begins all messages of the round: receives first, so that what comes has its place.
    fn begin(&mut self, transport: &dyn Transport) -> transport::Result<()> {
        let program = Arc::clone(&self.program);
        let round = &program.rounds[self.round];
        let mut waiting = 0;
        let mut expected: SmallVec<[_; 2]> = SmallVec::new();
        for receive in &round.receives {
            for place in self.memory.pieces(receive.span, program.segments) {
                let waits = (receive.combine != Combine::Replace).then_some((waiting, receive.combine));
                waiting += if waits.is_some() { place.len().next_multiple_of(LINE) } else { 0 };
                expected.push((receive.from, place, waits));
            }
        }
        if self.buffer.0.len() * LINE < waiting {
            self.buffer.0.resize(waiting / LINE, Line([0; LINE]));
        }
        for (from, place, waits) in expected {
            let into = match waits {
                Some((at, _)) => self.buffer.0.as_mut_ptr().cast::<u8>().wrapping_add(at),
                None => self.memory.data.wrapping_add(place.start),
            };
            let (from, bytes) = (self.peers[from as usize], place.len());
            let request = if self.expects {
                // SAFETY: the place lies within the memory, which its owner keeps for this run, or within the buffer,
                // which does not grow before the round has ended; no other receive of the round goes there.
                unsafe { transport.expect(from, self.tag, into, bytes) }
            } else {
                // SAFETY: the same.
                unsafe { transport.receive(from, self.tag, into, bytes) }
            }?;
            self.arrivals.push(Arrival { request, place, waits });
        }
        for send in &round.sends {
            for piece in self.memory.pieces(send.span, program.segments) {
                let from = self.memory.data.wrapping_add(piece.start);
                // SAFETY: the piece lies within the memory; what arrives in this round goes elsewhere, or waits.
                let request =
                    unsafe { transport.send(self.peers[send.to as usize], self.tag, from.cast_const(), piece.len()) }?;
                self.departures.push(request);
            }
        }
        Ok(())
    }

    /// Whether all messages of the round have ended. Asks no further than the first that has not: each question is a
    /// call of the library below, and each lets all messages move. Sends first: short ones have ended, and the next
    /// round can begin as soon as the last message has come.
    fn test(&mut self, transport: &dyn Transport) -> transport::Result<bool> {
        for request in self.departures.iter_mut().chain(self.arrivals.iter_mut().map(|arrival| &mut arrival.request)) {
            if request.has_ended() {
                continue;
            }
            let ended = if self.expects { transport.await_end(request)? } else { transport.test(request)? };
            if !ended {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Combines what has waited with what is there.
    fn apply(&mut self) {
        self.departures.clear();
        for arrival in self.arrivals.drain(..) {
            let (Some((at, combine)), Some(combiner)) = (arrival.waits, self.combiner) else { continue };
            let n = arrival.place.len().checked_div(self.memory.element).unwrap_or(0);
            let arrived = self.buffer.0.as_ptr().cast::<u8>().wrapping_add(at);
            let own = self.memory.data.wrapping_add(arrival.place.start);
            let operands = match combine {
                Combine::Left => [arrived, own.cast_const()],
                Combine::Right | Combine::Replace => [own.cast_const(), arrived],
            };
            // SAFETY: both hold `n` elements, aligned; the messages of the round have ended, so that nobody else
            // touches them; the operator is alive.
            unsafe { (combiner.call)(combiner.operator, own, operands, n) };
        }
    }

    /// Ends all messages that are under way.
    ///
    /// Ends the process if one cannot be withdrawn: the library below would go on writing to memory that is no longer
    /// its own.
    pub fn give_up(&mut self, transport: &dyn Transport) {
        let arrivals = self.arrivals.drain(..).map(|arrival| arrival.request);
        for request in arrivals.chain(self.departures.drain(..)) {
            if !request.has_ended() && !transport.abandon(request, FAREWELL) {
                shm_core::remark(format_args!(
                    "rank {}: a message of a call that failed cannot be withdrawn; the process ends, since its memory is not \
                     safe any more",
                    transport.rank()
                ));
                std::process::abort();
            }
        }
    }
}
