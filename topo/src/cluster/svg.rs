//! The picture of a cluster as SVG: switches in layers, hosts in a row, loads beside the links, the ring below.

use std::fmt::Write;

use super::Cluster;
use crate::svg::{CAPTION_LETTER, COLOURS, LETTER, MARGIN, escape, header};

/// Where the topmost switch starts, and how far apart layers of switches are.
const TOP: f64 = 88.0;
const DOWN: f64 = 96.0;
/// Height of a switch, and of the bus below it that its links leave from.
const SWITCH: f64 = 24.0;
const BUS: f64 = 18.0;
/// From the last layer of switches to the hosts.
const TO_HOSTS: f64 = 64.0;
/// Room between what hangs on different switches.
const GAP: f64 = 16.0;
/// The deepest arc of the ring, and the shallowest.
const ARC: (f64, f64) = (150.0, 16.0);

/// Colours of a channel without flow, with one, and with more.
const IDLE: &str = "#c4c8d0";
const ONE: &str = "#2c8a43";
const MORE: &str = "#c2321f";

const STYLES: &str = "\
.w { font-size: 11px; text-anchor: middle }
.h { font-size: 9px; text-anchor: end }
.u { font-size: 11px; text-anchor: end }
.d { font-size: 11px }
";

/// Where everything stands, in pixels from the left margin.
struct Places {
    host: Vec<f64>,
    switch: Vec<f64>,
    width: f64,
    /// From host to host.
    across: f64,
}

impl Cluster {
    /// Draws the cluster as an SVG document on a white ground of its own.
    ///
    /// Switches stand in layers, and hosts in a row below, in depth-first order. With a `ring` (hosts, each of which
    /// sends to the next, and the last to the first) an arc leads from each host to the next, dark where it leaves a
    /// switch, and the link above each switch shows the flows of the ring: ↑ towards the top, ↓ back. `caption` is the
    /// first line of text; the second counts, and names the busiest channel.
    ///
    /// Nothing but the arguments decides what is drawn, to the byte.
    ///
    /// # Panics
    ///
    /// When a host of the ring is not one of the cluster's.
    pub fn to_svg(&self, ring: Option<&[usize]>, caption: &str) -> String {
        let loads = ring.map(|ring| self.ring_loads(ring));
        let summary = self.summary(loads.as_deref());
        let places = self.places(loads.is_some());
        let legend = legend(ring.is_some());
        let letters = |text: &str| text.chars().count() as f64;
        let widest = legend.iter().map(|line| letters(line) * LETTER).fold(places.width, f64::max);
        let inner = widest.max(letters(caption) * CAPTION_LETTER).max(letters(&summary) * LETTER);
        let left = MARGIN + (inner - places.width) / 2.0;

        let deepest = self.depth.iter().copied().max().unwrap_or(0) as f64;
        let hosts_top = TOP + deepest * DOWN + SWITCH + TO_HOSTS;
        let longest = self.hosts.iter().map(|host| letters(&host.name)).fold(0.0, f64::max);
        let hosts_end = hosts_top + longest * 6.0 + 8.0;
        let arcs_end = hosts_end + if ring.is_some() { ARC.0 * 0.75 + 10.0 } else { 0.0 };
        let height = arcs_end + 24.0 + legend.len() as f64 * 18.0 + 10.0;

        let mut svg = header(inner + 2.0 * MARGIN, height, caption, &summary, STYLES);
        let _ = writeln!(
            svg,
            r##"<defs><marker id="a" viewBox="0 0 6 6" refX="5" refY="3" markerWidth="6" markerHeight="6" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L6 3L0 6z" fill="#30343c"/></marker></defs>
<g transform="translate({left:.1} 0)">"##
        );
        self.draw_links(&mut svg, &places, loads.as_deref(), hosts_top);
        self.draw_switches(&mut svg, &places);
        self.draw_hosts(&mut svg, &places, hosts_top, hosts_end);
        if let Some(ring) = ring {
            self.draw_ring(&mut svg, &places, ring, hosts_end + 2.0);
        }
        svg.push_str("</g>\n");
        for (row, line) in legend.iter().enumerate() {
            let y = arcs_end + 24.0 + row as f64 * 18.0;
            let _ = writeln!(svg, r#"<text class="s" x="{MARGIN}" y="{y:.1}">{line}</text>"#);
        }
        svg.push_str("</svg>\n");
        svg
    }

    /// The second line of the caption.
    fn summary(&self, loads: Option<&[u64]>) -> String {
        let (hosts, switches) = (self.hosts.len(), self.switches.len());
        let counted = format!(
            "{hosts} host{} on {switches} switch{}",
            if hosts == 1 { "" } else { "s" },
            if switches == 1 { "" } else { "es" }
        );
        match loads.map(|loads| self.busiest(loads)) {
            None => counted,
            Some(None) => format!("{counted}; the ring leaves no host"),
            Some(Some((_, 1))) => format!("{counted}; contention-free: no channel has more than 1 flow of the ring"),
            Some(Some((channel, flows))) => format!(
                "{counted}; contention: {flows} flows of the ring share the channel from {} to {}",
                self.name(channel.from),
                self.name(channel.to)
            ),
        }
    }

    /// Hosts in depth-first order, as far apart as their switches' names and loads need.
    fn places(&self, loads: bool) -> Places {
        let across = if self.hosts.len() <= 40 { 22.0 } else { 13.0 };
        let mut host = vec![0.0; self.hosts.len()];
        let mut switch = vec![0.0; self.switches.len()];
        let mut cursor = 0.0;
        // Where each switch's room starts; a switch comes by again, with it, when all below it is placed.
        let mut waiting = vec![(self.top, None)];
        while let Some((at, start)) = waiting.pop() {
            let name = self.switch_width(at).max(if loads { 76.0 } else { 0.0 });
            let own = &self.switches[at];
            match start {
                None => {
                    waiting.push((at, Some(cursor)));
                    waiting.extend(own.switches.iter().rev().map(|&below| (below, None)));
                    let room = own.hosts.len() as f64 * across;
                    // Hosts alone are put into the middle of a room that the name makes wider.
                    let indent = if own.switches.is_empty() { ((name - room) / 2.0).max(0.0) } else { 0.0 };
                    for (i, &below) in own.hosts.iter().enumerate() {
                        host[below] = cursor + indent + (i as f64 + 0.5) * across;
                    }
                    cursor += room + if own.hosts.is_empty() || own.switches.is_empty() { 0.0 } else { GAP };
                }
                Some(start) => {
                    // The last switch below has left a gap behind it.
                    let end = if own.switches.is_empty() { cursor } else { cursor - GAP };
                    let end = f64::max(end, start + name);
                    switch[at] = (start + end) / 2.0;
                    cursor = end + GAP;
                }
            }
        }
        Places { host, switch, width: cursor - GAP, across }
    }

    fn switch_width(&self, switch: usize) -> f64 {
        self.switches[switch].name.chars().count() as f64 * 6.9 + 18.0
    }

    fn switch_top(&self, switch: usize) -> f64 {
        TOP + self.depth[switch] as f64 * DOWN
    }

    /// A bus below each switch, and from it down to each host and to each switch.
    fn draw_links(&self, svg: &mut String, places: &Places, loads: Option<&[u64]>, hosts_top: f64) {
        svg.push_str("<g fill=\"none\" stroke=\"#8b909b\" stroke-width=\"1.2\">\n");
        for (at, switch) in self.switches.iter().enumerate() {
            let (x, y) = (places.switch[at], self.switch_top(at) + SWITCH);
            let hosts = switch.hosts.iter().map(|&host| places.host[host]);
            let ends = hosts.chain(switch.switches.iter().map(|&below| places.switch[below]));
            let (first, last) = ends.fold((x, x), |(first, last), end| (first.min(end), last.max(end)));
            let bus = y + BUS;
            let _ = writeln!(svg, r#"<path d="M{x:.1} {y:.1}V{bus:.1}M{first:.1} {bus:.1}H{last:.1}"/>"#);
        }
        for (at, host) in self.hosts.iter().enumerate() {
            let (x, y) = (places.host[at], self.switch_top(host.switch) + SWITCH + BUS);
            let colour = loads.map_or(IDLE, |loads| colour(loads[2 * at].max(loads[2 * at + 1])));
            let _ = writeln!(svg, r#"<path d="M{x:.1} {y:.1}V{hosts_top:.1}" stroke="{colour}"/>"#);
        }
        svg.push_str("</g>\n");
        for (i, &low) in self.below.iter().enumerate() {
            let link = self.hosts.len() + i;
            let (x, end) = (places.switch[low], self.switch_top(low));
            let start = end - DOWN + SWITCH + BUS;
            let Some(loads) = loads else {
                let _ =
                    writeln!(svg, r##"<path d="M{x:.1} {start:.1}V{end:.1}" stroke="#8b909b" stroke-width="1.2"/>"##);
                continue;
            };
            for (side, flows) in [(-1.0, loads[2 * link]), (1.0, loads[2 * link + 1])] {
                let thick = 1.5 + (flows.max(1) as f64).log2().min(5.0);
                let line = x + side * (1.5 + thick / 2.0);
                let (colour, text, y) = (colour(flows), x + side * (6.0 + thick), (start + end) / 2.0 + 4.0);
                let (class, arrow) = if side < 0.0 { ("u", "↑") } else { ("d", "↓") };
                let _ = writeln!(
                    svg,
                    r#"<path d="M{line:.1} {start:.1}V{end:.1}" stroke="{colour}" stroke-width="{thick:.1}"/>"#
                );
                let _ = writeln!(
                    svg,
                    r#"<text class="{class}" x="{text:.1}" y="{y:.1}" style="fill:{colour}">{arrow}{flows}</text>"#
                );
            }
        }
    }

    fn draw_switches(&self, svg: &mut String, places: &Places) {
        for (at, switch) in self.switches.iter().enumerate() {
            let (x, y, width) = (places.switch[at], self.switch_top(at), self.switch_width(at));
            let (fill, outline) = self.colours(at);
            let _ = writeln!(
                svg,
                r#"<rect x="{:.1}" y="{y:.1}" width="{width:.1}" height="{SWITCH}" rx="5" fill="{fill}" stroke="{outline}" stroke-width="1.5"/>"#,
                x - width / 2.0
            );
            let name = escape(&switch.name);
            let _ = writeln!(svg, r#"<text class="w" x="{x:.1}" y="{:.1}">{name}</text>"#, y + SWITCH / 2.0 + 4.0);
        }
    }

    /// Hosts as upright boxes with their names from below.
    fn draw_hosts(&self, svg: &mut String, places: &Places, top: f64, end: f64) {
        let width = (places.across - 2.0).min(16.0);
        for (at, host) in self.hosts.iter().enumerate() {
            let x = places.host[at];
            let (fill, outline) = self.colours(host.switch);
            let _ = writeln!(
                svg,
                r#"<rect x="{:.1}" y="{top:.1}" width="{width:.1}" height="{:.1}" rx="3" fill="{fill}" stroke="{outline}"/>"#,
                x - width / 2.0,
                end - top
            );
            let (x, y, name) = (x + 3.2, top + 4.0, escape(&host.name));
            let _ = writeln!(svg, r#"<text class="h" transform="translate({x:.1} {y:.1}) rotate(-90)">{name}</text>"#);
        }
    }

    fn draw_ring(&self, svg: &mut String, places: &Places, ring: &[usize], y: f64) {
        svg.push_str("<g fill=\"none\" marker-end=\"url(#a)\">\n");
        let apart = |from: usize, to: usize| (places.host[from] - places.host[to]).abs();
        let next = ring.iter().cycle().skip(1);
        let pairs: Vec<(usize, usize)> = ring.iter().zip(next).map(|(&from, &to)| (from, to)).collect();
        let longest = pairs.iter().map(|&(from, to)| apart(from, to)).fold(1.0, f64::max);
        // An arc leaves a host on the side that it leads to, and comes in on the side that it comes from, nearer to the
        // middle: the two arcs of a host stay apart.
        let aside =
            |from: f64, to: f64, part: f64| if from < to { places.across * part } else { -places.across * part };
        let leaving = pairs.iter().filter(|&&(from, to)| self.hosts[from].switch != self.hosts[to].switch).count();
        let dark = if leaving > 2 * self.switches.len() { 0.8 } else { 1.4 };
        // Dark arcs last, on top.
        for leaves in [false, true] {
            for &(from, to) in &pairs {
                if from == to || leaves != (self.hosts[from].switch != self.hosts[to].switch) {
                    continue;
                }
                let down = ARC.1 + (ARC.0 - ARC.1) * apart(from, to) / longest;
                let (x, end) = (places.host[from], places.host[to]);
                let (x, end, low) = (x + aside(x, end, 0.3), end - aside(x, end, 0.1), y + down);
                let (colour, thick) = if leaves { ("#30343c", dark) } else { ("#8b909b", 1.1) };
                let _ = writeln!(
                    svg,
                    r#"<path d="M{x:.1} {y:.1}C{x:.1} {low:.1} {end:.1} {low:.1} {end:.1} {y:.1}" stroke="{colour}" stroke-width="{thick}"/>"#
                );
            }
        }
        svg.push_str("</g>\n");
    }

    /// Switches with hosts, and their hosts, have colours in turn; the others are white.
    fn colours(&self, switch: usize) -> (&'static str, &'static str) {
        let with_hosts = |switch: &super::Switch| !switch.hosts.is_empty();
        if !with_hosts(&self.switches[switch]) {
            return ("#fff", "#30343c");
        }
        let before = self.switches[..switch].iter().filter(|&switch| with_hosts(switch)).count();
        COLOURS[before % COLOURS.len()]
    }
}

fn colour(flows: u64) -> &'static str {
    match flows {
        0 => IDLE,
        1 => ONE,
        _ => MORE,
    }
}

fn legend(ring: bool) -> &'static [&'static str] {
    if !ring {
        return &[];
    }
    &[
        "Links: flows of the ring, ↑ towards the top and ↓ back; red where several share a channel.",
        "Arcs: each host sends to the next of the ring; dark from one switch to another.",
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No two hosts and no two switches of a layer stand in the same place, however narrow or nested they are.
    #[test]
    fn nothing_overlaps() {
        let nested =
            "SwitchName=a-long-name Nodes=x\nSwitchName=b Switches=a-long-name,c Nodes=y[0-1]\nSwitchName=c Nodes=z";
        for cluster in ["flat:1", "1+1+1+1", "3x2x2", "16+1", "8x16"]
            .map(|text| text.parse::<Cluster>().unwrap())
            .into_iter()
            .chain([Cluster::from_topology_conf(nested).unwrap()])
        {
            let places = cluster.places(true);
            for a in 0..cluster.hosts.len() {
                assert!(places.host[a] > 0.0 && places.host[a] < places.width, "{cluster}");
                for b in 0..a {
                    assert!((places.host[a] - places.host[b]).abs() >= places.across - 0.01, "{cluster}: {a} and {b}");
                }
            }
            for a in 0..cluster.switches.len() {
                for b in (0..a).filter(|&b| cluster.depth[a] == cluster.depth[b]) {
                    let room = (cluster.switch_width(a) + cluster.switch_width(b)) / 2.0;
                    assert!((places.switch[a] - places.switch[b]).abs() >= room, "{cluster}: switches {a} and {b}");
                }
            }
        }
    }

    #[test]
    fn what_is_counted_is_written() {
        let cluster: Cluster = "2+2".parse().unwrap();
        let plain = cluster.to_svg(None, "<two>");
        assert!(plain.contains("&lt;two&gt;") && plain.contains("4 hosts on 3 switches<") && !plain.contains('↑'));
        let good = cluster.to_svg(Some(&[0, 1, 2, 3]), "");
        assert!(good.contains("contention-free") && good.matches(">↑1<").count() == 2 && !good.contains(MORE));
        let bad = cluster.to_svg(Some(&[0, 2, 1, 3]), "");
        assert!(
            bad.contains("2 flows of the ring share the channel from s0 to top") && bad.matches(">↓2<").count() == 2
        );
        assert_eq!(bad.matches("<path d=\"M").count() - good.matches("<path d=\"M").count(), 0);
        assert!(cluster.to_svg(Some(&[2]), "").contains("leaves no host"));
    }
}
