//! The shortest way through every collective and regime.

use shm_core::job::JobSpec;
use shm_core::operator::{Max, Sum, User};
use shm_core::{Communicator, FlatPlan, Plan};
use std::sync::Arc;

fn all(n: usize, rules: &str, len: usize) {
    let mut spec = JobSpec::new(n).unwrap();
    spec.tuning.force(rules).unwrap();
    let plan: Arc<dyn Plan> = Arc::new(FlatPlan);
    Communicator::threads_of(&spec, &plan, |comm| {
        for round in 0..5u64 {
            let mine: Vec<u64> = (0..len as u64).map(|i| i * 3 + comm.rank() as u64 + round).collect();
            let mut sum = vec![0; len];
            comm.all_reduce_into(&mine, &mut sum, Sum).unwrap();
            let p = n as u64;
            for (i, &s) in sum.iter().enumerate() {
                assert_eq!(s, p * (i as u64 * 3 + round) + p * (p - 1) / 2, "{rules} allreduce {n} {len}");
            }
            let mut in_place = mine.clone();
            comm.all_reduce_in_place(&mut in_place, Sum).unwrap();
            assert_eq!(in_place, sum);
            for root in 0..n {
                let process = comm.process_at_rank(root);
                if comm.rank() == root {
                    let mut most = vec![0; len];
                    process.reduce_into_root(&mine, &mut most, Max).unwrap();
                    for (i, &m) in most.iter().enumerate() {
                        assert_eq!(m, i as u64 * 3 + round + p - 1, "{rules} reduce {n} {len}");
                    }
                } else {
                    process.reduce_into(&mine, Max).unwrap();
                }
                let mut buffer = if comm.rank() == root { mine.clone() } else { vec![0; len] };
                process.broadcast_into(&mut buffer).unwrap();
                for (i, &b) in buffer.iter().enumerate() {
                    assert_eq!(b, i as u64 * 3 + root as u64 + round, "{rules} broadcast {n} {len}");
                }
            }
            comm.barrier().unwrap();
        }
        let concat = User::ordered(|l: &mut [[u8; 8]], r: &[[u8; 8]]| {
            for (l, r) in l.iter_mut().zip(r) {
                let at = l.iter().position(|&b| b == 0).unwrap();
                let n = r.iter().filter(|&&b| b != 0).count();
                l[at..at + n].copy_from_slice(&r[..n]);
            }
        });
        let mut word = [0u8; 8];
        word[0] = b'a' + comm.rank() as u8;
        let mut out = vec![[0u8; 8]; 100];
        if n < 8 {
            comm.all_reduce_into(&vec![word; 100], &mut out, &concat).unwrap();
            let mut expected = [0u8; 8];
            for r in 0..n {
                expected[r] = b'a' + r as u8;
            }
            assert_eq!(out, vec![expected; 100]);
        }
    })
    .unwrap();
}

#[test]
fn every_regime() {
    for n in [1, 2, 3, 5, 8, 16] {
        for rules in [
            "",
            "all:line",
            "all:cells",
            "all:cells,cell=64,cells=2",
            "all:shares",
            "all:shares,leaders=1",
            "all:shares,leaders=2,share_cell=64",
        ] {
            for len in [0, 1, 7, 63, 64, 1000, 5000] {
                if rules.contains("64") && len > 1000 {
                    continue;
                }
                all(n, rules, len);
            }
        }
    }
}

#[test]
fn split_and_duplicate_give_back() {
    let counts = Communicator::threads(4, |comm| {
        for i in 0..1000 {
            let d = comm.duplicate().unwrap();
            let half = comm.split(Some((comm.rank() % 2) as u32), -(comm.rank() as i64)).unwrap().unwrap();
            assert_eq!(half.size(), 2);
            let mut x = [i, 1];
            half.all_reduce_in_place(&mut x, Sum).unwrap();
            assert_eq!(x, [2 * i, 2]);
            d.barrier().unwrap();
        }
        assert!(comm.split(None, 0).unwrap().is_none());
        comm.size()
    })
    .unwrap();
    assert_eq!(counts, [4; 4]);
}
