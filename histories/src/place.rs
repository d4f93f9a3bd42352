//! Where members join, and by which ways.

use crate::Outcome;
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;
use thorp_client::{JoinConfig, Member, SiteOfMembers};

/// Silence is noticed after this, so often a word is due within it.
pub(crate) const ALIVE_MS: u64 = 100;
pub(crate) const ALIVE_MISSED_MAX: u32 = 10;
/// Who is not where it would rather be looks there so often.
const HEAL_EVERY: Duration = Duration::from_millis(500);
const JOIN_TIME_MAX: Duration = Duration::from_secs(60);

/// Where a member joins.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// At the site that is a process of its own.
    Site,
    /// There, too; while it does not answer, its members carry the redirector.
    SiteOrNeighbours,
    /// At a site that has no process: its members carry the redirector.
    Neighbours,
    /// Straight at both homes.
    Homes,
}

impl Place {
    /// As people read it, and the history's events tell it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Place::Site => "at the site",
            Place::SiteOrNeighbours => "at the site or among neighbours",
            Place::Neighbours => "among neighbours",
            Place::Homes => "at the homes",
        }
    }

    /// As it is told on a command line.
    pub(crate) fn argument(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }

    pub(crate) fn has_neighbours(self) -> bool {
        matches!(self, Place::SiteOrNeighbours | Place::Neighbours)
    }
}

/// How a member gets there.
#[derive(Args)]
pub(crate) struct Ways {
    #[arg(long, value_enum)]
    pub(crate) place: Place,
    /// The site's address, or those of the homes
    #[arg(long)]
    via: Vec<String>,
    /// Homes of a redirector that the member carries
    #[arg(long, value_name = "NAME=ADDRESS")]
    home: Vec<String>,
    /// All neighbours, in the order of their rank
    #[arg(long)]
    neighbour: Vec<String>,
    /// Which of them it is, from zero
    #[arg(long, default_value_t = 0)]
    rank: usize,
    /// Where its own redirector listens
    #[arg(long)]
    listen: Option<String>,
    #[arg(long)]
    identity: PathBuf,
    /// Bytes of pages to keep, if not as many as a member keeps by default
    #[arg(long)]
    cache: Option<usize>,
    /// Where its updates are until their homes have them
    #[arg(long)]
    log: Option<PathBuf>,
}

impl Ways {
    pub(crate) fn join(&self, name: String) -> Outcome<Member> {
        let mut config = match self.via.split_first() {
            None => JoinConfig::among(self.among()?),
            Some((first, more)) => more
                .iter()
                .fold(JoinConfig::new(first), |config, home| config.and_home(home)),
        };
        if self.place == Place::SiteOrNeighbours {
            config = config.or_among(self.among()?);
        }
        if let Some(bytes) = self.cache {
            config = config.cache_bytes(bytes);
        }
        if let Some(log) = &self.log {
            config = config.log(log);
        }
        let config = config.identity(&self.identity).name(name);
        let config = config.alive(Duration::from_millis(ALIVE_MS), ALIVE_MISSED_MAX);
        Ok(Member::join(config.join_timeout(JOIN_TIME_MAX))?)
    }

    fn among(&self) -> Outcome<SiteOfMembers> {
        let own = self.neighbour.get(self.rank).ok_or("it has no rank")?;
        let site = SiteOfMembers::new(own).neighbours(&self.neighbour);
        let mut site = site.heal_every(HEAL_EVERY);
        if let Some(listen) = &self.listen {
            site = site.listen(listen);
        }
        for home in &self.home {
            let (name, address) = home.split_once('=').ok_or("NAME=ADDRESS")?;
            site = site.home(name, address);
        }
        Ok(site)
    }
}
