//! The protocols of COMMTEST: how the two sides of an exchange send and receive.

use std::fmt;
use std::str::FromStr;

/// How a packet is sent (MPI 4.1, sections 3.4 and 3.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SendKind {
    /// `MPI_Bsend`: copied into a buffer.
    Buffered,
    /// `MPI_Send`.
    Standard,
    /// `MPI_Isend`.
    Immediate,
    /// `MPI_Rsend`: the receive has been posted.
    Ready,
    /// `MPI_Irsend`.
    ImmediateReady,
    /// `MPI_Ssend`: ends when the receive has begun.
    Synchronous,
    /// `MPI_Issend`.
    ImmediateSynchronous,
}

impl SendKind {
    /// Whether its end is waited for by a call of its own.
    pub const fn is_immediate(self) -> bool {
        matches!(self, SendKind::Immediate | SendKind::ImmediateReady | SendKind::ImmediateSynchronous)
    }

    /// Whether the receive must have been posted.
    pub const fn is_ready(self) -> bool {
        matches!(self, SendKind::Ready | SendKind::ImmediateReady)
    }

    /// MPI's name of the call, without its prefix.
    pub const fn name(self) -> &'static str {
        match self {
            SendKind::Buffered => "BSEND",
            SendKind::Standard => "SEND",
            SendKind::Immediate => "ISEND",
            SendKind::Ready => "RSEND",
            SendKind::ImmediateReady => "IRSEND",
            SendKind::Synchronous => "SSEND",
            SendKind::ImmediateSynchronous => "ISSEND",
        }
    }
}

/// One side of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Side {
    /// Whether the receive is posted before anything is sent (`MPI_Irecv`); otherwise it is `MPI_Recv`.
    pub posts: bool,
    /// How it sends.
    pub send: SendKind,
}

/// A protocol by its two numbers, `(0,3)`, written `0.3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Protocol {
    /// Whether one side sends first and the other receives first.
    pub ordered: bool,
    /// The second number.
    pub number: u8,
}

/// Unordered protocols: (0,0) to (0,9).
const UNORDERED: u8 = 10;
/// Ordered protocols: (1,0) to (1,10).
const ORDERED: u8 = 11;
/// (0,6): both in one call.
const NATIVE: Protocol = Protocol { ordered: false, number: 6 };
/// (1,6): every message is asked for.
const SYNCHRONOUS: Protocol = Protocol { ordered: true, number: 6 };

impl Protocol {
    /// All of them.
    pub fn all() -> Vec<Protocol> {
        let unordered = (0..UNORDERED).map(|number| Protocol { ordered: false, number });
        unordered.chain((0..ORDERED).map(|number| Protocol { ordered: true, number })).collect()
    }

    /// Whether an exchange is one call, `MPI_Sendrecv`.
    pub fn is_native(self) -> bool {
        self == NATIVE
    }

    /// Whether no message is sent before its receiver has asked for it.
    pub fn is_asked_for(self) -> bool {
        self == SYNCHRONOUS
    }

    /// The side that sends first; both sides of an unordered protocol.
    pub fn first(self) -> Side {
        use SendKind::*;
        let (posts, send) = match (self.number, self.ordered) {
            (0, false) => (false, Buffered),
            (0 | 6, _) => (false, Standard),
            (1, _) => (false, Immediate),
            (2, _) => (true, Standard),
            (3, _) => (true, Immediate),
            (4, _) => (true, Ready),
            (5, _) => (true, ImmediateReady),
            (7, _) => (false, ImmediateSynchronous),
            (8, _) => (true, Synchronous),
            (9, _) => (true, ImmediateSynchronous),
            _ => (false, Synchronous),
        };
        Side { posts, send }
    }

    /// The side that receives first. A message that is sent to it ready is posted for, which `MPI_Recv` cannot tell
    /// anybody.
    pub fn second(self) -> Side {
        if !self.ordered {
            return self.first();
        }
        let send = match self.number {
            4 | 5 => SendKind::Ready,
            7.. => SendKind::Synchronous,
            _ => SendKind::Standard,
        };
        Side { posts: send.is_ready(), send }
    }

    /// Whether there is anything to reorganise: a receive to post ahead, or a send to complete later.
    pub fn can_be_reorganised(self) -> bool {
        let side = self.first();
        !self.is_native() && (side.posts || side.send.is_immediate())
    }

    /// In words, as the paper has them.
    pub fn words(self) -> &'static str {
        match (self.number, self.ordered) {
            (0, _) => "simple",
            (1, _) => "nonblocking send",
            (2, _) => "nonblocking receive",
            (3, _) => "nonblocking send and receive",
            (4, _) => "ready send",
            (5, _) => "nonblocking ready send",
            (6, false) => "native sendrecv",
            (6, true) => "synchronous",
            (7, _) => "nonblocking sync. send",
            (8, _) => "sync. send and nonblocking receive",
            (9, _) => "nonblocking sync. send and receive",
            _ => "sync. send",
        }
    }

    /// The calls of the side that sends first: `IRECV ISEND`.
    pub fn calls(self) -> String {
        let side = self.first();
        match (self.is_native(), side.posts) {
            (true, _) => "SENDRECV".into(),
            (false, true) => format!("IRECV {}", side.send.name()),
            (false, false) => format!("{} RECV", side.send.name()),
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}.{}", u8::from(self.ordered), self.number))
    }
}

impl FromStr for Protocol {
    type Err = String;

    fn from_str(text: &str) -> Result<Protocol, String> {
        let all = Protocol::all();
        all.into_iter().find(|protocol| protocol.to_string() == text.trim()).ok_or_else(|| {
            format!("{text:?} is no protocol: 0.0 to 0.9 (unordered), 1.0 to 1.10 (ordered), unordered, ordered or all")
        })
    }
}

/// Several protocols in one word: a protocol, `unordered`, `ordered` or `all`.
///
/// # Errors
///
/// What is no such word.
pub fn group(text: &str) -> Result<Vec<Protocol>, String> {
    let of = |ordered: bool| Protocol::all().into_iter().filter(move |protocol| protocol.ordered == ordered).collect();
    match text.trim() {
        "all" => Ok(Protocol::all()),
        "unordered" => Ok(of(false)),
        "ordered" => Ok(of(true)),
        other => other.parse().map(|protocol| vec![protocol]),
    }
}

/// Which of the two programs runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Program {
    /// One exchange after another.
    Basic,
    /// Receives are posted one packet ahead, and sends completed one packet later.
    Reorganised,
}

impl Program {
    /// Both.
    pub const ALL: [Program; 2] = [Program::Basic, Program::Reorganised];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Program::Basic => "basic",
            Program::Reorganised => "reorganised",
        }
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Program {
    type Err = String;

    fn from_str(text: &str) -> Result<Program, String> {
        let found = Program::ALL.into_iter().find(|program| program.name() == text);
        found.ok_or_else(|| format!("{text:?} is no program: basic, reorganised"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocols_are_read_as_they_are_written() {
        assert_eq!(Protocol::all().len(), 21);
        for protocol in Protocol::all() {
            assert_eq!(protocol.to_string().parse(), Ok(protocol));
        }
        assert_eq!((group("ordered").unwrap().len(), group("unordered").unwrap().len()), (11, 10));
        for text in ["0.10", "1.11", "2.0", "x", "0,3", ""] {
            assert!(group(text).unwrap_err().contains("1.10"), "{text}");
        }
        assert_eq!("basic".parse(), Ok(Program::Basic));
        assert!("both".parse::<Program>().is_err());
    }

    /// The paper's table, unordered protocols and the first sides of the ordered ones.
    #[test]
    fn the_calls_are_those_of_the_paper_s_table() {
        let calls: Vec<String> = Protocol::all().into_iter().map(Protocol::calls).collect();
        assert_eq!(
            calls,
            [
                "BSEND RECV",
                "ISEND RECV",
                "IRECV SEND",
                "IRECV ISEND",
                "IRECV RSEND",
                "IRECV IRSEND",
                "SENDRECV",
                "ISSEND RECV",
                "IRECV SSEND",
                "IRECV ISSEND",
                "SEND RECV",
                "ISEND RECV",
                "IRECV SEND",
                "IRECV ISEND",
                "IRECV RSEND",
                "IRECV IRSEND",
                "SEND RECV",
                "ISSEND RECV",
                "IRECV SSEND",
                "IRECV ISSEND",
                "SSEND RECV",
            ]
        );
        let second: Vec<&str> = group("ordered").unwrap().into_iter().map(|p| p.second().send.name()).collect();
        assert_eq!(
            second,
            ["SEND", "SEND", "SEND", "SEND", "RSEND", "RSEND", "SEND", "SSEND", "SSEND", "SSEND", "SSEND"]
        );
    }

    #[test]
    fn what_has_no_nonblocking_call_cannot_be_reorganised() {
        let not: Vec<String> =
            Protocol::all().into_iter().filter(|p| !p.can_be_reorganised()).map(|p| p.to_string()).collect();
        assert_eq!(not, ["0.0", "0.6", "1.0", "1.6", "1.10"]);
    }
}
