//! What an ABI of MPI is made of: handles and constants. Elsewhere a handle is a machine word.

pub mod next;
pub mod refusing;

use std::ffi::{c_int, c_void};

use mpi::ffi;

/// A handle, or an argument that is one: of its bits those count that the ABI's type has.
pub type Word = usize;

/// A constant of MPI's header, and what it means to us: a place in an enumeration.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Constant {
    pub handle: Word,
    pub meaning: c_int,
}

#[allow(non_upper_case_globals)]
unsafe extern "C" {
    fn phalanx_mpi_types(count: *mut usize) -> *const Constant;
    fn phalanx_mpi_operators(count: *mut usize) -> *const Constant;
    safe static phalanx_mpi_in_place: Word;
    safe static phalanx_mpi_comm_world: Word;
    safe static phalanx_mpi_comm_self: Word;
    safe static phalanx_mpi_comm_null: Word;
    safe static phalanx_mpi_datatype_null: Word;
    safe static phalanx_mpi_packed: Word;
    safe static phalanx_mpi_op_null: Word;
    safe static phalanx_mpi_replace: Word;
    safe static phalanx_mpi_no_op: Word;
    fn phalanx_mpi_comm_keyval(forget: ForgetComm, key: *mut c_int) -> c_int;
    fn phalanx_mpi_type_keyval(forget: ForgetType, key: *mut c_int) -> c_int;
    #[cfg(open_mpi)]
    safe fn phalanx_mpi_info(number: c_int) -> Word;
    fn phalanx_mpi_alignment(info: Word) -> std::ffi::c_long;
}

/// What MPI calls when a communicator that has an attribute is freed.
pub type ForgetComm = unsafe extern "C" fn(ffi::MPI_Comm, c_int, *mut c_void, *mut c_void) -> c_int;
/// The same of a datatype.
pub type ForgetType = unsafe extern "C" fn(ffi::MPI_Datatype, c_int, *mut c_void, *mut c_void) -> c_int;

/// MPI_SUCCESS.
pub const SUCCESS: c_int = ffi::MPI_SUCCESS as c_int;
/// MPI_ERR_OTHER.
pub const ERR_OTHER: c_int = ffi::MPI_ERR_OTHER as c_int;

/// The predefined datatypes; the same one may be there under several names.
pub fn types() -> &'static [Constant] {
    let mut count = 0;
    // SAFETY: the function writes the count.
    let first = unsafe { phalanx_mpi_types(&mut count) };
    // SAFETY: a static array of so many.
    unsafe { std::slice::from_raw_parts(first, count) }
}

/// The predefined operators.
pub fn operators() -> &'static [Constant] {
    let mut count = 0;
    // SAFETY: the function writes the count.
    let first = unsafe { phalanx_mpi_operators(&mut count) };
    // SAFETY: a static array of so many.
    unsafe { std::slice::from_raw_parts(first, count) }
}

/// A handle as it is compared: without the bits that its type does not have.
#[inline(always)]
pub fn handle(word: Word) -> Word {
    if cfg!(handles_are_pointers) { word } else { word & 0xffff_ffff }
}

/// A C int that came as a word.
#[inline(always)]
pub fn int(word: Word) -> c_int {
    word as c_int
}

/// MPI_IN_PLACE.
#[inline(always)]
pub fn is_in_place(buffer: Word) -> bool {
    buffer == phalanx_mpi_in_place
}

/// MPI_IN_PLACE, as an argument.
#[cfg(open_mpi)]
pub fn in_place() -> Word {
    phalanx_mpi_in_place
}

/// MPI_COMM_WORLD.
#[inline(always)]
pub fn world() -> Word {
    phalanx_mpi_comm_world
}

/// MPI_COMM_SELF.
pub fn comm_self() -> Word {
    phalanx_mpi_comm_self
}

/// MPI_COMM_NULL, or the null pointer that a Fortran handle of nothing becomes.
#[inline(always)]
pub fn is_no_comm(comm: Word) -> bool {
    comm == phalanx_mpi_comm_null || comm == 0
}

/// MPI_DATATYPE_NULL, or nothing.
#[inline(always)]
pub fn is_no_datatype(datatype: Word) -> bool {
    datatype == phalanx_mpi_datatype_null || datatype == 0
}

/// MPI_PACKED: bytes that match any type.
pub fn packed() -> Word {
    phalanx_mpi_packed
}

/// An operator that reductions refuse: MPI_OP_NULL, nothing, or one for one-sided communication.
#[inline(always)]
pub fn is_no_operator(op: Word) -> bool {
    op == phalanx_mpi_op_null || op == 0 || op == phalanx_mpi_replace || op == phalanx_mpi_no_op
}

/// A keyval for communicators, whose attributes duplicates do not inherit.
pub fn comm_keyval(forget: ForgetComm) -> Option<c_int> {
    let mut key = 0;
    // SAFETY: MPI is initialised: the caller has asked.
    let code = unsafe { phalanx_mpi_comm_keyval(forget, &mut key) };
    (code == SUCCESS).then_some(key)
}

/// The same for datatypes.
pub fn type_keyval(forget: ForgetType) -> Option<c_int> {
    let mut key = 0;
    // SAFETY: MPI is initialised: the caller has asked.
    let code = unsafe { phalanx_mpi_type_keyval(forget, &mut key) };
    (code == SUCCESS).then_some(key)
}

/// The info that an integer of Fortran's stands for.
#[cfg(open_mpi)]
pub fn info_of(number: c_int) -> Word {
    phalanx_mpi_info(number)
}

/// The least alignment that an info asks memory to have; 0, if it asks for none.
pub fn alignment(info: Word) -> usize {
    // SAFETY: MPI is initialised; the caller's info.
    usize::try_from(unsafe { phalanx_mpi_alignment(info) }).unwrap_or(0)
}

macro_rules! typed {
    ($($(#[$doc:meta])* $name:ident -> $type:ident, $back:ident;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub fn $name(word: Word) -> ffi::$type {
            #[cfg(handles_are_pointers)]
            return ffi::$type(word as *mut _);
            #[cfg(not(handles_are_pointers))]
            return ffi::$type(word as c_int);
        }

        /// The same as a word.
        #[cfg_attr(not(open_mpi), allow(dead_code, reason = "Fortran's handles are turned into C's for Open MPI alone"))]
        #[inline(always)]
        pub fn $back(handle: ffi::$type) -> Word {
            #[cfg(handles_are_pointers)]
            return handle.0 as Word;
            #[cfg(not(handles_are_pointers))]
            return handle.0 as u32 as Word;
        }
    )*};
}

typed! {
    /// A communicator.
    comm -> MPI_Comm, word_of_comm;
    /// A datatype.
    datatype -> MPI_Datatype, word_of_datatype;
    /// An operator.
    op -> MPI_Op, word_of_op;
}
