//! Transactions over several homes (rule 10): all or nothing, under one stamp, and in an order
//! that all homes agree on. Those that only read fit into it (rule 5).

use crate::failure::{Checked, demand};
use crate::world::World;
use std::collections::{BTreeMap, BTreeSet};
use thorp_model::{CommitId, HomeId, ObjectId, Outcome, Position};

/// Looks at a village at rest: nothing is in doubt any more.
pub fn check(world: &World) -> Checked {
    for (id, asked) in &world.history.sent {
        let homes = asked.parts.iter().map(|part| part.home);
        let stamps: Vec<_> = homes
            .map(|home| {
                world.oracles[&home]
                    .commits
                    .get(id)
                    .map(|(_, stamp)| *stamp)
            })
            .collect();
        demand!(
            stamps.windows(2).all(|pair| pair[0] == pair[1]),
            "atomicity",
            "{id:?} is in the logs of its homes under the stamps {stamps:?}"
        );
    }
    nothing_is_lost(world)?;
    serializable(world)?;
    readers(world)
}

/// What a program was told to be committed before it had a place has one in the end, unless its
/// home has forgotten the member.
fn nothing_is_lost(world: &World) -> Checked {
    for (id, outcome) in &world.history.told {
        let (Outcome::Committed { .. }, Some(asked)) = (outcome, world.history.sent.get(id)) else {
            continue;
        };
        for part in asked.parts.iter().filter(|_| asked.parts.len() > 1) {
            demand!(
                world.oracles[&part.home].commits.contains_key(id),
                "nothing is lost",
                "{id:?} was told to be committed; home {} does not have it",
                part.home
            );
        }
    }
    Ok(())
}

/// Whoever only read stands in the one order of stamps: what it saw was there by then, and became
/// something else after that only.
fn readers(world: &World) -> Checked {
    for reader in &world.history.readers {
        for (home, object, evidence) in &reader.seen {
            let (since, next) = world.oracles[home].stamps_around(*object, *evidence);
            let stands = since.is_none_or(|since| since <= reader.stamp)
                && next.is_none_or(|next| reader.stamp < next);
            demand!(
                stands,
                "snapshot",
                "a transaction that stands at {:?} saw {object} of home {home} as of {evidence}: it was so \
                 since {since:?}, until {next:?}",
                reader.stamp
            );
        }
    }
    Ok(())
}

/// Serializability over all homes: who depends on whom, by any home's order, has no circle.
fn serializable(world: &World) -> Checked {
    let after = followers(world);
    stamps_rise(world, &after)?;
    let mut done = BTreeSet::new();
    for first in after.keys() {
        let mut path = vec![(*first, false)];
        let mut on_path = BTreeSet::new();
        while let Some((id, left)) = path.pop() {
            if left {
                on_path.remove(&id);
                done.insert(id);
                continue;
            }
            if done.contains(&id) {
                continue;
            }
            on_path.insert(id);
            path.push((id, true));
            for next in after.get(&id).into_iter().flatten() {
                demand!(
                    !on_path.contains(next),
                    "serializability",
                    "{id:?} comes before {next:?} at one home, and after it at another"
                );
                path.push((*next, false));
            }
        }
    }
    Ok(())
}

type Followers = BTreeMap<CommitId, BTreeSet<CommitId>>;

/// For each commit, those that come after it at a home and touch what it touched, at least one
/// of them writing.
fn followers(world: &World) -> Followers {
    let mut after = Followers::new();
    let homes = world.oracles.iter();
    for (home, oracle) in homes {
        let mut order: Vec<(Position, CommitId)> = oracle
            .commits
            .iter()
            .map(|(id, (position, _))| (*position, *id))
            .collect();
        order.sort();
        let mut objects: BTreeMap<ObjectId, Last> = BTreeMap::new();
        for (_, id) in order {
            for (object, writes) in touched(world, id, *home) {
                let last = objects.entry(object).or_default();
                last.follow(id, writes, &mut after);
            }
        }
    }
    after
}

/// What depends on another commit has the higher stamp: the order of all homes is that of stamps.
fn stamps_rise(world: &World, after: &Followers) -> Checked {
    let stamp = |id: &CommitId| {
        let mut commits = world
            .oracles
            .values()
            .filter_map(|oracle| oracle.commits.get(id));
        commits.next().map(|(_, stamp)| *stamp)
    };
    for (earlier, later) in after
        .iter()
        .flat_map(|(id, all)| all.iter().map(move |l| (id, l)))
    {
        demand!(
            stamp(earlier) < stamp(later),
            "stamps",
            "{later:?} depends on {earlier:?}, and has the stamp {:?} after {:?}",
            stamp(later),
            stamp(earlier)
        );
    }
    Ok(())
}

/// Who has touched an object last.
#[derive(Default)]
struct Last {
    writer: Option<CommitId>,
    readers: Vec<CommitId>,
}

impl Last {
    fn follow(&mut self, id: CommitId, writes: bool, after: &mut Followers) {
        let before = self.writer.into_iter();
        let read = self.readers.iter().copied().filter(|_| writes);
        for earlier in before.chain(read).filter(|earlier| *earlier != id) {
            after.entry(earlier).or_default().insert(id);
        }
        if writes {
            self.writer = Some(id);
            self.readers.clear();
        } else {
            self.readers.push(id);
        }
    }
}

/// What a commit read at a home, then what it wrote there.
fn touched(world: &World, id: CommitId, home: HomeId) -> Vec<(ObjectId, bool)> {
    let Some(asked) = world.history.sent.get(&id) else {
        return Vec::new();
    };
    let mut objects = Vec::new();
    for part in asked.parts.iter().filter(|part| part.home == home) {
        for (page, slots) in &part.reads {
            let slots = slots.iter();
            objects.extend(slots.map(|slot| (ObjectId { page: *page, slot }, false)));
        }
        for writes in &part.writes {
            let page = writes.page;
            let slots = writes.slots.iter().map(|(slot, _)| *slot);
            objects.extend(slots.map(|slot| (ObjectId { page, slot }, true)));
        }
    }
    objects
}
