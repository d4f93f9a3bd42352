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
    /// Where the images that came last came from, of pages that somebody waits for.
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
                self.link.homes.lost(*edge);
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
            Down::Begin { home, name, .. } => self.link.homes.began(*home, name, edge),
            Down::End { home } => self.link.homes.ended(*home),
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
                self.came.insert(Place { home, page }, source);
            }
            Down::Peer(peer) if peer.image.is_some() => {
                let (home, page) = (peer.home, peer.page);
                self.came.insert(Place { home, page }, Source::Peer);
            }
            _ => {}
        }
    }

    /// Hears what the core answers.
    fn hear_out(&mut self, effects: &[Effect]) {
        let mut answered = Vec::new();
        for effect in effects {
            let Effect::Answer(ticket, answer) = effect else {
                continue;
            };
            let Some(place) = self.asked.remove(ticket) else {
                continue;
            };
            if let (Answer::Fetched, Some(source)) = (answer, self.came.get(&place)) {
                self.link.waits.came_from(*ticket, *source);
                answered.push(place);
            }
        }
        for place in answered {
            // Several may have waited for one page.
            if let Some(source) = self.came.remove(&place) {
                self.link.counters.fetched(source);
            }
        }
        // An image is taken by the input that brings it, or waits for its stream: then it still counts.
        if self.asked.is_empty() || self.came.len() > 2 * self.asked.len() {
            self.came.clear();
        }
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
        let before = out.effects.len();
        self.core.handle(now, input, out);
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
