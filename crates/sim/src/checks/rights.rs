//! Rule R5: whoever has lost the right to read gets nothing newer.

use crate::failure::{Checked, demand};
use crate::oracle::Oracle;
use thorp_model::{
    Access, ObjectId, PageId, Position, Principal, Publish, RIGHTS_SLOT, Right, rights_page,
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
            may_have_read(oracle, who, *page, (version, publish.position)),
            "rights",
            "{} shows page {page} of version {version} at {}, and had no right to read it since",
            name,
            publish.position
        );
    }
    Ok(())
}

/// Whether a principal had the right to read at some position from the first to the last.
fn may_have_read(
    oracle: &Oracle,
    who: Principal,
    page: PageId,
    (first, last): (Position, Position),
) -> bool {
    let list = ObjectId {
        page: rights_page(page.segment),
        slot: RIGHTS_SLOT,
    };
    let mut position = last.max(first);
    loop {
        let (since, object) = oracle.object_at(list, position);
        let access = match &object.value {
            Some(bytes) => Access::of(bytes),
            None => Access::without_list(),
        };
        if access.allows(who, Right::Read) {
            return true;
        }
        if since <= first || since == Position(0) {
            return false;
        }
        position = Position(since.0 - 1);
    }
}
