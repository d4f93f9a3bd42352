//! `thorp updates drop`: refused updates leave a log.

use super::opened::{self, Opened, name};
use crate::commands::{say, say_json};
use crate::failure::Failure;
use thorp_model::Update;

/// Only what a home has refused: the rest it may have executed already. With that also what the log notes of numbers that left it.
pub(super) fn drop_rejected(
    opened: &Opened,
    (wanted, with_left): (&[String], bool),
    json: bool,
) -> Result<(), Failure> {
    let chosen = opened.refused(wanted)?;
    let names: Vec<String> = chosen.iter().map(|record| name(record)).collect();
    let dropped = chosen.into_iter().map(|record| record.update.clone());
    let dropped: Vec<Update> = dropped.collect();
    opened.log.drop_updates(&dropped).map_err(opened::failure)?;
    if with_left {
        opened.log.forget_left().map_err(opened::failure)?;
    }
    match json {
        true => say_json(&serde_json::json!({ "dropped": names })),
        false if names.is_empty() => say("nothing: no update was rejected"),
        false => names
            .iter()
            .try_for_each(|name| say(&format!("dropped {name}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::opened::tests::{log, names};
    use super::*;

    #[test]
    fn only_the_refused_updates_that_are_named_are_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("log");
        log(&dir);
        let before = names(&dir);
        assert_eq!(before.len(), 3);
        let drop_some =
            |wanted: &[String]| drop_rejected(&Opened::at(&dir)?, (wanted, false), true);
        assert!(drop_some(&before[2..]).is_err(), "it may be saved");
        assert_eq!(names(&dir), before);
        assert!(drop_some(&before[..1]).is_ok());
        assert_eq!(names(&dir), before[1..], "the other home's stays");
        assert!(drop_some(&[]).is_ok());
        assert_eq!(names(&dir), before[2..]);
    }
}
