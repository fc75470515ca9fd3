//! What a call does: the table's word on it, who its leaders are, and the schedules, each looked up once.

use std::sync::Arc;

use shm_core::operator::Operator;
use shm_core::{Collective, Element};

use super::communicator::HierComm;
use super::error::Result;
use super::model::NetworkModel;
use super::rules::{Choice, ClusterRules, Rule, Setting};
use crate::schedule::{Algorithm, Goal, Program};
use crate::table::NetworkTable;

/// The ranks that reduce a share with each other, one of each node, and this rank's place among them.
#[derive(Clone)]
pub(super) struct Lane {
    pub peers: Arc<[usize]>,
    pub place: usize,
}

/// Leaders a node, share, whether nodes stand in the order of their ranks.
pub(super) type LaneKey = (usize, usize, bool);

/// Algorithm, goal, ranks, rank.
pub(super) type ProgramKey = (Algorithm, Goal, u32, u32);

/// Schedules use the tags below this one.
const TAGS: u32 = 16_000;

impl HierComm {
    /// What a call on `bytes` bytes with an operator that commutes does, for people.
    #[must_use]
    pub fn explain(&self, what: Collective, bytes: usize) -> String {
        let choice = self.choose(what, bytes, !self.strict);
        let nodes = self.placement.nodes();
        if nodes == 1 {
            return "within the node".to_owned();
        }
        if choice.one_sided && self.has_windows.get() != Some(false) {
            return format!("one-sided among {nodes} nodes, where the network can, else {}", choice.algorithm);
        }
        let slice = match self.slice_bytes(what, bytes, &choice) {
            slice if slice >= bytes => "whole".to_owned(),
            slice => format!("slices of {slice} bytes, {} in flight", choice.flight),
        };
        let source = match self.measured().map(|table| table.rule(what, bytes)) {
            Some(rule) if rule != Rule::default() => ", by the table",
            _ => "",
        };
        format!("{} among {nodes} nodes, leaders a node: {}, {slice}{source}", choice.algorithm, choice.leaders)
    }

    /// What was measured on such a communicator, if a table says something of it.
    pub(super) fn measured(&self) -> Option<&NetworkTable> {
        let placement = &self.placement;
        self.table.as_deref().filter(|table| table.fits(placement.nodes(), placement.fewest(), placement.most()))
    }

    /// Whether contributions may be combined in another order than that of ranks.
    pub(super) fn may_reorder<T: Element, O: Operator<T>>(&self, operator: &O) -> bool {
        operator.is_commutative() && !self.strict
    }

    /// Carries calls out by these rules from now on, the same on all ranks.
    pub(crate) fn set_rules(&mut self, rules: ClusterRules) {
        self.rules = rules;
        self.choices.take();
    }

    /// Sets what the network costs: choices follow from it.
    pub(super) fn set_model(&self, model: NetworkModel) {
        self.model.set(model);
        self.choices.take();
    }

    /// The table's word on a call.
    pub(super) fn choose(&self, what: Collective, bytes: usize, commutative: bool) -> Choice {
        let mut choices = self.choices.get();
        match choices[what as usize] {
            Some((of, kind, choice)) if (of, kind) == (bytes, commutative) => choice,
            _ => {
                let choice = self.choose_anew(what, bytes, commutative);
                choices[what as usize] = Some((bytes, commutative, choice));
                self.choices.set(choices);
                choice
            }
        }
    }

    fn choose_anew(&self, what: Collective, bytes: usize, commutative: bool) -> Choice {
        let setting = Setting {
            nodes: self.placement.nodes(),
            ranks: self.size(),
            fewest: self.placement.fewest(),
            block: self.placement.is_block(),
            commutative,
            network: self.model.get(),
        };
        let measured = self.measured().map_or(Rule::default(), |table| table.rule(what, bytes));
        self.rules.choose(what, bytes, setting, measured)
    }

    /// Says on stderr what a call does, once for each size class (`PHALANX_DEBUG`).
    pub(super) fn trace(&self, what: Collective, bytes: usize) {
        let class = 1_u64 << super::adapt::class(bytes).min(63);
        let mut traced = self.traced.get();
        if self.debug && self.rank == 0 && traced[what as usize] & class == 0 {
            traced[what as usize] |= class;
            self.traced.set(traced);
            shm_core::remark(format_args!(
                "{what} of {bytes} bytes on {} ranks: {}",
                self.size(),
                self.explain(what, bytes)
            ));
        }
    }

    /// The tag of the next run: all ranks count runs alike, whether they take part or not.
    pub(super) fn next_tag(&self) -> u32 {
        let run = self.runs.get();
        self.runs.set((run + 1) % TAGS);
        run
    }

    /// This node's place in the ring.
    pub(super) fn place_in_ring(&self) -> usize {
        self.ring.iter().position(|&node| node == self.here).unwrap_or(self.here)
    }

    /// The leaders of a share, round the ring, or in the order of nodes where operands must stay in order.
    pub(super) fn lane(&self, leaders: usize, share: usize, ordered: bool) -> Lane {
        let new = || {
            let leader = |node: usize| {
                let members = self.placement.members(node);
                members[share * members.len() / leaders]
            };
            let peers: Arc<[usize]> = match ordered {
                false => self.ring.iter().map(|&node| leader(node)).collect(),
                true => (0..self.placement.nodes()).map(leader).collect(),
            };
            let place = peers.iter().position(|&rank| rank == self.rank).unwrap_or(self.here);
            Lane { peers, place }
        };
        self.lanes.borrow_mut().entry((leaders, share, ordered)).or_insert_with(new).clone()
    }

    /// A program, kept for the next time.
    pub(super) fn program(&self, algorithm: Algorithm, goal: Goal, ranks: usize, rank: usize) -> Result<Arc<Program>> {
        let key = (algorithm, goal, ranks as u32, rank as u32);
        if let Some(program) = self.programs.borrow().get(&key) {
            return Ok(Arc::clone(program));
        }
        let program = Arc::new(algorithm.program(goal, key.2, key.3)?);
        self.programs.borrow_mut().insert(key, Arc::clone(&program));
        Ok(program)
    }
}
