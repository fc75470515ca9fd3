//! Nodes: which ranks share memory, and their communicator.
//!
//! Ranks that MPI started know nothing of each other's machines, and have no segment in common. [`join`] finds out who
//! can share one, by trying it, and hands the segment of each node from its first rank to the others. The same happens
//! over any [`Transport`], so that a cluster of several nodes can be played by the threads of one process
//! ([`Nodes::Given`]).

mod card;
mod error;
mod grouping;
mod handover;
mod mates;
mod placement;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use shm_core::job::{Job, JobSpec, variable};
use shm_core::{FlatPlan, Tuning};

use crate::cores;
use crate::transport::{Transport, all_gather};
use card::Card;
pub use error::{Error, Result};
pub use grouping::Nodes;
use handover::{Attempt, Hub, Invited};
pub use placement::Placement;
pub use watch::Watch;

/// How [`join`] does its work. What it says of the segment counts on the first rank of each node.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Which ranks may share a node. The same on all ranks.
    pub nodes: Nodes,
    /// How long a rank waits for a single step of another, once all ranks are in the call.
    pub limit: Duration,
    /// Bytes that every rank of the node can read.
    pub note: Vec<u8>,
    /// The table by which the node's algorithms are chosen; none for that of the environment.
    pub tuning: Option<Tuning>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { nodes: Nodes::Found, limit: Duration::from_secs(30), note: Vec::new(), tuning: None }
    }
}

/// A rank that has found its node.
#[derive(Debug)]
pub struct Joined {
    /// Where everybody is: the same on all ranks.
    pub placement: Placement,
    /// The communicator of this rank's node, over flat trees; its ranks are the node's local ranks.
    pub node: shm_core::Communicator,
    /// What the first rank of the node noted.
    pub note: Vec<u8>,
    /// What is odd about the placement, for people: ranks of one machine that cannot share memory, and why.
    pub remarks: Vec<String>,
    /// The host of each rank.
    pub hosts: Vec<String>,
    /// Keeps watch over the other processes of the node; to be dropped after `node` and all that was made of it.
    pub watch: Watch,
}

/// Finds the nodes of a transport's ranks, and makes each node's communicator.
///
/// Ranks are taken to share a node when they run under the same kernel and network namespace, and each could really map
/// the segment that the node's first rank made and passed over a Unix socket. Ranks that could not are left to
/// themselves, on all ranks alike. The segment serves 256 ranks; larger machines are several nodes.
///
/// A rank whose process ends, however it ends, makes the node communicators of the others return
/// [`RankFailed`](shm_core::Error::RankFailed): each process watches over the others of its node.
///
/// Collective over all ranks of the transport. Waits without limit until all have called it; from there on a rank that
/// does not answer within `settings.limit` makes the call fail.
///
/// # Cost
/// Three exchanges among all ranks, two more for each round in which somebody could not attach; of several nodes one more,
/// and a question to the library below ([`Transport::memory_mates`]); on the node, one connection a rank, and one thread and
/// one descriptor for each other process from then on.
///
/// # Errors
/// [`Error::Transport`], [`Error::Node`], [`Error::Other`]: an error that a rank has for itself is told to all. Nothing
/// is left behind.
pub fn join(transport: &dyn Transport, settings: &Settings) -> Result<Joined> {
    let rank = transport.rank();
    let own = Card::own()?;
    let cards: Vec<Card> = all_gather(transport, &own.to_bytes(), None)?
        .iter()
        .enumerate()
        .map(|(peer, bytes)| Card::from_bytes(bytes).ok_or_else(|| error::garbled(rank, peer, "a rank's description")))
        .collect::<Result<_>>()?;
    let is_found = settings.nodes == Nodes::Found;
    let mut mates = match is_found && mates::decide(&cards) {
        true => Some(mates::of_all(transport, 2 * settings.limit)?),
        false => None,
    };
    let mut labels = settings.nodes.candidates(&cards, mates.as_ref())?;
    let mut remarks = Vec::new();
    loop {
        let placement = Placement::new(&labels);
        // Of one node nothing that it says can be odd.
        if is_found && mates.is_none() && placement.nodes() > 1 {
            mates = Some(mates::of_all(transport, 2 * settings.limit)?);
        }
        let members = placement.members(placement.node_of(rank));
        let hub = if members[0] == rank { Some(make_hub(members, &cards, settings)) } else { None };
        let announced = match &hub {
            Some(Ok(hub)) => Ok(hub.announcement()),
            Some(Err(error)) => Err(error.clone()),
            None => Ok(Vec::new()),
        };
        let announced = agree(transport, announced, 2 * settings.limit)?;
        let attempt = match hub {
            Some(hub) => hub?.serve(transport, members, settings.limit),
            None => handover::visit(transport, members, &announced[members[0]], settings.limit),
        };
        let said = attempt.as_ref().map(Attempt::to_bytes).map_err(Clone::clone);
        let said = agree(transport, said, 2 * settings.limit)?;
        let apart = grouping::apart(&said);
        if apart.iter().all(Option::is_none) {
            remarks.extend(mates.iter().flat_map(|mates| mates::disagreements(mates, &placement)));
            return finish(attempt?, placement, rank, &cards, remarks);
        }
        remarks.extend(grouping::remarks(&apart, &placement));
        labels = grouping::refine(&labels, &apart);
    }
}

/// Makes the segment of a node, and listens for its ranks.
fn make_hub(members: &[usize], cards: &[Card], settings: &Settings) -> Result<Hub> {
    // Where a table is given this rank's own word on algorithms does not count, and so is not looked at.
    let asked = |name: &str| variable(name).filter(|_| settings.tuning.is_none() || name != "PHALANX_ALGORITHM");
    let mut spec = JobSpec::by(members.len(), Tuning::default(), &asked)?;
    spec.cores = card::cores(members.iter().map(|&member| &cards[member]), cores::machine());
    // Ranks that may run on other processors than others of the node were bound by somebody, and stay there.
    let mut masks = members.iter().map(|&member| &cards[member].mask);
    let first = masks.next();
    spec.place &= masks.all(|mask| Some(mask) == first);
    spec.note.clone_from(&settings.note);
    if let Some(tuning) = &settings.tuning {
        spec.tuning.clone_from(tuning);
    }
    Hub::open(Job::create(&spec)?)
}

/// Takes the place, with watchers over the other processes.
fn finish(attempt: Attempt, placement: Placement, rank: usize, cards: &[Card], remarks: Vec<String>) -> Result<Joined> {
    let Attempt::Reached(Invited { invitation, lives }) = attempt else {
        return Err(Error::System { what: "taking the place on the node", cause: "no segment came".to_owned() });
    };
    let members = placement.members(placement.node_of(rank));
    let local = placement.local_rank(rank);
    let note = invitation.note();
    let others = lives
        .into_iter()
        .enumerate()
        .filter(|&(other, _)| cards[members[other]].process != cards[rank].process)
        .collect();
    let job = invitation.job();
    let watch = watch::begin(invitation.job(), local, others)?;
    let hosts = cards.iter().map(|card| card.host.clone()).collect();
    match invitation.accept(Arc::new(FlatPlan)) {
        Ok(node) => Ok(Joined { placement, node, note, remarks, hosts, watch }),
        Err(error) => {
            job.mark_ended(local, true);
            Err(error.into())
        }
    }
}

/// Everybody's bytes, unless somebody has an error instead: then everybody gets one.
fn agree(transport: &dyn Transport, own: Result<Vec<u8>>, limit: Duration) -> Result<Vec<Vec<u8>>> {
    let mut message = vec![u8::from(own.is_err())];
    match &own {
        Ok(bytes) => message.extend(bytes),
        Err(error) => message.extend(error.to_string().bytes()),
    }
    let mut all = all_gather(transport, &message, Some(limit))?;
    own?;
    for (rank, message) in all.iter_mut().enumerate() {
        match message.first() {
            Some(0) => drop(message.remove(0)),
            Some(_) => return Err(Error::Other { rank, text: String::from_utf8_lossy(&message[1..]).into_owned() }),
            None => return Err(error::garbled(transport.rank(), rank, "an answer")),
        }
    }
    Ok(all)
}
