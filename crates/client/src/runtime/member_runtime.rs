//! A running member: the loop that drives its state machine.

use super::join_settings::{edges, identity, parents, recorder};
use super::node_id::random_id;
use super::worker::Stopped;
use super::{PAUSE, Shared, Worker};
use crate::embedded_site::EmbeddedSite;
use crate::limits::LEAVING_LOOK;
use crate::status::SiteStatus;
use crate::{Error, JoinConfig, JoinError, OutOfReach, Result};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use thorp_model::{NodeKind, Outbox, Peer, Place};
use thorp_net::driver::{Driver, DriverConfig, EdgeStatus, ParentState, ParentStatus, World};
use thorp_protocol::{Member, MemberAction, MemberCommand, MemberConfig, Request, Response};
use tokio::task::JoinSet;

/// A member that runs; dropped, it leaves.
pub(crate) struct MemberRuntime {
    pub(crate) shared: Arc<Shared>,
    life: Worker,
    /// Ends after the member, which is its child.
    carrier: Option<EmbeddedSite>,
}

impl MemberRuntime {
    /// Starts a member, and what it is told to carry.
    pub(crate) async fn start(config: &JoinConfig) -> Result<MemberRuntime, JoinError> {
        let identity = identity(config)?;
        let edges = edges(config)?;
        let carrier = match &config.among {
            Some(site) => {
                let who = (identity.clone(), &config.name[..]);
                Some(EmbeddedSite::start(site, who, edges.clone()).await?)
            }
            None => None,
        };
        let node = random_id();
        let hello = Peer {
            kind: NodeKind::Member,
            node,
            name: config.name.clone(),
        };
        let mut driver_config = DriverConfig::new(identity, hello);
        driver_config.parents = parents(config, carrier.as_ref())?;
        driver_config.net_limits = edges.limits;
        let (driver, handle) = Driver::new(driver_config);
        let shared = Arc::new(Shared {
            recorder: recorder(config)?,
            ..Shared::new(config.cache_bytes, config.fetch_ahead)
        });
        // Set once, here.
        let _ = shared.handle.set(handle);
        let mut member = MemberConfig::new(node, config.name.clone());
        member.alive = Some(edges.alive);
        member.images_beside = true;
        let member = Member::new(member);
        let (of_member, patience) = (Arc::clone(&shared), config.leave_timeout);
        let life = Worker::start(|stopped| {
            let leaving = leave(stopped, Arc::clone(&of_member), patience);
            live(driver, member, of_member, leaving)
        });
        let life = life.map_err(JoinError::System)?;
        Ok(MemberRuntime {
            shared,
            life,
            carrier,
        })
    }

    /// Where the member has joined, and what it carries.
    pub(crate) fn site(&self) -> SiteStatus {
        let parent = self.first_edge();
        let mut status = SiteStatus {
            name: parent.as_ref().map(|parent| parent.peer.name.clone()),
            address: parent.map(|parent| parent.address),
            out_of_reach: OutOfReach::of(self.parents()),
            ..SiteStatus::default()
        };
        if let Some(carrier) = &self.carrier {
            carrier.fill(&mut status);
        }
        status
    }

    /// Whether it has joined at a site, not straight at homes.
    pub(crate) fn is_below_a_site(&self) -> bool {
        let parent = self.first_edge();
        parent.is_some_and(|parent| parent.peer.kind == NodeKind::Redirector)
    }

    /// PendingRequests until the parents have answered.
    pub(crate) async fn joined(&self, timeout: Duration) -> Result<(), JoinError> {
        let due = Instant::now() + timeout;
        let mut connected = None;
        let mut changes = self.shared.homes.changes();
        loop {
            let parents = self.parents();
            let answered =
                |parent: &&ParentStatus| matches!(parent.state, ParentState::Connected(_));
            let answers = parents.iter().filter(answered).count();
            let have_all = answers > 0 && answers == parents.len();
            if have_all && self.shared.homes.is_any_live() {
                return Ok(());
            }
            // Its own redirector is nobody else: where that reaches no home, nobody has answered.
            let is_alone = self.is_alone();
            if have_all && !is_alone {
                // A site that reaches no home yet has nothing to tell.
                let since = *connected.get_or_insert_with(Instant::now);
                if since.elapsed() >= SILENT_PARENT_MAX {
                    return Ok(());
                }
            }
            if Instant::now() >= due {
                return match answers > 0 && !is_alone {
                    true => Ok(()),
                    false => Err(JoinError::Unreachable(self.why())),
                };
            }
            let next = due.min(Instant::now() + PAUSE);
            let told = self.shared.changed(&mut changes, next).await;
            told.map_err(|error: Error| JoinError::Unreachable(error.to_string()))?;
        }
    }

    /// None while the loop has not begun.
    fn parents(&self) -> Vec<ParentStatus> {
        let handle = self.shared.handle();
        handle.map(|handle| handle.parents()).unwrap_or_default()
    }

    fn first_edge(&self) -> Option<EdgeStatus> {
        self.shared.handle()?.edges().into_iter().next()
    }

    /// Whether it has joined at the redirector that it carries itself.
    fn is_alone(&self) -> bool {
        let carrier = self.carrier.as_ref();
        let address = self.first_edge().map(|edge| edge.address);
        carrier.is_some_and(|carrier| carrier.is_door(address.as_deref()))
    }

    /// Why nobody answers.
    fn why(&self) -> String {
        let mut missed = OutOfReach::of(self.parents());
        missed.extend(self.carrier.iter().flat_map(EmbeddedSite::out_of_reach));
        let words: Vec<String> = missed.iter().map(ToString::to_string).collect();
        match words.is_empty() {
            true => "nothing was dialed yet".to_owned(),
            false => words.join("; "),
        }
    }

    /// Leaves, and waits for that.
    pub(crate) fn stop(&self) {
        self.life.stop();
        if let Some(carrier) = &self.carrier {
            carrier.stop();
        }
        // Tasks that are ending may hold the shared state a little longer, and with it what is not written yet.
        if let Some(recorder) = &self.shared.recorder {
            recorder.flush();
        }
    }
}

impl Drop for MemberRuntime {
    fn drop(&mut self) {
        self.stop();
    }
}

/// What the member's state machine has beside its edges: the page cache and the program.
struct MemberHost {
    shared: Arc<Shared>,
    /// Nothing could be evicted a moment ago: it is not looked for at every turn.
    quiet_until: Option<Instant>,
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
            // A watch waits for changes, not for an answer.
            MemberAction::Respond(_, Response::Unwatched { home, segment }) => {
                self.shared.allocators.unwatched(home, segment);
                self.shared.changes.send_modify(|count| *count += 1);
            }
            MemberAction::Respond(ticket, answer) => {
                if let Response::Outcome(id, outcome, _) = &answer {
                    self.shared.hear_outcome(*id, outcome);
                }
                self.shared.waits.answer(ticket, answer);
            }
            MemberAction::Hint(likely) => self.shared.hinted(&likely),
            MemberAction::Joined(place) => self.shared.joined(place),
            MemberAction::Named(ticket, id) => self.shared.waits.named(ticket, id),
            // Before the page cache shows it.
            MemberAction::Showing(id) => self.shared.waits.open(id),
            MemberAction::Arrived(place, source) => {
                self.shared.counters.fetched(source);
                self.shared.arrived(place);
            }
            MemberAction::Evicted => self.shared.is_evicting.store(false, Ordering::Relaxed),
            MemberAction::StreamBegan { home, name, edge } => {
                self.shared.homes.began(home, name, edge);
            }
            MemberAction::StreamEnded(home) => self.shared.homes.ended(home),
        }
    }

    /// All actions are done: what is over the limit goes.
    fn flush(&mut self) {
        let victims = self.victims();
        if let Some(handle) = self.shared.handle()
            && !victims.is_empty()
        {
            // A loop that is gone holds no pages.
            let _ = handle.command(MemberCommand::Evict(victims));
        }
    }
}

impl MemberHost {
    /// What has to go now, once: in a burst this is asked many times before the first of it has gone.
    fn victims(&mut self) -> Vec<Place> {
        let cache = &self.shared.cache;
        let excess = cache.excess();
        if excess == 0
            || self.shared.is_evicting.load(Ordering::Relaxed)
            || self.quiet_until.is_some_and(|until| Instant::now() < until)
        {
            return Vec::new();
        }
        let chosen = cache.choose(excess, false);
        let mut victims = chosen.pages;
        // Pages that transactions read are spared up to a limit, then their evidence freezes (rule 2): also before they
        // leave no room for what everybody else uses.
        let is_overdrawn = victims.is_empty() && excess > cache.bytes_max() / OVERDRAFT;
        if is_overdrawn || chosen.spared > cache.bytes_max() / SPARED_PART {
            victims = cache.victims(excess, true);
        }
        self.quiet_until = victims.is_empty().then(|| Instant::now() + PAUSE);
        let are_some = !victims.is_empty();
        self.shared.is_evicting.store(are_some, Ordering::Relaxed);
        victims
    }
}

/// However it ends, nobody waits for it in vain.
struct Closing(Arc<Shared>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.waits.close();
        self.0.changes.send_modify(|count| *count += 1);
    }
}

/// From joining to leaving.
async fn live(
    mut driver: Driver<Member>,
    mut member: Member,
    shared: Arc<Shared>,
    leaving: impl Future<Output = ()>,
) {
    let _closing = Closing(Arc::clone(&shared));
    let mut host = MemberHost {
        shared: Arc::clone(&shared),
        quiet_until: None,
    };
    // Ends with the member, however that ends.
    let mut clock = JoinSet::new();
    clock.spawn(async move {
        let forget = |ticket| shared.tell(Request::Forget(ticket));
        shared.waits.watch_the_clock(forget).await;
    });
    driver
        .run(&mut member, &mut host, Outbox::new(), leaving)
        .await;
}

/// Ready when the member is to end: nobody is left, and what it decided is known to its homes (rule 10), and what its program
/// went on without is answered (rule 14); or that has been waited for long enough.
async fn leave(stopped: Stopped, shared: Arc<Shared>, patience: Duration) {
    stopped.await;
    let until = Instant::now() + patience;
    while let Some(handle) = shared.handle() {
        let untold = handle.inspect(Member::untold).await.unwrap_or_default();
        let open = shared.waits.open_commits();
        if untold + open == 0 || Instant::now() >= until {
            return;
        }
        tokio::time::sleep(LEAVING_LOOK).await;
    }
}

/// How long a parent that has no home to tell of is waited for.
const SILENT_PARENT_MAX: Duration = Duration::from_secs(2);
/// The part of the cache's limit by which pages in use may exceed it.
const OVERDRAFT: usize = 4;
/// The part of the cache that pages in use may take, once it is full.
const SPARED_PART: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use thorp_model::{
        Action, Event, HomeId, Image, MemberId, Millis, PageId, Position, Publish, Stamp,
        StateMachine,
    };

    const HOME: HomeId = HomeId(7);

    #[test]
    fn limits_with_which_every_parent_would_be_silent_are_refused() {
        let wrong = |every_ms, missed| {
            let config = JoinConfig::new("a:1").alive(Duration::from_millis(every_ms), missed);
            edges(&config).err().map(|error| error.to_string())
        };
        assert_eq!(wrong(10, 2), None);
        assert!(wrong(0, 15).unwrap().contains("the period in milliseconds"));
        assert!(wrong(1000, 0).unwrap().contains("the number of periods"));
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
        }
    }

    #[test]
    fn readers_leave_room_for_others() {
        let shared = Arc::new(Shared::new(10_000, 0));
        let mut host = MemberHost {
            shared: Arc::clone(&shared),
            quiet_until: None,
        };
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
        shared.is_evicting.store(false, Ordering::Relaxed);
        // Nearly all are: they are treated as the others are.
        let _most = read(1);
        let chosen: Vec<Place> = (0..fits)
            .flat_map(|_| {
                shared.is_evicting.store(false, Ordering::Relaxed);
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
        let shared = Arc::new(Shared::new(1000, 0));
        let mut host = MemberHost {
            shared: Arc::clone(&shared),
            quiet_until: None,
        };
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
