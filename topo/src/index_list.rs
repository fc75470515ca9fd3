//! Lists of indexes in the kernel's spelling: `0-3,8,10-11`.

/// Spells out indexes, which need not be sorted, with runs joined: `[0, 1, 2, 7]` is `0-2,7`.
pub(crate) fn format(indexes: &[usize]) -> String {
    let mut text = String::new();
    let mut rest = indexes;
    while let Some((&first, _)) = rest.split_first() {
        let run =
            rest.iter().enumerate().take_while(|&(offset, &index)| first.checked_add(offset) == Some(index)).count();
        if !text.is_empty() {
            text.push(',');
        }
        text.push_str(&first.to_string());
        if run > 1 {
            text.push_str(&format!("-{}", rest[run - 1]));
        }
        rest = &rest[run..];
    }
    text
}

/// Reads what [`format`] writes; `None` when the text is something else.
///
/// Indexes from 65,536 on are refused: no Linux has that many PUs, and a run of hostile length would fill the memory.
pub(crate) fn parse(text: &str) -> Option<Vec<usize>> {
    const LIMIT: usize = 1 << 16;
    let mut indexes = Vec::new();
    for run in text.trim().split(',').filter(|run| !run.is_empty()) {
        let (first, last) = run.split_once('-').unwrap_or((run, run));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last >= LIMIT {
            return None;
        }
        indexes.extend(first..=last);
    }
    Some(indexes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_runs() {
        assert_eq!(format(&[]), "");
        assert_eq!(format(&[5]), "5");
        assert_eq!(format(&[0, 1, 2, 7, 9, 10]), "0-2,7,9-10");
        assert_eq!(format(&[3, 2, 1]), "3,2,1");
    }

    #[test]
    fn reads_what_the_kernel_writes() {
        assert_eq!(parse("0-2,7,9-10\n"), Some(vec![0, 1, 2, 7, 9, 10]));
        assert_eq!(parse("\n"), Some(vec![]));
        assert_eq!(parse("2-1"), None);
        assert_eq!(parse("a"), None);
        assert_eq!(parse("0-99999999999"), None);
    }
}
