//! Who exchanges with whom.

use std::fmt;
use std::str::FromStr;

/// What a rank does with its packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Pairs of ranks exchange.
    Swap,
    /// Ranks form cycles; each sends to the next one and receives from the one before.
    SendRecv,
}

impl Command {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Command::Swap => "swap",
            Command::SendRecv => "sendrecv",
        }
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Command {
    type Err = String;

    fn from_str(text: &str) -> Result<Command, String> {
        let found = [Command::Swap, Command::SendRecv].into_iter().find(|command| command.name() == text);
        found.ok_or_else(|| format!("{text:?} is no command: swap, sendrecv"))
    }
}

/// Cycles as they are written: `0-1-2,3-4`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cycles(pub Vec<Vec<usize>>);

impl fmt::Display for Cycles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cycle = |ranks: &Vec<usize>| ranks.iter().map(usize::to_string).collect::<Vec<_>>().join("-");
        f.write_str(&self.0.iter().map(cycle).collect::<Vec<_>>().join(","))
    }
}

impl FromStr for Cycles {
    type Err = String;

    fn from_str(text: &str) -> Result<Cycles, String> {
        let wrong = || format!("{text:?} are no cycles: write them like 0-1-2,3-4");
        let rank = |word: &str| word.trim().parse::<usize>().map_err(|_| wrong());
        let cycle = |words: &str| words.split('-').map(rank).collect::<Result<Vec<_>, String>>();
        let cycles = text.split(',').map(cycle).collect::<Result<Vec<_>, String>>()?;
        if let Some(short) = cycles.iter().find(|cycle| cycle.len() < 2) {
            return Err(format!("rank {} is alone in its cycle: a cycle has two ranks or more", short[0]));
        }
        Ok(Cycles(cycles))
    }
}

/// The partners of one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partners {
    /// To whom it sends.
    pub to: usize,
    /// From whom it receives.
    pub from: usize,
    /// Whether it sends first in an ordered protocol.
    pub first: bool,
}

/// Which ranks take part, and with whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// What they do.
    pub command: Command,
    /// How many ranks further the partner is.
    pub distance: usize,
    /// Only rank 0 and its partner, or the ranks of its cycle.
    pub only_zero: bool,
    /// The cycles; by the distance where there are none.
    pub cycles: Option<Cycles>,
}

impl Default for Pattern {
    /// Neighbours swap.
    fn default() -> Pattern {
        Pattern { command: Command::Swap, distance: 1, only_zero: false, cycles: None }
    }
}

impl Pattern {
    /// The partners by rank; none for a rank that takes no part.
    ///
    /// # Errors
    ///
    /// What does not fit `size` ranks, and what would.
    pub fn partners(&self, size: usize) -> Result<Vec<Option<Partners>>, String> {
        let cycles = match (&self.cycles, self.command) {
            (Some(_), Command::Swap) => return Err("cycles are those of sendrecv: add --command sendrecv".into()),
            (Some(cycles), Command::SendRecv) => given(&cycles.0, size)?,
            (None, Command::Swap) => pairs(self.distance, size, self.only_zero)?,
            (None, Command::SendRecv) => by_distance(self.distance, size)?,
        };
        let mut partners = vec![None; size];
        for cycle in cycles.iter().filter(|cycle| !self.only_zero || cycle.contains(&0)) {
            for (place, &rank) in cycle.iter().enumerate() {
                let length = cycle.len();
                let (to, from) = (cycle[(place + 1) % length], cycle[(place + length - 1) % length]);
                partners[rank] = Some(Partners { to, from, first: place % 2 == 0 });
            }
        }
        Ok(partners)
    }
}

fn pairs(distance: usize, size: usize, only_zero: bool) -> Result<Vec<Vec<usize>>, String> {
    if distance == 0 || distance >= size {
        return Err(format!(
            "a partner {distance} ranks away among {size} ranks: distances are 1 to {}",
            size.max(2) - 1
        ));
    }
    if only_zero {
        return Ok(vec![vec![0, distance]]);
    }
    if !size.is_multiple_of(2 * distance) {
        return Err(format!(
            "{size} ranks cannot all be paired {distance} apart: that takes a multiple of {} ranks, or --only-zero",
            2 * distance
        ));
    }
    Ok((0..size).filter(|rank| (rank / distance).is_multiple_of(2)).map(|rank| vec![rank, rank + distance]).collect())
}

fn by_distance(distance: usize, size: usize) -> Result<Vec<Vec<usize>>, String> {
    if size < 2 || distance.is_multiple_of(size) {
        return Err(format!(
            "{distance} ranks further is the same rank among {size}: distances are 1 to {}",
            size.max(2) - 1
        ));
    }
    let mut seen = vec![false; size];
    let mut cycles = Vec::new();
    for start in 0..size {
        let mut cycle = Vec::new();
        let mut rank = start;
        while !std::mem::replace(&mut seen[rank], true) {
            cycle.push(rank);
            rank = (rank + distance) % size;
        }
        if !cycle.is_empty() {
            cycles.push(cycle);
        }
    }
    Ok(cycles)
}

fn given(cycles: &[Vec<usize>], size: usize) -> Result<Vec<Vec<usize>>, String> {
    let mut seen = vec![false; size];
    for &rank in cycles.iter().flatten() {
        match seen.get_mut(rank) {
            None => return Err(format!("rank {rank} is in a cycle, and there are {size} ranks")),
            Some(seen) if *seen => return Err(format!("rank {rank} is in the cycles twice")),
            Some(seen) => *seen = true,
        }
    }
    match seen.iter().position(|seen| !seen) {
        Some(rank) => Err(format!("rank {rank} is in no cycle: all ranks must be in one")),
        None => Ok(cycles.to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(command: Command, distance: usize) -> Pattern {
        Pattern { command, distance, only_zero: false, cycles: None }
    }

    /// Whoever sends is received from, nobody exchanges with itself, and the two of a pair do not both send first.
    #[test]
    fn everybody_is_the_partner_of_its_partner() {
        for command in [Command::Swap, Command::SendRecv] {
            for size in 2..20 {
                for distance in 1..size {
                    let Ok(all) = pattern(command, distance).partners(size) else { continue };
                    assert!(all.iter().all(Option::is_some), "{command} {distance} {size}");
                    for (rank, partners) in all.iter().enumerate() {
                        let Partners { to, from, .. } = partners.unwrap();
                        assert!(to != rank && all[to].unwrap().from == rank && all[from].unwrap().to == rank);
                        assert!(command == Command::SendRecv || (to == from && to.abs_diff(rank) == distance));
                    }
                    // Somebody in each cycle receives first, or all would wait for each other.
                    for start in 0..size {
                        let mut rank = start;
                        let waits = std::iter::repeat_with(|| {
                            rank = all[rank].unwrap().to;
                            rank
                        });
                        assert!(waits.take(size).any(|rank| !all[rank].unwrap().first));
                    }
                }
            }
        }
    }

    #[test]
    fn pairs_and_cycles_by_hand() {
        let all = pattern(Command::Swap, 2).partners(4).unwrap();
        assert_eq!(all[0], Some(Partners { to: 2, from: 2, first: true }));
        assert_eq!(all[3], Some(Partners { to: 1, from: 1, first: false }));
        let all = pattern(Command::SendRecv, 2).partners(6).unwrap();
        assert_eq!(all[5], Some(Partners { to: 1, from: 3, first: true }));
        let zero = Pattern { only_zero: true, ..pattern(Command::Swap, 3) }.partners(5).unwrap();
        assert_eq!(zero.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false, false, true, false]);
        let zero = Pattern { only_zero: true, ..pattern(Command::SendRecv, 2) }.partners(4).unwrap();
        assert_eq!(zero.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false, true, false]);
        let own = Pattern { cycles: Some("0-2-1,4-3".parse().unwrap()), ..pattern(Command::SendRecv, 1) };
        assert_eq!(own.partners(5).unwrap()[1], Some(Partners { to: 0, from: 2, first: true }));
    }

    #[test]
    fn what_cannot_be_is_refused_with_a_word() {
        let error = |pattern: Pattern, size: usize| pattern.partners(size).unwrap_err();
        assert!(error(pattern(Command::Swap, 1), 3).contains("multiple of 2"));
        assert!(error(pattern(Command::Swap, 4), 4).contains("1 to 3"));
        assert!(error(pattern(Command::Swap, 1), 1).contains("1 to 1"));
        assert!(error(pattern(Command::SendRecv, 4), 4).contains("same rank"));
        let own = |text: &str| Pattern { cycles: Some(text.parse().unwrap()), ..pattern(Command::SendRecv, 1) };
        assert!(error(own("0-1"), 3).contains("rank 2 is in no cycle"));
        assert!(error(own("0-1,1-2"), 3).contains("rank 1 is in the cycles twice"));
        assert!(error(own("0-3"), 3).contains("there are 3 ranks"));
        assert!(error(Pattern { command: Command::Swap, ..own("0-1") }, 2).contains("sendrecv"));
    }

    #[test]
    fn cycles_are_read_as_they_are_written() {
        assert_eq!("0-1-2, 3-4".parse::<Cycles>().unwrap().to_string(), "0-1-2,3-4");
        for text in ["", "0", "0-1,2", "a-b", "0-1-"] {
            assert!(text.parse::<Cycles>().is_err(), "{text}");
        }
        assert_eq!("sendrecv".parse(), Ok(Command::SendRecv));
        assert!("exchange".parse::<Command>().is_err());
    }
}
