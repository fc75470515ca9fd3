//! Rows as comma-separated values, one line a row.

use crate::rows::{Ratio, Row};

/// The columns; times are in microseconds, the ratio is theirs over ours.
pub const HEAD: &str = "series,ranks,collective,buffers,timing,element,root,bytes,iterations,calls,\
t_min_us,t_avg_us,t_max_us,median_us,min_us,p25_us,p75_us,max_us,blocks,turn_medians_us,GB_per_s,\
loaded_bytes,stored_bytes,moved_over_n,critical_lines,waits,yields,sleeps,wakes,algorithm,\
ratio,ratio_low,ratio_high,to_floor,to_floor_low,to_floor_high";

/// `rows` with the head above them.
pub fn render(rows: &[Row]) -> String {
    let mut text = format!("{HEAD}\n");
    for row in rows {
        text.push_str(&line(row));
        text.push('\n');
    }
    text
}

fn line(row: &Row) -> String {
    let mut cells: Vec<String> = [
        &row.series as &dyn ToString,
        &row.ranks,
        &row.operation,
        &row.buffers,
        &row.timing,
        &row.element,
        &row.root,
        &row.bytes,
        &row.iterations,
        &row.calls,
    ]
    .map(|cell| cell.to_string())
    .into();
    let time = &row.time;
    let times = [row.t_min, row.t_avg, row.t_max, time.median, time.min, time.p25, time.p75, time.max];
    cells.extend(times.map(|us| format!("{us:.4}")));
    cells.push(time.count.to_string());
    cells.push(row.turns.iter().map(|us| format!("{us:.4}")).collect::<Vec<_>>().join(" "));
    cells.push(format!("{:.6}", row.bandwidth));
    match &row.counted {
        None => cells.extend(std::iter::repeat_n(String::new(), 8)),
        Some(c) => {
            cells.extend([c.loaded, c.stored, c.multiple].map(|v| format!("{v:.3}")));
            cells.push(c.critical_lines.to_string());
            cells.extend([c.waits, c.yields, c.sleeps, c.wakes].map(|v| format!("{v:.5}")));
        }
    }
    cells.push(quoted(row.algorithm.as_deref().unwrap_or_default()));
    for ratio in [row.ratio, row.to_floor] {
        match ratio {
            None => cells.extend(std::iter::repeat_n(String::new(), 3)),
            Some(Ratio { value, low, high }) => cells.extend([value, low, high].map(|v| format!("{v:.4}"))),
        }
    }
    cells.join(",")
}

/// `text` in quotes where a comma or a quote would break the line.
pub fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Operation;
    use crate::rows::tests::{case, samples};

    #[test]
    fn every_line_has_every_column() {
        let ours = Row::of("phalanx", 2, &case(Operation::Allreduce, 8), &[samples(1000.0)]);
        let mut theirs = samples(3000.0);
        (theirs.counts, theirs.choice) = (Vec::new(), None);
        let mut theirs = Row::of("openmpi", 2, &case(Operation::Allreduce, 8), &[theirs]);
        theirs.ratio = Some(Ratio { value: 3.0, low: 2.0, high: 4.0 });
        let text = render(&[ours, theirs]);
        let columns: Vec<usize> = text.lines().map(|line| line.split(',').count()).collect();
        assert_eq!(columns, [36, 36, 36]);
        assert!(text.contains("3.0000,2.0000,4.0000"));
    }

    #[test]
    fn commas_in_an_algorithm_are_quoted() {
        assert_eq!(quoted("shares,leaders=2"), "\"shares,leaders=2\"");
        assert_eq!(quoted("a \"b\""), "\"a \"\"b\"\"\"");
        assert_eq!(quoted("line flat"), "line flat");
    }
}
