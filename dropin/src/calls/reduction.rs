//! What the calls that combine have in common: what is folded by what, who gets which part, and whether it is carried
//! out here. `folding` does it.

use crate::abi::{self, Word, refusing};
use crate::gains::Beneath;
use crate::life;
use crate::operators::Kernel;
use crate::stats::Reason;
use crate::types::{self, Named, Reduction, Type};

/// The arguments of a reduction.
#[derive(Clone, Copy)]
pub struct Arguments<'a> {
    /// The contribution: MPI_IN_PLACE, or where it lies.
    pub send: Word,
    /// The result, where this rank gets one.
    pub recv: Word,
    pub count: isize,
    pub datatype: Word,
    pub op: Word,
    pub goal: Goal<'a>,
}

/// Who gets what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal<'a> {
    /// All ranks, everybody's.
    All,
    /// A root, everybody's.
    Root(usize),
    /// Each rank, that of the ranks up to it.
    Scan,
    /// Each rank but the first, that of the ranks before it.
    Exscan,
    /// Each rank its part of everybody's.
    Parts(&'a Parts),
}

/// The parts of a result, in the order of ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    pub lengths: Lengths,
    /// Elements of all.
    pub total: usize,
    /// Elements before this rank's.
    pub before: usize,
    /// This rank's.
    pub own: usize,
}

/// Elements of each part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lengths {
    Even(usize),
    Uneven(Vec<usize>),
}

impl Parts {
    /// Those of `ranks` ranks; nothing, if they are too long together.
    pub fn new(lengths: Lengths, ranks: usize, rank: usize) -> Option<Self> {
        let (total, before, own) = match &lengths {
            Lengths::Even(count) => (count.checked_mul(ranks)?, count.checked_mul(rank)?, *count),
            Lengths::Uneven(counts) => {
                let total = counts.iter().try_fold(0_usize, |sum, &count| sum.checked_add(count))?;
                (total, counts[..rank].iter().sum(), counts[rank])
            }
        };
        isize::try_from(total).ok()?;
        Some(Self { lengths, total, before, own })
    }

    /// The same of elements that are `unit` as many.
    pub fn scaled(&self, unit: usize) -> Self {
        let lengths = match &self.lengths {
            Lengths::Even(count) => Lengths::Even(count * unit),
            Lengths::Uneven(counts) => Lengths::Uneven(counts.iter().map(|count| count * unit).collect()),
        };
        Self { lengths, total: self.total * unit, before: self.before * unit, own: self.own * unit }
    }
}

impl Goal<'_> {
    /// Elements that a rank gets of a vector of `count`.
    #[inline]
    pub fn results(self, count: usize) -> usize {
        if let Self::Parts(parts) = self { parts.own } else { count }
    }

    /// Elements before the first of them.
    pub fn before(self) -> usize {
        if let Self::Parts(parts) = self { parts.before } else { 0 }
    }

    /// Whether a rank gets a result.
    pub fn gets(self, rank: usize) -> bool {
        match self {
            Self::All | Self::Scan | Self::Parts(_) => true,
            Self::Root(root) => root == rank,
            Self::Exscan => rank > 0,
        }
    }

    /// Whether it contributes what lies in the place of the result, if that is said.
    pub fn has_place(self, rank: usize) -> bool {
        matches!(self, Self::Exscan) || self.gets(rank)
    }
}

/// How a reduction is carried out.
pub struct Plan {
    pub count: usize,
    pub(super) way: Way,
}

/// Kernels stay where they are: what short calls take is three words.
pub(super) enum Way {
    Kernel(&'static Named, &'static Kernel),
    /// By the library's own function; whether operands may change places.
    Local(Box<(Type, bool)>),
}

impl Plan {
    /// The elements.
    pub fn of(&self) -> &Type {
        match &self.way {
            Way::Kernel(named, _) => &named.of,
            Way::Local(local) => &local.0,
        }
    }
}

/// The longest element that is folded by the library's function.
const LONGEST: usize = 4096;

/// Bytes from which on elements that must be copied to be folded, those with gaps, are left to Open MPI. Of such, and
/// of others that were copied once, calls of 24,000 bytes took 0.6 to 1.6 times as long as those of Open MPI 4.1 on two
/// ranks, the median 1.1; of 100,000 bytes 0.8 to 1.7, the median 1.4; of 400,000 bytes 1.0 to 2.6, the median 1.7.
/// Beside MPICH 4.0 allreduces took 0.5 to 1.5 times as long, the median 0.9, reduces and scans 0.1 to 1.0.
const COPIED: usize = 64 << 10;

impl Arguments<'_> {
    /// The bytes of the vector, where its type is predefined.
    #[inline(always)]
    pub fn glance(&self) -> Option<usize> {
        types::bytes(usize::try_from(self.count).ok()?, self.datatype)
    }

    /// How it is carried out, and the bytes of the vector; or why it is not. All that this looks at is the same on all
    /// ranks (MPI 4.1, section 6.9.1), but for pointers to nothing, which are errors.
    #[inline(always)]
    pub fn plan(&self) -> Result<(Plan, usize), (Reason, usize)> {
        if self.count > 0
            && let (Some(op), Some(named)) = (types::operator(self.op), types::named(self.datatype))
            && let Reduction::Kernel(kernel) = named.reduction(op)
            && let Some(bytes) = (self.count as usize).checked_mul(named.of.size)
        {
            return Ok((Plan { count: self.count as usize, way: Way::Kernel(named, kernel) }, bytes));
        }
        self.plan_otherwise()
    }

    /// The same for whatever is not an everyday call.
    #[cold]
    fn plan_otherwise(&self) -> Result<(Plan, usize), (Reason, usize)> {
        let wrong = (Reason::Argument, 0);
        let count = usize::try_from(self.count).map_err(|_| wrong)?;
        if abi::is_no_datatype(self.datatype) || abi::is_no_operator(self.op) {
            return Err(wrong);
        }
        let way = match (types::operator(self.op), types::named(self.datatype)) {
            (Some(op), Some(named)) => match named.reduction(op) {
                Reduction::Kernel(kernel) => Way::Kernel(named, kernel),
                Reduction::Local => Way::Local(Box::new((named.of, true))),
                Reduction::Refused => return Err((Reason::Operator, count * named.of.size)),
            },
            (Some(_), None) => return Err((Reason::Datatype, 0)),
            (None, _) => {
                let of = types::find(self.datatype, count).ok_or(wrong)?;
                Way::Local(Box::new((of, commutes(self.op).ok_or(wrong)?)))
            }
        };
        let plan = Plan { count, way };
        let bytes = count.checked_mul(plan.of().size).ok_or(wrong)?;
        if bytes == 0 {
            return Err((Reason::Empty, 0));
        }
        if let (Way::Local(_), of) = (&plan.way, plan.of()) {
            if !of.is_regular || of.extent as usize > LONGEST {
                return Err((Reason::Datatype, bytes));
            }
            let settings = life::settings();
            let may_leave = settings.beneath == Beneath::OpenMpi && !settings.take_all;
            if may_leave && bytes >= COPIED && !of.fills_extent() {
                return Err((Reason::Slower, bytes));
            }
        }
        Ok((plan, bytes))
    }
}

/// Whether the library refuses one buffer for contribution and result that is not said by MPI_IN_PLACE: MPICH does.
/// Open MPI takes it, and a root may then be the only rank that makes the mistake: so it counts as MPI_IN_PLACE there.
#[inline(always)]
pub fn refuses_one_buffer() -> bool {
    !cfg!(open_mpi)
}

/// Whether a user's operator commutes; nothing if the library refuses it.
fn commutes(op: Word) -> Option<bool> {
    // Open MPI's handles are addresses, of which none can be asked about.
    if !cfg!(open_mpi) && !types::is_operator(op) {
        return None;
    }
    let mut commutes = 0;
    // SAFETY: the caller's operator; the library refuses one that is none.
    let code = unsafe { refusing::PMPI_Op_commutative(abi::op(op), &mut commutes) };
    (code == abi::SUCCESS).then_some(commutes != 0)
}
