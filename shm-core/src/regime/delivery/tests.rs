use crate::job::JobSpec;
use crate::operator::Sum;

/// Bytes loaded and stored by all ranks, in blocks of `n`: allgather, in place too, gather, scatter, alltoall,
/// reduce-scatter, scan, exclusive scan; on a core for each rank, or on one.
fn moved(size: usize, n: usize, shared: bool, crowded: bool) -> [usize; 8] {
    let cores = if crowded { 1 } else { size };
    let mut spec = JobSpec { cores, ..JobSpec::new(size).unwrap() };
    spec.tuning.force("all:direct_from=1").unwrap();
    let counts = spec.on_threads(|comm| {
        let (one, all) = (vec![1_u8; n], vec![1_u8; size * n]);
        let mut lent = [comm.alloc_copy(&one).unwrap(), comm.alloc_copy(&all).unwrap()];
        let (mut kept, mut to_one, mut to_all) = ([one.clone(), all.clone()], one, all);
        let [one, all]: [&mut [u8]; 2] = match (shared, &mut lent, &mut kept) {
            (true, [one, all], _) => [one, all],
            (false, _, [one, all]) => [one, all],
        };
        let root = comm.process_at_rank(0);
        let counted = |call: &mut dyn FnMut()| {
            comm.reset_counters();
            call();
            (comm.counters().loaded + comm.counters().stored) as usize
        };
        [
            counted(&mut || comm.all_gather_into(one, &mut to_all).unwrap()),
            counted(&mut || comm.all_gather_in_place(all).unwrap()),
            counted(&mut || match comm.rank() {
                0 => root.gather_into_root(one, &mut to_all).unwrap(),
                _ => root.gather_into(one).unwrap(),
            }),
            counted(&mut || match comm.rank() {
                0 => root.scatter_into_root(all, &mut to_one).unwrap(),
                _ => root.scatter_into(&mut to_one).unwrap(),
            }),
            counted(&mut || comm.all_to_all_into(all, &mut to_all).unwrap()),
            counted(&mut || comm.reduce_scatter_block_into(all, &mut to_one, Sum).unwrap()),
            counted(&mut || comm.scan_into(one, &mut to_one, Sum).unwrap()),
            counted(&mut || comm.exclusive_scan_into(one, &mut to_one, Sum).unwrap()),
        ]
    });
    std::array::from_fn(|call| counts.iter().map(|count| count[call]).sum())
}

#[test]
fn bytes_are_those_that_the_calls_promise() {
    for p in 2..=5 {
        // In lines, in one slice, in several.
        for (n, crowded) in [48, 5000, 40_000].into_iter().flat_map(|n| [(n, false), (n, true)]) {
            let [scan, exclusive] = match p > 2 && n > 32 * 1024 {
                true => [4 * p - 1, 2 + 5 * (p - 2) + 2],
                false => [p * (p + 1) / 2 + 3 * p - 2, p * (p - 1) / 2 + 3 * (p - 1)],
            };
            let private =
                [2 * p * (p + 1), 2 * p * p, 4 * p - 2, 4 * p - 2, p * (4 * p - 2), p * (3 * p - 1), scan, exclusive];
            let found = moved(p, n, false, crowded);
            // What is short is in lines, wherever it lies.
            assert_eq!(found, private.map(|blocks| blocks * n), "{n} bytes on {p}, crowded: {crowded}");
            if n > 504 {
                let found = moved(p, n, true, crowded);
                let lent = [2 * p * p, 2 * p * (p - 1), 2 * p, 2 * p, 2 * p * p, p * (p + 1)];
                assert_eq!(found[..6], lent.map(|blocks| blocks * n), "{n} bytes on {p}, in shared memory");
            }
        }
    }
}

/// Bytes loaded and stored by all ranks, which are threads of one process, on so many cores, in a scatter of private
/// blocks of `n` bytes from rank 1, and in a gather of them there.
fn moved_by_root(size: usize, cores: usize, cma: bool, n: usize) -> [usize; 2] {
    let spec = JobSpec { cores, cma, ..JobSpec::new(size).unwrap() };
    let counts = spec.on_threads(|comm| {
        let root = comm.process_at_rank(1);
        let (send, is_root): (Vec<usize>, _) = ((0..size * n / 8).collect(), comm.rank() == 1);
        let (mut recv, mut all) = (vec![0; n / 8], vec![0; send.len()]);
        let counted = |call: &mut dyn FnMut()| {
            comm.barrier().unwrap();
            comm.reset_counters();
            call();
            (comm.counters().loaded + comm.counters().stored) as usize
        };
        let mut counts = [0; 2];
        // Until all have asked they do not know that they reach each other.
        for _ in 0..3 {
            counts[0] = counted(&mut || match is_root {
                true => root.scatter_into_root(&send, &mut recv).unwrap(),
                false => root.scatter_into(&mut recv).unwrap(),
            });
            assert_eq!(recv, send[comm.rank() * n / 8..][..n / 8]);
            all.fill(0);
            counts[1] = counted(&mut || match is_root {
                true => root.gather_into_root(&recv, &mut all).unwrap(),
                false => root.gather_into(&recv).unwrap(),
            });
            assert!(!is_root || all == send);
        }
        counts
    });
    std::array::from_fn(|call| counts.iter().map(|count| count[call]).sum())
}

#[test]
fn long_blocks_from_a_root_and_to_it_are_moved_once_where_ranks_share_cores() {
    for p in 3..=5 {
        let (short, long) = (24 << 10, 128 << 10);
        for (cores, cma, n, passes) in [
            (1, true, long, 2 * p),
            (1, false, long, 4 * p - 2),
            (p, true, long, 4 * p - 2),
            (1, true, short, 4 * p - 2),
        ] {
            let found = moved_by_root(p, cores, cma, n);
            assert_eq!(found, [passes * n; 2], "{p} ranks on {cores} cores, {n} bytes, {cma}");
        }
    }
}
