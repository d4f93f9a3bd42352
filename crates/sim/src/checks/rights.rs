//! Rules R4 and R5: nobody commits what it has no right to, and whoever has lost the right to read or to carry gets nothing
//! newer.

use crate::failure::{Checked, demand};
use crate::oracle::Oracle;
use thorp_model::{
    Access, Audience, CommitId, NameId, ObjectId, PageId, Part, Position, Principal, Publish,
    RIGHTS_SLOT, Right, SegmentId, Slot, rights_page,
};

/// A member shows pages of a home: it may have read each of them, at some position from the page's version to its own.
pub fn published(oracle: &Oracle, member: (&str, Principal), publish: &Publish) -> Checked {
    let (name, who) = member;
    for (page, image) in &publish.images {
        let Some(image) = image else {
            continue;
        };
        let version = image.version();
        demand!(
            was_so(oracle, *page, (version, publish.position), |list| {
                list.allows(who, Right::Read)
            }),
            "rights",
            "{} shows page {page} of version {version} at {}, and had no right to read it since",
            name,
            publish.position
        );
    }
    Ok(())
}

/// A site, as its parent knows it.
#[derive(Clone, Copy, Debug)]
pub struct Site {
    /// The id of its name.
    pub name: NameId,
    /// Whether the member of that name carries it.
    pub is_carried: bool,
}

/// A site has a page of a home in its memory: it may have carried it, at some position from the page's version to its own.
pub fn carried(
    oracle: &Oracle,
    (name, site): (&str, Site),
    (page, version): (PageId, Position),
    position: Position,
) -> Checked {
    demand!(
        was_so(oracle, page, (version, position), |list| carries(
            site, list
        )),
        "rights",
        "{} has page {page} of version {version} at {position}, and could not carry it since",
        name
    );
    Ok(())
}

/// Whether a site may carry a segment as of a position.
pub fn may_carry(oracle: &Oracle, site: Site, segment: SegmentId, position: Position) -> bool {
    carries(site, &list_at(oracle, segment, position).1)
}

fn carries(site: Site, list: &Access) -> bool {
    let audience = Audience {
        readers: list.readers(),
        carriers: list.carriers().clone(),
    };
    audience.may_carry(site.name, site.is_carried)
}

/// Rule R4: whoever commits has the rights for it at the position before. A vote stays valid when a right is lost, so of a
/// part of several only what it may never do is looked at (rule R5).
pub fn committed(oracle: &Oracle, id: CommitId, part: &Part, of_several: bool) -> Checked {
    let who = Principal {
        name: id.member.name(),
        is_operator: false,
    };
    let Some((position, _)) = oracle.commits.get(&id) else {
        return Ok(());
    };
    let before = Position(position.0 - 1);
    let wanted = part.writes.iter().map(|writes| {
        let is_list =
            |slot: &Slot| *slot == RIGHTS_SLOT && writes.page == rights_page(writes.page.segment);
        let changes_list = writes.slots.iter().any(|(slot, _)| is_list(slot));
        let right = if changes_list {
            Right::Admin
        } else {
            Right::Write
        };
        (writes.page.segment, right)
    });
    for (segment, right) in wanted {
        demand!(
            !of_several || right != Right::Admin,
            "rights",
            "commit {id:?} over several homes changes the rights of segment {segment}"
        );
        demand!(
            of_several || list_at(oracle, segment, before).1.allows(who, right),
            "rights",
            "commit {id:?} at {position} needs {right} of segment {segment}, and had no right to"
        );
    }
    Ok(())
}

/// A segment's list as of a position, and where it became so.
fn list_at(oracle: &Oracle, segment: SegmentId, position: Position) -> (Position, Access) {
    let list = ObjectId {
        page: rights_page(segment),
        slot: RIGHTS_SLOT,
    };
    let (since, object) = oracle.object_at(list, position);
    let access = match &object.value {
        Some(bytes) => Access::of(bytes),
        None => Access::without_list(),
    };
    (since, access)
}

/// Whether the list of a page's segment was so at some position from the first to the last.
fn was_so(
    oracle: &Oracle,
    page: PageId,
    (first, last): (Position, Position),
    is_so: impl Fn(&Access) -> bool,
) -> bool {
    let mut position = last.max(first);
    loop {
        let (since, access) = list_at(oracle, page.segment, position);
        if is_so(&access) {
            return true;
        }
        if since <= first || since == Position(0) {
            return false;
        }
        position = Position(since.0 - 1);
    }
}
