//! Arrays of counts of eight bytes, for functions that take C's integers.

use std::ffi::{CStr, c_int, c_void};
use std::mem::transmute;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::library::Library;
use crate::names::Word;

/// A question that a communicator answers with a number.
struct Question {
    name: &'static CStr,
    function: AtomicPtr<c_void>,
}

static SIZE: Question = Question { name: c"PMPI_Comm_size", function: AtomicPtr::new(null_mut()) };
static RANK: Question = Question { name: c"PMPI_Comm_rank", function: AtomicPtr::new(null_mut()) };
static IS_INTER: Question = Question { name: c"PMPI_Comm_test_inter", function: AtomicPtr::new(null_mut()) };
static REMOTE_SIZE: Question = Question { name: c"PMPI_Comm_remote_size", function: AtomicPtr::new(null_mut()) };

/// Finds the functions that answer.
pub(crate) fn learn(library: &Library) {
    for question in [&SIZE, &RANK, &IS_INTER, &REMOTE_SIZE] {
        question.function.store(library.function(question.name), Ordering::Release);
    }
}

impl Question {
    /// The answer; 0, if the library refuses the communicator.
    fn ask(&self, comm: Word) -> c_int {
        let function = self.function.load(Ordering::Acquire);
        if function.is_null() {
            return 0;
        }
        // SAFETY: the library's function of this name takes a handle and a place for an integer.
        let function = unsafe { transmute::<*mut c_void, extern "C-unwind" fn(Word, *mut c_int) -> c_int>(function) };
        let mut answer = 0;
        if function(comm, &mut answer) == 0 { answer } else { 0 }
    }
}

/// The ranks of the group of a communicator.
pub(crate) fn members(comm: Word) -> usize {
    SIZE.ask(comm) as usize
}

/// The ranks with which those of a communicator exchange blocks: the other group's, where there are two.
pub(crate) fn others(comm: Word) -> usize {
    let question = if IS_INTER.ask(comm) != 0 { &REMOTE_SIZE } else { &SIZE };
    question.ask(comm) as usize
}

/// The same; none, where blocks are said to lie in place: then nobody looks at the array.
pub(crate) fn others_unless_in_place(comm: Word, send: Word) -> usize {
    // MPI_IN_PLACE of Open MPI and of MPICH.
    if send == 1 || send == Word::MAX { 0 } else { others(comm) }
}

/// The same on the root of a call; elsewhere none.
pub(crate) fn others_at(comm: Word, root: Word) -> usize {
    let root = root as c_int;
    // Between two groups the root says that it is one: MPI_ROOT is -4 in Open MPI, -3 in MPICH, MPI_PROC_NULL greater
    // in both.
    let is_root = if IS_INTER.ask(comm) != 0 { root < -2 } else { root == RANK.ask(comm) };
    if is_root { others(comm) } else { 0 }
}

/// An array as the library takes it.
pub(crate) enum Numbers {
    /// The caller's pointer, to which nobody looks.
    Untouched(Word),
    Ints(Vec<c_int>),
}

impl Numbers {
    /// The first `count` numbers of eight bytes; nothing, if one of them does not fit.
    pub fn narrow(array: Word, count: usize) -> Option<Self> {
        if array == 0 || count == 0 {
            return Some(Self::Untouched(array));
        }
        // SAFETY: by MPI's contract there is a number for each of these ranks.
        let read = |place| unsafe { (array as *const i64).wrapping_add(place).read_unaligned() };
        Some(Self::Ints((0..count).map(|place| c_int::try_from(read(place)).ok()).collect::<Option<_>>()?))
    }

    /// Where the library finds it.
    pub fn place(&self) -> Word {
        match self {
            Self::Untouched(array) => *array,
            Self::Ints(numbers) => numbers.as_ptr() as Word,
        }
    }
}
