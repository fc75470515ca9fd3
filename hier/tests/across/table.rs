//! The network part of a measured table.

use hier::across::{ClusterSettings, Line, NetworkModel};
use hier::table::{Asked, Fingerprint, NetworkBand, NetworkRule, NetworkTable, Table};

use crate::collectives::check;
use crate::{BEHAVIOURS, cluster_by};

/// A table that speaks of two nodes of two ranks.
fn table_of_four() -> Table {
    let rule = |what: hier::Collective, takes: &[(u64, &str)]| {
        let bands = takes.iter().map(|&(from, take)| {
            let rules: hier::across::ClusterRules = format!("{what}:{take}").parse().unwrap();
            NetworkBand { from, take: take.to_owned(), rule: rules.of(what), remark: "of a test".to_owned() }
        });
        NetworkRule { what, bands: bands.collect() }
    };
    let line = Line { latency: 33.0, per_byte: 0.25 };
    let mut table = Table::new(Fingerprint::of_this_machine());
    table.network = Some(NetworkTable {
        nodes: 2,
        ranks_a_node: 2,
        model: NetworkModel { shift: line, exchange: line },
        rules: vec![
            rule(hier::Collective::Allreduce, &[(0, "binomial"), (1000, "ring,leaders=2,slice=whole")]),
            rule(hier::Collective::Broadcast, &[(0, "scatter-ring-native,slice=2K")]),
        ],
    });
    table
}

#[test]
fn a_table_speaks_of_clusters_of_its_shape() {
    use hier::Collective::{Allreduce, Broadcast};
    let path = std::env::temp_dir().join(format!("phalanx-table-{}.toml", std::process::id()));
    std::fs::write(&path, table_of_four().to_toml()).unwrap();
    let settings = |rules: &str| ClusterSettings {
        rules: rules.to_owned(),
        table: Asked::File { path: path.clone(), adapt: false },
        ..ClusterSettings::default()
    };
    for labels in [&[0_usize, 0, 1, 1][..], &[0, 1, 0, 1], &[0, 0, 0, 1], &[0, 1], &[0, 0, 1, 1, 2, 2]] {
        let fits = labels.len() == 4 && labels.iter().sum::<usize>() == 2;
        cluster_by(labels, settings(""), BEHAVIOURS[1], |comm| {
            for count in [1, 124, 126, 5000] {
                check(comm, count);
            }
            let [short, long] = [8, 1000].map(|bytes| comm.explain(Allreduce, bytes));
            let broadcast = comm.explain(Broadcast, 8000);
            assert_eq!(comm.network_model() != NetworkModel::default(), fits);
            assert!([&short, &long, &broadcast].iter().all(|text| text.ends_with("by the table") == fits), "{long}");
            if fits {
                assert!(short.starts_with("binomial"), "{short}");
                assert!(long.starts_with("ring") && long.contains("leaders a node: 2"), "{long}");
                assert!(broadcast.starts_with("scatter-ring-native") && broadcast.contains("2048"), "{broadcast}");
            }
            // A part has another shape.
            let part = comm.split(Some(comm.rank() as u32 / 3), 0).unwrap().unwrap();
            assert!(!part.explain(Allreduce, 8).ends_with("by the table"));
        });
        // The word of the environment comes first.
        cluster_by(labels, settings("allreduce:ring"), BEHAVIOURS[0], |comm| {
            check(comm, 10);
            assert!(comm.explain(Allreduce, 8).starts_with("ring among"));
        });
    }
    std::fs::remove_file(&path).unwrap();
}
