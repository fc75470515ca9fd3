//! What the environment asks for: `PHALANX_DISABLE`, `PHALANX_AFTER`, `PHALANX_VERIFY`, `PHALANX_STATS`,
//! `PHALANX_TAKE`. What rank 0 sees counts for all ranks.

use crate::gains::{self, Beneath};
use crate::what::{COUNT, NAMES, What};

/// What the environment asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Collectives that are left to the library, by place.
    pub disabled: [bool; COUNT],
    /// A communicator other than the world is taken over with the call of this number of its collectives, from 1 on; 0:
    /// as [`usual_after`] says.
    pub after: u32,
    /// Every result is compared with that of the library.
    pub verify: bool,
    /// Calls are counted and timed.
    pub stats: bool,
    /// Calls that gain nothing are carried out, too.
    pub take_all: bool,
    /// Whose speed the calls are compared with.
    pub beneath: Beneath,
}

/// The call with which a new communicator is taken over, where nobody says otherwise: making one costs about as much as
/// the calls before it would gain. It makes all members wait for each other, which takes long where ranks outnumber
/// cores.
#[must_use]
pub fn usual_after(is_crowded: bool) -> u32 {
    if is_crowded { 1000 } else { 32 }
}

impl Default for Settings {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Settings {
    /// Those of an environment without any of the variables.
    pub const DEFAULT: Self = Self {
        disabled: [false; COUNT],
        after: 0,
        verify: false,
        stats: false,
        take_all: false,
        beneath: Beneath::OpenMpi,
    };

    /// Those that `lookup`, the environment, names.
    ///
    /// # Errors
    /// A variable that is not understood, and what would be right.
    pub fn from(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let mut settings = Self::default();
        for name in lookup("PHALANX_DISABLE").unwrap_or_default().split(',').map(str::trim) {
            match (name, NAMES.iter().position(|known| *known == name || (*known == "bcast" && name == "broadcast"))) {
                ("", _) => {}
                ("all", _) => settings.disabled = [true; COUNT],
                (_, Some(place)) => settings.disabled[place] = true,
                _ => return Err(format!("PHALANX_DISABLE: {name:?} is none of {}, all", NAMES.join(", "))),
            }
        }
        if let Some(text) = lookup("PHALANX_AFTER").filter(|text| !text.is_empty()) {
            settings.after = match text.trim().parse() {
                Ok(after) if after > 0 => after,
                _ => return Err(format!("PHALANX_AFTER: {text:?} is no number of calls, from 1 to {}", u32::MAX)),
            };
        }
        let is_on = |name| lookup(name).is_some_and(|value| !matches!(value.trim(), "" | "0"));
        (settings.verify, settings.stats) = (is_on("PHALANX_VERIFY"), is_on("PHALANX_STATS"));
        settings.take_all = match lookup("PHALANX_TAKE").unwrap_or_default().trim() {
            "" | "gains" => false,
            "all" => true,
            other => return Err(format!("PHALANX_TAKE: {other:?} is neither gains nor all")),
        };
        Ok(settings)
    }

    /// As words that rank 0 sends to the others.
    #[must_use]
    pub fn to_words(self) -> [u64; 6] {
        let disabled = self.disabled.iter().rev().fold(0, |bits, &bit| bits << 1 | u64::from(bit));
        let flags = [self.verify, self.stats, self.take_all].map(u64::from);
        [disabled, u64::from(self.after), flags[0], flags[1], flags[2], self.beneath.to_word()]
    }

    /// Back from words.
    #[must_use]
    pub fn from_words([disabled, after, verify, stats, take_all, beneath]: [u64; 6]) -> Self {
        let disabled = std::array::from_fn(|place| disabled >> place & 1 == 1);
        Self {
            disabled,
            after: after as u32,
            verify: verify != 0,
            stats: stats != 0,
            take_all: take_all != 0,
            beneath: Beneath::from_word(beneath),
        }
    }

    /// Whether a call on one node is carried out, by what all ranks know of it: of `ranks` ranks, on so many bytes.
    #[inline]
    #[must_use]
    pub fn takes(&self, what: What, ranks: usize, bytes: usize) -> bool {
        what.collective().is_some() || self.take_all || gains::gains(self.beneath, what, ranks, bytes)
    }

    /// Whether nobody needs to see the calls of a collective: all are left to the library, and not counted.
    #[must_use]
    pub fn leaves(&self, what: What) -> bool {
        let is_slower = !self.take_all && what.collective().is_none() && gains::loses(self.beneath, what);
        !self.stats && (self.is_disabled(what) || is_slower)
    }

    /// Whether a collective is left to the library.
    #[inline]
    #[must_use]
    pub fn is_disabled(&self, what: What) -> bool {
        self.disabled[what as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Result<Settings, String> {
        Settings::from(|wanted| {
            variables.iter().find(|(name, _)| *name == wanted).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn variables_are_understood() {
        assert_eq!(of(&[]), Ok(Settings::default()));
        let settings =
            of(&[("PHALANX_DISABLE", "bcast, barrier"), ("PHALANX_AFTER", "1"), ("PHALANX_STATS", "a.json")]);
        let expected =
            Settings { disabled: std::array::from_fn(|place| place < 2), after: 1, stats: true, ..Settings::default() };
        assert_eq!(settings, Ok(expected));
        assert!(expected.is_disabled(What::Broadcast) && !expected.is_disabled(What::Reduce));
        assert_eq!(of(&[("PHALANX_DISABLE", "all"), ("PHALANX_VERIFY", "0")]).unwrap().disabled, [true; COUNT]);
        let error = of(&[("PHALANX_AFTER", "99999999999")]).unwrap_err();
        assert!(error.contains("4294967295"), "{error}");
        for (name, value) in
            [("PHALANX_DISABLE", "bcats"), ("PHALANX_AFTER", "0"), ("PHALANX_AFTER", "soon"), ("PHALANX_TAKE", "some")]
        {
            let error = of(&[(name, value)]).unwrap_err();
            assert!(error.contains(name) && error.contains(value), "{error}");
        }
    }

    #[test]
    fn words_carry_them() {
        for bits in 0..1 << COUNT {
            let disabled = std::array::from_fn(|place| bits >> place & 1 == 1);
            let beneath = Beneath::from_word(bits as u64 % 3);
            let (verify, stats, take_all) = (bits % 3 == 0, bits % 2 == 0, bits % 5 == 0);
            let settings = Settings { disabled, after: 7, verify, stats, take_all, beneath };
            assert_eq!(Settings::from_words(settings.to_words()), settings);
        }
    }
}
