//! `thorp doubt list --lost`: transactions over several homes that lost a part.

use super::{say, say_json};
use crate::failure::Failure;
use crate::text::{Side, Table, count};
use std::time::Duration;
use thorp_client::{AskedHome, LostPart, LostParts, Stamp};
use thorp_net::Utc;

/// Prints what was found. A home that could not be asked is a failure, after what the others said.
pub(crate) fn print(home: &str, found: &LostParts, json: bool) -> Result<(), Failure> {
    match json {
        true => say_json(&as_json(found))?,
        false => say(&text(home, found))?,
    }
    if found.not_reached.is_empty() {
        return Ok(());
    }
    let what = format!("{} could not be asked", found.not_reached.join(" and "));
    let todo = format!(
        "what it has lost is not listed: see that it runs and is open, that {home} and it are configured for each \
         other (--other-home), and ask again"
    );
    Err(Failure::new(what, todo))
}

fn text(home: &str, found: &LostParts) -> String {
    let compared = count(found.compared as u64, "transaction");
    let mut lines = Vec::new();
    if found.lost.is_empty() {
        lines.push(format!(
            "no part is lost of {compared} over several homes that {home} takes part in"
        ));
    } else {
        lines.push(table(&found.lost));
        lines.push(format!(
            "{} of {compared} over several homes lost a part",
            found.lost.len()
        ));
    }
    if found.in_doubt > 0 {
        lines.push(format!(
            "{} in doubt at a home: `thorp doubt list` there names them",
            count(found.in_doubt as u64, "part")
        ));
    }
    if found.forgotten > 0 {
        lines.push(format!(
            "{} older than what a home remembers: nobody can say whether a part is lost",
            count(found.forgotten as u64, "transaction")
        ));
    }
    lines.extend(found.asked.iter().map(reach));
    lines.join("\n")
}

fn table(lost: &[LostPart]) -> String {
    let mut table = Table::new(&[
        ("commit", Side::Left),
        ("member", Side::Left),
        ("time", Side::Left),
        ("committed at", Side::Left),
        ("lost at", Side::Left),
    ]);
    for part in lost {
        table.row(vec![
            part.commit.to_string(),
            part.member.clone().unwrap_or_default(),
            time(part.stamp),
            part.at.join(", "),
            part.lost_at.join(", "),
        ]);
    }
    table.render().trim_end().to_owned()
}

fn reach(asked: &AskedHome) -> String {
    match asked.since {
        Some(since) => format!("{} remembers those after {}", asked.home, time(since)),
        None => format!("{} remembers all since it was founded", asked.home),
    }
}

fn time(stamp: Stamp) -> String {
    Utc(Duration::from_millis(wall_ms(stamp))).to_string()
}

fn wall_ms(stamp: Stamp) -> u64 {
    stamp.wall().0
}

fn as_json(found: &LostParts) -> serde_json::Value {
    let lost = found.lost.iter().map(|part| {
        serde_json::json!({
            "commit": part.commit.to_string(),
            "member": part.member,
            "wall_ms": wall_ms(part.stamp),
            "committed_at": part.at,
            "lost_at": part.lost_at,
        })
    });
    let asked = found.asked.iter().map(
        |asked| serde_json::json!({"home": asked.home, "since_wall_ms": asked.since.map(wall_ms)}),
    );
    serde_json::json!({
        "lost": lost.collect::<Vec<_>>(),
        "compared": found.compared,
        "in_doubt": found.in_doubt,
        "forgotten": found.forgotten,
        "asked": asked.collect::<Vec<_>>(),
        "not_reached": found.not_reached,
    })
}
