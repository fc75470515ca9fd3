//! The picture of a tree as SVG: circles in layers, coloured by group, with the serving order at each link.

use std::fmt::Write;

use super::{Level, SocketMap, Tree};
use crate::svg::{CAPTION_LETTER, COLOURS, LETTER, MARGIN, header};

/// Radius of a rank's circle, and the room between circles and between layers, in pixels.
const RADIUS: f64 = 14.0;
const ACROSS: f64 = 36.0;
const DOWN: f64 = 84.0;
/// Room for the caption above the root.
const CAPTION: f64 = 72.0;
/// The texts of ranks and of turns.
const STYLES: &str = "\
.r { font-size: 12px; text-anchor: middle }
.t { font-size: 9.5px; text-anchor: middle; fill: #4a4f5a; stroke: #fff; stroke-width: 4px; paint-order: stroke }
";

impl Tree {
    /// Draws the tree as an SVG document on a white ground of its own.
    ///
    /// Ranks stand in layers by their depth, coloured by their group at `level`. Children stand from left to right in
    /// the order in which they are served, and the number above each tells its turn. Links that leave a group are
    /// drawn strong. `caption` is the first line of text; the second counts ranks, groups, depth and children.
    ///
    /// Nothing but the arguments decides what is drawn, to the byte.
    ///
    /// # Panics
    ///
    /// When `map` has fewer ranks than the tree, or the tree is none ([`Tree::check`]).
    pub fn to_svg(&self, map: &SocketMap, level: Level, caption: &str) -> String {
        assert!(self.check().is_ok() && map.size() >= self.size(), "not a tree over the ranks of this map");
        let places = self.places();
        let widest = places.iter().fold(0.0, |widest: f64, place| widest.max(*place));
        let summary = self.summary(map, level);
        let legend = self.legend(map, level);
        let legend_width = legend.iter().map(|(_, text)| legend_room(text)).fold(0.0, f64::max);
        let width = (widest + 2.0 * RADIUS)
            .max(caption.chars().count() as f64 * CAPTION_LETTER)
            .max(summary.chars().count() as f64 * LETTER)
            .max(legend_width)
            + 2.0 * MARGIN;
        let rows = legend_rows(&legend, width - 2.0 * MARGIN);
        let legend_top = CAPTION + MARGIN + RADIUS + self.height() as f64 * DOWN + RADIUS + 30.0;
        let height = legend_top + rows.len() as f64 * 22.0 + 8.0;
        let left = (width - widest) / 2.0;
        let at = |rank: usize| (left + places[rank], CAPTION + MARGIN + RADIUS + self.depth[rank] as f64 * DOWN);

        let mut svg = header(width, height, caption, &summary, STYLES);
        self.links(&mut svg, map, level, &at);
        self.circles(&mut svg, map, level, &at);
        self.turns(&mut svg, &at);
        for (row, entries) in rows.iter().enumerate() {
            let y = legend_top + row as f64 * 22.0;
            let mut x = MARGIN;
            for (group, text) in entries {
                let (fill, outline) = COLOURS[group % COLOURS.len()];
                let _ = writeln!(
                    svg,
                    r#"<circle cx="{:.1}" cy="{y:.1}" r="7" fill="{fill}" stroke="{outline}" stroke-width="1.5"/>"#,
                    x + 7.0
                );
                let _ = writeln!(svg, r#"<text class="s" x="{:.1}" y="{:.1}">{text}</text>"#, x + 20.0, y + 4.5);
                x += legend_room(text);
            }
        }
        svg.push_str("</svg>\n");
        svg
    }

    /// How far to the right each rank stands, from 0: subtrees as close together as their outlines allow, each parent
    /// in the middle above its children.
    fn places(&self) -> Vec<f64> {
        // From the deepest layer up; a rank's offset is relative to its parent.
        let mut order: Vec<usize> = (0..self.size()).collect();
        order.sort_by_key(|&rank| std::cmp::Reverse(self.depth[rank]));
        let mut offset = vec![0.0; self.size()];
        // For each subtree, layer by layer from its root, how far it reaches to the left and to the right of it.
        let mut outlines: Vec<Vec<(f64, f64)>> = vec![Vec::new(); self.size()];
        for &rank in &order {
            let mut joined: Vec<(f64, f64)> = Vec::new();
            let mut shifts = Vec::new();
            for &child in &self.children[rank] {
                let outline = std::mem::take(&mut outlines[child]);
                let shift = joined
                    .iter()
                    .zip(&outline)
                    .map(|(&(_, right), &(left, _))| right - left + ACROSS)
                    .fold(shifts.last().map_or(0.0, |&before: &f64| before + ACROSS), f64::max);
                shifts.push(shift);
                for (layer, (left, right)) in outline.into_iter().enumerate() {
                    match joined.get_mut(layer) {
                        Some(reach) => *reach = (reach.0.min(left + shift), reach.1.max(right + shift)),
                        None => joined.push((left + shift, right + shift)),
                    }
                }
            }
            let middle = shifts.last().map_or(0.0, |last| last / 2.0);
            for (&child, shift) in self.children[rank].iter().zip(shifts) {
                offset[child] = shift - middle;
            }
            let below = joined.into_iter().map(|(left, right)| (left - middle, right - middle));
            outlines[rank] = std::iter::once((0.0, 0.0)).chain(below).collect();
        }
        let leftmost = outlines[self.root].iter().fold(0.0, |least: f64, reach| least.min(reach.0));
        let mut places = vec![0.0; self.size()];
        for &rank in order.iter().rev() {
            places[rank] = self.parent[rank].map_or(-leftmost, |parent| places[parent] + offset[rank]);
        }
        places
    }

    /// The second line of the caption.
    fn summary(&self, map: &SocketMap, level: Level) -> String {
        let groups = map.groups(level);
        let name = match level {
            Level::Package => "socket",
            Level::Numa => "NUMA node",
            Level::L3 => "L3 cache",
        };
        let s = |count: usize| if count == 1 { "" } else { "s" };
        format!(
            "{} rank{} on {groups} {name}{}, root {}; depth {}, at most {} children; numbers: whose turn it is",
            self.size(),
            s(self.size()),
            s(groups),
            self.root,
            self.height(),
            self.widest(),
        )
    }

    /// For each group that the tree has ranks in, its text in the legend.
    fn legend(&self, map: &SocketMap, level: Level) -> Vec<(usize, String)> {
        let name = match level {
            Level::Package => "socket",
            Level::Numa => "NUMA node",
            Level::L3 => "L3 cache",
        };
        let mut members: Vec<Vec<usize>> = vec![Vec::new(); map.groups(level)];
        for rank in 0..self.size() {
            members[map.group(rank, level)].push(rank);
        }
        let texts = members.iter().enumerate().filter(|(_, ranks)| !ranks.is_empty());
        texts.map(|(group, ranks)| (group, format!("{name} {group}: {}", named(ranks)))).collect()
    }

    fn links(&self, svg: &mut String, map: &SocketMap, level: Level, at: &impl Fn(usize) -> (f64, f64)) {
        svg.push_str("<g fill=\"none\" stroke-linecap=\"round\">\n");
        // Strong links last, on top.
        for strong in [false, true] {
            for (rank, children) in self.children.iter().enumerate() {
                for &child in children {
                    let leaves = map.group(rank, level) != map.group(child, level);
                    if leaves != strong {
                        continue;
                    }
                    let (colour, thick) = if strong { ("#30343c", 2.6) } else { ("#a3a8b2", 1.5) };
                    let _ = writeln!(
                        svg,
                        r#"<path d="{}" stroke="{colour}" stroke-width="{thick}"/>"#,
                        link(at(rank), at(child))
                    );
                }
            }
        }
        svg.push_str("</g>\n");
    }

    fn circles(&self, svg: &mut String, map: &SocketMap, level: Level, at: &impl Fn(usize) -> (f64, f64)) {
        for rank in 0..self.size() {
            let (x, y) = at(rank);
            let (fill, outline) = COLOURS[map.group(rank, level) % COLOURS.len()];
            let thick = if rank == self.root { 3.5 } else { 1.5 };
            let _ = writeln!(
                svg,
                r#"<circle cx="{x:.1}" cy="{y:.1}" r="{RADIUS}" fill="{fill}" stroke="{outline}" stroke-width="{thick}"/>"#
            );
            let _ = writeln!(svg, r#"<text class="r" x="{x:.1}" y="{:.1}">{rank}</text>"#, y + 4.5);
        }
    }

    /// The number above each child that says its turn, on a white spot so that the link does not cross it out.
    fn turns(&self, svg: &mut String, at: &impl Fn(usize) -> (f64, f64)) {
        for children in &self.children {
            for (turn, &child) in children.iter().enumerate() {
                let (x, y) = at(child);
                let _ = writeln!(svg, r#"<text class="t" x="{x:.1}" y="{:.1}">{}</text>"#, y - RADIUS - 6.0, turn + 1);
            }
        }
    }
}

/// The way from a parent to a child: down, across at the same height for all children of the parent, and down again,
/// so that links of many children stay apart where they arrive.
fn link((x, y): (f64, f64), (to_x, to_y): (f64, f64)) -> String {
    let across = y + DOWN * 0.42;
    let bend = ((to_x - x).abs() / 2.0).min(9.0);
    if bend < 0.1 {
        return format!("M{x:.1} {y:.1}V{to_y:.1}");
    }
    let (start, end) = if to_x > x { (x + bend, to_x - bend) } else { (x - bend, to_x + bend) };
    format!(
        "M{x:.1} {y:.1}V{:.1}Q{x:.1} {across:.1} {start:.1} {across:.1}H{end:.1}Q{to_x:.1} {across:.1} {to_x:.1} \
         {:.1}V{to_y:.1}",
        across - bend,
        across + bend,
    )
}

/// The room that one entry of the legend takes.
fn legend_room(text: &str) -> f64 {
    20.0 + text.chars().count() as f64 * LETTER + 24.0
}

/// The legend's entries in rows that fit the width.
fn legend_rows(legend: &[(usize, String)], width: f64) -> Vec<Vec<&(usize, String)>> {
    let mut rows: Vec<Vec<&(usize, String)>> = Vec::new();
    let mut used = f64::INFINITY;
    for entry in legend {
        let room = legend_room(&entry.1);
        if used + room > width {
            rows.push(Vec::new());
            used = 0.0;
        }
        used += room;
        if let Some(row) = rows.last_mut() {
            row.push(entry);
        }
    }
    rows
}

/// "rank 3", "ranks 0-19", or how many when a list would be long.
fn named(ranks: &[usize]) -> String {
    let list = crate::index_list::format(ranks);
    match ranks.len() {
        1 => format!("rank {list}"),
        many if list.len() > 40 => format!("{many} ranks"),
        _ => format!("ranks {list}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TreeSpec;

    #[test]
    fn no_two_circles_touch() {
        for spec in ["flat", "kary:1", "kary:3:right", "knomial:2", "knomial:8:package:leaders-last"] {
            let tree = spec.parse::<TreeSpec>().unwrap().build(&SocketMap::blocks(61, 3), 7).unwrap();
            let places = tree.places();
            assert!(places.iter().all(|&place| place >= 0.0), "{spec}");
            for a in 0..61 {
                for b in 0..a {
                    let apart = (places[a] - places[b]).abs();
                    assert!(tree.depth[a] != tree.depth[b] || apart > ACROSS - 0.01, "{spec}: {a} and {b}");
                }
            }
        }
    }

    #[test]
    fn a_caption_is_text_not_markup() {
        let map = SocketMap::uniform(1);
        let tree = TreeSpec::flat().build(&map, 0).unwrap();
        let svg = tree.to_svg(&map, Level::Package, "<script> & \"quotes\"");
        assert!(svg.contains("&lt;script&gt; &amp; &quot;quotes&quot;") && !svg.contains("<script>"));
        assert!(svg.contains("1 rank on 1 socket, root 0; depth 0"));
    }

    #[test]
    fn the_legend_breaks_into_rows() {
        let legend: Vec<_> = (0..9).map(|group| (group, format!("socket {group}: rank {group}"))).collect();
        let rows = legend_rows(&legend, 400.0);
        assert_eq!(rows.concat().len(), 9);
        assert!(rows.iter().all(|row| (1..=2).contains(&row.len())));
    }
}
