//! What a writer of a segment does to whoever loads a file into it, or puts a value to one of its roots.

use crate::neighbours::{ENTRY, Neighbours, SHARED, create};
use crate::processes::run_within;
use serde::Serialize;
use std::fs;
use std::time::Duration;
use thorp_client::{Reference, Segment};
use thorp_testing::Said;

/// How far a load has come, as `commands/load.rs` keeps it.
#[derive(Serialize)]
struct State {
    /// The bytes of the file, and their checksum.
    file: (u64, u32),
    made: u64,
    mended: u64,
    places: Vec<Reference>,
}

impl State {
    /// Mallory makes the segment, and the state of a load there that nobody began.
    fn plant(&self, shared: &Segment) {
        let at = create(shared, &encoded(self));
        shared.set_root(".load", Some(at)).unwrap();
    }
}

fn encoded(value: &impl Serialize) -> Vec<u8> {
    postcard::to_allocvec(value).unwrap()
}

/// A file that is known to all.
struct Public {
    path: String,
    /// What a state calls it.
    file: (u64, u32),
}

impl Public {
    fn new(s: &Neighbours, text: &str) -> Self {
        let path = s.dir.path().join("public.jsonl");
        fs::write(&path, text).unwrap();
        Public {
            path: path.display().to_string(),
            file: (text.len() as u64, crc32fast::hash(text.as_bytes())),
        }
    }

    fn words(&self) -> [&str; 3] {
        ["load", &self.path, SHARED]
    }
}

/// The command has read the state, and refuses it.
fn assert_refuses_state(said: &Said) {
    let refusal = format!("the state of the load of {SHARED} is damaged");
    assert!(said.code == 1 && said.err.contains(&refusal), "{said:?}");
}

/// Anna loads a public file at a path that mallory has taken first. By mallory's state the objects of that file are in
/// anna's private segment, and the load only has to write their references.
#[test]
fn a_load_writes_only_into_its_segment() {
    let s = Neighbours::new();
    let (_, entries) = s.diary::<2>();
    let text = "{\"thorp_dump\":1}\n{\"id\":1,\"value\":[{\"to\":2}]}\n{\"id\":2,\"text\":\"\"}\n{\"objects\":2}\n";
    let public = Public::new(&s, text);
    let shared = s.shared();
    let state = State {
        file: public.file,
        made: 2,
        mended: 0,
        places: vec![create(&shared, &encoded(&entries.to_vec()))],
    };
    state.plant(&shared);
    let said = s.anna_runs(&public.words());
    for entry in &entries {
        assert_eq!(s.anna_reads(entry).unwrap(), ENTRY, "{said:?}");
    }
    assert_refuses_state(&said);
}

/// The same of objects that the load deletes at its end. It deletes what is a list of references. An empty list has the
/// same bytes as a zero, as false and as an empty text.
#[test]
fn a_load_deletes_only_in_its_segment() {
    let s = Neighbours::new();
    let (diary, []) = s.diary();
    let entry = s
        .anna
        .transact(|tx| tx.create_typed(&diary, &String::new()));
    let entry = entry.unwrap();
    let public = Public::new(&s, "{\"thorp_dump\":1}\n{\"objects\":0}\n");
    let shared = s.shared();
    let state = State {
        file: public.file,
        made: 0,
        mended: 0,
        places: vec![entry.reference()],
    };
    state.plant(&shared);
    let said = s.anna_runs(&public.words());
    let now = s.anna.transact(|tx| tx.get(&entry));
    assert_eq!(now.unwrap(), "", "{said:?}");
    assert_refuses_state(&said);
}

/// `thorp put --root` replaces what a root names. Mallory's root names an object of anna's private segment.
#[test]
fn a_put_to_a_root_of_a_shared_segment_overwrites_no_private_object() {
    let s = Neighbours::new();
    let (_, [entry]) = s.diary();
    let shared = s.shared();
    shared.set_root("greeting", Some(entry)).unwrap();
    let said = s.anna_runs(&["put", SHARED, "--root", "greeting", "--text", "hello"]);
    assert_eq!(s.anna_reads(&entry).unwrap(), ENTRY, "{said:?}");
    let refusal = "which is no object of its segment";
    assert!(said.code == 1 && said.err.contains(refusal), "{said:?}");
}

/// A state of 7 KB names one list of 400,000 references 700 times. Whoever loads anything there would read 280 million
/// references.
#[test]
fn the_state_of_a_load_takes_no_memory_without_bound() {
    let s = Neighbours::new();
    let public = Public::new(
        &s,
        "{\"thorp_dump\":1}\n{\"id\":1,\"text\":\"\"}\n{\"objects\":1}\n",
    );
    let shared = s.shared();
    let one = create(&shared, b"x");
    let list = create(&shared, &encoded(&vec![one; 400_000]));
    let load = || {
        let command = s.command_of_anna(&public.words());
        run_within(command, Duration::from_secs(60), 300)
    };
    let mut state = State {
        file: (1, 1),
        made: 2,
        mended: 0,
        places: vec![list; 700],
    };
    state.plant(&shared);
    let said = load();
    let other = "was begun to be loaded from another file";
    assert!(said.code == 1 && said.err.contains(other), "{said:?}");
    // The same as the state of a load of this file.
    (state.file, state.made) = (public.file, 1);
    state.plant(&shared);
    assert_refuses_state(&load());
    state.places = vec![list];
    state.plant(&shared);
    assert_refuses_state(&load());
}
