//! Trials take turns: of all that a program may have in one loop one runs alone.

/// Calls that find another trial running, in a row, until that is taken for one whose calls are not made any more.
const GIVEN_UP: u32 = 256;

/// Whose trial is running, of all that a program may have in one loop: one alone, since another one would make a
/// difference to the time between calls. Where ranks make the same calls it is the same one.
#[derive(Debug, Default)]
pub(in crate::regime) struct Turns {
    holder: Option<usize>,
    waited: u32,
    /// Whether the holder has waited for the others long enough: it goes on whoever comes first.
    insists: bool,
    /// Whether others are on trial that have turns of their own, and come first.
    pub yields: bool,
}

impl Turns {
    /// Whether this one may go on, or begin.
    pub(super) fn has(&mut self, who: usize) -> bool {
        let holds = self.holder == Some(who);
        let free = if self.yields { holds && self.insists } else { holds || self.holder.is_none() };
        if !free && self.waited < GIVEN_UP {
            self.waited += 1;
            return false;
        }
        *self = Self { holder: Some(who), waited: 0, insists: !free || holds && self.insists, ..*self };
        true
    }

    /// The trial that is running has ended.
    pub(super) fn end(&mut self) {
        (self.holder, self.insists) = (None, false);
    }

    pub fn are_taken(&self) -> bool {
        self.holder.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_yields_waits_for_a_while() {
        let mut turns = Turns { yields: true, ..Turns::default() };
        assert_eq!((0..1000).position(|_| turns.has(7)), Some(GIVEN_UP as usize));
        // A trial whose calls are made no more is as good as none, for as long as this one goes on.
        assert!((0..1000).all(|_| turns.has(7)) && !turns.has(8));
    }
}
