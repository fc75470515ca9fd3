//! Tables of text: columns as wide as they must be, numbers to the right, words to the left.

use crate::plan::{Operation, Timing};
use crate::rows::Row;
use crate::sizes::show_size;

/// A table that is filled row by row.
#[derive(Clone, Debug, Default)]
pub struct Table {
    heads: Vec<String>,
    /// Columns that are aligned to the left.
    left: Vec<usize>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these column heads; heads that end in `<` align to the left.
    pub fn new<S: AsRef<str>>(heads: &[S]) -> Table {
        let left = heads.iter().enumerate().filter(|(_, head)| head.as_ref().ends_with('<')).map(|(i, _)| i).collect();
        let heads = heads.iter().map(|head| head.as_ref().trim_end_matches('<').to_string()).collect();
        Table { heads, left, rows: Vec::new() }
    }

    /// Appends a row.
    pub fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.heads.len());
        self.rows.push(cells);
    }

    /// The text, each line indented by two and ended.
    pub fn render(&self) -> String {
        let width = |column: usize| {
            let cells = self.rows.iter().map(|row| row[column].chars().count());
            cells.chain([self.heads[column].chars().count()]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.heads.len()).map(width).collect();
        let line = |cells: &[String]| {
            let mut text = String::from(" ");
            for (column, cell) in cells.iter().enumerate() {
                let space = widths[column] - cell.chars().count();
                let (before, after) = if self.left.contains(&column) { (0, space) } else { (space, 0) };
                text.push_str(&format!(
                    "{:w$}{cell}{:a$}",
                    "",
                    "",
                    w = before + if column == 0 { 1 } else { 2 },
                    a = after
                ));
            }
            format!("{}\n", text.trim_end())
        };
        std::iter::once(&self.heads).chain(&self.rows).map(|cells| line(cells)).collect()
    }
}

/// Microseconds with as many digits as mean something.
pub fn microseconds(us: f64) -> String {
    match us {
        us if us < 10.0 => format!("{us:.3}"),
        us if us < 100.0 => format!("{us:.2}"),
        us if us < 1000.0 => format!("{us:.1}"),
        us => format!("{us:.0}"),
    }
}

/// A number with about three digits, `-` for nothing at all.
pub fn three_digits(value: f64) -> String {
    match value {
        0.0 => "-".into(),
        v if v < 0.0095 => format!("{v:.4}"),
        v if v < 9.995 => format!("{v:.2}"),
        v if v < 99.95 => format!("{v:.1}"),
        v if v < 1e6 => format!("{v:.0}"),
        v => format!("{v:.2e}"),
    }
}

/// Which columns a table of results has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// Those that fit into a terminal.
    Short,
    /// All.
    Full,
}

/// The rows of one rank count, collective, buffer mode and timing as text: ours, with the
/// baselines beside it.
pub fn results(rows: &[&Row], baselines: &[String], width: Width) -> String {
    let full = width == Width::Full;
    let ours: Vec<&&Row> = rows.iter().filter(|row| row.series == crate::runs::ours::NAME).collect();
    let floor = ours.iter().any(|row| row.to_floor.is_some());
    let mut heads: Vec<String> = vec!["bytes".into()];
    if full {
        heads.push("calls".into());
    }
    let mut add = |more: &[&str]| heads.extend(more.iter().map(|head| head.to_string()));
    add(&["t_min", "t_avg", "t_max", "median", "spread", "GB/s"]);
    if full {
        add(&["loaded+stored", "x n", "lines", "waits", "sleeps", "wakes"]);
    } else {
        add(&["x n", "sleeps"]);
    }
    if floor {
        add(&["x floor"]);
    }
    for name in baselines {
        add(&[name, "ratio"]);
    }
    add(&["algorithm<"]);
    let mut table = Table::new(&heads);
    for row in ours {
        let mut cells = vec![if row.operation.has_bytes() { show_size(row.bytes) } else { "-".into() }];
        if full {
            cells.push(row.calls.to_string());
        }
        cells.extend([row.t_min, row.t_avg, row.t_max, row.time.median].map(microseconds));
        cells.push(format!("{:.0}%", 100.0 * row.time.spread()));
        cells.push(three_digits(row.bandwidth));
        let counted = row.counted.as_ref();
        let number = |value: Option<f64>| value.map_or_else(String::new, three_digits);
        if full {
            cells.push(counted.map_or_else(String::new, |c| format!("{:.0}", c.loaded + c.stored)));
            cells.push(number(counted.map(|c| c.multiple)));
            cells.push(counted.map_or_else(String::new, |c| c.critical_lines.to_string()));
            cells.extend([counted.map(|c| c.waits), counted.map(|c| c.sleeps), counted.map(|c| c.wakes)].map(number));
        } else {
            cells.extend([counted.map(|c| c.multiple), counted.map(|c| c.sleeps)].map(number));
        }
        if floor {
            cells.push(row.to_floor.map_or_else(String::new, |ratio| format!("{:.2}", ratio.value)));
        }
        for name in baselines {
            let theirs = rows.iter().find(|other| other.series == *name && row.is_beside(other));
            cells.push(theirs.map_or_else(|| "-".into(), |other| microseconds(other.time.median)));
            cells.push(
                theirs
                    .and_then(|other| row.ratio_to(other))
                    .map_or_else(|| "-".into(), |ratio| three_digits(ratio.value)),
            );
        }
        cells.push(row.algorithm.clone().unwrap_or_default());
        table.row(cells);
    }
    table.render()
}

/// `1 rank`, `2 ranks`.
pub fn ranks(count: usize) -> String {
    if count == 1 { "1 rank".into() } else { format!("{count} ranks") }
}

/// The title above such a table.
pub fn title(row: &Row, binding: &str) -> String {
    let timing = match row.timing {
        Timing::Stream => "calls back to back",
        Timing::Each => "a common start before each call, each call timed alone",
        Timing::Loaded => "a common start before each call, each call timed alone, until its result is loaded",
        Timing::Step => "a common start before each step, each step timed alone: input written, call, result loaded",
    };
    match row.operation {
        Operation::Barrier => format!("barrier, {} {binding}, {timing} [us]", ranks(row.ranks)),
        operation => {
            format!("{operation}, {} {binding}, {} buffers, {timing} [us]", ranks(row.ranks), row.buffers)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::tests::{case, samples};
    use crate::rows::{Ratio, Row};

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(&["a", "word<", "c"]);
        table.row(vec!["1".into(), "x".into(), "1000".into()]);
        table.row(vec!["100".into(), "longer".into(), "2".into()]);
        assert_eq!(table.render(), "    a  word       c\n    1  x       1000\n  100  longer     2\n");
    }

    #[test]
    fn numbers_keep_the_digits_that_mean_something() {
        assert_eq!([0.1234567, 12.3456, 123.456, 12345.6].map(microseconds), ["0.123", "12.35", "123.5", "12346"]);
        assert_eq!([0.0, 0.00123, 1.234, 12.34, 1234.0].map(three_digits), ["-", "0.0012", "1.23", "12.3", "1234"]);
    }

    #[test]
    fn a_baseline_stands_beside_ours() {
        let mut ours = Row::of("phalanx", 2, &case(Operation::Allreduce, 8), &[samples(1000.0)]);
        ours.to_floor = Some(Ratio { value: 1.25, low: 1.2, high: 1.3 });
        let mut theirs = Row::of("openmpi", 2, &case(Operation::Allreduce, 8), &[samples(3000.0)]);
        theirs.ratio = ours.ratio_to(&theirs);
        for width in [Width::Short, Width::Full] {
            let text = results(&[&ours, &theirs], &["openmpi".into()], width);
            assert_eq!(text.lines().count(), 2);
            for word in ["x floor", "1.25", "openmpi", "3.00", "line flat", "1.500"] {
                assert!(text.contains(word), "{word} in {text}");
            }
        }
        assert!(title(&ours, "bound to cores").contains("2 ranks bound to cores, warm buffers"));
    }
}
