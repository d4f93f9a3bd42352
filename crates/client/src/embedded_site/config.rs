//! The addresses that a member of a site without a server gets.

use crate::JoinError;
use crate::addresses::check_addresses;
use crate::limits::NEIGHBOURS_MAX;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;
use thorp_net::driver::{PARENTS_MAX, ParentConfig};
use thorp_net::{Address, Identity};

/// A site that has no server of its own. One of its members carries the redirector; when that one is gone, the next one
/// does (rule 13).
///
/// All members get the same list of neighbours in the same order, which is their rank. Each member joins at the first
/// one that answers, or at its own redirector.
///
/// ```
/// use thorp_client::{JoinConfig, Member, SiteOfMembers};
/// # let village = thorp_testing::Village::new();
/// # let home = village.home("alps");
/// # let [one, two, three] = ["anna", "bert", "carl"].map(|name| String::from(&village.socket(name)));
/// # let identity = village.member("bert");
///
/// // Three addresses such as "10.0.0.1:7410". This member has the second one.
/// let site = SiteOfMembers::new(&two)
///     .neighbours([&one, &two, &three])
///     .home("alps", home.address());
/// let member = Member::join(JoinConfig::among(site).identity(identity))?;
/// assert!(member.site().is_own, "no neighbour was there, so it carries the redirector");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct SiteOfMembers {
    own: String,
    listen: Option<String>,
    neighbours: Vec<String>,
    homes: Vec<(String, Vec<String>)>,
    pub(crate) identity: Option<PathBuf>,
    pub(crate) ready_identity: Option<Identity>,
    pub(super) heal_every: Duration,
}

/// A checked [`SiteOfMembers`].
pub(super) struct Plan {
    /// Where this member's redirector listens.
    pub(super) listen: Address,
    /// Those whose rank is above this member's, in their order.
    pub(super) before: Vec<Address>,
    pub(super) homes: Vec<ParentConfig>,
}

impl SiteOfMembers {
    /// The address at which this member's neighbours find it; there it listens, too.
    pub fn new(own: impl Into<String>) -> Self {
        SiteOfMembers {
            own: own.into(),
            listen: None,
            neighbours: Vec::new(),
            homes: Vec::new(),
            identity: None,
            ready_identity: None,
            heal_every: HEAL_EVERY,
        }
    }

    /// Listens at another address than the one at which neighbours find it: `0.0.0.0:7410`, for one.
    pub fn listen(mut self, address: impl Into<String>) -> Self {
        self.listen = Some(address.into());
        self
    }

    /// All members of the site, this one too, in the order of their rank: the same list for all. The first should be
    /// the one that is there most of the time.
    pub fn neighbours<A: Into<String>>(mut self, addresses: impl IntoIterator<Item = A>) -> Self {
        self.neighbours = addresses.into_iter().map(Into::into).collect();
        self
    }

    /// A home, by the name in its certificate and its address. The same name again adds an address.
    pub fn home(mut self, name: impl Into<String>, address: impl Into<String>) -> Self {
        let (name, address) = (name.into(), address.into());
        match self.homes.iter_mut().find(|(of, _)| *of == name) {
            Some((_, addresses)) => addresses.push(address),
            None => self.homes.push((name, vec![address])),
        }
        self
    }

    /// The directory of the redirector's certificate and key: of role site, under the member's own name. The default is
    /// `site` in the directory of [`JoinConfig::identity`](crate::JoinConfig::identity); `thorp invite NAME --with-site`
    /// makes both.
    pub fn identity(mut self, dir: impl AsRef<Path>) -> Self {
        self.identity = Some(dir.as_ref().to_owned());
        self
    }

    /// A redirector's identity that is loaded already; see [`SiteOfMembers::identity`].
    pub fn identity_of(mut self, identity: Identity) -> Self {
        self.ready_identity = Some(identity);
        self
    }

    /// How often a member tries whether a neighbour of higher rank answers again. The default is [`HEAL_EVERY`], the
    /// least ten milliseconds.
    pub fn heal_every(mut self, every: Duration) -> Self {
        self.heal_every = every;
        self
    }

    pub(super) fn plan(&self) -> Result<Plan, JoinError> {
        let own = parse(&self.own)?;
        let listen = self.listen.as_deref().map(parse).transpose()?;
        let neighbours = parse_all(&self.neighbours)?;
        let homes = self.homes.iter().map(|(name, addresses)| {
            check_addresses(addresses).map_err(JoinError::Address)?;
            let home = ParentConfig::new(parse_all(addresses)?);
            Ok(home.named(name).on_demand())
        });
        let homes: Vec<ParentConfig> = homes.collect::<Result<_, JoinError>>()?;
        check(&own, &neighbours, &homes).map_err(JoinError::Address)?;
        if self.heal_every < HEAL_EVERY_MIN {
            return Err(JoinError::Limit(format!(
                "SiteOfMembers::heal_every: {:?} is too often, {HEAL_EVERY_MIN:?} is the least",
                self.heal_every
            )));
        }
        let before = neighbours.into_iter().take_while(|one| *one != own);
        Ok(Plan {
            before: before.collect(),
            listen: listen.unwrap_or(own),
            homes,
        })
    }
}

fn check(own: &Address, neighbours: &[Address], homes: &[ParentConfig]) -> Result<(), String> {
    if homes.is_empty() {
        return Err(
            "a member that may carry its site's redirector has to know the homes: name one with \
             SiteOfMembers::home"
                .to_owned(),
        );
    }
    if homes.len() > PARENTS_MAX {
        return Err(format!(
            "{} homes are too many for one site: {PARENTS_MAX} are the most",
            homes.len()
        ));
    }
    if neighbours.len() > NEIGHBOURS_MAX {
        return Err(format!(
            "{} neighbours are too many: {NEIGHBOURS_MAX} may carry the redirector, others join these by \
             JoinConfig::new and or_at",
            neighbours.len()
        ));
    }
    if !neighbours.contains(own) {
        return Err(format!(
            "the list of neighbours has to name this member, too, as the others know it ({own}): its place is its rank"
        ));
    }
    let mut seen = BTreeSet::new();
    if let Some(twice) = neighbours.iter().find(|address| !seen.insert(*address)) {
        return Err(format!(
            "{twice} is twice in the list of neighbours: each has one rank"
        ));
    }
    let mut of_homes = homes.iter().flat_map(|home| &home.addresses);
    match of_homes.find(|address| seen.contains(address)) {
        Some(home) => Err(format!(
            "{home} is the address of a home and of a neighbour: neighbours are members of this site"
        )),
        None => Ok(()),
    }
}

fn parse(text: &str) -> Result<Address, JoinError> {
    text.parse()
        .map_err(|error: thorp_net::AddressError| JoinError::Address(error.to_string()))
}

fn parse_all(texts: &[String]) -> Result<Vec<Address>, JoinError> {
    texts.iter().map(|text| parse(text)).collect()
}

/// A member tries no more often than this whether a neighbour answers again.
const HEAL_EVERY_MIN: Duration = Duration::from_millis(10);

/// How often a member tries whether a neighbour of higher rank answers again. So a split heals ten seconds after the
/// network does. A neighbour that comes and goes makes the others resynchronise no more often than that.
pub const HEAL_EVERY: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    fn site() -> SiteOfMembers {
        SiteOfMembers::new("b:1").home("alps", "h:1")
    }

    fn complaint(site: &SiteOfMembers) -> String {
        match site.plan() {
            Ok(_) => panic!("nothing is wrong with {site:?}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn the_rank_is_the_place_in_the_list() {
        let plan = site().neighbours(["a:1", "b:1", "c:1"]).plan().unwrap();
        assert_eq!(plan.before, [parse("a:1").unwrap()]);
        assert_eq!(plan.listen, parse("tcp://b:1").unwrap());
        let plan = site().neighbours(["b:1", "a:1"]).listen("0.0.0.0:1").plan();
        let plan = plan.unwrap();
        assert_eq!(plan.before, []);
        assert_eq!(plan.listen, parse("0.0.0.0:1").unwrap());
    }

    #[test]
    fn a_home_may_have_several_addresses() {
        let plan = site().home("alps", "h:2").home("dale", "d:1");
        let plan = plan.neighbours(["b:1"]).plan().unwrap();
        let names = plan.homes.iter().map(|home| home.expect_name.as_deref());
        assert_eq!(names.collect::<Vec<_>>(), [Some("alps"), Some("dale")]);
        assert_eq!(plan.homes[0].addresses.len(), 2);
        assert!(plan.homes.iter().all(|home| home.on_demand));
    }

    #[test]
    fn a_wrong_list_is_told_with_what_to_do() {
        let many = (0..=NEIGHBOURS_MAX).map(|n| format!("a{n}:1"));
        let own = || site().neighbours(["b:1"]);
        let all_at_alps = many.clone().fold(own(), |site, at| site.home("alps", at));
        let homes = (0..=PARENTS_MAX).map(|n| format!("home{n}"));
        let homes = homes.fold(own(), |site, name| site.home(name, "h:1"));
        for (site, words) in [
            (
                SiteOfMembers::new("b:1").neighbours(["b:1"]),
                "SiteOfMembers::home",
            ),
            (site().neighbours(["a:1"]), "name this member, too"),
            (site().neighbours(["a:1", "b:1", "tcp://a:1"]), "twice"),
            (site().neighbours(["b:1", "h:1"]), "address of a home"),
            (site().neighbours(many), "too many"),
            (all_at_alps, "addresses of one site or home"),
            (homes, "homes are too many"),
            (site().neighbours(["b"]), "port is missing"),
            (SiteOfMembers::new("b"), "port is missing"),
        ] {
            let complaint = complaint(&site);
            assert!(complaint.contains(words), "{complaint}");
        }
    }
}
