//! Looks at a proxy and its keeper, and makes documents.

use super::address::Address;
use super::document::{
    AtAddress, Audited, DifferenceLine, DropLine, EntryLine, HomeLine, KeyLine, ProxyStatus,
    Reloads, SourceKind, Stored, Total, UpdateLine,
};
use super::moment;
use crate::clock;
use crate::journal::{Cause, Noted, Update};
use crate::proxy::{
    Answer, Counts, Difference, Door, Dropped, Found, Missed, Name, Proxy, Reason, Seen, Weight,
    Why,
};
use crate::recipe::{Recipe, Rests};
use crate::source::Source;
use crate::status::{Status, read_updates};
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use thorp_versions::{Denied, Place};

/// Answers of one address that are shown.
const AT_ADDRESS_MAX: usize = 64;

/// Other hosts that are named.
const OTHER_HOSTS_MAX: usize = 8;

/// A proxy that runs, as its operator sees it.
#[derive(Debug)]
pub struct Watched<V: Source> {
    door: Arc<Door<V>>,
    started_ms: u64,
    changing: Mutex<Changing>,
}

/// What a reload changes.
#[derive(Clone, Debug, Default)]
struct Changing {
    /// The file of the keeper's table. Beside it the keeper writes what it knows.
    table: Option<PathBuf>,
    reloads: Reloads,
}

impl<V: Source + Send + Sync + 'static> Watched<V> {
    /// A proxy, and the file of its keeper's table if it has one.
    pub fn new(door: Arc<Door<V>>, table: Option<PathBuf>) -> Self {
        let reloads = Reloads::default();
        Watched {
            door,
            started_ms: clock::now_ms(),
            changing: Mutex::new(Changing { table, reloads }),
        }
    }

    /// Its configuration was read again. The table is the new one's; or else why the old one stays in force.
    pub fn reloaded(&self, read: Result<Option<PathBuf>, String>) {
        let mut changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        match read {
            Ok(table) => {
                changing.table = table;
                changing.reloads.taken += 1;
                changing.reloads.error = None;
            }
            Err(error) => {
                changing.reloads.refused += 1;
                changing.reloads.error = Some(error);
            }
        }
    }

    fn changing(&self) -> Changing {
        let changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        changing.clone()
    }

    /// How it is doing.
    pub fn status(&self) -> ProxyStatus {
        let (proxy, changing) = (self.door.proxy(), self.changing());
        let keeper = changing.keeper();
        let noted = self.noted();
        let (count, bytes) = proxy.cache().size();
        let bytes_max = proxy.cache().budget();
        let tally = proxy.tally();
        let key = |(key, changes)| KeyLine { key, changes };
        let homes = proxy.cache().homes(clock::now_ms());
        let home = |(name, live)| HomeLine { name, live };
        ProxyStatus {
            process: std::process::id(),
            uptime_s: clock::now_ms().saturating_sub(self.started_ms) / 1_000,
            source: kind(&proxy, &changing),
            live: is_live(&proxy, keeper.as_ref()),
            has_routes: proxy.recipe().has_routes(),
            origins: proxy.origins(),
            entries: Total {
                count,
                bytes,
                bytes_max,
            },
            others: others(&proxy),
            hits: tally.hits(),
            joined: tally.joins(),
            missed: by_reason(&tally.missed),
            bypassed: by_reason(&tally.bypassed),
            refused: by_reason(&tally.refused),
            updated: by_reason(&tally.updated),
            dropped: proxy.cache().dropped_in_all(),
            audit: audited(proxy.audited()),
            reloads: changing.reloads,
            keeper,
            homes: homes.into_iter().map(home).collect(),
            key_changes: noted.all_keys,
            keys: noted.keys.into_iter().map(key).collect(),
        }
    }

    /// Whether it does all that it is there for.
    pub(super) fn is_well(&self) -> bool {
        let proxy = self.door.proxy();
        !proxy.recipe().has_routes() || is_live(&proxy, self.changing().keeper().as_ref())
    }

    /// The entries with the most hits, and the last ones that were dropped. Only those whose host and path contain this text.
    pub(super) fn entries(&self, find: &str, most: usize) -> (Vec<EntryLine>, Vec<DropLine>) {
        let (proxy, noted) = (self.door.proxy(), self.noted());
        let is_wanted = |name: &Name| {
            find.is_empty() || format!("{}{}", name.host(), name.path_and_query()).contains(find)
        };
        let of_source = |place, number| proxy.cache().cause(place, number);
        let named = Named::of(proxy.recipe(), &noted, &of_source);
        let seen = proxy.cache().seen(most, clock::now_ms(), is_wanted);
        let dropped = proxy.cache().dropped(is_wanted).into_iter().take(most);
        (
            seen.iter().map(|seen| named.entry(seen)).collect(),
            dropped.map(|dropped| named.dropped(dropped)).collect(),
        )
    }

    /// What is known of an address.
    pub fn at(&self, address: &Address) -> AtAddress {
        let (proxy, noted) = (self.door.proxy(), self.noted());
        let of_source = |place, number| proxy.cache().cause(place, number);
        let named = Named::of(proxy.recipe(), &noted, &of_source);
        let is_path = |name: &Name| name.path_and_query() == address.path_and_query;
        let is_host = |host: &str| address.host.as_ref().is_none_or(|wanted| wanted == host);
        let is_wanted = |name: &Name| is_path(name) && is_host(name.host());
        let now_ms = clock::now_ms();
        let cache = proxy.cache();
        let seen = cache.seen(AT_ADDRESS_MAX, now_ms, is_wanted);
        let elsewhere = |name: &Name| is_path(name) && !is_host(name.host());
        let mut other_hosts: Vec<String> = cache
            .seen(OTHER_HOSTS_MAX, now_ms, elsewhere)
            .iter()
            .map(|seen| seen.name.host().to_owned())
            .collect();
        other_hosts.sort_unstable();
        other_hosts.dedup();
        let dropped = cache.dropped(is_wanted).into_iter().take(AT_ADDRESS_MAX);
        let stored = address.host.as_ref().map(|host| {
            let name = Name::new(host, &address.path_and_query);
            proxy.plain().at(&name)
        });
        let stored = stored.into_iter().flatten();
        AtAddress {
            address: address.to_string(),
            has_route: proxy
                .recipe()
                .route(path_of(&address.path_and_query))
                .is_some(),
            entries: seen.iter().map(|seen| named.entry(seen)).collect(),
            dropped: dropped.map(|dropped| named.dropped(dropped)).collect(),
            others: stored
                .map(|(status, bytes)| Stored {
                    status: status.as_u16(),
                    bytes,
                })
                .collect(),
            other_hosts,
        }
    }

    /// What the keeper has noted lately.
    fn noted(&self) -> Noted {
        let table = self.changing().table;
        table
            .and_then(|table| read_updates(&table))
            .unwrap_or_default()
    }
}

impl Changing {
    /// What the keeper says of itself.
    fn keeper(&self) -> Option<Status> {
        Status::read(self.table.as_deref()?).ok()
    }
}

/// What says when the answers of routes change.
fn kind<V: Source + Send + Sync + 'static>(proxy: &Proxy<V>, changing: &Changing) -> SourceKind {
    let has_homes = !proxy.cache().homes(clock::now_ms()).is_empty();
    match (&changing.table, proxy.has_requests()) {
        (_, true) => SourceKind::Requests,
        (Some(_), false) => SourceKind::Postgres,
        (None, false) if has_homes => SourceKind::Homes,
        (None, false) => SourceKind::None,
    }
}

/// Whether there can be hits. A keeper of requests beats also while it waits for proxies of before, so it has to say itself that it is live.
fn is_live<V: Source + Send + Sync + 'static>(proxy: &Proxy<V>, keeper: Option<&Status>) -> bool {
    let waits = proxy.has_requests() && keeper.is_some_and(|keeper| !keeper.live);
    proxy.cache().is_live(clock::now_ms()) && !waits
}

fn others<V: Source + Send + Sync + 'static>(proxy: &Proxy<V>) -> Total {
    let (count, bytes, bytes_max) = proxy.plain().size();
    Total {
        count,
        bytes,
        bytes_max,
    }
}

fn audited(found: Found) -> Audited {
    let line = |difference: Difference| DifferenceLine {
        address: difference.address,
        at_unix_ms: moment::unix_ms(difference.at_ms),
        what: difference.what,
    };
    Audited {
        share: found.share.to_string(),
        same: found.same,
        different: found.different,
        changed: found.changed,
        failed: found.failed,
        skipped: found.skipped,
        differences: found.differences.into_iter().rev().map(line).collect(),
    }
}

fn by_reason<R: Reason>(counts: &Counts<R>) -> BTreeMap<String, u64> {
    let counts = counts.read().into_iter();
    counts
        .map(|(word, count)| (word.to_owned(), count))
        .collect()
}

fn path_of(path_and_query: &str) -> &str {
    path_and_query.split('?').next().unwrap_or(path_and_query)
}

/// Gives places and numbers of a table their names.
struct Named<'a> {
    recipe: &'a Recipe,
    noted: &'a Noted,
    noted_keys: HashMap<Place, &'a str>,
    /// The update that has left a number in the word of a place, if that says it.
    of_source: &'a dyn Fn(Place, u64) -> Option<Cause>,
}

impl<'a> Named<'a> {
    fn of(
        recipe: &'a Recipe,
        noted: &'a Noted,
        of_source: &'a dyn Fn(Place, u64) -> Option<Cause>,
    ) -> Self {
        Named {
            recipe,
            noted,
            noted_keys: noted.keys_by_place(),
            of_source,
        }
    }

    fn entry(&self, seen: &Seen<Name, Answer>) -> EntryLine {
        let keys = self.keys(&seen.name, &seen.answer);
        let place = match seen.denied {
            Some(Denied::Changed(place) | Denied::Open(place)) => Some(place),
            _ => None,
        };
        let key = place.map(|place| self.key(place, &keys, &seen.answer));
        let changed = place.zip(seen.changed);
        let update = changed.and_then(|(place, (generation, number))| {
            self.update((generation, place, number), key.as_deref())
        });
        let dependencies = seen.dependencies.iter();
        EntryLine {
            host: seen.name.host().to_owned(),
            path: seen.name.path_and_query().to_owned(),
            variant: seen.name.variant().trim_end().to_owned(),
            status: seen.answer.status.as_u16(),
            bytes: seen.bytes,
            hits: seen.hits,
            dependencies: dependencies
                .map(|place| self.key(*place, &keys, &seen.answer))
                .collect(),
            is_served: seen.denied.is_none(),
            reason: seen
                .denied
                .map(|denied| Missed::from(denied).word().to_owned()),
            key,
            update,
        }
    }

    fn dropped(&self, dropped: Dropped<Name>) -> DropLine {
        let (missed, changed) = match dropped.why {
            Why::Changed(generation, place, number) => {
                (Missed::Changed, Some((generation, place, number)))
            }
            Why::Generation => (Missed::Generation, None),
        };
        let keys = self.route_keys(&dropped.name);
        let key = changed.map(|(_, place, _)| match &dropped.key {
            Some(key) => key.clone(),
            None => self.key_among(place, &keys),
        });
        let update = changed.and_then(|changed| self.update(changed, key.as_deref()));
        DropLine {
            host: dropped.name.host().to_owned(),
            path: dropped.name.path_and_query().to_owned(),
            variant: dropped.name.variant().trim_end().to_owned(),
            at_unix_ms: moment::unix_ms(dropped.at_ms),
            hits: dropped.hits,
            reason: missed.word().to_owned(),
            key,
            update,
        }
    }

    /// The update that has left this number in the word of this place: in this generation of the table.
    fn update(&self, changed: (u64, Place, u64), key: Option<&str>) -> Option<UpdateLine> {
        let (generation, place, number) = changed;
        if let Some(update) = self.noted.of(generation, number) {
            return Some(line(update));
        }
        Some(UpdateLine {
            cause: (self.of_source)(place, number)?,
            at_unix_ms: None,
            keys: Some(key.into_iter().map(str::to_owned).collect()),
            more_keys: 0,
        })
    }

    /// The keys that the recipe names for an answer.
    fn keys(&self, name: &Name, answer: &Answer) -> Vec<String> {
        let path = path_of(name.path_and_query());
        let mut keys = self.route_keys(name);
        keys.extend(self.recipe.also(path, answer.status.as_u16(), &answer.body));
        keys
    }

    fn route_keys(&self, name: &Name) -> Vec<String> {
        match self.recipe.route(path_of(name.path_and_query())) {
            Some((_, Rests::On(keys))) => keys,
            Some((_, Rests::OnEverything)) | None => Vec::new(),
        }
    }

    /// The key at a place: one that the answer names, or one of these, or one that an update names.
    fn key(&self, place: Place, keys: &[String], answer: &Answer) -> String {
        match answer.key_at(place) {
            Some(key) => key.to_owned(),
            None => self.key_among(place, keys),
        }
    }

    /// The key at a place: one of these, or one that an update names.
    fn key_among(&self, place: Place, keys: &[String]) -> String {
        // Each table has these two.
        if place.in_table(0) == Place::EVERYTHING {
            return String::from("everything");
        }
        if place.in_table(0) == Place::UNKNOWN {
            return String::from("unknown");
        }
        let mut known = keys.iter().filter(|key| Place::of(key) == place);
        let known = known.next().map(String::as_str);
        let named = known.or_else(|| self.noted_keys.get(&place).copied());
        named.unwrap_or("a key without a name here").to_owned()
    }
}

fn line(update: &Update) -> UpdateLine {
    UpdateLine {
        cause: update.cause.clone(),
        at_unix_ms: Some(moment::unix_ms(update.at_ms)),
        keys: update.keys.clone(),
        more_keys: update.more_keys,
    }
}
