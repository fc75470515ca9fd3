//! Lists of names in Slurm's spelling: `n[001-016,020],login1,r[0-3]n[0-7]`.

use super::Error;
use super::error::Fault;

/// How many names one list may hold. A typing error such as `n[0-9999999999]` would fill the memory.
pub const MOST_NAMES: usize = 1 << 16;

/// Characters that mean something else in a list or in `topology.conf`, and so cannot be part of a name.
const NOT_IN_NAMES: &str = "[],=#\"\\()";

/// A name, and how many characters of the list stand before the item that it comes from.
pub(super) type Placed = (String, usize);

/// Spells out a host list: items with commas between them, each with any number of `[..]` of numbers and ranges.
///
/// Leading zeros of a range's first number give the width: `n[08-11]` is n08, n09, n10, n11. With several brackets in
/// one item the last one changes fastest. Names may repeat: the list is not a set.
///
/// ```
/// # fn main() -> Result<(), topo::cluster::Error> {
/// let hosts = topo::cluster::expand("r[1-2]n[08-09],login")?;
/// assert_eq!(hosts, ["r1n08", "r1n09", "r2n08", "r2n09", "login"]);
/// assert_eq!(topo::cluster::compress(&hosts), "r1n[08-09],r2n[08-09],login");
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// * [`Error::HostList`] when the list is empty, has an empty item, a bracket that does not match, a range that is
///   none, or more than [`MOST_NAMES`] names.
pub fn expand(list: &str) -> Result<Vec<String>, Error> {
    let letters: Vec<char> = list.chars().collect();
    match parse(&letters, MOST_NAMES) {
        Ok(names) => Ok(names.into_iter().map(|(name, _)| name).collect()),
        Err(Fault { at, found, reason, instead }) => {
            Err(Error::HostList { list: list.to_owned(), column: at + 1, found, reason, instead })
        }
    }
}

/// Spells names as a host list, in their order: neighbours that count on share a bracket.
///
/// [`expand`] gives the same names again, as long as there are at most [`MOST_NAMES`].
pub fn compress<Name: AsRef<str>>(names: &[Name]) -> String {
    let mut list = String::new();
    let mut rest = names.iter().map(|name| split(name.as_ref())).peekable();
    while let Some((prefix, digits)) = rest.next() {
        if !list.is_empty() {
            list.push(',');
        }
        let Some(digits) = digits else {
            list.push_str(prefix);
            continue;
        };
        let mut runs = vec![(digits, digits)];
        while let Some((_, Some(next))) = rest.next_if(|&(other, digits)| other == prefix && digits.is_some()) {
            let last = runs.len() - 1;
            let (first, end) = runs[last];
            match follows(end, first.len()) {
                Some(expected) if expected == next => runs[last].1 = next,
                _ => runs.push((next, next)),
            }
        }
        let spelled: Vec<String> = runs
            .iter()
            .map(|&(first, end)| if first == end { first.to_owned() } else { format!("{first}-{end}") })
            .collect();
        match &runs[..] {
            [(first, end)] if first == end => list.push_str(&format!("{prefix}{first}")),
            _ => list.push_str(&format!("{prefix}[{}]", spelled.join(","))),
        }
    }
    list
}

/// A name's last digits, if there are any that fit a number, and what stands before them.
fn split(name: &str) -> (&str, Option<&str>) {
    let digits = name.len() - name.bytes().rev().take_while(u8::is_ascii_digit).count();
    match name.split_at(digits) {
        (prefix, digits) if (1..=18).contains(&digits.len()) => (prefix, Some(digits)),
        _ => (name, None),
    }
}

/// The number after `digits`, at least so wide.
fn follows(digits: &str, width: usize) -> Option<String> {
    digits.parse::<u64>().ok().map(|number| format!("{:0width$}", number + 1))
}

/// One part of an item: letters, or a choice of numbers.
enum Part {
    Letters(String),
    Numbers(Vec<Range>),
}

struct Range {
    first: u64,
    last: u64,
    width: usize,
}

/// Reads a list of at most `most` names. Offsets count characters.
pub(super) fn parse(letters: &[char], most: usize) -> Result<Vec<Placed>, Fault> {
    if letters.is_empty() {
        return Err(Fault::new(0, "nothing", "a list without a name", "write at least one, as in `n[0-15]`"));
    }
    let mut names: Vec<Placed> = Vec::new();
    let (mut parts, mut start, mut i) = (Vec::new(), 0, 0);
    loop {
        match letters.get(i) {
            None | Some(',') => {
                if parts.is_empty() {
                    let (at, found) = if i < letters.len() { (i, ",") } else { (i - 1, ",") };
                    return Err(Fault::new(at, found, "a name is missing beside this comma", MISSING));
                }
                let item: String = letters[start..i].iter().collect();
                let spelled = spell(&parts, most - names.len()).ok_or_else(|| {
                    Fault::new(
                        start,
                        item,
                        format!("the list grows beyond {most} names"),
                        "check the numbers, or part the list among more switches",
                    )
                })?;
                names.extend(spelled.into_iter().map(|name| (name, start)));
                if i >= letters.len() {
                    return Ok(names);
                }
                parts.clear();
                i += 1;
                start = i;
            }
            Some('[') => {
                let length = letters[i..].iter().position(|&letter| letter == ']').ok_or_else(|| {
                    let rest: String = letters[i..].iter().collect();
                    Fault::new(
                        i,
                        rest,
                        "this bracket is not closed",
                        "write the list without blanks, as in `n[0-15,20]`",
                    )
                })?;
                parts.push(Part::Numbers(numbers(&letters[i + 1..i + length], i + 1)?));
                i += length + 1;
            }
            Some(&letter) if NOT_IN_NAMES.contains(letter) || letter.is_whitespace() || letter.is_control() => {
                let reason = if letter == ']' { "no bracket is open here" } else { "this cannot be part of a name" };
                return Err(Fault::new(i, letter, reason, "write names with commas between them, as in `n[0-15],m1`"));
            }
            Some(_) => {
                let plain = |&letter: &char| NOT_IN_NAMES.contains(letter) || letter.is_whitespace();
                let end = letters[i..].iter().position(plain).map_or(letters.len(), |length| i + length);
                parts.push(Part::Letters(letters[i..end].iter().collect()));
                i = end;
            }
        }
    }
}

const MISSING: &str = "write names with one comma between them, and no blank";

/// Reads the inside of a bracket, which starts at the character `at`.
fn numbers(inside: &[char], at: usize) -> Result<Vec<Range>, Fault> {
    let mut ranges = Vec::new();
    let mut at = at;
    for range in inside.split(|&letter| letter == ',') {
        let text: String = range.iter().collect();
        let refused = |reason: &str, instead: &str| Fault::new(at, text.clone(), reason, instead);
        let (first, last) = text.split_once('-').unwrap_or((&text, &text));
        let number = |digits: &str| {
            let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            plain.then(|| digits.parse::<u64>().ok().filter(|&number| number < u64::MAX)).flatten()
        };
        let (Some(low), Some(high)) = (number(first), number(last)) else {
            return Err(refused(
                "this is neither a number nor a range of numbers",
                "write numbers and ranges with commas between them, as in `[0-15,20]`",
            ));
        };
        if low > high {
            return Err(refused("this range runs backwards", "write the smaller number first"));
        }
        if last.len() > 1 && last.starts_with('0') && last.len() != first.len() {
            return Err(refused(
                "the ends of this range are padded to different widths",
                "give both as many digits, as in `[001-016]`",
            ));
        }
        let width = if first.starts_with('0') { first.len() } else { 0 };
        ranges.push(Range { first: low, last: high, width });
        at += range.len() + 1;
    }
    Ok(ranges)
}

/// All names of an item, or `None` when there are more than `most`.
fn spell(parts: &[Part], most: usize) -> Option<Vec<String>> {
    let mut names = vec![String::new()];
    if most == 0 {
        return None;
    }
    for part in parts {
        match part {
            Part::Letters(letters) => names.iter_mut().for_each(|name| name.push_str(letters)),
            Part::Numbers(ranges) => {
                let choices = ranges
                    .iter()
                    .try_fold(0_u64, |sum, range| sum.checked_add((range.last - range.first).checked_add(1)?))?;
                if choices.checked_mul(names.len() as u64)? > most as u64 {
                    return None;
                }
                let numbers = || {
                    ranges.iter().flat_map(|range| {
                        (range.first..=range.last).map(|number| format!("{number:0width$}", width = range.width))
                    })
                };
                names = names.iter().flat_map(|name| numbers().map(move |number| format!("{name}{number}"))).collect();
            }
        }
    }
    Some(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_spelled_out() {
        for (list, names) in [
            ("n3", "n3"),
            ("n[0-2,7]", "n0 n1 n2 n7"),
            ("n[001-003]", "n001 n002 n003"),
            ("n[98-101]", "n98 n99 n100 n101"),
            ("n[08-011]", ""),
            ("n[098-101]x,m", "n098x n099x n100x n101x m"),
            ("n[0-1][0-1]", "n00 n01 n10 n11"),
            ("r[1,3]-n[09-10].x", "r1-n09.x r1-n10.x r3-n09.x r3-n10.x"),
            ("[7-8]", "7 8"),
            ("a,b,a", "a b a"),
            ("n[5-5]", "n5"),
        ] {
            let read = expand(list).map_or(String::new(), |names| names.join(" "));
            assert_eq!(read, names, "{list}");
        }
    }

    #[test]
    fn faults_name_their_place() {
        for (list, column, found, why) in [
            ("", 1, "nothing", "without a name"),
            ("a,,b", 3, ",", "missing"),
            (",a", 1, ",", "missing"),
            ("a,", 2, ",", "missing"),
            ("n[0-3", 2, "[0-3", "not closed"),
            ("n[0-3,", 2, "[0-3,", "not closed"),
            ("n0-3]", 5, "]", "no bracket"),
            ("n[[0-3]]", 3, "[0-3", "neither"),
            ("n[]", 3, "", "neither"),
            ("n[1,]", 5, "", "neither"),
            ("n[1,x-y]", 5, "x-y", "neither"),
            ("n[1-2-3]", 3, "1-2-3", "neither"),
            ("n[+1-2]", 3, "+1-2", "neither"),
            ("n[000x333]", 3, "000x333", "neither"),
            ("n[5-2]", 3, "5-2", "backwards"),
            ("n[1-010]", 3, "1-010", "widths"),
            ("m,n[0-65535]", 3, "n[0-65535]", "65536 names"),
            ("n[0-9999999999999999999]", 1, "n[0-9999999999999999999]", "65536 names"),
            ("n[0-99999999999999999999]", 3, "0-99999999999999999999", "neither"),
            ("n[0-18446744073709551614,0-18446744073709551614]", 1, "n[0-1", "65536 names"),
            ("a[0-999]b[0-999]c[0-999]", 1, "a[0-999]b[0-999]c[0-999]", "65536 names"),
            ("a b", 2, " ", "part of a name"),
            ("a=b", 2, "=", "part of a name"),
        ] {
            match expand(list) {
                Err(Error::HostList { column: at, found: what, reason, .. }) => {
                    assert_eq!(at, column, "{list}: {reason}");
                    assert!(what.starts_with(found) && reason.contains(why), "{list}: {what}: {reason}");
                }
                other => panic!("{list}: {other:?}"),
            }
        }
        assert_eq!(expand("n[0-65535]").map(|names| names.len()).ok(), Some(MOST_NAMES));
    }

    #[test]
    fn names_are_joined() {
        for (names, list) in [
            ("", ""),
            ("a", "a"),
            ("n0 n1 n2", "n[0-2]"),
            ("n2 n1 n0", "n[2,1,0]"),
            ("n9 n10 n010 n11", "n[9-10,010,11]"),
            ("n08 n09 n10 m1", "n[08-10],m1"),
            ("n1 m2 n3", "n1,m2,n3"),
            ("a a", "a,a"),
            ("n3 n3", "n[3,3]"),
            ("n99999999999999999999 n1", "n99999999999999999999,n1"),
        ] {
            let names: Vec<&str> = names.split_whitespace().collect();
            assert_eq!(compress(&names), list);
            if !names.is_empty() {
                assert_eq!(expand(list).ok(), Some(names.iter().map(|&name| name.to_owned()).collect()));
            }
        }
    }
}
