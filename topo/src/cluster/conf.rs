//! Reading Slurm's `topology.conf` (the plugin `topology/tree`), line by line.

use std::path::Path;

use super::build::{Line, Place};
use super::error::Fault;
use super::{Cluster, Error, MOST_HOSTS, host_list};

/// How many characters of a wrong word an error shows.
const SHOWN: usize = 60;

impl Cluster {
    /// Reads a cluster from a file in the form of Slurm's `topology.conf`.
    ///
    /// # Errors
    ///
    /// * [`Error::File`] when the file cannot be read.
    /// * [`Error::InFile`] with what [`Cluster::from_topology_conf`] says of its text.
    pub fn from_topology_file(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let text = crate::read_text(path).map_err(|source| Error::File { path: path.to_owned(), source })?;
        Self::from_topology_conf(&text).map_err(|error| Error::InFile { path: path.to_owned(), error: Box::new(error) })
    }

    /// Reads a cluster from a text in the form of Slurm's `topology.conf`.
    ///
    /// Each line describes a switch: `SwitchName=` with its name, `Nodes=` with the hosts and `Switches=` with the
    /// switches below it, both as [host lists](super::expand), and `LinkSpeed=` with a number. Keys are read in any
    /// case and order; a value may stand in double quotes. What follows a `#` is passed over, and a line that ends
    /// with a `\` goes on in the next one.
    ///
    /// Several switches without a switch above them are joined by one more, and [`Cluster::notes`] says so.
    ///
    /// ```
    /// # fn main() -> Result<(), topo::cluster::Error> {
    /// let cluster = topo::Cluster::from_topology_conf("
    ///     SwitchName=s0  Nodes=n[0-3]
    ///     SwitchName=s1  Nodes=n[4-7]
    ///     SwitchName=top Switches=s[0-1]   # the trunk
    /// ")?;
    /// assert_eq!((cluster.hosts().len(), cluster.switches().len(), cluster.links()), (8, 3, 10));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// * [`Error::Conf`] with line and column of what cannot be read, of a host or a switch that hangs on two switches,
    ///   of a switch that is nowhere described, of switches in a circle, and of lists that are empty or too long.
    pub fn from_topology_conf(text: &str) -> Result<Self, Error> {
        let mut lines = Vec::new();
        let mut logical = Letters::default();
        let mut names = 0;
        for (number, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim_end();
            let (line, goes_on) = line.strip_suffix('\\').map_or((line, false), |line| (line, true));
            logical.push(line, number + 1);
            if goes_on {
                continue;
            }
            if let Some(line) = read_line(&logical)? {
                // Counted while reading: lines of long lists would fill the memory.
                names += line.hosts.len() + line.switches.len();
                if names > MOST_HOSTS {
                    let reason = format!("with this switch more than {MOST_HOSTS} hosts and switches are listed");
                    return Err(line.place.error(line.name, reason, "check the numbers of the lists".to_owned()));
                }
                lines.push(line);
            }
            logical = Letters::default();
        }
        lines.extend(read_line(&logical)?);
        Cluster::build(lines)
    }
}

/// The letters of a line and of those that continue it, and where in the text each stands.
#[derive(Default)]
struct Letters {
    letters: Vec<char>,
    places: Vec<Place>,
}

impl Letters {
    fn push(&mut self, text: &str, line: usize) {
        for (before, letter) in text.chars().enumerate() {
            self.letters.push(letter);
            self.places.push(Place { line, column: before + 1 });
        }
    }

    /// Where the letter of this index stands; just after the last one for what is missing at the end.
    fn place(&self, at: usize) -> Place {
        let beyond = || self.places.last().map(|&last| Place { column: last.column + 1, ..last });
        self.places.get(at).copied().or_else(beyond).unwrap_or(Place { line: 1, column: 1 })
    }

    fn error(&self, Fault { at, mut found, reason, instead }: Fault) -> Error {
        if found.chars().count() > SHOWN {
            found = found.chars().take(SHOWN).chain("..".chars()).collect();
        }
        self.place(at).error(found, reason, instead)
    }

    /// The index of the first letter from `at` on for which `is` holds, or of the end.
    fn find(&self, at: usize, is: impl Fn(char) -> bool) -> usize {
        self.letters[at..].iter().position(|&letter| is(letter)).map_or(self.letters.len(), |length| at + length)
    }

    fn text(&self, range: std::ops::Range<usize>) -> String {
        self.letters[range].iter().collect()
    }
}

/// `Key=Value`: where the key starts, and the letters of the value.
struct Pair {
    key: String,
    at: usize,
    value: std::ops::Range<usize>,
}

const KEYS: &str = "write `SwitchName=`, `Nodes=`, `Switches=` or `LinkSpeed=`, each with its value";

/// Parts a line into its pairs.
fn pairs(line: &Letters) -> Result<Vec<Pair>, Fault> {
    let mut pairs = Vec::new();
    let mut at = line.find(0, |letter| !letter.is_whitespace());
    while at < line.letters.len() {
        let end = line.find(at, |letter| letter == '=' || letter.is_whitespace());
        let key = line.text(at..end);
        let equals = line.find(end, |letter| !letter.is_whitespace());
        if line.letters.get(equals) != Some(&'=') {
            let reason = "a word without a `=` after it";
            return Err(Fault::new(
                at,
                key,
                reason,
                format!("{KEYS}, and no blank in a list, nor where a line goes on"),
            ));
        }
        let mut start = line.find(equals + 1, |letter| !letter.is_whitespace());
        let mut end = line.find(start, char::is_whitespace);
        let quoted = line.letters.get(start) == Some(&'"');
        if quoted {
            start += 1;
            end = line.find(start, |letter| letter == '"');
            if end == line.letters.len() {
                return Err(Fault::new(start - 1, line.text(start - 1..end), "this quote is not closed", "close it"));
            }
        }
        pairs.push(Pair { key, at, value: start..end });
        at = line.find(end + usize::from(quoted), |letter| !letter.is_whitespace());
    }
    Ok(pairs)
}

/// The switch that a line describes; `None` for one without a word.
fn read_line(letters: &Letters) -> Result<Option<Line>, Error> {
    let pairs = pairs(letters).map_err(|fault| letters.error(fault))?;
    let Some(first) = pairs.first() else { return Ok(None) };
    let mut seen: Vec<String> = Vec::new();
    let mut line = Line { name: String::new(), place: letters.place(first.at), ..Line::default() };
    for Pair { key, at, value } in &pairs {
        let lower = key.to_ascii_lowercase();
        let text = letters.text(value.clone());
        let refused = |at: usize, found: &str, reason: String, instead: &str| {
            Err(letters.error(Fault::new(at, found, reason, instead)))
        };
        if seen.contains(&lower) {
            return refused(*at, key, "this key stands twice in the line".to_owned(), "write it once, with one list");
        }
        let names = || {
            let list = &letters.letters[value.clone()];
            let read = host_list::parse(list, host_list::MOST_NAMES);
            match read {
                Ok(names) => {
                    Ok(names.into_iter().map(|(name, at)| (name, letters.place(value.start + at))).collect::<Vec<_>>())
                }
                Err(mut fault) if list.is_empty() => {
                    fault.at = *at;
                    fault.found = format!("{key}=");
                    fault.reason = "an empty list".to_owned();
                    Err(letters.error(fault))
                }
                Err(fault) => Err(letters.error(Fault { at: value.start + fault.at, ..fault })),
            }
        };
        match &lower[..] {
            "switchname" => match &names()?[..] {
                [(name, place)] if *name == text => (line.name, line.place) = (name.clone(), *place),
                _ => {
                    let reason = "a line describes one switch".to_owned();
                    return refused(value.start, &text, reason, "write a line for each, with one name and no brackets");
                }
            },
            "nodes" => line.hosts = names()?,
            "switches" => line.switches = names()?,
            "linkspeed" => match text.parse() {
                Ok(speed) => line.speed = Some(speed),
                Err(_) => {
                    let reason = "a link speed is a whole number, in a unit of your own".to_owned();
                    return refused(value.start.min(letters.letters.len()), &text, reason, "write it without the unit");
                }
            },
            "blockname" | "blocksizes" => {
                let reason =
                    "this file is for Slurm's plugin `topology/block`, which says nothing of switches".to_owned();
                return refused(
                    *at,
                    key,
                    reason,
                    "describe the switches as for `topology/tree`: `SwitchName=s0 Nodes=..`",
                );
            }
            _ => return refused(*at, key, "no such key is known".to_owned(), KEYS),
        }
        seen.push(lower);
    }
    if line.name.is_empty() {
        let fault = Fault::new(first.at, &first.key[..], "a line without a switch", "start it with `SwitchName=`");
        return Err(letters.error(fault));
    }
    if line.hosts.is_empty() && line.switches.is_empty() {
        let advice = "add `Nodes=` or `Switches=`, or remove the line";
        return Err(line.place.error(line.name, "nothing hangs on this switch".to_owned(), advice.to_owned()));
    }
    Ok(Some(line))
}
