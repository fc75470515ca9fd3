//! The built-in table, in the words of `hier/src/table/default.toml`: `scripts/default-table` writes both.

use super::choice::Collective::{Allreduce, Barrier, Broadcast, Reduce};
use super::rule::{Band, Rule};

/// The rules; the first one that fits counts.
#[rustfmt::skip]
pub(super) const RULES: &[Rule] = &[
    Rule::built_in(Barrier, (1, 256), (1, u32::MAX), false, &[Band::line(0)]),
    Rule::built_in(Broadcast, (3, 4), (2, u32::MAX), false, &[Band::line(0), Band::cells(505, (32, 32768), (64, 32768))]).with_direct_from(131072),
    Rule::built_in(Broadcast, (5, 8), (2, u32::MAX), false, &[Band::line(0), Band::cells(2048, (32, 32768), (64, 8192)), Band::cells(16384, (32, 32768), (64, 32768)), Band::cells(131072, (32, 32768), (2, 262144))]).with_direct_from(524288),
    Rule::built_in(Broadcast, (9, 16), (2, u32::MAX), false, &[Band::line(0), Band::cells(2048, (32, 32768), (64, 8192)), Band::cells(16384, (32, 32768), (64, 32768)), Band::cells(65536, (32, 32768), (8, 65536)), Band::cells(262144, (32, 32768), (2, 262144))]).with_direct_from(524288),
    Rule::built_in(Reduce, (3, 4), (2, u32::MAX), false, &[Band::line(0), Band::cells(1145, (64, 8192), (32, 32768)), Band::cells(6144, (32, 16384), (32, 32768)), Band::cells(24576, (32, 32768), (32, 32768)), Band::cells(131072, (8, 32768), (32, 32768))]).with_direct_from(49152),
    Rule::built_in(Reduce, (5, 8), (2, u32::MAX), false, &[Band::line(0), Band::cells(1145, (64, 8192), (32, 32768)), Band::cells(6144, (32, 16384), (32, 32768)), Band::cells(24576, (32, 32768), (32, 32768)), Band::cells(131072, (4, 65536), (32, 32768))]).with_direct_from(49152),
    Rule::built_in(Reduce, (9, 16), (2, u32::MAX), false, &[Band::line(0), Band::cells(2048, (64, 8192), (32, 32768)), Band::cells(24576, (32, 32768), (32, 32768)), Band::cells(65536, (4, 32768), (32, 32768)), Band::cells(196608, (4, 65536), (32, 32768))]).with_direct_from(65536),
    Rule::built_in(Reduce, (17, 64), (8, u32::MAX), false, &[Band::line(0), Band::cells(505, (8, 32768), (32, 32768)), Band::cells(49152, (4, 65536), (32, 32768))]).with_direct_from(65536),
    Rule::built_in(Allreduce, (3, 4), (2, u32::MAX), false, &[Band::line(0), Band::exchange(505, (32, 32768)), Band::shares(16384, 2, 65536, 32)]).with_direct_from(24576),
    Rule::built_in(Allreduce, (5, 8), (2, u32::MAX), false, &[Band::line(0), Band::exchange(4096, (32, 32768)), Band::cells(12288, (64, 8192), (64, 8192)), Band::shares(49152, 2, 65536, 32), Band::cells(131072, (4, 65536), (8, 65536))]).with_direct_from(49152),
    Rule::built_in(Allreduce, (9, 16), (2, u32::MAX), false, &[Band::line(0), Band::cells(4096, (64, 8192), (64, 8192)), Band::cells(12288, (32, 32768), (32, 32768)), Band::cells(49152, (2, 32768), (2, 32768)), Band::cells(131072, (4, 65536), (4, 65536))]).with_direct_from(49152),
    Rule::built_in(Allreduce, (17, 64), (8, u32::MAX), false, &[Band::line(0), Band::cells(505, (8, 32768), (4, 32768)), Band::cells(196608, (2, 131072), (2, 131072))]).with_direct_from(65536),
    Rule::built_in(Broadcast, (3, 256), (1, 1), false, &[Band::line(0), Band::cells(1145, (32, 32768), (64, 32768))]),
    Rule::built_in(Reduce, (3, 32), (1, 1), false, &[Band::line(0), Band::cells(505, (32, 32768), (32, 32768)), Band::shares(4096, 0, 65536, 32)]),
    Rule::built_in(Allreduce, (3, 8), (1, 1), false, &[Band::line(0), Band::exchange(505, (32, 32768)), Band::shares(4096, 0, 65536, 32)]),
    Rule::built_in(Allreduce, (9, 32), (1, 1), false, &[Band::line(0), Band::cells(505, (32, 32768), (32, 32768)), Band::shares(4096, 8, 65536, 32), Band::shares(32768, 0, 65536, 32)]),
    Rule::built_in(Reduce, (33, 256), (1, 1), false, &[Band::line(0), Band::cells(505, (32, 32768), (32, 32768)), Band::shares(8192, 16, 65536, 32), Band::shares(32768, 0, 65536, 32)]).with_direct_from(65536),
    Rule::built_in(Allreduce, (33, 256), (1, 1), false, &[Band::line(0), Band::cells(505, (32, 32768), (32, 32768)), Band::shares(6144, 16, 65536, 32), Band::shares(32768, 0, 65536, 32)]).with_direct_from(65536),
    Rule::built_in(Broadcast, (2, 2), (1, u32::MAX), false, &[Band::line(0), Band::cells(1145, (32, 32768), (64, 32768)), Band::cells(524288, (32, 32768), (16, 32768))]).with_l2_from(2048),
    Rule::built_in(Reduce, (2, 2), (1, 1), false, &[Band::line(0), Band::cells(1145, (64, 32768), (32, 32768)), Band::shares(49152, 0, 32768, 64), Band::cells(196608, (64, 32768), (32, 32768)), Band::cells(524288, (8, 65536), (32, 32768))]).with_l2_from(2048),
    Rule::built_in(Broadcast, (2, 2), (1, u32::MAX), false, &[Band::line(0), Band::cells(1145, (32, 32768), (64, 32768)), Band::cells(1048576, (32, 32768), (16, 65536))]),
    Rule::built_in(Broadcast, (1, 256), (1, u32::MAX), false, &[Band::line(0), Band::cells(505, (32, 32768), (64, 32768))]).with_direct_from(524288),
    Rule::built_in(Reduce, (2, 2), (1, 1), false, &[Band::line(0), Band::cells(1145, (64, 32768), (32, 32768)), Band::shares(49152, 0, 32768, 64), Band::cells(196608, (64, 32768), (32, 32768)), Band::cells(786432, (16, 65536), (32, 32768))]),
    Rule::built_in(Reduce, (2, 2), (1, u32::MAX), false, &[Band::line(0), Band::cells(1145, (64, 32768), (32, 32768)), Band::cells(524288, (32, 32768), (32, 32768)), Band::cells(786432, (16, 65536), (32, 32768))]),
    Rule::built_in(Reduce, (1, 256), (1, u32::MAX), false, &[Band::line(0), Band::cells(505, (32, 32768), (32, 32768)), Band::shares(6144, 0, 65536, 32)]).with_direct_from(65536),
    Rule::built_in(Allreduce, (1, 2), (1, u32::MAX), false, &[Band::line(0), Band::exchange(1145, (64, 32768)), Band::shares(24576, 0, 262144, 32)]).with_direct_from(16384),
    Rule::built_in(Allreduce, (3, 4), (1, u32::MAX), false, &[Band::line(0), Band::exchange(505, (32, 32768)), Band::shares(32768, 0, 65536, 32)]).with_direct_from(24576),
    Rule::built_in(Allreduce, (5, 8), (1, u32::MAX), false, &[Band::line(0), Band::exchange(505, (32, 32768)), Band::cells(4096, (32, 32768), (32, 32768)), Band::shares(32768, 0, 65536, 32)]).with_direct_from(49152),
    Rule::built_in(Allreduce, (9, 16), (1, u32::MAX), false, &[Band::line(0), Band::cells(505, (32, 32768), (32, 32768)), Band::shares(131072, 0, 65536, 32)]).with_direct_from(49152),
    Rule::built_in(Allreduce, (17, 256), (1, u32::MAX), false, &[Band::line(0), Band::cells(505, (32, 32768), (32, 32768)), Band::shares(524288, 0, 65536, 32)]).with_direct_from(65536),
];
