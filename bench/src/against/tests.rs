use super::*;
use crate::gate::look::Look;

fn wish(ranks: usize, binding: Binding) -> Wish {
    let short = Duration::from_millis(1);
    Wish { ranks, binding, turns: 3, blocks: 2, block: short, limit: short, moves: Moved::all().collect() }
}

#[test]
fn flags_set_the_floor_where_ranks_outnumber_cores() {
    let wish = wish(8, Binding::None);
    let compared = compared(&wish);
    assert_eq!(compared.len(), 2, "moves are between two");
    assert_eq!(compared[1].loops[0], (Kind::FlagAllreduce, 0));
    assert_eq!(all_loops(&compared).len(), 3);
    assert_eq!(steps(&wish), 15);
}

#[test]
fn every_move_is_compared_once() {
    let wish = wish(2, Binding::Core);
    if !wish.has_cores_for_two() {
        return phalanx_tests::library::say_skipped("it takes two cores");
    }
    let compared = compared(&wish);
    assert_eq!(compared.len(), 2 + OF_LINES.len() + MOVES.len() * MOVED.len());
    // One exchange, flags of two kinds, the library's barrier, and two kinds of lines.
    assert_eq!(all_loops(&compared).len(), 4 + 2 + Kind::MOVES.len() * MOVED.len());
    assert!(compared.iter().all(|one| one.buffers.serves(one.operation) || one.bytes == 0));
}

#[test]
fn only_what_is_measured_is_compared_with_moves() {
    let case = |operation, buffers, bytes| Case {
        operation,
        buffers,
        timing: Timing::Each,
        element: ElementType::F64,
        bytes,
        root: 0,
        blocks: 1,
        block: Duration::from_millis(1),
    };
    let cases = [
        case(Operation::Allreduce, BufferMode::Shared, 64 << 10),
        case(Operation::Allreduce, BufferMode::Shared, 32 << 10),
        case(Operation::Reduce, BufferMode::Warm, 64 << 10),
    ];
    let moved: Vec<_> = Moved::of(&cases).iter().map(|moved| (moved.loops, moved.bytes)).collect();
    assert_eq!(moved, [(&[Kind::Halves][..], 64 << 10)]);
}

#[test]
fn the_table_has_a_line_for_each_loop() {
    let ratio = Some(Ratio { value: 1.17, low: 1.1, high: 1.2 });
    let beside = |kind| Beside { kind, time: Summary::of(&[6.0]), ratio, by_cores: Vec::new() };
    let against = |operation, buffers, bytes, beside| Against {
        operation,
        buffers,
        bytes,
        ranks: 2,
        ours: Summary::of(&[7.0]),
        beside,
    };
    let flags = vec![beside(Kind::Exchange), beside(Kind::FlagBarrier)];
    let short = against(Operation::Barrier, BufferMode::Warm, 0, flags);
    assert_eq!(short.to_floor().unwrap().value, 1.17);
    let mut halves = beside(Kind::Halves);
    let alike = |cores| Alike { cores, ours: Summary::of(&[7.5]), time: Summary::of(&[5.0]), ratio };
    halves.by_cores = vec![alike(Cores::Near), alike(Cores::Far)];
    let long = against(Operation::Allreduce, BufferMode::Shared, 1 << 20, vec![halves]);
    let text = render(&[short, long]);
    assert_eq!(text.lines().count(), 5);
    for word in ["1.17", "1.10..1.20", "barrier", "allreduce 1M, shared", "a half each, stored twice", "cores near"] {
        assert!(text.contains(word), "{word} in {text}");
    }
}

#[test]
fn like_is_compared_with_like() {
    let look = |exchange| Look { exchange, slowdown: 1.0 };
    let turn = |times: &[f64], looks: &[f64]| CaseSamples {
        iterations: 1,
        times: vec![times.to_vec()],
        slowest: times.to_vec(),
        looks: looks.iter().map(|&exchange| look(exchange)).collect(),
        ..CaseSamples::default()
    };
    let ours = [turn(&[3e3, 9e3], &[40.0, 40.0, 200.0]), turn(&[12e3], &[200.0, 200.0])];
    let bare = [turn(&[2e3], &[40.0, 40.0]), turn(&[8e3], &[200.0, 200.0])];
    let all = ours.iter().chain(&bare).flat_map(|turn| turn.looks.clone()).collect::<Vec<_>>();
    let beside = Beside::of(Kind::Halves, &ours, &bare, &States::of(&all));
    let found: Vec<_> = beside.by_cores.iter().map(|alike| (alike.cores, alike.ratio.unwrap().value)).collect();
    assert_eq!(found, [(Cores::Near, 1.5), (Cores::Far, 1.5)], "the block in which the cores moved counts nowhere");
    assert_eq!(beside.ratio.unwrap().value, 1.5);
    let beside = Beside::of(Kind::Halves, &ours[..1], &bare[1..], &States::of(&all));
    assert!(beside.ratio.is_none() && beside.by_cores.is_empty(), "nothing is alike");
    let unseen = [turn(&[6e3], &[])];
    let beside = Beside::of(Kind::Halves, &unseen, &bare[..1], &States::of(&[]));
    assert_eq!((beside.ratio.unwrap().value, beside.by_cores.len()), (3.0, 0));
}
