//! The trees of Jain et al. (SC 2018) on their machine: 40 ranks, one a core, on two sockets of 20 cores, root 0.
//!
//! The lists were worked out by hand from the definitions, before any picture was drawn: each test says how.

use topo::{SocketMap, Tree, TreeSpec};

fn build(spec: &str) -> Tree {
    let spec: TreeSpec = spec.parse().expect(spec);
    let tree = spec.build(&SocketMap::blocks(40, 2), 0).expect("40 ranks");
    tree.check().expect("a tree");
    tree
}

/// All children lists are as written; ranks that are not mentioned are leaves.
fn assert_children(tree: &Tree, expected: &[(usize, &[usize])]) {
    let mut all = vec![Vec::new(); tree.size()];
    for &(rank, children) in expected {
        all[rank] = children.to_vec();
    }
    assert_eq!(tree.children, all);
    let mut parent = vec![None; tree.size()];
    for &(rank, children) in expected {
        for &child in children {
            parent[child] = Some(rank);
        }
    }
    assert_eq!(tree.parent, parent);
}

/// In each socket, position p serves 2p+1 and 2p+2, the second first (right-skewed), as long as both are below 20:
/// 9 has 19 alone. Rank 20 leads the second socket, so its positions are 20 lower than its ranks. Two leaders make
/// a tree of one link, 0 to 20, and 0 serves its own socket before it.
#[test]
fn binary_right_skewed_socket_leaders_last() {
    let tree = build("kary:2:right:package:leaders-last");
    assert_children(
        &tree,
        &[
            (0, &[2, 1, 20]),
            (1, &[4, 3]),
            (2, &[6, 5]),
            (3, &[8, 7]),
            (4, &[10, 9]),
            (5, &[12, 11]),
            (6, &[14, 13]),
            (7, &[16, 15]),
            (8, &[18, 17]),
            (9, &[19]),
            (20, &[22, 21]),
            (21, &[24, 23]),
            (22, &[26, 25]),
            (23, &[28, 27]),
            (24, &[30, 29]),
            (25, &[32, 31]),
            (26, &[34, 33]),
            (27, &[36, 35]),
            (28, &[38, 37]),
            (29, &[39]),
        ],
    );
    // Levels of a socket: 1 + 2 + 4 + 8 = 15 < 20, so depth 4; one link more to the other socket.
    assert_eq!(tree.height(), 5);
}

/// In each socket, position p serves 3p+1, 3p+2 and 3p+3, the last first, as long as they are below 20: 6 has 19
/// alone.
#[test]
fn ternary_right_skewed_socket_leaders_last() {
    let tree = build("kary:3:right:package:leaders-last");
    assert_children(
        &tree,
        &[
            (0, &[3, 2, 1, 20]),
            (1, &[6, 5, 4]),
            (2, &[9, 8, 7]),
            (3, &[12, 11, 10]),
            (4, &[15, 14, 13]),
            (5, &[18, 17, 16]),
            (6, &[19]),
            (20, &[23, 22, 21]),
            (21, &[26, 25, 24]),
            (22, &[29, 28, 27]),
            (23, &[32, 31, 30]),
            (24, &[35, 34, 33]),
            (25, &[38, 37, 36]),
            (26, &[39]),
        ],
    );
    // 1 + 3 + 9 = 13 < 20: depth 3, and one link more.
    assert_eq!(tree.height(), 4);
}

/// Ranks in base 4 have three digits; the parent has the last digit other than 0 made 0. The root 000 has 100 and
/// 200 (16 and 32), 010 to 030 (4, 8, 12) and 001 to 003. 100 has 110 to 130 (20, 24, 28) and 101 to 103. 200 has
/// 210 (36) and 201 to 203; 220 would be 40. Every x10, x20, x30 has the three ranks after it. Below 16 hang 16
/// ranks, below 32 the last 8, below 4, 8 and 12 four each: that is left-skewed, and right-skewed is the reverse.
#[test]
fn four_nomial() {
    let left: [(usize, &[usize]); 10] = [
        (0, &[16, 32, 4, 8, 12, 1, 2, 3]),
        (4, &[5, 6, 7]),
        (8, &[9, 10, 11]),
        (12, &[13, 14, 15]),
        (16, &[20, 24, 28, 17, 18, 19]),
        (20, &[21, 22, 23]),
        (24, &[25, 26, 27]),
        (28, &[29, 30, 31]),
        (32, &[36, 33, 34, 35]),
        (36, &[37, 38, 39]),
    ];
    let right: [(usize, &[usize]); 10] = [
        (0, &[3, 2, 1, 12, 8, 4, 32, 16]),
        (4, &[7, 6, 5]),
        (8, &[11, 10, 9]),
        (12, &[15, 14, 13]),
        (16, &[19, 18, 17, 28, 24, 20]),
        (20, &[23, 22, 21]),
        (24, &[27, 26, 25]),
        (28, &[31, 30, 29]),
        (32, &[35, 34, 33, 36]),
        (36, &[39, 38, 37]),
    ];
    assert_children(&build("knomial:4"), &left);
    assert_children(&build("knomial:4:right"), &right);
    // The first rank with three digits other than 0 is 111, which is 21: depth 3.
    assert_eq!(build("knomial:4").height(), 3);
    assert_eq!(build("knomial:4").depth[21], 3);
}

/// Two digits in base 8: the root has 10, 20, 30 and 40 (8, 16, 24, 32) with the seven ranks after each, and 1 to 7.
#[test]
fn eight_nomial() {
    let tree = build("knomial:8");
    assert_children(
        &tree,
        &[
            (0, &[8, 16, 24, 32, 1, 2, 3, 4, 5, 6, 7]),
            (8, &[9, 10, 11, 12, 13, 14, 15]),
            (16, &[17, 18, 19, 20, 21, 22, 23]),
            (24, &[25, 26, 27, 28, 29, 30, 31]),
            (32, &[33, 34, 35, 36, 37, 38, 39]),
        ],
    );
    assert_eq!(tree.height(), 2);
}
