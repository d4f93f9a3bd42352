//! What a writer of a segment does to those who use its roots.

use crate::common::thorp;
use crate::scene::{Writer, home_with, intrude, join};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use thorp_client::{Member, Reference};
use thorp_model::{
    Blob, Down, Generation, NewValue, PageId, PageWrites, Refusal, SegmentId, Slot, Subject, Up,
    WriteOp,
};

const MARK: [u8; 11] = [
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 1,
];

/// As `collections/node.rs` has it.
#[derive(serde::Serialize, serde::Deserialize, Debug)]
enum Node {
    Leaf(Vec<(String, Reference)>),
    Inner {
        keys: Vec<String>,
        below: Vec<Reference>,
    },
}

impl Node {
    fn bytes(&self) -> Vec<u8> {
        postcard::to_allocvec(self).unwrap()
    }

    fn root(&self) -> Vec<u8> {
        [&MARK[..], &self.bytes()].concat()
    }
}

pub(crate) fn commit(
    writer: &mut Writer,
    page: PageId,
    slot: u16,
    op: WriteOp,
) -> Result<(), Refusal> {
    let writes = PageWrites {
        page,
        slots: vec![(Slot(slot), op)],
    };
    let request = writer.request(Vec::new(), vec![writes]);
    let id = request.id;
    writer.intruder.send(Up::Commit(request));
    loop {
        match writer.intruder.hear() {
            Down::Step(step) if step.commit == Some(id) => return Ok(()),
            Down::Committed(committed) if committed.commit == id => return Ok(()),
            Down::Refused(refused) if refused.commit == id => return Err(refused.refusal),
            _ => {}
        }
    }
}

/// Writes the object in which the roots of a segment begin.
fn plant(writer: &mut Writer, segment: SegmentId, bytes: &[u8]) {
    let op = WriteOp::Create {
        generation: Generation(1),
        value: NewValue::Inline(Blob::from(bytes)),
    };
    commit(writer, PageId::new(segment.0, 0), 1, op).unwrap();
}

fn roots_object(of: &Reference) -> Reference {
    let mut at = *of;
    at.object.page.page.0 = 0;
    at.object.slot = Slot(1);
    at.generation = Generation(1);
    at.offset = 0;
    at
}

struct Scene {
    dir: tempfile::TempDir,
    home: thorp_testing::HomeProcess,
    anna: Member,
    mallory: Member,
    writer: Writer,
}

fn scene() -> Scene {
    let dir = tempfile::tempdir().unwrap();
    let home = home_with(dir.path(), &[("anna", "member"), ("mallory", "member")]);
    let anna = join(dir.path(), "anna", &home.via);
    let mallory = join(dir.path(), "mallory", &home.via);
    let writer = Writer::new(intrude(dir.path(), "mallory", &home.via));
    Scene {
        dir,
        home,
        anna,
        mallory,
        writer,
    }
}

/// Anna takes a root of a shared segment away. Mallory gets the names of the roots of anna's private segment, which are
/// gone there.
#[test]
fn a_root_that_is_taken_away_moves_no_private_roots() {
    let mut s = scene();
    let diary = s.anna.create("thorp://alps/diary").unwrap();
    diary.revoke(&Subject::Members).unwrap();
    let entry = s
        .anna
        .transact(|tx| tx.create(&diary, "dear diary"))
        .unwrap();
    diary.set_root("secret-merger", Some(entry)).unwrap();
    assert!(
        s.mallory.open("thorp://alps/diary").is_err(),
        "it is private"
    );

    let shared = s.mallory.create("thorp://alps/shared").unwrap();
    let greeting = s
        .mallory
        .transact(|tx| tx.create(&shared, "hello"))
        .unwrap();
    let cell = postcard::to_allocvec(&greeting).unwrap();
    let cell = s
        .mallory
        .transact(|tx| tx.create(&shared, cell.clone()))
        .unwrap();
    let leaf = Node::Leaf(vec![("a".to_owned(), cell)]).bytes();
    let leaf = s
        .mallory
        .transact(|tx| tx.create(&shared, leaf.clone()))
        .unwrap();
    let root = Node::Inner {
        keys: vec!["m".to_owned()],
        below: vec![leaf, roots_object(&entry)],
    };
    plant(&mut s.writer, shared.id(), &root.root());

    let at_anna = s.anna.open("thorp://alps/shared").unwrap();
    // `thorp root rm thorp://alps/shared a`
    let removed = at_anna.set_root("a", None);
    println!("anna removes a root of the shared segment: {removed:?}");
    let seen = s
        .mallory
        .transact(|tx| tx.read(&roots_object(&cell)).map(|b| b.to_vec()));
    let seen = seen.unwrap();
    println!("mallory reads {}", String::from_utf8_lossy(&seen));
    let left = diary.roots();
    println!("the roots of the diary: {left:?}");
    let leaked = seen.windows(13).any(|part| part == b"secret-merger");
    assert!(
        !leaked && left.as_ref().is_ok_and(|left| left.len() == 1),
        "leaked: {leaked}; roots of the diary: {left:?}"
    );
}

/// Anna sets a root of a shared segment: an object of hers in a private segment is overwritten.
#[test]
fn a_root_that_is_set_overwrites_no_private_object() {
    let mut s = scene();
    let diary = s.anna.create("thorp://alps/diary").unwrap();
    diary.revoke(&Subject::Members).unwrap();
    let entry = s
        .anna
        .transact(|tx| tx.create(&diary, "dear diary"))
        .unwrap();
    let shared = s.mallory.create("thorp://alps/shared").unwrap();
    plant(
        &mut s.writer,
        shared.id(),
        &Node::Leaf(vec![("a".to_owned(), entry)]).root(),
    );
    let at_anna = s.anna.open("thorp://alps/shared").unwrap();
    let own = s.anna.transact(|tx| tx.create(&at_anna, "hello")).unwrap();
    let set = at_anna.set_root("a", Some(own));
    println!("anna sets a root of the shared segment: {set:?}");
    let now = s.anna.transact(|tx| tx.read(&entry).map(|b| b.to_vec()));
    println!("the diary: {now:?}");
    let removed = at_anna.set_root("a", None);
    println!("anna removes it: {removed:?}");
    let then = s.anna.transact(|tx| tx.read(&entry).map(|b| b.to_vec()));
    println!("the diary: {then:?}");
    assert_eq!(now.ok(), Some(b"dear diary".to_vec()));
}

/// The same with the rights list of her private segment.
#[test]
fn a_root_that_is_taken_away_deletes_no_rights_list() {
    let mut s = scene();
    let diary = s.anna.create("thorp://alps/diary").unwrap();
    diary.revoke(&Subject::Members).unwrap();
    let entry = s
        .anna
        .transact(|tx| tx.create(&diary, "dear diary"))
        .unwrap();
    let mut list = roots_object(&entry);
    list.object.slot = thorp_model::RIGHTS_SLOT;
    let shared = s.mallory.create("thorp://alps/shared").unwrap();
    plant(
        &mut s.writer,
        shared.id(),
        &Node::Leaf(vec![("a".to_owned(), list)]).root(),
    );
    let at_anna = s.anna.open("thorp://alps/shared").unwrap();
    let removed = at_anna.set_root("a", None);
    println!("{removed:?}");
    let opened = s.mallory.open("thorp://alps/diary").map(drop);
    println!("{opened:?}");
    assert!(opened.is_err());
}

/// Nodes that share nodes below: 2^40 leaves.
#[test]
fn roots_that_are_a_lattice_end() {
    let mut s = scene();
    let shared = s.mallory.create("thorp://alps/shared").unwrap();
    let greeting = s
        .mallory
        .transact(|tx| tx.create(&shared, "hello"))
        .unwrap();
    let cell = postcard::to_allocvec(&greeting).unwrap();
    let cell = s
        .mallory
        .transact(|tx| tx.create(&shared, cell.clone()))
        .unwrap();
    let leaf = Node::Leaf(vec![("x".repeat(500), cell)]).bytes();
    let mut below = s
        .mallory
        .transact(|tx| tx.create(&shared, leaf.clone()))
        .unwrap();
    for _ in 0..40 {
        let node = Node::Inner {
            keys: vec!["k".to_owned()],
            below: vec![below, below],
        };
        below = s
            .mallory
            .transact(|tx| tx.create(&shared, node.bytes()))
            .unwrap();
    }
    let root = Node::Inner {
        keys: vec!["k".to_owned()],
        below: vec![below, below],
    };
    plant(&mut s.writer, shared.id(), &root.root());
    let identity = s.dir.path().join("anna").display().to_string();
    let mut command = thorp().command(&[
        "root",
        "ls",
        "thorp://alps/shared",
        "--via",
        &s.home.via,
        "--identity",
        &identity,
    ]);
    command.stdout(std::process::Stdio::null());
    let mut child = command.spawn().unwrap();
    let begun = Instant::now();
    let mut grown = Vec::new();
    let ended = loop {
        if let Some(ended) = child.try_wait().unwrap() {
            break Some(ended);
        }
        if begun.elapsed() > Duration::from_secs(20) {
            break None;
        }
        std::thread::sleep(Duration::from_secs(2));
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id()));
        let status = status.unwrap_or_default();
        let rss = status
            .lines()
            .find(|l| l.starts_with("VmRSS"))
            .map(str::to_owned);
        grown.push(rss);
    };
    if ended.is_none() {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    println!("{grown:?}");
    assert!(
        ended.is_some(),
        "`thorp root ls` has not ended after 20 s: {grown:?}"
    );
}

/// Names of roots in the list of before may have control characters.
#[test]
fn names_of_roots_command_no_terminal() {
    let mut s = scene();
    let shared = s.mallory.create("thorp://alps/shared").unwrap();
    let greeting = s
        .mallory
        .transact(|tx| tx.create(&shared, "hello"))
        .unwrap();
    let mut list = BTreeMap::new();
    list.insert(
        "\u{1b}]0;pwned\u{7}\u{1b}[2J\nroot x = y \u{9b}31m".to_owned(),
        greeting,
    );
    plant(
        &mut s.writer,
        shared.id(),
        &postcard::to_allocvec(&list).unwrap(),
    );
    let identity = s.dir.path().join("anna").display().to_string();
    let name = "thorp://alps/shared";
    let mut bad = Vec::new();
    let commands: [&[&str]; 6] = [
        &["root", "ls", name],
        &["root", "ls", name, "--json"],
        &["inspect", name],
        &["inspect", name, "--json"],
        &["dump", name],
        &["get", name],
    ];
    for words in commands {
        let said = thorp().run(&[words, &["--via", &s.home.via, "--identity", &identity]].concat());
        println!("{words:?}: {} {:?} {:?}", said.code, said.out, said.err);
        let controls = |text: &str| text.chars().any(|c| c.is_control() && c != '\n');
        if controls(&said.out) || controls(&said.err) {
            bad.push(words);
        }
    }
    assert!(bad.is_empty(), "control characters from {bad:?}");
}

#[derive(serde::Serialize)]
struct State {
    file: (u64, u32),
    made: u64,
    mended: u64,
    places: Vec<Reference>,
}

/// Anna loads a file that is known, at a path that mallory has taken first. Her private objects are overwritten.
#[test]
fn a_load_writes_only_into_its_segment() {
    let s = scene();
    let diary = s.anna.create("thorp://alps/diary").unwrap();
    diary.revoke(&Subject::Members).unwrap();
    let entries: Vec<Reference> = (0..2)
        .map(|_| {
            s.anna
                .transact(|tx| tx.create(&diary, "dear diary"))
                .unwrap()
        })
        .collect();
    let file = s.dir.path().join("public.jsonl");
    let text = "{\"thorp_dump\":1}\n{\"id\":1,\"value\":[{\"to\":2}]}\n{\"id\":2,\"text\":\"\"}\n{\"objects\":2}\n";
    std::fs::write(&file, text).unwrap();
    let mut sum = crc32fast::Hasher::new();
    sum.update(text.as_bytes());

    let shared = s.mallory.create("thorp://alps/copies").unwrap();
    let places = postcard::to_allocvec(&entries).unwrap();
    let places = s
        .mallory
        .transact(|tx| tx.create(&shared, places.clone()))
        .unwrap();
    let state = State {
        file: (text.len() as u64, sum.finalize()),
        made: 2,
        mended: 0,
        places: vec![places],
    };
    let state = postcard::to_allocvec(&state).unwrap();
    let at = s
        .mallory
        .transact(|tx| tx.create(&shared, state.clone()))
        .unwrap();
    shared.set_root(".load", Some(at)).unwrap();

    let identity = s.dir.path().join("anna").display().to_string();
    let file = file.display().to_string();
    let said = thorp().run(&[
        "load",
        &file,
        "thorp://alps/copies",
        "--via",
        &s.home.via,
        "--identity",
        &identity,
    ]);
    println!("{} {:?} {:?}", said.code, said.out, said.err);
    let now: Vec<_> = entries
        .iter()
        .map(|entry| {
            s.anna
                .transact(|tx| tx.read(entry).map(|b| b.to_vec()))
                .ok()
        })
        .collect();
    println!("{now:?}");
    assert_eq!(now, vec![Some(b"dear diary".to_vec()); 2]);
}

/// The same, of objects that the load deletes at its end: anything that is a list of references, also of none.
#[test]
fn a_load_deletes_only_in_its_segment() {
    let s = scene();
    let diary = s.anna.create("thorp://alps/diary").unwrap();
    diary.revoke(&Subject::Members).unwrap();
    // An empty list, or a zero, or false, or an empty text.
    let entry = s
        .anna
        .transact(|tx| tx.create_typed(&diary, &String::new()))
        .unwrap();
    let file = s.dir.path().join("public.jsonl");
    let text = "{\"thorp_dump\":1}\n{\"objects\":0}\n";
    std::fs::write(&file, text).unwrap();
    let mut sum = crc32fast::Hasher::new();
    sum.update(text.as_bytes());
    let shared = s.mallory.create("thorp://alps/copies").unwrap();
    let state = State {
        file: (text.len() as u64, sum.finalize()),
        made: 0,
        mended: 0,
        places: vec![entry.reference()],
    };
    let state = postcard::to_allocvec(&state).unwrap();
    let at = s
        .mallory
        .transact(|tx| tx.create(&shared, state.clone()))
        .unwrap();
    shared.set_root(".load", Some(at)).unwrap();
    let identity = s.dir.path().join("anna").display().to_string();
    let file = file.display().to_string();
    let said = thorp().run(&[
        "load",
        &file,
        "thorp://alps/copies",
        "--via",
        &s.home.via,
        "--identity",
        &identity,
    ]);
    println!("{} {:?} {:?}", said.code, said.out, said.err);
    let now = s.anna.transact(|tx| tx.get(&entry));
    assert!(now.is_ok(), "{now:?}");
}

/// `thorp put --root` replaces what a root names, wherever that is.
#[test]
fn a_put_to_a_root_of_a_shared_segment_overwrites_no_private_object() {
    let s = scene();
    let diary = s.anna.create("thorp://alps/diary").unwrap();
    diary.revoke(&Subject::Members).unwrap();
    let entry = s
        .anna
        .transact(|tx| tx.create(&diary, "dear diary"))
        .unwrap();
    let shared = s.mallory.create("thorp://alps/shared").unwrap();
    shared.set_root("greeting", Some(entry)).unwrap();
    let identity = s.dir.path().join("anna").display().to_string();
    let said = thorp().run(&[
        "put",
        "thorp://alps/shared",
        "--root",
        "greeting",
        "--text",
        "hello",
        "--via",
        &s.home.via,
        "--identity",
        &identity,
    ]);
    println!("{} {:?} {:?}", said.code, said.out, said.err);
    let now = s
        .anna
        .transact(|tx| tx.read(&entry).map(|b| b.to_vec()))
        .unwrap();
    assert_eq!(String::from_utf8(now).unwrap(), "dear diary");
}

/// The state of a load that nobody began: a few KiB make whoever loads anything there take memory without bound.
#[test]
fn the_state_of_a_load_takes_no_memory_without_bound() {
    let s = scene();
    let shared = s.mallory.create("thorp://alps/copies").unwrap();
    let one = s.mallory.transact(|tx| tx.create(&shared, "x")).unwrap();
    let many = postcard::to_allocvec(&vec![one; 400_000]).unwrap();
    println!("{} bytes in a list", many.len());
    let many = s
        .mallory
        .transact(|tx| tx.create(&shared, many.clone()))
        .unwrap();
    let state = State {
        file: (1, 1),
        made: 2,
        mended: 0,
        places: vec![many; 700],
    };
    let state = postcard::to_allocvec(&state).unwrap();
    println!("{} bytes of state", state.len());
    let at = s
        .mallory
        .transact(|tx| tx.create(&shared, state.clone()))
        .unwrap();
    shared.set_root(".load", Some(at)).unwrap();
    let file = s.dir.path().join("own.jsonl");
    std::fs::write(
        &file,
        "{\"thorp_dump\":1}\n{\"id\":1,\"text\":\"\"}\n{\"objects\":1}\n",
    )
    .unwrap();
    let identity = s.dir.path().join("anna").display().to_string();
    let mut command = thorp().command(&[
        "load",
        file.to_str().unwrap(),
        "thorp://alps/copies",
        "--via",
        &s.home.via,
        "--identity",
        &identity,
    ]);
    command.stdout(std::process::Stdio::null());
    let mut child = command.spawn().unwrap();
    let begun = Instant::now();
    let mut most = 0;
    while child.try_wait().unwrap().is_none()
        && begun.elapsed() < Duration::from_secs(60)
        && most < 1_500_000
    {
        std::thread::sleep(Duration::from_millis(200));
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let rss = status
            .lines()
            .find(|l| l.starts_with("VmRSS"))
            .unwrap_or("VmRSS: 0 kB");
        most = most.max(
            rss.split_whitespace()
                .nth(1)
                .unwrap()
                .parse::<u64>()
                .unwrap(),
        );
    }
    let _ = child.kill();
    child.wait().unwrap();
    println!("{most} KiB after {:?}", begun.elapsed());
    assert!(most < 300_000, "{most} KiB");
}

/// A dump that somebody else made.
#[test]
fn a_dump_of_somebody_commands_no_terminal() {
    let s = scene();
    let identity = s.dir.path().join("anna").display().to_string();
    let mut bad = Vec::new();
    for (number, text) in [
        "{\"thorp_dump\":1}\n{\"\\u001b]0;pwned\\u0007\":1}\n{\"objects\":0}\n",
        "{\"thorp_dump\":1}\n{\"root\":\"a\",\"to\":\"thorp://\\u001b]0;pwned\\u0007/x#1.0.1\"}\n{\"objects\":0}\n",
        "{\"thorp_dump\":1}\n{\"root\":\"\\u001b]0;pwned\\u0007\",\"to\":\"thorp://alps/x#1.0.1\"}\n{\"objects\":0}\n",
        "{\"thorp_dump\":1}\n{\"root\":\"a\",\"to\":\"thorp://alps/\\u001b]0;pwned\\u0007#1.0.1\"}\n{\"objects\":0}\n",
        "{\"thorp_dump\":1}\n{\"root\":\"a\",\"to\":\"\\u001b]0;pwned\\u0007\"}\n{\"objects\":0}\n",
    ].iter().enumerate() {
        let file = s.dir.path().join(format!("d{number}.jsonl"));
        std::fs::write(&file, text).unwrap();
        let name = format!("thorp://alps/d{number}");
        let said = thorp().run(&[
            "load", file.to_str().unwrap(), &name, "--via", &s.home.via, "--identity", &identity,
        ]);
        println!("{number}: {} {:?} {:?}", said.code, said.out, said.err);
        if said.out.contains('\u{1b}') || said.err.contains('\u{1b}') {
            bad.push(number);
        }
    }
    assert!(bad.is_empty(), "{bad:?}");
}

#[test]
fn a_rights_list_commands_no_terminal() {
    let mut s = scene();
    let shared = s.mallory.create("thorp://alps/shared").unwrap();
    let did = s.writer.restrict(
        shared.id(),
        "admin mallory\nread @members\nwrite \u{1b}]0;pwned\u{7}\n",
    );
    println!("{did:?}");
    let did = s.writer.restrict(
        shared.id(),
        "admin mallory\nread @members\nwrite @\u{9b}31mx\n",
    );
    println!("{did:?}");
    let identity = s.dir.path().join("anna").display().to_string();
    let mut bad = Vec::new();
    for words in [
        &["rights", "thorp://alps/shared"][..],
        &["rights", "ls", "thorp://alps/shared"],
        &["rights", "show", "thorp://alps/shared"],
    ] {
        let said = thorp().run(&[words, &["--via", &s.home.via, "--identity", &identity]].concat());
        println!("{words:?} {} {:?} {:?}", said.code, said.out, said.err);
        if said.out.chars().any(|c| c.is_control() && c != '\n') {
            bad.push(words);
        }
    }
    assert!(bad.is_empty(), "{bad:?}");
}

/// The old form of the roots, large enough never to become a map.
#[test]
fn a_list_of_before_does_not_keep_roots_from_being_set() {
    let mut s = scene();
    let shared = s.mallory.create("thorp://alps/shared").unwrap();
    let one = s.mallory.transact(|tx| tx.create(&shared, "x")).unwrap();
    // Below LIST_TURNED_BYTES_MAX, as many names as fit. It has to be a staged value for its size.
    let mut list = BTreeMap::new();
    for n in 0..20_000_u32 {
        list.insert(format!("{n:x}"), one);
    }
    let bytes = postcard::to_allocvec(&list).unwrap();
    println!("{} bytes", bytes.len());
    let registration = s.writer.registration;
    let mut overflow = None;
    let chunks: Vec<Blob> = bytes
        .chunks(thorp_model::limits::OVERFLOW_CHUNK_BYTES)
        .map(Blob::from)
        .collect();
    for (number, some) in chunks
        .chunks(thorp_model::limits::STAGE_PAGES_MAX)
        .enumerate()
    {
        let told = s.writer.intruder.call(thorp_model::CallRequest::Stage {
            segment: shared.id(),
            registration,
            token: 77,
            bytes: bytes.len() as u64,
            index: (number * thorp_model::limits::STAGE_PAGES_MAX) as u32,
            chunks: some.to_vec(),
        });
        match told {
            Down::CallResult(thorp_model::message::CallResult {
                result: Ok(thorp_model::CallResponse::Staged(o)),
                ..
            }) => overflow = Some(o),
            other => panic!("{other:?}"),
        }
    }
    let op = WriteOp::Create {
        generation: Generation(1),
        value: NewValue::Staged(overflow.unwrap()),
    };
    commit(&mut s.writer, PageId::new(shared.id().0, 0), 1, op).unwrap();
    let at_anna = s.anna.open("thorp://alps/shared").unwrap();
    let begun = Instant::now();
    let set = at_anna.set_root("new", Some(one));
    println!("{set:?} after {:?}", begun.elapsed());
    assert!(set.is_ok());
}

/// An asynchronous program cannot even give up: nothing on the way waits.
#[test]
fn an_asynchronous_reader_of_a_lattice_can_give_up() {
    let mut s = scene();
    let shared = s.mallory.create("thorp://alps/shared").unwrap();
    let leaf = Node::Leaf(Vec::new()).bytes();
    let mut below = s
        .mallory
        .transact(|tx| tx.create(&shared, leaf.clone()))
        .unwrap();
    for _ in 0..40 {
        let node = Node::Inner {
            keys: vec!["k".to_owned()],
            below: vec![below, below],
        };
        below = s
            .mallory
            .transact(|tx| tx.create(&shared, node.bytes()))
            .unwrap();
    }
    let root = Node::Inner {
        keys: vec!["k".to_owned()],
        below: vec![below, below],
    };
    plant(&mut s.writer, shared.id(), &root.root());
    let (sender, ended) = std::sync::mpsc::channel();
    let anna = s.anna.clone();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let told = runtime.block_on(async {
            let at = anna.open_async("thorp://alps/shared").await.unwrap();
            let mut tx = anna.begin(thorp_client::Session::new());
            let reading = tx.roots_async(&at);
            tokio::time::timeout(Duration::from_secs(2), reading)
                .await
                .is_err()
        });
        let _ = sender.send(told);
    });
    let told = ended.recv_timeout(Duration::from_secs(15));
    println!("{told:?}");
    assert!(told.is_ok(), "a timeout of 2 s has not ended it after 15 s");
}
