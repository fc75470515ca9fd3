//! How far apart the cores were: blocks sorted by it, so that like is compared with like.
//!
//! Beneath a virtual machine the kernel moves virtual cores about. Two of them are near each other at one time, say with a
//! common cache, and far apart seconds later, and all that ranks exchange takes several times as long. A series
//! that was measured while they were near must not stand beside one that was measured while they were far apart. A bare exchange
//! before and after each block ([`crate::gate`]) tells which blocks are alike. A block in which the cores moved belongs to no state.

use serde::Serialize;

use crate::samples::CaseSamples;
use crate::statistics::{Summary, median};

/// Cores are far apart where an exchange takes so many times as long as it does when they are nearest.
const APART: f64 = 2.5;

/// How far apart the cores are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Cores {
    /// As near as they were in this run.
    Near,
    /// Several times as far.
    Far,
}

impl Cores {
    /// Both.
    pub const ALL: [Cores; 2] = [Cores::Near, Cores::Far];

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Cores::Near => "near",
            Cores::Far => "far apart",
        }
    }
}

/// Of all blocks, so many at least must be of a state for it to be one. Fewer are exchanges that something disturbed.
const SHARE: f64 = 0.05;

/// The distance in nanoseconds from which on cores are far apart, where `distances` are all that a run has timed.
pub fn far_from(distances: &[f64]) -> f64 {
    let mut sorted = distances.to_vec();
    sorted.sort_by(f64::total_cmp);
    let few = (SHARE * sorted.len() as f64) as usize;
    let Some(far) = sorted.get(few).map(|nearest| APART * nearest) else { return f64::INFINITY };
    let are_far = sorted.len() - sorted.partition_point(|&distance| distance < far);
    if are_far > few { far } else { f64::INFINITY }
}

/// The blocks of one case that were measured while the cores were near, or far apart.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Part {
    /// Which.
    pub cores: Cores,
    /// The bare exchange, median over these blocks, in microseconds.
    pub exchange: f64,
    /// The slowest rank's time, over these blocks, in microseconds.
    pub time: Summary,
    /// The median of these blocks in each turn; nothing in a turn that had none.
    pub turns: Vec<Option<f64>>,
}

impl Part {
    /// The part with `us` less in every time.
    pub fn less(&self, us: f64) -> Part {
        let turns = self.turns.iter().map(|turn| turn.map(|turn| turn - us)).collect();
        Part { time: self.time.less(us), turns, ..self.clone() }
    }
}

/// What `turns` measured, parted where cores are `far_from` nanoseconds apart. Empty where no distance was timed.
pub fn parts(turns: &[CaseSamples], far_from: f64) -> Vec<Part> {
    let part = |cores: Cores| {
        let (mut all, mut exchanges, mut medians) = (Vec::new(), Vec::new(), Vec::new());
        for turn in turns {
            let of_turn = |(ns, around): (f64, &[f64])| {
                let alike = around.iter().all(|&distance| (distance >= far_from) == (cores == Cores::Far));
                alike.then_some((ns / 1e3, around[0] / 1e3))
            };
            let blocks = turn.slowest().into_iter().zip(turn.distances.windows(2));
            let here: Vec<(f64, f64)> = blocks.filter_map(of_turn).collect();
            let times: Vec<f64> = here.iter().map(|&(us, _)| us).collect();
            medians.push((!times.is_empty()).then(|| median(&times)));
            exchanges.extend(here.iter().map(|&(_, exchange)| exchange));
            all.extend(times);
        }
        let part = Part { cores, exchange: median(&exchanges), time: Summary::of(&all), turns: medians };
        (part.time.count > 0).then_some(part)
    };
    Cores::ALL.into_iter().filter_map(part).collect()
}

/// `above / below` for all that is alike: turn by turn within each state of the cores where both have blocks of it in one turn,
/// otherwise over all turns together. Empty where nothing is alike.
pub fn ratios(above: &[Part], below: &[Part]) -> Vec<f64> {
    let both = below.iter().flat_map(|below| above.iter().map(move |above| (above, below)));
    let pairs: Vec<(&Part, &Part)> = both.filter(|(above, below)| above.cores == below.cores).collect();
    let by_turn = |&(above, below): &(&Part, &Part)| -> Vec<f64> {
        let turns = above.turns.iter().zip(&below.turns);
        turns.filter_map(|(above, below)| Some((*above)? / (*below)?)).collect()
    };
    let turns: Vec<f64> = pairs.iter().flat_map(by_turn).collect();
    if turns.is_empty() {
        pairs.iter().map(|(above, below)| above.time.median / below.time.median).collect()
    } else {
        turns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(times: &[f64], distances: &[f64]) -> CaseSamples {
        CaseSamples {
            iterations: 1,
            times: vec![times.to_vec()],
            distances: distances.to_vec(),
            ..CaseSamples::default()
        }
    }

    #[test]
    fn blocks_belong_to_the_state_around_them() {
        // While the second and the fourth block of the first turn ran, the cores moved.
        let turns =
            [turn(&[1e3, 3e3, 5e3, 3e3, 2e3], &[36.0, 38.0, 200.0, 200.0, 38.0, 36.0]), turn(&[6e3], &[200.0, 190.0])];
        let far = far_from(&[36.0, 200.0, 38.0, 200.0]);
        assert_eq!(far, 90.0);
        let disturbed: Vec<f64> = [vec![36.0; 40], vec![500.0]].concat();
        assert_eq!(far_from(&disturbed), f64::INFINITY, "one exchange is no state");
        let parts = parts(&turns, far);
        assert_eq!(parts.len(), 2);
        assert_eq!(parts[0].turns, [Some(1.5), None]);
        assert_eq!(parts[1].turns, [Some(5.0), Some(6.0)]);
        assert_eq!((parts[1].time.count, parts[1].exchange), (2, 0.2));
    }

    #[test]
    fn only_like_is_compared_with_like() {
        let part = |cores, turns: &[Option<f64>]| {
            let all: Vec<f64> = turns.iter().flatten().copied().collect();
            Part { cores, exchange: 0.1, time: Summary::of(&all), turns: turns.to_vec() }
        };
        let near = part(Cores::Near, &[Some(1.0), None]);
        let far = part(Cores::Far, &[None, Some(8.0)]);
        let theirs_far = part(Cores::Far, &[Some(4.0), Some(16.0)]);
        assert_eq!(ratios(std::slice::from_ref(&theirs_far), &[near.clone(), far.clone()]), [2.0]);
        assert_eq!(ratios(&[theirs_far], &[near]), [] as [f64; 0]);
        let only_first = part(Cores::Far, &[Some(4.0), None]);
        assert_eq!(ratios(&[only_first], &[far]), [0.5], "no turn has both: all turns together");
    }

    #[test]
    fn without_distances_there_are_no_parts() {
        assert!(parts(&[turn(&[1.0], &[])], far_from(&[])).is_empty());
    }
}
