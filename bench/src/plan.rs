//! What the ranks of one run shall measure, as a text that the Rust ranks and the C program of
//! the baselines both read.

use std::fmt;
use std::num::NonZeroU64;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::error::{Error, Result};

/// First line of a plan.
const HEADER: &str = "phalanx-bench-plan 1";

/// Implements `Display`, `FromStr`, `Serialize` and `ALL` for an enum whose variants have names.
macro_rules! named {
    ($type:ident, $what:literal, { $($variant:ident = $name:literal),+ $(,)? }) => {
        impl $type {
            /// All values, in the order in which they are shown.
            pub const ALL: &'static [$type] = &[$($type::$variant),+];

            /// The name by which it is written and read.
            pub const fn name(self) -> &'static str {
                match self { $($type::$variant => $name),+ }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }

        impl FromStr for $type {
            type Err = String;

            fn from_str(text: &str) -> std::result::Result<$type, String> {
                $type::ALL.iter().copied().find(|value| value.name() == text).ok_or_else(|| {
                    let names: Vec<_> = $type::ALL.iter().map(|value| value.name()).collect();
                    format!("'{text}' is no {}: one of {}", $what, names.join(", "))
                })
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        }
    };
}

/// A collective that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// All wait for all.
    Barrier,
    /// The root's buffer to all.
    Broadcast,
    /// The sum to the root.
    Reduce,
    /// The sum to all.
    Allreduce,
    /// A block of everybody to the root.
    Gather,
    /// A block for everybody from the root.
    Scatter,
    /// A block of everybody to all.
    Allgather,
    /// A block of everybody to everybody.
    Alltoall,
    /// A block of the sum to everybody.
    ReduceScatter,
    /// The sum up to each rank.
    Scan,
    /// A call that does nothing: what a call that is timed alone has of the clock in its time ([`crate::empty`]).
    Empty,
}
named!(Operation, "collective", {
    Barrier = "barrier", Broadcast = "broadcast", Reduce = "reduce", Allreduce = "allreduce",
    Gather = "gather", Scatter = "scatter", Allgather = "allgather", Alltoall = "alltoall",
    ReduceScatter = "reduce-scatter", Scan = "scan", Empty = "empty",
});

impl Operation {
    /// What is measured where nobody says what.
    pub const USUAL: [Operation; 4] =
        [Operation::Barrier, Operation::Broadcast, Operation::Reduce, Operation::Allreduce];

    /// Whether it moves bytes, so that it is measured at several sizes.
    pub const fn has_bytes(self) -> bool {
        !matches!(self, Operation::Barrier | Operation::Empty)
    }

    /// Whether what is sent is a block for each rank (of a scatter, on the root). The bytes of a case are those of one
    /// block.
    pub const fn sends_blocks(self) -> bool {
        matches!(self, Operation::Scatter | Operation::Alltoall | Operation::ReduceScatter)
    }

    /// Whether what is received is a block of each rank (of a gather, on the root).
    pub const fn receives_blocks(self) -> bool {
        matches!(self, Operation::Gather | Operation::Allgather | Operation::Alltoall)
    }
}

/// By what reductions combine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Combine {
    /// The sum.
    #[default]
    Sum,
    /// The greatest.
    Max,
    /// The least.
    Min,
    /// The sum again, by a function of the program that the library does not know: MPI_Op_create, and a closure for
    /// ours.
    User,
}
named!(Combine, "operator", { Sum = "sum", Max = "max", Min = "min", User = "user" });

impl Combine {
    /// What it makes of some whole numbers.
    pub fn of(self, values: impl Iterator<Item = u32>) -> u32 {
        match self {
            Combine::Sum | Combine::User => values.sum(),
            Combine::Max => values.max().unwrap_or(0),
            Combine::Min => values.min().unwrap_or(0),
        }
    }
}

/// In which state the buffers are when a timed call begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BufferMode {
    /// The same buffers in every call, never touched between calls: as warm as caches can be.
    Warm,
    /// The input is written anew before each call, as an application does.
    Rewritten,
    /// A set of buffers larger than the last-level cache takes turns.
    Cold,
    /// Rewritten, and in shared memory (`Communicator::alloc`). No MPI's collectives make anything of such buffers:
    /// beside it stand its rewritten ones.
    Shared,
    /// As shared, and an allreduce's result is one that all ranks read where it lies (`all_reduce_shared`).
    View,
}
named!(BufferMode, "buffer mode", {
    Warm = "warm", Rewritten = "rewritten", Cold = "cold", Shared = "shared", View = "view",
});

impl BufferMode {
    /// Whether the input is written anew before each call.
    pub const fn is_rewritten(self) -> bool {
        matches!(self, BufferMode::Rewritten | BufferMode::Shared | BufferMode::View)
    }

    /// Whether the buffers lie in memory that all ranks share.
    pub const fn is_shared(self) -> bool {
        matches!(self, BufferMode::Shared | BufferMode::View)
    }

    /// Whether a collective can be measured so.
    pub const fn serves(self, operation: Operation) -> bool {
        !matches!(self, BufferMode::View) || matches!(operation, Operation::Barrier | Operation::Allreduce)
    }

    /// The buffers of an MPI that stand beside ours.
    pub const fn beside(self) -> BufferMode {
        match self {
            BufferMode::Shared | BufferMode::View => BufferMode::Rewritten,
            other => other,
        }
    }
}

/// How calls are timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Timing {
    /// Calls back to back, one reading of the clock before the first and one after the last.
    Stream,
    /// A common start before each call, and the clock read before and after each call alone.
    Each,
    /// The same, until each rank has loaded all of the result that it has.
    Loaded,
    /// The same, from before each rank writes its input anew.
    Step,
}
named!(Timing, "timing", { Stream = "stream", Each = "each", Loaded = "loaded", Step = "step" });

impl Timing {
    /// Whether each call is timed alone.
    pub fn is_alone(self) -> bool {
        self != Timing::Stream
    }

    /// Whether a call's time lasts until its result is loaded.
    pub fn loads(self) -> bool {
        matches!(self, Timing::Loaded | Timing::Step)
    }
}

/// The element type that is summed or sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ElementType {
    /// 32-bit integer.
    I32,
    /// 64-bit integer.
    I64,
    /// Single precision.
    F32,
    /// Double precision.
    F64,
}
named!(ElementType, "element type", { I32 = "i32", I64 = "i64", F32 = "f32", F64 = "f64" });

impl ElementType {
    /// Bytes of one element.
    pub const fn bytes(self) -> u64 {
        match self {
            ElementType::I32 | ElementType::F32 => 4,
            ElementType::I64 | ElementType::F64 => 8,
        }
    }

    /// This type, or its half where a message of `bytes` is too short for one whole element.
    pub const fn fitting(self, bytes: u64) -> ElementType {
        match self {
            ElementType::I64 if bytes < 8 => ElementType::I32,
            ElementType::F64 if bytes < 8 => ElementType::F32,
            other => other,
        }
    }
}

/// One thing to measure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Case {
    /// The collective.
    pub operation: Operation,
    /// The state of the buffers.
    pub buffers: BufferMode,
    /// How the calls are timed.
    pub timing: Timing,
    /// The element type.
    pub element: ElementType,
    /// Message bytes, a multiple of the element's; 0 for a barrier.
    pub bytes: u64,
    /// The root of a broadcast or reduce.
    pub root: usize,
    /// Blocks to time.
    pub blocks: usize,
    /// About how long a block lasts.
    pub block: Duration,
}

/// A rank that comes late to each call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Late {
    /// The rank.
    pub rank: usize,
    /// By how many microseconds.
    pub microseconds: u64,
}

impl FromStr for Late {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Late, String> {
        let parsed = text
            .split_once(':')
            .and_then(|(rank, late)| Some(Late { rank: rank.parse().ok()?, microseconds: late.parse().ok()? }));
        parsed.ok_or_else(|| format!("'{text}' is no late rank: write RANK:MICROSECONDS, for example 1:500"))
    }
}

/// All that one run of ranks measures, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Bytes of the buffers that take turns in cold cases, for each of send and receive.
    pub cold_bytes: u64,
    /// Ranks that come late.
    pub late: Vec<Late>,
    /// By what reductions combine.
    pub operator: Combine,
    /// Calls of the only block of each case, which is not calibrated then: what a process does at first.
    pub calls: Option<NonZeroU64>,
    /// What is measured.
    pub cases: Vec<Case>,
}

impl Plan {
    /// Reads a plan back from its text.
    pub fn read(path: &Path) -> Result<Plan> {
        let text = std::fs::read_to_string(path).map_err(Error::file("cannot read the plan", path))?;
        text.parse().map_err(|(line, detail)| Error::Samples { path: path.into(), line, detail })
    }

    /// Writes the plan's text.
    pub fn write(&self, path: &Path) -> Result<()> {
        std::fs::write(path, self.to_string()).map_err(Error::file("cannot write the plan", path))
    }

    /// What a peer measures beside this plan, which may leave cases out: its plan, and for each of its cases the place
    /// here of the first of ours that it stands beside.
    pub fn beside(&self, takes: impl Fn(&Case) -> bool) -> (Plan, Vec<usize>) {
        let mut plan = Plan { cases: Vec::new(), ..self.clone() };
        let mut places = Vec::new();
        for (place, case) in self.cases.iter().enumerate() {
            let case = Case { buffers: case.buffers.beside(), ..*case };
            if takes(&case) && !plan.cases.contains(&case) {
                plan.cases.push(case);
                places.push(place);
            }
        }
        (plan, places)
    }

    /// About how long the timed blocks last.
    pub fn duration(&self) -> Duration {
        self.cases.iter().map(|case| case.block * case.blocks as u32).sum()
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{HEADER}")?;
        writeln!(f, "cold {}", self.cold_bytes)?;
        if self.operator != Combine::Sum {
            writeln!(f, "operator {}", self.operator)?;
        }
        if let Some(calls) = self.calls {
            writeln!(f, "calls {calls}")?;
        }
        for late in &self.late {
            writeln!(f, "late {} {}", late.rank, late.microseconds)?;
        }
        for case in &self.cases {
            writeln!(
                f,
                "case {} {} {} {} {} {} {} {}",
                case.operation,
                case.buffers,
                case.timing,
                case.element,
                case.bytes,
                case.root,
                case.blocks,
                case.block.as_nanos()
            )?;
        }
        Ok(())
    }
}

impl FromStr for Plan {
    /// Line number and what is wrong there.
    type Err = (usize, String);

    fn from_str(text: &str) -> std::result::Result<Plan, (usize, String)> {
        let mut plan = Plan::default();
        for (index, line) in text.lines().enumerate() {
            let fault = |detail: String| (index + 1, detail);
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.as_slice() {
                _ if index == 0 && line != HEADER => return Err(fault(format!("expected '{HEADER}'"))),
                _ if index == 0 => {}
                ["cold", bytes] => plan.cold_bytes = number(bytes).map_err(fault)?,
                ["operator", operator] => plan.operator = operator.parse().map_err(fault)?,
                ["calls", calls] => plan.calls = Some(number(calls).map_err(fault)?),
                ["late", rank, late] => plan
                    .late
                    .push(Late { rank: number(rank).map_err(fault)?, microseconds: number(late).map_err(fault)? }),
                ["case", operation, buffers, timing, element, bytes, root, blocks, block] => {
                    plan.cases.push(Case {
                        operation: operation.parse().map_err(fault)?,
                        buffers: buffers.parse().map_err(fault)?,
                        timing: timing.parse().map_err(fault)?,
                        element: element.parse().map_err(fault)?,
                        bytes: number(bytes).map_err(fault)?,
                        root: number(root).map_err(fault)?,
                        blocks: number(blocks).map_err(fault)?,
                        block: Duration::from_nanos(number(block).map_err(fault)?),
                    });
                }
                _ => return Err(fault(format!("'{line}' is no line of a plan"))),
            }
        }
        Ok(plan)
    }
}

fn number<T: FromStr>(text: &str) -> std::result::Result<T, String> {
    text.parse().map_err(|_| format!("'{text}' is no number"))
}

#[cfg(test)]
mod tests;
