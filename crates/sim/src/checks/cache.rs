//! The page cache of a member is what its core has published, and that is what
//! the state machine itself holds.

use crate::failure::{Checked, demand};
use crate::time::{Local, NodeNo};
use crate::world::World;
use thorp_model::{Place, Principal, Publish};

/// Takes a publication into the cache, and looks at what became of it.
pub fn publish(world: &mut World, no: NodeNo, publish: &Publish) -> Checked {
    super::promises::published(world, no, publish)?;
    if let Some(oracle) = world.oracles.get(&publish.home) {
        let node = &world.nodes[no.0];
        let who = Principal {
            name: node.id.name(),
            is_operator: node.is_operator(),
        };
        super::rights::published(oracle, (&node.name, who), publish)?;
    }
    let now = world.now;
    let node = world.node(no);
    let mono = node.now(now).mono;
    let name = node.name.clone();
    let Some(resident) = &mut node.resident else {
        return Ok(());
    };
    let before = resident.cache.position(publish.home);
    demand!(
        publish.position >= before,
        "position",
        "{name} publishes position {} after {before}",
        publish.position
    );
    demand!(
        publish.heard <= mono,
        "position",
        "{name} has heard at {:?} what comes later than {mono:?}",
        publish.heard
    );
    resident.cache.publish(publish);
    super::chains::published(resident, publish);
    for (page, image) in &publish.images {
        let place = Place {
            home: publish.home,
            page: *page,
        };
        demand!(
            resident.cache.image(place) == *image,
            "cache",
            "{name} publishes page {page} as {image:?}, its cache holds {:?}",
            resident.cache.image(place)
        );
    }
    if resident.cache.excess() > 0 && !resident.squeezing {
        resident.squeezing = true;
        let at = now.plus_us(500);
        world.plan_local(no, at, Local::Squeeze);
    }
    super::watches::look(world, no, publish.home)
}

/// Holds the whole cache of a member against its core.
pub fn check(world: &World, no: NodeNo) -> Checked {
    let node = &world.nodes[no.0];
    let (Some(machine), Some(resident)) = (&node.machine, &node.resident) else {
        return Ok(());
    };
    let mut pages = 0;
    for home in world.oracles.keys().copied() {
        let images = machine.shown(home);
        pages += images.len();
        let position = machine.position(home).unwrap_or_default();
        let known = resident.cache.home_known(home);
        demand!(
            !known || resident.cache.position(home) == position,
            "cache",
            "{} stands at {position}, its cache at {}",
            node.name,
            resident.cache.position(home)
        );
        for (page, image) in images {
            let cached = resident.cache.image(Place { home, page });
            demand!(
                cached.as_ref() == Some(&image),
                "cache",
                "{} holds page {page} as {image:?}, its cache as {cached:?}",
                node.name
            );
        }
    }
    demand!(
        resident.cache.pages() == pages,
        "cache",
        "{} holds {pages} pages, its cache {}",
        node.name,
        resident.cache.pages()
    );
    Ok(())
}
