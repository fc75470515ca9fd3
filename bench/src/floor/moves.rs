//! The bare moves of a collective between two processes, in loops of wide registers: of buffers in shared memory those
//! that there is no way around, of private ones those of the plain way, through memory that both have.
//!
//! Buffers in shared memory are used where they lie, between two line exchanges: they hold what is wanted after the
//! first, and are their owners' again after the second. Private ones go through memory that both map, in pieces: one
//! process fills a piece and says so, the other takes it while the next one is filled. Nothing is decided, agreed upon,
//! or checked meanwhile. What a library takes for the same is read against this. The loops are plain: a library is
//! below them where it asks for lines ahead, or has both processes work where one does here.

use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Release};

use super::Kind;
use super::rounds::{LINES, Rounds};
use crate::gate::now;
use crate::mapping::{LARGE_PAGE, Line, Mapping};

/// Where the counts of pieces lie: two lines a process, behind those of the rounds.
const PIECES: usize = 512;
/// The shared regions: contributions, results and pieces of both processes.
const REGIONS: usize = 6;
const SEND: usize = 0;
const RECV: usize = 2;
const STAGED: usize = 4;

/// Bytes of a line; private buffers begin on one, as those of the collectives beside them do.
const LINE_BYTES: usize = 64;

/// The longest piece, in elements: 32 KiB.
const LONGEST_PIECE: usize = 4096;

/// One process's part in the moves of two.
///
/// M1, of a round. Reads: what a process reads of a shared region was written before the exchange at the round's
/// beginning, or before its writer published the count of that piece; of a result, before the exchange at the round's
/// end, or by this process. Writes: what it writes there the other one reads behind such a count, or behind the
/// exchange at the end; and what that one read of it in the round before it has read, since both had ended that round
/// when this one began. Between a round's end and the next one's beginning a process writes nothing but its own
/// contribution, and reads nothing but its result. Nobody else writes. All ranges lie within the regions, or within
/// private buffers of as many elements.
pub struct Moves<'a> {
    kind: Kind,
    mapping: &'a Mapping,
    rounds: Rounds<'a>,
    rank: usize,
    /// Elements of a buffer.
    length: usize,
    /// Contribution and result where they are private, and the element of each that begins a line.
    own: [Vec<f64>; 2],
    starts: [usize; 2],
    /// Pieces published in all rounds before this one, on each line.
    published: u64,
    /// Rounds so far.
    turn: u64,
}

/// Lines of the mapping from one region to the next: an odd number more than a buffer has, so that the regions' lines
/// fall into different sets of the caches.
fn stride(bytes: usize) -> usize {
    bytes.div_ceil(size_of::<Line>()) + 9
}

/// Lines of the mapping in all, for moves of buffers of so many bytes: whole large pages.
pub fn lines(kind: Kind, bytes: usize) -> usize {
    match kind.is_move() {
        true => (LINES + REGIONS * stride(bytes)).next_multiple_of(LARGE_PAGE / size_of::<Line>()),
        false => LINES,
    }
}

impl<'a> Moves<'a> {
    /// Process `rank` of two. `bytes` is a multiple of 512, so that all pieces are whole lines.
    pub fn new(kind: Kind, mapping: &'a Mapping, rank: usize, bytes: usize) -> Moves<'a> {
        assert!(kind.is_move() && rank < 2 && bytes.is_multiple_of(512), "{kind} of {bytes} bytes on {rank}");
        assert!(mapping.length() >= lines(kind, bytes), "the mapping is too short");
        let length = bytes / size_of::<f64>();
        let own = [(); 2]
            .map(|()| if kind.is_staged() { vec![0.0; length + LINE_BYTES / size_of::<f64>()] } else { Vec::new() });
        let starts = [0, 1].map(|which: usize| own[which].as_ptr().align_offset(LINE_BYTES));
        let rounds = Rounds::new(mapping, rank, 2);
        let mut moves = Moves { kind, mapping, rounds, rank, length, own, starts, published: 0, turn: 0 };
        moves.touch();
        moves
    }

    /// Touches what this process has of the regions, so that their pages are there, then asks for large ones.
    fn touch(&mut self) {
        for region in [SEND, RECV, STAGED] {
            let at = self.region(region + self.rank);
            // SAFETY: this process's own region, of `length` elements; the other one comes to it after an exchange
            // only.
            unsafe { ptr::write_bytes(at, 0, self.length) };
        }
        self.rounds.exchange();
        self.mapping.collapse();
        self.rounds.exchange();
    }

    /// The start of a shared region of `length` elements.
    fn region(&self, region: usize) -> *mut f64 {
        self.mapping.at(LINES + region * stride(self.length * size_of::<f64>())).cast()
    }

    /// Writes the contribution anew, begins with the other process, and makes the moves; nanoseconds from the beginning
    /// until this process has its result, and its buffers for itself.
    ///
    /// `begin` returns the time at which both begin, which is when it returns: both have ended their last round then.
    pub fn round(&mut self, begin: impl FnOnce() -> u64) -> u64 {
        self.turn += 1;
        let send = self.send(self.rank);
        // The taker of a broadcast contributes nothing.
        let length = if self.rank == 1 && self.is_broadcast() { 0 } else { self.length };
        for at in 0..length {
            // SAFETY: this process's own contribution; the other one has ended its last round, in which it read it.
            unsafe { send.wrapping_add(at).write(self.contribution(self.rank, at)) };
        }
        let start = begin();
        if self.kind.is_staged() {
            self.moves();
        } else {
            self.rounds.exchange();
            self.moves();
            self.rounds.exchange();
        }
        now() - start
    }

    /// Whether the last round left the right result on this process.
    pub fn is_right(&self) -> bool {
        let right = |(at, &element): (usize, &f64)| element == self.expected(at);
        self.result().is_none_or(|result| result.len() == self.length && result.iter().enumerate().all(right))
    }

    fn is_broadcast(&self) -> bool {
        matches!(self.kind, Kind::Pull | Kind::Staged | Kind::StagedByString)
    }

    /// What a contribution holds at a place in this round.
    fn contribution(&self, rank: usize, at: usize) -> f64 {
        (self.turn % 50 + 1) as f64 + rank as f64 + (at % 251) as f64
    }

    fn expected(&self, at: usize) -> f64 {
        match self.is_broadcast() {
            true => self.contribution(0, at),
            false => self.contribution(0, at) + self.contribution(1, at),
        }
    }

    /// The result that this process has, or sees, if it has one.
    fn result(&self) -> Option<&[f64]> {
        let has = match self.kind {
            Kind::Pull | Kind::Staged | Kind::StagedByString => self.rank == 1,
            Kind::PullSum | Kind::StagedSum | Kind::StagedSumByString => self.rank == 0,
            _ => true,
        };
        let owner = if self.kind == Kind::HalvesView { 0 } else { self.rank };
        let at = if self.kind.is_staged() {
            self.own[1][self.starts[1]..].as_ptr()
        } else {
            self.region(RECV + owner).cast_const()
        };
        // SAFETY: `length` elements lie there, which nobody writes before this process has come to its next round.
        has.then(|| unsafe { std::slice::from_raw_parts(at, self.length) })
    }

    fn send(&mut self, rank: usize) -> *mut f64 {
        if self.kind.is_staged() { self.own[0][self.starts[0]..].as_mut_ptr() } else { self.region(SEND + rank) }
    }

    fn receive(&mut self, rank: usize) -> *mut f64 {
        if self.kind.is_staged() { self.own[1][self.starts[1]..].as_mut_ptr() } else { self.region(RECV + rank) }
    }

    fn moves(&mut self) {
        let (rank, length) = (self.rank, self.length);
        let half = rank * length / 2..(rank + 1) * length / 2;
        let (sends, receives) = ([SEND, SEND + 1].map(|r| self.region(r)), [RECV, RECV + 1].map(|r| self.region(r)));
        match self.kind {
            // SAFETY: M1.
            Kind::Pull if rank == 1 => unsafe { copy(sends[0], receives[1], length) },
            // SAFETY: M1.
            Kind::PullSum if rank == 0 => unsafe { sum(sends[0], sends[1], [receives[0]], length) },
            Kind::Halves | Kind::HalvesView => {
                let at = |buffer: *mut f64| buffer.wrapping_add(half.start);
                let ([a, b], [one, other]) = (sends.map(at), receives.map(at));
                match self.kind {
                    // SAFETY: M1.
                    Kind::Halves => unsafe { sum(a, b, [one, other], half.len()) },
                    // SAFETY: M1.
                    _ => unsafe { sum(a, b, [one], half.len()) },
                }
            }
            Kind::Staged | Kind::StagedByString => self.staged_from(0),
            Kind::StagedSum | Kind::StagedSumByString => self.staged_from(1),
            Kind::StagedHalves => self.staged_halves(),
            _ => {}
        }
    }

    /// Elements of a piece of so many: as many as let both processes work at once, without too many counts.
    fn piece(length: usize) -> usize {
        (length / 4).min(LONGEST_PIECE)
    }

    /// One copies its contribution to pieces; the other one copies them to its result, or adds its own contribution to
    /// them there.
    fn staged_from(&mut self, giver: usize) {
        let (send, receive, staged) = (self.send(self.rank), self.receive(self.rank), self.region(STAGED + giver));
        let all = || pieces(0..self.length, Self::piece(self.length));
        let copy_piece = if self.kind.is_by_string() { copy_string } else { copy };
        for (number, (at, length)) in all() {
            let [send, receive, staged] = [send, receive, staged].map(|buffer| buffer.wrapping_add(at));
            if self.rank == giver {
                // SAFETY: M1.
                unsafe { copy_piece(send, staged, length) };
                self.publish(0, number);
                continue;
            }
            self.wait(giver, 0, number);
            match self.is_broadcast() {
                // SAFETY: M1.
                true => unsafe { copy_piece(staged, receive, length) },
                // SAFETY: M1.
                false => unsafe { sum(send, staged, [receive], length) },
            }
        }
        self.published += all().count() as u64;
    }

    /// Each copies the other's half of its contribution to pieces, adds the other's pieces to its own half, in its
    /// result and in pieces again, and copies the other half of the result from there.
    fn staged_halves(&mut self) {
        let (rank, other) = (self.rank, 1 - self.rank);
        let (send, receive) = (self.send(rank), self.receive(rank));
        let [mine, theirs] = [rank, other].map(|rank| self.region(STAGED + rank));
        let of =
            |rank: usize| pieces(rank * self.length / 2..(rank + 1) * self.length / 2, Self::piece(self.length / 2));
        for (number, (at, length)) in of(other) {
            // SAFETY: M1.
            unsafe { copy(send.wrapping_add(at), mine.wrapping_add(at), length) };
            self.publish(0, number);
        }
        for (number, (at, length)) in of(rank) {
            self.wait(other, 0, number);
            let at = |buffer: *mut f64| buffer.wrapping_add(at);
            // SAFETY: M1. Of this half the process has put nothing there before.
            unsafe { sum(at(send), at(theirs), [at(receive), at(mine)], length) };
            self.publish(1, number);
        }
        for (number, (at, length)) in of(other) {
            self.wait(other, 1, number);
            // SAFETY: M1.
            unsafe { copy(theirs.wrapping_add(at), receive.wrapping_add(at), length) };
        }
        self.published += of(rank).count() as u64;
    }

    /// The line in which a process counts what it has published: its copies (0), or its sums (1).
    fn counts(&self, rank: usize, which: usize) -> &Line {
        &self.mapping.lines()[PIECES + 2 * rank + which]
    }

    fn publish(&self, which: usize, number: u64) {
        self.counts(self.rank, which).words[0].store(self.published + number + 1, Release);
    }

    fn wait(&self, rank: usize, which: usize, number: u64) {
        while self.counts(rank, which).words[0].load(Acquire) <= self.published + number {
            std::hint::spin_loop();
        }
    }
}

/// The pieces of a range, each with its number, its beginning and its length.
fn pieces(range: std::ops::Range<usize>, piece: usize) -> impl Iterator<Item = (u64, (usize, usize))> {
    let end = range.end;
    (0..).zip(range.step_by(piece).map(move |at| (at, piece.min(end - at))))
}

/// # Safety
/// `length` elements may be read at `from`, written at `to`, and these are others.
unsafe fn copy(from: *const f64, to: *mut f64, length: usize) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: by contract; the processor has AVX2.
        return unsafe { copy_wide(from, to, length) };
    }
    // SAFETY: by contract.
    unsafe { ptr::copy_nonoverlapping(from, to, length) }
}

/// By the instruction that x86-64 has for it.
///
/// # Safety
/// As [`copy`].
unsafe fn copy_string(from: *const f64, to: *mut f64, length: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: by contract; the calling convention has the direction flag cleared, so that it copies upwards.
    unsafe {
        std::arch::asm!(
            "rep movsb",
            inout("rcx") length * size_of::<f64>() => _,
            inout("rsi") from => _,
            inout("rdi") to => _,
            options(nostack, preserves_flags)
        );
    }
    #[cfg(not(target_arch = "x86_64"))]
    // SAFETY: by contract.
    unsafe {
        copy(from, to, length);
    }
}

/// The C library's copy takes a way of its own from some size on, and not the same in all states of a processor.
///
/// # Safety
/// As [`copy`], on a processor that has AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn copy_wide(from: *const f64, to: *mut f64, length: usize) {
    use std::arch::x86_64::{_mm256_loadu_pd, _mm256_storeu_pd};
    for at in (0..length).step_by(4) {
        // SAFETY: by contract, and lengths are multiples of a line's eight.
        let four = unsafe { _mm256_loadu_pd(from.wrapping_add(at)) };
        // SAFETY: the same.
        unsafe { _mm256_storeu_pd(to.wrapping_add(at), four) };
    }
}

/// Stores `a + b` in all of `to`.
///
/// # Safety
/// `length` elements may be read at `a` and `b`, written at each of `to`, and these are others.
unsafe fn sum<const N: usize>(a: *const f64, b: *const f64, to: [*mut f64; N], length: usize) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: by contract; the processor has AVX2.
        return unsafe { sum_wide(a, b, to, length) };
    }
    for at in 0..length {
        // SAFETY: by contract.
        let [a, b] = [a, b].map(|from| unsafe { from.wrapping_add(at).read() });
        // SAFETY: by contract.
        to.iter().for_each(|to| unsafe { to.wrapping_add(at).write(a + b) });
    }
}

/// # Safety
/// As [`sum`], on a processor that has AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn sum_wide<const N: usize>(a: *const f64, b: *const f64, to: [*mut f64; N], length: usize) {
    use std::arch::x86_64::{_mm256_add_pd, _mm256_loadu_pd, _mm256_storeu_pd};
    for at in (0..length).step_by(4) {
        // SAFETY: by contract, and lengths are multiples of a line's eight.
        let [a, b] = [a, b].map(|from| unsafe { _mm256_loadu_pd(from.wrapping_add(at)) });
        let sum = _mm256_add_pd(a, b);
        // SAFETY: the same.
        to.iter().for_each(|to| unsafe { _mm256_storeu_pd(to.wrapping_add(at), sum) });
    }
}

#[cfg(test)]
mod tests;
