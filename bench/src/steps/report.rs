//! The tables of `bench steps`, and what is said below them.

use super::figures::{Row, Verdict};
use super::patterns::{Case, PATTERNS};
use crate::out::{WIDTH, paragraph};
use crate::rows::Ratio;
use crate::runs::Binding;
use crate::table::{self, Table, microseconds, three_digits};

/// What the columns and marks mean.
pub const LEGEND: &str = "\
Of each MPI: microseconds of a step without the library (below the MPI's name) and with it, medians over the turns.
ratio: without / with, the median of the turns' ratios; above 1 the library gains. cpu: the same of the processor time
of all ranks. !: the library loses in every turn. ?: it loses in the median, not in every turn.";

/// The patterns and their arguments.
pub fn list() -> String {
    let mut table = Table::new(&["pattern<", "a step<", "argument<", "rows<"]);
    for pattern in PATTERNS {
        let rows: Vec<String> = pattern.arguments.iter().map(|&argument| pattern.unit.show(argument)).collect();
        table.row(vec![pattern.name.into(), pattern.words.into(), pattern.unit.word().into(), rows.join(" ")]);
    }
    table.render()
}

fn marked(ratio: Option<&Ratio>) -> String {
    ratio.map_or_else(|| "-".into(), |ratio| format!("{}{}", three_digits(ratio.value), Verdict::of(ratio).mark()))
}

/// The cases of one rank count, with columns for each MPI. Empty where there are no rows.
pub fn table(rows: &[Row], ranks: usize, cases: &[Case], baselines: &[String]) -> String {
    let rows: Vec<&Row> = rows.iter().filter(|row| row.ranks == ranks).collect();
    if rows.is_empty() {
        return String::new();
    }
    let mut heads: Vec<String> = ["pattern<", "argument", "<"].map(String::from).into();
    for name in baselines {
        heads.extend([name.as_str(), "with", "ratio<", "cpu<"].map(String::from));
    }
    let mut table = Table::new(&heads);
    for case in cases {
        let here: Vec<&&Row> = rows.iter().filter(|row| row.is_of(ranks, case)).collect();
        if here.is_empty() {
            continue;
        }
        let unit = case.pattern.unit;
        let mut cells = vec![case.pattern.name.into(), unit.show(case.argument), unit.word().into()];
        for name in baselines {
            match here.iter().find(|row| row.baseline == *name) {
                Some(row) => {
                    cells.extend([&row.without, &row.with].map(|side| microseconds(side.wall.median)));
                    cells.extend([Some(&row.ratio), row.processor_ratio.as_ref()].map(marked));
                }
                None => cells.extend(["-"; 4].map(String::from)),
            }
        }
        table.row(cells);
    }
    let binding = Binding::Auto.resolve(ranks).words();
    format!("whole steps, {} {binding}, without the library and with it [us]\n{}", table::ranks(ranks), table.render())
}

/// All figures of a rank count with their spread, MPI by MPI.
pub fn details(rows: &[Row], ranks: usize, baselines: &[String]) -> String {
    let mut text = String::new();
    for name in baselines {
        let mut table = Table::new(&[
            "pattern<", "argument", "<", "steps", "without", "p25", "p75", "with", "p25", "p75", "ratio<", "range<",
            "cpu us", "with", "ratio<", "range<",
        ]);
        let here = || rows.iter().filter(|row| row.ranks == ranks && row.baseline == *name);
        for row in here() {
            let steps = [&row.without, &row.with].map(|side| side.turns.iter().map(|turn| turn.steps).sum::<u64>());
            let mut cells = vec![row.pattern.into(), row.unit.show(row.argument), row.unit.word().into()];
            cells.push(format!("{}+{}", steps[0], steps[1]));
            for time in [&row.without.wall, &row.with.wall] {
                cells.extend([time.median, time.p25, time.p75].map(microseconds));
            }
            let range = |ratio: Option<&Ratio>| {
                ratio.map_or_else(String::new, |ratio| format!("{:.2}..{:.2}", ratio.low, ratio.high))
            };
            cells.extend([marked(Some(&row.ratio)), range(Some(&row.ratio))]);
            cells.extend([&row.without, &row.with].map(|side| microseconds(side.processor.median)));
            let processor = row.processor_ratio.as_ref();
            cells.extend([marked(processor), range(processor)]);
            table.row(cells);
        }
        if here().next().is_some() {
            text += &format!("{name}, {}, with the spread over the turns\n{}\n", table::ranks(ranks), table.render());
        }
    }
    text
}

/// How many rows lose, and which, those that lose most first: of time, and of processor time.
pub fn summary(rows: &[Row]) -> String {
    let mut text = String::new();
    let mut part = |what: &str, of: fn(&Row) -> Option<&Ratio>| {
        for (verdict, words) in
            [(Verdict::Loses, "lost in every turn"), (Verdict::Doubtful, "lost in the median, not in every turn")]
        {
            let mut found: Vec<(&Row, &Ratio)> = rows.iter().filter_map(|row| Some((row, of(row)?))).collect();
            found.retain(|(_, ratio)| Verdict::of(ratio) == verdict);
            found.sort_by(|one, other| one.1.value.total_cmp(&other.1.value));
            let name = |(row, ratio): &(&Row, &Ratio)| {
                let Row { baseline, ranks, pattern, argument, unit, .. } = row;
                format!("{baseline} -n {ranks} {pattern} {} ({:.2})", unit.show(*argument), ratio.value)
            };
            let names: Vec<String> = found.iter().map(name).collect();
            text += &format!("{what}, {words}: {} of {} rows\n", names.len(), rows.len());
            if !names.is_empty() {
                paragraph(&mut text, WIDTH, "  ", &names.join(", "));
            }
        }
    };
    part("time", |row| Some(&row.ratio));
    part("processor time", |row| row.processor_ratio.as_ref());
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::figures::tests::row;
    use crate::steps::patterns::cases;

    fn rows() -> Vec<Row> {
        vec![
            row("openmpi", "cg:100", &[[2.0, 1.0], [3.0, 1.0]]),
            row("mpich", "cg:100", &[[1.0, 2.0], [1.0, 4.0]]),
            row("openmpi", "pivot:2K", &[[1.0, 2.0], [1.25, 1.0]]),
        ]
    }

    #[test]
    fn every_case_has_a_line_and_every_mpi_its_columns() {
        let cases = cases(&["cg:100".into(), "pivot:2K".into(), "late".into()], false).unwrap();
        let text = table(&rows(), 2, &cases, &["openmpi".into(), "mpich".into()]);
        assert_eq!(text.lines().count(), 4, "{text}");
        for word in ["2.50", "0.38!", "0.88?", "2K", "points"] {
            assert!(text.contains(word), "{word} in\n{text}");
        }
        assert!(table(&rows(), 8, &cases, &["openmpi".into()]).is_empty());
        assert_eq!(details(&rows(), 2, &["openmpi".into(), "impi".into()]).lines().count(), 5);
    }

    #[test]
    fn losers_are_counted_and_named() {
        let text = summary(&rows());
        let losses = "time, lost in every turn: 1 of 3 rows\n  mpich -n 2 cg 100 (0.38)\n";
        assert!(text.starts_with(losses), "{text}");
        assert!(text.contains("not in every turn: 1 of 3 rows\n  openmpi -n 2 pivot 2K (0.88)\n"), "{text}");
        assert!(summary(&rows()[..1]).starts_with("time, lost in every turn: 0 of 1 rows\ntime, lost in the median"));
    }

    #[test]
    fn the_list_has_all_patterns() {
        assert_eq!(list().lines().count(), 1 + PATTERNS.len());
    }
}
