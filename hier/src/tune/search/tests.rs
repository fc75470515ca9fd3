use super::*;

/// A machine whose times are known: latency and bytes a microsecond by regime.
struct Known {
    asked: usize,
    noise: u64,
}

impl Times for Known {
    fn times(&mut self, _: Collective, bytes: usize, candidates: &[Candidate]) -> Result<Vec<Figures>, Error> {
        self.asked += 1;
        Ok(candidates
            .iter()
            .map(|candidate| {
                let (latency, rate) = match candidate.band.regime() {
                    Some(Regime::Line) => (0.3, 500.0),
                    Some(Regime::Cells) => (1.0, 2000.0),
                    Some(Regime::Shares) => (4.0, 8000.0),
                    _ => (5.0, 500.0),
                };
                // Who lends waits for the others, and copies nothing.
                let (latency, rate) = match candidate.lying {
                    Lying::Direct => (latency + 3.0, 2.0 * rate),
                    _ => (latency, rate),
                };
                let time = latency + bytes as f64 / rate;
                let blocks = (0..7).map(|_| {
                    self.noise = self.noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    time * (1.0 + (self.noise >> 40) as f64 / (1u64 << 24) as f64 * 0.02)
                });
                Figures { blocks: blocks.collect() }
            })
            .collect())
    }
}

#[test]
fn the_edges_of_a_known_machine_are_found() {
    let mut effort = Effort::usual();
    effort.halvings = 6;
    let mut search = Search { effort: &effort, ranks: 2, crowd: 1, times: Known { asked: 0, noise: 1 } };
    let findings = search.run().unwrap();
    let allreduce = findings.collectives.iter().find(|finding| finding.what == Collective::Allreduce).unwrap();
    let regimes: Vec<_> = allreduce.ladder.iter().filter_map(|(_, candidate, _)| candidate.band.regime()).collect();
    assert_eq!(regimes, [Regime::Line, Regime::Cells, Regime::Shares], "{:?}", allreduce.ladder);
    // Lines give way at 467 bytes, cells at 8,000: to within 64 bytes, or the least gain that counts.
    assert!((400..=640).contains(&allreduce.ladder[1].0), "{:?}", allreduce.ladder);
    assert!((7000..=9600).contains(&allreduce.ladder[2].0), "{:?}", allreduce.ladder);
    // Through shares what lies in shared memory costs 3 us more, and half as much a byte: the same at 48,000 bytes.
    assert!((44_000..=52_000).contains(&allreduce.direct), "{}", allreduce.direct);
    assert!(search.times.asked < 110, "{}", search.times.asked);
}

#[test]
fn every_built_in_band_is_looked_at() {
    let bands = [0, 1145, 1 << 20, 2 << 20, 3 << 20, (3 << 20) + 64].map(Band::line);
    assert_eq!(sizes(&[64, 512 << 10], &bands), [64, 512 << 10, 1 << 20, 2 << 20, 3 << 20, 4 << 20]);
    assert_eq!(sizes(&[64, 2 << 10, 2 << 20], &bands), [64, 2 << 10, 1 << 20, 2 << 20, 3 << 20, 4 << 20]);
}

#[test]
fn equal_candidates_leave_the_built_in_table_as_it_is() {
    struct Equal;
    impl Times for Equal {
        fn times(&mut self, _: Collective, _: usize, candidates: &[Candidate]) -> Result<Vec<Figures>, Error> {
            Ok(vec![Figures { blocks: vec![1.0, 1.2, 0.9] }; candidates.len()])
        }
    }
    let (efforts, jobs) = ([Effort::usual(), Effort::quick()], [(2, 1), (8, 1), (8, 4), (16, 8)]);
    for (effort, (ranks, crowd)) in efforts.iter().flat_map(|effort| jobs.map(|job| (effort, job))) {
        let findings = Search { effort, ranks, crowd, times: Equal }.run().unwrap();
        let built_in = Tuning::default().here().select(ranks, crowd);
        assert!(findings.tree_parts.is_empty() && !findings.flat_lines_lose);
        for finding in findings.collectives {
            for looked in &finding.looked {
                assert_eq!(looked.taken, 0);
            }
            assert_eq!(finding.direct, built_in.direct_from(finding.what));
            let regimes = finding.ladder.iter().map(|(_, candidate, _)| candidate.band.regime());
            let (regimes, usual): (Vec<_>, Vec<_>) =
                (regimes.collect(), built_in.bands(finding.what).iter().map(|band| band.regime()).collect());
            assert_eq!(regimes, usual, "{} on {ranks} ranks, {crowd} a core", finding.what);
        }
    }
}
