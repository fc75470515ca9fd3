//! Sweeps: lists of calls that all ranks of a communicator make, the same under threads and under processes.

use hier::Collective;

use crate::Communicator;
use crate::call::{Call, Lying};
use crate::cases::{Case, cases, named, own_cases};
use crate::random::Random;
use crate::settings::Setting;

/// Elements that make so many bytes; a few where elements have none.
fn elements(bytes: usize, element: usize) -> usize {
    bytes.checked_div(element).unwrap_or(bytes.min(9))
}

/// In which memory the buffers of a sweep's calls lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffers {
    /// Everybody's in private memory.
    Private,
    /// Everybody's in shared memory.
    Shared,
    /// Each rank chooses for each buffer.
    Mixed,
    /// One of these three for each call.
    Any,
}

impl Buffers {
    fn of_call(self, plan: &mut Random, own: &mut Random) -> Lying {
        // Drawn in any case, so that ranks and worlds stay in step.
        let (any, send, recv) = (plan.below(3), own.once_in(2), own.once_in(2));
        match (self, any) {
            (Self::Private, _) | (Self::Any, 0) => Lying::default(),
            (Self::Shared, _) | (Self::Any, 1) => Lying { send: true, recv: true },
            (Self::Mixed | Self::Any, _) => Lying { send, recv },
        }
    }
}

/// Makes calls, with a delay of this rank's own before some of them, and counts.
pub struct Sweep<'a> {
    comm: &'a Communicator,
    /// What the world is like, for messages.
    label: String,
    /// The same on all ranks.
    plan: Random,
    /// This rank's own.
    own: Random,
    late: bool,
    /// In which memory buffers lie.
    pub buffers: Buffers,
    /// Calls made.
    pub calls: usize,
}

impl<'a> Sweep<'a> {
    /// A sweep over a communicator; with `late`, ranks come late at random.
    #[must_use]
    pub fn new(comm: &'a Communicator, label: impl Into<String>, seed: u64, late: bool) -> Self {
        let own = Random::new(seed ^ (comm.rank() as u64 + 1) << 32);
        Self { comm, label: label.into(), plan: Random::new(seed), own, late, buffers: Buffers::Any, calls: 0 }
    }

    /// What a call is drawn from: its seed, whether this rank works in place, where its buffers lie. The rank comes
    /// late, if it is to.
    #[cfg(not(feature = "mpi"))]
    pub(crate) fn draw(&mut self) -> (&'a Communicator, u64, bool, Lying) {
        let seed = self.plan.number();
        let in_place = self.own.once_in(2);
        let lying = self.buffers.of_call(&mut self.plan, &mut self.own);
        if self.late {
            self.own.loiter();
        }
        self.calls += 1;
        (self.comm, seed, in_place, lying)
    }

    /// A number that all ranks draw alike.
    #[cfg(not(feature = "mpi"))]
    pub(crate) fn below(&mut self, most: usize) -> usize {
        self.plan.below(most)
    }

    /// Ranks.
    #[cfg(not(feature = "mpi"))]
    pub(crate) fn size(&self) -> usize {
        self.comm.size()
    }

    /// What the world is like.
    #[cfg(not(feature = "mpi"))]
    pub(crate) fn label(&self) -> &str {
        &self.label
    }

    /// One call.
    ///
    /// # Panics
    /// When it fails.
    pub fn call(&mut self, case: &Case, what: Collective, root: usize, len: usize) {
        let seed = self.plan.number();
        // A choice of each rank for itself.
        let in_place = self.own.once_in(2);
        let lying = self.buffers.of_call(&mut self.plan, &mut self.own);
        if self.late {
            self.own.loiter();
        }
        let call = Call { what, root, len, in_place, lying, seed };
        self.calls += 1;
        if let Err(error) = case.make(self.comm, &call) {
            let (rank, size) = (self.comm.rank(), self.comm.size());
            panic!("{}: rank {rank} of {size}: {call:?} of {}: {error}", self.label, case.name);
        }
    }

    /// Every case by broadcast, reduce and allreduce, each with `lens` lengths: one of 1 to 3, then around `bytes`
    /// bytes.
    ///
    /// Not the whole product: the root goes round from call to call.
    pub fn types(&mut self, lens: usize, bytes: usize) {
        let mut root = self.plan.below(self.comm.size());
        for case in cases() {
            for round in 0..lens {
                let whole = elements(bytes, case.element);
                let len = if round == 0 { 1 + self.plan.below(3) } else { whole.max(3) - 1 + self.plan.below(3) };
                for what in [Collective::Broadcast, Collective::Reduce, Collective::Allreduce] {
                    root = (root + 1) % self.comm.size();
                    self.call(&case, what, root, len);
                }
            }
        }
    }

    /// Lengths 0, 1, 2, odd ones, and one element below, at and above every edge of the setting, with every root.
    ///
    /// Not the whole product: each (length, root) takes one of the types in turn, elements of 1, 3, 8, 24 and 300 bytes
    /// among them, ordered ones too; every root is taken by each of a reduce and a broadcast.
    pub fn lengths(&mut self, setting: &Setting) {
        let mut types = named(&["u8 Sum", "u64 Sum", "f32 Sum", "Complex<f64> Sum", "bf16 Max"]);
        types.extend(own_cases());
        let size = self.comm.size();
        let mut turn = self.plan.below(types.len());
        for edge in std::iter::once(0).chain(setting.edges(size)) {
            for around in [-1, 0, 1, 2, 9] {
                for root in 0..size {
                    let case = types[turn % types.len()];
                    turn += 1;
                    let whole = (edge / case.element.max(1)) as isize;
                    let len = (whole + around).max(0) as usize;
                    self.call(&case, Collective::Reduce, root, len);
                    self.call(&case, Collective::Broadcast, root, len);
                    // No root here, but as many types.
                    if root % 4 == 0 {
                        self.call(&case, Collective::Allreduce, 0, len);
                    }
                }
                self.call(&types[0], Collective::Barrier, 0, 0);
            }
        }
    }

    /// A few lengths with every root, one after the other without anything between: trees of different roots follow
    /// each other in the same rings.
    pub fn roots(&mut self, lens: &[usize]) {
        let types =
            named(&["u64 Sum", "i32 Max", "u16 BitXor", "u8 ordered", "[u64; 3] ordered", "[[u8; 3]; 100] ordered"]);
        for &len in lens {
            for root in 0..self.comm.size() {
                let case = types[self.plan.below(types.len())];
                let len = len * 8 / case.element;
                for what in [Collective::Reduce, Collective::Broadcast, Collective::Allreduce] {
                    if !self.plan.once_in(4) {
                        self.call(&case, what, root, len);
                    }
                }
            }
            self.call(&types[0], Collective::Barrier, 0, 0);
        }
    }

    /// A few lengths of 8-byte elements with a few roots, for very many ranks.
    pub fn few(&mut self, lens: &[usize]) {
        let types = named(&["u64 Sum", "[u64; 3] ordered"]);
        for &len in lens {
            for case in &types {
                let root = self.plan.below(self.comm.size());
                for what in Collective::ALL {
                    self.call(case, what, root, len);
                }
            }
        }
    }

    /// Lengths around sizes in bytes where calls across nodes change their ways. Messages just above each, if they are
    /// short, with every root, the others with one; types take turns.
    pub fn across(&mut self, edges: &[usize]) {
        const SHORT: usize = 16 << 10;
        let mut types = named(&["u64 Sum", "f32 Sum", "Complex<f64> Sum", "f16 Max", "bool LogicalOr"]);
        types.extend(cases().into_iter().filter(|case| case.name.ends_with("MinLoc")));
        types.extend(own_cases());
        let size = self.comm.size();
        let mut turn = self.plan.below(types.len());
        for &edge in edges {
            for around in [-1, 0, 1, 7] {
                let first = self.plan.below(size);
                let roots = if edge <= SHORT && around == 1 { size } else { 1 };
                for root in (first..first + roots).map(|root| root % size) {
                    let case = types[turn % types.len()];
                    turn += 1;
                    let len = (elements(edge, case.element) as isize + around).max(0) as usize;
                    self.call(&case, Collective::Reduce, root, len);
                    self.call(&case, Collective::Broadcast, root, len);
                    self.call(&case, Collective::Allreduce, 0, len);
                }
            }
            self.call(&types[0], Collective::Barrier, 0, 0);
        }
    }

    /// Checks that reductions really take the regime that was forced.
    ///
    /// # Errors
    /// Those of [`Communicator::explain`].
    ///
    /// # Panics
    /// When they do not.
    #[cfg(not(feature = "mpi"))]
    pub fn takes(&self, setting: &Setting) -> Result<(), crate::Error> {
        let Some(regime) = setting.regime else { return Ok(()) };
        // Only allreduces can be exchanges.
        let all = [Collective::Allreduce, Collective::Reduce];
        let forced = if setting.rules.starts_with("allreduce:") { &all[..1] } else { &all };
        for bytes in [0, 1, 100, 5000, 1 << 20] {
            for &what in forced {
                let explanation = self.comm.explain(what, bytes)?;
                assert_eq!(explanation.regime, regime, "{}: {what} of {bytes} bytes: {explanation}", self.label);
            }
        }
        Ok(())
    }
}
