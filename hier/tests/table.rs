//! Tables as files: the built-in one, round trips, what is wrong with bad ones, and machines that are others.

use std::path::PathBuf;

use hier::TreeRules;
use hier::across::{ClusterRules, Line, NetworkModel};
use hier::table::{
    Asked, BUILT_IN, Fingerprint, NetworkBand, NetworkRule, NetworkTable, Table, with_network, with_network_of,
};
use proptest::prelude::*;
use shm_core::select::{Band, MOST_BANDS, REACH_TRIED, Regime, Rule};
use shm_core::{Collective, Tuning};

fn abacus() -> Fingerprint {
    Fingerprint { model: "Abacus \"7\"".to_owned(), packages: 1, cores: 2, pus: 4, l2: 1 << 20, l3: 33 << 20 }
}

#[test]
fn the_built_in_table_is_that_of_the_file() {
    let table = Table::from_toml(BUILT_IN).unwrap();
    assert_eq!(table.rules, Tuning::default().rules());
    assert_eq!(table.trees, TreeRules::default());
    assert_eq!(table.tuning().unwrap().select(7, 2), Tuning::default().select(7, 2));
    let (own, built_in) = (table.tuning().unwrap(), Tuning::default());
    assert_eq!((own.flat_ranks, own.reach_from), (built_in.flat_ranks, built_in.reach_from));
    assert_eq!(table.network, None);
    assert_eq!(table.to_rust(), include_str!("../../shm-core/src/select/default.rs"), "run scripts/default-table");
}

prop_compose! {
    fn rule()(
        what in 0usize..4,
        mut sizes in prop::collection::vec(1u64..1 << 40, 0..MOST_BANDS),
        cells in prop::collection::vec((2u32..65, 1u32..2000), 2 * MOST_BANDS),
        leaders in 0u32..257,
        regimes in prop::collection::vec(0usize..4, MOST_BANDS),
        (ranks, crowd) in ((1u32..257, 1u32..257), prop::option::of((1u32..9, prop::option::of(1u32..99)))),
        (strict, direct) in (any::<bool>(), prop_oneof![Just(u64::MAX), 0u64..1 << 50]),
        reach in prop_oneof![Just(0), Just(u64::MAX), 1u64..1 << 50],
        l2 in prop_oneof![Just(0), 1u32..1 << 20],
    ) -> Rule {
        let what = Collective::ALL[what];
        sizes.insert(0, 0);
        sizes.sort_unstable();
        sizes.dedup();
        let bands: Vec<Band> = sizes.iter().enumerate().map(|(at, &from)| {
            let usual = Band::new(0, Regime::Cells);
            let up = (cells[at].0, cells[at].1 * 64);
            let down = (cells[at + MOST_BANDS].0, cells[at + MOST_BANDS].1 * 64);
            match Regime::ALL[regimes[at]] {
                regime if !regime.serves(what) => Band::line(from),
                Regime::Cells if what == Collective::Broadcast => Band::cells(from, (usual.up_cells, usual.up_cell), down),
                Regime::Cells if what == Collective::Reduce => Band::cells(from, up, (usual.down_cells, usual.down_cell)),
                Regime::Cells => Band::cells(from, up, down),
                Regime::Exchange => Band::exchange(from, up),
                Regime::Shares => Band::shares(from, leaders, up.1, down.0),
                _ => Band::line(from),
            }
        }).collect();
        let rule = Rule::new(what, &bands).unwrap().on_ranks(ranks.0.min(ranks.1)..=ranks.0.max(ranks.1)).in_strict_mode(strict).with_direct_from(direct);
        let rule = rule.with_reach_from(reach).with_l2_from(l2);
        match crowd {
            None => rule,
            Some((least, None)) => rule.on_crowds(least..=u32::MAX),
            Some((least, Some(more))) => rule.on_crowds(least..=least + more),
        }
    }
}

proptest! {
    #[test]
    fn a_table_comes_back(rules in prop::collection::vec(rule(), 0..20), flat in 1u32..257, network in any::<bool>()) {
        let mut table = Table::new(abacus());
        table.remarks = rules.iter().map(|rule| vec!["3.1 us; \"cells\" 4.2 us # 1".to_owned(); rule.bands().len()]).collect();
        table.rules = rules;
        table.flat_ranks = flat;
        table.flat_ranks_crowded = [flat, 7][flat as usize % 2];
        table.direct_from = [None, Some(u64::MAX), Some(12345)][flat as usize % 3];
        table.reach_from = [u64::MAX, [1 << 16, REACH_TRIED][flat as usize % 2], 777, u64::MAX];
        table.readers = flat % 9;
        table.trees = "gather(3..4): knomial:4 < 512, kary:2; release(8): kary:3".parse().unwrap();
        if network {
            let text = "[network]\nnodes = 8\nranks_a_node = 4\nshift = { latency_us = 90.5, us_per_kib = 83.1 }\n\
                        exchange = { latency_us = 91.0, us_per_kib = 83.1 }\n[[network.rules]]\ncollective = \"allreduce\"\n\
                        ladder = [{ from = 0, take = \"recursive-doubling\" }, { from = \"64K\", take = \"ring,leaders=2,slice=256K\" }]\n";
            table.network = Table::from_toml(&(BUILT_IN.to_owned() + text)).unwrap().network;
        }
        let back = Table::from_toml(&table.to_toml()).unwrap();
        table.remarks.clear();
        if let (Some(a), Some(b)) = (&mut table.network, &back.network) {
            prop_assert!((a.model.shift.per_byte - b.model.shift.per_byte).abs() < 1e-9);
            a.model = b.model;
        }
        prop_assert_eq!(back, table);
    }
}

#[test]
fn another_network_leaves_the_rest_of_a_file_alone() {
    let part = "\n[network]\nnodes = 8\nranks_a_node = 4\nshift = { latency_us = 90.5, us_per_kib = 83.0 }\n\
                exchange = { latency_us = 91.0, us_per_kib = 83.0 }\n  [[network.rules]]\n collective = \"allreduce\"\n\
                ladder = [\n  { from = 0, take = \"ring\" },\n]\n";
    let rule = "\n# mine\n[[rules]]\ncollective = \"barrier\"\nladder = [{ from = 0, take = \"line\" }]\n";
    let line = Line { latency: 0.5, per_byte: 0.25 };
    let band = NetworkBand {
        from: 0,
        take: "ring".to_owned(),
        rule: "allreduce:ring".parse::<ClusterRules>().unwrap().of(Collective::Allreduce),
        remark: "8: ring 3.1 us".to_owned(),
    };
    let network = NetworkTable {
        nodes: 2,
        ranks_a_node: 1,
        model: NetworkModel { shift: line, exchange: line },
        rules: vec![NetworkRule { what: Collective::Allreduce, bands: vec![band] }],
    };
    let all = [BUILT_IN.to_owned() + rule, BUILT_IN.to_owned() + part + rule, BUILT_IN.to_owned() + rule + part];
    let texts = all.map(|text| with_network(&text, &network));
    assert!(texts.iter().all(|text| *text == texts[0]), "{texts:#?}");
    assert_eq!(with_network(&texts[0], &network), texts[0]);
    assert!(texts[0].starts_with(&(BUILT_IN.to_owned() + rule)) && texts[0].contains("# 8: ring 3.1 us"));
    let table = Table::from_toml(&texts[0]).unwrap();
    let mut expected = network.clone();
    expected.rules[0].bands[0].remark.clear();
    assert_eq!(table.network, Some(expected));
    // And it comes to another table as it stands, with its remarks.
    let other = format!("{BUILT_IN}{rule}");
    assert_eq!(with_network_of(&other, &texts[0]), texts[0]);
    assert_eq!(with_network_of(&texts[0], &texts[0]), texts[0]);
    assert_eq!(with_network_of(&other, BUILT_IN), other);
    assert_eq!(
        Table::from_toml(&with_network_of(&other, &(BUILT_IN.to_owned() + part))).unwrap().network.unwrap().nodes,
        8
    );
}

#[test]
fn the_table_of_a_network_is_for_one_shape() {
    let line = Line { latency: 1.0, per_byte: 1.0 };
    let model = NetworkModel { shift: line, exchange: line };
    let table = NetworkTable { nodes: 8, ranks_a_node: 4, model, rules: vec![] };
    assert!(table.fits(8, 4, 4) && !table.fits(8, 3, 4) && !table.fits(7, 4, 4));
}

#[test]
fn bad_tables_say_the_line_and_what_would_be_right() {
    const GOOD: &str = "version = 1\n[machine]\nmodel = \"m\"\npackages = 1\ncores = 2\npus = 2\nl2 = \"1M\"\nl3 = 0\n";
    let rule = |text: &str| format!("{GOOD}[[rules]]\n{text}\n");
    let row = |text: &str| rule(&format!("collective = \"reduce\"\nladder = [\n{text}\n]"));
    Table::from_toml(&row("{ from = 0, take = \"line\" }")).unwrap();
    for (text, line, words) in [
        (String::new(), 1, "version"),
        ("version = ".to_owned(), 1, ""),
        (GOOD.replace("version = 1", "version = 2"), 1, "phalanx tune"),
        (GOOD.replace("version = 1", "version = 2").replace("cores = 2", "tiles = 2"), 1, "version 2, where 1"),
        (format!("{GOOD}[node]\nknots = 3").replace("version = 1", "version = 0"), 1, "version 0, where 1"),
        (GOOD.replace("cores = 2\n", ""), 2, "cores"),
        (GOOD.replace("\"1M\"", "\"much\""), 7, "no number of bytes"),
        (format!("{GOOD}[node]\ntrees = \"gather: bush\""), 10, "bush"),
        (format!("{GOOD}[node]\ntrees = \"gather:kary:0\""), 10, "trees = \"gather:kary:0\": "),
        (format!("{GOOD}[node]\nflat = 3"), 10, "unknown field"),
        (format!("{GOOD}[node]\nflat_ranks = 4294967295"), 10, "a number of ranks from 1 to 256 is expected"),
        (format!("{GOOD}[node]\nflat_ranks = 0"), 10, "flat_ranks = 0, where"),
        (format!("{GOOD}[node]\nflat_ranks = 2\nflat_ranks_crowded = 257"), 11, "flat_ranks_crowded = 257"),
        (format!("{GOOD}[node]\nreaders = 300"), 10, "from 0 to 256"),
        (format!("{GOOD}[node]\nreach_from = {{ scan = 3 }}"), 10, "no collective"),
        (format!("{GOOD}[node]\nreach_from = {{ reduce = \"tried\" }}"), 10, "is for broadcasts"),
        (format!("{GOOD}[node]\nreach_from = {{ broadcast = \"Tried\" }}"), 10, "or \"never\""),
        (format!("{GOOD}[node]\ndirect_from = \"late\""), 10, "no number"),
        (format!("{GOOD}[node]\ndirect_from = -1"), 10, "\"-1\" is no number of bytes: write 8192"),
        (format!("{GOOD}[node]\ndirect_from = 8.0"), 10, "\"8.0\" is no number of bytes"),
        (format!("{GOOD}[node]\ndirect_from = [8]"), 10, "a number is expected"),
        (rule("collective = \"scan\"\nladder = []"), 10, "no collective"),
        (rule("collective = \"reduce\"\nladder = []"), 9, "1 to 6"),
        (
            rule("collective = \"reduce\"\nranks = \"5..3\"\nladder = [{ from = 0, take = \"line\" }]"),
            11,
            "numbers of ranks",
        ),
        (rule("collective = \"reduce\"\nranks_per_core = 0\nladder = [{ from = 0, take = \"line\" }]"), 11, "per core"),
        (
            rule("collective = \"reduce\"\nl2_from = \"big\"\nladder = [{ from = 0, take = \"line\" }]"),
            11,
            "no number of bytes",
        ),
        (rule("collective = \"reduce\"\norder = \"any\"\nladder = [{ from = 0, take = \"line\" }]"), 11, "no order"),
        (rule("collective = \"broadcast\"\nladder = [{ from = 0, take = \"shares\" }]"), 11, "line, cells"),
        (row("{ from = 8, take = \"line\" }"), 12, "must rise"),
        (row("{ from = 0, take = \"line\" },\n{ from = 0, take = \"cells\" }"), 12, "must rise"),
        (row("{ from = 0, take = \"lines\" }"), 12, "no algorithm"),
        (row("{ from = 0, take = \"cells\", up = \"8K\" }"), 12, "4 x 8K"),
        (row("{ from = 0, take = \"cells\", up = \"1 x 8K\" }"), 12, "up_cells = 1"),
        (row("{ from = 0, take = \"cells\", up = \"4 x 100\" }"), 12, "multiples of 64"),
        (row("{ from = 0, take = \"cells\", down = \"4 x 8K\" }"), 12, "means nothing"),
        (row("{ from = 0, take = \"line\", leaders = 3 }"), 12, "means nothing"),
        (row("{ from = 0, take = \"shares\", leaders = 300 }"), 12, "leaders = 300"),
        (
            format!(
                "{GOOD}[network]\nnodes = 2\nranks_a_node = 1\nshift = {{ latency_us = 1.0, us_per_kib = 1.0 }}\n\
                 exchange = {{ latency_us = 1.0, us_per_kib = -1.0 }}\n"
            ),
            13,
            "numbers from 0 on",
        ),
        (
            format!(
                "{GOOD}[network]\nnodes = 2\nranks_a_node = 1\nshift = {{ latency_us = 1.0, us_per_kib = 1.0 }}\n\
                 exchange = {{ latency_us = 1.0, us_per_kib = 1.0 }}\n[[network.rules]]\ncollective = \"allreduce\"\n\
                 ladder = [{{ from = 0, take = \"wheel\" }}]"
            ),
            16,
            "take = \"wheel\": ",
        ),
    ] {
        let flaw = Table::from_toml(&text).unwrap_err();
        assert!(flaw.line == Some(line) && flaw.why.contains(words), "line {line}, {words}: {flaw}\n{text}");
        // What stands in a file is no variable's fault.
        assert!(!flaw.why.contains("PHALANX_"), "{flaw}");
    }
    let many = format!(
        "{GOOD}{}",
        "[[rules]]\ncollective = \"barrier\"\nladder = [{ from = 0, take = \"line\" }]\n".repeat(60)
    );
    assert!(Table::from_toml(&many).unwrap_err().why.contains("there can be"));
}

#[test]
fn a_table_of_another_machine_is_refused_or_adapted_and_says_so() {
    let folder = std::env::temp_dir().join(format!("phalanx-table-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path: PathBuf = folder.join("table.toml");
    std::fs::write(&path, Table::new(abacus()).to_toml()).unwrap();
    let name = path.display().to_string();
    let asked = |value: &str| Asked::from_value(Some(value));
    let other = || Fingerprint { cores: 96, ..abacus() };

    assert!(asked(&name).find(abacus).unwrap().table.is_some());
    let error = asked(&name).find(other).unwrap_err().to_string();
    assert!(error.contains("96 cores, not 2") && error.contains(&format!("adapt:{name}")), "{error}");
    let found = asked(&format!("adapt:{name}")).find(other).unwrap();
    assert!(found.table.is_some() && found.remark.unwrap().contains("96 cores"));

    let usual = Asked::Usual(Some(path.clone()));
    assert!(usual.find(abacus).unwrap().table.is_some());
    let found = usual.find(other).unwrap();
    assert!(found.table.is_none() && found.remark.unwrap().contains("built-in"));

    std::fs::write(&path, "version = 1\nmachine = 3\n").unwrap();
    let error = usual.find(abacus).unwrap_err().to_string();
    assert!(error.contains("line 2") && error.contains("PHALANX_TABLE=none"), "{error}");
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(asked(&name).find(abacus).unwrap_err().to_string().contains("cannot be read"));
    assert_eq!(usual.find(abacus).unwrap().table, None);
    for nothing in ["", "none"] {
        assert_eq!(asked(nothing), Asked::BuiltIn);
    }
}

#[test]
fn what_a_rule_says_of_shared_buffers_counts_before_what_the_node_says() {
    let mut table = Table::from_toml(BUILT_IN).unwrap();
    table.rules.truncate(1);
    table.direct_from = Some(777);
    let bands = [Band::cells(0, (32, 32 << 10), (32, 32 << 10))];
    table.rules.push(Rule::new(Collective::Reduce, &bands).unwrap().with_direct_from(4242));
    let back = Table::from_toml(&table.to_toml()).unwrap();
    let selection = back.tuning().unwrap().select(8, 4);
    assert_eq!(selection.direct_from(Collective::Reduce), 4242);
    assert_eq!(selection.direct_from(Collective::Allreduce), 777);
}
