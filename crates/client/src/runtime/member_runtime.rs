//! A running member: the loop that drives its state machine.

use super::asked::Asked;
use super::join_settings::{edges, identity, parents, recorder, site_identity};
use super::log_disk::LogDisk;
use super::member_host::MemberHost;
use super::node_id::random_bits;
use super::request_sender::RequestSender;
use super::shared::Shared;
use super::worker::{Stopped, Worker};
use crate::due::due_after;
use crate::embedded_site::EmbeddedSite;
use crate::limits::{LEAVING_LOOK, RETRY_PAUSE};
use crate::lock::lock;
use crate::reach::refusal;
use crate::status::SiteStatus;
use crate::{Error, JoinConfig, JoinError, OutOfReach, Result};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use thorp_model::records::{ConflictRecord, UpdateRecord};
use thorp_model::{HomeNames, NodeKind, Outbox, Update};
use thorp_net::driver::{Driver, DriverConfig, EdgeStatus, Handle, ParentState, ParentStatus};
use thorp_protocol::{Member, MemberConfig, Request};
use thorp_store::UpdateLog;
use tokio::task::JoinSet;

/// A member that runs; dropped, it leaves.
pub(crate) struct MemberRuntime {
    pub(crate) shared: Arc<Shared>,
    worker: Worker,
    /// Ends after the member, which is its child.
    embedded_site: Option<EmbeddedSite>,
    /// Refused updates that the program's routine is to decide about. Its thread takes them.
    asked: Mutex<Option<Receiver<Asked>>>,
}

impl MemberRuntime {
    /// Starts a member, and its embedded site if it has one.
    pub(crate) async fn start(config: &JoinConfig) -> Result<MemberRuntime, JoinError> {
        let identity = identity(config)?;
        let edges = edges(config)?;
        let embedded_site = match &config.among {
            Some(site) => {
                let of_site = site_identity(config, site, &identity)?;
                Some(EmbeddedSite::start(site, of_site, edges.clone()).await?)
            }
            None => None,
        };
        let hello = identity.greeting(random_bits());
        let (node, name) = (hello.node, hello.name.clone());
        let signer = identity.signer();
        let verifier = config.keeps_for_neighbours.then(|| identity.verifier());
        let log = config.log.as_ref();
        let log = log.map(|dir| UpdateLog::open(dir, &name)).transpose();
        let log = log.map_err(JoinError::Log)?;
        let updates = log.as_ref().map(UpdateLog::updates).transpose();
        let updates = updates.map_err(JoinError::Log)?;
        let left = log.as_ref().map(UpdateLog::left).transpose();
        let left = left.map_err(JoinError::Log)?.unwrap_or_default();
        let conflicts = log.as_ref().map(UpdateLog::conflicts).transpose();
        let conflicts = conflicts.map_err(JoinError::Log)?.unwrap_or_default();
        let (routine, asked) = channel();
        open_conflicts(&conflicts, updates.as_deref().unwrap_or_default())
            .into_iter()
            .for_each(|one| {
                // The other end is here.
                let _ = routine.send(one);
            });
        let mut driver_config = DriverConfig::new(identity, hello);
        driver_config.parents = parents(config, embedded_site.as_ref())?;
        driver_config.net_limits = edges.limits;
        let (driver, handle) = Driver::new(driver_config);
        let shared = Arc::new(Shared::new(
            config.cache_bytes,
            config.fetch_ahead,
            RequestSender::new(Some(handle)),
            recorder(config)?,
            config.under.clone(),
        ));
        let mut member = MemberConfig::new(node, name);
        member.alive = Some(edges.alive);
        member.signer = signer;
        member.verifier = verifier;
        member.images_beside = true;
        member.log = updates;
        member.left = left;
        member.has_routine = config.conflicts.has_routine();
        member.conflicts = conflicts;
        let member = Member::new(member);
        let (of_member, patience) = (Arc::clone(&shared), config.leave_timeout);
        let sender = &shared.requests.sender;
        let disk = log.map(|log| LogDisk::start(log, Arc::clone(sender)));
        let disk = disk.transpose().map_err(JoinError::System)?;
        let routine = config.conflicts.has_routine().then_some(routine);
        let worker = Worker::start(|stopped| {
            let leaving = leave(stopped, Arc::clone(&of_member), patience);
            let host = MemberHost::new(Arc::clone(&of_member), disk, routine);
            live(driver, (member, host), of_member, leaving)
        });
        let worker = worker.map_err(JoinError::System)?;
        Ok(MemberRuntime {
            shared,
            worker,
            embedded_site,
            asked: Mutex::new(Some(asked)),
        })
    }

    /// Refused updates that the program's routine is to decide about, once.
    pub(crate) fn take_asked(&self) -> Option<Receiver<Asked>> {
        lock(&self.asked).take()
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
        if let Some(site) = &self.embedded_site {
            site.fill(&mut status);
        }
        status
    }

    /// Whether it has joined at a site, not straight at homes.
    pub(crate) fn is_below_a_site(&self) -> bool {
        let parent = self.first_edge();
        parent.is_some_and(|parent| parent.peer.kind == NodeKind::Redirector)
    }

    /// The homes that it leads to, whether or not their streams have begun: what its site has told, or the homes that it has
    /// joined itself. None: not all that it has dialed have answered, or a site is among several parents.
    pub(crate) fn home_names(&self) -> Option<HomeNames> {
        let is_there = |parent: &ParentStatus| matches!(parent.state, ParentState::Connected(_));
        let (parents, edges) = (self.parents(), self.handle()?.edges());
        if parents.len() != edges.len() || !parents.iter().all(is_there) {
            return None;
        }
        if let [one] = &edges[..]
            && one.peer.kind == NodeKind::Redirector
        {
            return self.shared.homes.names_told(one.edge);
        }
        let is_home = |edge: &EdgeStatus| edge.peer.kind == NodeKind::Home;
        let are_homes = !edges.is_empty() && edges.iter().all(is_home);
        are_homes.then(|| HomeNames {
            names: edges.into_iter().map(|edge| edge.peer.name).collect(),
            is_all: true,
        })
    }

    /// Waits until the parents have answered.
    pub(crate) async fn joined(&self, timeout: Duration) -> Result<(), JoinError> {
        let due = due_after(timeout);
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
            // Its own redirector does not count as an answer if that reaches no home.
            let is_alone = self.is_alone();
            if have_all && !is_alone {
                // A site that reaches no home yet sends no stream.
                let since = *connected.get_or_insert_with(Instant::now);
                if since.elapsed() >= SILENT_PARENT_MAX {
                    return Ok(());
                }
            }
            let is_refused = refusal(&parents).is_some() && self.embedded_site.is_none();
            if Instant::now() >= due || is_refused {
                return match answers > 0 && !is_alone {
                    true => Ok(()),
                    false => Err(JoinError::Unreachable(self.why())),
                };
            }
            let next = due.min(Instant::now() + RETRY_PAUSE);
            let changed = self.shared.requests.changed(&mut changes, next).await;
            changed.map_err(|error: Error| JoinError::Unreachable(error.to_string()))?;
        }
    }

    fn handle(&self) -> Option<&Handle<Member>> {
        self.shared.requests.sender.handle()
    }

    fn parents(&self) -> Vec<ParentStatus> {
        let handle = self.handle();
        handle.map(|handle| handle.parents()).unwrap_or_default()
    }

    fn first_edge(&self) -> Option<EdgeStatus> {
        self.handle()?.edges().into_iter().next()
    }

    /// Whether it has joined at the redirector that it carries itself.
    fn is_alone(&self) -> bool {
        let embedded_site = self.embedded_site.as_ref();
        let address = self.first_edge().map(|edge| edge.address);
        embedded_site.is_some_and(|site| site.is_loopback(address.as_deref()))
    }

    /// Why no site or home answers.
    fn why(&self) -> String {
        let mut missed = OutOfReach::of(self.parents());
        missed.extend(
            self.embedded_site
                .iter()
                .flat_map(EmbeddedSite::out_of_reach),
        );
        let words: Vec<String> = missed.iter().map(ToString::to_string).collect();
        match words.is_empty() {
            true => "nothing was dialed yet".to_owned(),
            false => words.join("; "),
        }
    }

    /// Leaves, and waits for that.
    pub(crate) fn stop(&self) {
        self.worker.stop();
        if let Some(site) = &self.embedded_site {
            site.stop();
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

/// However the member ends, no thread waits for it in vain.
struct Closing(Arc<Shared>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.requests.pending.close();
        self.0.changes.send_modify(|count| *count += 1);
    }
}

/// Refused updates about which no routine has decided yet: the process ended before.
fn open_conflicts(conflicts: &[ConflictRecord], updates: &[UpdateRecord]) -> Vec<Asked> {
    let is_open = |update: &Update| {
        let here = |of: &&ConflictRecord| (of.home, of.id) == (update.home, update.id);
        conflicts.iter().find(here).is_some_and(|of| of.is_open)
    };
    let open = updates.iter().filter(|record| is_open(&record.update));
    open.filter_map(|record| Some((record.update.clone(), record.rejected.clone()?)))
        .collect()
}

/// From joining to leaving.
async fn live(
    mut driver: Driver<Member>,
    (mut member, mut host): (Member, MemberHost),
    shared: Arc<Shared>,
    leaving: impl Future<Output = ()>,
) {
    let _closing = Closing(Arc::clone(&shared));
    // Ends with the member, however that ends.
    let mut clock = JoinSet::new();
    clock.spawn(async move {
        let requests = &shared.requests;
        let forget = |request| requests.sender.try_send(Request::Forget(request));
        requests.pending.end_in_time(forget).await;
    });
    driver
        .run(&mut member, &mut host, Outbox::new(), leaving)
        .await;
}

/// Ready when the member may end: the program has dropped it, and nothing of it is open, or patience is over. Open are
/// decisions that its homes do not know (rule 10), staged values that they are to give up, and early commits without an
/// outcome (rule 14).
async fn leave(stopped: Stopped, shared: Arc<Shared>, patience: Duration) {
    stopped.await;
    let until = due_after(patience);
    while let Some(handle) = shared.requests.sender.handle() {
        let untold = handle.inspect(Member::untold).await.unwrap_or_default();
        let open = shared.requests.pending.open_commits();
        if untold + open == 0 || Instant::now() >= until {
            shared.requests.sender.try_send(Request::Leave);
            // It is done when the next question is answered.
            let _ = handle.inspect(Member::untold).await;
            return;
        }
        tokio::time::sleep(LEAVING_LOOK).await;
    }
}

/// How long to wait for a parent that sends no stream.
const SILENT_PARENT_MAX: Duration = Duration::from_secs(2);
