//! Which ranks share memory by the word of the library below.
//!
//! It is asked where it counts alone: such calls wait in the library's own way (a rank that waits in MPICH keeps its core
//! from those it waits for, 240 ms for 8 ranks on two cores), and on one node whose kernel is known nobody needs them.

use std::time::Duration;

use super::card::{Card, numbers, numbers_of};
use super::error::{self, Result};
use super::placement::Placement;
use crate::transport::Transport;

/// By rank: the ranks that share memory with it; none where the library says nothing.
pub(super) type Mates = Vec<Option<Vec<usize>>>;

/// Asks the library for all ranks. Collective.
pub(super) fn of_all(transport: &dyn Transport, limit: Duration) -> Result<Mates> {
    let own = transport.memory_mates().map_err(Into::into);
    let own = own.map(|own| own.map_or("unknown".to_owned(), |own| numbers(&own)).into_bytes());
    let texts = super::agree(transport, own, limit)?;
    let parsed = |(peer, bytes): (usize, &Vec<u8>)| {
        let text = std::str::from_utf8(bytes).ok();
        let mates = text.and_then(|text| if text == "unknown" { Some(None) } else { numbers_of(text).map(Some) });
        mates.ok_or_else(|| error::garbled(transport.rank(), peer, "those who share memory with a rank"))
    };
    texts.iter().enumerate().map(parsed).collect()
}

/// Whether two ranks may be on one machine by the library's word alone: their kernel is not known.
pub(super) fn decide(cards: &[Card]) -> bool {
    cards.iter().filter(|card| card.boot.is_empty()).count() > 1
}

/// Where the library would have ranks share memory that do not.
pub(super) fn disagreements(mates: &Mates, placement: &Placement) -> Vec<String> {
    let parted = |rank: usize, mate: usize| placement.node_of(rank) != placement.node_of(mate);
    let remark = |(rank, mates): (usize, &Option<Vec<usize>>)| {
        let mate = mates.as_ref()?.iter().copied().find(|&mate| mate < rank && parted(rank, mate))?;
        Some(format!("MPI has ranks {mate} and {rank} share memory; they are on different nodes here"))
    };
    mates.iter().enumerate().filter_map(remark).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_mpi_disagrees_is_said() {
        let mates = vec![Some(vec![0, 1, 2]); 3];
        assert_eq!(disagreements(&mates, &Placement::new(&[0, 0, 0])), Vec::<String>::new());
        assert_eq!(disagreements(&mates, &Placement::new(&[0, 0, 2])).len(), 1);
        assert_eq!(disagreements(&vec![None; 3], &Placement::new(&[0, 0, 2])), Vec::<String>::new());
    }
}
