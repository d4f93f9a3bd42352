//! What a member's cached pages cost beyond their bytes: its state machine's table and the page cache together.
//!
//! `cargo run --release -p thorp-bench --bin cached_pages_memory -- [PAGES]`
//!
//! A member asks for a million pages of 8 KiB, is given them, and publishes them; fewer if the machine has not the memory.
//! The images are shared by both tables.

use thorp_bench::Result;
use thorp_bench::counting::{Counting, bytes};
use thorp_bench::figure::Figure;
use thorp_cache::Cache;
use thorp_model::{
    Action, Direction, Down, Draft, EdgeId, EntryNo, Epoch, Event, FetchResult, Generation, HomeId,
    Image, ImageEdit, Incarnation, LifeId, Mark, MemberId, Message, Millis, NodeKind, Now, Outbox,
    PageId, Peer, Place, Point, Position, Receipt, ReceiptKey, RequestId, Slot, Stamp,
    StateMachine, Up, Verdict, message,
};
use thorp_protocol::{Member, MemberAction, MemberCommand, MemberConfig, Request};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const PAGES: u32 = 1_000_000;
const HOME: HomeId = HomeId(1);
const EDGE: EdgeId = EdgeId(1);
const OBJECTS: u16 = 75;
const OBJECT_BYTES: usize = 100;
const TARGET: f64 = 1.05;
/// Of the memory that is free, so much may be used.
const USABLE: f64 = 0.75;
/// What a page takes in all, about.
const PAGE_BYTES: f64 = 8_500.0;

fn main() -> Result<()> {
    let wanted = std::env::args().nth(1).map(|arg| arg.parse()).transpose()?;
    let wanted: u32 = wanted.unwrap_or(PAGES);
    let room = (free_bytes()? * USABLE / PAGE_BYTES) as u32;
    let pages = wanted.min(room);
    let before = bytes();
    let mut village = Village::new();
    let mut image_bytes = 0;
    for page in 0..pages {
        image_bytes += village.fetch(PageId::new(1, page))?;
    }
    assert_eq!(village.cache.pages(), pages as usize);
    let ratio = (bytes() - before) as f64 / image_bytes as f64;
    Figure::new("cached_pages_memory")
        .with("figure", "a member's memory against the bytes of its pages")
        .with("pages", pages)
        .with("pages_wanted", wanted)
        .with("image_bytes", image_bytes)
        .with(
            "beyond_bytes_per_page",
            (ratio - 1.0) * image_bytes as f64 / f64::from(pages),
        )
        .at_most("ratio", ratio, TARGET);
    Ok(())
}

/// What the system could give without taking it from others.
fn free_bytes() -> Result<f64> {
    let told = std::fs::read_to_string("/proc/meminfo")?;
    let line = told
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
    Ok(kib
        .ok_or("the system does not tell of its memory")?
        .trim()
        .parse::<f64>()?
        * 1024.0)
}

/// A member and its cache, and a parent that is played.
struct Village {
    member: Member,
    cache: Cache,
    outbox: Outbox<MemberAction>,
    asked: u64,
}

impl Village {
    fn new() -> Self {
        let mut village = Village {
            member: Member::new(MemberConfig::new(MemberId(1), "anna".to_owned())),
            cache: Cache::new(usize::MAX),
            outbox: Outbox::new(),
            asked: 0,
        };
        village.input(Event::Connected {
            edge: EDGE,
            direction: Direction::Up,
            peer: Peer {
                kind: NodeKind::Home,
                node: MemberId(2),
                name: "alps".to_owned(),
                is_operator: false,
                is_carried: false,
            },
        });
        village.receive(Down::Begin(message::Begin {
            home: HOME,
            name: "alps".to_owned(),
            epoch: Epoch::default(),
            position: Position(1),
            watermark: Stamp::default(),
            silent_ms: 0,
            readers: Vec::new(),
            sites: Vec::new(),
            receipt: Receipt::new(
                HOME,
                Incarnation::default(),
                Point {
                    life: LifeId {
                        counter: 1,
                        random: 1,
                    },
                    mark: Mark(1),
                    position: Position(1),
                    clock: 0,
                },
                &ReceiptKey::new([0; 32]),
            ),
            verdict: Verdict::Known,
        }));
        village
    }

    /// Has a page fetched; the bytes of its image.
    fn fetch(&mut self, page: PageId) -> Result<usize> {
        self.asked += 1;
        let request = Request::Fetch(Place { home: HOME, page });
        let id = RequestId(self.asked);
        let sent = self.input(Event::Command(MemberCommand::Request { id, request }));
        let attempt = sent.into_iter().find_map(|up| match up {
            Up::Fetch(message::Fetch { attempt, .. }) => Some(attempt),
            _ => None,
        });
        let image = image(page);
        let image_bytes = image.bytes().len();
        self.receive(Down::Image(message::FetchResponse {
            home: HOME,
            page,
            attempt: attempt.ok_or("the member did not ask")?,
            entry: EntryNo(self.asked as u32),
            position: Position(1),
            watermark: Stamp::default(),
            result: FetchResult::Image(image),
        }));
        Ok(image_bytes)
    }

    fn receive(&mut self, message: Down) {
        let message = Message::Down(message);
        self.input(Event::Received {
            edge: EDGE,
            message,
        });
    }

    /// What the member sends then; what it publishes is published.
    fn input(&mut self, event: Event<MemberCommand>) -> Vec<Up> {
        let now = Now {
            mono: Millis(1),
            wall: Millis(1),
        };
        self.member.handle(now, event, &mut self.outbox);
        let mut sent = Vec::new();
        for action in self.outbox.actions.drain(..) {
            match action {
                Action::Role(MemberAction::Publish(publish)) => self.cache.publish(&publish),
                Action::Send(_, Message::Up(up)) => sent.push(up),
                _ => {}
            }
        }
        sent
    }
}

fn image(page: PageId) -> Image {
    let mut edit = ImageEdit::default();
    for slot in 0..OBJECTS {
        let value = Draft::Value(vec![page.page.0 as u8; OBJECT_BYTES]);
        edit.set(Slot(slot), Generation(1), value);
    }
    edit.finish(Position(1), Stamp::default())
}
