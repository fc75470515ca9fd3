//! The page.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::chart;
use super::records::{Content, Entry};
use crate::reproduce::outcome::{Chart, Finding, Outcome, Sheet, Verdict};

/// How it looks; written by us, so that it needs no escape.
const STYLE: &str = include_str!("style.css");
/// The studies in the order of the page.
const ORDER: [&str; 5] = ["ring", "bcast", "release-gather", "dpml", "salar"];

/// The whole page.
pub fn render(title: &str, entries: &[Entry]) -> Markup {
    let mut studies: Vec<(&Entry, &Outcome)> = entries
        .iter()
        .filter_map(|entry| match &entry.content {
            Content::Reproduced(outcome) => Some((entry, &**outcome)),
            _ => None,
        })
        .collect();
    let place = |outcome: &Outcome| ORDER.iter().position(|name| *name == outcome.study).unwrap_or(ORDER.len());
    studies.sort_by_key(|(entry, outcome)| (outcome.quick, place(outcome), entry.name.clone()));
    let others: Vec<&Entry> = entries.iter().filter(|entry| !matches!(entry.content, Content::Reproduced(_))).collect();
    html! {
        (DOCTYPE)
        html lang="en-GB" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    h1 { (title) }
                    p {
                        "Made by " code { "bench report" } " from the records beside it. Every figure is one of a record, which has the host, the commit, the \
                        command and the spread. "
                        em { "Measured" } ": timed on real processes. " em { "Simulated" } ": computed by a model. " em { "Counted" } ": found by \
                        going through the schedules themselves."
                    }
                }
                nav {
                    ul {
                        @if !studies.is_empty() { li { a href="#summary" { "The papers' findings, and ours" } } }
                        @for (entry, outcome) in &studies {
                            li { a href=(format!("#{}", anchor(&entry.name))) { (heading(outcome)) } }
                        }
                        @for entry in &others {
                            li { a href=(format!("#{}", anchor(&entry.name))) { (title_of(entry)) } }
                        }
                        li { a href="#records" { "What was run where" } }
                    }
                }
                main {
                    @if !studies.is_empty() { (summary(&studies)) }
                    @for (entry, outcome) in &studies { (study(entry, outcome)) }
                    @for entry in &others { (other(entry)) }
                    (records(entries))
                }
            }
        }
    }
}

fn heading(outcome: &Outcome) -> String {
    let title = match outcome.study.as_str() {
        "ring" => "The ring allreduce",
        "bcast" => "The bandwidth-saving broadcast",
        "release-gather" => "Release and gather steps",
        "dpml" => "Several leaders a node",
        "salar" => "The pipeline of node and network",
        other => other,
    };
    format!("{title}{}", if outcome.quick { " (short form)" } else { "" })
}

/// What a record is about, or its name.
fn title_of(entry: &Entry) -> String {
    let about = match &entry.content {
        Content::Times { about, .. } => about.as_str(),
        _ => "",
    };
    let mut letters = about.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => entry.name.clone(),
    }
}

/// A name that may stand in a link.
fn anchor(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect()
}

fn verdict(verdict: Verdict) -> Markup {
    let class = match verdict {
        Verdict::Agrees => "agrees",
        Verdict::Partly => "partly",
        Verdict::Differs => "differs",
        Verdict::Open => "open",
    };
    html! { span class=(format!("verdict {class}")) { (verdict.word()) } }
}

/// One line a finding of all studies; of a short form none where there is a long one.
fn summary(studies: &[(&Entry, &Outcome)]) -> Markup {
    let long = |outcome: &Outcome| studies.iter().any(|(_, other)| other.study == outcome.study && !other.quick);
    let shown: Vec<&(&Entry, &Outcome)> =
        studies.iter().filter(|(_, outcome)| !outcome.quick || !long(outcome)).collect();
    let count = |wanted: Verdict| {
        shown.iter().flat_map(|(_, outcome)| &outcome.findings).filter(|finding| finding.verdict == wanted).count()
    };
    html! {
        section id="summary" {
            h2 { "The papers' findings, and ours" }
            p {
                @for wanted in [Verdict::Agrees, Verdict::Partly, Verdict::Differs, Verdict::Open] {
                    @if count(wanted) > 0 { (verdict(wanted)) " " (count(wanted)) " " }
                }
            }
            p class="soft" { "A verdict is made by a rule, which stands with the finding below. Hosts, networks and libraries are others than the papers'." }
            table class="findings" {
                colgroup { col style="width:15%"; col style="width:20%"; col style="width:25%"; col style="width:25%"; col style="width:15%"; }
                thead { tr { th { "study" } th { "about" } th { "paper" } th { "here" } th { "verdict" } } }
                tbody {
                    @for (entry, outcome) in &shown {
                        @for finding in &outcome.findings {
                            tr {
                                td { a href=(format!("#{}", anchor(&entry.name))) { (outcome.study) } }
                                td class="about" { (finding.about) }
                                td data-head="paper" { (finding.paper) }
                                td data-head="here" { (finding.ours) " " span class="soft" { "(" (finding.how.word()) ")" } }
                                td { (verdict(finding.verdict)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn study(entry: &Entry, outcome: &Outcome) -> Markup {
    html! {
        section id=(anchor(&entry.name)) {
            h2 { (heading(outcome)) }
            p { (outcome.paper) }
            @if outcome.quick {
                p class="warning" { "The short form: it shows that the study works. No figure should be taken from it." }
            }
            (links(entry))
            h3 { "What the paper did" }
            ul { @for text in &outcome.did { li { (text) } } }
            h3 { "What differs here" }
            ul { @for text in &outcome.differs { li { (text) } } }
            @if !outcome.ran.is_empty() {
                h3 { "What was run where" }
                ul {
                    @for ran in &outcome.ran {
                        li {
                            strong { (ran.name) } ", " (ran.how.word()) ": " (ran.place)
                            @if !ran.command.is_empty() { br; code { (ran.command) } }
                        }
                    }
                }
            }
            @for missing in &outcome.missing { p class="warning" { "Left out: " (missing) } }
            @if !outcome.findings.is_empty() {
                h3 { "Beside the paper" }
                (findings(&outcome.findings))
            }
            (charts(&outcome.charts))
            (tables(&outcome.tables))
        }
    }
}

fn findings(findings: &[Finding]) -> Markup {
    html! {
        table class="findings" {
            colgroup { col style="width:14%"; col style="width:25%"; col style="width:27%"; col style="width:12%"; col style="width:22%"; }
            thead { tr { th { "about" } th { "paper" } th { "here" } th { "verdict" } th { "why" } } }
            tbody {
                @for finding in findings {
                    tr {
                        td class="about" { (finding.about) }
                        td data-head="paper" { (finding.paper) " " span class="source" { "[" (finding.source) "]" } }
                        td data-head="here" { (finding.ours) " " span class="soft" { "(" (finding.how.word()) ")" } }
                        td { (verdict(finding.verdict)) }
                        td data-head="why" { (finding.why) }
                    }
                }
            }
        }
    }
}

fn charts(charts: &[Chart]) -> Markup {
    html! {
        @if charts.iter().any(|chart| !chart.curves.is_empty()) {
            div class="charts" {
                @for chart in charts.iter().filter(|chart| !chart.curves.is_empty()) { (chart::render(chart)) }
            }
        }
    }
}

fn tables(tables: &[Sheet]) -> Markup {
    html! {
        @for sheet in tables {
            @let words = |column: usize| if sheet.heads[column].ends_with('<') { "words" } else { "" };
            div class="wide" {
                table class="figures" {
                    caption { (sheet.title) }
                    thead {
                        tr {
                            @for (column, head) in sheet.heads.iter().enumerate() {
                                th class=(words(column)) scope="col" { (head.trim_end_matches('<')) }
                            }
                        }
                    }
                    tbody {
                        @for row in &sheet.rows {
                            tr { @for (column, cell) in row.iter().enumerate().take(sheet.heads.len()) { td class=(words(column)) { (cell) } } }
                        }
                    }
                }
            }
        }
    }
}

fn other(entry: &Entry) -> Markup {
    html! {
        section id=(anchor(&entry.name)) {
            h2 { (title_of(entry)) }
            @match &entry.content {
                Content::Times { charts: curves, tables: sheets, text, .. } => {
                    (links(entry))
                    (charts(curves))
                    (tables(sheets))
                    @if !text.is_empty() { pre { (text) } }
                }
                Content::Text(text) => {
                    (links(entry))
                    @if !text.is_empty() { pre { (text) } }
                }
                Content::Damaged(why) => {
                    p class="warning" { "This record cannot be read: " (why) }
                    (links(entry))
                }
                Content::Reproduced(_) => {}
            }
        }
    }
}

/// When, by which command, and the record's files.
fn links(entry: &Entry) -> Markup {
    html! {
        @if let Some(host) = &entry.host {
            p class="soft" { (host.time) ", commit " (host.short_commit()) ": " code { (host.command) } }
        }
        p class="soft" {
            "Record " (entry.name) ": "
            @for (index, file) in entry.files.iter().enumerate() {
                @if index > 0 { ", " }
                a href=(format!("{}/{file}", entry.link)) { (file) }
            }
        }
    }
}

/// One line a record: when, where, what.
fn records(entries: &[Entry]) -> Markup {
    html! {
        section id="records" {
            h2 { "What was run where" }
            div class="wide" {
                table {
                    thead { tr { @for head in ["record", "time", "machine", "kernel", "commit", "before"] { th class="words" { (head) } } } }
                    tbody {
                        @for entry in entries {
                            tr {
                                td class="words" { a href=(format!("#{}", anchor(&entry.name))) { (entry.name) } }
                                @if let Some(host) = &entry.host {
                                    td class="words" { (host.time) }
                                    td class="words" { (host.host) ": " (host.cpu) ", cores " (host.online) ", " (host.memory) }
                                    td class="words" { (host.kernel) }
                                    td class="words" { code { (host.short_commit()) } }
                                    td class="words" { (host.busy_words()) }
                                } @else {
                                    td class="words" colspan="5" { "not said" }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
