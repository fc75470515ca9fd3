//! What the oracle says of a call, worked out once for all ranks of a process: ranks that are threads would each draw
//! the same samples and combine them to the same result, and a test of many ranks would do little else.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// A call, and what of it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    /// Operation and type.
    pub name: &'static str,
    /// From which all contributions follow.
    pub seed: u64,
    /// Ranks.
    pub size: usize,
    /// Elements.
    pub len: usize,
    /// What of it.
    pub of: &'static str,
    /// The rank that it is of, where it is of one.
    pub root: usize,
}

/// Calls that are remembered. No test has so many under way at once; what was forgotten is worked out again.
const CALLS: usize = 32;

/// A vector of elements, of a type that only who asks for it knows.
pub(crate) type Known = Arc<OnceLock<Box<dyn Any + Send + Sync>>>;

/// What `work_out` makes, which is asked at most once by all ranks that come with this key: one works it out, others
/// wait for it.
pub(crate) fn known(key: Key, work_out: &dyn Fn() -> Box<dyn Any + Send + Sync>) -> Known {
    static KNOWN: Mutex<VecDeque<(Key, Known)>> = Mutex::new(VecDeque::new());
    let mut all = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let found = all.iter().find(|(other, _)| *other == key).map(|(_, known)| Arc::clone(known));
    let known = found.unwrap_or_else(|| {
        all.truncate(CALLS - 1);
        all.push_front((key, Known::default()));
        Arc::clone(&all[0].1)
    });
    drop(all);
    known.get_or_init(work_out);
    known
}

/// The elements, of the type of which they were made.
pub(crate) fn elements<T: 'static>(known: &Known) -> &[T] {
    known.get().and_then(|all| all.downcast_ref::<Vec<T>>()).expect("a key goes with one type")
}
