//! Datatypes: what a handle stands for.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::sync::{Mutex, OnceLock, PoisonError};

use mpi::ffi;

use crate::abi::{self, Word, refusing};
use crate::operators::{Kernel, Kind, Op};
use crate::table::Table;

/// A datatype, as far as calls must know it.
#[derive(Clone, Copy)]
pub struct Type {
    /// What a predefined one is.
    pub kind: Option<Kind>,
    /// Bytes of data in an element: those of its signature, which agree on all ranks.
    pub size: usize,
    /// Bytes from one element to the next.
    pub extent: isize,
    /// Bytes from an element's beginning to its first data, where it is regular.
    pub start: usize,
    /// Bytes from an element's beginning to the end of its data, where it is regular.
    pub reach: usize,
    /// Elements that follow one another are known to be their data, in order, without gaps.
    pub is_plain: bool,
    /// It begins at 0, ends within its extent, and so may stand in memory of its own.
    pub is_regular: bool,
}

impl Type {
    /// A byte, whatever it means.
    pub const BYTE: Self =
        Self { kind: None, size: 1, extent: 1, start: 0, reach: 1, is_plain: true, is_regular: true };

    /// Whether elements have no gaps.
    pub fn fills_extent(&self) -> bool {
        self.size as isize == self.extent
    }
}

/// A predefined type, with what reduces it.
pub struct Named {
    pub of: Type,
    reductions: [Reduction; 12],
}

/// How an operator is applied to a type.
pub enum Reduction {
    /// The standard does not have it: the library may refuse it, or know better.
    Refused,
    /// By our own kernel.
    Kernel(Kernel),
    /// By the library's own function.
    Local,
}

static NAMED: OnceLock<Table<Named>> = OnceLock::new();
static OPERATORS: OnceLock<Table<Op>> = OnceLock::new();
static KEY: OnceLock<c_int> = OnceLock::new();
/// A duplicate of MPI_COMM_SELF on which refusals are returned.
static QUIET: OnceLock<Word> = OnceLock::new();

/// Learns the predefined types and operators. MPI is initialised.
pub fn learn() -> Option<()> {
    let named = abi::types().iter().filter(|constant| !abi::is_no_datatype(constant.handle)).filter_map(|constant| {
        let kind = *Kind::ALL.get(constant.meaning as usize)?;
        // One that the library has only the name of has no size.
        let of = Type { kind: Some(kind), ..measured(constant.handle).filter(|of| of.size > 0)? };
        let is_plain = of.size as isize == of.extent;
        // The kernels of pairs with gaps work on extents.
        let width = of.extent as usize;
        let reductions = Op::ALL.map(|op| match Kernel::find(kind, width, op) {
            _ if !kind.allows(op) => Reduction::Refused,
            Some(kernel) => Reduction::Kernel(kernel),
            None => Reduction::Local,
        });
        Some((abi::handle(constant.handle), Named { of: Type { is_plain, ..of }, reductions }))
    });
    NAMED.get_or_init(|| Table::new(named.collect()));
    let operators = abi::operators()
        .iter()
        .filter(|constant| !abi::is_no_operator(constant.handle))
        .filter_map(|constant| Some((abi::handle(constant.handle), *Op::ALL.get(constant.meaning as usize)?)));
    OPERATORS.get_or_init(|| Table::new(operators.collect()));
    let key = abi::type_keyval(forget)?;
    KEY.get_or_init(|| key);
    let mut quiet = abi::comm(abi::comm_self());
    // SAFETY: MPI is initialised.
    let code = unsafe { ffi::PMPI_Comm_dup(abi::comm(abi::comm_self()), &mut quiet) };
    if code != abi::SUCCESS {
        return None;
    }
    // SAFETY: a constant that is filled before main.
    let handler = unsafe { ffi::RSMPI_ERRORS_RETURN };
    // SAFETY: the communicator was just made.
    let code = unsafe { ffi::PMPI_Comm_set_errhandler(quiet, handler) };
    QUIET.get_or_init(|| abi::word_of_comm(quiet));
    (code == abi::SUCCESS).then_some(())
}

/// Gives back what was learned, before MPI ends.
pub fn forget_all() {
    if let Some(&quiet) = QUIET.get() {
        let mut quiet = abi::comm(quiet);
        // SAFETY: made by `learn`, freed once.
        let _ = unsafe { ffi::PMPI_Comm_free(&mut quiet) };
    }
}

/// The communicator of this process alone, on which refusals are returned.
pub fn quiet() -> ffi::MPI_Comm {
    abi::comm(QUIET.get().copied().unwrap_or_else(abi::comm_self))
}

/// Whether the library reduces by this operator of a user's: it does unless that is none. As with
/// [types](is_committed) that is asked where a refusal calls no error handler.
pub fn is_operator(op: Word) -> bool {
    // Collectives of one communicator are called one at a time.
    static ASKING: Mutex<()> = Mutex::new(());
    let _asking = ASKING.lock().unwrap_or_else(PoisonError::into_inner);
    let (mine, mut result) = (0_u8, 0_u8);
    let (send, recv) = ((&raw const mine).cast::<c_void>(), (&raw mut result).cast::<c_void>());
    // SAFETY: there are no elements.
    let code = unsafe { ffi::PMPI_Allreduce(send, recv, 0, abi::datatype(abi::packed()), abi::op(op), quiet()) };
    code == abi::SUCCESS
}

/// The predefined type of a handle. It has bytes.
#[inline(always)]
pub fn named(datatype: Word) -> Option<&'static Named> {
    NAMED.get()?.find(abi::handle(datatype))
}

/// The bytes of `count` elements of a predefined type; nothing for other types, and where they are too many to be
/// counted.
#[inline(always)]
pub fn bytes(count: usize, datatype: Word) -> Option<usize> {
    count.checked_mul(named(datatype)?.of.size)
}

/// The predefined operator of a handle.
#[inline(always)]
pub fn operator(op: Word) -> Option<Op> {
    OPERATORS.get()?.find(abi::handle(op)).copied()
}

impl Named {
    /// How the operator is applied.
    #[inline(always)]
    pub fn reduction(&self, op: Op) -> &Reduction {
        &self.reductions[op as usize]
    }
}

/// The type of any valid handle, for a call with `count` elements of it; nothing if the library refuses it.
#[inline]
pub fn find(datatype: Word, count: usize) -> Option<Type> {
    match named(datatype) {
        Some(named) => Some(named.of),
        None => derived(datatype, count),
    }
}

/// Bytes of a call up to which the data of a derived type are packed without a look at their order, until the type is
/// known to be used often: programs that make a type for each call (BLACS is one) would pay for the look in each.
const LITTLE: usize = 16 << 10;

/// Calls from which on a type is used often.
const OFTEN: u32 = 16;

/// Whether this thread has seen the handle often, as far as it remembers. Another type may have had it: that costs
/// time, no more.
fn is_used_often(datatype: Word) -> bool {
    const REMEMBERED: usize = 8;
    thread_local! {
        static SEEN: [Cell<(Word, u32)>; REMEMBERED] = const { [const { Cell::new((0, 0)) }; REMEMBERED] };
    }
    let handle = abi::handle(datatype);
    let place = (handle.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 61) % REMEMBERED;
    SEEN.with(|seen| {
        let (known, times) = seen[place].get();
        let times = if known == handle { times + 1 } else { 1 };
        seen[place].set((handle, times % OFTEN));
        times == OFTEN
    })
}

/// Whether the library packs data of this type: it does unless that was not committed, or is none. Where handles are
/// numbers it is asked before anything else is asked about the type: what has no communicator would call the error
/// handler of the world, and a program that handles errors on the call's own would end.
fn is_committed(datatype: ffi::MPI_Datatype) -> bool {
    let (mut byte, mut at) = (0_u8, 0);
    let place = (&raw mut byte).cast::<c_void>();
    // SAFETY: no element, and so no byte, is packed.
    let code = unsafe { ffi::PMPI_Pack(place, 0, datatype, place, 1, &mut at, quiet()) };
    code == abi::SUCCESS
}

/// A derived type. If it is used often, or for more than a little, it is looked at once: what was found stays with it
/// as an attribute.
fn derived(datatype: Word, count: usize) -> Option<Type> {
    let key = *KEY.get()?;
    let handle = abi::datatype(datatype);
    if !is_committed(handle) {
        return None;
    }
    let (mut found, mut flag) = (std::ptr::null_mut::<Type>(), 0);
    // SAFETY: the caller's datatype; the library refuses one that is none.
    let code = unsafe { refusing::PMPI_Type_get_attr(handle, key, (&raw mut found).cast(), &mut flag) };
    if code != abi::SUCCESS {
        return None;
    }
    if flag != 0 {
        // SAFETY: a box that was left there, and lives as long as the datatype.
        return Some(unsafe { *found });
    }
    let of = measured(datatype)?;
    if count.saturating_mul(of.size) <= LITTLE && !is_used_often(datatype) {
        return Some(of);
    }
    let of = Type { is_plain: of.size as isize == of.extent && of.is_regular && is_in_order(handle, of.size)?, ..of };
    keep(handle, key, of);
    Some(of)
}

/// Leaves what was found with the type, unless another thread has: its box would go while others look at it.
fn keep(handle: ffi::MPI_Datatype, key: c_int, of: Type) {
    static KEEPING: Mutex<()> = Mutex::new(());
    let _keeping = KEEPING.lock().unwrap_or_else(PoisonError::into_inner);
    let (mut found, mut flag) = (std::ptr::null_mut::<Type>(), 0);
    // SAFETY: the datatype is valid.
    let code = unsafe { ffi::PMPI_Type_get_attr(handle, key, (&raw mut found).cast(), &mut flag) };
    if code != abi::SUCCESS || flag != 0 {
        return;
    }
    let kept = Box::into_raw(Box::new(of));
    // SAFETY: the same; `forget` takes the box back.
    let code = unsafe { ffi::PMPI_Type_set_attr(handle, key, kept.cast()) };
    if code != abi::SUCCESS {
        // SAFETY: nobody else has it.
        drop(unsafe { Box::from_raw(kept) });
    }
}

/// # Safety
/// MPI calls it with the box that was left with a datatype.
unsafe extern "C" fn forget(_: ffi::MPI_Datatype, _: c_int, kept: *mut c_void, _: *mut c_void) -> c_int {
    // SAFETY: by contract, once.
    drop(unsafe { Box::from_raw(kept.cast::<Type>()) });
    abi::SUCCESS
}

/// The sizes that the library tells.
fn measured(datatype: Word) -> Option<Type> {
    let handle = abi::datatype(datatype);
    let (mut size, [mut low, mut extent, mut true_low, mut true_extent]) = (0, [0; 4]);
    // SAFETY: the caller's datatype; the library refuses one that is none.
    let code = unsafe { refusing::PMPI_Type_size_x(handle, &mut size) };
    if code != abi::SUCCESS || size < 0 {
        return None;
    }
    // SAFETY: the same.
    let code = unsafe { ffi::PMPI_Type_get_extent_x(handle, &mut low, &mut extent) };
    if code != abi::SUCCESS {
        return None;
    }
    // SAFETY: the same.
    let code = unsafe { ffi::PMPI_Type_get_true_extent_x(handle, &mut true_low, &mut true_extent) };
    if code != abi::SUCCESS {
        return None;
    }
    let is_regular = low == 0 && extent > 0 && true_low >= 0 && true_low + true_extent <= extent;
    let (size, extent) = (usize::try_from(size).ok()?, isize::try_from(extent).ok()?);
    let start = usize::try_from(true_low).unwrap_or(0);
    let reach = usize::try_from(true_low + true_extent).unwrap_or(0);
    Some(Type { kind: None, size, extent, start, reach, is_plain: false, is_regular })
}

/// The longest derived type that is looked at for the order of its data; longer ones are packed.
const LONGEST: usize = 1 << 20;

/// Whether an element without gaps has its data in the order in which they lie: packed, it is what it was. Nothing if
/// the library refuses the type (one that was not committed).
fn is_in_order(datatype: ffi::MPI_Datatype, size: usize) -> Option<bool> {
    let mut is_whole = size <= LONGEST;
    // The digits of a place, to base 251: three patterns tell any two apart.
    for pattern in [|i: usize| (i % 251) as u8, |i: usize| (i / 251 % 251) as u8, |i: usize| (i / 63_001) as u8] {
        let size = if is_whole { size } else { 0 };
        let data: Vec<u8> = (0..size).map(pattern).collect();
        let mut packed = vec![0_u8; size];
        let mut at = 0;
        let count = c_int::from(is_whole);
        // SAFETY: an element lies within `data`, and has `size` bytes of data.
        let code = unsafe {
            ffi::PMPI_Pack(
                data.as_ptr().cast(),
                count,
                datatype,
                packed.as_mut_ptr().cast(),
                size as c_int,
                &mut at,
                quiet(),
            )
        };
        if code != abi::SUCCESS {
            return None;
        }
        is_whole &= at as usize == size && packed == data;
    }
    Some(is_whole)
}
