//! What a running site tells of itself.

use crate::failure::{Code, Failure};
use crate::http;
use serde::Deserialize;
use std::time::Duration;

/// What models can use of a site.
#[derive(Debug, PartialEq)]
pub(super) struct Measured {
    /// Members that are connected.
    pub(super) members: f64,
    /// To its parent, when it was reached.
    pub(super) round_trip_ms: Option<f64>,
    /// Requests for pages for each that went to the home; none before the first.
    pub(super) requests_per_fetch: Option<f64>,
}

#[derive(Deserialize)]
struct Status {
    role: String,
    parents: Vec<Parent>,
    children: Vec<Child>,
    pages: Pages,
}

#[derive(Deserialize)]
struct Parent {
    connected: bool,
    round_trip_ms: Option<f64>,
}

#[derive(Deserialize)]
struct Child {
    kind: String,
}

#[derive(Deserialize)]
struct Pages {
    from_memory: u64,
    redirected: u64,
    joined: u64,
    from_parent: u64,
}

/// Asks a site.
pub(super) fn measured(node: &str) -> Result<Measured, Failure> {
    let answer = http::get(node, "/status", ANSWER_WITHIN)?;
    let status: Status = serde_json::from_str(&answer).map_err(|error| {
        let what = format!("{node} answers what is no status: {error}");
        Failure::new(what, "give the --http address of a running site")
    })?;
    of(&status).ok_or_else(|| {
        let what = format!(
            "{node} is a {}, and only sites know their members",
            status.role
        );
        Failure::new(what, "give the --http address of a running site").with(Code::Usage)
    })
}

fn of(status: &Status) -> Option<Measured> {
    if status.role != "site" {
        return None;
    }
    let members = status
        .children
        .iter()
        .filter(|child| child.kind == "member");
    let reached = status.parents.iter().find(|parent| parent.connected);
    let pages = &status.pages;
    let asked = pages.from_memory + pages.redirected + pages.joined + pages.from_parent;
    Some(Measured {
        members: members.count() as f64,
        round_trip_ms: reached.and_then(|parent| parent.round_trip_ms),
        requests_per_fetch: (pages.from_parent > 0)
            .then(|| asked as f64 / pages.from_parent as f64),
    })
}

const ANSWER_WITHIN: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_distance_and_sharing_are_what_a_site_tells() {
        let status = r#"{"role": "site", "name": "x", "parents": [{"connected": true, "round_trip_ms": 40.5}],
            "children": [{"kind": "member"}, {"kind": "site"}, {"kind": "member"}],
            "pages": {"from_memory": 10, "redirected": 15, "joined": 5, "from_parent": 10, "refetched": 3}}"#;
        let status: Status = serde_json::from_str(status).expect("a status");
        let measured = of(&status).expect("a site");
        assert_eq!(
            (measured.members, measured.round_trip_ms),
            (2.0, Some(40.5))
        );
        assert_eq!(measured.requests_per_fetch, Some(4.0));
        assert_eq!(
            of(&Status {
                role: "home".into(),
                ..status
            }),
            None
        );
    }
}
