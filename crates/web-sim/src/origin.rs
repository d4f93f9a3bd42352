//! The application: what it reads from its database, and when.

use crate::pages::{Answer, Page};
use crate::plan::Without;
use crate::world::World;
use std::rc::Rc;
use std::sync::Arc;

/// How long a cache of the application's own holds an answer, where there is one.
const OLD_MS_MAX: u64 = 300;

/// What a page shows now.
pub(crate) fn read(world: &Rc<World>, page: Page) -> Arc<Answer> {
    let now = world.now();
    let is_fresh = world.plan.without != Some(Without::FreshOrigin);
    let old = world.old.borrow().get(&page).cloned();
    if let Some((at, answer)) = old.filter(|(at, _)| !is_fresh && now.ms() - at.ms() < OLD_MS_MAX) {
        world.note("an old answer", &[at.0]);
        return answer;
    }
    let rows = page.rows(&world.plan);
    let database = world.database.borrow();
    let values = rows.iter().map(|row| (*row, database.read(*row)));
    let answer = Arc::new(Answer(values.collect()));
    if !is_fresh {
        world
            .old
            .borrow_mut()
            .insert(page, (now, Arc::clone(&answer)));
    }
    answer
}
