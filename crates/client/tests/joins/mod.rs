//! Members of the client library at a home of `thorp-testing`, for tests of the library and of the examples.

#![allow(dead_code, reason = "each test program uses a part of it")]
#![allow(
    clippy::unwrap_used,
    reason = "this is a test, although not by attribute"
)]

use thorp_client::{JoinConfig, Member, Segment};
use thorp_testing::HomeNode;

/// Members join a home.
pub(crate) trait Joins {
    fn config(&self) -> JoinConfig;
    fn member(&self) -> Member;
    /// A member and a segment.
    fn member_at(&self, path: &str) -> (Member, Segment);
}

impl Joins for HomeNode {
    fn config(&self) -> JoinConfig {
        JoinConfig::new(self.address().to_string())
            .identity_of(self.identity())
            .name("anna")
    }

    fn member(&self) -> Member {
        Member::join(self.config()).unwrap()
    }

    fn member_at(&self, path: &str) -> (Member, Segment) {
        let member = self.member();
        let segment = member
            .open_or_create(&format!("thorp://{}/{path}", self.name()))
            .unwrap();
        (member, segment)
    }
}
