//! The text picture of a tree.

use std::fmt;

use super::Tree;

/// One rank a line, children below their parent in the order in which they are served.
///
/// ```
/// # fn main() -> Result<(), topo::Error> {
/// let tree = topo::TreeSpec::kary(2).build(&topo::SocketMap::uniform(5), 0)?;
/// assert_eq!(tree.to_string(), "\
/// 0
/// ├─ 1
/// │  ├─ 3
/// │  └─ 4
/// └─ 2");
/// # Ok(())
/// # }
/// ```
impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.root)?;
        // Ranks still to be written, each with its indent and whether it is the last of its parent. Not recursive: a
        // chain is as deep as it is long.
        let mut waiting = Vec::new();
        let push = |waiting: &mut Vec<_>, rank: usize, indent: &str| {
            let children = self.children.get(rank).map_or(&[][..], Vec::as_slice);
            for (i, &child) in children.iter().enumerate().rev() {
                waiting.push((child, indent.to_owned(), i + 1 == children.len()));
            }
        };
        push(&mut waiting, self.root, "");
        // A tree reaches no rank twice. Links that do are cut off here, so that broken ones can be looked at too.
        let mut lines = 1;
        while let Some((rank, indent, last)) = waiting.pop() {
            if lines == self.size() {
                return write!(f, "\n{indent}... and more than {lines} ranks: this is not a tree");
            }
            lines += 1;
            write!(f, "\n{indent}{} {rank}", if last { "└─" } else { "├─" })?;
            push(&mut waiting, rank, &format!("{indent}{}", if last { "   " } else { "│  " }));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_in_a_circle_end() {
        let tree = Tree { root: 0, parent: vec![None, Some(0)], children: vec![vec![1], vec![0]], depth: vec![0, 1] };
        assert!(tree.to_string().contains("not a tree"));
    }
}
