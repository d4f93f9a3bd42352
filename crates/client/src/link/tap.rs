//! The member's state machine with an ear at its door: what the client has to know besides (names of homes, where pages
//! came from, the ids of commits) is heard here, and the core need not tell it.

use super::{Link, Source};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use thorp_model::{
    Action, Down, EdgeId, Event, FetchResult, Message, Millis, NodeKind, Now, Outbox, Place,
    RequestId, StateMachine, message,
};
use thorp_protocol::{Member, MemberAction, MemberCommand, Request, Response};

type TapEvent = Event<MemberCommand>;
type TapOutbox = Outbox<MemberAction>;

pub(crate) struct Tap {
    core: Member,
    link: Arc<Link>,
    parents: HashMap<EdgeId, NodeKind>,
    /// Tickets that wait for pages. As many as the core lets wait.
    asked: HashMap<RequestId, Place>,
    /// Where the images that came last came from, of pages that are on their way. As many as the core lets be.
    came: HashMap<Place, Source>,
}

impl Tap {
    pub(crate) fn new(core: Member, link: Arc<Link>) -> Self {
        Tap {
            core,
            link,
            parents: HashMap::new(),
            asked: HashMap::new(),
            came: HashMap::new(),
        }
    }

    /// Commits that are decided and not known to be so everywhere.
    pub(super) fn untold(&self) -> usize {
        self.core.untold()
    }

    fn hear(&mut self, event: &TapEvent) {
        match event {
            Event::Connected { edge, peer, .. } => {
                self.parents.insert(*edge, peer.kind);
            }
            Event::Disconnected { edge } => {
                self.parents.remove(edge);
            }
            Event::Received {
                edge,
                message: Message::Down(message),
            } => self.hear_down(*edge, message),
            Event::Command(MemberCommand::Request { id, request }) => match request {
                Request::Fetch(place) => {
                    self.asked.insert(*id, *place);
                }
                Request::Forget(forgotten) => {
                    self.asked.remove(forgotten);
                }
                Request::Prefetch(_)
                | Request::Commit { .. }
                | Request::Call { .. }
                | Request::Watch { .. } => {}
            },
            _ => {}
        }
    }

    fn hear_down(&mut self, edge: EdgeId, message: &Down) {
        let parent = self.parents.get(&edge).copied();
        let parent = parent.unwrap_or(NodeKind::Redirector);
        match message {
            Down::Image(message::FetchResponse {
                home,
                page,
                result: FetchResult::Image(_),
                ..
            }) => {
                let (home, page) = (*home, *page);
                let source = match parent {
                    NodeKind::Home => Source::Home,
                    _ => Source::Site,
                };
                self.came(Place { home, page }, source);
            }
            Down::Peer(peer) if peer.image.is_some() => {
                let (home, page) = (peer.home, peer.page);
                // Straight at a home there are no neighbours: it answers beside its stream itself.
                let source = match parent {
                    NodeKind::Home => Source::Home,
                    _ => Source::Peer,
                };
                self.came(Place { home, page }, source);
            }
            _ => {}
        }
    }

    fn came(&mut self, place: Place, source: Source) {
        // What nobody asked for is not taken.
        if self.core.is_fetching(place) {
            self.came.insert(place, source);
        }
    }

    /// Hears what the core answers.
    fn hear_out(&mut self, actions: &[Action<MemberAction>]) {
        for action in actions {
            let Action::Role(MemberAction::Respond(ticket, answer)) = action else {
                continue;
            };
            // Before the page cache shows it.
            if let Response::Shown(id) = answer {
                self.link.waits.open(*id);
            }
            let Some(place) = self.asked.remove(ticket) else {
                continue;
            };
            if let (Response::Fetched(_), Some(source)) = (answer, self.came.get(&place)) {
                self.link.waits.came_from(*ticket, *source);
            }
        }
        // An image is taken by the input that brings it, or waits for its stream: then the page is still on its way.
        let (core, link) = (&self.core, &self.link);
        self.came.retain(|place, source| {
            let waits = core.is_fetching(*place);
            if !waits {
                link.counters.fetched(*source);
                link.arrived(*place);
            }
            waits
        });
    }

    fn handle_one(&mut self, now: Now, event: TapEvent, outbox: &mut TapOutbox) {
        self.hear(&event);
        let commit = match &event {
            Event::Command(MemberCommand::Request {
                id,
                request: Request::Commit { .. },
            }) => Some(*id),
            _ => None,
        };
        let may_move_streams = matches!(
            &event,
            Event::Disconnected { .. }
                | Event::Received {
                    message: Message::Down(Down::Begin(_) | Down::End(_)),
                    ..
                }
        );
        let before = outbox.actions.len();
        self.core.handle(now, event, outbox);
        if may_move_streams {
            // Not what the parent said: it may be one that is not listened to.
            self.link.homes.follow(self.core.streams());
        }
        if let Some(ticket) = commit
            && let Some(id) = self.core.commit_of(ticket)
        {
            self.link.waits.named(ticket, id);
        }
        self.hear_out(&outbox.actions[before..]);
    }
}

impl StateMachine for Tap {
    type Command = MemberCommand;
    type Action = MemberAction;

    fn handle(&mut self, now: Now, event: TapEvent, outbox: &mut TapOutbox) {
        if matches!(event, Event::Command(MemberCommand::Evict(_))) {
            // They go with this tray, before anybody looks again what is over the limit.
            self.link.is_evicting.store(false, Ordering::Relaxed);
        }
        self.handle_one(now, event, outbox);
    }

    fn deadline(&self) -> Option<Millis> {
        self.core.deadline()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thorp_model::limits::WAITING_PER_PAGE_MAX;
    use thorp_model::{Direction, Epoch, HomeId, MemberId, PageId, Peer, Position, Stamp};
    use thorp_protocol::MemberConfig;

    const HOME: HomeId = HomeId(7);

    fn tap() -> Tap {
        let config = MemberConfig::new(MemberId(1), "anna".to_owned());
        Tap::new(Member::new(config), Arc::new(Link::new(1 << 20, 0)))
    }

    fn connect(tap: &mut Tap, edge: u64) -> Vec<Action<MemberAction>> {
        let peer = Peer {
            kind: NodeKind::Redirector,
            node: MemberId(2),
            name: "valley".to_owned(),
        };
        handle(
            tap,
            Event::Connected {
                edge: EdgeId(edge),
                direction: Direction::Up,
                peer,
            },
        );
        let home = HOME;
        let begin = Down::Begin(message::Begin {
            home,
            name: "alps".to_owned(),
            epoch: Epoch(1),
            position: Position(1),
            watermark: Stamp::default(),
            silent_ms: 0,
        });
        receive(tap, edge, begin)
    }

    fn receive(tap: &mut Tap, edge: u64, message: Down) -> Vec<Action<MemberAction>> {
        let edge = EdgeId(edge);
        let message = Message::Down(message);
        handle(tap, Event::Received { edge, message })
    }

    fn handle(tap: &mut Tap, event: TapEvent) -> Vec<Action<MemberAction>> {
        let mut outbox = Outbox::new();
        tap.handle(thorp_net::driver::now(), event, &mut outbox);
        outbox.actions
    }

    fn ask(tap: &mut Tap, id: u64, request: Request) -> Vec<Action<MemberAction>> {
        let id = RequestId(id);
        handle(tap, Event::Command(MemberCommand::Request { id, request }))
    }

    fn waiting(tap: &Tap) -> usize {
        let sizes = tap.core.sizes().into_iter();
        sizes
            .filter(|(name, _)| *name == "waiting")
            .map(|(_, n)| n)
            .sum()
    }

    #[test]
    fn who_waits_for_a_page_is_bounded_and_asking_ahead_is_not_waiting() {
        let mut tap = tap();
        connect(&mut tap, 1);
        let place = Place {
            home: HOME,
            page: PageId::new(3, 1),
        };
        let sends = |effects: &[Action<MemberAction>]| {
            effects.iter().any(|e| matches!(e, Action::Send(..)))
        };
        assert!(sends(&ask(&mut tap, 0, Request::Prefetch(place))));
        for ticket in 1..1000 {
            assert_eq!(ask(&mut tap, ticket, Request::Prefetch(place)), []);
        }
        assert_eq!(waiting(&tap), 0);
        let max = WAITING_PER_PAGE_MAX as u64;
        for ticket in 0..max {
            assert!(!sends(&ask(&mut tap, ticket, Request::Fetch(place))));
        }
        let busy = Action::Role(MemberAction::Respond(RequestId(max), Response::Busy));
        assert_eq!(ask(&mut tap, max, Request::Fetch(place)), [busy]);
        assert_eq!(
            (waiting(&tap), tap.asked.len()),
            (max as usize, max as usize)
        );
    }

    #[test]
    fn a_second_parent_does_not_make_a_home_unreachable() {
        let mut tap = tap();
        connect(&mut tap, 1);
        connect(&mut tap, 2);
        assert!(tap.link.homes.is_live(HOME));
        receive(&mut tap, 2, Down::End(message::End { home: HOME }));
        assert!(tap.link.homes.is_live(HOME));
        connect(&mut tap, 3);
        handle(&mut tap, Event::Disconnected { edge: EdgeId(3) });
        assert!(tap.link.homes.is_live(HOME));
        handle(&mut tap, Event::Disconnected { edge: EdgeId(1) });
        assert!(!tap.link.homes.is_live(HOME));
    }
}
