//! What goes wrong in a call that is carried out here.

use std::ffi::c_int;
use std::fmt;

use hier::across::Error;

/// Why a call failed on this rank.
#[derive(Debug)]
pub enum Fault {
    /// An error of Phalanx.
    Ours(Error),
    /// The library would not apply the operator: its code.
    Operator(c_int),
    /// The library would not move data between their places and a packed copy: its function, the bytes, its code.
    Packing(&'static str, usize, c_int),
    /// There is no memory for so many packed bytes.
    Memory(usize),
}

impl Fault {
    /// Whether the end of a rank's process may be behind it.
    pub fn may_be_an_end(&self) -> bool {
        use hier::Error as Node;
        match self {
            Self::Ours(Error::Node(error)) => matches!(error, Node::RankFailed { .. }),
            Self::Ours(_) => true,
            _ => false,
        }
    }

    /// Whether this rank may not have taken part in the call, so that the others would wait for it in vain.
    pub fn is_absence(&self) -> bool {
        matches!(self, Self::Packing(..) | Self::Memory(_))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const LEAVE: &str = "leave the collective to the MPI beneath by PHALANX_DISABLE";
        match self {
            Self::Ours(error) => error.fmt(f),
            Self::Operator(code) => write!(f, "MPI_Reduce_local, which applies the operator, returned {code}"),
            Self::Packing(function, bytes, code) => {
                write!(f, "{function} on {bytes} bytes of a derived type returned {code}; {LEAVE}")
            }
            Self::Memory(bytes) => {
                write!(
                    f,
                    "no memory for the {bytes} bytes into which data of a derived type are packed; free some, or {LEAVE}"
                )
            }
        }
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Ours(error)
    }
}

impl From<hier::Error> for Fault {
    fn from(error: hier::Error) -> Self {
        Self::Ours(error.into())
    }
}
