//! Stacks of a model's ranks, which are kept for the next execution.
//!
//! Each execution of a model maps a stack for every rank, protects its lowest page, and unmaps it at the end; the checker
//! has no other way. A model is some ten thousand executions of some ten microseconds, half of which went into that: the
//! models of `loom_ring` took 52 s with it, and 21 without (AMD EPYC, Zen 3). So the three calls are this program's own
//! here, as far as they speak of stacks: what was unmapped is handed out again, with the guard that it has, and all else
//! goes to the system. What lies in a stack is not cleared in between; the checker writes what it reads there.

use std::ffi::{c_int, c_long, c_void};
use std::sync::{Mutex, PoisonError};

/// Stacks that are known at once: tests that run beside one another have up to five each.
const MOST: usize = 64;

/// A mapping that was asked for as a stack.
#[derive(Clone, Copy)]
struct Stack {
    start: usize,
    len: usize,
    /// Bytes at its start that nobody may touch.
    guard: usize,
    /// Whether nobody has it.
    free: bool,
}

/// Those that are known; they stay mapped until the program ends.
static STACKS: Mutex<[Option<Stack>; MOST]> = Mutex::new([None; MOST]);

/// Does something with the first stack of which `is` holds.
fn with<T>(is: impl Fn(&Stack) -> bool, work: impl FnOnce(&mut Stack) -> T) -> Option<T> {
    let mut stacks = STACKS.lock().unwrap_or_else(PoisonError::into_inner);
    stacks.iter_mut().flatten().find(|stack| is(stack)).map(work)
}

/// Notes a stack that was just mapped, if there is room; otherwise it is unmapped like all else.
fn note(start: usize, len: usize) {
    let mut stacks = STACKS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(room) = stacks.iter_mut().find(|stack| stack.is_none()) {
        *room = Some(Stack { start, len, guard: 0, free: false });
    }
}

/// As mmap(2): a stack of this length that nobody has, if that is what is asked for.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
unsafe extern "C" fn mmap(
    at: *mut c_void,
    len: usize,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: c_long,
) -> *mut c_void {
    const STACK: c_int = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK;
    let is_stack = at.is_null() && flags == STACK && protection == libc::PROT_READ | libc::PROT_WRITE;
    if is_stack {
        let kept = with(
            |stack| stack.free && stack.len == len,
            |stack| {
                stack.free = false;
                stack.start
            },
        );
        if let Some(start) = kept {
            return start as *mut c_void;
        }
    }
    // SAFETY: by contract.
    let mapped = unsafe { libc::syscall(libc::SYS_mmap, at, len, protection, flags, file, offset) };
    if is_stack && mapped != -1 {
        note(mapped as usize, len);
    }
    mapped as *mut c_void
}

/// As mprotect(2): nothing, if it is the guard that a stack has already.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
unsafe extern "C" fn mprotect(at: *mut c_void, len: usize, protection: c_int) -> c_int {
    let guards = protection == libc::PROT_NONE;
    if guards && with(|stack| stack.start == at as usize && stack.guard == len, |_| ()).is_some() {
        return 0;
    }
    // SAFETY: by contract.
    let done = unsafe { libc::syscall(libc::SYS_mprotect, at, len, protection) } as c_int;
    if guards && done == 0 {
        with(|stack| stack.start == at as usize, |stack| stack.guard = len);
    }
    done
}

/// As munmap(2): a stack is kept.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
unsafe extern "C" fn munmap(at: *mut c_void, len: usize) -> c_int {
    let kept = with(|stack| stack.start == at as usize && stack.len == len, |stack| stack.free = true);
    match kept {
        Some(()) => 0,
        // SAFETY: by contract.
        None => unsafe { libc::syscall(libc::SYS_munmap, at, len) as c_int },
    }
}
