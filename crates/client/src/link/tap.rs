//! The member's state machine with an ear at its door: what the client has to know besides (names of homes, where pages
//! came from, the ids of commits) is heard here, and the core need not tell it.

use super::{Link, Source};
use std::collections::HashMap;
use std::sync::Arc;
use thorp_core::door::{Answer, Ask, Core, Effect, Input, Out};
use thorp_core::ids::{EdgeId, Millis, NodeKind, Now, Place, Ticket};
use thorp_core::member::Member;
use thorp_core::message::{Down, FetchAnswer, Message};

pub(crate) struct Tap {
    core: Member,
    link: Arc<Link>,
    parents: HashMap<EdgeId, NodeKind>,
    /// Tickets that wait for pages. As many as the core lets wait.
    asked: HashMap<Ticket, Place>,
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
                Ask::Commit { .. } | Ask::Call { .. } | Ask::Watch { .. } => {}
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
                self.came(Place { home, page }, Source::Peer);
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
            let Some(place) = self.asked.remove(ticket) else {
                continue;
            };
            if let (Answer::Fetched, Some(source)) = (answer, self.came.get(&place)) {
                self.link.waits.came_from(*ticket, *source);
            }
        }
        // An image is taken by the input that brings it, or waits for its stream: then the page is still on its way.
        let (core, counters) = (&self.core, &self.link.counters);
        self.came.retain(|place, source| {
            let waits = core.is_fetching(*place);
            if !waits {
                counters.fetched(*source);
            }
            waits
        });
    }
}

impl Core for Tap {
    fn handle(&mut self, now: Now, input: Input, out: &mut Out) {
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

    fn deadline(&self) -> Option<Millis> {
        self.core.deadline()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thorp_core::door::Direction;
    use thorp_core::ids::{Epoch, HomeId, MemberId, Peer, Position, Stamp};
    use thorp_core::member::MemberConfig;

    const HOME: HomeId = HomeId(7);

    fn tap() -> Tap {
        let config = MemberConfig::new(MemberId(1), "anna".to_owned());
        Tap::new(Member::new(config), Arc::new(Link::new(1 << 20)))
    }

    fn connect(tap: &mut Tap, edge: u64) {
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
        };
        receive(tap, edge, begin);
    }

    fn receive(tap: &mut Tap, edge: u64, message: Down) {
        let edge = EdgeId(edge);
        let message = Message::Down(message);
        handle(tap, Input::Received { edge, message });
    }

    fn handle(tap: &mut Tap, input: Input) {
        let now = thorp_net::driver::now();
        tap.handle(now, input, &mut Out::new());
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
