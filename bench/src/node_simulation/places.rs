//! Where ranks sit, and how far they are from each other.

use std::fmt;
use std::str::FromStr;

use super::figures::Distance;
use crate::error::{Error, Result};

/// A core: the socket, NUMA node and L3 cache that it belongs to, counted over the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The socket.
    pub package: usize,
    /// The NUMA node.
    pub numa: usize,
    /// The L3 cache.
    pub l3: usize,
}

impl Place {
    /// How far another core is.
    pub fn to(self, other: Place) -> Distance {
        if self.package != other.package {
            Distance::Other
        } else if self.l3 != other.l3 {
            Distance::Socket
        } else {
            Distance::L3
        }
    }

    /// The groups of a tree's levels.
    pub fn groups(self) -> [usize; 3] {
        [self.package, self.numa, self.l3]
    }
}

/// Which rank sits where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Neighbouring ranks beside each other: the first cores of the first socket, then on. As many sockets as needed.
    Block,
    /// Ranks dealt out to the sockets in turn.
    Cyclic,
    /// As many ranks to each socket, in blocks.
    Spread,
}

impl Placement {
    /// All of them.
    pub const ALL: [Placement; 3] = [Placement::Block, Placement::Cyclic, Placement::Spread];

    /// The places of `ranks` ranks, one a core.
    ///
    /// # Errors
    /// [`Error::Usage`] when there are more ranks than cores.
    pub fn places(self, cores: &[Place], ranks: usize) -> Result<Vec<Place>> {
        if ranks == 0 || ranks > cores.len() {
            let wrong = format!("{ranks} ranks on {} cores: a simulated core has one rank", cores.len());
            return Err(Error::Usage(wrong));
        }
        let packages = cores.iter().map(|core| core.package).max().map_or(1, |most| most + 1);
        let of = |package: usize| cores.iter().copied().filter(move |core| core.package == package);
        let places: Vec<Place> = match self {
            Placement::Block => cores[..ranks].to_vec(),
            Placement::Cyclic => {
                let mut sockets: Vec<_> = (0..packages).map(of).collect();
                let mut places = Vec::with_capacity(ranks);
                for socket in (0..packages).cycle() {
                    if places.len() == ranks {
                        break;
                    }
                    places.extend(sockets[socket].next());
                }
                places
            }
            Placement::Spread => {
                let share = |package: usize| ranks * (package + 1) / packages - ranks * package / packages;
                (0..packages).flat_map(|package| of(package).take(share(package))).collect()
            }
        };
        if places.len() != ranks {
            return Err(Error::Usage(format!("{ranks} ranks cannot be placed {self}: sockets differ too much")));
        }
        Ok(places)
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Placement::Block => "block",
            Placement::Cyclic => "cyclic",
            Placement::Spread => "spread",
        })
    }
}

impl FromStr for Placement {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let found = Placement::ALL.into_iter().find(|placement| placement.to_string() == text);
        found.ok_or_else(|| format!("'{text}' is no placement: block, cyclic or spread"))
    }
}

/// A set of ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ranks([u128; 2]);

impl Ranks {
    /// One rank.
    pub fn only(rank: usize) -> Ranks {
        let mut ranks = Ranks::default();
        ranks.add(rank);
        ranks
    }

    /// Adds a rank.
    pub fn add(&mut self, rank: usize) {
        self.0[rank / 128] |= 1 << (rank % 128);
    }

    /// Whether a rank is in it.
    pub fn has(&self, rank: usize) -> bool {
        self.0[rank / 128] >> (rank % 128) & 1 == 1
    }

    /// Its ranks, ascending.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        let word = |which: usize| {
            let mut left = self.0[which];
            std::iter::from_fn(move || {
                let lowest = left.trailing_zeros() as usize;
                (lowest < 128).then(|| {
                    left &= left - 1;
                    which * 128 + lowest
                })
            })
        };
        word(0).chain(word(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cores() -> Vec<Place> {
        (0..8).map(|core| Place { package: core / 4, numa: core / 4, l3: core / 2 }).collect()
    }

    fn packages(placement: Placement, ranks: usize) -> Vec<usize> {
        placement.places(&cores(), ranks).unwrap().iter().map(|place| place.package).collect()
    }

    #[test]
    fn ranks_sit_where_the_placement_says() {
        assert_eq!(packages(Placement::Block, 5), [0, 0, 0, 0, 1]);
        assert_eq!(packages(Placement::Cyclic, 5), [0, 1, 0, 1, 0]);
        assert_eq!(packages(Placement::Spread, 5), [0, 0, 1, 1, 1]);
        assert!(Placement::Block.places(&cores(), 9).is_err());
    }

    #[test]
    fn distances_follow_l3_and_socket() {
        let cores = cores();
        let of = |other: usize| cores[0].to(cores[other]);
        assert_eq!([of(1), of(2), of(4)], [Distance::L3, Distance::Socket, Distance::Other]);
    }

    #[test]
    fn sets_hold_what_was_added() {
        let mut ranks = Ranks::only(3);
        ranks.add(127);
        ranks.add(128);
        ranks.add(255);
        assert_eq!(ranks.iter().collect::<Vec<_>>(), [3, 127, 128, 255]);
        assert!(ranks.has(127) && !ranks.has(126));
    }
}
