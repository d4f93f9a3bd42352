//! The object that a command reads: by its own name, or by a root of its segment.

use crate::failure::{Code, Failure};
use thorp_client::{Member, Reference, Result, Segment, Transaction};

/// Who names the object.
pub(super) enum Source {
    /// A reference.
    Object(Reference),
    /// A root of a segment.
    Root(Segment, String),
}

impl Source {
    /// What is wrong with a call is found before it joins.
    pub(super) fn check(url: &str, root: Option<&str>) -> Result<(), Failure> {
        let (what, todo) = match (url.contains('#'), root) {
            (false, None) => (
                format!("{url} is a segment"),
                "name an object in it (#PAGE.SLOT.GENERATION), or a root with --root NAME",
            ),
            (true, Some(_)) => (
                format!("{url} is an object already, and --root names one, too"),
                "leave out --root, or what follows the #",
            ),
            _ => return Ok(()),
        };
        Err(Failure::new(what, todo).with(Code::Usage))
    }

    /// That of a checked call.
    pub(super) fn find(member: &Member, url: &str, root: Option<&str>) -> Result<Self> {
        Ok(match root {
            None => Source::Object(member.parse(url)?),
            Some(root) => Source::Root(member.open(url)?, root.to_owned()),
        })
    }

    /// The object, as a transaction sees it. None: there is no such root.
    pub(super) fn reference(&self, tx: &mut Transaction) -> Result<Option<Reference>> {
        match self {
            Source::Object(reference) => Ok(Some(*reference)),
            Source::Root(segment, name) => tx.root(segment, name),
        }
    }
}

/// There is no root of this name in a segment.
pub(super) fn no_root(segment: &str, name: &str) -> Failure {
    let todo = format!("`thorp inspect {segment}` tells which there are");
    Failure::new(format!("{segment} has no root {name}"), todo).with(Code::NotThere)
}
