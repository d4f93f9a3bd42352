//! Shared notes: writes the note that it is told, or else shows them all, again and again.

use std::time::Duration;
use thorp_examples::{Arguments, Failure, notes};

fn main() -> Result<(), Failure> {
    let arguments = Arguments::parse()?;
    let member = arguments.join()?;
    let segment = member.open_or_create(&arguments.segment)?;
    if !arguments.rest.is_empty() {
        notes::write(&member, &segment, &arguments.rest.join(" "))?;
        return Ok(());
    }
    let patience = Duration::from_secs(24 * 3600);
    notes::follow(&member, &segment, patience, |notes| {
        println!("--- {} notes", notes.len());
        notes.iter().for_each(|note| println!("{note}"));
        true
    })?;
    Ok(())
}
