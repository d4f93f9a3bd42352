//! Members at a home of `thorp-testing`.

use thorp_client::{JoinConfig, Member, Segment};
use thorp_testing::HomeNode;

/// A member of the home, and a segment there.
pub(crate) fn member_at(home: &HomeNode, path: &str) -> (Member, Segment) {
    let config = JoinConfig::new(home.address().to_string());
    let member = Member::join(config.identity_of(home.identity())).unwrap();
    let segment = member.open_or_create(&format!("thorp://{}/{path}", home.name()));
    (member, segment.unwrap())
}
