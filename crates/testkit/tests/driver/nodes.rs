//! A home, a site and members for these tests, all in the runtime of the test.

use thorp_model::{HomeId, Outcome, PageId, Position, Slot, WriteOp};
use thorp_net::Address;
use thorp_testing::{Authority, HomeNode, HomeOptions, MemberNode, SiteNode, Village, loopback};

pub(crate) const HOME: HomeId = HomeId(77);

pub(crate) fn home_options() -> HomeOptions {
    HomeOptions {
        address: Some(loopback()),
        ..HomeOptions::new("alps", HOME)
    }
}

pub(crate) async fn home(village: &Village) -> HomeNode {
    HomeNode::start_here(village, home_options()).await
}

pub(crate) async fn site(village: &Village, home: &HomeNode, cache_bytes: usize) -> SiteNode {
    let parents = vec![home.as_parent()];
    SiteNode::start_here(village, &loopback(), parents, cache_bytes).await
}

pub(crate) async fn member(village: &Authority, parent: &Address, id: u64) -> MemberNode {
    MemberNode::start_here(village.member_identity(), parent, HOME, id).await
}

/// Commits one write to the first slot of a page.
pub(crate) async fn commit(member: &MemberNode, page: PageId, op: WriteOp) -> Position {
    match member.commit(page, Slot(0), op).await {
        (_, Outcome::Committed { position, .. }) => position,
        other => panic!("{other:?}"),
    }
}
