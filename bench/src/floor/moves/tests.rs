use std::sync::Barrier;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::*;
use crate::mapping::anonymous_file;

#[test]
fn all_moves_give_the_whole_result() {
    for kind in Kind::MOVES {
        for bytes in [512, 16 << 10, 300 << 10] {
            let (outcome, meeting) = (AtomicU64::new(0), Barrier::new(2));
            let file = anonymous_file(lines(kind, bytes)).unwrap();
            let mapping = Mapping::of(&file, lines(kind, bytes)).unwrap();
            std::thread::scope(|scope| {
                for rank in 0..2 {
                    let mapping = &mapping;
                    let (outcome, meeting) = (&outcome, &meeting);
                    scope.spawn(move || {
                        let mut moves = Moves::new(kind, mapping, rank, bytes);
                        for _ in 0..60 {
                            moves.round(|| {
                                meeting.wait();
                                now()
                            });
                            if !moves.is_right() {
                                // Not at once: the other one would wait for ever.
                                outcome.fetch_add(1, Relaxed);
                            }
                        }
                    });
                }
            });
            assert_eq!(outcome.into_inner(), 0, "wrong results of {kind}, {bytes} bytes");
        }
    }
}

#[test]
fn pieces_cover_a_range() {
    let all: Vec<_> = pieces(10..25, 6).collect();
    assert_eq!(all, [(0, (10, 6)), (1, (16, 6)), (2, (22, 3))]);
}
