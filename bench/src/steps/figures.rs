//! From jobs to rows: one case on one MPI, without the library and with it.

use serde::Serialize;

use super::job::Taken;
use super::patterns::{Case, Unit};
use crate::rows::Ratio;
use crate::statistics::Summary;

/// The jobs of a row without the library, or with it.
#[derive(Clone, Debug, Serialize)]
pub struct Side {
    /// Microseconds of a step on the slowest rank, over the turns.
    pub wall: Summary,
    /// Microseconds of processor time of a step, of all ranks together, over the turns.
    pub processor: Summary,
    /// Each turn.
    pub turns: Vec<Taken>,
}

impl Side {
    fn of(turns: Vec<Taken>) -> Side {
        let summary = |figure: fn(&Taken) -> f64| Summary::of(&turns.iter().map(figure).collect::<Vec<_>>());
        Side { wall: summary(|taken| taken.wall), processor: summary(|taken| taken.processor), turns }
    }
}

/// What a ratio says of the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It does not lose in the median.
    Holds,
    /// It loses in the median, and not in every turn.
    Doubtful,
    /// It loses in every turn.
    Loses,
}

impl Verdict {
    /// What is said of a figure without the library over that with it.
    pub fn of(ratio: &Ratio) -> Verdict {
        match ratio {
            Ratio { high, .. } if *high < 1.0 => Verdict::Loses,
            Ratio { value, .. } if *value < 1.0 => Verdict::Doubtful,
            _ => Verdict::Holds,
        }
    }

    /// The mark in a table.
    pub fn mark(self) -> &'static str {
        match self {
            Verdict::Holds => "",
            Verdict::Doubtful => "?",
            Verdict::Loses => "!",
        }
    }
}

/// One case on one MPI.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The MPI.
    pub baseline: String,
    /// How many ranks.
    pub ranks: usize,
    /// The pattern.
    pub pattern: &'static str,
    /// Its argument.
    pub argument: u64,
    /// What that counts.
    pub unit: Unit,
    /// Without the library.
    pub without: Side,
    /// With it.
    pub with: Side,
    /// Time without the library over time with it, turn by turn. Above 1 the library gains.
    pub ratio: Ratio,
    /// The same of processor time; none where no turn took any.
    pub processor_ratio: Option<Ratio>,
}

impl Row {
    /// The row of so many turns, each without the library and with it; none of none.
    pub fn of(baseline: &str, ranks: usize, case: Case, turns: &[[Taken; 2]]) -> Option<Row> {
        let ratio = |figure: fn(&Taken) -> f64| {
            let ratios = turns.iter().map(|[without, with]| figure(without) / figure(with));
            Ratio::of(&ratios.collect::<Vec<_>>())
        };
        let side = |which: usize| Side::of(turns.iter().map(|turn| turn[which]).collect());
        Some(Row {
            baseline: baseline.into(),
            ranks,
            pattern: case.pattern.name,
            argument: case.argument,
            unit: case.pattern.unit,
            without: side(0),
            with: side(1),
            ratio: ratio(|taken| taken.wall)?,
            processor_ratio: ratio(|taken| taken.processor),
        })
    }

    /// Whether it is about this case.
    pub fn is_of(&self, ranks: usize, case: &Case) -> bool {
        (self.ranks, self.pattern, self.argument) == (ranks, case.pattern.name, case.argument)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::steps::patterns::cases;

    /// A row of turns whose steps took so long without the library and with it.
    pub fn row(baseline: &str, wish: &str, turns: &[[f64; 2]]) -> Row {
        let case = cases(&[wish.into()], true).unwrap()[0];
        let taken = |wall: f64| Taken { steps: 32, wall, processor: 2.0 * wall };
        let turns: Vec<[Taken; 2]> = turns.iter().map(|turn| turn.map(taken)).collect();
        Row::of(baseline, 2, case, &turns).unwrap()
    }

    #[test]
    fn a_ratio_is_taken_turn_by_turn() {
        let row = row("openmpi", "cg", &[[2.0, 1.0], [40.0, 10.0], [3.0, 1.0]]);
        assert_eq!((row.ratio.value, row.ratio.low, row.ratio.high), (3.0, 2.0, 4.0));
        assert_eq!(row.processor_ratio, Some(row.ratio));
        assert_eq!((row.without.wall.median, row.with.wall.median), (3.0, 1.0));
    }

    #[test]
    fn what_takes_no_processor_time_has_no_ratio_of_it() {
        let nothing = Taken { steps: 3, wall: 1.0, processor: 0.0 };
        let case = cases(&["io-barrier".into()], true).unwrap()[0];
        assert_eq!(Row::of("mpich", 2, case, &[[nothing; 2]]).unwrap().processor_ratio, None);
        assert!(Row::of("mpich", 2, case, &[]).is_none());
    }

    #[test]
    fn a_loss_is_one_in_every_turn() {
        let verdict = |turns: &[[f64; 2]]| Verdict::of(&row("impi", "late", turns).ratio);
        assert_eq!(verdict(&[[1.0, 2.0], [1.0, 1.1]]), Verdict::Loses);
        assert_eq!(verdict(&[[1.0, 2.0], [1.1, 1.0]]), Verdict::Doubtful);
        assert_eq!(verdict(&[[1.0, 1.0]]), Verdict::Holds);
    }
}
