//! Draws the pictures of `docs/TREES.md`. In the workspace's folder: `cargo run -p topo --example pictures`.

use std::path::Path;

use topo::{Error, Level, SocketMap, TreeSpec};

/// File name, tree and caption of each picture.
const PICTURES: [(&str, &str, &str); 8] = [
    ("flat-40.svg", "flat", "The root serves everybody"),
    ("knomial-2-left-16.svg", "knomial:2", "Binomial, left-skewed: the largest subtree is served first"),
    ("knomial-2-right-16.svg", "knomial:2:right", "Binomial, right-skewed: the largest subtree comes last"),
    ("kary-2-leaders-first-20.svg", "kary:2:package", "Binary, leaders of other sockets first"),
    ("kary-2-leaders-last-40.svg", "kary:2:right:package:leaders-last", "Binary, own socket first"),
    ("kary-3-leaders-last-40.svg", "kary:3:right:package:leaders-last", "Ternary, own socket first"),
    ("knomial-4-right-40.svg", "knomial:4:right", "K-nomial, K = 4, ignoring sockets"),
    ("knomial-8-40.svg", "knomial:8", "K-nomial, K = 8, ignoring sockets"),
];

/// The name and the text of every picture. The number of ranks ends the name; 40 and 16 of them sit on two sockets,
/// and 20 on five.
pub fn pictures() -> Result<Vec<(&'static str, String)>, Error> {
    let draw = |(name, spec, caption): (&'static str, &str, &str)| {
        let spec: TreeSpec = spec.parse()?;
        let map = match name.trim_end_matches(".svg").rsplit_once('-') {
            Some((_, "16")) => SocketMap::blocks(16, 2),
            Some((_, "20")) => SocketMap::blocks(20, 5),
            _ => SocketMap::blocks(40, 2),
        };
        let tree = spec.build(&map, 0)?;
        Ok((name, tree.to_svg(&map, Level::Package, &format!("{caption}: {spec}"))))
    };
    PICTURES.into_iter().map(draw).collect()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if std::env::args().len() > 1 {
        return Err("it takes no arguments, and draws all pictures anew".into());
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    for (name, text) in pictures()? {
        std::fs::write(folder.join(name), text)?;
        println!("docs/{name}");
    }
    Ok(())
}
