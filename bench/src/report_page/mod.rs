//! `bench report`.
use clap::Args;
/// Options.
#[derive(Clone, Debug, Args)]
pub struct Report {}
/// Runs.
///
/// # Errors
/// None.
pub fn run(_: &Report) -> crate::error::Result<()> {
    Ok(())
}
