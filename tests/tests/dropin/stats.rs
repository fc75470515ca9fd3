//! What the library counted in a job, as it writes it to a file.

/// Calls of one collective, or of all; those of all ranks together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// Carried out by the library.
    pub calls: u64,
    /// Handed on to the MPI beneath.
    pub handed: u64,
}

/// A row of the statistics.
#[derive(Debug)]
struct Row {
    collective: String,
    calls: Calls,
}

/// The statistics of a job.
#[derive(Debug)]
pub struct Stats {
    rows: Vec<Row>,
}

impl Stats {
    /// From values parted by commas, with a line of names; the first line that is wrong.
    pub fn from_csv(text: &str) -> Result<Self, &str> {
        let mut lines = text.lines();
        let names: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
        let place = |wanted| names.iter().position(|name| *name == wanted).ok_or("no such column");
        let (collective, calls, handed) = (place("collective")?, place("calls")?, place("handed_on")?);
        let row = |line: &'_ str| {
            let values: Vec<&str> = line.split(',').collect();
            let number = |place: usize| values.get(place)?.parse().ok();
            Some(Row {
                collective: (*values.get(collective)?).to_owned(),
                calls: Calls { calls: number(calls)?, handed: number(handed)? },
            })
        };
        let rows = lines.map(|line| row(line).ok_or(line)).collect::<Result<_, _>>()?;
        Ok(Self { rows })
    }

    /// Those of one collective.
    pub fn of(&self, collective: &str) -> Calls {
        self.sum(|row| row.collective == collective)
    }

    /// Calls that were taken over.
    pub fn calls(&self) -> u64 {
        self.sum(|_| true).calls
    }

    /// Calls that were handed on.
    pub fn handed(&self) -> u64 {
        self.sum(|_| true).handed
    }

    fn sum(&self, which: impl Fn(&Row) -> bool) -> Calls {
        self.rows.iter().filter(|row| which(row)).fold(Calls::default(), |sum, row| Calls {
            calls: sum.calls + row.calls.calls,
            handed: sum.handed + row.calls.handed,
        })
    }
}

#[test]
fn statistics_are_read() {
    let text = "collective,ranks,up_to_bytes,calls,seconds,handed_on,handed_on_seconds,reasons,algorithm\n\
                bcast,2,8,10,0.1,2,0.2,\"one rank 1; no bytes 1\",\"line, flat\"\n\
                bcast,2,64,5,0.1,0,0,\"\",\"line\"\nreduce,2,8,1,0.1,3,0,\"\",\"\"\n";
    let stats = Stats::from_csv(text).unwrap();
    assert_eq!(stats.of("bcast"), Calls { calls: 15, handed: 2 });
    assert_eq!(stats.of("barrier"), Calls::default());
    assert_eq!((stats.calls(), stats.handed()), (16, 5));
    assert_eq!(Stats::from_csv("collective,calls,handed_on\nbcast,many,1").unwrap_err(), "bcast,many,1");
}
