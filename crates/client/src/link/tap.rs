//! The member's state machine with an ear at its door: what the client has to know besides (names of homes, where pages
//! came from, the ids of commits) is heard here, and the core need not tell it.

use super::{Link, Source};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use thorp_core::door::{Answer, Ask, Core, Effect, Input, Out};
use thorp_core::ids::{EdgeId, Millis, NodeKind, Now, Place, Ticket};
use thorp_core::member::Member;
use thorp_core::message::{CallError, Down, FetchAnswer, Message, Request};

pub(crate) struct Tap {
    core: Member,
    link: Arc<Link>,
    parents: HashMap<EdgeId, NodeKind>,
    /// Tickets that wait for pages. As many as the core lets wait.
    asked: HashMap<Ticket, Place>,
    /// Where the images that came last came from, of pages that are on their way. As many as the core lets be.
    came: HashMap<Place, Source>,
    /// What is asked until it is answered, whoever waits: staged values are given up.
    giving_up: HashMap<Ticket, Ask>,
    /// Of these, what a busy home did not take: asked again with the next tick.
    again: Vec<(Ticket, Ask)>,
}

impl Tap {
    pub(crate) fn new(core: Member, link: Arc<Link>) -> Self {
        Tap {
            core,
            link,
            parents: HashMap::new(),
            asked: HashMap::new(),
            came: HashMap::new(),
            giving_up: HashMap::new(),
            again: Vec::new(),
        }
    }

    /// Commits that are decided and not known to be so everywhere.
    pub(super) fn untold(&self) -> usize {
        self.core.untold()
    }

    fn hear(&mut self, input: &Input) {
        match input {
            Input::Connected { edge, peer, .. } => {
                self.parents.insert(*edge, peer.kind);
            }
            Input::Disconnected { edge } => {
                self.parents.remove(edge);
            }
            Input::Received {
                edge,
                message: Message::Down(message),
            } => self.hear_down(*edge, message),
            Input::Asked { ticket, ask } => match ask {
                Ask::Fetch(place) => {
                    self.asked.insert(*ticket, *place);
                }
                Ask::Forget(forgotten) => {
                    self.asked.remove(forgotten);
                }
                Ask::Call {
                    request: Request::Unstage { .. },
                    ..
                } => {
                    self.giving_up.insert(*ticket, ask.clone());
                }
                Ask::Prefetch(_) | Ask::Commit { .. } | Ask::Call { .. } | Ask::Watch { .. } => {}
            },
            _ => {}
        }
    }

    fn hear_down(&mut self, edge: EdgeId, message: &Down) {
        let parent = self.parents.get(&edge).copied();
        let parent = parent.unwrap_or(NodeKind::Redirector);
        match message {
            Down::Image {
                home,
                page,
                answer: FetchAnswer::Image(_),
                ..
            } => {
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
    fn hear_out(&mut self, effects: &[Effect]) {
        for effect in effects {
            let Effect::Answer(ticket, answer) = effect else {
                continue;
            };
            // Before the page cache shows it.
            if let Answer::Shown(id) = answer {
                self.link.waits.open(*id);
            }
            if let Some(ask) = self.giving_up.remove(ticket)
                && is_busy(answer)
            {
                self.again.push((*ticket, ask));
            }
            let Some(place) = self.asked.remove(ticket) else {
                continue;
            };
            if let (Answer::Fetched, Some(source)) = (answer, self.came.get(&place)) {
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

    fn handle_one(&mut self, now: Now, input: Input, out: &mut Out) {
        self.hear(&input);
        let commit = match &input {
            Input::Asked {
                ticket,
                ask: Ask::Commit { .. },
            } => Some(*ticket),
            _ => None,
        };
        let may_move_streams = matches!(
            &input,
            Input::Disconnected { .. }
                | Input::Received {
                    message: Message::Down(Down::Begin { .. } | Down::End { .. }),
                    ..
                }
        );
        let before = out.effects.len();
        self.core.handle(now, input, out);
        if may_move_streams {
            // Not what the parent said: it may be one that is not listened to.
            self.link.homes.follow(self.core.streams());
        }
        if let Some(ticket) = commit
            && let Some(id) = self.core.commit_of(ticket)
        {
            self.link.waits.named(ticket, id);
        }
        self.hear_out(&out.effects[before..]);
    }
}

impl Core for Tap {
    fn handle(&mut self, now: Now, input: Input, out: &mut Out) {
        let is_tick = matches!(input, Input::Tick);
        if matches!(input, Input::Evict(_)) {
            // They go with this tray, before anybody looks again what is over the limit.
            self.link.is_evicting.store(false, Ordering::Relaxed);
        }
        self.handle_one(now, input, out);
        if is_tick {
            for (ticket, ask) in std::mem::take(&mut self.again) {
                self.handle_one(now, Input::Asked { ticket, ask }, out);
            }
        }
    }

    fn deadline(&self) -> Option<Millis> {
        self.core.deadline()
    }
}

fn is_busy(answer: &Answer) -> bool {
    matches!(answer, Answer::Busy | Answer::Called(Err(CallError::Busy)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use thorp_core::door::Direction;
    use thorp_core::ids::{Epoch, HomeId, MemberId, PageId, Peer, Position, Registration, Stamp};
    use thorp_core::limits::WAITING_PER_PAGE_MAX;
    use thorp_core::member::MemberConfig;
    use thorp_core::message::{CallId, Response, Up};

    const HOME: HomeId = HomeId(7);

    fn tap() -> Tap {
        let config = MemberConfig::new(MemberId(1), "anna".to_owned());
        Tap::new(Member::new(config), Arc::new(Link::new(1 << 20, 0)))
    }

    fn connect(tap: &mut Tap, edge: u64) -> Vec<Effect> {
        let peer = Peer {
            kind: NodeKind::Redirector,
            node: MemberId(2),
            name: "valley".to_owned(),
        };
        handle(
            tap,
            Input::Connected {
                edge: EdgeId(edge),
                direction: Direction::Up,
                peer,
            },
        );
        let home = HOME;
        let begin = Down::Begin {
            home,
            name: "alps".to_owned(),
            epoch: Epoch(1),
            position: Position(1),
            watermark: Stamp::default(),
            silent_ms: 0,
        };
        receive(tap, edge, begin)
    }

    fn receive(tap: &mut Tap, edge: u64, message: Down) -> Vec<Effect> {
        let edge = EdgeId(edge);
        let message = Message::Down(message);
        handle(tap, Input::Received { edge, message })
    }

    fn handle(tap: &mut Tap, input: Input) -> Vec<Effect> {
        let mut out = Out::new();
        tap.handle(thorp_net::driver::now(), input, &mut out);
        out.effects
    }

    fn ask(tap: &mut Tap, ticket: u64, ask: Ask) -> Vec<Effect> {
        let ticket = Ticket(ticket);
        handle(tap, Input::Asked { ticket, ask })
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
        let sends = |effects: &[Effect]| effects.iter().any(|e| matches!(e, Effect::Send(..)));
        assert!(sends(&ask(&mut tap, 0, Ask::Prefetch(place))));
        for ticket in 1..1000 {
            assert_eq!(ask(&mut tap, ticket, Ask::Prefetch(place)), []);
        }
        assert_eq!(waiting(&tap), 0);
        let max = WAITING_PER_PAGE_MAX as u64;
        for ticket in 0..max {
            assert!(!sends(&ask(&mut tap, ticket, Ask::Fetch(place))));
        }
        let busy = Effect::Answer(Ticket(max), Answer::Busy);
        assert_eq!(ask(&mut tap, max, Ask::Fetch(place)), [busy]);
        assert_eq!(
            (waiting(&tap), tap.asked.len()),
            (max as usize, max as usize)
        );
    }

    #[test]
    fn what_a_busy_home_does_not_forget_it_is_told_again() {
        let mut tap = tap();
        let calls = |effects: Vec<Effect>| -> Vec<(CallId, Request)> {
            let call = |effect| match effect {
                Effect::Send(_, Message::Up(Up::Call { call, request, .. })) => {
                    Some((call, request))
                }
                _ => None,
            };
            effects.into_iter().filter_map(call).collect()
        };
        let answer = |tap: &mut Tap, call, result| {
            let home = HOME;
            receive(tap, 1, Down::Answer { home, call, result })
        };
        let registering = calls(connect(&mut tap, 1))[0].0;
        let registered = Response::Registered(Registration(4));
        answer(&mut tap, registering, Ok(registered));
        let request = Request::Unstage {
            registration: Registration(0),
            token: 5,
        };
        let home = HOME;
        let asked = calls(ask(&mut tap, 1, Ask::Call { home, request }));
        answer(&mut tap, asked[0].0, Err(CallError::Busy));
        let again = calls(handle(&mut tap, Input::Tick));
        assert_eq!(again[0].1, asked[0].1);
        answer(&mut tap, again[0].0, Ok(Response::Unstaged));
        assert_eq!(calls(handle(&mut tap, Input::Tick)), []);
        assert!(tap.giving_up.is_empty() && tap.again.is_empty());
    }

    #[test]
    fn a_second_parent_does_not_make_a_home_unreachable() {
        let mut tap = tap();
        connect(&mut tap, 1);
        connect(&mut tap, 2);
        assert!(tap.link.homes.is_live(HOME));
        receive(&mut tap, 2, Down::End { home: HOME });
        assert!(tap.link.homes.is_live(HOME));
        connect(&mut tap, 3);
        handle(&mut tap, Input::Disconnected { edge: EdgeId(3) });
        assert!(tap.link.homes.is_live(HOME));
        handle(&mut tap, Input::Disconnected { edge: EdgeId(1) });
        assert!(!tap.link.homes.is_live(HOME));
    }
}
