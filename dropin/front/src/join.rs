//! Names and core joined.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Once;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::library::{Library, file_of};
use crate::names::NAMES;
use crate::narrow;
use crate::remark::remark;

/// A name, as the core is told of it and answers.
#[repr(C)]
struct Entry {
    name: *const c_char,
    /// Where it leads without the core; null where the library has no such function.
    next: *mut c_void,
    /// The core's function; null where it has none.
    own: *mut c_void,
    /// Where it is kept what the name leads to: the core may change it.
    target: *const AtomicPtr<()>,
}

/// Finds the library and the core, and sets where all names lead. Does so once.
pub(crate) fn join() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let Some(library) = Library::find() else { return };
        let mut entries: Vec<Entry> = NAMES
            .iter()
            .map(|name| {
                let next = library.function(name.name);
                let next = if next.is_null() { narrow::stand_in(&library, name.name) } else { next };
                Entry { name: name.name.as_ptr(), next, own: std::ptr::null_mut(), target: &raw const name.target }
            })
            .collect();
        if let Err(why) = attach(&library, &mut entries) {
            remark(&format!("{why}. All calls go to the library beneath"));
        }
        for (name, entry) in NAMES.iter().zip(&entries) {
            let target = if entry.own.is_null() { entry.next } else { entry.own };
            // A function that the library does not have is looked for in each call.
            if !target.is_null() {
                name.target.store(target.cast(), Ordering::Release);
            }
        }
    });
}

/// Loads the core and hands it the names.
fn attach(library: &Library, entries: &mut [Entry]) -> Result<(), String> {
    let file = library.abi()?.core();
    let places = places();
    let path = places.iter().map(|place| place.join(file)).find(|path| path.exists()).ok_or_else(|| {
        let places: Vec<String> = places.iter().map(|place| place.display().to_string()).collect();
        format!(
            "{file}, which the MPI of this program ({}) takes, is not in {}; build it (scripts/dropin), or name its folder in \
             PHALANX_LIBRARY_PATH",
            library.version(),
            places.join(", ")
        )
    })?;
    let text = |error: *const c_char| {
        // SAFETY: the linker's text, valid until its next call.
        if error.is_null() { String::new() } else { unsafe { CStr::from_ptr(error) }.to_string_lossy().into_owned() }
    };
    let name = CString::new(path.as_os_str().as_bytes()).map_err(|_| format!("{}: not a path", path.display()))?;
    // SAFETY: a library of this project, whose initialisation does nothing.
    let core = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if core.is_null() {
        // SAFETY: asks for the last error of this thread.
        let error = text(unsafe { libc::dlerror() });
        return Err(format!("{error}: {} and {} do not fit", path.display(), library.version()));
    }
    // SAFETY: the handle was just opened.
    let function = unsafe { libc::dlsym(core, c"phalanx_mpi_attach_names".as_ptr()) };
    if function.is_null() {
        return Err(format!("{} is not a core of this version", path.display()));
    }
    // SAFETY: the core's function of this name has this type.
    let function = unsafe { std::mem::transmute::<*mut c_void, extern "C" fn(*mut Entry, usize) -> c_int>(function) };
    match function(entries.as_mut_ptr(), entries.len()) {
        0 => Ok(()),
        _ => Err(format!("{} is not a core of this version", path.display())),
    }
}

/// Where cores are looked for: the folders of PHALANX_LIBRARY_PATH, then that of this library.
fn places() -> Vec<PathBuf> {
    let own = file_of((join as fn()) as *const c_void).and_then(|path| path.canonicalize().ok());
    let own = own.and_then(|path| Some(path.parent()?.to_owned()));
    let named = std::env::var_os("PHALANX_LIBRARY_PATH");
    let named = named.iter().flat_map(std::env::split_paths).filter(|place| !place.as_os_str().is_empty());
    named.chain(own).collect()
}

/// A function of a library that was loaded after the first call of any name (Fortran's, by an interpreter).
///
/// Ends the process if no library has it.
#[cold]
pub(crate) fn find_late(name: &CStr) -> *mut () {
    let function = Library::find().map_or(std::ptr::null_mut(), |library| library.function(name));
    if !function.is_null() {
        return function.cast();
    }
    eprintln!(
        "phalanx: {} was called, but there is no MPI library in this process that has it; start the program without \
         LD_PRELOAD to see what it does alone",
        name.to_string_lossy()
    );
    std::process::abort();
}
