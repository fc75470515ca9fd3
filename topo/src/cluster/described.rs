//! Clusters from a short text, for tests and simulations.

use std::str::FromStr;

use super::build::Line;
use super::{Cluster, Error, MOST_HOSTS};

/// How many switches a described cluster may have.
const MOST_SWITCHES: usize = 1 << 16;

impl FromStr for Cluster {
    type Err = Error;

    /// Makes a cluster from a short text.
    ///
    /// ```text
    /// cluster = "flat:" n             one switch with n hosts
    ///         | n "+" n { "+" n }     switches with so many hosts, below one more
    ///         | n "x" n { "x" n }     levels, the outermost first: 2x4x8 is 2 switches of 4 switches of 8 hosts
    /// ```
    ///
    /// Hosts are named n0, n1 and so on; switches s0, s1 and so on, and those below s1 are s1.0, s1.1 and so on. The
    /// top is named top.
    ///
    /// # Errors
    ///
    /// * [`Error::Description`] when the text does not follow the grammar, or describes more than
    ///   [`MOST_HOSTS`] hosts.
    fn from_str(text: &str) -> Result<Self, Error> {
        let refused = |reason: String| Error::Description { text: text.to_owned(), reason };
        let number = |word: &str| {
            let plain = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
            match plain.then(|| word.parse::<usize>().unwrap_or(usize::MAX)) {
                None => Err(refused(format!("`{word}` is not a number"))),
                Some(0) => Err(refused("a switch without hosts connects nothing".to_owned())),
                Some(number) => Ok(number),
            }
        };
        let (levels, sizes) = if let Some(hosts) = text.strip_prefix("flat:") {
            (Vec::new(), vec![number(hosts)?])
        } else if text.contains('+') {
            let sizes = text.split('+').map(number).collect::<Result<Vec<_>, _>>()?;
            (vec![sizes.len()], sizes)
        } else if let Some((levels, hosts)) = text.rsplit_once('x') {
            (levels.split('x').map(number).collect::<Result<Vec<_>, _>>()?, vec![number(hosts)?])
        } else {
            return Err(refused("it has neither `flat:` nor `+` nor `x`".to_owned()));
        };
        let leaves = levels.iter().try_fold(1, |product: usize, &level| product.checked_mul(level));
        let mut hosts = Some(0_usize);
        for leaf in 0..leaves.unwrap_or(usize::MAX).min(MOST_SWITCHES + 1) {
            hosts = hosts.and_then(|hosts| hosts.checked_add(sizes[leaf % sizes.len()]));
        }
        if levels.len() > 16 || leaves.is_none_or(|leaves| leaves > MOST_SWITCHES) {
            return Err(refused(format!("it has more than {MOST_SWITCHES} switches, or 16 levels")));
        }
        if hosts.is_none_or(|hosts| hosts > MOST_HOSTS) {
            return Err(refused(format!("it has more than {MOST_HOSTS} hosts")));
        }
        Cluster::build(lines(&levels, &sizes))
    }
}

/// The switches, level by level: those of each level are parts of those of the one before.
fn lines(levels: &[usize], sizes: &[usize]) -> Vec<Line> {
    let named = |name: String| Line { name, ..Line::default() };
    let mut lines = vec![named("top".to_owned())];
    let mut level_starts = 0;
    for (depth, &count) in levels.iter().enumerate() {
        let level = level_starts..lines.len();
        level_starts = lines.len();
        for above in level {
            for part in 0..count {
                let name = if depth == 0 { format!("s{part}") } else { format!("{}.{part}", lines[above].name) };
                lines[above].switches.push((name.clone(), Default::default()));
                lines.push(named(name));
            }
        }
    }
    let mut next = 0;
    for (leaf, line) in lines[level_starts..].iter_mut().enumerate() {
        let size = sizes[leaf % sizes.len()];
        line.hosts = (next..next + size).map(|host| (format!("n{host}"), Default::default())).collect();
        next += size;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_texts() {
        for (text, hosts, switches, leaves) in [
            ("flat:1", 1, 1, "top: n0"),
            ("flat:32", 32, 1, "top: n[0-31]"),
            ("3+1", 4, 3, "s0: n[0-2]; s1: n3"),
            ("2x3", 6, 3, "s0: n[0-2]; s1: n[3-5]"),
            ("2x2x1", 4, 7, "s0.0: n0; s0.1: n1; s1.0: n2; s1.1: n3"),
        ] {
            let cluster: Cluster = text.parse().unwrap();
            assert_eq!((cluster.hosts().len(), cluster.switches().len()), (hosts, switches), "{text}");
            let with_hosts = cluster.switches().iter().filter(|switch| !switch.hosts.is_empty());
            let spelled: Vec<String> =
                with_hosts.map(|switch| format!("{}: {}", switch.name, cluster.host_list(&switch.hosts))).collect();
            assert_eq!(spelled.join("; "), leaves, "{text}");
            assert_eq!(cluster.links(), hosts + switches - 1);
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for (text, why) in [
            ("", "neither"),
            ("32", "neither"),
            ("flat:", "`` is not"),
            ("flat:0", "connects nothing"),
            ("16+", "`` is not"),
            ("4x", "`` is not"),
            ("4x0", "connects nothing"),
            ("4x-8", "`-8`"),
            ("4x8+2", "`4x8`"),
            ("flat:262145", "hosts"),
            ("1x99999999999999999999999", "hosts"),
            ("70000x1", "switches"),
            ("9999999999x9999999999x9999999999x1", "switches"),
            ("1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1", "levels"),
        ] {
            let error = text.parse::<Cluster>().unwrap_err().to_string();
            assert!(error.contains(why) && error.contains("16+16"), "{text}: {error}");
        }
    }
}
