use super::*;
use crate::record::host::Host;
use crate::reproduce::text::tests::sample;

/// Elements that HTML closes by themselves.
const VOID: [&str; 4] = ["meta", "br", "col", "!DOCTYPE"];

/// Fails unless every element is closed in turn.
fn assert_well_formed(text: &str) {
    let start = text.find("</style>").unwrap_or(0);
    let head = text.find("<style>").unwrap_or(0);
    let without_style = format!("{}{}", &text[..head], &text[start + "</style>".len()..]);
    let mut open: Vec<String> = Vec::new();
    for part in without_style.split('<').skip(1) {
        let tag = part.split('>').next().unwrap();
        assert!(tag.matches('"').count().is_multiple_of(2), "{tag}");
        let name = tag.trim_start_matches('/').split_whitespace().next().unwrap();
        match (tag.starts_with('/'), VOID.contains(&name)) {
            (true, _) => assert_eq!(open.pop().as_deref(), Some(name)),
            (false, true) => {}
            (false, false) => open.push(name.into()),
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

fn entry(name: &str, content: Content) -> Entry {
    Entry { name: name.into(), link: name.into(), files: vec!["host.txt".into()], host: Some(Host::look()), content }
}

fn page() -> String {
    let study = Content::Reproduced(Box::new(sample()));
    let entries = [
        entry("2026-a", study),
        entry("2026-b", Content::Damaged("a <line> is missing".into())),
        entry("2026-c", Content::Text("x < y & z".into())),
        entry(
            "2026-d",
            Content::Times {
                about: "two".into(),
                charts: sample().charts,
                tables: sample().tables,
                text: "a > b".into(),
            },
        ),
    ];
    render("A <title> & more", &entries).into_string()
}

#[test]
fn it_is_well_formed_and_everything_is_escaped() {
    let text = page();
    assert_well_formed(&text);
    for word in [
        "A &lt;title&gt; &amp; more",
        "a &lt;line&gt; is missing",
        "x &lt; y &amp; z",
        "a &lt; b &amp; &quot;c&quot;",
        "no &lt;MPI&gt;",
    ] {
        assert!(text.contains(word), "{word}");
    }
    assert!(!text.contains("<MPI>") && !text.contains("<On>"));
}

#[test]
fn it_needs_no_network_and_no_script() {
    let text = page();
    for word in ["<script", "http-equiv", "src=", "@import", "url(", "<link"] {
        assert!(!text.contains(word), "{word}");
    }
    assert!(
        text.contains("prefers-color-scheme: dark")
            && text.contains("@media print")
            && text.contains("width=device-width")
    );
}

#[test]
fn findings_stand_beside_the_papers_with_their_source_and_reason() {
    let text = page();
    for word in [
        "256 KB",
        "Figure 6, page 19",
        "300 KB",
        "within a factor of two",
        "verdict agrees",
        "bench across --hosts 2",
        "short form",
    ] {
        assert!(text.contains(word), "{word}");
    }
}

#[test]
fn links_within_the_page_have_an_end() {
    let text = page();
    for target in text.split("href=\"#").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        assert!(text.contains(&format!("id=\"{target}\"")), "{target}");
    }
}
