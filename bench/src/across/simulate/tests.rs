use clap::FromArgMatches;

use super::*;

#[test]
fn links_upwards_carry_what_hangs_on_them_less_the_taper() {
    let full = Machine::new("2x4x8", 10.0, 1.0, None).unwrap();
    let tapered = Machine::new("2x4x8", 10.0, 2.0, None).unwrap();
    let capacities = |machine: &Machine| -> Vec<f64> {
        machine.cluster.route(0, 63).into_iter().map(|channel| machine.capacities[channel]).collect()
    };
    assert_eq!(capacities(&full), [10.0, 80.0, 320.0, 320.0, 80.0, 10.0]);
    assert_eq!(capacities(&tapered), [10.0, 40.0, 80.0, 80.0, 40.0, 10.0]);
    let trunk = Machine::new("4+4", 10.0, 1.0, Some(5.0)).unwrap();
    assert_eq!(capacities_between(&trunk, 0, 7), [10.0, 5.0, 5.0, 10.0]);
}

fn capacities_between(machine: &Machine, from: usize, to: usize) -> Vec<f64> {
    machine.cluster.route(from, to).into_iter().map(|channel| machine.capacities[channel]).collect()
}

#[test]
fn a_simulated_ring_is_its_formula() {
    for text in ["flat:8", "4x4", "2x2x4"] {
        let mut machine = Machine::new(text, 1e9, 1.0, None).unwrap();
        (machine.latency, machine.reduction) = (2e-6, 1e-10);
        let hosts = machine.hosts();
        let found = machine.seconds(Algorithm::Ring, 1, 1 << 20, u64::MAX).unwrap();
        let formula = ring_formula(hosts, 1 << 20, 1e9, 2e-6, 1e-10);
        assert!((found / formula - 1.0).abs() < 1e-6, "{text}: {found} and {formula}");
    }
}

#[test]
fn a_picture_has_a_panel_a_cluster_and_a_curve_a_schedule() {
    let usual = Simulate::augment_args(clap::Command::new("simulate"));
    let matches = usual.get_matches_from(["simulate", "--sizes", "1K,1M"]);
    let options = Simulate::from_arg_matches(&matches).unwrap();
    let machine = Machine::new("flat:8", 1e9, 1.0, None).unwrap();
    let rows = simulated(&options, &machine, 1e9);
    let text = picture(&options, vec![panel("flat:8", 8, &rows), panel("flat:8", 8, &rows)]);
    assert!(text.contains("SIMULATED"), "{text}");
    assert_eq!(text.matches("8 hosts (flat:8): time / bound").count(), 2);
    // Twice in the panels, once in the legend.
    assert_eq!(text.matches(&format!("fill=\"none\" stroke=\"{}\"", STYLES[0].colour)).count(), 3);
    assert!(winners(&rows).contains("recursive-doubling"));
}

#[test]
fn those_that_are_as_fast_are_named_too() {
    assert_eq!(fastest(&[(2.0, "a"), (1.005, "b"), (1.0, "c")]), "b c");
    assert_eq!(fastest(&[]), "-");
}

#[test]
fn what_has_too_many_messages_is_left_out() {
    let machine = Machine::new("flat:8", 1e9, 1.0, None).unwrap();
    assert!(machine.seconds(Algorithm::Ring, 1, 1 << 20, 111).is_none());
    assert!(machine.seconds(Algorithm::Ring, 1, 1 << 20, 112).is_some());
}

#[test]
fn a_record_is_compared_case_by_case() {
    let results = serde_json::json!({"runs": [{"mpi": "openmpi", "mode": {"eager": true}, "shape": "flat:8", "trunk": null,
            "measured": {"nodes": 8, "ranks": 8, "operation": "allreduce", "goodput": 10e6, "latency": 0.0, "cases": [
                {"series": "flat", "bytes": 1_000_000, "seconds": [0.35, 0.35, 0.4], "how": "ring among 8 nodes"},
                {"series": "native", "bytes": 1_000_000, "seconds": [0.3], "how": "as the library chooses"}]}}]});
    let text = against(&results).unwrap();
    assert!(text.starts_with("SIMULATED / measured on flat:8, openmpi, eager"), "{text}");
    assert!(text.contains("flat (ring)") && text.contains("0.50") && !text.contains("native"), "{text}");
    assert!(against(&serde_json::json!({})).unwrap_err().contains("bench across"));
}
