//! Notes that several programs share: each sees what the others write, when they write it.

use std::time::Duration;
use thorp_client::{Member, Result, Segment};

/// Writes a note.
pub fn write(member: &Member, notes: &Segment, text: &str) -> Result<()> {
    member.transact(|tx| tx.create(notes, text)).map(|_| ())
}

/// All notes.
pub fn read_all(member: &Member, notes: &Segment) -> Result<Vec<String>> {
    member.transact(|tx| {
        let mut all = Vec::new();
        tx.scan(notes, |_, bytes| {
            all.push(String::from_utf8_lossy(bytes).into_owned());
            Ok(())
        })?;
        Ok(all)
    })
}

/// Shows the notes now, and again whenever they have changed, until `show` has seen enough or nothing happens for a while.
pub fn follow(
    member: &Member,
    notes: &Segment,
    patience: Duration,
    mut show: impl FnMut(&[String]) -> bool,
) -> Result<()> {
    // First the watch, then the look: nothing that happens in between is missed.
    let mut watch = notes.watch()?;
    loop {
        if !show(&read_all(member, notes)?) || watch.next(patience)?.is_none() {
            return Ok(());
        }
    }
}
