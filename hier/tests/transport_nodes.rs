//! Joining nodes over threads: clusters of several nodes, played in one process with real segments and sockets.

mod watchdog;

use std::sync::Mutex;
use std::time::Duration;

use hier::nodes::{Error, Joined, Nodes, Placement, Settings, join};
use hier::operator::Sum;
use hier::transport::local::{Behaviour, LocalTransport};
use hier::transport::{Transport, all_gather};
use hier::{Error as NodeError, Tuning};
use watchdog::watchdog;

const LIMIT: Duration = Duration::from_secs(120);

/// What `f` returns on every rank of a group, by rank.
fn on_all<R: Send>(size: usize, behaviour: Behaviour, f: impl Fn(LocalTransport) -> R + Sync) -> Vec<R> {
    std::thread::scope(|scope| {
        let ends = LocalTransport::group(size, behaviour);
        let threads: Vec<_> = ends.into_iter().map(|end| scope.spawn(|| f(end))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn given(nodes: &[usize]) -> Settings {
    let note = b"a note".to_vec();
    Settings { nodes: Nodes::Given(nodes.to_vec()), note, limit: Duration::from_secs(20), ..Settings::default() }
}

fn check(rank: usize, joined: &Joined, nodes: &[usize]) {
    assert_eq!(joined.placement, Placement::new(nodes));
    let members = joined.placement.members(joined.placement.node_of(rank));
    assert_eq!((joined.node.rank(), joined.node.size()), (joined.placement.local_rank(rank), members.len()));
    assert_eq!((&joined.note[..], joined.remarks.len()), (&b"a note"[..], 0));
    for elements in [1, 500, 50_000] {
        let mut sum = vec![0; elements];
        joined.node.all_reduce_into(&vec![rank * rank; elements], &mut sum, Sum).unwrap();
        assert_eq!(sum, vec![members.iter().map(|member| member * member).sum::<usize>(); elements]);
    }
}

#[test]
fn clusters_of_all_shapes() {
    watchdog(LIMIT, || {
        let shapes: [&[usize]; 7] = [
            &[0],
            &[0, 0, 0, 0],
            &[0, 0, 1, 1],
            &[0, 1, 0, 1, 0, 1],
            &[3, 2, 2, 1, 1, 1],
            &[4, 5, 6],
            &[0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3],
        ];
        let worst = Behaviour { rendezvous: true, longest_delay: Duration::from_micros(500), seed: 3 };
        for (nodes, behaviour) in shapes.iter().flat_map(|&nodes| [(nodes, Behaviour::default()), (nodes, worst)]) {
            on_all(nodes.len(), behaviour, |transport| {
                let joined = join(&transport, &given(nodes)).unwrap();
                check(transport.rank(), &joined, nodes);
                // The transport serves on, beside the node's communicator.
                assert_eq!(all_gather(&transport, &[1], Some(LIMIT)).unwrap().len(), nodes.len());
            });
        }
    });
}

#[test]
fn threads_of_one_process_are_found_to_share_a_node() {
    watchdog(LIMIT, || {
        on_all(5, Behaviour::default(), |transport| {
            let settings = Settings { note: b"a note".to_vec(), ..Settings::default() };
            check(transport.rank(), &join(&transport, &settings).unwrap(), &[0; 5]);
        });
    });
}

#[test]
fn an_error_of_one_rank_is_told_to_all() {
    watchdog(LIMIT, || {
        let nodes = [0, 0, 1, 1];
        let errors = on_all(4, Behaviour::default(), |transport| {
            let mut settings = given(&nodes);
            if transport.rank() == 2 {
                let mut wrong = Tuning::default();
                wrong.flat_ranks = 0;
                settings.tuning = Some(wrong);
            }
            join(&transport, &settings).map(drop).unwrap_err()
        });
        for (rank, error) in errors.into_iter().enumerate() {
            match (rank, error) {
                (2, Error::Node(NodeError::Tuning { .. })) => {}
                (0 | 1 | 3, Error::Other { rank: 2, text }) => assert!(text.contains("flat_ranks"), "{text}"),
                (rank, error) => panic!("rank {rank}: {error:?}"),
            }
        }
    });
}

#[test]
fn a_rank_that_ends_instead_of_joining_makes_the_others_fail() {
    watchdog(LIMIT, || {
        let errors = on_all(4, Behaviour::default(), |transport| match transport.rank() {
            3 => None,
            _ => Some(join(&transport, &given(&[0, 0, 1, 1])).map(drop).unwrap_err()),
        });
        for error in errors.into_iter().flatten() {
            assert!(matches!(error, Error::Transport(hier::transport::Error::Gone { .. })), "{error}");
        }
    });
}

#[test]
fn nodes_must_be_given_for_every_rank() {
    watchdog(LIMIT, || {
        for error in on_all(3, Behaviour::default(), |transport| join(&transport, &given(&[0, 1])).map(drop)) {
            assert!(matches!(error, Err(Error::Nodes { .. })), "{error:?}");
        }
    });
}

#[test]
fn a_rank_that_panics_stops_its_node_and_no_other() {
    watchdog(LIMIT, || {
        let results = Mutex::new(vec![None; 4]);
        std::thread::scope(|scope| {
            let ends = LocalTransport::group(4, Behaviour::default());
            let threads: Vec<_> = ends
                .into_iter()
                .map(|transport| {
                    let results = &results;
                    scope.spawn(move || {
                        let rank = transport.rank();
                        let joined = join(&transport, &given(&[0, 0, 1, 1])).unwrap();
                        joined.node.barrier().unwrap();
                        assert_ne!(rank, 1, "this rank panics");
                        results.lock().unwrap()[rank] = Some(joined.node.barrier());
                    })
                })
                .collect();
            let panics = threads.into_iter().map(|thread| thread.join().is_err());
            assert_eq!(panics.collect::<Vec<_>>(), [false, true, false, false]);
        });
        let failed = Some(Err(NodeError::RankFailed { rank: 1 }));
        assert_eq!(*results.lock().unwrap(), [failed, None, Some(Ok(())), Some(Ok(()))]);
    });
}
