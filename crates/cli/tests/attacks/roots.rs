//! What a writer of a segment does to others who use the roots of that segment. The nodes of the roots are ordinary
//! objects, so whoever may write in the segment may write any nodes.

use crate::neighbours::{DIARY, ENTRY, Neighbours, SHARED, create, kind_of};
use crate::processes::run_within;
use crate::scene::{Writer, creation};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::mpsc;
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;
use thorp_client::{ErrorKind, Member, Reference, Segment, Session};
use thorp_model::limits::{EXTENT_PAGES, OVERFLOW_CHUNK_BYTES, STAGE_PAGES_MAX};
use thorp_model::{
    Blob, CallRequest, CallResponse, Generation, NewValue, ObjectId, PageId, PageNo, RIGHTS_SLOT,
    SegmentId, Slot, WriteOp,
};

/// How a root node begins that belongs to a map (`transaction/roots/nodes.rs` of the client).
const MARK: [u8; 11] = [
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 1,
];

/// The object in which the roots of each segment begin.
const ROOTS: (PageNo, Slot) = (PageNo(0), Slot(1));

/// A node of the map, as `collections/node.rs` of the client has it.
#[derive(Serialize, Deserialize)]
enum Node {
    Leaf(Vec<(String, Reference)>),
    Inner {
        keys: Vec<String>,
        below: Vec<Reference>,
    },
}

impl Node {
    fn leaf(name: &str, cell: Reference) -> Self {
        Node::Leaf(vec![(name.to_owned(), cell)])
    }

    fn inner(key: &str, below: [Reference; 2]) -> Self {
        Node::Inner {
            keys: vec![key.to_owned()],
            below: below.to_vec(),
        }
    }
}

fn encoded(value: &impl Serialize) -> Vec<u8> {
    postcard::to_allocvec(value).unwrap()
}

/// Where a planter puts nodes and cells.
#[derive(Clone, Copy, Debug)]
enum Area {
    /// Among the objects of the segment.
    Objects,
    /// In its system pages, where the client puts them.
    System,
}

/// Plants roots in a segment.
struct Planter<'a> {
    writer: &'a mut Writer,
    segment: SegmentId,
    /// The next page that is free.
    next: PageNo,
}

impl<'a> Planter<'a> {
    /// Pages for so many nodes and cells.
    const PAGES: u32 = 2 * EXTENT_PAGES;

    fn new(writer: &'a mut Writer, segment: &Segment, area: Area) -> Self {
        let segment = segment.id();
        let end = writer.reserve(segment, 2);
        let first = PageNo(end.0 - Self::PAGES);
        let next = match area {
            Area::Objects => first,
            Area::System => first.system(),
        };
        Planter {
            writer,
            segment,
            next,
        }
    }

    fn at(&self, page: PageNo, slot: Slot) -> Reference {
        Reference {
            home: self.writer.intruder.home,
            object: ObjectId {
                page: PageId {
                    segment: self.segment,
                    page,
                },
                slot,
            },
            generation: Generation(1),
            offset: 0,
        }
    }

    /// Creates a node or a cell.
    fn put(&mut self, value: &impl Serialize) -> Reference {
        let at = self.at(self.next, Slot(3));
        self.next = self.next.next();
        self.write(&at, creation(&encoded(value)));
        at
    }

    /// Creates the object in which the roots begin.
    fn begin(&mut self, op: WriteOp) {
        let at = self.at(ROOTS.0, ROOTS.1);
        self.write(&at, op);
    }

    fn begin_with(&mut self, root: &Node) -> Vec<u8> {
        let bytes = [&MARK[..], &encoded(root)].concat();
        self.begin(creation(&bytes));
        bytes
    }

    fn write(&mut self, at: &Reference, op: WriteOp) {
        let (page, slot) = (at.object.page, at.object.slot);
        self.writer.write(page, slot, op).unwrap();
    }
}

/// The object in which the roots of the segment of another object begin.
fn roots_beside(other: &Reference) -> Reference {
    let (page, slot) = ROOTS;
    let segment = other.object.page.segment;
    Reference {
        object: ObjectId {
            page: PageId { segment, page },
            slot,
        },
        generation: Generation(1),
        offset: 0,
        ..*other
    }
}

/// Mallory places a node of anna's private roots among those of a shared segment. Then anna takes the only other shared
/// root away. The node that is left would take the place of the shared root node, where all can read it.
fn assert_no_private_roots_move(
    area: Area,
    names: usize,
    private: impl Fn(&Neighbours, &Reference) -> Reference,
) {
    let mut s = Neighbours::new();
    let (diary, [entry]) = s.diary();
    let names = (0..names).map(|n| (format!("secret-merger-{n:03}"), entry));
    let secrets: Vec<(String, Reference)> = names.collect();
    for (name, object) in &secrets {
        diary.set_root(name, Some(*object)).unwrap();
    }
    let private = private(&s, &entry);
    let shared = s.shared();
    let greeting = create(&shared, b"hello");
    let mut planter = Planter::new(&mut s.writer, &shared, area);
    let cell = planter.put(&greeting);
    let leaf = planter.put(&Node::leaf("a", cell));
    let planted = planter.begin_with(&Node::inner("m", [leaf, private]));

    let removed = s.anna.open(SHARED).unwrap().set_root("a", None);
    assert_eq!(kind_of(removed), ErrorKind::DataDamaged);
    let seen = bytes_of(&s.mallory, &roots_beside(&cell));
    assert_eq!(seen, planted, "what mallory sees of the roots");
    assert_eq!(diary.roots().unwrap(), secrets);
}

fn bytes_of(member: &Member, at: &Reference) -> Vec<u8> {
    let read = member.transact(|tx| tx.read(at).map(<[u8]>::to_vec));
    read.unwrap()
}

#[test]
fn a_root_that_is_taken_away_moves_no_private_roots() {
    let root_node = |_: &Neighbours, entry: &Reference| roots_beside(entry);
    for area in [Area::Objects, Area::System] {
        assert_no_private_roots_move(area, 1, root_node);
    }
}

/// Mallory has to guess where the leaf is: in one of the first system pages.
#[test]
fn a_root_that_is_taken_away_moves_no_leaf_of_private_roots() {
    let first_leaf = |s: &Neighbours, entry: &Reference| {
        let bytes = bytes_of(&s.anna, &roots_beside(entry));
        let node = bytes.strip_prefix(&MARK).unwrap();
        match postcard::from_bytes(node).unwrap() {
            Node::Inner { below, .. } => below[0],
            Node::Leaf(_) => panic!("all roots are in one node"),
        }
    };
    assert_no_private_roots_move(Area::System, 100, first_leaf);
}

/// The cell of a shared root is an object of anna's private segment. Whoever sets a root overwrites its cell. Whoever
/// takes it away deletes the cell.
#[test]
fn a_root_that_is_set_overwrites_no_private_object() {
    let mut s = Neighbours::new();
    let (_, [entry]) = s.diary();
    let shared = s.shared();
    let mut planter = Planter::new(&mut s.writer, &shared, Area::System);
    planter.begin_with(&Node::leaf("a", entry));
    let at_anna = s.anna.open(SHARED).unwrap();
    let own = create(&at_anna, b"hello");
    for target in [Some(own), None] {
        let set = at_anna.set_root("a", target);
        assert_eq!(kind_of(set), ErrorKind::DataDamaged, "{target:?}");
        assert_eq!(s.anna_reads(&entry).unwrap(), ENTRY, "{target:?}");
    }
}

/// The same with the rights list of the private segment. Without a list every member may write there.
#[test]
fn a_root_that_is_taken_away_deletes_no_rights_list() {
    let mut s = Neighbours::new();
    let (diary, [entry]) = s.diary();
    let before = diary.rights().unwrap();
    let mut list = roots_beside(&entry);
    list.object.slot = RIGHTS_SLOT;
    let shared = s.shared();
    let mut planter = Planter::new(&mut s.writer, &shared, Area::System);
    planter.begin_with(&Node::leaf("a", list));
    let removed = s.anna.open(SHARED).unwrap().set_root("a", None);
    assert_eq!(kind_of(removed), ErrorKind::DataDamaged);
    assert_eq!(kind_of(s.mallory.open(DIARY)), ErrorKind::NotFound);
    assert_eq!(diary.rights().unwrap(), before);
}

/// Plants nodes of which each names the next one twice: 42 nodes, and 2^41 ways to the leaf.
fn plant_lattice(s: &mut Neighbours, area: Area) {
    let shared = s.shared();
    let greeting = create(&shared, b"hello");
    let mut planter = Planter::new(&mut s.writer, &shared, area);
    let cell = planter.put(&greeting);
    let mut below = planter.put(&Node::leaf(&"x".repeat(500), cell));
    for _ in 0..40 {
        below = planter.put(&Node::inner("k", [below, below]));
    }
    planter.begin_with(&Node::inner("k", [below, below]));
}

fn assert_list_of_lattice_ends(area: Area, why: &str) {
    let mut s = Neighbours::new();
    plant_lattice(&mut s, area);
    let command = s.command_of_anna(&["root", "ls", SHARED]);
    let said = run_within(command, Duration::from_secs(20), 200);
    assert_eq!(said.code, 3, "{said:?}");
    assert!(said.err.contains(why), "{said:?}");
}

#[test]
fn roots_that_are_a_lattice_end() {
    assert_list_of_lattice_ends(Area::Objects, "an object that is none of theirs");
}

#[test]
fn roots_that_are_a_lattice_of_system_pages_end() {
    assert_list_of_lattice_ends(Area::System, "is no node of a tree map");
}

/// An asynchronous program could not even give up: nothing on the way waited.
#[test]
fn an_asynchronous_reader_of_a_lattice_comes_to_an_end() {
    for area in [Area::Objects, Area::System] {
        let mut s = Neighbours::new();
        plant_lattice(&mut s, area);
        let (sender, ended) = mpsc::channel();
        let anna = s.anna.clone();
        thread::spawn(move || {
            let read = runtime().block_on(async {
                let at = anna.open_async(SHARED).await?;
                let mut tx = anna.begin(Session::new());
                let reading = tx.roots_async(&at);
                let read = tokio::time::timeout(Duration::from_secs(2), reading).await;
                Ok::<_, thorp_client::Error>(read)
            });
            let _ = sender.send(read.unwrap());
        });
        let read = ended.recv_timeout(Duration::from_secs(15));
        let read = read.expect("a timeout of 2 s has ended it after 15 s");
        let read = read.expect("it ends within 2 s");
        assert_eq!(kind_of(read), ErrorKind::DataDamaged, "{area:?}");
    }
}

/// Whoever may write in a segment may set many roots. All their nodes are in the cache of the reader, so no node has to
/// come first, and nevertheless the reader pauses.
#[test]
fn an_asynchronous_reader_of_many_roots_can_give_up() {
    let s = Neighbours::new();
    let shared = s.shared();
    let greeting = create(&shared, b"hello");
    let set = s.mallory.transact(|tx| {
        (0..5_000).try_for_each(|n| tx.set_root(&shared, &format!("{n:05}"), Some(greeting)))
    });
    set.unwrap();
    let at_anna = s.anna.open(SHARED).unwrap();
    assert_eq!(at_anna.roots().unwrap().len(), 5_000);
    let mut tx = s.anna.begin(Session::new());
    let mut reading = pin!(tx.roots_async(&at_anna));
    let mut context = Context::from_waker(Waker::noop());
    let polled = reading.as_mut().poll(&mut context);
    assert!(polled.is_pending(), "the first poll has read all roots");
    let read = runtime().block_on(reading);
    assert_eq!(read.unwrap().len(), 5_000);
}

fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().unwrap()
}

/// Roots in the form of a list, which segments had before there was the map. The list is a large value. One commit makes
/// a map of it.
#[test]
fn a_list_of_before_does_not_keep_roots_from_being_set() {
    const NAMES: u32 = 20_000;
    let mut s = Neighbours::new();
    let shared = s.shared();
    let greeting = create(&shared, b"hello");
    let names = (0..NAMES).map(|n| (format!("{n:x}"), greeting));
    let list: BTreeMap<String, Reference> = names.collect();
    let staged = stage(&mut s.writer, shared.id(), &encoded(&list));
    let mut planter = Planter::new(&mut s.writer, &shared, Area::System);
    planter.begin(WriteOp::Create {
        generation: Generation(1),
        value: staged,
    });
    let at_anna = s.anna.open(SHARED).unwrap();
    at_anna.set_root("new", Some(greeting)).unwrap();
    let mut expected = list;
    expected.insert("new".to_owned(), greeting);
    let roots: BTreeMap<String, Reference> = at_anna.roots().unwrap().into_iter().collect();
    assert!(roots == expected, "{} roots", roots.len());
}

/// Stages a large value, piece after piece.
fn stage(writer: &mut Writer, segment: SegmentId, bytes: &[u8]) -> NewValue {
    let chunks: Vec<Blob> = bytes.chunks(OVERFLOW_CHUNK_BYTES).map(Blob::from).collect();
    let mut staged = None;
    for (number, some) in chunks.chunks(STAGE_PAGES_MAX).enumerate() {
        let told = writer.call(CallRequest::Stage {
            segment,
            registration: writer.registration,
            token: 77,
            bytes: bytes.len() as u64,
            index: (number * STAGE_PAGES_MAX) as u32,
            chunks: some.to_vec(),
        });
        match told {
            Ok(CallResponse::Staged(overflow)) => staged = Some(overflow),
            other => panic!("{other:?}"),
        }
    }
    NewValue::Staged(staged.unwrap())
}
