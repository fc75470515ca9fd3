//! What all drawings share: paper, caption, colours and letters.

/// Room around a drawing, in pixels.
pub(crate) const MARGIN: f64 = 28.0;
/// Widths of letters in the caption's and the legend's fonts, estimated: the drawing cannot measure text.
pub(crate) const CAPTION_LETTER: f64 = 10.0;
pub(crate) const LETTER: f64 = 6.9;

/// Fill and outline of what belongs to each group, in turn. Told apart by people who see fewer colours as well.
pub(crate) const COLOURS: [(&str, &str); 6] = [
    ("#cfe3f7", "#1f6fb5"),
    ("#fde0bd", "#c46a00"),
    ("#d3efd6", "#2c8a43"),
    ("#efd5ec", "#9a3b8f"),
    ("#fff1a8", "#8f7a00"),
    ("#dcdde1", "#5b5f6b"),
];

/// The document up to the drawing: ground, styles and caption. `styles` are rules of the drawing's own, one a line.
pub(crate) fn header(width: f64, height: f64, caption: &str, summary: &str, styles: &str) -> String {
    let (caption, summary) = (escape(caption), escape(summary));
    format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0}" height="{height:.0}" viewBox="0 0 {width:.0} {height:.0}" role="img" aria-label="{caption}">
<style>
text {{ font-family: "DejaVu Sans", Verdana, Helvetica, Arial, sans-serif; fill: #1d2027 }}
.c {{ font-size: 16px; font-weight: bold }}
.s {{ font-size: 12px; fill: #4a4f5a }}
{styles}</style>
<rect x="0.5" y="0.5" width="{:.0}" height="{:.0}" rx="10" fill="#fff" stroke="#d5d8de"/>
<text class="c" x="{MARGIN}" y="38">{caption}</text>
<text class="s" x="{MARGIN}" y="60">{summary}</text>
"##,
        width - 1.0,
        height - 1.0,
    )
}

/// Text as it stands in a document: markup in it is shown, not obeyed.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
