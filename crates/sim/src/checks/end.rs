//! A last look at a village at rest: nothing is lost, nothing leaks, and
//! whoever comes new sees the truth.

use super::{bounds, cache, directory, joint, rights, validity};
use crate::failure::{Checked, demand};
use crate::time::NodeNo;
use crate::world::World;
use std::collections::{BTreeMap, BTreeSet};
use thorp_model::limits::{IN_DOUBT_RETRY_MS, UNSETTLED_MS};
use thorp_model::{
    Content, EdgeId, FetchRefusal, HomeId, NodeKind, ObjectId, Outcome, PageId, Place, Position,
    RequestId, Slot,
};
use thorp_protocol::{Member, MemberCommand, Request, Response};

/// Whoever has gone is struck from a few pages of a directory with each thing that its node hears; the last one to go may have
/// held all pages there are, at a site that hears little (seed 34783).
const SWEPT_MS: u64 = 60_000;

/// Looks at everything.
pub fn check(world: &mut World) -> Checked {
    nothing_is_lost(world)?;
    joint::check(world)?;
    bounds::check_rest(world)?;
    removed_pages_go(world)?;
    votes_are_forgotten(world)?;
    for no in (0..world.nodes.len()).map(NodeNo) {
        validity::check(world, no)?;
        cache::check(world, no)?;
    }
    let edges: Vec<EdgeId> = world.edges.keys().copied().collect();
    edges
        .iter()
        .try_for_each(|edge| directory::check_edge(world, *edge))?;
    nothing_leaks(world)?;
    a_visitor_sees_the_truth(world)
}

/// Pages of removed segments leave the disk, a few at a time.
fn removed_pages_go(world: &mut World) -> Checked {
    let page = left_after(world, 30_000, removed_pages)?;
    demand!(
        page.is_none(),
        "leak",
        "page {page:?} is still stored, and its segment was removed"
    );
    Ok(())
}

/// What is still there when it had so long to go.
fn left_after<T>(world: &mut World, ms: u64, find: fn(&World) -> Option<T>) -> Checked<Option<T>> {
    for _ in 0..ms / 1_000 {
        if find(world).is_none() {
            break;
        }
        world.run_for(1_000)?;
    }
    Ok(find(world))
}

fn removed_pages(world: &World) -> Option<PageId> {
    world.nodes.iter().find_map(|node| {
        let (home, disk) = node.home.as_ref()?;
        let oracle = world.oracles.get(home)?;
        disk.pages().find(|page| oracle.is_removed(page.segment))
    })
}

/// What every home knows to have ended is kept by none: at the latest when it was asked for.
fn votes_are_forgotten(world: &mut World) -> Checked {
    let voting = left_after(world, UNSETTLED_MS + 10 * IN_DOUBT_RETRY_MS, voting)?;
    demand!(
        voting.is_none(),
        "leak",
        "votes are kept for ever: {voting:?}"
    );
    Ok(())
}

fn voting(world: &World) -> Option<(String, usize)> {
    world.nodes.iter().find_map(|node| {
        let sizes = node.machine.as_ref()?.sizes();
        // What is asked about is not forgotten, and the answer to that may just be on its way.
        let kept = sizes
            .iter()
            .filter(|(table, _)| ["votes", "asking"].contains(table));
        let kept = kept.map(|(_, size)| size).sum();
        (kept > 0).then(|| (node.name.clone(), kept))
    })
}

fn nothing_is_lost(world: &World) -> Checked {
    for (id, outcome) in &world.history.told {
        let Some(asked) = world.history.sent.get(id) else {
            continue;
        };
        let alone = asked.parts.len() == 1;
        for part in &asked.parts {
            let Some(oracle) = world.oracles.get(&part.home) else {
                continue;
            };
            let at = oracle.commits.get(id).map(|(position, _)| *position);
            let right = match outcome {
                Outcome::Committed { .. } if alone && part.writes.is_empty() => true,
                Outcome::Committed { position, .. } => {
                    at.is_some_and(|at| !alone || at == *position)
                }
                Outcome::Refused(_) => at.is_none(),
            };
            demand!(
                right,
                "nothing is lost",
                "{id:?} ended as {outcome:?}; in the log of home {} it is at {at:?}",
                part.home
            );
        }
    }
    Ok(())
}

/// When every member has given up every page, no directory names any but what
/// redirectors keep themselves.
fn nothing_leaks(world: &mut World) -> Checked {
    for no in (0..world.nodes.len()).map(NodeNo) {
        if world.nodes[no.0].kind == NodeKind::Member {
            let places = world.held_places(no);
            world.command::<Member>(no, MemberCommand::Evict(places))?;
        }
    }
    world.run_for(5_000 + 2 * world.round_trip_ms())?;
    let leak = left_after(world, SWEPT_MS, leak)?;
    demand!(leak.is_none(), "leak", "{}", leak.unwrap_or_default());
    Ok(())
}

/// Somebody who is entered for a page that nobody holds there.
fn leak(world: &World) -> Option<String> {
    let pages: Vec<(HomeId, PageId)> = world
        .oracles
        .iter()
        .flat_map(|(home, oracle)| oracle.pages().map(|page| (*home, page)))
        .collect();
    world.edges.iter().find_map(|(id, edge)| {
        let parent = &world.nodes[edge.parent.0];
        let machine = parent.machine.as_ref()?;
        let (_, page) = pages.iter().find(|(home, page)| {
            machine.holds(*home, *id, *page) && !is_held_below(world, edge.child, *home, *page)
        })?;
        Some(format!(
            "{} has {} entered for page {page}, which nobody there holds",
            parent.name, world.nodes[edge.child.0].name
        ))
    })
}

fn is_held_below(world: &World, no: NodeNo, home: HomeId, page: PageId) -> bool {
    let node = &world.nodes[no.0];
    let Some(machine) = &node.machine else {
        return false;
    };
    let own = machine.images(home).iter().any(|(held, _)| *held == page);
    let mut below = world.edges.values().filter(|edge| edge.parent == no);
    own || below.any(|edge| is_held_below(world, edge.child, home, page))
}

/// A new member reads every page and finds the truth.
fn a_visitor_sees_the_truth(world: &mut World) -> Checked {
    let parents = world
        .nodes
        .iter()
        .filter(|n| n.kind != NodeKind::Member && n.is_up());
    let parents: Vec<NodeNo> = parents.map(|node| node.no).collect();
    let Some(parent) = world.fault_prng.pick(&parents).copied() else {
        return Ok(());
    };
    let no = world.add_node(NodeKind::Member, usize::MAX, vec![parent], None);
    world.start(no)?;
    world.run_for(2_000 + 2 * world.round_trip_ms())?;
    // At a home there is that home, at a site all of them are.
    let only = world.nodes[parent.0].home.as_ref().map(|(home, _)| *home);
    let is_there = |home: &&HomeId| only.is_none_or(|only| only == **home);
    let mut places = BTreeSet::new();
    for home in world.oracles.keys().filter(is_there) {
        let oracle = &world.oracles[home];
        for page in oracle.pages().filter(|page| oracle.is_live(*page)) {
            places.insert(Place { home: *home, page });
        }
    }
    let (places, hidden): (BTreeSet<Place>, BTreeSet<Place>) = places
        .into_iter()
        .partition(|place| is_carried(world, parent, *place));
    let before = ends(world);
    // An edge that wears out meanwhile drops what came down it: it is asked for again, once.
    let wears_out = world.village.edges_wear_out();
    for _ in 0..1 + u32::from(wears_out) {
        for (place, number) in places.iter().zip(1..) {
            world.ask(no, RequestId(number), Request::Fetch(*place))?;
        }
        world.run_for(8_000 + 2 * world.round_trip_ms())?;
    }
    let node = &world.nodes[no.0];
    let (Some(machine), Some(resident)) = (&node.machine, &node.resident) else {
        return Ok(());
    };
    // Its answers wait under tickets that no session holds.
    for (place, number) in places.iter().zip(1..) {
        let answer = resident.answers.get(&RequestId(number));
        let held = machine.images(place.home);
        let held = held.iter().find(|(page, _)| *page == place.page);
        // Homes write down what they deny meanwhile: such a page has holes where it changed.
        let oracle = &world.oracles[&place.home];
        let has_changed = |slot: Slot| {
            let object = ObjectId {
                page: place.page,
                slot,
            };
            oracle.object_at(object, oracle.end).0 > before[&place.home]
        };
        let is_right = |(slot, _, content)| content != Content::Hole || has_changed(slot);
        let complete = held.is_some_and(|(_, image)| image.iter().all(is_right));
        demand!(
            answer.is_none_or(|answer| matches!(answer, Response::Fetched(_))) && complete,
            "at the end",
            "a new member at {} does not get page {place:?}: {answer:?}",
            world.nodes[parent.0].name
        );
    }
    // Afterwards: homes write down what was denied, and their pages change.
    hidden_stays_hidden(world, (no, parent), &hidden)?;
    let Some(machine) = &world.nodes[no.0].machine else {
        return Ok(());
    };
    let end = |home: &HomeId| world.oracles.get(home).map(|oracle| oracle.end);
    for home in world.oracles.keys().filter(is_there) {
        demand!(
            machine.position(*home) == end(home),
            "at the end",
            "a new member stands at {:?}, the log ends at {:?}",
            machine.position(*home),
            end(home)
        );
    }
    validity::check(world, no)?;
    cache::check(world, no)
}

fn ends(world: &World) -> BTreeMap<HomeId, Position> {
    let oracles = world.oracles.iter();
    oracles.map(|(home, oracle)| (*home, oracle.end)).collect()
}

/// A new member, who may read everything, asks for pages that a site on the way may not carry.
fn hidden_stays_hidden(
    world: &mut World,
    (no, parent): (NodeNo, NodeNo),
    hidden: &BTreeSet<Place>,
) -> Checked {
    if hidden.is_empty() {
        return Ok(());
    }
    for (place, number) in hidden.iter().zip(HIDDEN_FIRST..) {
        world.ask(no, RequestId(number), Request::Fetch(*place))?;
    }
    world.run_for(8_000 + 2 * world.round_trip_ms())?;
    let node = &world.nodes[no.0];
    let (Some(machine), Some(resident)) = (&node.machine, &node.resident) else {
        return Ok(());
    };
    for (place, number) in hidden.iter().zip(HIDDEN_FIRST..) {
        let answer = resident.answers.get(&RequestId(number));
        let refused = Response::NotFetched(FetchRefusal::NotCarried);
        let held = machine.images(place.home);
        demand!(
            answer.is_none_or(|answer| *answer == refused)
                && held.iter().all(|(page, _)| *page != place.page),
            "at the end",
            "a new member at {} gets page {place:?}, which a site on the way may not carry: {answer:?}",
            world.nodes[parent.0].name
        );
    }
    Ok(())
}

/// The number of the first request for such a page: there are fewer others.
const HIDDEN_FIRST: u64 = 1 << 32;

/// Whether each site from a parent up to the home may carry a page (rule R4).
fn is_carried(world: &World, parent: NodeNo, place: Place) -> bool {
    let Some(oracle) = world.oracles.get(&place.home) else {
        return true;
    };
    let mut next = Some(parent);
    while let Some(site) = next.map(|no| &world.nodes[no.0]) {
        if site.kind != NodeKind::Redirector {
            return true;
        }
        if !rights::may_carry(oracle, site.site(), place.page.segment, oracle.end) {
            return false;
        }
        next = site.parents.first().copied();
    }
    true
}
