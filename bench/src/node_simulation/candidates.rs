//! The algorithms that are compared, by name.

use hier::TreeRules;
use shm_core::{Collective, Tuning};

use super::places::Place;
use super::simulate::Algorithm;
use crate::error::Result;

/// The trees of Jain et al. (SC18) for an allreduce, for machines with one L3 cache a socket: aware of sockets.
fn aware(levels: &str) -> String {
    let last = format!("right:{levels}:leaders-last");
    format!("release: flat; gather: kary:3:{last} < 8K, kary:2:{last}")
}

/// The same shapes, unaware.
const UNAWARE: &str = "release: flat; gather: kary:3:right < 8K, kary:2:right";

/// The levels that tell the places apart, as trees spell them.
pub fn levels(places: &[Place]) -> &'static str {
    let sockets = places.iter().any(|place| place.package != places[0].package);
    let caches = places.iter().any(|place| place.package == places[0].package && place.l3 != places[0].l3);
    match (sockets, caches) {
        (_, false) => "package",
        (true, true) => "package:l3",
        (false, true) => "l3",
    }
}

/// An algorithm: rules as `PHALANX_ALGORITHM` and `PHALANX_TREES` take them.
///
/// # Errors
/// What they say where they are wrong.
pub fn algorithm(name: &str, force: &str, trees: &str) -> Result<Algorithm> {
    let mut tuning = Tuning::default();
    if !force.is_empty() {
        tuning.force(force)?;
    }
    let rules = if trees.is_empty() { TreeRules::default() } else { trees.parse()? };
    Ok(Algorithm { name: name.to_owned(), tuning, rules })
}

/// What a program gets with these settings, all together.
///
/// # Errors
/// What they say where they are wrong.
pub fn with_settings(rules: &[String], trees: &[String]) -> Result<Algorithm> {
    let mut found = algorithm("table", "", &trees.join("; "))?;
    rules.iter().try_for_each(|rules| found.tuning.force(rules))?;
    Ok(found)
}

/// What a program gets without settings.
///
/// # Errors
/// None that can be.
pub fn table() -> Result<Algorithm> {
    algorithm("table", "", "")
}

/// Bytes that each rank of an exchange may load of the others: beyond, it could only lose.
const MOST_EXCHANGED: usize = 8 << 20;

/// The algorithms that serve a collective, besides the table's own choice. Lines and exchanges are left out from
/// `bytes` on where they could only lose.
///
/// # Errors
/// None that can be.
pub fn of(what: Collective, bytes: usize, places: &[Place]) -> Result<Vec<Algorithm>> {
    let name = what.name();
    let force = |rule: &str| format!("{name}:{rule}");
    let aware = aware(levels(places));
    let below = |trees: &str| trees.replace("release: flat", &format!("release: kary:4:{}", levels(places)));
    let mut all = Vec::new();
    if bytes * places.len() <= 64 * 1024 {
        all.push(algorithm("line flat", &force("line,flat_ranks=256"), "")?);
    }
    if bytes <= 4096 {
        all.push(algorithm("line tree", &force("line,flat_ranks=1"), UNAWARE)?);
        all.push(algorithm("line aware", &force("line,flat_ranks=1"), &below(&aware))?);
    }
    if what != Collective::Barrier {
        all.push(algorithm("cells unaware", &force("cells"), UNAWARE)?);
        all.push(algorithm("cells aware", &force("cells"), &aware)?);
    }
    if matches!(what, Collective::Broadcast | Collective::Allreduce) {
        all.push(algorithm("cells aware both", &force("cells"), &below(&aware))?);
    }
    if what == Collective::Allreduce && bytes * places.len() <= MOST_EXCHANGED {
        all.push(algorithm("exchange", &force("exchange"), "")?);
    }
    if matches!(what, Collective::Reduce | Collective::Allreduce) {
        all.push(algorithm("shares", &force("shares"), "")?);
        for leaders in [2, 8].into_iter().filter(|&leaders| leaders < places.len()) {
            all.push(algorithm(&format!("shares/{leaders}"), &force(&format!("shares,leaders={leaders}")), "")?);
        }
    }
    Ok(all)
}
