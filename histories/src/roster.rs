//! Who the members are.

use crate::lists::HOMES;
use crate::place::Place;
use crate::village::SITE;
use std::time::Duration;

/// Members, by their number.
pub(crate) const PLACES: [Place; 9] = [
    Place::Site,
    Place::Site,
    Place::SiteOrNeighbours,
    Place::SiteOrNeighbours,
    Place::Neighbours,
    Place::Neighbours,
    Place::Neighbours,
    Place::Homes,
    Place::Homes,
];
/// The first among neighbours that have no site: whenever it is there, the others turn to it.
pub(crate) const CARRIER: usize = 4;
/// Of registers only these members are killed, and they write nothing: what a member had begun when it was killed has no place
/// in the order that registers need.
pub(crate) const READS_ONLY: [usize; 2] = [2, CARRIER];
/// The member whose first certificate is short, where certificates change.
pub(crate) const RENEWED: usize = 0;
/// How long that one is good.
pub(crate) const SHORT_LIFE: Duration = Duration::from_secs(60);
/// The member that is revoked then: it stands at both homes.
pub(crate) const REVOKED: usize = 8;
/// These have to give up pages all the time.
const SMALL_CACHES: [usize; 3] = [1, 5, 7];
const SMALL_CACHE_BYTES: usize = 6 * 8192;

/// How a member's process differs from others.
pub(crate) struct Role {
    pub(crate) place: Place,
    pub(crate) number: usize,
    pub(crate) sessions: u64,
    pub(crate) is_last: bool,
}

impl Role {
    /// How its process is told to join; `path` is where a file or socket of the village is.
    pub(crate) fn ways(&self, path: impl Fn(&str) -> String) -> Vec<String> {
        let link = |name: &str| format!("unix:{}", path(&format!("{name}.link")));
        let mut ways = vec![format!("--place={}", self.place.argument())];
        match self.place {
            Place::Site | Place::SiteOrNeighbours => {
                ways.push(format!("--via={}", link(&format!("members-{SITE}"))));
            }
            Place::Homes => {
                let homes = HOMES.map(|home| link(&format!("members-{home}")));
                ways.extend(homes.map(|home| format!("--via={home}")));
            }
            Place::Neighbours => {}
        }
        if self.place.has_neighbours() {
            let own = neighbour(self.number);
            let same = (0..PLACES.len()).filter(|number| PLACES[*number] == self.place);
            let same: Vec<usize> = same.collect();
            let rank = same.iter().position(|number| *number == self.number);
            ways.extend(rank.map(|rank| format!("--rank={rank}")));
            let all = same.iter().map(|number| link(&neighbour(*number)));
            ways.extend(all.map(|one| format!("--neighbour={one}")));
            let listen = path(&format!("{own}.sock"));
            ways.push(format!("--listen=unix:{listen}"));
            let homes = HOMES.map(|home| (home, link(&format!("{own}-{home}"))));
            ways.extend(homes.map(|(home, at)| format!("--home={home}={at}")));
        }
        if SMALL_CACHES.contains(&self.number) && !self.is_last {
            ways.push(format!("--cache={SMALL_CACHE_BYTES}"));
        }
        ways
    }
}

/// The name in a member's certificate, and in that of the redirector that it carries.
pub(crate) fn member(number: usize) -> String {
    format!("member-{number}")
}

/// Of the socket of a member's redirector, and of the link to it.
pub(crate) fn neighbour(number: usize) -> String {
    format!("neighbour-{number}")
}
