//! Cases as comma-separated values, one line a case.

use super::counters::busiest;
use super::report::{Run, bound, reference};
use crate::record::csv::quoted;

/// The columns: times in milliseconds; bytes of the busiest host link and trunk, in one direction.
pub const HEAD: &str = "mpi,mode,ranks,nodes,collective,bytes,series,calls,before,median_ms,min_ms,p25_ms,p75_ms,max_ms,bound_ms,\
to_bound,reference,to_reference,to_reference_low,to_reference_high,host_bytes,host_schedule,trunk_bytes,trunk_schedule,goodput,how";

/// All cases of `runs`, with the head above them.
pub fn render(runs: &[Run]) -> String {
    let mut text = format!("{HEAD}\n");
    for run in runs {
        let measured = &run.measured;
        for case in &measured.cases {
            let time = case.milliseconds();
            let least = bound(run.links.as_ref(), &measured.operation, case.bytes);
            let reference = reference(measured);
            let ratio = reference.and_then(|name| Some(case.over(measured.case(name, case.bytes)?)));
            let (host, trunk) = busiest(&case.carried);
            let optional = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.4}"));
            let cells = [
                run.mpi.clone(),
                run.mode.name(),
                measured.ranks.to_string(),
                measured.nodes.to_string(),
                measured.operation.clone(),
                case.bytes.to_string(),
                quoted(&case.series),
                case.seconds.len().to_string(),
                case.before.to_string(),
                format!("{:.4}", time.median),
                format!("{:.4}", time.min),
                format!("{:.4}", time.p25),
                format!("{:.4}", time.p75),
                format!("{:.4}", time.max),
                optional(least),
                optional(least.map(|least| time.median / least)),
                reference.unwrap_or_default().into(),
                optional(ratio.map(|ratio| ratio.median)),
                optional(ratio.map(|ratio| ratio.min)),
                optional(ratio.map(|ratio| ratio.max)),
                optional(host),
                optional(case.expected.map(|expected| expected.host as f64)),
                optional(trunk),
                optional(case.expected.and_then(|expected| expected.trunk).map(|bytes| bytes as f64)),
                optional(measured.goodput),
                quoted(&case.how),
            ];
            text.push_str(&cells.join(","));
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::of_sample;
    use super::*;

    #[test]
    fn every_line_has_every_column() {
        let text = render(&[of_sample(), of_sample()]);
        let columns: Vec<usize> = text.lines().map(|line| line.split(',').count()).collect();
        assert_eq!(columns, [26; 9]);
        assert!(text.contains(
            "openmpi,eager,8,4,allreduce,1048576,ours,3,2,150.0000,140.0000,145.0000,155.0000,160.0000,131.0720"
        ));
    }

    #[test]
    fn rules_are_quoted() {
        assert_eq!(quoted("allreduce:ring,leaders=2"), "\"allreduce:ring,leaders=2\"");
        assert_eq!(quoted("ours"), "ours");
    }
}
