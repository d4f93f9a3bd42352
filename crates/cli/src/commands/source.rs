//! The object that a command reads: by its own name, or by a root of its segment.

use crate::failure::{Code, Failure};
use thorp_client::{Error, Member, Reference, Result, Segment, Transaction};

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
                format!("{url} names a segment"),
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

    /// The same, for what is to be copied or moved: a root has to name an object of its segment.
    pub(super) fn own_reference(&self, tx: &mut Transaction) -> Result<Option<Reference>> {
        let reference = self.reference(tx)?;
        if let (Source::Root(segment, name), Some(reference)) = (self, &reference) {
            check_own(segment, name, reference)?;
        }
        Ok(reference)
    }
}

/// Whether a root names an object of its segment. Whoever may write there may name any object as a root, also one that
/// only this user may read or change.
pub(super) fn check_own(segment: &Segment, root: &str, reference: &Reference) -> Result<()> {
    let is_own = reference.home == segment.home()
        && reference.object.page.segment == segment.id()
        && reference.offset == 0;
    if is_own {
        return Ok(());
    }
    let object = segment.member().format(reference)?;
    let words = format!(
        "root {root:?} names {object}, which is no object of its segment: name that one itself, if you mean it"
    );
    Err(Error::aborted(words))
}

/// There is no root of this name in a segment.
pub(super) fn no_root(segment: &str, name: &str) -> Failure {
    let todo = format!("`thorp inspect {segment}` tells which there are");
    Failure::new(format!("{segment} has no root {name}"), todo).with(Code::NotThere)
}
