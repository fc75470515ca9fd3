//! What is found beside what the paper found: sizes from which the ring is faster, the bound, the order of ranks,
//! butterflies.

use super::{BINOMIAL, BUTTERFLY, Curve, DFS, FAR, MARGIN, NATIVE, NEAR, NEAR_DFS, PAPER_BREAK_EVEN, RING, load_of};
use crate::across::bound::multiple;
use crate::reproduce::cluster::Job;
use crate::reproduce::outcome::{Finding, How, Verdict};
use crate::reproduce::taken::{Group, with_range};
use crate::sizes::show_size;
use crate::study::BreakEven;

/// How a break-even size stands to the paper's.
fn beside_paper(size: Option<f64>, hosts: usize) -> (String, Verdict, String) {
    match size {
        Some(size) if size > 0.0 => {
            let ratio = size / PAPER_BREAK_EVEN;
            let verdict = if (0.25..=4.0).contains(&ratio) { Verdict::Agrees } else { Verdict::Partly };
            let words = format!("faster from {} on, n/N = {}", rounded(size), rounded(size / hosts as f64));
            (words, verdict, "agreement means within a factor of four of 256 KB".into())
        }
        Some(_) => {
            ("faster at all sizes measured".into(), Verdict::Partly, "there is no size below which it loses".into())
        }
        None => ("not faster at the largest size".into(), Verdict::Differs, "the ring has to win somewhere".into()),
    }
}

/// Bytes to two digits or so.
fn rounded(bytes: f64) -> String {
    if bytes >= 1048576.0 {
        format!("{:.1} MB", bytes / 1048576.0)
    } else if bytes >= 1024.0 {
        format!("{:.0} KB", bytes / 1024.0)
    } else {
        format!("{bytes:.0} B")
    }
}

pub(super) fn break_even(block: &Group, hosts: usize) -> Option<Finding> {
    let (ring, native) = (block.curve(RING), block.curve(NATIVE));
    if ring.is_empty() || native.is_empty() {
        return None;
    }
    let found = BreakEven::of(&ring, &native, MARGIN);
    let (ours, verdict, why) = beside_paper(found.first_wins_from(), hosts);
    Some(Finding {
        about: "From which size the ring is faster than the MPI library".into(),
        paper: "faster than Open MPI 1.2.5 and MPICH2 from 256 KB on, n/N = 8 KB".into(),
        source: "Figure 6, page 19; on Myrinet 256 KB, n/N = 2 KB: page 17".into(),
        ours: format!("{ours} ({found}; {})", block.library),
        how: How::Measured,
        verdict,
        why: format!(
            "{why}. Here a message costs processor time of two cores that play all hosts, and links are ten times slower. The library is a \
             later one, and takes a ring itself where it finds that good"
        ),
    })
}

pub(super) fn simulated_break_even(simulated: &[Curve], hosts: usize) -> Finding {
    let curve = |name: &str| simulated.iter().find(|(other, _)| *other == name).map_or(&[][..], |(_, points)| points);
    let against = |name: &str| BreakEven::of(curve("ring"), curve(name), MARGIN);
    let (near, far) = (against("butterfly, nearest first"), against("butterfly, farthest first"));
    let (words, verdict, why) = beside_paper(near.first_wins_from(), hosts);
    Finding {
        about: "The same at the paper's rates".into(),
        paper: "256 KB, n/N = 8 KB".into(),
        source: "Figure 6, page 19".into(),
        ours: format!(
            "the ring beside the butterfly that takes near distances first, as MPICH's does: {words}; beside the one that takes far ones \
             first: {far}"
        ),
        how: How::Simulated,
        verdict,
        why: format!("{why}. The 50 us a message are assumed: the break-even size is proportional to them"),
    }
}

pub(super) fn near_the_bound(block: &Group, hosts: usize) -> Option<Finding> {
    let bytes = *block.sizes().last()?;
    let bound = 1e3 * multiple(hosts) * bytes as f64 / block.goodput?;
    let time = block.case(RING, bytes)?.milliseconds().median;
    let ratio = time / bound;
    Some(Finding {
        about: "The ring reaches the bound".into(),
        paper: "no allreduce takes less than 2(N-1)/N n/B, and the ring takes no more, start-up costs left out".into(),
        source: "Lemma 5 and Section 4".into(),
        ours: format!("{:.2} times the bound at {}, B measured by streams", ratio, show_size(bytes)),
        how: How::Measured,
        verdict: if ratio <= 1.25 { Verdict::Agrees } else { Verdict::Partly },
        why: "agreement means within a quarter. What is above it is start-up cost, 2(N-1) messages, and the processor that all hosts share".into(),
    })
}

pub(super) fn order(random: &Group, loads: &[(&str, f64)]) -> Option<Finding> {
    let bytes = *random.sizes().last()?;
    let ratio = random.ratio(RING, DFS, bytes)?;
    let (butterfly, ordered) = (random.ratio(NEAR, DFS, bytes)?, random.ratio(NEAR_DFS, DFS, bytes)?);
    Some(Finding {
        about: "The order of the ring".into(),
        paper: "a ring that visits the hosts depth-first is free of contention on any tree of switches; another need not be".into(),
        source: "Section 4; result of Faraj, Patarasuk and Yuan".into(),
        ours: format!(
            "hosts in random order, {}: a ring in rank order takes {} times as long as one that follows the switches, a butterfly that is \
             nearest-first by ranks {}, one that is so by the switches {}. Counted, an alternating ring loads the trunk {:.0} times, a good one {:.1} times",
            show_size(bytes),
            with_range(Some(ratio)),
            with_range(Some(butterfly)),
            with_range(Some(ordered)),
            load_of(loads, "ring, alternating"),
            load_of(loads, "ring, switch by switch"),
        ),
        how: How::Measured,
        verdict: if ratio.median > 1.5 { Verdict::Agrees } else { Verdict::Differs },
        why: "agreement means more than one and a half times as long. The same order mends a butterfly too where switches have powers of two of \
              hosts; the ring is mended on any tree"
            .into(),
    })
}

pub(super) fn butterflies(block: &Group, loads: &[(&str, f64)]) -> Option<Finding> {
    let bytes = *block.sizes().last()?;
    let (near, far) = (block.ratio(NEAR, RING, bytes)?, block.ratio(FAR, RING, bytes)?);
    let against = BreakEven::of(&block.curve(RING), &block.curve(NEAR), MARGIN);
    Some(Finding {
        about: "Why butterflies lose".into(),
        paper: "the butterfly's pattern causes contention on links between switches and between SMP nodes; the ring's does not".into(),
        source: "Section 1; Section 5, page 16".into(),
        ours: format!(
            "at {} the butterfly takes {} times as long as the ring with near distances first, {} with far ones first; the ring beside \
             the former: {against}. On the trunk: {:.2} n, {:.2} n, {:.2} n",
            show_size(bytes),
            with_range(Some(near)),
            with_range(Some(far)),
            load_of(loads, "ring, switch by switch"),
            load_of(loads, "butterfly, nearest first"),
            load_of(loads, "butterfly, farthest first"),
        ),
        how: How::Measured,
        verdict: if far.median > near.median * 1.5 { Verdict::Partly } else { Verdict::Differs },
        why: "contention is that of one order of steps. Nearest first, where ranks follow the switches, it crosses the trunk less than the ring, in a \
              fraction of the messages: the baseline that the paper lacks"
            .into(),
    })
}

pub(super) fn smp(group: &Group, job: &Job) -> Option<Finding> {
    let bytes = *group.sizes().last()?;
    let beside = |name: &str| Some(with_range(Some(group.ratio(name, RING, bytes)?)));
    let worst =
        [BINOMIAL, BUTTERFLY].into_iter().filter_map(|name| group.ratio(name, RING, bytes)).all(|r| r.median > 1.0);
    Some(Finding {
        about: "Several ranks a host".into(),
        paper: "for long vectors the ring of all processes beats SMP-binomial and SMP-butterfly; the butterfly loses by contention".into(),
        source: "Figures 3 and 4, pages 16 to 18".into(),
        ours: format!(
            "{} hosts x {} at {}, times of the ring's: SMP-binomial {}, SMP-butterfly {}, butterfly near {}, far {}, the library {}",
            job.hosts,
            job.slots,
            show_size(bytes),
            beside(BINOMIAL)?,
            beside(BUTTERFLY)?,
            beside(NEAR)?,
            beside(FAR)?,
            beside(NATIVE)?
        ),
        how: How::Measured,
        verdict: if worst { Verdict::Agrees } else { Verdict::Partly },
        why: "the two leader schedules send whole vectors log N times, the ring 2(N-1)/N of one".into(),
    })
}
