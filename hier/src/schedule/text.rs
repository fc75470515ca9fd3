//! Programs and schedules as tables of text.
//!
//! `>3 0-2` sends the segments 0, 1 and 2 to rank 3. `<3 0-2` receives them, and says by its last sign what is done
//! with them: `=` they take the place of what is there, `+.` they are combined on the left of it, `.+` on the right of
//! it. `5-1` goes round the end of the vector; `-` is a message without payload. A round without an entry is idle.

use std::fmt;

use super::{Combine, Program, Round, Schedule, Span};

const LEGEND: &str = ">to segments; <from segments, and = replaces, +. arrived op own, .+ own op arrived";

/// One row a round.
impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "rank {} of {}, {}, {} ({LEGEND})",
            self.rank,
            self.ranks,
            number(self.segments as usize, "segment"),
            number(self.rounds.len(), "round")
        )?;
        table(f, &[self])
    }
}

/// One row a round, one column a rank.
impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let segments = self.programs.first().map_or(0, |program| program.segments);
        let rounds = self.programs.iter().map(|program| program.rounds.len()).max().unwrap_or(0);
        writeln!(
            f,
            "{} over {}, {}, {} ({LEGEND})",
            self.goal,
            number(self.programs.len(), "rank"),
            number(segments as usize, "segment"),
            number(rounds, "round")
        )?;
        table(f, &self.programs.iter().collect::<Vec<_>>())
    }
}

fn number(count: usize, of: &str) -> String {
    format!("{count} {of}{}", if count == 1 { "" } else { "s" })
}

fn table(f: &mut fmt::Formatter<'_>, programs: &[&Program]) -> fmt::Result {
    let rounds = programs.iter().map(|program| program.rounds.len()).max().unwrap_or(0);
    let mut columns = vec![std::iter::once("round".to_owned()).chain((0..rounds).map(|r| r.to_string())).collect()];
    for program in programs {
        let cells =
            (0..rounds).map(|round| program.rounds.get(round).map_or_else(String::new, |r| cell(r, program.segments)));
        columns.push(std::iter::once(format!("rank {}", program.rank)).chain(cells).collect::<Vec<_>>());
    }
    let widths: Vec<usize> = columns.iter().map(|column| column.iter().map(String::len).max().unwrap_or(0)).collect();
    for row in 0..=rounds {
        let mut line = String::new();
        for (column, width) in columns.iter().zip(&widths) {
            line.push_str(&format!("{:width$} | ", column[row]));
        }
        writeln!(f, "{}", line.trim_end_matches([' ', '|']))?;
    }
    Ok(())
}

fn cell(round: &Round, segments: u32) -> String {
    let sends = round.sends.iter().map(|send| format!(">{} {}", send.to, span(send.span, segments)));
    let receives = round.receives.iter().map(|receive| {
        let sign = match receive.combine {
            Combine::Replace => "=",
            Combine::Left => "+.",
            Combine::Right => ".+",
        };
        format!("<{} {}{sign}", receive.from, span(receive.span, segments))
    });
    sends.chain(receives).collect::<Vec<_>>().join(" ")
}

fn span(span: Span, segments: u32) -> String {
    match span.count {
        0 => "-".to_owned(),
        1 => span.first.to_string(),
        count => {
            let last = (u64::from(span.first) + u64::from(count) - 1) % u64::from(segments.max(1));
            format!("{}-{last}", span.first)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{Algorithm, Goal, Order};

    fn rows(text: &str) -> Vec<&str> {
        text.lines().skip(1).collect()
    }

    #[test]
    fn a_ring_of_three() {
        let text = Schedule::new(Algorithm::Ring, Goal::Allreduce, 3).unwrap().to_string();
        assert!(text.starts_with("allreduce over 3 ranks, 3 segments, 4 rounds ("), "{text}");
        assert_eq!(
            rows(&text),
            [
                "round | rank 0      | rank 1      | rank 2",
                "0     | >1 2 <2 1+. | >2 0 <0 2+. | >0 1 <1 0+.",
                "1     | >1 1 <2 0+. | >2 2 <0 1+. | >0 0 <1 2+.",
                "2     | >1 0 <2 2=  | >2 1 <0 0=  | >0 2 <1 1=",
                "3     | >1 2 <2 1=  | >2 0 <0 2=  | >0 1 <1 0=",
            ]
        );
    }

    #[test]
    fn a_program_of_its_own() {
        let nearest = Algorithm::HalvingDoubling { order: Order::Nearest };
        let text = nearest.program(Goal::Allreduce, 5, 1).unwrap().to_string();
        assert!(text.starts_with("rank 1 of 5, 4 segments, 6 rounds ("), "{text}");
        assert_eq!(
            rows(&text),
            [
                "round | rank 1",
                "0     | <0 0-3+.",
                "1     | >2 2-3 <2 0-1.+",
                "2     | >3 1 <3 0.+",
                "3     | >3 0 <3 1=",
                "4     | >2 0-1 <2 2-3=",
                "5     | >0 0-3",
            ]
        );
    }

    #[test]
    fn spans_round_the_end_and_empty_ones() {
        assert_eq!(span(Span { first: 5, count: 3 }, 6), "5-1");
        assert_eq!(span(Span::EMPTY, 1), "-");
    }
}
