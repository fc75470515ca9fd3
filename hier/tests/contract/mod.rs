//! What every transport must do. Each check is called by all ranks of a group together, and asserts on each of them.
//!
//! The same checks run over threads (`transport_local.rs`) and over MPI (`examples/transport_mpi.rs`).

use std::time::{Duration, Instant};

use hier::transport::{Error, MOST_TAG, Request, Transport, all_gather, group_of, wait};

const LIMIT: Duration = Duration::from_secs(60);

/// What all ranks do together.
type Check = fn(&dyn Transport);

/// All checks, each over a group of its own.
pub fn run(transport: &dyn Transport) {
    let everybody: Vec<usize> = (0..transport.size()).collect();
    let checks: [(&str, Check); 17] = [
        ("lengths", lengths),
        ("order", order),
        ("tags", tags),
        ("many in flight", many_in_flight),
        ("both ways", both_ways),
        ("exchange", exchange),
        ("subsets", subsets),
        ("splits", splits),
        ("wrong arguments", wrong_arguments),
        ("abandoned receives", abandoned_receives),
        ("unequal lengths", unequal_lengths),
        ("expected messages", expected_messages),
        ("expected messages that came early", expected_messages_that_came_early),
        ("others while one is expected", others_while_one_is_expected),
        ("long messages behind expected ones", long_messages_behind_expected_ones),
        ("abandoned expectations", abandoned_expectations),
        ("unequal lengths, expected", unequal_lengths_expected),
    ];
    for (name, check) in checks {
        let group = transport.subset(&everybody).unwrap_or_else(|error| panic!("{name}: {error}"));
        check(group.as_ref());
        // Nobody ends a group before all have used it.
        all_gather(transport, name.as_bytes(), Some(LIMIT)).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

fn neighbours(transport: &dyn Transport) -> (usize, usize) {
    let (rank, size) = (transport.rank(), transport.size());
    ((rank + 1) % size, (rank + size - 1) % size)
}

/// Bytes that depend on who sends them, and on which message it is.
fn payload(from: usize, message: usize, bytes: usize) -> Vec<u8> {
    (0..bytes)
        .map(|at| (at.wrapping_mul(7) ^ at >> 8 ^ from.wrapping_mul(31) ^ message.wrapping_mul(13)) as u8)
        .collect()
}

fn send(transport: &dyn Transport, to: usize, tag: u32, data: &[u8]) -> Result<Request, Error> {
    // SAFETY: all callers end or abandon the request while the data lives.
    unsafe { transport.send(to, tag, data.as_ptr(), data.len()) }
}

fn receive(transport: &dyn Transport, from: usize, tag: u32, into: &mut [u8]) -> Result<Request, Error> {
    // SAFETY: all callers end or abandon the request before they look at the buffer.
    unsafe { transport.receive(from, tag, into.as_mut_ptr(), into.len()) }
}

fn expect(transport: &dyn Transport, from: usize, tag: u32, into: &mut [u8]) -> Result<Request, Error> {
    // SAFETY: all callers end or abandon the request before they look at the buffer.
    unsafe { transport.expect(from, tag, into.as_mut_ptr(), into.len()) }
}

/// Awaits the end of a request, or its error.
fn outcome(transport: &dyn Transport, request: &mut Request) -> Result<(), Error> {
    let begin = Instant::now();
    while !transport.await_end(request)? {
        assert!(begin.elapsed() < LIMIT, "a message has not come");
        std::thread::yield_now();
    }
    assert!(request.has_ended());
    assert_eq!((transport.await_end(request), transport.test(request)), (Ok(true), Ok(true)));
    Ok(())
}

fn finish(transport: &dyn Transport, mut request: Request) {
    wait(transport, &mut request, transport.rank(), "a message of the test", Some(LIMIT)).unwrap();
    assert!(request.has_ended());
    assert_eq!(transport.test(&mut request), Ok(true));
}

/// Messages of all lengths around the ring, nothing included.
fn lengths(transport: &dyn Transport) {
    let (to, from) = neighbours(transport);
    for bytes in [0, 1, 7, 64, 999, 1000, 1001, 1002, 2001, 2003, 4096, 100_000, 1 << 20] {
        let data = payload(transport.rank(), bytes, bytes);
        let mut arrived = vec![0; bytes];
        let receiving = receive(transport, from, 5, &mut arrived).unwrap();
        let sending = send(transport, to, 5, &data).unwrap();
        finish(transport, receiving);
        finish(transport, sending);
        assert!(arrived == payload(from, bytes, bytes), "{bytes} bytes from {from}");
    }
}

/// Messages of one sender and tag arrive in order, whichever is asked for first.
fn order(transport: &dyn Transport) {
    const COUNT: usize = 40;
    let (to, from) = neighbours(transport);
    let data: Vec<_> = (0..COUNT).map(|message| payload(transport.rank(), message, 16)).collect();
    let mut arrived = vec![vec![0; 16]; COUNT];
    let sending: Vec<_> = data.iter().map(|data| send(transport, to, 1, data).unwrap()).collect();
    let receiving: Vec<_> = arrived.iter_mut().map(|into| receive(transport, from, 1, into).unwrap()).collect();
    receiving.into_iter().rev().for_each(|request| finish(transport, request));
    sending.into_iter().rev().for_each(|request| finish(transport, request));
    for (message, arrived) in arrived.iter().enumerate() {
        assert_eq!(*arrived, payload(from, message, 16), "message {message} from {from}");
    }
}

/// A receive takes only messages of its tag, even if others came earlier.
fn tags(transport: &dyn Transport) {
    let (to, from) = neighbours(transport);
    let used = [0, 1, 77, MOST_TAG - 100, MOST_TAG];
    let data = used.map(|tag| payload(transport.rank(), tag as usize, 9));
    let sending: Vec<_> = used.iter().zip(&data).map(|(&tag, data)| send(transport, to, tag, data).unwrap()).collect();
    for &tag in used.iter().rev() {
        let mut arrived = [0; 9];
        let receiving = receive(transport, from, tag, &mut arrived).unwrap();
        finish(transport, receiving);
        assert_eq!(arrived[..], payload(from, tag as usize, 9), "tag {tag}");
    }
    sending.into_iter().for_each(|request| finish(transport, request));
}

/// Hundreds of messages between all pairs at once, a rank and itself included.
fn many_in_flight(transport: &dyn Transport) {
    const COUNT: usize = 60;
    let (rank, size) = (transport.rank(), transport.size());
    let bytes = |message: usize| message * 37 % 500;
    let mut arrived: Vec<Vec<u8>> = Vec::new();
    let mut data = Vec::new();
    for peer in 0..size {
        for message in 0..COUNT {
            arrived.push(vec![0; bytes(message)]);
            data.push(payload(rank, peer * COUNT + message, bytes(message)));
        }
    }
    let mut requests = Vec::new();
    for (at, (into, data)) in arrived.iter_mut().zip(&data).enumerate() {
        let (peer, tag) = (at / COUNT, (at % COUNT % 3) as u32);
        requests.push(receive(transport, peer, tag, into).unwrap());
        requests.push(send(transport, peer, tag, data).unwrap());
    }
    let begin = Instant::now();
    while !requests.is_empty() {
        requests.retain_mut(|request| !transport.test(request).unwrap());
        transport.progress().unwrap();
        assert!(begin.elapsed() < LIMIT, "{} messages have not ended", requests.len());
        std::thread::yield_now();
    }
    for (at, arrived) in arrived.iter().enumerate() {
        assert_eq!(*arrived, payload(at / COUNT, rank * COUNT + at % COUNT, bytes(at % COUNT)));
    }
}

/// Everybody sends a large message before anybody has posted a receive.
fn both_ways(transport: &dyn Transport) {
    const BYTES: usize = 3 << 20;
    let (to, from) = neighbours(transport);
    let data = payload(transport.rank(), 1, BYTES);
    let sending = send(transport, to, 2, &data).unwrap();
    transport.progress().unwrap();
    let mut arrived = vec![0; BYTES];
    let receiving = receive(transport, from, 2, &mut arrived).unwrap();
    finish(transport, sending);
    finish(transport, receiving);
    assert!(arrived == payload(from, 1, BYTES));
}

/// Byte strings of different lengths, gathered by all.
fn exchange(transport: &dyn Transport) {
    let bytes = |rank: usize| if rank % 3 == 1 { 0 } else { rank * 1000 + 1 };
    let own = payload(transport.rank(), 0, bytes(transport.rank()));
    let all = all_gather(transport, &own, Some(LIMIT)).unwrap();
    let expected: Vec<_> = (0..transport.size()).map(|rank| payload(rank, 0, bytes(rank))).collect();
    assert!(all == expected);
}

/// Messages of a subset are not those of the whole; ranks are counted in the order of the members.
fn subsets(transport: &dyn Transport) {
    let (rank, size) = (transport.rank(), transport.size());
    let members: Vec<usize> = (0..size).rev().filter(|member| member % 2 == rank % 2).collect();
    let subset = transport.subset(&members).unwrap();
    assert_eq!((members[subset.rank()], subset.size()), (rank, members.len()));
    let (to, from) = neighbours(subset.as_ref());
    let (inner, outer) = (payload(rank, 1, 50), payload(rank, 2, 50));
    let mut arrived = [vec![0; 50], vec![0; 50]];
    let [inside, outside] = &mut arrived;
    // The whole's message is sent first, and received last.
    let requests = [
        send(transport, members[to], 3, &outer).unwrap(),
        send(subset.as_ref(), to, 3, &inner).unwrap(),
        receive(subset.as_ref(), from, 3, inside).unwrap(),
        receive(transport, members[from], 3, outside).unwrap(),
    ];
    let [one, two, three, four] = requests;
    finish(subset.as_ref(), three);
    finish(subset.as_ref(), two);
    finish(transport, four);
    finish(transport, one);
    assert_eq!(arrived, [payload(members[from], 1, 50), payload(members[from], 2, 50)]);
    if size > 2 {
        // A subset of a subset, of which one member is left out.
        let smaller: Vec<usize> = (0..subset.size() - 1).collect();
        if smaller.contains(&subset.rank()) {
            let smaller = subset.subset(&smaller).unwrap();
            let all = all_gather(smaller.as_ref(), &[rank as u8], Some(LIMIT)).unwrap();
            assert_eq!(all.concat(), members[..members.len() - 1].iter().map(|&rank| rank as u8).collect::<Vec<_>>());
        }
    }
    // All have used it before it ends.
    all_gather(transport, &[], Some(LIMIT)).unwrap();
}

/// Colors, keys, and ranks without a color.
fn splits(transport: &dyn Transport) {
    let (rank, size) = (transport.rank(), transport.size());
    let color = if rank == 2 { None } else { Some(rank as u32 % 2) };
    let group = group_of(transport, color, -(rank as i64)).unwrap();
    assert_eq!(group.is_empty(), rank == 2);
    if rank != 2 {
        let part = transport.subset(&group).unwrap();
        let members: Vec<usize> = (0..size).rev().filter(|&other| other != 2 && other % 2 == rank % 2).collect();
        assert_eq!((members[part.rank()], part.size()), (rank, members.len()));
        let all = all_gather(part.as_ref(), &[rank as u8], Some(LIMIT)).unwrap();
        assert_eq!(all.concat(), members.iter().map(|&rank| rank as u8).collect::<Vec<_>>());
    }
    all_gather(transport, &[], Some(LIMIT)).unwrap();
}

/// Peers that do not exist, tags that MPI does not carry, lists that make no group.
fn wrong_arguments(transport: &dyn Transport) {
    let (rank, size) = (transport.rank(), transport.size());
    let mut byte = [0];
    for peer in [size, size + 1, usize::MAX] {
        let expected = Error::NoSuchRank { rank, size, peer };
        assert_eq!(send(transport, peer, 0, &byte).unwrap_err(), expected);
        assert_eq!(receive(transport, peer, 0, &mut byte).unwrap_err(), expected);
    }
    let expected = Error::Tag { rank, tag: MOST_TAG + 1 };
    assert_eq!(send(transport, 0, MOST_TAG + 1, &byte).unwrap_err(), expected);
    assert_eq!(receive(transport, 0, MOST_TAG + 1, &mut byte).unwrap_err(), expected);
    for members in [vec![size], vec![rank, rank], vec![], vec![(rank + 1) % size; usize::from(size > 1)]] {
        assert!(matches!(transport.subset(&members), Err(Error::Members { .. })), "{members:?}");
    }
}

/// A receive that is withdrawn leaves its message to the next.
fn abandoned_receives(transport: &dyn Transport) {
    let (to, from) = neighbours(transport);
    let (mut never, mut arrived) = (vec![9; 100], vec![0; 30]);
    let mut given_up = receive(transport, from, 4, &mut never).unwrap();
    assert_eq!(transport.test(&mut given_up), Ok(false));
    assert!(transport.abandon(given_up, LIMIT));
    // Nobody sends before all have withdrawn.
    all_gather(transport, &[], Some(LIMIT)).unwrap();
    let data = payload(transport.rank(), 4, 30);
    let receiving = receive(transport, from, 4, &mut arrived).unwrap();
    let sending = send(transport, to, 4, &data).unwrap();
    finish(transport, receiving);
    finish(transport, sending);
    assert_eq!((arrived, never), (payload(from, 4, 30), vec![9; 100]));
}

/// Lengths that differ, in parts and whole, short and long.
const UNEQUAL: [(usize, usize); 13] = [
    (10, 8),
    (8, 10),
    (0, 1),
    (1, 0),
    (5000, 3000),
    (3000, 5000),
    (1000, 2001),
    (2001, 1000),
    (100_000, 100),
    (100, 100_000),
    (66_000, 65_000),
    (100_010, 9),
    (2 << 20, 1 << 20),
];

/// A message that is longer or shorter than its receive is an error there, also if both go in parts.
fn unequal_lengths(transport: &dyn Transport) {
    lengths_are_told(transport, receive);
}

/// The same where the message is expected.
fn unequal_lengths_expected(transport: &dyn Transport) {
    lengths_are_told(transport, expect);
}

type Receive = fn(&dyn Transport, usize, u32, &mut [u8]) -> Result<Request, Error>;

fn lengths_are_told(transport: &dyn Transport, receive: Receive) {
    let everybody: Vec<usize> = (0..transport.size()).collect();
    for (sent, expected) in UNEQUAL {
        // The ranks are out of step afterwards: a group for each case.
        let group = transport.subset(&everybody).unwrap();
        let (to, from) = neighbours(group.as_ref());
        let data = payload(group.rank(), 0, sent);
        let mut arrived = vec![0; expected];
        let mut receiving = receive(group.as_ref(), from, 6, &mut arrived).unwrap();
        let sending = send(group.as_ref(), to, 6, &data).unwrap();
        let error = outcome(group.as_ref(), &mut receiving).unwrap_err();
        match error {
            Error::Length { rank, peer, tag: 6, expected: bytes, arrived } => {
                assert_eq!((rank, peer), (group.rank(), from));
                // Of a message in parts it is the part that is named.
                assert!(bytes != arrived && bytes <= expected && arrived <= sent, "{bytes} and {arrived}");
            }
            other => panic!("{sent} bytes where {expected} are expected: {other}"),
        }
        // It is the same error as long as the request lives.
        assert!(matches!(group.test(&mut receiving), Err(Error::Length { .. })));
        assert!(group.abandon(receiving, LIMIT));
        if !group.abandon(sending, Duration::from_millis(100)) {
            std::mem::forget(data);
        }
        all_gather(transport, &[], Some(LIMIT)).unwrap();
    }
}

/// Messages of all lengths, some of one tag, that ranks wait for one after the other.
fn expected_messages(transport: &dyn Transport) {
    let (to, from) = neighbours(transport);
    for (message, bytes) in [0, 1, 8, 999, 1001, 2003, 65_535, 65_536, 65_537, 300_000, 8, 0].into_iter().enumerate() {
        let data = payload(transport.rank(), message, bytes);
        let mut arrived = vec![0; bytes];
        let mut receiving = expect(transport, from, 5, &mut arrived).unwrap();
        let mut sending = send(transport, to, 5, &data).unwrap();
        outcome(transport, &mut sending).unwrap();
        outcome(transport, &mut receiving).unwrap();
        assert!(arrived == payload(from, message, bytes), "message {message}, {bytes} bytes from {from}");
    }
}

/// Those that were sent, and may have been taken for others, before they are expected; and one more of the same tag.
fn expected_messages_that_came_early(transport: &dyn Transport) {
    const COUNT: usize = 5;
    let (to, from) = neighbours(transport);
    let data: Vec<_> = (0..COUNT).map(|message| payload(transport.rank(), message, 100 * message)).collect();
    let mut sending: Vec<_> = data[1..].iter().map(|data| send(transport, to, 6, data).unwrap()).collect();
    all_gather(transport, &[], Some(LIMIT)).unwrap();
    transport.progress().unwrap();
    sending.push(send(transport, to, 6, &data[0]).unwrap());
    for message in (1..COUNT).chain([0]) {
        let mut arrived = vec![0; 100 * message];
        let mut receiving = expect(transport, from, 6, &mut arrived).unwrap();
        outcome(transport, &mut receiving).unwrap();
        assert!(arrived == payload(from, message, 100 * message), "message {message} from {from}");
    }
    sending.into_iter().for_each(|request| finish(transport, request));
}

/// A rank that waits for one message takes what comes for other receives, of which it hears.
fn others_while_one_is_expected(transport: &dyn Transport) {
    let (to, from) = neighbours(transport);
    let data = [payload(transport.rank(), 1, 30), payload(transport.rank(), 2, 40)];
    let (mut other, mut arrived) = (vec![0; 30], vec![0; 40]);
    let mut hearing = receive(transport, from, 9, &mut other).unwrap();
    let mut receiving = expect(transport, from, 8, &mut arrived).unwrap();
    let told = send(transport, to, 9, &data[0]).unwrap();
    let begin = Instant::now();
    while !(transport.may_have_ended(&hearing) && transport.test(&mut hearing).unwrap()) {
        assert_eq!(transport.await_end(&mut receiving), Ok(false));
        assert!(begin.elapsed() < LIMIT, "the other message was not taken");
    }
    all_gather(transport, &[], Some(LIMIT)).unwrap();
    let sending = send(transport, to, 8, &data[1]).unwrap();
    outcome(transport, &mut receiving).unwrap();
    finish(transport, told);
    finish(transport, sending);
    assert_eq!((other, arrived), (payload(from, 1, 30), payload(from, 2, 40)));
}

/// A long message that comes behind a short one of its tag, and is taken before anybody has asked for the short one.
fn long_messages_behind_expected_ones(transport: &dyn Transport) {
    let (to, from) = neighbours(transport);
    for (message, bytes) in [(30, 100_000), (0, 2001), (65_536, 65_537)].into_iter().enumerate() {
        let tag = 10 + message as u32;
        let data = [bytes.0, bytes.1].map(|bytes| payload(transport.rank(), message, bytes));
        let mut arrived = [vec![0; bytes.0], vec![0; bytes.1]];
        let [first, second] = &mut arrived;
        let mut receiving = expect(transport, from, tag, first).unwrap();
        let sending = data.each_ref().map(|data| send(transport, to, tag, data).unwrap());
        (0..3).for_each(|_| drop(all_gather(transport, &[], Some(LIMIT)).unwrap()));
        outcome(transport, &mut receiving).unwrap();
        let mut receiving = expect(transport, from, tag, second).unwrap();
        outcome(transport, &mut receiving).unwrap();
        sending.into_iter().for_each(|request| finish(transport, request));
        assert!(
            arrived == [bytes.0, bytes.1].map(|bytes| payload(from, message, bytes)),
            "{bytes:?} bytes from {from}"
        );
    }
}

/// An expectation that is given up leaves its message to the next receive.
fn abandoned_expectations(transport: &dyn Transport) {
    let (to, from) = neighbours(transport);
    let (mut never, mut arrived) = (vec![9; 100], [vec![0; 30], vec![0; 30]]);
    for (message, into) in arrived.iter_mut().enumerate() {
        let mut given_up = expect(transport, from, 4, &mut never).unwrap();
        assert_eq!(transport.await_end(&mut given_up), Ok(false));
        assert!(transport.abandon(given_up, LIMIT));
        // Nobody sends before all have withdrawn.
        all_gather(transport, &[], Some(LIMIT)).unwrap();
        let data = payload(transport.rank(), message, 30);
        let receiving =
            if message == 0 { receive(transport, from, 4, into) } else { expect(transport, from, 4, into) }.unwrap();
        let sending = send(transport, to, 4, &data).unwrap();
        finish(transport, receiving);
        finish(transport, sending);
    }
    assert_eq!((arrived, never), ([payload(from, 0, 30), payload(from, 1, 30)], vec![9; 100]));
}
