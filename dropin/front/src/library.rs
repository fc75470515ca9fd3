//! The MPI of this process.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The ABIs for which there are cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Abi {
    OpenMpi,
    Mpich,
    /// That of MPI 5, by whatever library.
    Standard,
}

impl Abi {
    /// The file of its core.
    pub fn core(self) -> &'static str {
        match self {
            Self::OpenMpi => "libphalanx_mpi_core_openmpi.so",
            Self::Mpich => "libphalanx_mpi_core_mpich.so",
            Self::Standard => "libphalanx_mpi_core_abi.so",
        }
    }
}

/// An MPI library that is loaded.
pub(crate) struct Library {
    handle: *mut c_void,
    path: PathBuf,
}

impl Library {
    /// The library whose functions come behind this one's. One that only a part of the process sees (an interpreter's
    /// extension, say) is made visible to all of it.
    pub fn find() -> Option<Self> {
        let next = next(c"PMPI_Init");
        let path = if next.is_null() { hidden()? } else { file_of(next)? };
        let name = CString::new(path.as_os_str().as_bytes()).ok()?;
        // SAFETY: a library that is loaded already, by its own name: none of its code runs.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_NOW | libc::RTLD_GLOBAL) };
        (!handle.is_null()).then_some(Self { handle, path })
    }

    /// A function: that of whoever comes next (a tool, the library), or the library's.
    pub fn function(&self, name: &CStr) -> *mut c_void {
        let next = next(name);
        if next.is_null() { self.own(name) } else { next }
    }

    /// A symbol of the library, or of what it was linked with.
    fn own(&self, name: &CStr) -> *mut c_void {
        // SAFETY: the handle is never closed.
        unsafe { libc::dlsym(self.handle, name.as_ptr()) }
    }

    /// What it says of itself.
    pub fn version(&self) -> String {
        let function = self.own(c"PMPI_Get_library_version");
        if function.is_null() {
            return "an MPI without a name".to_owned();
        }
        // MPI_MAX_LIBRARY_VERSION_STRING is 256 (Open MPI) or 8192 (MPICH, MPI's own ABI).
        let mut text = [0_u8; 16_384];
        let mut length: c_int = 0;
        // SAFETY: MPI's function of this name (MPI 4.1, 9.1.1), which may be called at any time.
        let function =
            unsafe { std::mem::transmute::<*mut c_void, extern "C" fn(*mut c_char, *mut c_int) -> c_int>(function) };
        function(text.as_mut_ptr().cast(), &mut length);
        let line = text.split(|&byte| byte == 0 || byte == b'\n').next().unwrap_or_default();
        String::from_utf8_lossy(line).split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Its ABI, or what is wrong.
    pub fn abi(&self) -> Result<Abi, String> {
        let (version, path) = (self.version(), self.path.display());
        let file = self.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if file.starts_with("libmpi_abi") {
            return Ok(Abi::Standard);
        }
        if file.contains("ilp64") {
            return Err(format!("{path} has integers of 8 bytes ({version}), for which there is no build of Phalanx"));
        }
        if !self.own(c"ompi_mpi_comm_world").is_null() {
            return Ok(Abi::OpenMpi);
        }
        if ["MPICH", "Intel(R) MPI", "MVAPICH"].iter().any(|name| version.contains(name)) {
            return Ok(Abi::Mpich);
        }
        Err(format!("{path} is of no kind that Phalanx knows ({version}): Open MPI, MPICH, Intel MPI and MVAPICH are"))
    }
}

/// The next symbol of a name behind this library.
fn next(name: &CStr) -> *mut c_void {
    // SAFETY: the name is a string of C.
    unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }
}

/// The file in which an address lies.
pub(crate) fn file_of(address: *const c_void) -> Option<PathBuf> {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: any address may be asked for.
    if unsafe { libc::dladdr(address, info.as_mut_ptr()) } == 0 {
        return None;
    }
    // SAFETY: all zero is a value, and the call has filled it.
    let info = unsafe { info.assume_init() };
    if info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the linker's name of the file, which stays as long as the file is loaded.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    Some(Path::new(std::ffi::OsStr::from_bytes(name.to_bytes())).to_owned())
}

/// A loaded library that has MPI's functions, but is not in the scope of the whole process.
fn hidden() -> Option<PathBuf> {
    let mut paths: Vec<CString> = Vec::new();
    /// # Safety
    /// As `dl_iterate_phdr` calls it, with `paths` behind the last argument.
    unsafe extern "C" fn note(info: *mut libc::dl_phdr_info, _size: usize, paths: *mut c_void) -> c_int {
        // SAFETY: the linker's description of a library, valid during this call.
        let name = unsafe { (*info).dlpi_name };
        if !name.is_null() {
            // SAFETY: a string of the linker's.
            let name = unsafe { CStr::from_ptr(name) };
            // SAFETY: by contract.
            let paths = unsafe { &mut *paths.cast::<Vec<CString>>() };
            paths.push(name.to_owned());
        }
        0
    }
    // SAFETY: the function keeps to its contract, and `paths` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(note), (&raw mut paths).cast()) };
    paths.iter().find_map(|path| {
        let name = Path::new(std::ffi::OsStr::from_bytes(path.to_bytes())).file_name()?.to_string_lossy().into_owned();
        if !name.starts_with("libmpi") {
            return None;
        }
        // SAFETY: loaded already: none of its code runs.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY) };
        if handle.is_null() {
            return None;
        }
        // SAFETY: the handle was just opened.
        let function = unsafe { libc::dlsym(handle, c"PMPI_Init".as_ptr()) };
        // Libraries of other languages find it in what they are linked with: the function tells its own file.
        if function.is_null() { None } else { file_of(function) }
    })
}
