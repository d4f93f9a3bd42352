//! A village of processes on this machine: a home, sites below it, and what members need to join.

use crate::Result;
use crate::process::Process;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use thorp_client::{JoinConfig, Member, Reference, Segment};
use thorp_net::{CertificateAuthority, Identity, NodeRole, issue};

/// A directory with a home's data, sockets and everybody's certificates. Dropped, it is gone.
#[derive(Debug)]
pub struct Village {
    dir: TempDir,
    home: Option<Process>,
    /// Delays and limits, as the home is told them.
    told: [String; 2],
}

/// The home's name.
pub const HOME: &str = "alps";

/// Objects of a page, which they fill: each is charged eight bytes more.
pub const OBJECTS_PER_PAGE: u16 = 75;

/// Bytes of an object.
pub const OBJECT_BYTES: usize = 100;

impl Village {
    /// A home. What it sends to these children is delayed, in milliseconds one way.
    pub fn new(delays: &[(&str, u64)]) -> Result<Self> {
        Self::new_with(delays, "")
    }

    /// The same, with limits as `MS,PERIODS,BYTES`: how often it says that it is alive, how many silent periods it bears, and
    /// what waits to be written to one child. Or as `lease=MS`: the time of its leases.
    pub fn new_with(delays: &[(&str, u64)], limits: &str) -> Result<Self> {
        let delays = delays.iter();
        let delays: Vec<String> = delays.map(|(name, ms)| format!("{name}={ms}")).collect();
        let mut village = Village {
            dir: TempDir::new()?,
            home: None,
            told: [delays.join(","), limits.to_owned()],
        };
        village.start_home()?;
        Ok(village)
    }

    /// `kill -9`, and waiting for the end.
    pub fn kill_home(&mut self) {
        self.home = None;
    }

    /// Starts the home with what it has.
    pub fn start_home(&mut self) -> Result<()> {
        let [delays, limits] = &self.told;
        let place = text(self.dir.path());
        self.home = Some(Process::start("home", &[&place, delays, limits])?);
        Ok(())
    }

    /// A site with so many bytes of memory, this far away from the home in milliseconds. It is named as it is delayed.
    pub fn site(&self, name: &str, cache_bytes: usize, one_way_ms: u64) -> Result<Process> {
        self.site_with(name, cache_bytes, one_way_ms, "")
    }

    /// The same, with limits as of [`Village::new_with`].
    pub fn site_with(
        &self,
        name: &str,
        cache_bytes: usize,
        one_way_ms: u64,
        limits: &str,
    ) -> Result<Process> {
        let dir = text(self.dir.path());
        let (cache, delay) = (cache_bytes.to_string(), one_way_ms.to_string());
        Process::start("site", &[&dir, name, &cache, &delay, limits])
    }

    /// Where a home or a site listens.
    pub fn address(&self, name: &str) -> String {
        format!("unix:{}", self.path(&format!("{name}.sock")).display())
    }

    /// How to join at a home or a site, by who measures single fetches.
    pub fn config(&self, parent: &str, name: &str) -> Result<JoinConfig> {
        let config = JoinConfig::new(self.address(parent)).fetch_ahead(0);
        Ok(config.identity_of(self.identity(name)?).name(name))
    }

    /// Joins at a home or a site.
    pub fn member(&self, parent: &str, name: &str) -> Result<Member> {
        Ok(Member::join(self.config(parent, name)?)?)
    }

    /// A member's certificate; made if it is not there.
    pub fn identity(&self, name: &str) -> Result<Identity> {
        identity(self.dir.path(), NodeRole::Member, name)
    }

    /// A file that goes with the village.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The home's process id.
    pub fn home_process(&self) -> u32 {
        self.home.as_ref().map_or(0, Process::id)
    }
}

impl Drop for Village {
    fn drop(&mut self) {
        // Before its directory.
        self.home = None;
    }
}

/// A node's certificate in a village's directory; made if it is not there.
pub fn identity(dir: &Path, role: NodeRole, name: &str) -> Result<Identity> {
    Ok(issue(
        CertificateAuthority::find(dir),
        dir.join(name),
        role,
        name,
    )?)
}

/// Fills so many pages with objects, [`OBJECTS_PER_PAGE`] each; the first object of each page.
pub fn fill(member: &Member, segment: &Segment, pages: usize) -> Result<Vec<Reference>> {
    let mut firsts = Vec::new();
    while firsts.len() < pages {
        let made = member.transact(|tx| {
            let objects = PAGES_PER_COMMIT * usize::from(OBJECTS_PER_PAGE);
            let objects = (0..objects).map(|n| tx.create(segment, vec![n as u8; OBJECT_BYTES]));
            objects.collect::<thorp_client::Result<Vec<_>>>()
        })?;
        for page in made.chunks(usize::from(OBJECTS_PER_PAGE)) {
            let is_page = page.iter().enumerate().all(|(slot, reference)| {
                let object = reference.object;
                object.page == page[0].object.page && usize::from(object.slot.0) == slot
            });
            if !is_page {
                return Err("the objects do not lie as they were thought to".into());
            }
            firsts.push(page[0]);
        }
    }
    firsts.truncate(pages);
    Ok(firsts)
}

const PAGES_PER_COMMIT: usize = 50;

fn text(path: &Path) -> String {
    path.display().to_string()
}
