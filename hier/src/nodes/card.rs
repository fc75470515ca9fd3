//! What a rank tells the others of itself, so that they find out who could share memory.

use std::sync::OnceLock;

use nix::unistd::gethostname;
use topo::{Machine, Usable, binding_of};

use super::error::{Error, Result};
use crate::cores;

/// Facts of one rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Card {
    pub host: String,
    /// The running kernel: the same in all containers of a machine. Empty where it cannot be read.
    pub boot: String,
    /// The network namespace: names of sockets are known within one. Empty where it cannot be read.
    pub network: String,
    /// A random number of the process, which is not its number: that may be the same in two containers.
    pub process: u64,
    /// Cores that this process may use at once, by the limit of its control group, rounded up; none for no limit.
    /// Where the mask is not known, processors that it may use at all.
    pub quota: Option<usize>,
    /// The processors on which it may run. Empty where the system does not say.
    pub mask: Vec<usize>,
}

impl Card {
    /// That of the calling rank.
    pub fn own() -> Result<Self> {
        let host = gethostname().map_err(Error::system("gethostname"))?.to_string_lossy().into_owned();
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned();
        let network = std::fs::read_link("/proc/self/ns/net").unwrap_or_default().to_string_lossy().into_owned();
        let mask = binding_of(None).unwrap_or_default();
        let quota = match Usable::discover() {
            _ if mask.is_empty() => Some(std::thread::available_parallelism().map_or(1, usize::from)),
            Ok(usable) => usable.quota_cores.map(|quota| quota.ceil() as usize),
            Err(_) => None,
        };
        Ok(Self { host, boot, network, process: process_mark()?, quota, mask })
    }

    /// As text, a line for each fact.
    pub fn to_bytes(&self) -> Vec<u8> {
        let lines = [
            self.host.replace('\n', " "),
            self.boot.clone(),
            self.network.clone(),
            self.process.to_string(),
            self.quota.map_or(String::new(), |quota| quota.to_string()),
            numbers(&self.mask),
        ];
        lines.join("\n").into_bytes()
    }

    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let [host, boot, network, process, quota, mask] = text.split('\n').collect::<Vec<_>>().try_into().ok()?;
        Some(Self {
            host: host.to_owned(),
            boot: boot.to_owned(),
            network: network.to_owned(),
            process: process.parse().ok()?,
            quota: if quota.is_empty() { None } else { Some(quota.parse().ok()?) },
            mask: numbers_of(mask)?,
        })
    }
}

/// A list of numbers as text.
pub(super) fn numbers(list: &[usize]) -> String {
    list.iter().map(usize::to_string).collect::<Vec<_>>().join(" ")
}

/// The list that [`numbers`] made a text of.
pub(super) fn numbers_of(text: &str) -> Option<Vec<usize>> {
    text.split_whitespace().map(|number| number.parse().ok()).collect()
}

/// A number that this process drew at random, once.
fn process_mark() -> Result<u64> {
    static MARK: OnceLock<u64> = OnceLock::new();
    if let Some(&mark) = MARK.get() {
        return Ok(mark);
    }
    let mark = u64::from_le_bytes(random()?);
    Ok(*MARK.get_or_init(|| mark))
}

/// Bytes that nobody can guess.
pub(super) fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    let got = rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty());
    match got {
        Ok(count) if count == N => Ok(bytes),
        Ok(count) => Err(Error::System { what: "getrandom", cause: format!("{count} bytes instead of {N}") }),
        Err(error) => Err(Error::System { what: "getrandom", cause: error.to_string() }),
    }
}

/// Cores that the ranks of a node may use together: those in any mask, and no more than a quota allows. A rank that
/// a launcher has bound sees but its own.
pub(super) fn cores<'a>(cards: impl Iterator<Item = &'a Card>, machine: Option<&Machine>) -> usize {
    let mut pus: Vec<usize> = Vec::new();
    let mut quota = None;
    let mut unknown = false;
    for card in cards {
        pus.extend(&card.mask);
        unknown |= card.mask.is_empty();
        quota = quota.max(card.quota);
    }
    if unknown {
        return quota.unwrap_or(1);
    }
    pus.sort_unstable();
    pus.dedup();
    cores::count(&Usable { pus, quota_cores: quota.map(|cores| cores as f64) }, machine)
}

#[cfg(test)]
mod tests {
    use super::*;

    pub fn card(mask: &[usize], quota: Option<usize>) -> Card {
        Card { quota, mask: mask.to_vec(), ..Card::own().unwrap() }
    }

    #[test]
    fn a_card_comes_through() {
        for card in [card(&[], None), card(&[0, 5], Some(2)), Card::own().unwrap()] {
            assert_eq!(Card::from_bytes(&card.to_bytes()), Some(card));
        }
        assert_eq!(Card::from_bytes(b"a\nb"), None);
        assert_eq!(Card::from_bytes(&[0xff]), None);
    }

    #[test]
    fn cores_of_bound_ranks_add_up() {
        let cores = |cards: &[Card]| cores(cards.iter(), None);
        assert_eq!(cores(&[card(&[0], None), card(&[1], None), card(&[1], None)]), 2);
        assert_eq!(cores(&[card(&[0, 1, 2, 3], None), card(&[0, 1, 2, 3], None)]), 4);
        assert_eq!(cores(&[card(&[0, 1, 2, 3], Some(2)), card(&[4, 5], None)]), 2);
        assert_eq!(cores(&[card(&[], Some(3))]), 3);
    }

    #[test]
    fn a_node_has_the_cores_that_a_launch_finds() {
        let machine = Machine::synthetic("pack:2 core:4 pu:2").unwrap();
        let cores = |cards: &[Card]| cores(cards.iter(), Some(&machine));
        let all = Usable::all_of(&machine);
        let bound: Vec<Card> = all.pus.iter().map(|&pu| card(&[pu], None)).collect();
        for cards in [&bound[..], &[card(&all.pus, None)]] {
            assert_eq!(cores(cards), all.cores(&machine));
            assert_eq!(cores(cards), 8);
        }
        assert_eq!(cores(&[card(&[0, 1], None), card(&[1, 2], None)]), 2);
        assert_eq!(cores(&[card(&all.pus, Some(3)), card(&all.pus, Some(3))]), 3);
        assert_eq!(cores(&[card(&[0, 1], None), card(&[], Some(5))]), 5);
    }
}
