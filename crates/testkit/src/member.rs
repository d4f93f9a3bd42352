//! A member that speaks the protocol without the client library.

use std::collections::HashMap;
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard};

use thorp_model::limits::EXTENT_PAGES;
use thorp_model::{
    Blob, CallError, CallRequest, CallResponse, CommitId, Content, Generation, HomeId, Image,
    NewValue, Note, Outbox, Outcome, PageId, PageWrites, Part, Place, Position, Publish, RequestId,
    SegmentId, Slot, Stamp, WriteOp,
};
use thorp_net::driver::{Driver, DriverConfig, Handle, ParentConfig, World};
use thorp_net::{Address, Identity};
use thorp_protocol::{Member, MemberAction, MemberCommand, MemberConfig, Request, Response};
use tokio::sync::{Notify, oneshot};
use tokio::time::timeout;

use crate::patience::SOON;
use crate::running::Thread;

/// A member of one home, and what its program sees. It runs in the test's process, until it is dropped.
pub struct MemberNode {
    home: HomeId,
    handle: Handle<Member>,
    world: Arc<Shared>,
    thread: Option<Thread>,
}

/// What the member has published to its program.
#[derive(Default)]
pub struct Seen {
    pages: HashMap<PageId, Image>,
    streams: u64,
    position: Position,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    last: u64,
    waiting: HashMap<RequestId, oneshot::Sender<Response>>,
    seen: Seen,
}

impl MemberNode {
    /// Starts a member on a thread of its own, below a parent, and waits until its stream has begun. `id` is the random part
    /// of its process id.
    pub fn start(identity: Identity, parent: &Address, home: HomeId, id: u64) -> Self {
        let parent = parent.clone();
        let (mut node, thread) = Thread::start(move || async move {
            let (node, mut work) = Self::open(identity, parent, home, id);
            tokio::select! {
                () = node.until(|seen| seen.streams > 0) => {}
                () = &mut work => unreachable!("nobody has halted it"),
            }
            (node, work)
        });
        node.thread = Some(thread);
        node
    }

    /// As [`MemberNode::start`], in the runtime of the test.
    pub async fn start_here(identity: Identity, parent: &Address, home: HomeId, id: u64) -> Self {
        let (node, work) = Self::open(identity, parent.clone(), home, id);
        tokio::spawn(work);
        node.until(|seen| seen.streams > 0).await;
        node
    }

    fn open(
        identity: Identity,
        parent: Address,
        home: HomeId,
        id: u64,
    ) -> (Self, std::pin::Pin<Box<impl Future<Output = ()> + use<>>>) {
        let hello = identity.greeting(id);
        let mut member = MemberConfig::new(hello.node, hello.name.clone());
        member.signer = identity.signer();
        let mut member = Member::new(member);
        let mut config = DriverConfig::new(identity, hello);
        config.parents.push(ParentConfig::new(vec![parent]));
        let (mut driver, handle) = Driver::new(config);
        let shared = Arc::<Shared>::default();
        let mut world = MemberWorld(Arc::clone(&shared));
        let work = async move {
            let first = Outbox::new();
            driver.run(&mut member, &mut world, first, pending()).await;
        };
        let node = Self {
            home,
            handle,
            world: shared,
            thread: None,
        };
        (node, Box::pin(work))
    }

    /// The way into its loop.
    pub fn handle(&self) -> &Handle<Member> {
        &self.handle
    }

    /// Asks the member for something, and waits for the response.
    pub async fn ask(&self, request: Request) -> Response {
        let (responded, response) = oneshot::channel();
        let id = {
            let mut state = self.world.state();
            state.last += 1;
            let id = RequestId(state.last);
            state.waiting.insert(id, responded);
            id
        };
        let request = MemberCommand::Request { id, request };
        self.handle.command(request).unwrap();
        let response = timeout(SOON, response).await;
        response.expect("a response in time").unwrap()
    }

    /// Waits until the program sees what it should.
    pub async fn until(&self, is_so: impl Fn(&Seen) -> bool) {
        let waiting = async {
            loop {
                let changed = self.world.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                if is_so(&self.world.state().seen) {
                    return;
                }
                changed.await;
            }
        };
        timeout(SOON, waiting).await.expect("it is so in time");
    }

    /// Calls the home.
    ///
    /// # Errors
    ///
    /// Those of the home.
    pub async fn call(&self, request: CallRequest) -> Result<CallResponse, CallError> {
        let home = self.home;
        match self.ask(Request::Call { home, request }).await {
            Response::Called(result) => result,
            other => panic!("{other:?}"),
        }
    }

    /// Opens a segment, or creates it.
    pub async fn open_or_create(&self, path: &str) -> SegmentId {
        let path = path.to_owned();
        let request = CallRequest::Open { path, create: true };
        match self.call(request).await {
            Ok(CallResponse::Segment(info)) => info.id,
            other => panic!("{other:?}"),
        }
    }

    /// The first of the pages that the home reserves for it.
    pub async fn fresh_page(&self, segment: SegmentId) -> PageId {
        match self
            .call(CallRequest::Reserve {
                segment,
                pages: EXTENT_PAGES,
            })
            .await
        {
            Ok(CallResponse::Extent { first, .. }) => PageId {
                segment,
                page: first,
            },
            other => panic!("{other:?}"),
        }
    }

    /// Fetches a page; its image.
    pub async fn fetch(&self, page: PageId) -> Image {
        let home = self.home;
        let place = Place { home, page };
        let response = self.ask(Request::Fetch(place)).await;
        assert!(matches!(response, Response::Fetched(_)), "{response:?}");
        self.cached(page).unwrap()
    }

    /// Commits one write.
    pub async fn commit(&self, page: PageId, slot: Slot, op: WriteOp) -> (CommitId, Outcome) {
        self.commit_all(page, vec![(slot, op)]).await
    }

    /// Commits writes to slots of one page.
    pub async fn commit_all(
        &self,
        page: PageId,
        slots: Vec<(Slot, WriteOp)>,
    ) -> (CommitId, Outcome) {
        self.commit_after(page, slots, Stamp::default()).await
    }

    /// The same by a program that has read up to a stamp of another home.
    pub async fn commit_after(
        &self,
        page: PageId,
        slots: Vec<(Slot, WriteOp)>,
        after: Stamp,
    ) -> (CommitId, Outcome) {
        let part = Part {
            home: self.home,
            evidence: self.position(),
            reads: vec![],
            writes: vec![PageWrites { page, slots }],
            under: None,
        };
        let request = Request::Commit {
            parts: vec![part],
            histories: vec![0],
            depends_on: vec![],
            after,
            early: false,
        };
        match self.ask(request).await {
            Response::Outcome(id, outcome, _) => (id, outcome),
            other => panic!("{other:?}"),
        }
    }

    /// The page's image, if it is cached.
    pub fn cached(&self, page: PageId) -> Option<Image> {
        self.world.state().seen.pages.get(&page).cloned()
    }

    /// How many streams have begun.
    pub fn streams(&self) -> u64 {
        self.world.state().seen.streams
    }

    /// Its position at the home.
    pub fn position(&self) -> Position {
        self.world.state().seen.position
    }

    /// Waits until the page is cached and as it should be; its image.
    pub async fn page(&self, page: PageId, is_so: impl Fn(&Image) -> bool) -> Image {
        self.until(|seen| seen.pages.get(&page).is_some_and(&is_so))
            .await;
        self.cached(page).unwrap()
    }

    /// Gives up a page, and waits until it is no longer cached.
    pub async fn evict(&self, page: PageId) {
        let home = self.home;
        let places = vec![Place { home, page }];
        self.handle.command(MemberCommand::Evict(places)).unwrap();
        self.until(|seen| !seen.pages.contains_key(&page)).await;
    }
}

impl Drop for MemberNode {
    fn drop(&mut self) {
        self.handle.halt();
        if let Some(thread) = &mut self.thread {
            thread.join();
        }
    }
}

impl Seen {
    /// How many streams have begun.
    pub fn streams(&self) -> u64 {
        self.streams
    }

    fn publish(&mut self, publish: Publish) {
        for (page, image) in publish.images {
            match image {
                Some(image) => self.pages.insert(page, image),
                None => self.pages.remove(&page),
            };
        }
        self.position = publish.position;
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

struct MemberWorld(Arc<Shared>);

impl World<MemberAction> for MemberWorld {
    fn act(&mut self, action: MemberAction) {
        let mut state = self.0.state();
        match action {
            MemberAction::Respond(id, response) => {
                if let Some(waiting) = state.waiting.remove(&id) {
                    let _ = waiting.send(response);
                }
            }
            MemberAction::Publish(publish) => state.seen.publish(publish),
            // It prefetches nothing and shows nothing early. A note counts its streams.
            MemberAction::Hint(_)
            | MemberAction::Joined(_)
            | MemberAction::Named(..)
            | MemberAction::Showing(_)
            | MemberAction::Arrived(..)
            | MemberAction::Evicted
            | MemberAction::StreamBegan { .. }
            | MemberAction::StreamEnded(_)
            | MemberAction::HomesTold { .. }
            | MemberAction::WentBack(_)
            // It has no log.
            | MemberAction::Keep(_)
            | MemberAction::Locked { .. }
            | MemberAction::LockLost { .. }
            | MemberAction::Rejected(..) => {}
        }
        drop(state);
        self.0.changed.notify_waiters();
    }

    fn note(&mut self, note: Note) {
        if note == Note::StreamBegan {
            self.0.state().seen.streams += 1;
            self.0.changed.notify_waiters();
        }
    }
}

/// Creates an object with this value, the first in its slot.
pub fn create(value: impl AsRef<[u8]>) -> WriteOp {
    WriteOp::Create {
        generation: Generation(1),
        value: NewValue::Inline(Blob::from(value.as_ref())),
    }
}

/// Whether a slot of an image has this value.
pub fn holds(image: &Image, slot: Slot, expected: impl AsRef<[u8]>) -> bool {
    matches!(image.content(slot), Content::Value(value) if value == expected.as_ref())
}
