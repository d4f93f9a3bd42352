//! What the nodes say of themselves, where the context knows their status ports.

use super::{Check, Checks};
use crate::commands::node_status::{PATH, Status};
use crate::failure::Failure;
use crate::http::{self, HTTPS};
use std::time::{Duration, Instant};

/// Asks each in turn. One that does not answer is no problem: nobody needs it to join.
pub(super) fn check(
    nodes: &[String],
    village: Option<&str>,
    deadline: Instant,
    checks: &mut Checks,
) -> Result<(), Failure> {
    let (closed, open): (Vec<&String>, Vec<&String>) =
        nodes.iter().partition(|node| node.starts_with(HTTPS));
    checks.add_all(open.iter().map(|node| one(node, village, deadline)))?;
    match (closed.first(), open.is_empty()) {
        (Some(node), _) => checks.skip(STATUS, format!("{node} answers operators only")),
        (None, true) => checks.skip(STATUS, NOT_ASKED),
        (None, false) => Ok(()),
    }
}

fn one(node: &str, village: Option<&str>, deadline: Instant) -> Check {
    let left = deadline.saturating_duration_since(Instant::now());
    let asked = http::get(node, PATH, left.min(WITHIN).max(LEAST));
    let body = match asked {
        Ok(body) => body,
        Err(failure) => {
            let check = Check::warning(STATUS, failure.what(), "");
            return failure.advice().fold(check, Check::or);
        }
    };
    match Status::of(&body) {
        Ok(status) => judged(node, &status, village),
        Err(failure) => Check::warning(
            STATUS,
            format!("{node}: {}", failure.what()),
            "give the context the --http address of a home or a site: `thorp context add`",
        ),
    }
}

fn judged(node: &str, status: &Status, village: Option<&str>) -> Check {
    let Status {
        role,
        name,
        version,
        ..
    } = status;
    let who = format!("{node}: {role} {name}, version {version}");
    if village.is_some_and(|own| own != status.village) {
        let found = format!("{who}, of the other village {}", status.village);
        return Check::warning(
            STATUS,
            found,
            "take the context of one village only: `thorp context ls`",
        );
    }
    if !status.health.ok {
        let reasons = status.health.reasons.join("; ");
        let todo = format!("mend that; `thorp status {node}` and its log tell more");
        return Check::problem(STATUS, format!("{who}, is not well: {reasons}"), todo);
    }
    if version != OWN_VERSION {
        let found = format!("{who}, is well; this program has version {OWN_VERSION}");
        return Check::warning(STATUS, found, "update the older one of the two");
    }
    Check::ok(STATUS, format!("{who}, is well"))
}

const STATUS: &str = "status";
/// A home that is full or closed is reached all the same.
const NOT_ASKED: &str = "nothing says where the nodes serve it; ask whether a home is full or closed: `thorp status ADDR`";
const OWN_VERSION: &str = env!("CARGO_PKG_VERSION");
/// How long one is waited for.
const WITHIN: Duration = Duration::from_secs(2);
/// A wait of nothing is refused by the system.
const LEAST: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::node_status::Health;

    fn word(change: impl FnOnce(&mut Status)) -> &'static str {
        let mut status = Status {
            village: "here".to_owned(),
            version: OWN_VERSION.to_owned(),
            health: Health {
                ok: true,
                reasons: Vec::new(),
            },
            ..Status::default()
        };
        change(&mut status);
        judged("a:1", &status, Some("here")).first_word()
    }

    #[test]
    fn a_node_is_of_this_village_well_and_of_this_version() {
        assert_eq!(word(|_| {}), "ok");
        assert_eq!(
            word(|status| status.village = "there".to_owned()),
            "warning"
        );
        assert_eq!(
            word(|status| status.version = "0.0.1".to_owned()),
            "warning"
        );
        assert_eq!(word(|status| status.health.ok = false), "problem");
    }
}
