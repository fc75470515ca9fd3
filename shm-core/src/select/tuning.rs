//! The table.

use super::choice::{Collective, Regime};
use super::default;
use super::rule::{EMPTY, Rule};
use super::selection::Selection;
use crate::error::{Error, Result};
use crate::first_processor;
use crate::segment::layout::MOST_RANKS;

/// The most rules of a table.
pub const MOST_RULES: usize = 72;

/// The table by which calls choose: rules, of which the first one that fits counts. Every rank of a job sees the one
/// that its creator wrote into the segment, where `R` is an array.
#[derive(Clone, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Tuning<R = Vec<Rule>> {
    rules: R,
    /// Bytes from which private buffers are reached by kernel-assisted copies, by [`Collective`], where the system
    /// allows it, and no rule says it; `u64::MAX` for never, and for broadcasts [`REACH_TRIED`] where trials are to say
    /// it.
    pub reach_from: [u64; 4],
    /// Bytes from which private buffers that come again and again are moved into the heap, whole page by whole page;
    /// `u64::MAX` for never.
    pub convert_from: u64,
    /// Ranks up to which lines are exchanged flat (everybody reads everybody, or the root everybody), in jobs with a
    /// core for each rank.
    pub flat_ranks: u32,
    /// The same in jobs whose ranks share cores.
    pub flat_ranks_crowded: u32,
    /// The regime that is forced on a collective, by [`Collective`]: 0 for none, else the [`Regime`]'s number.
    pub forced: [u32; 4],
    /// Bytes of up cells a rank; 0 to derive them from the number of ranks.
    pub up_bytes: u32,
    /// Bytes of down cells a rank; 0 to derive them from the number of ranks.
    pub down_bytes: u32,
    /// How cells are filled: 0 in the way that measuring finds best, 1 by ordinary stores, 2 past the caches, 3 by the
    /// processor's string instruction, where it has one, 4 so, and down cells, and results that came back in up cells,
    /// copied out by it too. Slices shorter than 5 KiB go by ordinary loads and stores, and so do cells that two ranks
    /// with equal blocks fill in turn. Results go the same way with 1 and with 2; else they are stored past the caches
    /// where those cannot hold the buffers of all ranks.
    pub stream: u32,
    /// Calls of a private buffer that come before its pages are moved; 0 to move it at its first call.
    pub convert_after: u32,
    /// Ranks that reach into one rank's private memory at a time, at most: the others wait for their turn, but for a
    /// millisecond only. 0 for as many as there are.
    pub readers: u32,
    /// Whether buffers in the heap are used where they lie, by the sizes of the rules: 0 if trials have not shown that
    /// cells cost their callers less, 1 always.
    pub direct: u32,
    /// 1 to combine contributions in rank order, one after the other, in every call.
    pub strict: u32,
    /// 1 to print what is chosen, once for each kind of call.
    pub debug: u32,
}

/// The rules of a table in a segment.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct RuleArray {
    /// `length` rules; what follows is none.
    rules: [Rule; MOST_RULES],
    length: u64,
}

impl AsRef<[Rule]> for RuleArray {
    fn as_ref(&self) -> &[Rule] {
        // Of a damaged length none, which `check` refuses.
        self.rules.get(..self.length as usize).unwrap_or_default()
    }
}

/// [`Tuning::stream`]: nothing is stored past the caches.
pub(crate) const STREAM_NEVER: u32 = 1;

/// [`Tuning::stream`]: cells are always filled past the caches, and results stored.
pub(crate) const STREAM_ALWAYS: u32 = 2;

/// [`Tuning::stream`]: cells are always filled by the processor's string instruction.
pub(crate) const STREAM_BY_STRING: u32 = 3;

/// [`Tuning::stream`]: and copied out by it too.
pub(crate) const STREAM_BOTH_BY_STRING: u32 = 4;

/// [`Tuning::direct`]: no trials.
pub const DIRECT_ALWAYS: u32 = 1;

/// Ranks up to which lines are exchanged flat, where nobody says otherwise.
pub const FLAT_RANKS: u32 = 32;

/// [`Tuning::reach_from`] of broadcasts: of two ranks trials say it of long messages; else never.
pub const REACH_TRIED: u64 = u64::MAX - 1;

/// [`Tuning::reach_from`], where nobody says otherwise.
pub const REACH_FROM: [u64; 4] = [u64::MAX, REACH_TRIED, u64::MAX, u64::MAX];

/// [`Tuning::readers`], where nobody says otherwise. Each copy holds the reader's pages and counts in the owner's page
/// tables (Chakraborty et al., CLUSTER 2017, who throttle reads so); what is best hangs on the machine, and `phalanx
/// tune` compares some where reaching wins.
pub const READERS: u32 = 4;

/// [`Tuning::convert_from`], where pages are to be moved and nobody says from which size on.
pub const CONVERT_FROM: u64 = 128 << 10;

/// [`Tuning::convert_after`], where nobody says otherwise.
pub const CONVERT_AFTER: u32 = 32;

impl Default for Tuning {
    /// The built-in table.
    fn default() -> Self {
        Self::over(default::RULES.to_vec())
    }
}

impl Tuning {
    fn over(rules: Vec<Rule>) -> Self {
        Self {
            rules,
            reach_from: REACH_FROM,
            convert_from: u64::MAX,
            flat_ranks: FLAT_RANKS,
            flat_ranks_crowded: FLAT_RANKS,
            forced: [0; 4],
            up_bytes: 0,
            down_bytes: 0,
            stream: 0,
            convert_after: CONVERT_AFTER,
            readers: READERS,
            direct: 0,
            strict: 0,
            debug: 0,
        }
    }

    /// A table of these rules, and of the built-in ones for what they do not speak of.
    ///
    /// # Errors
    /// `Tuning` when they are too many, or one cannot be carried out.
    pub fn of(rules: &[Rule]) -> Result<Self> {
        let table = Self::over([rules, default::RULES].concat());
        table.check()?;
        Ok(table)
    }

    /// The table as it is on a machine whose processors have a second-level cache of so many KiB (0 where that is not
    /// known): rules for larger ones are left out, the others are for whatever machine. Before that only those count
    /// that are.
    #[must_use]
    pub fn on_machine(&self, l2: u32) -> Self {
        let mut table = self.clone();
        table.rules.retain(|rule| rule.l2_from() <= l2);
        table.rules.iter_mut().for_each(|rule| *rule = rule.with_l2_from(0));
        table
    }

    /// The same on this machine, as far as this process is let see it. The ranks of a job go by what its creator saw.
    #[must_use]
    pub fn here(&self) -> Self {
        self.on_machine(first_processor::l2())
    }

    /// Has buffers in the job's heap used where they lie from so many bytes on, by the rules from the one at `at` on.
    pub fn set_direct_from(&mut self, at: usize, bytes: u64) {
        self.rules_mut().iter_mut().skip(at).for_each(|rule| *rule = rule.with_direct_from(bytes));
    }

    pub(super) fn rules_mut(&mut self) -> &mut [Rule] {
        &mut self.rules
    }

    /// As it lies in a segment: of as many rules as there can be, at most.
    pub(crate) fn to_array(&self) -> Tuning<RuleArray> {
        let mut rules = RuleArray { rules: [EMPTY; MOST_RULES], length: self.rules.len() as u64 };
        rules.rules.iter_mut().zip(&self.rules).for_each(|(place, rule)| *place = *rule);
        Tuning {
            rules,
            reach_from: self.reach_from,
            convert_from: self.convert_from,
            flat_ranks: self.flat_ranks,
            flat_ranks_crowded: self.flat_ranks_crowded,
            forced: self.forced,
            up_bytes: self.up_bytes,
            down_bytes: self.down_bytes,
            stream: self.stream,
            convert_after: self.convert_after,
            readers: self.readers,
            direct: self.direct,
            strict: self.strict,
            debug: self.debug,
        }
    }
}

impl<R: AsRef<[Rule]>> Tuning<R> {
    /// The rules, of which the first one that fits counts.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        self.rules.as_ref()
    }

    /// What counts on a communicator of `size` ranks, in a job with `crowd` ranks for each core (rounded up).
    #[must_use]
    pub fn select(&self, size: usize, crowd: u32) -> Selection {
        Selection::new(self, size, crowd)
    }

    /// The rule for calls of `what`.
    pub(super) fn rule(&self, what: Collective, size: usize, crowd: u32) -> Option<&Rule> {
        let mut fitting = self.rules().iter().filter(|rule| rule.fits(what, size, crowd));
        match self.strict {
            0 => fitting.find(|rule| !rule.is_strict()),
            _ => fitting.clone().find(|rule| rule.is_strict()).or_else(|| fitting.next()),
        }
    }

    /// Refuses a table that could not be carried out, or has no answer to some call.
    pub(crate) fn check(&self) -> Result<()> {
        let refuse = |why: String| Err(Error::Tuning { why });
        for (name, value, least, most) in [
            ("flat_ranks", self.flat_ranks, 1, MOST_RANKS as u32),
            ("flat_ranks_crowded", self.flat_ranks_crowded, 1, MOST_RANKS as u32),
            ("stream", self.stream, 0, STREAM_BOTH_BY_STRING),
            ("readers", self.readers, 0, MOST_RANKS as u32),
            ("direct", self.direct, 0, DIRECT_ALWAYS),
            ("up_bytes", self.up_bytes, 0, 1 << 28),
            ("down_bytes", self.down_bytes, 0, 1 << 28),
        ] {
            if !(least..=most).contains(&value) {
                return refuse(format!("{name} = {value} is not within {least}..={most}"));
            }
        }
        let length = self.rules().len();
        if length > MOST_RULES {
            return refuse(format!("{length} rules with the built-in ones; there can be {MOST_RULES}"));
        }
        self.rules().iter().try_for_each(Rule::check)?;
        for what in Collective::ALL {
            let answers = |size: usize| self.rules().iter().any(|rule| rule.fits_all_crowds(what, size));
            if let Some(size) = (1..=MOST_RANKS).find(|&size| !answers(size)) {
                return refuse(format!(
                    "there is no rule for {what} on {size} ranks, however many there are for each core"
                ));
            }
            let forced = self.forced[what as usize];
            let regime = Regime::from_number(forced);
            if forced != 0 && !regime.is_some_and(|regime| regime.serves(what)) {
                return refuse(format!("{what} has no algorithm {forced}"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::rule::Band;
    use super::*;

    #[test]
    fn the_built_in_table_can_be_carried_out() {
        for l2 in [0, 512, 1024, 2048, u32::MAX] {
            Tuning::default().on_machine(l2).check().unwrap();
        }
    }

    #[test]
    fn rules_for_large_caches_count_where_there_are_such() {
        let band = |from| [Band::line(0), Band::cells(from, (8, 4096), (8, 4096))];
        let rule = |from| Rule::new(Collective::Reduce, &band(from)).unwrap();
        let table = Tuning::of(&[rule(1000).with_l2_from(2048), rule(2000).with_l2_from(1024), rule(3000)]).unwrap();
        let from = |table: &Tuning| table.select(2, 1).bands(Collective::Reduce)[1].from;
        assert_eq!(from(&table), 3000);
        for (l2, expected) in [(0, 3000), (1023, 3000), (1024, 2000), (2047, 2000), (2048, 1000), (u32::MAX, 1000)] {
            let there = table.on_machine(l2);
            assert_eq!(from(&there), expected, "{l2}");
            // It has been decided.
            assert_eq!(there.on_machine(0), there);
            assert!(there.rules().iter().all(|rule| rule.l2_from() == 0));
        }
        assert_eq!(table.on_machine(0).rules().len() + 2, table.rules().len() - for_large(&Tuning::default()));
    }

    fn for_large(table: &Tuning) -> usize {
        table.rules().iter().filter(|rule| rule.l2_from() > 0).count()
    }
}
