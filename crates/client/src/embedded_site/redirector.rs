//! The redirector of an embedded site: a state machine that wants the homes while it has children.

use crate::limits::EMBEDDED_SITE_REST_MS;
use std::collections::BTreeSet;
use std::convert::Infallible;
use thorp_model::{Direction, EdgeId, Event, Millis, Now, Outbox, StateMachine};
use thorp_protocol::{Redirector, RedirectorConfig};

/// A redirector, and the demand for its homes: they are dialed while a child is below, and let go some time after the
/// last one has gone.
pub(crate) struct EmbeddedRedirector {
    redirector: Redirector,
    config: RedirectorConfig,
    /// How many homes there are to reach.
    homes: usize,
    below: BTreeSet<EdgeId>,
    above: BTreeSet<EdgeId>,
    /// Since when it has no child, while homes are still above.
    idle: Option<Millis>,
    /// Has the homes dialed, once.
    want_homes: Box<dyn Fn() + Send>,
}

impl EmbeddedRedirector {
    pub(super) fn new(
        config: RedirectorConfig,
        homes: usize,
        want_homes: impl Fn() + Send + 'static,
    ) -> Self {
        EmbeddedRedirector {
            redirector: Redirector::new(config.clone()),
            config,
            homes,
            below: BTreeSet::new(),
            above: BTreeSet::new(),
            idle: None,
            want_homes: Box::new(want_homes),
        }
    }

    fn observe(&mut self, event: &Event<Infallible>) {
        match event {
            Event::Connected {
                edge, direction, ..
            } => {
                match direction {
                    Direction::Up => self.above.insert(*edge),
                    Direction::Down => self.below.insert(*edge),
                };
            }
            Event::Disconnected { edge } => {
                self.above.remove(edge);
                self.below.remove(edge);
            }
            _ => {}
        }
    }

    /// While it has children, the homes are wanted. When it has had none for a while, they are let go.
    fn follow_demand(&mut self, now: Millis, outbox: &mut Outbox<Infallible>) {
        if !self.below.is_empty() {
            self.idle = None;
            if self.above.len() < self.homes {
                (self.want_homes)();
            }
            return;
        }
        if self.above.is_empty() {
            self.idle = None;
            return;
        }
        let since = *self.idle.get_or_insert(now);
        if now.since(since) >= EMBEDDED_SITE_REST_MS {
            for edge in &self.above {
                outbox.close(*edge, "nobody is below");
            }
        }
    }

    fn is_alone(&self) -> bool {
        self.below.is_empty() && self.above.is_empty()
    }
}

impl StateMachine for EmbeddedRedirector {
    type Command = Infallible;
    type Action = Infallible;

    fn handle(&mut self, now: Now, event: Event<Infallible>, outbox: &mut Outbox<Infallible>) {
        let comes_or_goes = matches!(
            event,
            Event::Connected { .. } | Event::Disconnected { .. } | Event::Tick
        );
        self.observe(&event);
        let was_last = matches!(event, Event::Disconnected { .. }) && self.is_alone();
        self.redirector.handle(now, event, outbox);
        if was_last {
            // The next child needs nothing of it, and its tables are swept only while it works.
            self.redirector = Redirector::new(self.config.clone());
        }
        if comes_or_goes {
            self.follow_demand(now.mono, outbox);
        }
    }

    fn deadline(&self) -> Option<Millis> {
        // No node waits for its heartbeats.
        self.redirector.deadline().filter(|_| !self.is_alone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use thorp_model::{Action, MemberId, NodeKind, Peer};

    const HOME: EdgeId = EdgeId(1);
    const CHILD: EdgeId = EdgeId(2);

    struct Scene {
        redirector: EmbeddedRedirector,
        wanted: Arc<AtomicUsize>,
        now: Millis,
    }

    fn scene() -> Scene {
        let wanted = Arc::<AtomicUsize>::default();
        let count = Arc::clone(&wanted);
        let config = RedirectorConfig::new(MemberId(1), "anna".to_owned());
        let want = move || {
            count.fetch_add(1, Ordering::SeqCst);
        };
        Scene {
            redirector: EmbeddedRedirector::new(config, 1, want),
            wanted,
            now: Now::MONO_FIRST,
        }
    }

    fn comes(edge: EdgeId, direction: Direction, kind: NodeKind) -> Event<Infallible> {
        let (node, name) = (MemberId(u128::from(edge.0)), String::new());
        Event::Connected {
            edge,
            direction,
            peer: Peer {
                kind,
                node,
                name,
                is_operator: false,
                is_carried: false,
            },
        }
    }

    impl Scene {
        /// Which edges it closes.
        fn handle(&mut self, event: Event<Infallible>) -> Vec<EdgeId> {
            let now = Now {
                mono: self.now,
                wall: self.now,
            };
            let mut outbox = Outbox::new();
            self.redirector.handle(now, event, &mut outbox);
            let closed = outbox
                .actions
                .into_iter()
                .filter_map(|action| match action {
                    Action::Close(edge, _) => Some(edge),
                    _ => None,
                });
            closed.collect()
        }

        fn wanted(&self) -> usize {
            self.wanted.swap(0, Ordering::SeqCst)
        }
    }

    #[test]
    fn homes_are_wanted_while_somebody_is_below() {
        let mut scene = scene();
        assert_eq!((scene.redirector.deadline(), scene.wanted()), (None, 0));
        scene.handle(comes(CHILD, Direction::Down, NodeKind::Member));
        assert_eq!(scene.wanted(), 1);
        // Out of reach, they are wanted again.
        assert!(scene.redirector.deadline().is_some());
        scene.handle(Event::Tick);
        assert_eq!(scene.wanted(), 1);
        scene.handle(comes(HOME, Direction::Up, NodeKind::Home));
        scene.handle(Event::Tick);
        assert_eq!(scene.wanted(), 0);
        scene.handle(Event::Disconnected { edge: HOME });
        assert_eq!(scene.wanted(), 1);
    }

    #[test]
    fn homes_are_let_go_when_nobody_has_been_below_for_a_while() {
        let mut scene = scene();
        scene.handle(comes(CHILD, Direction::Down, NodeKind::Member));
        scene.handle(comes(HOME, Direction::Up, NodeKind::Home));
        scene.handle(Event::Disconnected { edge: CHILD });
        scene.now = scene.now.plus(EMBEDDED_SITE_REST_MS - 1);
        assert_eq!(scene.handle(Event::Tick), []);
        // One that comes back in time finds everything as it was.
        scene.handle(comes(CHILD, Direction::Down, NodeKind::Member));
        scene.handle(Event::Disconnected { edge: CHILD });
        scene.now = scene.now.plus(EMBEDDED_SITE_REST_MS - 1);
        assert_eq!(scene.handle(Event::Tick), []);
        scene.now = scene.now.plus(1);
        assert_eq!(scene.handle(Event::Tick), [HOME]);
        scene.handle(Event::Disconnected { edge: HOME });
        assert_eq!((scene.redirector.deadline(), scene.wanted()), (None, 1));
    }
}
