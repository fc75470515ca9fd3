//! Links, their channels, and the way from host to host.

use super::Cluster;

/// One end of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum End {
    /// The host of this index.
    Host(usize),
    /// The switch of this index.
    Switch(usize),
}

/// One direction of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Channel {
    /// The link that it is a direction of.
    pub link: usize,
    /// Where its bytes come from.
    pub from: End,
    /// Where they go to.
    pub to: End,
}

impl Cluster {
    /// How many links there are: one above each host, and one above each switch but the top one.
    pub fn links(&self) -> usize {
        self.hosts.len() + self.below.len()
    }

    /// How many channels there are: two for each link.
    pub fn channels(&self) -> usize {
        2 * self.links()
    }

    /// What the channel of this index joins. Channel `2 * link` leads towards the top, `2 * link + 1` back.
    ///
    /// # Panics
    ///
    /// When there is no such channel.
    pub fn channel(&self, channel: usize) -> Channel {
        let link = channel / 2;
        let (low, above) = match link.checked_sub(self.hosts.len()) {
            None => (End::Host(link), Some(self.hosts[link].switch)),
            Some(i) => (End::Switch(self.below[i]), self.switches[self.below[i]].parent),
        };
        let high = End::Switch(above.unwrap_or(self.top));
        let (from, to) = if channel.is_multiple_of(2) { (low, high) } else { (high, low) };
        Channel { link, from, to }
    }

    /// The link from a switch to the one above it; `None` for the top.
    pub fn uplink(&self, switch: usize) -> Option<usize> {
        (switch != self.top).then(|| self.uplink[switch])
    }

    /// The name of a link's end.
    pub fn name(&self, end: End) -> &str {
        match end {
            End::Host(host) => &self.hosts[host].name,
            End::Switch(switch) => &self.switches[switch].name,
        }
    }

    /// The channels from one host to another, in the order in which bytes pass them. Empty from a host to itself.
    ///
    /// # Panics
    ///
    /// When there is no such host.
    ///
    /// ```
    /// # fn main() -> Result<(), topo::cluster::Error> {
    /// let cluster: topo::Cluster = "2+2".parse()?;
    /// let names = |channel: &usize| {
    ///     let channel = cluster.channel(*channel);
    ///     format!("{}>{}", cluster.name(channel.from), cluster.name(channel.to))
    /// };
    /// let route: Vec<String> = cluster.route(1, 2).iter().map(names).collect();
    /// assert_eq!(route, ["n1>s0", "s0>top", "top>s1", "s1>n2"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn route(&self, from: usize, to: usize) -> Vec<usize> {
        let (mut up, mut down) = (Vec::new(), Vec::new());
        self.each_channel(
            from,
            to,
            |channel| {
                if channel.is_multiple_of(2) { up.push(channel) } else { down.push(channel) }
            },
        );
        // Channels down are met from the host upwards.
        up.extend(down.into_iter().rev());
        up
    }

    /// Calls `visit` with each channel of a route: those up in their order, those down against it, mixed.
    pub(super) fn each_channel(&self, from: usize, to: usize, mut visit: impl FnMut(usize)) {
        let (mut a, mut b) = (self.hosts[from].switch, self.hosts[to].switch);
        if from == to {
            return;
        }
        visit(2 * from);
        visit(2 * to + 1);
        while a != b {
            // The deeper one climbs; of two that are equally deep both will.
            if self.depth[a] >= self.depth[b] {
                visit(2 * self.uplink[a]);
                a = self.switches[a].parent.unwrap_or(self.top);
            } else {
                visit(2 * self.uplink[b] + 1);
                b = self.switches[b].parent.unwrap_or(self.top);
            }
        }
    }
}
