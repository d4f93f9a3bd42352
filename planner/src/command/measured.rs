//! What a running site tells of itself.

use crate::command::failure::{Code, Failure};
use serde::Deserialize;

/// What models can use of a site.
#[derive(Debug, PartialEq)]
pub(super) struct Measured {
    /// Members that are connected; none says nothing of how many there will be.
    pub(super) members: Option<f64>,
    /// To its parent, when it was reached.
    pub(super) round_trip_ms: Option<f64>,
    /// Requests for pages for each that went to the home; none before the first.
    pub(super) requests_per_fetch: Option<f64>,
}

impl Measured {
    /// What it does not tell, and why.
    pub(super) fn missing(&self) -> Vec<&'static str> {
        let all = [
            (self.members.is_none(), "members: none is connected"),
            (
                self.round_trip_ms.is_none(),
                "the round trip: it was not measured on the connection to its parent",
            ),
            (
                self.requests_per_fetch.is_none(),
                "sharing: it has fetched no page yet",
            ),
        ];
        let missing = all.into_iter().filter(|(is_missing, _)| *is_missing);
        missing.map(|(_, why)| why).collect()
    }
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

/// What a node's status says, if the node is a site.
pub(super) fn measured(node: &str, status: &str) -> Result<Measured, Failure> {
    let todo =
        "give the --http address of a running site: the last line that it printed when it started";
    let status: Status = serde_json::from_str(status).map_err(|_| {
        let what = format!("{node} answers, but not with the status of a site");
        Failure::new(what, todo)
    })?;
    of(&status).ok_or_else(|| {
        let what = format!(
            "{node} is a {}, and only sites know their members",
            status.role
        );
        Failure::new(what, todo).with(Code::Usage)
    })
}

fn of(status: &Status) -> Option<Measured> {
    if status.role != "site" {
        return None;
    }
    let members = status
        .children
        .iter()
        .filter(|child| child.kind == "member")
        .count();
    let reached = status.parents.iter().find(|parent| parent.connected);
    let pages = &status.pages;
    let asked = pages.from_memory + pages.redirected + pages.joined + pages.from_parent;
    Some(Measured {
        members: (members > 0).then_some(members as f64),
        round_trip_ms: reached.and_then(|parent| parent.round_trip_ms),
        requests_per_fetch: (pages.from_parent > 0)
            .then(|| asked as f64 / pages.from_parent as f64),
    })
}

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
            (Some(2.0), Some(40.5))
        );
        assert_eq!(measured.requests_per_fetch, Some(4.0));
        assert!(measured.missing().is_empty());
        let alone = Status {
            children: Vec::new(),
            ..status
        };
        let measured = of(&alone).expect("a site");
        assert_eq!(measured.members, None);
        assert_eq!(measured.missing(), ["members: none is connected"]);
        let home = Status {
            role: "home".into(),
            ..alone
        };
        assert_eq!(of(&home), None);
    }
}
