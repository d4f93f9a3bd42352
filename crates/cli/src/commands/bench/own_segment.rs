//! The segment of one run: it is made, filled, and removed again.

use crate::failure::Failure;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use thorp_client::{Member, Ref, Reference, Segment};

/// Dropping it removes the segment, as far as its home can be reached.
#[derive(Debug)]
pub(super) struct OwnSegment {
    member: Member,
    name: String,
    is_there: bool,
}

/// What is in it for all members.
#[derive(Debug)]
pub(super) struct Filled {
    /// An object of each page, for cold and cached reads.
    pub(super) leaders: Vec<Reference>,
    pub(super) counter: Ref<u64>,
    /// Objects in all.
    pub(super) objects: u64,
}

impl OwnSegment {
    /// Nothing that was there before is used: it would be removed.
    pub(super) fn make(member: &Member, name: String) -> Result<(Self, Segment), Failure> {
        let segment = member.create(&name)?;
        let own = OwnSegment {
            member: member.clone(),
            name,
            is_there: true,
        };
        Ok((own, segment))
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn remove(mut self) -> Result<(), Failure> {
        // Not again, whatever comes.
        self.is_there = false;
        self.member.remove(&self.name).map_err(|error| {
            let what = format!("{} was not removed: {error}", self.name);
            Failure::new(what, format!("`thorp rm {}`", self.name))
        })
    }
}

impl Drop for OwnSegment {
    fn drop(&mut self) {
        if self.is_there && self.member.remove(&self.name).is_err() {
            let name = &self.name;
            let _ = crate::text::note(&format!("{name} is left: remove it with `thorp rm {name}`"));
        }
    }
}

/// A name that no other run has.
pub(super) fn fresh_name(home: &str) -> String {
    let random = RandomState::new().hash_one(std::process::id());
    format!("thorp://{home}/bench-{random:016x}")
}

/// Makes objects until they lie on enough pages, or are large enough together.
pub(super) fn fill(member: &Member, segment: &Segment, bytes: usize) -> Result<Filled, Failure> {
    let counter = member.transact(|tx| tx.create_typed(segment, &0))?;
    let mut leaders = BTreeMap::new();
    let mut objects = 0;
    let at_once = (COMMIT_BYTES / bytes.max(1)).clamp(1, AT_ONCE_MAX);
    while leaders.len() < PAGES && objects * bytes < BYTES_MAX {
        let made = member.transact(|tx| {
            let each = (0..at_once).map(|_| tx.create(segment, value(bytes)));
            each.collect::<thorp_client::Result<Vec<Reference>>>()
        })?;
        objects += made.len();
        for reference in made {
            leaders.entry(reference.object.page).or_insert(reference);
        }
    }
    Ok(Filled {
        leaders: leaders.into_values().collect(),
        counter,
        objects: objects as u64,
    })
}

/// The objects that only one member writes.
pub(super) fn own_objects(
    member: &Member,
    segment: &Segment,
    (count, bytes): (usize, usize),
) -> Result<Vec<Reference>, Failure> {
    let made = member.transact(|tx| {
        let each = (0..count).map(|_| tx.create(segment, value(bytes)));
        each.collect::<thorp_client::Result<Vec<Reference>>>()
    });
    Ok(made?)
}

/// The bytes of an object.
pub(super) fn value(bytes: usize) -> Vec<u8> {
    vec![b'x'; bytes]
}

/// Pages with objects: enough for reads that do not follow each other to the same page.
const PAGES: usize = 128;
/// Bytes of objects at most.
const BYTES_MAX: usize = 16 << 20;
/// Bytes of one commit that fills.
const COMMIT_BYTES: usize = 1 << 20;
const AT_ONCE_MAX: usize = 256;
