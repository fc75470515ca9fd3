//! Variables of the environment that begin as Phalanx's do and are none of them: a misspelt one counts for nothing, and
//! nothing else would say so.

use std::ffi::OsString;

use hier::remark;

/// Those that count in jobs, on clusters, in the library for MPI programs.
const KNOWN: [&str; 18] = [
    "PHALANX_AFTER",
    "PHALANX_ALGORITHM",
    "PHALANX_ARENA",
    "PHALANX_CLUSTER",
    "PHALANX_CMA",
    "PHALANX_CONVERT",
    "PHALANX_DEBUG",
    "PHALANX_DISABLE",
    "PHALANX_HEAP",
    "PHALANX_LIBRARY_PATH",
    "PHALANX_NETWORK",
    "PHALANX_PLACE",
    "PHALANX_STATS",
    "PHALANX_TABLE",
    "PHALANX_TAKE",
    "PHALANX_TOPOLOGY",
    "PHALANX_TREES",
    "PHALANX_VERIFY",
];

/// What a rank is told, and nobody sets.
const TOLD: [&str; 4] = ["PHALANX_JOB", "PHALANX_RANK", "PHALANX_SEGMENT", "PHALANX_SIZE"];

/// What the project's own tests and builds go by.
const OWN: [&str; 4] = ["PHALANX_TEST_", "PHALANX_MPICC", "PHALANX_MPI_ABI", "PHALANX_STANDARD_MPI_H"];

/// Letters by which a name may differ from the one that was meant; half of what a short one has behind `PHALANX_`.
const SLIPS: usize = 3;

/// A line on standard error for each variable that nobody knows; said once, and not by each rank again.
pub fn name_strangers() {
    if std::env::var_os("PHALANX_RANK").is_some() {
        return;
    }
    for (name, _) in std::env::vars_os() {
        if let Some(word) = stranger(&name) {
            remark(format_args!("{word}"));
        }
    }
}

/// What is to be said of a variable, if anything is.
fn stranger(name: &OsString) -> Option<String> {
    let name = name.to_string_lossy();
    let is_known = KNOWN.iter().chain(&TOLD).any(|&known| known == name);
    let is_ours = is_known || OWN.iter().any(|own| name.starts_with(own));
    if !name.starts_with("PHALANX_") || is_ours {
        return None;
    }
    let far = |known: &&&str| strsim::damerau_levenshtein(known, &name);
    let meant = KNOWN.iter().min_by_key(far).filter(|known| far(known) <= SLIPS.min((name.len() - 8) / 2));
    let advice = match meant {
        Some(meant) => format!("did you mean {meant}?"),
        None => "`phalanx run --help` and `phalanx mpirun --help` have those that do".to_owned(),
    };
    Some(format!("the variable {name} counts for nothing; {advice}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_misspelt_is_named_with_what_was_meant() {
        for (name, meant) in [
            ("PHALANX_ALGORITM", "did you mean PHALANX_ALGORITHM?"),
            ("PHALANX_TREE", "did you mean PHALANX_TREES?"),
            ("PHALANX_STAST", "did you mean PHALANX_STATS?"),
            ("PHALANX_FOO", "--help"),
            ("PHALANX_SOMETHING_ELSE", "--help"),
        ] {
            let word = stranger(&name.into()).unwrap();
            assert!(word.contains(name) && word.contains(meant), "{word}");
        }
    }

    #[test]
    fn what_is_known_or_not_ours_is_passed_over() {
        for name in
            KNOWN.into_iter().chain(TOLD).chain(["PHALANX_TEST_SEED", "PHALANX", "PATH", "OMPI_COMM_WORLD_RANK"])
        {
            assert_eq!(stranger(&name.into()), None);
        }
    }

    /// Every variable that help and README speak of is known.
    #[test]
    fn what_the_documents_name_is_known() {
        let documents = [
            include_str!("../../README.md"),
            include_str!("../../dropin/README.md"),
            include_str!("../../hier/ACROSS.md"),
            include_str!("run.rs"),
            include_str!("mpirun.rs"),
        ];
        for text in documents {
            for place in text.match_indices("PHALANX_").map(|(at, _)| at) {
                let rest = &text[place..];
                let end = rest.find(|c: char| !c.is_ascii_uppercase() && c != '_').unwrap_or(rest.len());
                let name = rest[..end].trim_end_matches('_');
                assert_eq!(stranger(&name.into()), None, "{name}");
            }
        }
    }
}
