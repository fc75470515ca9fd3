//! Files in the form of `topology.conf`: what is read, and where each fault is found.

use topo::Cluster;
use topo::cluster::{Error, MOST_HOSTS};

#[test]
fn all_that_the_form_allows() {
    let text = "\u{feff}# Two racks.\r
\r
  switchname=leaf1 NODES = r1n[001-003],gpu[1-2]-[7-8] linkspeed=100   # the first\r
SwitchName=leaf2 LinkSpeed=100 \\\r
Nodes=\"r2n[1,3-4]\"\r
SwitchName=TOP Switches=leaf2,\\\r
leaf1 Nodes=login";
    let cluster = Cluster::from_topology_conf(text).unwrap();
    assert_eq!(
        cluster.to_string(),
        "\
cluster: 11 hosts, 3 switches, 13 links
TOP: login
├─ leaf2 (link speed 100): r2n[1,3-4]
└─ leaf1 (link speed 100): r1n[001-003],gpu1-[7-8],gpu2-[7-8]"
    );
    assert_eq!(cluster.host_list(&cluster.ring()), "login,r2n[1,3-4],r1n[001-003],gpu1-[7-8],gpu2-[7-8]");
    assert!(cluster.notes().is_empty());
}

#[test]
fn islands_are_joined_with_a_note() {
    let text = "SwitchName=s0 Nodes=a[0-1]\nSwitchName=s1 Switches=s2\nSwitchName=s2 Nodes=b[0-1]";
    let cluster = Cluster::from_topology_conf(text).unwrap();
    assert_eq!(
        cluster.to_string(),
        "cluster: 4 hosts, 4 switches, 7 links\n(top)\n├─ s0: a[0-1]\n└─ s1\n   └─ s2: b[0-1]"
    );
    assert_eq!(cluster.notes().len(), 1);
    let note = &cluster.notes()[0];
    assert!(note.contains("2 switches have none above them (s[0-1])"), "{note}");
    assert!(note.contains("SwitchName=top Switches=s[0-1]"), "{note}");
    assert_eq!(cluster.ring_loads(&cluster.ring()).into_iter().max(), Some(1));
}

/// Each text, the line and the column of its fault, what is said to stand there, and words of the reason or advice.
#[test]
fn faults_are_found_where_they_are() {
    for (text, line, column, found, words) in [
        ("", 1, 1, "nothing", "there is no switch"),
        ("\n # SwitchName=s Nodes=n\n", 1, 1, "nothing", "there is no switch"),
        ("SwitchName=s Nodes=n[0-", 1, 21, "[0-", "not closed"),
        ("SwitchName=s Nodes=n[0-3, 5]", 1, 27, "5]", "no blank in a list"),
        ("SwitchName=s Nodes=n[0-3, 5]=", 1, 21, "[0-3,", "not closed"),
        ("SwitchName=s Nodes=n1,\\\n  n2", 2, 3, "n2", "nor where a line goes on"),
        ("SwitchName=s Nodes=n1,\nSwitchName=t Nodes=n2", 1, 22, ",", "no blank"),
        ("SwitchName=s Nodes=n1\\\n ,n2\n", 2, 2, ",n2", "without a `=`"),
        ("SwitchName=s \\\n Nodes=a,b,a\\\n2,a", 3, 3, "a", "hangs on `s` already (line 2, column 8)"),
        ("SwitchName=s Nodes=n[7-3]", 1, 22, "7-3", "smaller number first"),
        ("SwitchName=s Nodes=n[0-4000000000]", 1, 20, "n[0-4000000000]", "beyond 65536 names"),
        ("SwitchName=s Nodes=", 1, 14, "Nodes=", "an empty list"),
        ("SwitchName=s Nodes=\"\"", 1, 14, "Nodes=", "an empty list"),
        ("SwitchName=s Nodes=\"n1", 1, 20, "\"n1", "not closed"),
        ("SwitchName=s Nodes", 1, 14, "Nodes", "without a `=`"),
        ("SwitchName=s", 1, 12, "s", "nothing hangs on this switch"),
        ("SwitchName= ", 1, 1, "SwitchName=", "an empty list"),
        ("SwitchName=s[0-1] Nodes=n", 1, 12, "s[0-1]", "one switch"),
        ("SwitchName=a,b Nodes=n", 1, 12, "a,b", "one switch"),
        ("Nodes=n1", 1, 1, "Nodes", "start it with `SwitchName=`"),
        ("SwitchName=s Nodes=n1 Nodes=n2", 1, 23, "Nodes", "twice"),
        ("SwitchName=s Nodes=n1 Speed=2", 1, 23, "Speed", "no such key"),
        ("SwitchName=s =n1", 1, 14, "", "no such key"),
        ("SwitchName=s Nodes=n1 LinkSpeed=10Gb", 1, 33, "10Gb", "without the unit"),
        ("SwitchName=s Nodes=n1 LinkSpeed=", 1, 33, "", "without the unit"),
        ("BlockName=b1 Nodes=n[0-3]", 1, 1, "BlockName", "topology/block"),
        ("SwitchName=s Nodes=n1\nSwitchName=s Nodes=n2", 2, 12, "s", "line 1 describes this switch too"),
        (
            "SwitchName=s Nodes=n[1-3]\nSwitchName=t Nodes=m,n[3-4]",
            2,
            22,
            "n3",
            "hangs on `s` already (line 1, column 20)",
        ),
        ("SwitchName=s Nodes=n1,n1", 1, 23, "n1", "hangs on `s` already"),
        ("SwitchName=s Nodes=n\nSwitchName=t Switches=s,u", 2, 25, "u", "no line describes"),
        ("SwitchName=s Nodes=n\nSwitchName=t Switches=s\nSwitchName=u Switches=s", 3, 23, "s", "`t` already (line 2)"),
        ("SwitchName=s Nodes=n\nSwitchName=t Switches=s,s", 2, 25, "s", "`t` already (line 2)"),
        ("SwitchName=s Switches=s", 1, 12, "s", "in a circle: s > s;"),
        ("SwitchName=a Switches=b Nodes=n\nSwitchName=b Switches=a", 1, 12, "a", "in a circle: a > b > a;"),
        (
            "SwitchName=x Nodes=m\nSwitchName=c Nodes=n\nSwitchName=a Switches=b\nSwitchName=b Switches=a,c",
            4,
            12,
            "b",
            "in a circle: b > a > b;",
        ),
        (
            "SwitchName=c Nodes=n\nSwitchName=a Switches=b\nSwitchName=b Switches=a,c",
            3,
            12,
            "b",
            "in a circle: b > a > b;",
        ),
        ("SwitchName=s Nodes=a(b", 1, 21, "(", "part of a name"),
        ("SwitchName=ä Nodes=ö,,", 1, 22, ",", "missing"),
    ] {
        match Cluster::from_topology_conf(text) {
            Err(error @ Error::Conf { .. }) => {
                let said = error.to_string();
                let start = format!("line {line}, column {column}: found `{found}`: ");
                assert!(said.starts_with(&start) && said.contains(words), "{text:?}: {said}");
            }
            other => panic!("{text:?}: {other:?}"),
        }
    }
}

#[test]
fn long_texts_are_cut_off() {
    let circle: String = (0..50).map(|i| format!("SwitchName=s{i} Switches=s{}\n", (i + 1) % 50)).collect();
    let said = Cluster::from_topology_conf(&circle).unwrap_err().to_string();
    assert!(said.contains(" > .."), "{said}");
    let said = Cluster::from_topology_conf(&format!("SwitchName=s {}", "x".repeat(10_000))).unwrap_err().to_string();
    assert!(said.len() < 400, "{said}");
    let line = |i: usize| format!("SwitchName=s{i} Nodes=a{i}n[0-65535]\n");
    let many: String = (0..5).map(line).collect();
    let said = Cluster::from_topology_conf(&many).unwrap_err().to_string();
    assert!(said.starts_with("line 5, column 12: found `s4`") && said.contains(&MOST_HOSTS.to_string()), "{said}");
}

/// The whole picture of a long chain would grow by the square, and fill the memory.
#[test]
fn pictures_show_64_levels() {
    let chain = |levels: usize| {
        let lines = (1..levels).map(|i| format!("SwitchName=s{} Switches=s{i}\n", i - 1));
        let text: String = lines.chain([format!("SwitchName=s{} Nodes=n[0-1]", levels - 1)]).collect();
        Cluster::from_topology_conf(&text).unwrap().to_string()
    };
    assert!(chain(64).ends_with("└─ s63: n[0-1]"));
    for (levels, below) in [(65, "1 switch"), (200_000, "199936 switches")] {
        let picture = chain(levels);
        assert_eq!(picture.lines().count(), 1 + 64 + 1);
        assert!(picture.ends_with(&format!("└─ .. {below} below")), "{}", picture.lines().last().unwrap());
    }
}

#[test]
fn files_are_named() {
    let error = Cluster::from_topology_file("/no/such.conf").unwrap_err();
    assert!(matches!(error, Error::File { .. }) && error.to_string().contains("/no/such.conf"), "{error}");
    let file = std::env::temp_dir().join(format!("phalanx-cluster-{}.conf", std::process::id()));
    std::fs::write(&file, "SwitchName=s Nodes=n[").unwrap();
    let error = Cluster::from_topology_file(&file);
    std::fs::remove_file(&file).unwrap();
    let said = error.unwrap_err().to_string();
    assert!(said.starts_with(&format!("{}, line 1, column 21: found `[`", file.display())), "{said}");
}
