//! The contract of transports, over threads; and what is particular to ranks that are threads.

mod contract;
mod watchdog;

use std::time::Duration;

use hier::transport::local::{Behaviour, LocalTransport};
use hier::transport::{Error, Transport, all_gather, wait};
use watchdog::watchdog;

const LIMIT: Duration = Duration::from_secs(120);

/// Runs `f` on every rank of a group, each on a thread.
fn on_all(size: usize, behaviour: Behaviour, f: impl Fn(LocalTransport) + Sync) {
    std::thread::scope(|scope| {
        for end in LocalTransport::group(size, behaviour) {
            scope.spawn(|| f(end));
        }
    });
}

fn behaviours() -> [Behaviour; 4] {
    let eager = Behaviour::default();
    let late = Duration::from_micros(300);
    [
        eager,
        Behaviour { rendezvous: true, ..eager },
        Behaviour { longest_delay: late, seed: 1, ..eager },
        Behaviour { rendezvous: true, longest_delay: late, seed: 2 },
    ]
}

#[test]
fn the_contract_holds() {
    watchdog(LIMIT, || {
        for behaviour in behaviours() {
            for size in [1, 2, 3, 5, 8] {
                on_all(size, behaviour, |transport| contract::run(&transport));
            }
        }
    });
}

#[test]
fn a_peer_that_is_dropped_is_an_error_once_its_messages_are_through() {
    watchdog(LIMIT, || {
        for behaviour in behaviours() {
            on_all(2, behaviour, |transport| {
                let mut byte = [7];
                if transport.rank() == 1 {
                    // SAFETY: this transport copies what is sent.
                    let sending = unsafe { transport.send(0, 1, byte.as_ptr(), 1) }.unwrap();
                    drop(sending);
                    return;
                }
                let mut last = [0];
                // SAFETY: both end, or are abandoned, below.
                let mut first = unsafe { transport.receive(1, 1, byte.as_mut_ptr(), 1) }.unwrap();
                // SAFETY: as above.
                let mut second = unsafe { transport.receive(1, 1, last.as_mut_ptr(), 1) }.unwrap();
                wait(&transport, &mut first, 1, "a message", Some(LIMIT)).unwrap();
                let gone = Error::Gone { rank: 0, peer: 1 };
                assert_eq!(wait(&transport, &mut second, 1, "a message", Some(LIMIT)), Err(gone.clone()));
                assert!(transport.abandon(second, LIMIT));
                // SAFETY: the call fails.
                assert_eq!(unsafe { transport.send(1, 1, last.as_ptr(), 1) }, Err(gone.clone()));
                assert_eq!(all_gather(&transport, &[1], None), Err(gone));
            });
        }
    });
}

#[test]
fn a_rendezvous_needs_both() {
    watchdog(LIMIT, || {
        let [one, other] =
            <[_; 2]>::try_from(LocalTransport::group(2, Behaviour { rendezvous: true, ..Behaviour::default() }))
                .unwrap_or_else(|_| panic!("two ends"));
        let mut arrived = [0];
        // SAFETY: the data lives to the end of the test.
        let mut sending = unsafe { one.send(1, 0, [5].as_ptr(), 1) }.unwrap();
        assert_eq!(one.test(&mut sending), Ok(false));
        // SAFETY: the buffer lives to the end of the test.
        let mut receiving = unsafe { other.receive(0, 0, arrived.as_mut_ptr(), 1) }.unwrap();
        assert_eq!(one.test(&mut sending), Ok(false));
        assert_eq!(other.test(&mut receiving), Ok(true));
        assert_eq!(one.test(&mut sending), Ok(true));
        assert_eq!(arrived, [5]);
        // A send that is never received ends when the receiver does.
        // SAFETY: the data is a constant.
        let mut sending = unsafe { one.send(1, 0, [5].as_ptr(), 1) }.unwrap();
        assert_eq!(one.test(&mut sending), Ok(false));
        drop(other);
        assert_eq!(one.test(&mut sending), Err(Error::Gone { rank: 0, peer: 1 }));
        assert!(one.abandon(sending, LIMIT));
    });
}

#[test]
fn a_member_that_ends_instead_of_joining_a_subset_is_gone_from_it() {
    watchdog(LIMIT, || {
        on_all(3, Behaviour::default(), |transport| {
            if transport.rank() == 2 {
                return;
            }
            let subset = transport.subset(&[2, 1, 0]).unwrap();
            let rank = subset.rank();
            let error = all_gather(subset.as_ref(), &[], Some(LIMIT)).unwrap_err();
            // Each of the others is gone, too, once it has noticed.
            assert!(matches!(error, Error::Gone { rank: by, .. } if by == rank), "{error}");
        });
    });
}

#[test]
fn a_rank_that_is_late_is_named() {
    let [one, _other] =
        <[_; 2]>::try_from(LocalTransport::group(2, Behaviour::default())).unwrap_or_else(|_| panic!("two ends"));
    let error = all_gather(&one, &[1], Some(Duration::from_millis(30))).unwrap_err();
    assert!(matches!(error, Error::Late { rank: 0, peer: 1, .. }), "{error}");
}

#[test]
fn a_request_is_known_only_where_it_began() {
    let [one, other] =
        <[_; 2]>::try_from(LocalTransport::group(2, Behaviour::default())).unwrap_or_else(|_| panic!("two ends"));
    let mut byte = [0];
    // SAFETY: it is abandoned below.
    let mut request = unsafe { one.receive(1, 0, byte.as_mut_ptr(), 1) }.unwrap();
    assert_eq!(other.test(&mut request), Err(Error::Request { rank: 1 }));
    assert_eq!(one.test(&mut request), Ok(false));
    assert!(one.abandon(request, LIMIT));
}

/// More than 4 GiB in one message: 9 GiB of memory.
#[test]
#[ignore = "takes 9 GiB of memory"]
fn a_message_of_more_than_4_gib() {
    watchdog(LIMIT, || {
        const BYTES: usize = (4 << 30) + 3;
        on_all(2, Behaviour::default(), |transport| {
            let mut data = vec![0_u8; BYTES];
            if transport.rank() == 0 {
                (data[0], data[BYTES - 1]) = (1, 2);
                // SAFETY: it ends below.
                let mut sending = unsafe { transport.send(1, 0, data.as_ptr(), BYTES) }.unwrap();
                wait(&transport, &mut sending, 1, "a message", Some(LIMIT)).unwrap();
            } else {
                // SAFETY: it ends below.
                let mut receiving = unsafe { transport.receive(0, 0, data.as_mut_ptr(), BYTES) }.unwrap();
                wait(&transport, &mut receiving, 0, "a message", Some(LIMIT)).unwrap();
                assert_eq!((data[0], data[BYTES / 2], data[BYTES - 1]), (1, 0, 2));
            }
        });
    });
}
