//! Memory for the calls of ranks that end, and what is found there afterwards.

use hier::{Buffer, Communicator, Error};

/// Memory that a rank has for itself, or that others can reach.
pub enum Memory {
    Private(Vec<u64>),
    Shared(Buffer<u64>),
}

impl Memory {
    /// So many elements of one value; `shared` for those that others can reach.
    pub fn new(world: &Communicator, shared: bool, elements: usize, value: u64) -> Result<Self, Error> {
        let values = vec![value; elements];
        Ok(if shared { Self::Shared(world.alloc_copy(&values)?) } else { Self::Private(values) })
    }

    pub fn slice(&mut self) -> &mut [u64] {
        match self {
            Self::Private(values) => values,
            Self::Shared(values) => values,
        }
    }
}

/// Whether these all have this value: each is like the one before. That takes much less time than to look at them one
/// by one, where nothing is optimised, and so more of the time is spent in calls.
pub fn all_are(values: &[u64], value: u64) -> bool {
    values.is_empty() || values[0] == value && values[1..] == values[..values.len() - 1]
}
