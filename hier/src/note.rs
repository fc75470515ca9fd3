//! What a launcher tells all ranks through the segment: the machine, and the rules for trees.

use shm_core::Error;
use topo::Machine;

use crate::rules::TreeRules;

/// The note. Ranks read it instead of asking hwloc each for itself.
#[derive(Clone, Debug, Default)]
pub struct Note {
    /// The machine, if it could be discovered.
    pub machine: Option<Machine>,
    /// Trees by size.
    pub rules: TreeRules,
}

impl Note {
    /// The note's bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let machine = self.machine.as_ref().map(Machine::to_compact).unwrap_or_default();
        format!("{}\n{machine}", self.rules).into_bytes()
    }

    /// Reads a note.
    ///
    /// # Errors
    /// `Segment` when it is none.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let damaged = |why: String| Error::Segment {
            why: format!("its note cannot be read: {why}"),
            advice: "start the job again",
        };
        let text = std::str::from_utf8(bytes).map_err(|e| damaged(e.to_string()))?;
        let (rules, machine) = text.split_once('\n').ok_or_else(|| damaged("it has no second line".to_owned()))?;
        let machine = match machine {
            "" => None,
            text => Some(Machine::from_compact(text).map_err(|e| damaged(e.to_string()))?),
        };
        Ok(Self { machine, rules: rules.parse()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_comes_back() {
        let machine = Machine::synthetic("pack:2 core:4 pu:1").unwrap();
        let note = Note { machine: Some(machine.clone()), rules: "gather:kary:5".parse().unwrap() };
        let back = Note::from_bytes(&note.to_bytes()).unwrap();
        assert_eq!(back.rules, note.rules);
        assert_eq!(back.machine.unwrap().to_compact(), machine.to_compact());
        assert!(Note::from_bytes(&Note::default().to_bytes()).unwrap().machine.is_none());
        assert!(Note::from_bytes(b"\xff").is_err());
    }
}
