//! Machines that nobody here owns, files that are none, and the machine that this runs on.

use std::path::PathBuf;
use std::process::Command;

use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use topo::{BindPolicy, Error, Location, Machine, SocketMap, TreeSpec, Usable, binding_of};

fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// Packages, NUMA nodes, L3 caches, cores, PUs.
fn counts(machine: &Machine) -> [usize; 5] {
    [machine.packages(), machine.numas(), machine.l3s(), machine.cores(), machine.pus().len()]
}

#[test]
fn synthetic_machines() {
    for (description, expected) in [
        ("pack:2 core:20 pu:2", [2, 1, 1, 40, 80]),
        ("pu:1", [1, 1, 1, 1, 1]),
        ("pu:4", [1, 1, 1, 4, 4]),
        ("core:3 pu:2", [1, 1, 1, 3, 6]),
        ("numa:4 core:2 pu:1", [1, 4, 1, 8, 8]),
        ("pack:2 [numa] l3:4 core:8 pu:2", [2, 2, 8, 64, 128]),
        ("pack:2 numa:4 l3:2 core:4 pu:1", [2, 8, 16, 64, 64]),
        ("pack:8 l3:8 core:16 pu:2", [8, 1, 64, 1024, 2048]),
        ("pack:1 [numa(memory=1GB)] [numa(memory=8GB)] core:2 pu:1", [1, 1, 1, 2, 2]),
    ] {
        let machine = Machine::synthetic(description).expect(description);
        assert_eq!(counts(&machine), expected, "{description}");
        assert_eq!(Machine::from_compact(&machine.to_compact()).unwrap(), machine, "{description}");
    }
}

#[test]
fn compact_text_fits_an_environment_variable() {
    let machine = Machine::synthetic("pack:8 l3:8 core:16 pu:2").unwrap();
    let text = machine.to_compact();
    assert!(text.len() < 20_000, "{} bytes for 2048 PUs", text.len());
    assert!(text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' '));
}

#[test]
fn descriptions_that_are_none() {
    let none = ["", "  ", "bogus:3", "pack:0 core:1 pu:1", "core:2", "pack:2 core:", "pu:2\0", "pu:-3"];
    let vast = ["pack:100 core:100 pu:100", "pack:4294967296 core:4294967296 pu:1", "pu:99999999999999999999"];
    for description in none.into_iter().chain(vast) {
        let error = Machine::synthetic(description).unwrap_err();
        assert!(matches!(error, Error::Synthetic { .. }), "{description:?}: {error:?}");
        let message = error.to_string();
        assert!(message.contains(&format!("{description:?}")) && message.contains("end with PUs"), "{message}");
    }
}

#[test]
fn a_machine_from_a_file() {
    let machine = Machine::from_xml_file(data("two-packages.xml")).unwrap();
    assert_eq!(counts(&machine), [2, 2, 4, 8, 16]);
    assert_eq!(machine, Machine::synthetic("pack:2 [numa] l3:2 core:2 pu:2").unwrap());
}

#[test]
fn files_that_are_no_machine() {
    let error = Machine::from_xml_file(data("absent.xml")).unwrap_err();
    assert!(matches!(error, Error::XmlFile { .. }), "{error:?}");
    assert!(error.to_string().contains("absent.xml") && error.to_string().contains("lstopo"), "{error}");

    let folder = std::env::temp_dir().join(format!("topo-machines-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let whole = std::fs::read_to_string(data("two-packages.xml")).unwrap();
    for (name, content) in [
        ("empty.xml", &b""[..]),
        ("blank.xml", b" \n"),
        ("text.xml", b"not xml at all"),
        ("other.xml", b"<?xml version=\"1.0\"?><html><body>hello</body></html>"),
        ("bytes.xml", b"\xff\xfe\x00"),
        ("nul.xml", b"<topology>\0</topology>"),
        ("cut.xml", &whole.as_bytes()[..whole.len() / 2]),
    ] {
        let path = folder.join(name);
        std::fs::write(&path, content).unwrap();
        let error = Machine::from_xml_file(&path).expect_err(name);
        assert!(matches!(error, Error::Xml { .. }), "{name}: {error:?}");
        assert!(error.to_string().contains(name) && error.to_string().contains("lstopo"), "{error}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

/// hwloc 2.9 crashes at some of these.
#[test]
fn files_in_which_a_set_is_missing() {
    let path = std::env::temp_dir().join(format!("topo-machines-set-{}.xml", std::process::id()));
    let whole = std::fs::read_to_string(data("two-packages.xml")).unwrap();
    for name in ["cpuset", "complete_cpuset", "nodeset", "complete_nodeset"] {
        let mut refused = 0;
        for (at, start) in whole.match_indices(&format!(" {name}=\"")) {
            let end = at + start.len() + whole[at + start.len()..].find('"').unwrap() + 1;
            std::fs::write(&path, format!("{}{}", &whole[..at], &whole[end..])).unwrap();
            match Machine::from_xml_file(&path) {
                Ok(machine) => assert_eq!(machine.packages(), 2),
                Err(error) => {
                    assert!(matches!(error, Error::Xml { .. }), "{error:?}");
                    refused += 1;
                }
            }
        }
        assert!(refused > 0 || name == "nodeset", "{name}");
    }
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_place_is_as_exact_as_the_mask() {
    let machine = Machine::synthetic("pack:2 [numa] l3:2 core:2 pu:2").unwrap();
    let place = |pus: &[usize]| {
        let at = machine.location(pus);
        [at.package, at.numa, at.l3, at.core]
    };
    assert_eq!(place(&[13]), [1, 1, 3, 6].map(Some));
    assert_eq!(place(&[12, 13]), [1, 1, 3, 6].map(Some));
    assert_eq!(place(&[13, 14]), [Some(1), Some(1), Some(3), None]);
    assert_eq!(place(&[8, 14]), [Some(1), Some(1), None, None]);
    assert_eq!(place(&[7, 8]), [None; 4]);
    // Two NUMA nodes in one package.
    let machine = Machine::synthetic("pack:1 numa:2 core:1 pu:1").unwrap();
    let at = machine.location(&[0, 1]);
    assert_eq!((at.package, at.numa, at.l3), (Some(0), None, Some(0)));
}

#[test]
fn ranks_on_cores() {
    let machine = Machine::synthetic("pack:2 core:2 pu:2").unwrap();
    // The second thread of core 0 and all of core 3 are somebody else's.
    let usable = Usable { pus: vec![0, 2, 3, 4, 5], quota_cores: None };
    assert_eq!(usable.cores(&machine), 3);
    let places = machine.place(5, BindPolicy::Core, &usable);
    // More ranks than cores: neighbours share one.
    let expected = [vec![0], vec![0], vec![2, 3], vec![2, 3], vec![4, 5]];
    assert_eq!(places, expected.map(Some));
    assert_eq!(machine.place(3, BindPolicy::Core, &usable), [vec![0], vec![2, 3], vec![4, 5]].map(Some));
    assert_eq!(machine.place(2, BindPolicy::None, &usable), [None, None]);
    assert_eq!(machine.place(0, BindPolicy::Core, &usable), []);
    let elsewhere = Usable { pus: vec![99], quota_cores: None };
    assert_eq!(machine.place(1, BindPolicy::Core, &elsewhere), [None]);
    assert_eq!(elsewhere.cores(&machine), 1);
}

#[test]
fn ranks_on_nodes() {
    let machine = Machine::synthetic("numa:2 core:4 pu:1").unwrap();
    let node = |places: Vec<Option<Vec<usize>>>| -> Vec<Option<usize>> {
        places.iter().flatten().map(|pus| machine.location(pus).numa).collect()
    };
    let all = Usable::all_of(&machine);
    assert_eq!(node(machine.place(4, BindPolicy::Numa, &all)), [0, 0, 1, 1].map(Some));
    assert_eq!(node(machine.place(5, BindPolicy::Numa, &all)), [0, 0, 0, 1, 1].map(Some));
    assert_eq!(machine.place(2, BindPolicy::Numa, &all)[1], Some(vec![4, 5, 6, 7]));
    assert_eq!(machine.place(17, BindPolicy::Numa, &all).len(), 17);
    // Three usable cores on the first node and one on the second get ranks in that proportion.
    let some = Usable { pus: vec![1, 2, 3, 7], quota_cores: None };
    assert_eq!(node(machine.place(8, BindPolicy::Numa, &some)), [0, 0, 0, 0, 0, 0, 1, 1].map(Some));
}

#[test]
fn a_quota_counts_whole_cores_up() {
    let machine = Machine::synthetic("core:8 pu:2").unwrap();
    for (quota_cores, expected) in [(None, 8), (Some(0.1), 1), (Some(1.0), 1), (Some(1.5), 2), (Some(64.0), 8)] {
        let usable = Usable { quota_cores, ..Usable::all_of(&machine) };
        assert_eq!(usable.cores(&machine), expected, "{quota_cores:?}");
    }
}

#[test]
fn binding_policies_are_read_back() {
    for policy in [BindPolicy::Core, BindPolicy::Numa, BindPolicy::None] {
        assert_eq!(policy.to_string().parse::<BindPolicy>().unwrap(), policy);
    }
    let error = "socket".parse::<BindPolicy>().unwrap_err().to_string();
    assert!(error.contains("socket") && error.contains("`core`, `numa` or `none`"), "{error}");
}

#[test]
fn a_tree_over_bound_ranks() {
    // Cyclic binding: even ranks on the first socket, odd ones on the second.
    let machine = Machine::synthetic("pack:2 core:4 pu:1").unwrap();
    let locations: Vec<Location> = (0..8).map(|rank| machine.location(&[rank % 2 * 4 + rank / 2])).collect();
    let tree = "flat:package".parse::<TreeSpec>().unwrap().build(&SocketMap::from_locations(&locations), 2).unwrap();
    assert_eq!(tree.children[2], [3, 4, 6, 0]);
    assert_eq!(tree.children[3], [5, 7, 1]);
}

#[test]
fn this_machine() {
    let machine = Machine::discover().unwrap();
    let usable = Usable::discover().unwrap();
    assert!(!usable.pus.is_empty());
    assert!(usable.pus.iter().all(|&os| machine.pu(os).is_some()), "{usable:?} on\n{machine}");
    assert!((1..=machine.cores()).contains(&usable.cores(&machine)));
    assert_eq!(Machine::from_compact(&machine.to_compact()).unwrap(), machine);
    assert_eq!(machine.place(3, BindPolicy::Core, &usable).iter().flatten().count(), 3);
    println!("{machine}\n{usable:?}\n{}", machine.to_compact());
}

#[test]
fn where_a_thread_and_a_process_really_are() {
    let before = binding_of(None).unwrap();
    let pu = *before.last().unwrap();
    std::thread::spawn(move || {
        let mut mask = CpuSet::new();
        mask.set(pu).unwrap();
        sched_setaffinity(Pid::from_raw(0), &mask).unwrap();
        assert_eq!(binding_of(None).unwrap(), [pu]);
        assert!(Machine::discover().unwrap().location(&[pu]).core.is_some());
        // A child inherits the mask of the thread that starts it.
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let bound = binding_of(Some(child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(bound.unwrap(), [pu]);
        assert!(matches!(binding_of(Some(child.id())), Err(Error::Affinity { .. })));
    })
    .join()
    .unwrap();
    assert_eq!(binding_of(None).unwrap(), before);
}
