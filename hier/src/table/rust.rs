//! The built-in table's source: shm-core, which reads no files, has its rules as constants.

use std::fmt::Write;

use shm_core::Collective;
use shm_core::select::{Band, DIRECT_FROM, Regime};

use super::Table;

impl Table {
    /// The text of `shm-core/src/select/default.rs` for these rules.
    #[must_use]
    pub fn to_rust(&self) -> String {
        let mut text = "\
//! The built-in table, in the words of `hier/src/table/default.toml`: `scripts/default-table` writes both.

use super::choice::Collective::{Allreduce, Barrier, Broadcast, Reduce};
use super::rule::{Band, Rule};

/// The rules; the first one that fits counts.
#[rustfmt::skip]
pub(super) const RULES: &[Rule] = &[
"
        .to_owned();
        for rule in &self.rules {
            let Some(what) = rule.collective() else { continue };
            let bands: Vec<String> = rule.bands().iter().map(|band| constructor(what, band)).collect();
            let (least, most) = rule.ranks().into_inner();
            let (thin, thick) = rule.crowd().into_inner();
            let thick = if thick == u32::MAX { "u32::MAX".to_owned() } else { thick.to_string() };
            // Writing to a String does not fail.
            let _ = writeln!(
                text,
                "    Rule::built_in({what:?}, ({least}, {most}), ({thin}, {thick}), {}, &[{}]){}{}{},",
                rule.is_strict(),
                bands.join(", "),
                match rule.direct_from() {
                    DIRECT_FROM => String::new(),
                    u64::MAX => ".with_direct_from(u64::MAX)".to_owned(),
                    least => format!(".with_direct_from({least})"),
                },
                rule.reach_from().map_or(String::new(), |least| format!(".with_reach_from({least})")),
                if rule.l2_from() > 0 { format!(".with_l2_from({})", rule.l2_from()) } else { String::new() }
            );
        }
        text.push_str("];\n");
        text
    }
}

fn constructor(what: Collective, band: &Band) -> String {
    let usual = Band::new(0, Regime::Cells);
    let up =
        if what == Collective::Broadcast { (usual.up_cells, usual.up_cell) } else { (band.up_cells, band.up_cell) };
    let down = if what == Collective::Reduce {
        (usual.down_cells, usual.down_cell)
    } else {
        (band.down_cells, band.down_cell)
    };
    match band.regime() {
        Some(Regime::Cells) => format!("Band::cells({}, {up:?}, {down:?})", band.from),
        Some(Regime::Exchange) => format!("Band::exchange({}, {up:?})", band.from),
        Some(Regime::Shares) => {
            format!("Band::shares({}, {}, {}, {})", band.from, band.leaders, band.share_cell, band.share_downs)
        }
        _ => format!("Band::line({})", band.from),
    }
}
