//! The sites and homes out of reach, and why.

use std::fmt;
use std::time::Duration;
use thorp_net::driver::{ParentState, ParentStatus, now};

/// A site or home that a member wants to reach and does not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OutOfReach {
    /// The name that it must have in its certificate; none if any will do.
    pub name: Option<String>,
    /// Its addresses.
    pub addresses: Vec<String>,
    /// For how long, since the first try that failed.
    pub since: Duration,
    /// What went wrong last, for people. For example, nothing listens there, or it has another name, another version,
    /// or a certificate of another village.
    pub why: String,
}

impl OutOfReach {
    /// Those of a node's parents that are not reached.
    pub(crate) fn of(parents: Vec<ParentStatus>) -> Vec<OutOfReach> {
        parents.into_iter().filter_map(Self::new).collect()
    }

    fn new(parent: ParentStatus) -> Option<Self> {
        let (since, why) = match parent.state {
            ParentState::Connected(_) => return None,
            ParentState::Dialing => (0, "no answer yet".to_owned()),
            ParentState::Unwanted => (0, "not connected at present".to_owned()),
            ParentState::Lost { since, why, .. } => (now().mono.since(since), why),
        };
        Some(OutOfReach {
            name: Some(parent.name).filter(|name| !name.is_empty()),
            addresses: parent.addresses,
            since: Duration::from_millis(since),
            why,
        })
    }
}

/// Why all parents turn a node away, if they do: each has answered, and said no. Waiting does not help then.
pub(crate) fn refusal(parents: &[ParentStatus]) -> Option<String> {
    let why = |parent: &ParentStatus| match &parent.state {
        ParentState::Lost {
            why,
            is_refused: true,
            ..
        } => Some(why.clone()),
        _ => None,
    };
    let why: Vec<String> = parents.iter().map(why).collect::<Option<_>>()?;
    (!why.is_empty()).then(|| why.join("; "))
}

impl fmt::Display for OutOfReach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = &self.name {
            write!(f, "{name}: ")?;
        }
        f.write_str(&self.why)
    }
}
