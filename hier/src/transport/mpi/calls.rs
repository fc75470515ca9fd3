//! The one door to MPI's C calls: every return code is looked at.

use std::ffi::{c_char, c_int, c_void};
use std::mem::MaybeUninit;

use mpi::ffi::{self, MPI_Comm, MPI_Message, MPI_Request, MPI_Status};

use super::super::Error;
use super::expected;
use super::recovery::Recovery;

/// A call that failed, and what MPI says of it.
#[derive(Debug)]
pub(super) struct Failure {
    pub call: &'static str,
    pub text: String,
}

impl Failure {
    /// As an error of a rank, in a call with a peer.
    pub fn of(self, rank: usize, peer: Option<usize>) -> Error {
        Error::Library { call: self.call, rank, peer, text: self.text }
    }
}

type Result<T> = std::result::Result<T, Failure>;

pub(super) fn checked(call: &'static str, code: c_int) -> Result<()> {
    if code == ffi::MPI_SUCCESS as c_int {
        return Ok(());
    }
    let mut text = [0_u8; ffi::MPI_MAX_ERROR_STRING as usize];
    let mut length = 0;
    // SAFETY: the buffer has the length that MPI asks for.
    let known = unsafe { ffi::PMPI_Error_string(code, text.as_mut_ptr().cast::<c_char>(), &mut length) };
    let text = if known == ffi::MPI_SUCCESS as c_int {
        as_text(&text, length)
    } else {
        format!("error {code}, of which MPI has no text")
    };
    Err(Failure { call, text })
}

/// A text that MPI wrote into a buffer.
fn as_text(buffer: &[u8], length: c_int) -> String {
    let text = &buffer[..buffer.len().min(length.max(0) as usize)];
    let text = text.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).trim().to_owned()
}

/// Bytes as MPI sends them.
pub(super) fn byte() -> ffi::MPI_Datatype {
    // SAFETY: a constant that is filled before main.
    unsafe { ffi::RSMPI_UINT8_T }
}

/// MPI's world.
pub(super) fn world() -> MPI_Comm {
    // SAFETY: a constant that is filled before main.
    unsafe { ffi::RSMPI_COMM_WORLD }
}

/// MPI's numbers for its thread levels, from MPI_THREAD_SINGLE on.
pub(super) fn thread_levels() -> [c_int; 4] {
    [ffi::MPI_THREAD_SINGLE, ffi::MPI_THREAD_FUNNELED, ffi::MPI_THREAD_SERIALIZED, ffi::MPI_THREAD_MULTIPLE]
        .map(|level| level as c_int)
}

pub(super) fn is_initialised() -> bool {
    let mut flag = 0;
    // SAFETY: may be called at any time.
    let code = unsafe { ffi::PMPI_Initialized(&mut flag) };
    code == ffi::MPI_SUCCESS as c_int && flag != 0
}

pub(super) fn is_finalised() -> bool {
    let mut flag = 0;
    // SAFETY: may be called at any time.
    let code = unsafe { ffi::PMPI_Finalized(&mut flag) };
    code == ffi::MPI_SUCCESS as c_int && flag != 0
}

pub(super) fn thread_level() -> Result<c_int> {
    let mut level = 0;
    // SAFETY: MPI is running: the callers have asked.
    let code = unsafe { ffi::PMPI_Query_thread(&mut level) };
    checked("MPI_Query_thread", code).map(|()| level)
}

pub(super) fn is_main_thread() -> Result<bool> {
    let mut flag = 0;
    // SAFETY: MPI is running: the callers have asked.
    let code = unsafe { ffi::PMPI_Is_thread_main(&mut flag) };
    checked("MPI_Is_thread_main", code).map(|()| flag != 0)
}

pub(super) fn library_version() -> Result<String> {
    let mut text = vec![0_u8; ffi::MPI_MAX_LIBRARY_VERSION_STRING as usize];
    let mut length = 0;
    // SAFETY: the buffer has the length that MPI asks for; the call may be made at any time.
    let code = unsafe { ffi::PMPI_Get_library_version(text.as_mut_ptr().cast::<c_char>(), &mut length) };
    checked("MPI_Get_library_version", code).map(|()| as_text(&text, length))
}

pub(super) fn no_communicator() -> MPI_Comm {
    // SAFETY: a constant that is filled before main.
    unsafe { ffi::RSMPI_COMM_NULL }
}

pub(super) fn is_between_groups(comm: MPI_Comm) -> Result<bool> {
    let mut flag = 0;
    // SAFETY: the communicator is valid, by contract of the transport.
    let code = unsafe { ffi::PMPI_Comm_test_inter(comm, &mut flag) };
    checked("MPI_Comm_test_inter", code).map(|()| flag != 0)
}

pub(super) fn rank(comm: MPI_Comm) -> Result<usize> {
    let mut rank = 0;
    // SAFETY: the communicator is valid, by contract of the transport.
    let code = unsafe { ffi::PMPI_Comm_rank(comm, &mut rank) };
    checked("MPI_Comm_rank", code).map(|()| rank as usize)
}

pub(super) fn size(comm: MPI_Comm) -> Result<usize> {
    let mut size = 0;
    // SAFETY: the communicator is valid, by contract of the transport.
    let code = unsafe { ffi::PMPI_Comm_size(comm, &mut size) };
    checked("MPI_Comm_size", code).map(|()| size as usize)
}

pub(super) fn duplicate(comm: MPI_Comm) -> Result<MPI_Comm> {
    let mut new = no_communicator();
    if !super::start::library().starts_with("MPICH") {
        // SAFETY: the communicator is valid, by contract of the transport.
        let code = unsafe { ffi::PMPI_Comm_dup(comm, &mut new) };
        return checked("MPI_Comm_dup", code).map(|()| new);
    }
    // A rank that waits in MPICH keeps its core for milliseconds from the rank that it waits for.
    // SAFETY: a constant that is filled before main.
    let mut request = unsafe { ffi::RSMPI_REQUEST_NULL };
    // SAFETY: the same as above; `new` stays where it is until the request has ended.
    let code = unsafe { ffi::PMPI_Comm_idup(comm, &mut new, &mut request) };
    checked("MPI_Comm_idup", code)?;
    // SAFETY: the request is the one above, and `new` is still there.
    let code = unsafe { finish(&mut request) };
    checked("MPI_Test", code).map(|()| new)
}

/// Waits for a call of all ranks, and leaves the core to those who are not there. Returns MPI's code.
///
/// # Safety
/// The request is one of MPI's that has begun, and what its call reads and writes stays where it is meanwhile.
pub unsafe fn finish(request: &mut MPI_Request) -> c_int {
    loop {
        let mut flag = 0;
        // SAFETY: by contract; nobody wants its status.
        let code = unsafe { ffi::PMPI_Test(request, &mut flag, ffi::RSMPI_STATUS_IGNORE) };
        if flag != 0 || code != ffi::MPI_SUCCESS as c_int {
            return code;
        }
        std::thread::yield_now();
    }
}

/// A byte of each rank, by rank. Collective.
pub(super) fn gather_bytes(comm: MPI_Comm, own: u8, size: usize) -> Result<Vec<u8>> {
    let mut all = vec![0_u8; size];
    let (from, into) = (std::ptr::from_ref(&own).cast::<c_void>(), all.as_mut_ptr().cast::<c_void>());
    // SAFETY: the communicator is valid and has `size` ranks, for each of which there is a byte.
    let code = unsafe { ffi::PMPI_Allgather(from, 1, byte(), into, 1, byte(), comm) };
    checked("MPI_Allgather", code).map(|()| all)
}

/// The communicator of those ranks that share memory, ordered by `key`.
pub(super) fn split_by_memory(comm: MPI_Comm, key: c_int) -> Result<MPI_Comm> {
    let mut new = no_communicator();
    // SAFETY: a constant that is filled before main.
    let shared = unsafe { ffi::RSMPI_COMM_TYPE_SHARED };
    // SAFETY: a constant that is filled before main.
    let info = unsafe { ffi::RSMPI_INFO_NULL };
    // SAFETY: the communicator is the transport's own.
    let code = unsafe { ffi::PMPI_Comm_split_type(comm, shared, key, info, &mut new) };
    checked("MPI_Comm_split_type", code).map(|()| new)
}

/// The communicator of some ranks, called by these only.
pub(super) fn create_group(comm: MPI_Comm, members: &[c_int], tag: c_int) -> Result<MPI_Comm> {
    let all = group(comm)?;
    let mut some = Group::empty();
    // SAFETY: the group is valid; the list has so many ranks, which were checked.
    let code = unsafe { ffi::PMPI_Group_incl(all.0, members.len() as c_int, members.as_ptr(), &mut some.0) };
    checked("MPI_Group_incl", code)?;
    let mut new = no_communicator();
    // SAFETY: communicator and group are valid.
    let code = unsafe { ffi::PMPI_Comm_create_group(comm, some.0, tag, &mut new) };
    checked("MPI_Comm_create_group", code).map(|()| new)
}

/// The ranks, in `outer`, of those who are in `inner`.
pub(super) fn ranks_in(inner: MPI_Comm, outer: MPI_Comm) -> Result<Vec<c_int>> {
    translated(&group(inner)?, &group(outer)?)
}

/// The ranks, in the group `to`, of all members of the group `from`.
pub(super) fn translated(from: &Group, to: &Group) -> Result<Vec<c_int>> {
    let mut count = 0;
    // SAFETY: the group is valid.
    let code = unsafe { ffi::PMPI_Group_size(from.0, &mut count) };
    checked("MPI_Group_size", code)?;
    let ranks: Vec<c_int> = (0..count).collect();
    let mut translated = vec![0; ranks.len()];
    // SAFETY: both groups are valid, and both lists have `count` ranks.
    let code = unsafe { ffi::PMPI_Group_translate_ranks(from.0, count, ranks.as_ptr(), to.0, translated.as_mut_ptr()) };
    checked("MPI_Group_translate_ranks", code).map(|()| translated)
}

/// A group, given back when it is dropped.
pub(super) struct Group(pub ffi::MPI_Group);

impl Group {
    /// None, to be filled.
    pub fn empty() -> Self {
        // SAFETY: a constant that is filled before main.
        Self(unsafe { ffi::RSMPI_GROUP_NULL })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // SAFETY: a constant that is filled before main.
        if self.0 != unsafe { ffi::RSMPI_GROUP_NULL } {
            // SAFETY: the group is valid, and freed once. Nothing can be done about a refusal.
            let _ = unsafe { ffi::PMPI_Group_free(&mut self.0) };
        }
    }
}

pub(super) fn group(comm: MPI_Comm) -> Result<Group> {
    let mut group = Group::empty();
    // SAFETY: the communicator is valid.
    let code = unsafe { ffi::PMPI_Comm_group(comm, &mut group.0) };
    checked("MPI_Comm_group", code).map(|()| group)
}

/// Has errors of calls on this communicator returned.
pub(super) fn return_errors(comm: MPI_Comm) -> Result<()> {
    // SAFETY: a constant that is filled before main.
    let handler = unsafe { ffi::RSMPI_ERRORS_RETURN };
    // SAFETY: the communicator is the transport's own.
    let code = unsafe { ffi::PMPI_Comm_set_errhandler(comm, handler) };
    checked("MPI_Comm_set_errhandler", code)
}

pub(super) fn free(comm: &mut MPI_Comm) -> Result<()> {
    // SAFETY: the communicator is the transport's own, and freed once.
    let code = unsafe { ffi::PMPI_Comm_free(comm) };
    checked("MPI_Comm_free", code)
}

/// # Safety
/// `data` is valid for reads of `bytes` bytes until the request has ended.
pub(super) unsafe fn send(comm: MPI_Comm, to: c_int, tag: c_int, data: *const u8, bytes: c_int) -> Result<MPI_Request> {
    // SAFETY: a constant that is filled before main.
    let mut request = unsafe { ffi::RSMPI_REQUEST_NULL };
    // SAFETY: by contract; the communicator is the transport's own.
    let code = unsafe { ffi::PMPI_Isend(data.cast::<c_void>(), bytes, byte(), to, tag, comm, &mut request) };
    checked("MPI_Isend", code).map(|()| request)
}

/// A message that was taken: nobody else can receive it.
pub(super) struct Arrived {
    pub message: MPI_Message,
    pub from: usize,
    pub tag: u32,
    pub bytes: usize,
    /// Whether it has the mark of short messages.
    pub is_short: bool,
}

/// Takes the next message of any rank with any tag, if there is one; in any case messages move.
pub(super) fn take(comm: MPI_Comm) -> Result<Option<Arrived>> {
    take_by("MPI_Improbe", |source, tag, message, status| {
        let mut flag = 0;
        // SAFETY: the communicator is the transport's own; the places are the caller's.
        let code = unsafe { ffi::PMPI_Improbe(source, tag, comm, &mut flag, message, status) };
        (code, flag != 0)
    })
}

/// The same, once there is one.
pub(super) fn take_next(comm: MPI_Comm) -> Result<Option<Arrived>> {
    take_by("MPI_Mprobe", |source, tag, message, status| {
        // SAFETY: the communicator is the transport's own; the places are the caller's.
        let code = unsafe { ffi::PMPI_Mprobe(source, tag, comm, message, status) };
        (code, true)
    })
}

/// Takes a message by a call that returns its code and whether there is one.
fn take_by(
    name: &'static str,
    call: impl FnOnce(c_int, c_int, *mut MPI_Message, *mut MPI_Status) -> (c_int, bool),
) -> Result<Option<Arrived>> {
    // SAFETY: a constant that is filled before main.
    let any_source = unsafe { ffi::RSMPI_ANY_SOURCE };
    // SAFETY: a constant that is filled before main.
    let any_tag = unsafe { ffi::RSMPI_ANY_TAG };
    // SAFETY: a constant that is filled before main.
    let mut message = unsafe { ffi::RSMPI_MESSAGE_NULL };
    let mut status = MaybeUninit::<MPI_Status>::zeroed();
    let (code, is_there) = call(any_source, any_tag, &mut message, status.as_mut_ptr());
    checked(name, code)?;
    if !is_there {
        return Ok(None);
    }
    // SAFETY: MPI has filled the status, since there is a message.
    let status = unsafe { status.assume_init() };
    let (tag, is_short) = expected::unmarked(status.MPI_TAG);
    Ok(Some(Arrived { message, from: status.MPI_SOURCE as usize, tag, bytes: bytes_of(&status)?, is_short }))
}

/// The length of a message.
fn bytes_of(status: &MPI_Status) -> Result<usize> {
    let mut count = 0;
    // SAFETY: MPI has filled the status.
    let code = unsafe { ffi::PMPI_Get_count(status, byte(), &mut count) };
    checked("MPI_Get_count", code).map(|()| usize::try_from(count).unwrap_or(usize::MAX))
}

/// Begins to receive a message of so many bytes at most.
///
/// # Safety
/// `into` is valid for writes of `bytes` bytes until the request has ended.
pub(super) unsafe fn post(comm: MPI_Comm, from: c_int, tag: c_int, into: *mut u8, bytes: c_int) -> Result<MPI_Request> {
    // SAFETY: a constant that is filled before main.
    let mut request = unsafe { ffi::RSMPI_REQUEST_NULL };
    // SAFETY: by contract; the communicator is the transport's own.
    let code = unsafe { ffi::PMPI_Irecv(into.cast::<c_void>(), bytes, byte(), from, tag, comm, &mut request) };
    checked("MPI_Irecv", code).map(|()| request)
}

/// Withdraws a receive, unless its message has come: either way it ends.
pub(super) fn cancel(request: &mut MPI_Request) {
    // SAFETY: a receive that was begun here and has not ended. Nothing can be done about a refusal.
    let _ = unsafe { ffi::PMPI_Cancel(request) };
}

/// Lets messages move, and failures be noticed, whatever has become of other communicators: a look for a message of
/// this process to itself, which is not taken.
pub(super) fn turn() {
    // SAFETY: a constant that is filled before main.
    look(unsafe { ffi::RSMPI_COMM_SELF });
}

/// Lets messages move: a look for one, which is not taken.
pub(super) fn look(comm: MPI_Comm) {
    // SAFETY: a constant that is filled before main.
    let any_source = unsafe { ffi::RSMPI_ANY_SOURCE };
    // SAFETY: a constant that is filled before main.
    let any_tag = unsafe { ffi::RSMPI_ANY_TAG };
    // SAFETY: a constant that is filled before main.
    let ignore = unsafe { ffi::RSMPI_STATUS_IGNORE };
    let mut flag = 0;
    // SAFETY: a valid communicator, by the callers; MPI is running.
    let _ = unsafe { ffi::PMPI_Iprobe(any_source, any_tag, comm, &mut flag, ignore) };
}

/// Receives a message that was taken.
///
/// # Safety
/// `into` is valid for writes of the message's length, `bytes`, until the request has ended.
pub(super) unsafe fn receive(mut message: MPI_Message, into: *mut u8, bytes: c_int) -> Result<MPI_Request> {
    // SAFETY: a constant that is filled before main.
    let mut request = unsafe { ffi::RSMPI_REQUEST_NULL };
    // SAFETY: by contract; the message was taken, and is received once.
    let code = unsafe { ffi::PMPI_Imrecv(into.cast::<c_void>(), bytes, byte(), &mut message, &mut request) };
    checked("MPI_Imrecv", code).map(|()| request)
}

/// Whether a request has ended; one that has, also with a failure, is none any more. Messages move, unless it has
/// ended.
///
/// MPICH's MPI_Test looks at all sockets also where the request has ended long ago; these two calls do not. In MPICH a
/// failure that the first one tells of goes to the error handler of the program's world, not to that of the request's
/// communicator.
pub(super) fn test(request: &mut MPI_Request) -> Result<bool> {
    // SAFETY: a constant that is filled before main.
    let ignore = unsafe { ffi::RSMPI_STATUS_IGNORE };
    test_into(request, ignore)
}

/// What has become of a receive that was posted.
pub(super) enum Posted {
    Waits,
    /// It was withdrawn, and no message has come for it.
    Withdrawn,
    /// Its message has come, of so many bytes.
    Arrived(usize),
}

/// The same of a receive that was posted.
pub(super) fn test_receive(request: &mut MPI_Request) -> Result<Posted> {
    let mut status = MaybeUninit::<MPI_Status>::zeroed();
    if !test_into(request, status.as_mut_ptr())? {
        return Ok(Posted::Waits);
    }
    // SAFETY: MPI has filled the status, since the request has ended.
    let (status, mut flag) = (unsafe { status.assume_init() }, 0);
    // SAFETY: MPI has filled the status.
    let code = unsafe { ffi::PMPI_Test_cancelled(&status, &mut flag) };
    checked("MPI_Test_cancelled", code)?;
    if flag != 0 { Ok(Posted::Withdrawn) } else { bytes_of(&status).map(Posted::Arrived) }
}

fn test_into(request: &mut MPI_Request, status: *mut MPI_Status) -> Result<bool> {
    let mut flag = 0;
    // SAFETY: a request that was begun here, or the null request; the status is the caller's.
    let code = unsafe { ffi::PMPI_Request_get_status(*request, &mut flag, status) };
    if code != ffi::MPI_SUCCESS as c_int {
        // The failure is the request's own: it is to end with it.
        // SAFETY: the same.
        let code = unsafe { ffi::PMPI_Test(request, &mut flag, status) };
        return checked("MPI_Test", code).map(|()| flag != 0);
    }
    if flag == 0 {
        // Open MPI 5 looks whether the peer has failed, or the communicator was revoked, in MPI_Test alone.
        if Recovery::find().is_none() {
            return Ok(false);
        }
        // SAFETY: the same.
        let code = unsafe { ffi::PMPI_Test(request, &mut flag, status) };
        return checked("MPI_Test", code).map(|()| flag != 0);
    }
    // SAFETY: the same; it has ended, so that this returns at once, with its failure if it has one.
    let code = unsafe { ffi::PMPI_Wait(request, status) };
    checked("MPI_Wait", code).map(|()| true)
}
