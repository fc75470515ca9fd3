//! How the cores lay: blocks sorted by it, so that like is compared with like.
//!
//! Beneath a virtual machine the kernel moves virtual cores about. Two of them are near each other at one time, say
//! with a common cache, and far apart seconds later, and all that ranks exchange takes several times as long. At times
//! both are hardware threads of one core: exchanges are quickest then, and copies slower, since the two share what a
//! core has. A series that was measured in one of these states must not stand beside one that was measured in another.
//! A look at the cores before and after each block ([`crate::gate::look`]) tells which blocks are alike. A block in
//! which the cores moved belongs to no state.
//!
//! # What tells a state
//!
//! Ranks share a core where arithmetic takes clearly longer beside the other ranks' than alone. That needs no figure of
//! any machine. It holds all the time where ranks are bound to both threads of a core, and never where each has a core
//! of its own; of more than two ranks, two that share one are enough. The exchange is no evidence of it, however short:
//! on the virtual machine with an AMD EPYC (Zen 4) that all three states occur on, near cores take 31 to 64 ns, as the
//! pauses of those who wait fall, and threads of one core 17 to 34.
//!
//! Near and far are told by the exchange, of ranks with a core each, and only beside what is nearest in the same run:
//! cores that are equally far apart throughout are near each other, whether an exchange takes 50 ns or 500.

use serde::Serialize;

use crate::gate::look::Look;
use crate::samples::CaseSamples;
use crate::statistics::{Summary, median};

/// Cores are far apart where an exchange takes so many times as long as it does when they are nearest.
const APART: f64 = 2.5;

/// Ranks share a core where arithmetic takes so many times as long beside the others' as alone. With a core each it
/// takes as long. With one core's multipliers for two it takes twice as long, less what the other one takes of the core
/// while it waits: 1.7 to 1.9 times on that machine. This lies in the middle.
const SHARED: f64 = 1.4;

/// More of all looks than this must show a state for it to be one. Fewer are looks that something disturbed.
const SHARE: f64 = 0.05;

/// How the cores lay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Cores {
    /// Ranks ran on hardware threads of one core.
    Shared,
    /// As near as cores were in this run.
    Near,
    /// Several times as far.
    Far,
}

impl Cores {
    /// Every state.
    pub const ALL: [Cores; 3] = [Cores::Shared, Cores::Near, Cores::Far];

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Cores::Shared => "threads of one core",
            Cores::Near => "cores near",
            Cores::Far => "cores far apart",
        }
    }
}

/// What tells the states of one run from each other.
#[derive(Clone, Debug, PartialEq)]
pub struct States {
    /// The exchange in nanoseconds from which on cores are far apart.
    far_from: f64,
    /// The states that occurred.
    occurred: Vec<Cores>,
}

impl States {
    /// The states in all looks of a run.
    pub fn of(looks: &[Look]) -> States {
        let few = |looks: usize| (SHARE * looks as f64) as usize;
        let mut apart: Vec<f64> = looks.iter().filter(|look| !shared(look)).map(|look| look.exchange).collect();
        apart.sort_by(f64::total_cmp);
        let far_from = apart.get(few(apart.len())).map_or(f64::INFINITY, |nearest| APART * nearest);
        let mut states = States { far_from, occurred: Cores::ALL.to_vec() };
        let count = |cores: Cores| looks.iter().filter(|look| states.state(look) == Some(cores)).count();
        let occurred = Cores::ALL.into_iter().filter(|&cores| count(cores) > few(looks.len())).collect();
        states.occurred = occurred;
        states
    }

    /// Whether the cores were in more than one.
    pub fn are_several(&self) -> bool {
        self.occurred.len() > 1
    }

    /// The state that `look` shows; none where so few show it that something disturbed them.
    fn state(&self, look: &Look) -> Option<Cores> {
        let cores = match look {
            look if shared(look) => Cores::Shared,
            look if look.exchange < self.far_from => Cores::Near,
            _ => Cores::Far,
        };
        self.occurred.contains(&cores).then_some(cores)
    }

    /// The state that the looks before and after a block both show.
    fn around(&self, looks: &[Look]) -> Option<Cores> {
        let first = self.state(looks.first()?)?;
        looks.iter().all(|look| self.state(look) == Some(first)).then_some(first)
    }
}

fn shared(look: &Look) -> bool {
    look.slowdown >= SHARED
}

/// The blocks of one case that were measured in one state of the cores.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Part {
    /// Which.
    pub cores: Cores,
    /// The bare exchange, median over these blocks, in microseconds.
    pub exchange: f64,
    /// How many times as long arithmetic took beside that of the other ranks as alone, median over these blocks.
    pub slowdown: f64,
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

/// What `turns` measured, parted by the `states` of the run. Empty where nobody looked at the cores.
pub fn parts(turns: &[CaseSamples], states: &States) -> Vec<Part> {
    let part = |cores: Cores| {
        let (mut all, mut looks, mut medians) = (Vec::new(), Vec::new(), Vec::new());
        for turn in turns {
            let blocks = turn.slowest.iter().copied().zip(turn.looks.windows(2));
            let here = blocks.filter(|(_, around)| states.around(around) == Some(cores));
            let (times, before): (Vec<f64>, Vec<Look>) = here.map(|(ns, around)| (ns / 1e3, around[0])).unzip();
            medians.push((!times.is_empty()).then(|| median(&times)));
            all.extend(times);
            looks.extend(before);
        }
        let of = |figure: fn(&Look) -> f64| median(&looks.iter().map(figure).collect::<Vec<_>>());
        let (exchange, slowdown) = (of(|look| look.exchange / 1e3), of(|look| look.slowdown));
        (!all.is_empty()).then(|| Part { cores, exchange, slowdown, time: Summary::of(&all), turns: medians })
    };
    Cores::ALL.into_iter().filter_map(part).collect()
}

/// `above / below` for all that is alike: turn by turn within each state of the cores where both have blocks of it in
/// one turn, otherwise over all turns together. Empty where nothing is alike.
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

    /// Looks as they are in each state; the second one's exchange is the slower.
    const SHARED: [Look; 2] = [Look { exchange: 17.0, slowdown: 1.83 }, Look { exchange: 34.0, slowdown: 1.74 }];
    const NEAR: [Look; 2] = [Look { exchange: 33.0, slowdown: 1.0 }, Look { exchange: 61.0, slowdown: 1.05 }];
    const FAR: [Look; 2] = [Look { exchange: 175.0, slowdown: 0.98 }, Look { exchange: 240.0, slowdown: 1.06 }];
    const KINDS: [[Look; 2]; 3] = [SHARED, NEAR, FAR];

    fn turn(times: &[f64], looks: &[Look]) -> CaseSamples {
        CaseSamples { iterations: 1, slowest: times.to_vec(), looks: looks.to_vec(), ..CaseSamples::default() }
    }

    /// The states of a run in which each kind of look came so often.
    fn run(often: [usize; 3]) -> States {
        let looks = KINDS.iter().zip(often).flat_map(|(kind, often)| kind.iter().cycle().take(often).copied());
        States::of(&looks.collect::<Vec<_>>())
    }

    #[test]
    fn whichever_states_occur_are_told_apart() {
        for (often, what) in [(1000, "long"), (10, "short"), (2, "two looks of each")] {
            for subset in 1..8 {
                let occur = [0, 1, 2].map(|kind| subset >> kind & 1 == 1);
                let states = run(occur.map(|occurs| if occurs { often } else { 0 }));
                // Where cores are never nearer, the far ones are the near ones.
                let far = if occur[1] { Cores::Far } else { Cores::Near };
                for ((kind, occurs), cores) in KINDS.iter().zip(occur).zip([Cores::Shared, Cores::Near, far]) {
                    for look in kind.iter().filter(|_| occurs) {
                        assert_eq!(states.state(look), Some(cores), "{what}: {look:?} where {occur:?} occur");
                    }
                }
            }
        }
    }

    #[test]
    fn a_state_may_prevail() {
        for kind in 0..3 {
            let mut often = [100; 3];
            often[kind] = 1000;
            assert_eq!(run(often).occurred, Cores::ALL, "{often:?}");
        }
    }

    #[test]
    fn looks_that_something_disturbed_are_no_state() {
        let calm = vec![NEAR[0]; 95];
        let held_up = Look { exchange: 5e3, ..NEAR[0] };
        let slowed = Look { slowdown: 1.6, ..NEAR[0] };
        let rushed = Look { exchange: 3.0, slowdown: 0.6 };
        for disturbed in [held_up, slowed] {
            let states = States::of(&[calm.clone(), vec![disturbed; 5]].concat());
            assert_eq!((&states.occurred[..], states.state(&disturbed)), (&[Cores::Near][..], None), "{disturbed:?}");
        }
        let states = States::of(&[calm, vec![rushed; 5]].concat());
        assert_eq!(states.occurred, [Cores::Near], "nearer than any core is");
    }

    #[test]
    fn machines_that_stay_as_they_are_have_one_state() {
        let always = |exchange, slowdown| States::of(&[Look { exchange, slowdown }; 50]).occurred;
        assert_eq!(always(100.0, 1.0), [Cores::Near], "cores that are always far apart");
        assert_eq!(always(20.0, 1.0), [Cores::Near], "cores whose exchange is as quick as that of threads elsewhere");
        assert_eq!(always(60.0, 2.0), [Cores::Shared], "ranks bound to both threads of a core");
    }

    #[test]
    fn blocks_belong_to_the_state_around_them() {
        let ([shared, _], [near, slow], [far, _]) = (SHARED, NEAR, FAR);
        // While the second and the fourth block of the first turn ran, and the first of the third, the cores moved.
        let turns = [
            turn(&[1e3, 3e3, 5e3, 3e3, 2e3], &[near, slow, far, far, slow, near]),
            turn(&[6e3], &[far, far]),
            turn(&[4e3, 9e3], &[near, shared, shared]),
        ];
        let parts = parts(&turns, &run([10; 3]));
        assert_eq!(parts.iter().map(|part| part.cores).collect::<Vec<_>>(), Cores::ALL);
        assert_eq!(parts[0].turns, [None, None, Some(9.0)]);
        assert_eq!(parts[1].turns, [Some(1.5), None, None]);
        assert_eq!(parts[2].turns, [Some(5.0), Some(6.0), None]);
        assert_eq!((parts[2].time.count, parts[2].exchange), (2, 0.175));
        assert_eq!(parts.iter().map(|part| part.slowdown).collect::<Vec<_>>(), [1.83, 1.025, 0.98]);
    }

    #[test]
    fn only_like_is_compared_with_like() {
        let part = |cores, turns: &[Option<f64>]| {
            let all: Vec<f64> = turns.iter().flatten().copied().collect();
            Part { cores, exchange: 0.1, slowdown: 1.0, time: Summary::of(&all), turns: turns.to_vec() }
        };
        let near = part(Cores::Near, &[Some(1.0), None]);
        let far = part(Cores::Far, &[None, Some(8.0)]);
        let theirs_far = part(Cores::Far, &[Some(4.0), Some(16.0)]);
        assert_eq!(ratios(std::slice::from_ref(&theirs_far), &[near.clone(), far.clone()]), [2.0]);
        assert_eq!(ratios(&[theirs_far], std::slice::from_ref(&near)), [] as [f64; 0]);
        let shared = part(Cores::Shared, &[Some(2.0), None]);
        assert_eq!(ratios(std::slice::from_ref(&shared), &[near.clone(), far.clone()]), [] as [f64; 0]);
        assert_eq!(ratios(&[shared.clone(), near.clone()], &[shared, near]), [1.0, 1.0]);
        let only_first = part(Cores::Far, &[Some(4.0), None]);
        assert_eq!(ratios(&[only_first], &[far]), [0.5], "no turn has both: all turns together");
    }

    #[test]
    fn where_nobody_looks_there_are_no_parts() {
        assert!(parts(&[turn(&[1.0], &[])], &States::of(&[])).is_empty());
    }
}
