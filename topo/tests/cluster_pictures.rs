//! The pictures and the figures of `docs/CLUSTERS.md` are what the code gives.

use std::path::{Path, PathBuf};

use topo::Cluster;
use topo::cluster::Order;

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs")
}

fn page() -> String {
    std::fs::read_to_string(docs().join("CLUSTERS.md")).expect("CLUSTERS.md")
}

#[test]
fn stored_pictures_are_drawn_pictures() {
    let pictures = [("two-switches-dfs.svg", Order::DepthFirst), ("two-switches-alternating.svg", Order::Alternating)];
    let file = "two-switches.conf";
    let cluster = Cluster::from_topology_file(docs().join("clusters").join(file)).expect("a cluster");
    for (name, order) in pictures {
        let drawn = cluster.to_svg(Some(&cluster.order(order)), &format!("{file}: ring in {order} order"));
        let stored = std::fs::read_to_string(docs().join("clusters").join(name)).unwrap_or_default();
        let command = format!(
            "phalanx topo --cluster topo/docs/clusters/{file} --ring --order {order} --svg topo/docs/clusters/{name}"
        );
        assert!(stored == drawn, "docs/clusters/{name} is out of date; run `{command}`");
        assert!(page().contains(&format!("clusters/{name}")), "CLUSTERS.md does not show {name}");
    }
    let stored = std::fs::read_dir(docs().join("clusters")).expect("docs/clusters").flatten();
    let svgs = stored.filter(|entry| entry.path().extension().is_some_and(|extension| extension == "svg"));
    assert_eq!(svgs.count(), pictures.len(), "docs/clusters/ holds a picture that nobody draws");
}

#[test]
fn the_file_is_shown_as_it_is() {
    let file = std::fs::read_to_string(docs().join("clusters/two-switches.conf")).expect("the file");
    assert!(page().contains(&file));
    let cluster = Cluster::from_topology_conf(&file).expect("a cluster");
    assert_eq!(cluster.order_of(&["n07", "n23", "n01"]).ok(), Some(vec![2, 0, 1]));
    assert!(page().contains(r#"order_of(&["n07", "n23", "n01"])?;"#) && page().contains("of one job: [2, 0, 1]"));
}

/// The table's head names orders, and each row a cluster and the worst load in each order.
#[test]
fn the_table_of_loads_is_right() {
    let cells = |line: &str| -> Vec<String> {
        line.trim_matches('|').split('|').map(|cell| cell.trim().trim_matches('`').to_owned()).collect()
    };
    let page = page();
    let mut lines = page.lines().skip_while(|line| !line.starts_with("| worst load of the ring in |"));
    let orders: Vec<Order> = cells(lines.next().expect("the table"))[1..].iter().map(|o| o.parse().unwrap()).collect();
    let rows: Vec<&str> = lines.skip(1).take_while(|line| line.starts_with('|')).collect();
    assert!(rows.len() >= 4 && orders.len() >= 3);
    for row in rows {
        let row = cells(row);
        let cluster: Cluster = row[0].parse().unwrap();
        let worst = |order| cluster.ring_loads(&cluster.order(order)).into_iter().max();
        for (&order, load) in orders.iter().zip(&row[1..]) {
            assert_eq!(load.parse().ok(), worst(order), "{} in {order} order", row[0]);
        }
    }
}
