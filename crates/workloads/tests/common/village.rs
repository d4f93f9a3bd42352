//! A home called `alps` with a store on disk, sites below it, and members with segments.

use std::sync::Mutex;

use thorp_client::{JoinConfig, Member, Session};
use thorp_model::limits::SITE_CACHE_BYTES;
use thorp_net::Address;
use thorp_testing::{HomeNode, HomeOptions, SiteNode};
use thorp_workloads::objects::MemberStore;

/// A village, gone with the test.
pub(crate) struct Village {
    sites: Mutex<Vec<SiteNode>>,
    // It goes after its sites.
    home: HomeNode,
}

impl Village {
    pub(crate) fn new() -> Self {
        let village = thorp_testing::Village::new();
        let options = HomeOptions {
            store: Some(village.path("store")),
            ..HomeOptions::default()
        };
        Village {
            sites: Mutex::default(),
            home: HomeNode::start(&village, options),
        }
    }

    /// A new site below the home.
    pub(crate) fn site(&self) -> Address {
        let mut sites = self.sites.lock().expect("nobody panicked here");
        let village = self.home.village();
        let address = village.socket(&format!("site-{}", sites.len()));
        let parents = vec![self.home.as_parent()];
        let site = SiteNode::start(village, &address, parents, SITE_CACHE_BYTES);
        sites.push(site);
        address
    }

    /// A member right at the home, and a segment.
    pub(crate) fn at_home(&self, name: &str, segment: &str) -> MemberStore {
        self.at(self.home.address(), name, segment)
    }

    /// A member at a site, and a segment.
    pub(crate) fn at(&self, parent: &Address, name: &str, segment: &str) -> MemberStore {
        self.joined(JoinConfig::new(parent.to_string()), name, segment)
    }

    /// A member right at the home that fetches nothing ahead.
    pub(crate) fn page_by_page(&self, name: &str, segment: &str) -> MemberStore {
        let config = JoinConfig::new(self.home.address().to_string()).fetch_ahead(0);
        self.joined(config, name, segment)
    }

    fn joined(&self, config: JoinConfig, name: &str, segment: &str) -> MemberStore {
        let config = config.identity_of(self.home.identity()).name(name);
        let member = Member::join(config).expect("the village takes members");
        let segment = member.open_or_create(&format!("thorp://alps/{segment}"));
        let session = Session::new().attempts_max(1_000);
        MemberStore::new(member, segment.expect("a segment"), session)
    }
}
