//! A machine as one line of text, short enough for an environment variable.
//!
//! The text is the word `machine/1`, and then one word for each PU: `os:core:l3:numa:package`. Fields at the end that
//! are the same as those of the PU before are left out. Four cores of two hardware threads on two sockets:
//! `machine/1 0:0:0:0:0 1 2:1 3 4:2:0:0:1 5 6:3 7`.

use crate::{Error, Machine, Pu};

const VERSION: &str = "machine/1";

impl Machine {
    /// Writes the machine as one short line of text (some 6 bytes a PU), without characters that a shell or an
    /// environment variable would mind.
    ///
    /// A launcher runs [`Machine::discover`] once and hands this text to its ranks.
    pub fn to_compact(&self) -> String {
        let mut text = VERSION.to_owned();
        let mut before = [None; 4];
        for pu in self.pus() {
            let fields = [pu.core, pu.l3, pu.numa, pu.package].map(Some);
            let written = (0..4).rev().find(|&i| fields[i] != before[i]).map_or(0, |last| last + 1);
            text.push_str(&format!(" {}", pu.os));
            for field in fields[..written].iter().flatten() {
                text.push_str(&format!(":{field}"));
            }
            before = fields;
        }
        text
    }

    /// Reads what [`Machine::to_compact`] wrote.
    ///
    /// # Errors
    ///
    /// * [`Error::Compact`] when the text is something else, or was cut or changed on its way.
    /// * [`Error::Machine`] when its PUs do not make a machine.
    pub fn from_compact(text: &str) -> Result<Self, Error> {
        let mut words = text.split_ascii_whitespace();
        let version = words.next().unwrap_or_default();
        if version != VERSION {
            return Err(Error::Compact { word: 1, reason: format!("{version:?} instead of {VERSION:?}") });
        }
        let mut before = None;
        let mut pus = Vec::new();
        for (i, word) in words.enumerate() {
            let refused = |reason: &str| Error::Compact { word: i + 2, reason: format!("{word:?}: {reason}") };
            let mut fields = word.split(':');
            let mut next = || fields.next().map(str::parse::<usize>).transpose().map_err(|_| refused("not a number"));
            let os = next()?.ok_or_else(|| refused("no PU"))?;
            let or_as_before = |field: Option<usize>, before: Option<usize>| {
                field.or(before).ok_or_else(|| refused("the first PU must have all five fields"))
            };
            let pu = Pu {
                os,
                core: or_as_before(next()?, before.map(|pu: Pu| pu.core))?,
                l3: or_as_before(next()?, before.map(|pu| pu.l3))?,
                numa: or_as_before(next()?, before.map(|pu| pu.numa))?,
                package: or_as_before(next()?, before.map(|pu| pu.package))?,
            };
            if next()?.is_some() {
                return Err(refused("more than five fields"));
            }
            pus.push(pu);
            before = Some(pu);
        }
        Machine::new(pus)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_in_the_module_page() {
        let pus = (0..8).map(|os| Pu { os, core: os / 2, l3: 0, numa: 0, package: os / 4 }).collect();
        let machine = Machine::new(pus).unwrap();
        let text = machine.to_compact();
        assert_eq!(text, "machine/1 0:0:0:0:0 1 2:1 3 4:2:0:0:1 5 6:3 7");
        assert_eq!(Machine::from_compact(&text).unwrap(), machine);
    }

    #[test]
    fn refuses_other_text() {
        for (text, why) in [
            ("", "word 1"),
            ("machine/2 0:0:0:0:0", "machine/2"),
            ("machine/1", "there is none"),
            ("machine/1 0:0:0:0", "all five fields"),
            ("machine/1 0:0:0:0:0 x", "word 3"),
            ("machine/1 0:0:0:0:0:0", "more than five"),
            ("machine/1 -1:0:0:0:0", "not a number"),
            ("machine/1 0:0:0:0:0 0", "listed twice"),
            ("machine/1 99999999999999999999999:0:0:0:0", "not a number"),
        ] {
            let error = Machine::from_compact(text).unwrap_err().to_string();
            assert!(error.contains(why), "{text:?}: {error}");
        }
    }
}
