//! The few collectives that setting up takes, made of sends and receives. They are for small things, once in a while.

use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use super::{Error, MOST_TAG, Request, Result, Transport};

/// The tags that the calls of this module use: schedules keep to those below.
pub const EXCHANGE_TAGS: RangeInclusive<u32> = MOST_TAG - 99..=MOST_TAG;

const LENGTHS: u32 = *EXCHANGE_TAGS.start();
const BLOCKS: u32 = LENGTHS + 1;

/// How long a request that is given up may take to end.
const FAREWELL: Duration = Duration::from_secs(1);

/// Waits until a request with `peer` has ended, for `limit` at most if there is one. Yields, and after a while sleeps,
/// in between.
///
/// # Errors
/// Those of [`Transport::test`]; [`Error::Late`], with `what` was waited for. The request has not ended then.
pub fn wait(
    transport: &dyn Transport,
    request: &mut Request,
    peer: usize,
    what: &'static str,
    limit: Option<Duration>,
) -> Result<()> {
    let begin = Instant::now();
    let mut rounds = 0_u32;
    while !transport.test(request)? {
        rounds = rounds.saturating_add(1);
        if rounds < 2000 {
            std::thread::yield_now();
            continue;
        }
        std::thread::sleep(Duration::from_micros(50));
        if let Some(limit) = limit.filter(|&limit| begin.elapsed() > limit) {
            return Err(Error::Late { rank: transport.rank(), peer, what, limit });
        }
    }
    Ok(())
}

/// Everybody's bytes, by rank. `own` is this rank's, of any length.
///
/// Collective over all ranks of the transport. `limit` is how long a single message is waited for, in all: none, as
/// long as it takes.
///
/// # Cost
/// 2 ceil(log2 N) rounds; every rank receives everybody's bytes once, and sends as many.
///
/// # Errors
/// [`Error::Late`], [`Error::Garbled`]; [`Error::Gone`] or [`Error::Library`] when a rank has ended.
///
/// # References
/// Bruck et al., "Efficient algorithms for all-to-all communications in multiport message-passing systems" (1997): the
/// concatenation; here each round sends the lengths ahead.
pub fn all_gather(transport: &dyn Transport, own: &[u8], limit: Option<Duration>) -> Result<Vec<Vec<u8>>> {
    let (rank, size) = (transport.rank(), transport.size());
    // Block i is that of rank + i.
    let mut blocks = vec![own.to_vec()];
    while blocks.len() < size {
        let count = blocks.len().min(size - blocks.len());
        let (to, from) = ((rank + size - blocks.len()) % size, (rank + blocks.len()) % size);
        let lengths: Vec<u8> = blocks[..count].iter().flat_map(|block| (block.len() as u64).to_le_bytes()).collect();
        let lengths = send_receive(transport, (to, lengths), (from, 8 * count), LENGTHS, limit)?;
        let lengths: Vec<usize> = lengths
            .chunks_exact(8)
            .map(|bytes| bytes.iter().rev().fold(0, |sum, &byte| sum << 8 | usize::from(byte)))
            .collect();
        let total = lengths
            .iter()
            .try_fold(0_usize, |sum, &length| sum.checked_add(length))
            .filter(|&total| total < 1 << 40)
            .ok_or(Error::Garbled { rank, peer: from, what: "lengths of blocks" })?;
        let arrived = send_receive(transport, (to, blocks[..count].concat()), (from, total), BLOCKS, limit)?;
        let mut rest = &arrived[..];
        for length in lengths {
            let (block, after) = rest.split_at(length);
            blocks.push(block.to_vec());
            rest = after;
        }
    }
    blocks.rotate_right(rank);
    Ok(blocks)
}

/// Sends a buffer to one rank, while receiving so many bytes from another.
fn send_receive(
    transport: &dyn Transport,
    (to, data): (usize, Vec<u8>),
    (from, bytes): (usize, usize),
    tag: u32,
    limit: Option<Duration>,
) -> Result<Vec<u8>> {
    let mut arrived = vec![0; bytes];
    // SAFETY: the buffer lives until the request has ended, or is leaked below.
    let mut receive = unsafe { transport.receive(from, tag, arrived.as_mut_ptr(), bytes) }?;
    // SAFETY: the same, and nobody writes it.
    let sent = unsafe { transport.send(to, tag, data.as_ptr(), data.len()) };
    let result = sent.and_then(|mut send| {
        let what = "its part in an exchange among all ranks";
        let waited =
            wait(transport, &mut receive, from, what, limit).and_then(|()| wait(transport, &mut send, to, what, limit));
        if !send.has_ended() && !transport.abandon(send, FAREWELL) {
            std::mem::forget(data);
        }
        waited
    });
    if !receive.has_ended() && !transport.abandon(receive, FAREWELL) {
        std::mem::forget(std::mem::take(&mut arrived));
    }
    result.map(|()| arrived)
}

/// The ranks of this rank's color, ordered by key and then by rank; none for a rank without a color.
///
/// Collective over all ranks of the transport. MPI 4.0, 7.4.2: `MPI_Comm_split`.
///
/// # Errors
/// Those of [`all_gather`].
pub fn group_of(transport: &dyn Transport, color: Option<u32>, key: i64) -> Result<Vec<usize>> {
    let mut own = [0; 13];
    own[0] = u8::from(color.is_some());
    own[1..5].copy_from_slice(&color.unwrap_or(0).to_le_bytes());
    own[5..].copy_from_slice(&key.to_le_bytes());
    let all = all_gather(transport, &own, None)?;
    if color.is_none() {
        return Ok(Vec::new());
    }
    let mut members = Vec::new();
    for (rank, one) in all.iter().enumerate() {
        let garbled = Error::Garbled { rank: transport.rank(), peer: rank, what: "a color and a key" };
        let one: &[u8; 13] = one.as_slice().try_into().map_err(|_| garbled)?;
        if one[..5] == own[..5] {
            let key = one[5..].iter().rev().fold(0_u64, |key, &byte| key << 8 | u64::from(byte));
            members.push((key as i64, rank));
        }
    }
    members.sort_unstable();
    Ok(members.into_iter().map(|(_, rank)| rank).collect())
}
