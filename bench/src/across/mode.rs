//! How a library sends, and by what it combines.

use serde::Serialize;

use super::options::Across;
use super::program::Library;

/// How the library sends, and by what it combines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Mode {
    /// Messages of all sizes are sent at once.
    pub eager: bool,
    /// Open MPI prefers coll/han.
    pub han: bool,
    /// The algorithm that the library must take for an allreduce; its own choice without one.
    pub forced: Option<Forced>,
}

/// An algorithm of a library for allreduces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Forced {
    /// log2 N exchanges of whole vectors.
    RecursiveDoubling,
    /// A ring of all ranks.
    Ring,
    /// Halving and doubling.
    Rabenseifner,
}

impl Forced {
    const ALL: [Forced; 3] = [Forced::RecursiveDoubling, Forced::Ring, Forced::Rabenseifner];

    fn name(self) -> &'static str {
        match self {
            Forced::RecursiveDoubling => "recursive-doubling",
            Forced::Ring => "ring",
            Forced::Rabenseifner => "rabenseifner",
        }
    }

    /// What the library calls it in its settings; None if it has no such algorithm.
    fn word(self, library: Library) -> Option<&'static str> {
        match (library, self) {
            (Library::OpenMpi, Forced::RecursiveDoubling) => Some("3"),
            (Library::OpenMpi, Forced::Ring) => Some("4"),
            (Library::OpenMpi, Forced::Rabenseifner) => Some("6"),
            (Library::Mpich, Forced::RecursiveDoubling) => Some("recursive_doubling"),
            (Library::Mpich, Forced::Rabenseifner) => Some("reduce_scatter_allgather"),
            (Library::Mpich, Forced::Ring) => None,
        }
    }
}

impl Mode {
    /// The library's own choice of algorithms.
    pub fn usual(eager: bool) -> Mode {
        Mode { eager, han: false, forced: None }
    }

    /// The modes that a library is run in.
    pub fn of(options: &Across, library: Library) -> Vec<Mode> {
        let mut modes = Vec::new();
        for eager in [false, true] {
            if if eager { options.stock } else { options.eager } {
                continue;
            }
            modes.push(Mode::usual(eager));
            if options.han && library == Library::OpenMpi {
                modes.push(Mode { han: true, ..Mode::usual(eager) });
            }
            if options.forced {
                let there = Forced::ALL.into_iter().filter(|forced| forced.word(library).is_some());
                modes.extend(there.map(|forced| Mode { forced: Some(forced), ..Mode::usual(eager) }));
            }
        }
        modes
    }

    /// Whether the library takes other algorithms than it would by itself.
    pub fn is_told(self) -> bool {
        self.han || self.forced.is_some()
    }

    /// Its name: `stock`, `eager`, with `han` or an algorithm behind it.
    pub fn name(self) -> String {
        let sends = if self.eager { "eager" } else { "stock" };
        let takes = if self.han { Some("han") } else { self.forced.map(Forced::name) };
        takes.map_or(sends.into(), |takes| format!("{sends}-{takes}"))
    }

    /// The settings of the library for it. How it sends is for the cluster's script.
    pub fn environment(self, library: Library) -> Vec<(&'static str, &'static str)> {
        let mut settings = Vec::new();
        if self.han {
            settings.push(("OMPI_MCA_coll_han_priority", "100"));
        }
        if let Some(word) = self.forced.and_then(|forced| forced.word(library)) {
            settings.extend(match library {
                Library::OpenMpi => {
                    [("OMPI_MCA_coll_tuned_use_dynamic_rules", "1"), ("OMPI_MCA_coll_tuned_allreduce_algorithm", word)]
                }
                Library::Mpich => {
                    [("MPIR_CVAR_DEVICE_COLLECTIVES", "none"), ("MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM", word)]
                }
            });
        }
        settings
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::command::{Cli, Command};

    fn names(words: &[&str], library: Library) -> Vec<String> {
        match Cli::try_parse_from(["bench", "across"].iter().chain(words)).unwrap().command {
            Command::Across(options) => Mode::of(&options, library).into_iter().map(Mode::name).collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn modes_are_those_asked_for_and_that_the_library_has() {
        assert_eq!(names(&[], Library::OpenMpi), ["stock", "eager"]);
        assert_eq!(names(&["--eager", "--han"], Library::OpenMpi), ["eager", "eager-han"]);
        assert_eq!(names(&["--stock", "--han"], Library::Mpich), ["stock"]);
        assert_eq!(
            names(&["--stock", "--forced"], Library::Mpich),
            ["stock", "stock-recursive-doubling", "stock-rabenseifner"]
        );
        assert_eq!(names(&["--eager", "--forced"], Library::OpenMpi)[2], "eager-ring");
    }

    #[test]
    fn each_library_is_told_in_its_own_words() {
        let ring = Mode { forced: Some(Forced::Ring), ..Mode::usual(true) };
        assert!(ring.is_told() && !Mode::usual(true).is_told());
        assert!(ring.environment(Library::OpenMpi).contains(&("OMPI_MCA_coll_tuned_allreduce_algorithm", "4")));
        assert!(
            ring.environment(Library::Mpich).is_empty() && Mode::usual(false).environment(Library::Mpich).is_empty()
        );
    }
}
