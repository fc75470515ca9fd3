//! Links shared fairly: max-min rates, kept up to date where something changes.

/// Messages that flow, by number, and the links that they use.
#[derive(Debug)]
pub(super) struct Sharing {
    capacities: Vec<f64>,
    /// For each link who uses it.
    users: Vec<Vec<usize>>,
    /// For each message the links that it uses; empty where the message does not flow.
    links: Vec<Vec<usize>>,
    /// For each message its rate.
    rates: Vec<f64>,
    /// Links whose users have changed.
    changed: Vec<usize>,
    /// For each link what is left of it, and to how many, while rates are found.
    left: Vec<(f64, usize)>,
    /// In which walk a link or a message was last met.
    walk: usize,
    met_link: Vec<usize>,
    met_flow: Vec<usize>,
}

impl Sharing {
    pub(super) fn new(capacities: Vec<f64>) -> Sharing {
        let links = capacities.len();
        Sharing {
            capacities,
            users: vec![Vec::new(); links],
            links: Vec::new(),
            rates: Vec::new(),
            changed: Vec::new(),
            left: vec![(0.0, 0); links],
            walk: 0,
            met_link: vec![0; links],
            met_flow: Vec::new(),
        }
    }

    /// Message `flow` flows over these links, at least one. [`Sharing::settle`] finds its rate.
    pub(super) fn add(&mut self, flow: usize, links: &[usize]) {
        if flow >= self.links.len() {
            self.links.resize(flow + 1, Vec::new());
            self.rates.resize(flow + 1, 0.0);
            self.met_flow.resize(flow + 1, 0);
        }
        self.links[flow].extend_from_slice(links);
        for &link in links {
            self.users[link].push(flow);
        }
        self.changed.extend_from_slice(links);
    }

    /// Message `flow` has ended.
    pub(super) fn remove(&mut self, flow: usize) {
        for &link in &self.links[flow] {
            if let Some(place) = self.users[link].iter().position(|&user| user == flow) {
                self.users[link].swap_remove(place);
            }
        }
        self.changed.append(&mut self.links[flow]);
    }

    /// The rate of a message as it was last settled, in bytes a second.
    pub(super) fn rate(&self, flow: usize) -> f64 {
        self.rates[flow]
    }

    /// Finds the rates of all messages that use links in common with what has changed, directly or over others, and
    /// says which these are. The rates of the others stay as they are.
    pub(super) fn settle(&mut self, settled: &mut Vec<usize>) {
        settled.clear();
        self.walk += 1;
        let mut links = Vec::new();
        while let Some(link) = self.changed.pop() {
            if self.met_link[link] == self.walk {
                continue;
            }
            self.met_link[link] = self.walk;
            self.left[link] = (self.capacities[link], self.users[link].len());
            links.push(link);
            for &flow in &self.users[link] {
                if self.met_flow[flow] != self.walk {
                    self.met_flow[flow] = self.walk;
                    settled.push(flow);
                    self.changed.extend_from_slice(&self.links[flow]);
                }
            }
        }
        self.fill(links);
    }

    /// Progressive filling: the links that have least for each user give it to them, these users are served, and the
    /// others share what is left.
    fn fill(&mut self, mut links: Vec<usize>) {
        self.walk += 1;
        loop {
            links.retain(|&link| self.left[link].1 > 0);
            let share = |(left, users): (f64, usize)| left.max(0.0) / users as f64;
            let least = links.iter().map(|&link| share(self.left[link])).fold(f64::INFINITY, f64::min);
            if links.is_empty() {
                return;
            }
            // Equal shares differ by rounding.
            let nearly = least * (1.0 + 1e-9);
            let full: Vec<usize> = links.iter().copied().filter(|&link| share(self.left[link]) <= nearly).collect();
            for link in full {
                for place in 0..self.users[link].len() {
                    let flow = self.users[link][place];
                    if self.met_flow[flow] == self.walk {
                        continue;
                    }
                    self.met_flow[flow] = self.walk;
                    self.rates[flow] = least;
                    for &link in &self.links[flow] {
                        let (left, users) = &mut self.left[link];
                        *left -= least;
                        *users -= 1;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(capacities: &[f64], ways: &[&[usize]]) -> Vec<f64> {
        let mut sharing = Sharing::new(capacities.to_vec());
        for (flow, links) in ways.iter().enumerate() {
            sharing.add(flow, links);
        }
        sharing.settle(&mut Vec::new());
        (0..ways.len()).map(|flow| sharing.rate(flow)).collect()
    }

    #[test]
    fn shares_by_hand() {
        assert_eq!(rates(&[6.0], &[&[0], &[0], &[0]]), [2.0, 2.0, 2.0]);
        // The second is held back by the first link, and the third gets what it leaves of the other.
        assert_eq!(rates(&[1.0, 2.0], &[&[0], &[0, 1], &[1]]), [0.5, 0.5, 1.5]);
        assert_eq!(rates(&[3.0, 1.0, 8.0], &[&[0, 1], &[0, 2], &[2]]), [1.0, 2.0, 6.0]);
    }

    #[test]
    fn what_ends_is_shared_out_and_strangers_are_left_alone() {
        let mut sharing = Sharing::new(vec![4.0, 4.0, 10.0]);
        for (flow, links) in [&[0][..], &[0, 1], &[1], &[2]].iter().enumerate() {
            sharing.add(flow, links);
        }
        let mut settled = Vec::new();
        sharing.settle(&mut settled);
        assert_eq!(settled.len(), 4);
        sharing.remove(1);
        sharing.settle(&mut settled);
        settled.sort_unstable();
        assert_eq!(settled, [0, 2]);
        assert_eq!([0, 2, 3].map(|flow| sharing.rate(flow)), [4.0, 4.0, 10.0]);
    }

    /// The definition: every message uses a full link on which nobody gets more than it.
    #[test]
    fn rates_are_max_min_fair() {
        let mut state = 7_u64;
        let mut draw = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        for _ in 0..500 {
            let count = 1 + draw(8);
            let capacities: Vec<f64> = (0..count).map(|_| 1.0 + draw(10) as f64).collect();
            let ways: Vec<Vec<usize>> = (0..1 + draw(20))
                .map(|_| {
                    let first = draw(count);
                    (first..count).filter(|&link| link == first || draw(3) == 0).collect()
                })
                .collect();
            let found = rates(&capacities, &ways.iter().map(Vec::as_slice).collect::<Vec<_>>());
            let ways = &ways;
            let on = |link: usize| (0..ways.len()).filter(move |&flow| ways[flow].contains(&link));
            for (link, capacity) in capacities.iter().enumerate() {
                assert!(on(link).map(|flow| found[flow]).sum::<f64>() <= capacity * (1.0 + 1e-6));
            }
            for (flow, way) in ways.iter().enumerate() {
                let held_back = way.iter().any(|&link| {
                    let sum: f64 = on(link).map(|other| found[other]).sum();
                    let most = on(link).map(|other| found[other]).fold(0.0, f64::max);
                    sum >= capacities[link] * (1.0 - 1e-6) && found[flow] >= most * (1.0 - 1e-6)
                });
                assert!(held_back, "flow {flow} of {ways:?} over {capacities:?} could have more: {found:?}");
            }
        }
    }
}
