//! User-level failure mitigation (ULFM, MPI Forum's working group on fault tolerance): what MPI does once a rank has
//! failed.
//!
//! Open MPI 5 has it, under `mpirun --with-ft ulfm`. Its functions are looked up while the program runs, so that one
//! binary does with and without it, and on Open MPI 4.1, whose headers do not know them. That they exist does not say
//! that they work (MPICH has some that do not): whether failures are looked for at all is a control variable of Open
//! MPI.

use std::ffi::{CStr, c_int, c_void};
use std::sync::OnceLock;

use mpi::ffi::{self, MPI_Comm, MPI_Group};

use super::calls::{self, Failure, Group, checked};

type Result<T> = std::result::Result<T, Failure>;

/// Open MPI's variable that says whether failures are looked for.
const ENABLED: &CStr = c"mpi_ft_enable";

/// The functions.
pub(super) struct Recovery {
    revoke: unsafe extern "C" fn(MPI_Comm) -> c_int,
    shrink: unsafe extern "C" fn(MPI_Comm, *mut MPI_Comm) -> c_int,
    get_failed: unsafe extern "C" fn(MPI_Comm, *mut MPI_Group) -> c_int,
    agree: unsafe extern "C" fn(MPI_Comm, *mut c_int) -> c_int,
}

/// What a failed call says about ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// A rank that it needs, or might need, has failed.
    Failed,
    /// Somebody has revoked the communicator.
    Revoked,
}

impl Recovery {
    /// The functions, where they are and work. MPI is running.
    pub fn find() -> Option<&'static Self> {
        static FOUND: OnceLock<Option<Recovery>> = OnceLock::new();
        FOUND.get_or_init(Self::look_up).as_ref()
    }

    fn look_up() -> Option<Self> {
        let [revoke, shrink, get_failed, agree] =
            [c"PMPIX_Comm_revoke", c"PMPIX_Comm_shrink", c"PMPIX_Comm_get_failed", c"PMPIX_Comm_agree"].map(function);
        let (revoke, shrink, get_failed, agree) = (revoke?, shrink?, get_failed?, agree?);
        if !is_enabled() {
            return None;
        }
        Some(Self {
            // SAFETY: the function of this name has these parameters.
            revoke: unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn(MPI_Comm) -> c_int>(revoke) },
            // SAFETY: the same.
            shrink: unsafe {
                std::mem::transmute::<*mut c_void, unsafe extern "C" fn(MPI_Comm, *mut MPI_Comm) -> c_int>(shrink)
            },
            // SAFETY: the same.
            get_failed: unsafe {
                std::mem::transmute::<*mut c_void, unsafe extern "C" fn(MPI_Comm, *mut MPI_Group) -> c_int>(get_failed)
            },
            // SAFETY: the same.
            agree: unsafe {
                std::mem::transmute::<*mut c_void, unsafe extern "C" fn(MPI_Comm, *mut c_int) -> c_int>(agree)
            },
        })
    }

    /// What a failed call says about ranks, by the name with which Open MPI begins its text: programs that were built
    /// with the headers of 4.1 do not know the numbers.
    pub fn loss(&self, failure: &Failure) -> Option<Loss> {
        if failure.text.starts_with("MPI_ERR_REVOKED") {
            Some(Loss::Revoked)
        } else if failure.text.starts_with("MPI_ERR_PROC_FAILED") {
            Some(Loss::Failed)
        } else {
            None
        }
    }

    /// Ends all messages on a communicator, on all ranks.
    pub fn revoke(&self, comm: MPI_Comm) -> Result<()> {
        // SAFETY: the communicator is the transport's own.
        let code = unsafe { (self.revoke)(comm) };
        checked("MPIX_Comm_revoke", code)
    }

    /// The communicator of the ranks that live, with errors returned.
    pub fn shrink(&self, comm: MPI_Comm) -> Result<MPI_Comm> {
        let mut new = calls::no_communicator();
        // SAFETY: the communicator is the transport's own.
        let code = unsafe { (self.shrink)(comm, &mut new) };
        checked("MPIX_Comm_shrink", code)?;
        calls::return_errors(new).map(|()| new)
    }

    /// The ranks that are known to have failed, ascending.
    pub fn failed(&self, comm: MPI_Comm) -> Result<Vec<usize>> {
        let mut failed = Group::empty();
        // SAFETY: the communicator is the transport's own.
        let code = unsafe { (self.get_failed)(comm, &mut failed.0) };
        checked("MPIX_Comm_get_failed", code)?;
        let ranks = calls::translated(&failed, &calls::group(comm)?)?;
        let mut ranks: Vec<usize> = ranks.into_iter().filter_map(|rank| usize::try_from(rank).ok()).collect();
        ranks.sort_unstable();
        Ok(ranks)
    }

    /// Whether all ranks that live say yes, and none has failed of which not all know.
    pub fn agree(&self, comm: MPI_Comm, yes: bool) -> Result<bool> {
        let mut flag = c_int::from(yes);
        // SAFETY: the communicator is the transport's own.
        let code = unsafe { (self.agree)(comm, &mut flag) };
        match checked("MPIX_Comm_agree", code) {
            Ok(()) => Ok(flag != 0),
            Err(failure) if self.loss(&failure).is_some() => Ok(false),
            Err(failure) => Err(failure),
        }
    }
}

/// A function of the libraries that are loaded.
fn function(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the name ends with a zero.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// Whether Open MPI looks for failures.
fn is_enabled() -> bool {
    let fine = |code: c_int| code == ffi::MPI_SUCCESS as c_int;
    let mut level = 0;
    // SAFETY: may be called at any time; it is ended below.
    if !fine(unsafe { ffi::PMPI_T_init_thread(ffi::MPI_THREAD_SINGLE as c_int, &mut level) }) {
        return false;
    }
    let enabled = variable(fine);
    // SAFETY: ends what was begun above.
    let _ = unsafe { ffi::PMPI_T_finalize() };
    enabled
}

fn variable(fine: impl Fn(c_int) -> bool) -> bool {
    let (mut index, mut count) = (0, 0);
    // SAFETY: the name ends with a zero.
    if !fine(unsafe { ffi::PMPI_T_cvar_get_index(ENABLED.as_ptr(), &mut index) }) {
        return false;
    }
    let mut handle: ffi::MPI_T_cvar_handle = std::ptr::null_mut();
    // SAFETY: a variable that is bound to no object.
    if !fine(unsafe { ffi::PMPI_T_cvar_handle_alloc(index, std::ptr::null_mut(), &mut handle, &mut count) }) {
        return false;
    }
    // A truth value, of whatever width.
    let mut value = [0_u64; 8];
    let fits = (1..=value.len()).contains(&usize::try_from(count).unwrap_or(0));
    // SAFETY: there is room for so many numbers of any width.
    let read = fits && fine(unsafe { ffi::PMPI_T_cvar_read(handle, value.as_mut_ptr().cast()) });
    // SAFETY: the handle was made above.
    let _ = unsafe { ffi::PMPI_T_cvar_handle_free(&mut handle) };
    read && value[0] != 0
}
