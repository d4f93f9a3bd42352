//! What a member of a multi-user run does: traversals, one after the other, some of them writing.

use std::time::{Duration, Instant};

use thorp_client::{Result, Stats};

use super::draws::Draws;
use super::{Done, Module, Scope, Traversal, traverse_changing_one, traverse_scope};
use crate::objects::Store;

/// A sequence of T1 and T2b, at random, that follows from its seed.
#[derive(Clone, Debug)]
pub struct Mix {
    writing_percent: u32,
    shared_percent: u32,
    changes_one: bool,
    random: Draws,
}

/// One transaction of a [`Mix`] that was committed.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    /// Which traversal.
    pub traversal: Traversal,
    /// Of which composites.
    pub scope: Scope,
    /// The id of the only composite whose parts it changed, if it was asked to change no more ([`Mix::changing_one`]).
    pub changed: Option<u32>,
    /// What it did, in the attempt that was committed.
    pub done: Done,
    /// How often it was run: more than once if it conflicted.
    pub attempts: u32,
    /// How long it took, all attempts together.
    pub total: Duration,
    /// What the member counted meanwhile: how it waited and for what, where pages came from, what travelled. Exact if
    /// the member runs one transaction at a time.
    pub stats: Stats,
}

impl Mix {
    /// With that chance in a hundred a transaction is a T2b, else a T1.
    #[must_use]
    pub fn new(writing_percent: u32, seed: u64) -> Self {
        Mix {
            writing_percent,
            shared_percent: 0,
            changes_one: false,
            random: Draws::new(seed),
        }
    }

    /// With that chance in a hundred a transaction goes to the composites of the shared module, which the member's own
    /// module [uses](super::build_sharing).
    #[must_use]
    pub fn sharing(mut self, percent: u32) -> Self {
        self.shared_percent = percent;
        self
    }

    /// What writes changes the parts of a single composite of the member's own module, drawn anew each time, as
    /// BuddyCache's writers do (section 6.2); without it, those of all.
    #[must_use]
    pub fn changing_one(mut self) -> Self {
        self.changes_one = true;
        self
    }

    /// Runs the next transaction.
    ///
    /// # Errors
    /// Those of the store. The next call goes on with the next transaction.
    pub fn turn<S: Store>(&mut self, store: &S, module: &Module) -> Result<Turn> {
        let writes = self.random.chance(self.writing_percent);
        if writes && self.changes_one {
            let composite = 1 + self.random.below(module.config.composites);
            return Turn::run_changing_one(store, module, composite);
        }
        let traversal = if writes {
            Traversal::T2b
        } else {
            Traversal::T1
        };
        let scope = match self.shared_percent > 0 && self.random.chance(self.shared_percent) {
            true => Scope::Shared,
            false => Scope::Own,
        };
        Turn::run_in(store, module, traversal, scope)
    }
}

impl Turn {
    /// Runs one transaction of a chosen kind.
    ///
    /// # Errors
    /// Those of the store.
    pub fn run<S: Store>(store: &S, module: &Module, traversal: Traversal) -> Result<Self> {
        Self::run_in(store, module, traversal, Scope::Own)
    }

    /// As [`Turn::run`], of the composites of one scope.
    ///
    /// # Errors
    /// Those of the store.
    pub fn run_in<S: Store>(
        store: &S,
        module: &Module,
        traversal: Traversal,
        scope: Scope,
    ) -> Result<Self> {
        Self::of(store, traversal, scope, |objects| {
            traverse_scope(objects, module, traversal, scope)
        })
    }

    /// Runs one T2b that changes the parts of this composite and of no other.
    ///
    /// # Errors
    /// Those of the store; also if there is no such composite.
    pub fn run_changing_one<S: Store>(store: &S, module: &Module, composite: u32) -> Result<Self> {
        let turn = Self::of(store, Traversal::T2b, Scope::Own, |objects| {
            traverse_changing_one(objects, module, composite)
        })?;
        Ok(Turn {
            changed: Some(composite),
            ..turn
        })
    }

    /// Runs what is such a traversal.
    fn of<S: Store>(
        store: &S,
        traversal: Traversal,
        scope: Scope,
        walk: impl for<'a, 'b> Fn(&'b mut S::Objects<'a>) -> Result<Done>,
    ) -> Result<Self> {
        let mut attempts = 0;
        let before = store.stats();
        let begun = Instant::now();
        let done = store.transact(|objects| {
            attempts += 1;
            walk(objects)
        })?;
        Ok(Turn {
            traversal,
            scope,
            changed: None,
            done,
            attempts,
            total: begun.elapsed(),
            stats: store.stats().since(&before),
        })
    }

    /// Time spent on waiting for pages, from wherever.
    #[must_use]
    pub fn fetching(&self) -> Duration {
        let waits = &self.stats.waits;
        waits.home_fetch + waits.site_fetch + waits.peer_fetch
    }

    /// Time spent on waiting for the commit.
    #[must_use]
    pub fn committing(&self) -> Duration {
        self.stats.waits.commit
    }

    /// The rest: the program's own work, and pauses between attempts.
    #[must_use]
    pub fn computing(&self) -> Duration {
        self.total.saturating_sub(self.stats.waits.total())
    }
}
