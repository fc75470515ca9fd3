//! The pictures in `docs/` are what the code draws.

#[allow(dead_code)]
#[path = "../examples/pictures.rs"]
mod pictures;

use std::path::Path;

#[test]
fn stored_pictures_are_drawn_pictures() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let page = std::fs::read_to_string(docs.join("TREES.md")).expect("TREES.md");
    let pictures = pictures::pictures().expect("the specifications are right");
    for (name, drawn) in &pictures {
        let stored = std::fs::read_to_string(docs.join(name)).unwrap_or_default();
        assert!(stored == *drawn, "docs/{name} is out of date; run `cargo run -p topo --example pictures`");
        assert!(page.contains(name), "TREES.md does not show {name}");
    }
    let stored = std::fs::read_dir(&docs).expect("docs").flatten();
    let svgs = stored.filter(|entry| entry.path().extension().is_some_and(|extension| extension == "svg"));
    assert_eq!(svgs.count(), pictures.len(), "docs/ holds a picture that nobody draws");
}
