//! `thorp updates retry`: refused updates become new ones.

use super::opened::{self, Opened, name};
use crate::commands::{say, say_json};
use crate::failure::Failure;
use crate::text;
use thorp_model::Update;
use thorp_model::records::UpdateRecord;

/// Each becomes a new update, and leaves the list of rejected ones, in one durable step. A number is never used twice (rule C7).
pub(super) fn retry(opened: &Opened, wanted: &[String], json: bool) -> Result<(), Failure> {
    let chosen = opened.refused(wanted)?;
    if chosen.is_empty() && !json {
        return say("nothing: no update was rejected");
    }
    let before: Vec<String> = chosen.iter().map(|record| name(record)).collect();
    let refused = chosen.into_iter().map(|record| record.update.clone());
    let refused: Vec<Update> = refused.collect();
    let renewed = opened.log.retry(&refused).map_err(opened::failure)?;
    let after = renewed.into_iter().map(|update| {
        let (rejected, author) = (None, None);
        name(&UpdateRecord {
            update,
            rejected,
            author,
        })
    });
    let both: Vec<(String, String)> = before.into_iter().zip(after).collect();
    if json {
        let each = both.iter();
        let each = each.map(|(old, new)| serde_json::json!({"update": old, "as": new}));
        let each: Vec<_> = each.collect();
        return say_json(&serde_json::json!({ "retried": each }));
    }
    for (old, new) in &both {
        say(&format!("retried {old} as {new}"))?;
    }
    // Whoever reads no notes misses nothing.
    let _ = text::note(THEN);
    Ok(())
}

const THEN: &str = "\
the program of the log sends them when it starts next; bytes then replace what the objects have by then, and \
procedures run on that; what cannot be done is rejected again";

#[cfg(test)]
mod tests {
    use super::super::opened::tests::{log, names};
    use super::*;

    #[test]
    fn what_is_retried_has_another_name_and_is_not_rejected_any_more() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("log");
        log(&dir);
        let before = names(&dir);
        let retry_some = |wanted: &[String]| retry(&Opened::at(&dir)?, wanted, true);
        assert!(retry_some(&before[2..]).is_err(), "it may be saved");
        assert_eq!(names(&dir), before, "nothing has changed");
        assert!(retry_some(&before[..1]).is_ok());
        let after = names(&dir);
        assert_eq!(after.len(), 3);
        assert!(!after.contains(&before[0]) && after.contains(&before[1]));
        let opened = Opened::at(&dir).unwrap();
        assert_eq!(opened.refused(&[]).unwrap().len(), 1);
    }
}
