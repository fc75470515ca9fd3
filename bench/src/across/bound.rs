//! Rates of links, and the least time that an allreduce takes on them.

use std::fmt;
use std::str::FromStr;

/// What TCP leaves of a link's rate: 1448 bytes of 1514, as headers of 20 + 20 + 12 + 14 bytes come with each packet.
pub const PAYLOAD: f64 = 1448.0 / 1514.0;

/// A rate as `tc` writes it: `100mbit`, `2.5gbit`, `0` for a link without a limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Rate {
    text: String,
    bits: f64,
}

impl Rate {
    /// Bytes a second; none without a limit.
    pub fn bytes(&self) -> Option<f64> {
        (self.bits > 0.0).then_some(self.bits / 8.0)
    }

    /// Bytes of payload a second; none without a limit.
    pub fn payload(&self) -> Option<f64> {
        self.bytes().map(|bytes| bytes * PAYLOAD)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Rate, String> {
        let lower = text.trim().to_ascii_lowercase();
        let end = lower.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(lower.len());
        let (number, unit) = lower.split_at(end);
        let factor = match unit {
            "bit" => Some(1.0),
            "kbit" => Some(1e3),
            "mbit" => Some(1e6),
            "gbit" => Some(1e9),
            "" if number.parse() == Ok(0.0) => Some(0.0),
            _ => None,
        };
        match (number.parse::<f64>(), factor) {
            (Ok(number), Some(factor)) => Ok(Rate { bits: number * factor, text: lower }),
            _ => Err(format!("{text:?} is no rate: write it like 100mbit, 2.5gbit, or 0 for no limit")),
        }
    }
}

/// Where the bytes a second of a bound come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Streams of the same run.
    Measured,
    /// The shaped rate, less headers.
    Shaped,
}

/// The links of a cluster, as the bound sees them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Links {
    /// Hosts.
    pub hosts: usize,
    /// Bytes a second of a host's link, each way.
    pub host: f64,
    /// Bytes a second of a switch's trunk, each way; none with one switch.
    pub trunk: Option<f64>,
    /// Where they are from.
    pub source: Source,
}

impl Links {
    /// The links by the goodput that was measured, or else by the shaped rate. None when neither is known.
    pub fn of(hosts: usize, goodput: Option<f64>, rate: &Rate, trunk: Option<&Rate>) -> Option<Links> {
        let shaped = rate.payload();
        let (host, source) = match (goodput, shaped) {
            (Some(goodput), _) => (goodput, Source::Measured),
            (None, Some(shaped)) => (shaped, Source::Shaped),
            (None, None) => return None,
        };
        Some(Links { hosts, host, trunk: trunk.and_then(Rate::payload), source })
    }

    /// The least seconds of an allreduce of `bytes` bytes: 2 (N-1)/N n/B, or n/t where the trunk's t is so small.
    pub fn allreduce(&self, bytes: u64) -> f64 {
        let n = bytes as f64;
        let through_hosts = multiple(self.hosts) * n / self.host;
        self.trunk.map_or(through_hosts, |trunk| through_hosts.max(n / trunk))
    }

    /// The least seconds of a broadcast of `bytes` bytes: everybody gets them.
    pub fn broadcast(&self, bytes: u64) -> f64 {
        if self.hosts < 2 { 0.0 } else { bytes as f64 / self.trunk.map_or(self.host, |trunk| trunk.min(self.host)) }
    }

    /// The bytes a second, and where they are from, for a title.
    pub fn words(&self) -> String {
        let source = match self.source {
            Source::Measured => "measured by streams from host to host",
            Source::Shaped => "the shaped rate less headers",
        };
        format!("B = {:.2} MB/s, {source}", self.host / 1e6)
    }
}

/// 2 (N-1)/N: how many times its vector a host sends at least.
pub fn multiple(hosts: usize) -> f64 {
    if hosts == 0 { 0.0 } else { 2.0 * (hosts - 1) as f64 / hosts as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(text: &str) -> Rate {
        text.parse().unwrap()
    }

    #[test]
    fn rates_are_read() {
        assert_eq!((rate("100mbit").bits, rate("2.5Gbit").bits, rate("0").bits), (1e8, 2.5e9, 0.0));
        assert_eq!(rate("0").payload(), None);
        assert!((rate("100mbit").payload().unwrap() - 11.955e6).abs() < 1e3);
        for text in ["", "100", "fast", "1.2.3mbit", "mbit", "100mbits"] {
            assert!(text.parse::<Rate>().unwrap_err().contains("100mbit"), "{text}");
        }
    }

    #[test]
    fn the_bound_by_hand() {
        let links = Links::of(8, Some(10e6), &rate("100mbit"), None).unwrap();
        assert_eq!((links.allreduce(1_000_000), links.source), (0.175, Source::Measured));
        assert_eq!(links.broadcast(1_000_000), 0.1);
        assert_eq!(Links::of(1, Some(1.0), &rate("0"), None).unwrap().allreduce(99), 0.0);
        assert_eq!(Links::of(8, None, &rate("0"), None), None);
        assert_eq!(Links::of(8, None, &rate("100mbit"), None).unwrap().source, Source::Shaped);
    }

    #[test]
    fn a_thin_trunk_binds() {
        let thin = Links::of(8, Some(10e6), &rate("100mbit"), Some(&rate("10mbit"))).unwrap();
        assert!((thin.allreduce(1_000_000) - 1.0 / (10.0 / 8.0 * PAYLOAD)).abs() < 1e-9);
        let wide = Links::of(8, Some(10e6), &rate("100mbit"), Some(&rate("1gbit"))).unwrap();
        assert_eq!(wide.allreduce(1_000_000), 0.175);
    }
}
