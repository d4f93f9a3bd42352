//! A site without a server of its own: whoever comes first in the list of neighbours, and is there, carries its redirector.

use thorp_client::{JoinConfig, Member, SiteOfMembers};

/// What a neighbour is told.
#[derive(Debug)]
pub struct Arguments {
    /// Its name, for people.
    pub name: String,
    /// Where its neighbours find it.
    pub own: String,
    /// All neighbours, in the order of their rank: the same list for all.
    pub neighbours: Vec<String>,
    /// The homes: name and address.
    pub homes: Vec<(String, String)>,
    /// The directory of the identity.
    pub identity: String,
    /// The segment's name.
    pub segment: String,
}

impl Arguments {
    /// From the command line.
    pub fn parse() -> Result<Self, String> {
        let arguments: Vec<String> = std::env::args().collect();
        let [program, rest @ ..] = &arguments[..] else {
            return Err("a program has a name".to_owned());
        };
        let [name, own, neighbours, homes, identity, segment] = rest else {
            return Err(format!(
                "usage: {program} NAME OWN-ADDRESS NEIGHBOUR,NEIGHBOUR,.. HOME=ADDRESS,.. IDENTITY-DIR thorp://HOME/SEGMENT"
            ));
        };
        let home = |text: &str| {
            let parts = text.split_once('=').ok_or_else(|| {
                format!(
                    "{text:?} names no home: write its name and address, as in alps=10.0.0.9:7401"
                )
            });
            parts.map(|(name, address)| (name.to_owned(), address.to_owned()))
        };
        Ok(Arguments {
            name: name.clone(),
            own: own.clone(),
            neighbours: neighbours.split(',').map(str::to_owned).collect(),
            homes: homes.split(',').map(home).collect::<Result<_, _>>()?,
            identity: identity.clone(),
            segment: segment.clone(),
        })
    }

    /// Joins; and carries the site, if no neighbour before it does.
    pub fn join(&self) -> Result<Member, thorp_client::JoinError> {
        let site = SiteOfMembers::new(self.own.as_str()).neighbours(&self.neighbours);
        let homes = self.homes.iter();
        let site = homes.fold(site, |site, (name, address)| {
            site.home(name.as_str(), address.as_str())
        });
        let config = JoinConfig::among(site).identity(&self.identity);
        Member::join(config.name(self.name.as_str()))
    }
}

/// Who carries the site, in words.
pub fn site(member: &Member) -> String {
    let site = member.site();
    let name = site.name.unwrap_or_else(|| "nobody".to_owned());
    match site.is_own {
        true => format!("{name} (this one), {} here", site.carried),
        false => name,
    }
}
