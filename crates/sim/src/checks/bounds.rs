//! Rule 15: every table keeps within its limit.

use crate::failure::{Checked, Failure, demand};
use crate::node::Node;
use crate::time::NodeNo;
use crate::world::World;
use thorp_model::NodeKind;
use thorp_model::limits::{
    CALLS_PER_CHILD_MAX, CHILDREN_MAX, COMMITS_IN_FLIGHT_MAX, FETCHES_MAX, FETCHES_PER_CHILD_MAX,
    JOINT_KEPT_MAX, OVERTAKEN_MAX, REFETCHES_MAX, SEND_WINDOW_BYTES_MAX, STAGED_PER_MEMBER_MAX,
    SUCCESSORS_UNDER_WAY_MAX, UNASKED_MAX, WATCHES_PER_CHILD_MAX, WATCHES_PER_SITE_MAX,
};

/// Looks at the sizes of a node's tables.
pub fn check(world: &World, no: NodeNo) -> Checked {
    let node = &world.nodes[no.0];
    let Some(machine) = &node.machine else {
        return Ok(());
    };
    let children = world.edges.values().filter(|edge| edge.parent == no);
    // What a child asked for that has just gone may still be on its way.
    let children = children.count() + 2;
    let sizes = machine.sizes();
    for &(table, size) in &sizes {
        let limit = match table {
            "parked_bytes" => parked_bytes_limit(world, no, &sizes),
            _ => limit(world, no, table, children),
        };
        demand!(
            limit.is_none_or(|limit| size <= limit),
            "bounds",
            "{} has {size} in table {table}, more than {limit:?}",
            node.name
        );
    }
    Ok(())
}

fn limit(world: &World, no: NodeNo, table: &str, children: usize) -> Option<usize> {
    let node = &world.nodes[no.0];
    let homes = world.village.homes.len();
    match (node.kind, table) {
        (NodeKind::Home, _) => home_limit(world, node.plan, table, children),
        (NodeKind::Redirector, "kept_bytes") => Some(world.village.sites[node.plan].kept_bytes_max),
        (NodeKind::Redirector, "image_bytes") => Some(world.village.sites[node.plan].cache_bytes),
        (NodeKind::Redirector, "fetches" | "redirecting") => Some(homes * FETCHES_MAX),
        (NodeKind::Redirector, "refetches") => Some(homes * REFETCHES_MAX),
        (NodeKind::Redirector, "history") => {
            Some(homes * world.village.sites[node.plan].history_pages_max())
        }
        (NodeKind::Redirector, "ahead") => Some(homes * SUCCESSORS_UNDER_WAY_MAX),
        (NodeKind::Redirector, "unasked") => Some(homes * UNASKED_MAX),
        (NodeKind::Redirector, "sequels") => {
            Some(homes * world.village.sites[node.plan].successor_pages_max())
        }
        (NodeKind::Redirector, "waiting") => Some(homes * children * FETCHES_PER_CHILD_MAX),
        (NodeKind::Redirector, "commits") => commits_limit(world, no),
        (NodeKind::Redirector, "calls") => Some(children * CALLS_PER_CHILD_MAX),
        (NodeKind::Redirector | NodeKind::Member, "upward_bytes") => {
            Some(homes * 2 * SEND_WINDOW_BYTES_MAX)
        }
        (NodeKind::Redirector, "watches") => Some(homes * WATCHES_PER_SITE_MAX),
        (NodeKind::Member, "watches") => Some(homes * WATCHES_PER_CHILD_MAX),
        (NodeKind::Member | NodeKind::Redirector, "overtaken") => Some(homes * OVERTAKEN_MAX),
        (NodeKind::Member, "fetches") => Some(homes * FETCHES_MAX),
        (NodeKind::Member, "unstaging") => Some(homes * STAGED_PER_MEMBER_MAX),
        (NodeKind::Member, "commits") => Some(COMMITS_IN_FLIGHT_MAX),
        // The program's own calls, one to register and one for each outcome.
        (NodeKind::Member, "calls") => Some(CALLS_PER_CHILD_MAX),
        _ => None,
    }
}

/// Members have a limit each; what a site below passes on has none of its own here.
fn commits_limit(world: &World, no: NodeNo) -> Option<usize> {
    let children = world.edges.values().filter(|edge| edge.parent == no);
    let mut children = children.map(|edge| world.nodes[edge.child.0].kind);
    let members = children.clone().count();
    let only_members = children.all(|kind| kind == NodeKind::Member);
    // A transaction over several homes is a commit at each.
    let homes = world.village.homes.len();
    only_members.then_some(homes * members.max(1) * COMMITS_IN_FLIGHT_MAX)
}

fn home_limit(world: &World, plan: usize, table: &str, children: usize) -> Option<usize> {
    let plan = &world.village.homes[plan];
    match table {
        "children" => Some(CHILDREN_MAX),
        "changes" => Some(plan.changes_known_max),
        "joints" => Some(JOINT_KEPT_MAX),
        "registrations" => Some(plan.registrations_max),
        "parked" => Some(plan.parked_max),
        "commits_of_a_member" => Some(COMMITS_IN_FLIGHT_MAX),
        "calls_of_a_member" => Some(CALLS_PER_CHILD_MAX),
        "watches" => Some(children * WATCHES_PER_SITE_MAX),
        "waiting" => Some(children * FETCHES_PER_CHILD_MAX),
        _ => None,
    }
}

/// One commit alone may wait whatever its size.
fn parked_bytes_limit(world: &World, no: NodeNo, sizes: &[(&str, usize)]) -> Option<usize> {
    let node = &world.nodes[no.0];
    let parked = sizes.iter().find(|(table, _)| *table == "parked")?.1;
    (parked != 1).then(|| world.village.homes[node.plan].parked_bytes_max)
}

/// Log records that a node at rest may keep: a home those below the mark where installation begins, and
/// what waits until there is enough for a batch.
fn log_max(world: &World, node: &Node) -> usize {
    let plan = (node.kind == NodeKind::Home).then(|| &world.village.homes[node.plan]);
    plan.map_or(0, |plan| {
        plan.log_records_high() + plan.log_trim_max as usize
    })
}

/// A home that keeps more of its log than it may at rest, how much that is, and how much it may be.
pub fn long_log(world: &World) -> Option<(&Node, usize, usize)> {
    let nodes = world.nodes.iter();
    let mut logs = nodes.map(|node| (node, node.size("log"), log_max(world, node)));
    logs.find(|(_, size, most)| size > most)
}

/// Looks at a village at rest: nothing is under way any more.
pub fn check_rest(world: &World) -> Checked {
    if let Some((home, size, most)) = long_log(world) {
        let detail = format!(
            "{} keeps {size} log records at rest, more than {most}",
            home.name
        );
        return Err(Failure::new("bounds", detail));
    }
    for node in &world.nodes {
        let sizes = node.machine.as_ref().map(|m| m.sizes()).unwrap_or_default();
        for (table, size) in sizes {
            let under_way = matches!(
                table,
                "pending"
                    | "pending_bytes"
                    | "parked"
                    | "parked_bytes"
                    | "waiting"
                    | "fetches"
                    | "refetches"
                    | "ahead"
                    | "commits"
                    | "calls"
                    | "kept"
                    | "kept_bytes"
                    | "redirecting"
                    | "reported"
                    | "in_doubt"
                    | "in_doubt_bytes"
                    | "telling"
                    | "questions_passed"
                    | "upward_bytes"
            );
            demand!(
                !under_way || size == 0,
                "rest",
                "{} still has {size} in table {table}",
                node.name
            );
        }
    }
    Ok(())
}
