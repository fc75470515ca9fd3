//! `phalanx tune --cluster`: a tiny run writes the part of a table that speaks of the network, which a job takes.

use hier::Collective;
use hier::table::{Fingerprint, Table};

use crate::job::{Hosts, run};
use crate::{SMALL, UNEVEN, each, seed, well};
use phalanx_tests::library::target;

/// The words of a tiny run.
fn tune(output: &str) -> [&str; 8] {
    ["phalanx", "tune", "--cluster", "--explain", "--effort", "tiny", "--output", output]
}

#[test]
fn a_network_is_measured_and_its_table_taken() {
    each(|library| {
        // Hosts share this folder.
        let folder = target().join(format!("mpi-{}/tune-{}", library.name, std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let output = folder.join("table.toml");
        let path = output.to_str().expect("a path of letters").to_owned();
        let mut before = Table::new(Fingerprint::of_this_machine());
        before.flat_ranks = 7;
        std::fs::write(&output, before.to_toml() + "# mine\n").expect("a file");
        // One measurement was finished before: milliseconds that no network here has.
        let partial = folder.join("table.toml.cluster.tiny.partial");
        let begun = format!("# machine: {}\n", Fingerprint::of_this_machine());
        std::fs::write(&partial, begun + "2x2 network\t7000.5\t0.25\t8000.5\t0.5\tend\n2x2 allre").expect("a file");
        let Some(done) = run(library, SMALL, &[], &tune(&path)) else { return };
        let words = done.succeeded();
        for word in ["allreduce on 2 nodes x 2 ranks", "<- ", "=> from 0", "for 2 nodes of 2 ranks; PHALANX_TABLE="] {
            assert!(words.contains(word), "{word}: {words}");
        }
        let text = std::fs::read_to_string(&output).expect("a table");
        assert!(text.contains("# mine") && !partial.exists(), "{text}");
        let table = Table::from_toml(&text).expect("a table");
        let network = table.network.expect("a network");
        assert_eq!((table.flat_ranks, network.nodes, network.ranks_a_node), (7, 2, 2));
        assert_eq!((network.model.shift.latency, network.model.exchange.latency), (7000.5, 8000.5));
        for what in [Collective::Broadcast, Collective::Reduce, Collective::Allreduce] {
            assert!(network.rule(what, 8).algorithm.is_some(), "{what}: {text}");
        }
        well(library, SMALL, &[("PHALANX_TABLE", path.as_str())], &["sizes", &seed()]);
        std::fs::remove_dir_all(&folder).expect("no folder");
    });
}

#[test]
fn what_no_table_speaks_of_is_not_measured() {
    each(|library| {
        let path = target().join(format!("mpi-{}/no-table.toml", library.name));
        let path = path.to_str().expect("a path of letters");
        for (hosts, why) in [(Hosts::One(2), "all ranks are on one node"), (UNEVEN, "as many as each other")] {
            let Some(done) = run(library, hosts, &[], &tune(path)) else { return };
            assert!(!done.ended.status.success() && done.text().contains(why), "{library:?}: {}", done.text());
            assert!(!std::path::Path::new(path).exists());
        }
    });
}
