//! A village in the test's own process.

use std::ops::Deref;

use thorp_net::driver::ParentConfig;

use crate::authority::Authority;
use crate::home::{HomeNode, HomeOptions};
use crate::link::Link;
use crate::site::SiteNode;

/// Homes, sites and members under one [`Authority`]. It starts homes and sites, and has all that the authority has.
///
/// ```
/// use std::time::Duration;
/// use thorp_testing::Village;
///
/// let village = Village::new();
/// let [alps, dale] = village.homes(["alps", "dale"]);
/// let far = alps.link(Duration::from_millis(40));
/// let near = dale.link(Duration::from_millis(1));
/// let site = village.site("valley", &[&far, &near]);
/// println!("anna joins at {} with {}", site.address(), village.member("anna").display());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Village(Authority);

impl Village {
    /// A village without nodes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts a home of this name. It keeps its records in memory, also while it is [stopped](HomeNode::stop).
    ///
    /// # Panics
    ///
    /// The village has such a home already, or the name is none for a home.
    pub fn home(&self, name: &str) -> HomeNode {
        let [home] = self.homes([name]);
        home
    }

    /// Starts homes that share transactions: one transaction may write at several of them (rule 10).
    ///
    /// # Panics
    ///
    /// As [`Village::home`].
    pub fn homes<const N: usize>(&self, names: [&str; N]) -> [HomeNode; N] {
        names.map(|name| {
            let others = names.iter().filter(|other| **other != name);
            let others = others.map(|other| {
                let addresses = vec![self.socket(other)];
                ParentConfig::new(addresses).named(*other)
            });
            let options = HomeOptions {
                others: others.collect(),
                ..HomeOptions::new(name, self.home_id(name))
            };
            HomeNode::start(self, options)
        })
    }

    /// Starts a site of this name, which reaches its homes by these links. It has 16 MiB of memory for pages.
    ///
    /// # Panics
    ///
    /// The village has such a site, or another node of this name, already.
    pub fn site(&self, name: &str, links: &[&Link]) -> SiteNode {
        self.site_of((name, None), links)
    }

    /// As [`Village::site`], with a log that a member of another name keeps.
    ///
    /// # Panics
    ///
    /// As [`Village::site`].
    pub fn site_with_log(&self, name: &str, keeper: &str, links: &[&Link]) -> SiteNode {
        self.site_of((name, Some(keeper)), links)
    }

    fn site_of(&self, named: (&str, Option<&str>), links: &[&Link]) -> SiteNode {
        let parents = links.iter().map(|link| link.as_parent()).collect();
        SiteNode::start_called(self, named, &self.socket(named.0), parents, SITE_BYTES)
    }
}

impl Deref for Village {
    type Target = Authority;

    fn deref(&self) -> &Authority {
        &self.0
    }
}

/// A site's memory for pages.
const SITE_BYTES: usize = 16 << 20;
