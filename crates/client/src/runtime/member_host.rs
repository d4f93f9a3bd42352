//! What the loop does for the state machine of a member.

use super::asked::Asked;
use super::counters::Ending;
use super::held_lock::unlock;
use super::log_disk::LogDisk;
use super::shared::Shared;
use crate::limits::RETRY_PAUSE;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Instant;
use thorp_model::{CommitId, Outcome, Place, Refusal};
use thorp_net::driver::World;
use thorp_protocol::{MemberAction, MemberCommand, Response};

/// What the state machine of a member has beside its edges: the page cache and the program. It orders an eviction only
/// when all pages of the one before have gone.
pub(super) struct MemberHost {
    shared: Arc<Shared>,
    /// The state machine has not evicted all pages that were chosen last.
    is_evicting: bool,
    /// Nothing could be evicted a moment ago: it is not looked for at every turn.
    quiet_until: Option<Instant>,
    /// Where the log is, if the member has one.
    disk: Option<LogDisk>,
    /// Who decides about refused updates, if the program has a routine.
    routine: Option<Sender<Asked>>,
}

impl World<MemberAction> for MemberHost {
    fn act(&mut self, action: MemberAction) {
        match action {
            MemberAction::Publish(publish) => {
                self.shared.cache.publish(&publish);
                if publish.missed.is_some() || !publish.touched.is_empty() {
                    self.shared.changes.send_modify(|count| *count += 1);
                }
            }
            // A watch waits for changes, not for a response.
            MemberAction::Respond(_, Response::Unwatched { home, segment }) => {
                self.shared.allocators.unwatched(home, segment);
                self.shared.changes.send_modify(|count| *count += 1);
            }
            MemberAction::Respond(request, response) => {
                if let Response::Outcome(id, outcome, _) = &response {
                    self.take_early_outcome(*id, outcome);
                }
                self.shared.requests.pending.complete(request, response);
            }
            MemberAction::Hint(likely) => self.shared.prefetcher.hinted(&likely),
            MemberAction::Joined(place) => self.shared.prefetcher.joined(place),
            MemberAction::Named(request, id) => self.shared.requests.pending.named(request, id),
            // Before the page cache shows it.
            MemberAction::Showing(id) => self.shared.requests.pending.mark_open(id),
            MemberAction::Arrived(place, source) => {
                self.shared.counters.fetched(source);
                self.shared.prefetcher.arrived(place);
            }
            MemberAction::Evicted => self.is_evicting = false,
            MemberAction::StreamBegan {
                home,
                name,
                edge,
                incarnation,
            } => {
                self.shared.pulls.began(home);
                self.shared.homes.began(home, name, edge, incarnation);
            }
            MemberAction::HomesTold { edge, homes } => self.shared.homes.told(edge, homes),
            MemberAction::WentBack(home) => self.shared.went_back(home),
            MemberAction::Keep(batch) => {
                if let Some(disk) = &self.disk {
                    disk.keep(batch);
                }
            }
            MemberAction::Locked { home, fence, until } => {
                let requests = &self.shared.requests;
                if !requests.locks.granted((home, fence), until) {
                    unlock(requests, (home, fence));
                }
            }
            MemberAction::LockLost { home, fence } => {
                self.shared.requests.locks.end((home, fence));
            }
            MemberAction::Rejected(update, refusal) => {
                if let Some(routine) = &self.routine {
                    // A thread that has ended asks again at the next start.
                    let _ = routine.send((update, refusal));
                }
                self.shared.changes.send_modify(|count| *count += 1);
            }
            MemberAction::StreamEnded(home) => self.shared.homes.ended(home),
        }
    }

    /// All actions are done: what is over the limit goes.
    fn flush(&mut self) {
        let victims = self.victims();
        if let Some(handle) = self.shared.requests.sender.handle()
            && !victims.is_empty()
        {
            // A loop that is gone holds no pages.
            let _ = handle.command(MemberCommand::Evict(victims));
        }
    }
}

impl MemberHost {
    pub(super) fn new(
        shared: Arc<Shared>,
        disk: Option<LogDisk>,
        routine: Option<Sender<Asked>>,
    ) -> Self {
        MemberHost {
            shared,
            is_evicting: false,
            quiet_until: None,
            disk,
            routine,
        }
    }

    /// The outcome of a commit whose program went on. A transaction that has read its values gets a serialization point
    /// above its stamp (rule 5).
    fn take_early_outcome(&self, id: CommitId, outcome: &Outcome) {
        if !self.shared.requests.pending.is_open(id) {
            return;
        }
        let ending = match outcome {
            Outcome::Committed { stamp, .. } => {
                self.shared.session.raise_floor(*stamp);
                Ending::Committed
            }
            Outcome::Refused(
                Refusal::Busy { .. }
                | Refusal::Full(_)
                | Refusal::Share(_)
                | Refusal::Locked { .. },
            ) => Ending::Aborted,
            Outcome::Refused(Refusal::Forgotten | Refusal::Lost) => Ending::Unknown,
            Outcome::Refused(_) => Ending::Conflict,
        };
        self.shared.counters.ended(ending);
    }

    /// The pages that have to go now, once: in a burst this is called many times before the first of them has gone.
    fn victims(&mut self) -> Vec<Place> {
        let cache = &self.shared.cache;
        let excess = cache.excess();
        if excess == 0
            || self.is_evicting
            || self.quiet_until.is_some_and(|until| Instant::now() < until)
        {
            return Vec::new();
        }
        let chosen = cache.choose(excess, false);
        let mut victims = chosen.pages;
        // Pages that transactions read are spared up to a limit, then their evidence freezes (rule 2). It also freezes
        // before these pages leave no space for the pages of all others.
        let is_overdrawn = victims.is_empty() && excess > cache.bytes_max() / OVERDRAFT;
        if is_overdrawn || chosen.spared > cache.bytes_max() / SPARED_PART {
            victims = cache.victims(excess, true);
        }
        self.quiet_until = victims.is_empty().then(|| Instant::now() + RETRY_PAUSE);
        self.is_evicting = !victims.is_empty();
        victims
    }
}

/// The part of the cache's limit by which pages in use may exceed it.
const OVERDRAFT: usize = 4;
/// The part of the cache that pages in use may take, once it is full.
const SPARED_PART: usize = 2;

#[cfg(test)]
mod tests {
    use super::super::request_sender::RequestSender;
    use super::*;
    use thorp_model::{
        Action, Event, HomeId, Image, MemberId, Millis, Outbox, PageId, Position, Publish, Stamp,
        StateMachine,
    };
    use thorp_protocol::{Member, MemberConfig};

    const HOME: HomeId = HomeId(7);

    /// There is no loop: the state machine's part is played here.
    fn shared_with(cache_bytes: usize) -> Arc<Shared> {
        let sender = RequestSender::new(None);
        Arc::new(Shared::new(cache_bytes, 0, sender, None, Vec::new()))
    }

    fn publish(images: Vec<(PageId, Option<Image>)>) -> Publish {
        Publish {
            home: HOME,
            overlay: thorp_model::OverlayUpdate::default(),
            touched: Vec::new(),
            evicted: Vec::new(),
            images,
            position: Position(1),
            watermark: Stamp::default(),
            heard: Millis(1),
            missed: None,
            tentative: thorp_model::TentativeChange::default(),
            history: 0,
        }
    }

    #[test]
    fn readers_leave_room_for_others() {
        let shared = shared_with(10_000);
        let mut host = MemberHost::new(Arc::clone(&shared), None, None);
        let charge = {
            let one = vec![(PageId::new(3, 0), Some(Image::empty()))];
            host.act(MemberAction::Publish(publish(one)));
            shared.cache.bytes()
        };
        let fits = (10_000 / charge) as u32;
        // Twice what is held at rest: the state machine's part is played here.
        let images: Vec<Image> = (0..=fits).map(|_| fresh()).collect();
        let pages = images.iter().zip(1..);
        let pages = pages.map(|(image, n)| (PageId::new(3, n), Some(image.clone())));
        host.act(MemberAction::Publish(publish(pages.collect())));
        let read = |part: u32| -> Vec<Image> {
            let images = images.iter().take((fits / part) as usize);
            images.cloned().collect()
        };
        // Some are read: the others go.
        let few = read(4);
        let is_read = |place: &Place, part: u32| (1..=fits / part).contains(&place.page.page.0);
        let victims = host.victims();
        assert!(!victims.is_empty() && !victims.iter().any(|place| is_read(place, 4)));
        drop(few);
        host.is_evicting = false;
        // Nearly all are: they are treated as the others are.
        let _most = read(1);
        let chosen: Vec<Place> = (0..fits)
            .flat_map(|_| {
                host.is_evicting = false;
                host.victims()
            })
            .collect();
        assert!(chosen.iter().any(|place| is_read(place, 1)));
    }

    fn fresh() -> Image {
        thorp_model::ImageEdit::default().finish(Position(1), Stamp::default())
    }

    #[test]
    fn what_is_over_the_limit_goes_once() {
        let shared = shared_with(1000);
        let mut host = MemberHost::new(Arc::clone(&shared), None, None);
        let pages = (1..=40).map(|n| (PageId::new(3, n), Some(Image::empty())));
        host.act(MemberAction::Publish(publish(pages.collect())));
        let over = shared.cache.excess();
        let victims = host.victims();
        assert!(over > 0 && !victims.is_empty() && victims.len() < 40);
        // The loop has much to do before it comes to that.
        assert_eq!(host.victims(), []);
        let config = MemberConfig::new(MemberId(1), "anna".to_owned());
        let mut outbox = Outbox::new();
        let evict = Event::Command(MemberCommand::Evict(victims.clone()));
        Member::new(config).handle(thorp_net::driver::now(), evict, &mut outbox);
        // This member knows no home: its publications are played here.
        let is_evicted = |action: &_| matches!(action, Action::Role(MemberAction::Evicted));
        assert!(outbox.actions.iter().any(is_evicted));
        host.act(MemberAction::Evicted);
        let gone = victims.into_iter().map(|place| (place.page, None));
        host.act(MemberAction::Publish(publish(gone.collect())));
        assert_eq!((shared.cache.excess(), host.victims()), (0, Vec::new()));
        let more = (41..=50).map(|n| (PageId::new(3, n), Some(Image::empty())));
        host.act(MemberAction::Publish(publish(more.collect())));
        assert!(!host.victims().is_empty());
    }
}
