//! The application: what it reads, and how long it works on an unsafe request.

use super::proxy_process::Post;
use super::world::World;
use crate::cells::Who;
use crate::pages::{Answer, Page};
use std::sync::Arc;

/// What a page shows now.
pub(super) fn read(world: &World, page: Page) -> Arc<Answer> {
    let rows = page.rows(&world.plan.common);
    let values = rows.iter().map(|row| (*row, world.rows[*row]));
    Arc::new(Answer(values.collect()))
}

/// A request arrives from a proxy in one of its lives. It changes the rows some time within the longest life of a request, and is answered
/// some time.
pub(super) fn post(world: &mut World, (number, life): (usize, u64), update: u64, post: Post) {
    let end_us = world.plan.life_ms * 1_000 - 2_000;
    let is_odd = world.fails(world.plan.odd_percent);
    let commits_us = match is_odd || world.fails(world.plan.slow_percent) {
        true => world.range(1_000, end_us),
        false => world.range(100, 4_000),
    };
    let (status, answers_us) = match is_odd {
        // A gateway's answer, or none: before the change, or after it.
        true => {
            let odd = [None, Some(202), Some(408), Some(502), Some(504), Some(520)];
            let status = odd[world.index(odd.len())];
            (status, world.range(50, end_us))
        }
        false => (Some(200), commits_us + world.range(0, 2_000)),
    };
    let Post { rows, value, .. } = post;
    world.after(commits_us, Who::Nobody, move |world| {
        world.note("changes", &[value]);
        for row in rows {
            let known = &mut world.rows[row];
            *known = value.max(*known);
        }
    });
    world.after(answers_us, Who::Proxy(number), move |world| {
        (world.hooks.answered)(world, (number, life), update, status);
    });
}
