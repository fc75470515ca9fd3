use super::*;

#[test]
fn classes_follow_the_limits() {
    let rules = TreeRules::default();
    let class = |bytes| rules.class(Step::Gather, 5, bytes);
    assert_eq!([class(0), class(511), class(512), class(8191), class(8192), class(1 << 30)], [0, 0, 1, 1, 2, 2]);
    assert_eq!(rules.tree(Step::Gather, 5, 1).to_string(), TreeSpec::kary(3).to_string());
    assert!(!rules.are_aware());
}

#[test]
fn the_first_part_that_fits_counts() {
    let rules: TreeRules = "gather(3..4): flat; gather(4): kary:9; gather(8): kary:3 < 1K, flat".parse().unwrap();
    let tree = |ranks, bytes| rules.tree(Step::Gather, ranks, rules.class(Step::Gather, ranks, bytes)).to_string();
    assert_eq!([tree(3, 9), tree(4, 9), tree(8, 1023), tree(8, 1024)], ["flat", "flat", "kary:3", "flat"]);
    let usual = TreeRules::default();
    for ranks in [1, 2, 5, 7, 9, 256] {
        let usual = usual.tree(Step::Gather, ranks, usual.class(Step::Gather, ranks, 9)).to_string();
        assert_eq!(tree(ranks, 9), usual);
    }
    assert_eq!(rules.to_string().parse(), Ok(rules));
}

#[test]
fn crowded_jobs_have_parts_of_their_own() {
    let rules: TreeRules = "gather(3..4 crowded): kary:9; gather(4): kary:5; release(crowded): kary:7".parse().unwrap();
    assert_eq!(rules.to_string().parse(), Ok(rules.clone()));
    let tree = |crowd, step, ranks| {
        let rules = rules.clone().on_crowd(crowd);
        rules.tree(step, ranks, rules.class(step, ranks, 30 << 10)).to_string()
    };
    assert_eq!([3, 4, 5].map(|ranks| tree(1, Step::Gather, ranks)), ["kary:2", "kary:5", "kary:2"]);
    assert_eq!([3, 4, 5, 17].map(|ranks| tree(2, Step::Gather, ranks)), ["kary:9", "kary:9", "flat", "knomial:2"]);
    assert_eq!([1, 2].map(|crowd| tree(crowd, Step::Release, 200)), ["flat", "kary:7"]);
    assert_eq!(TreeRules::default().on_crowd(1).on_crowd(2), TreeRules::default().on_crowd(1));
}

#[test]
fn a_tree_may_follow_the_ranks_for_each_core() {
    let rules: TreeRules = "gather(3..9): flat < 1K, knomial:crowd; release: knomial:crowd".parse().unwrap();
    assert_eq!(rules.to_string().parse(), Ok(rules.clone()));
    assert!(!rules.are_aware());
    for (crowd, tree) in [(1, "knomial:2"), (2, "knomial:2"), (5, "knomial:5")] {
        let rules = rules.clone().on_crowd(crowd);
        let of = |step, bytes| rules.tree(step, 8, rules.class(step, 8, bytes)).to_string();
        assert_eq!([of(Step::Gather, 1023), of(Step::Gather, 1024), of(Step::Release, 0)], ["flat", tree, tree]);
    }
    assert_eq!(
        TreeRules::default().crowded_text(Step::Gather, 8, 8 << 10),
        "flat < 49152, knomial:crowd < 131072, relay:crowd"
    );
    assert_eq!(TreeRules::default().crowded_text(Step::Gather, 8, 48 << 10), "knomial:crowd < 131072, relay:crowd");
    assert_eq!(TreeRules::default().crowded_text(Step::Gather, 4, 48 << 10), "knomial:crowd");
    let long = |rules: &TreeRules| rules.tree(Step::Gather, 8, rules.class(Step::Gather, 8, 1 << 20)).to_string();
    assert_eq!([1, 4].map(|crowd| long(&TreeRules::default().on_crowd(crowd))), ["kary:2", "knomial:4"]);
}

#[test]
fn uncrowded_jobs_have_parts_of_their_own() {
    let rules: TreeRules = "gather(3..4 uncrowded): kary:9; release(uncrowded): kary:7".parse().unwrap();
    assert_eq!(rules.to_string().parse(), Ok(rules.clone()));
    let tree = |rules: &TreeRules, step, ranks| rules.tree(step, ranks, rules.class(step, ranks, 200)).to_string();
    let alone = rules.clone().on_crowd(1);
    assert_eq!([3, 5].map(|ranks| tree(&alone, Step::Gather, ranks)), ["kary:9", "knomial:4"]);
    assert_eq!(tree(&alone, Step::Release, 200), "kary:7");
    // Crowded ones are as if it had never been said.
    assert_eq!(rules.clone().on_crowd(2), TreeRules::default().on_crowd(2));
    assert_eq!([Step::Gather, Step::Release].map(|step| tree(&rules, step, 4)), ["kary:9", "kary:7"]);
}

#[test]
fn wrong_rules_say_what_would_be_right() {
    for (text, word) in [
        ("kary", "no rule"),
        ("scatter:flat", "no step"),
        ("gather:kary:3<many,kary:2", "no number"),
        ("gather:kary:3,kary:2", "limits must rise"),
        ("gather:kary:3<8K", "the last tree has none"),
        ("gather:bush:3", "bush"),
        ("gather(0..3):flat", "numbers of ranks"),
        ("gather(5..3):flat", "numbers of ranks"),
        ("gather(full):flat", "or crowded"),
        ("gather(3 un):flat", "or uncrowded"),
    ] {
        let error = text.parse::<TreeRules>().unwrap_err().to_string();
        assert!(error.contains(word), "{text}: {error}");
    }
}
