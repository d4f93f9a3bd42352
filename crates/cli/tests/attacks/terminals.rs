//! Words of others that command the terminal of whoever reads them.

use crate::neighbours::{Neighbours, SHARED, create};
use crate::scene::creation;
use std::collections::BTreeMap;
use std::fs;
use thorp_model::{InvalidCommit, PageId, Refusal, Slot};
use thorp_testing::Said;

/// Neither output nor errors have characters that command a terminal.
fn assert_harmless(words: &[&str], said: &Said) {
    let commands = |c: char| c.is_control() && c != '\n';
    let texts = [&said.out, &said.err];
    let are_harmless = texts.iter().all(|text| !text.contains(commands));
    assert!(are_harmless, "{words:?}: {said:?}");
}

/// A list of roots from before there was a map may have names with control characters. The text of an object may have
/// them, too.
#[test]
fn names_of_roots_command_no_terminal() {
    const NAME: &str = "\u{1b}]0;pwned\u{7}\u{1b}[2J\nroot x = y \u{9b}31m";
    let mut s = Neighbours::new();
    let shared = s.shared();
    let object = create(&shared, NAME.as_bytes());
    let list = BTreeMap::from([(NAME.to_owned(), object)]);
    let list = postcard::to_allocvec(&list).unwrap();
    let page = PageId::new(shared.id().0, 0);
    s.writer.write(page, Slot(1), creation(&list)).unwrap();
    let commands: [(&[&str], i32); 6] = [
        (&["root", "ls", SHARED], 0),
        (&["root", "ls", SHARED, "--json"], 0),
        (&["inspect", SHARED], 0),
        (&["inspect", SHARED, "--json"], 0),
        (&["dump", SHARED], 0),
        (&["get", SHARED], 2),
    ];
    for (words, code) in commands {
        let said = s.anna_runs(words);
        assert_harmless(words, &said);
        assert_eq!(said.code, code, "{words:?}: {said:?}");
        // Each that succeeds has printed the name.
        assert_eq!(code == 0, said.out.contains("pwned"), "{words:?}: {said:?}");
    }
}

/// Somebody else made the file.
#[test]
fn a_dump_of_somebody_commands_no_terminal() {
    let s = Neighbours::new();
    let lines = [
        "{\"\\u001b]0;pwned\\u0007\":1}",
        "{\"root\":\"a\",\"to\":\"thorp://\\u001b]0;pwned\\u0007/x#1.0.1\"}",
        "{\"root\":\"\\u001b]0;pwned\\u0007\",\"to\":\"thorp://alps/x#1.0.1\"}",
        "{\"root\":\"a\",\"to\":\"thorp://alps/\\u001b]0;pwned\\u0007#1.0.1\"}",
        "{\"root\":\"a\",\"to\":\"\\u001b]0;pwned\\u0007\"}",
    ];
    for (number, line) in lines.into_iter().enumerate() {
        let file = s.dir.path().join(format!("d{number}.jsonl"));
        let text = format!("{{\"thorp_dump\":1}}\n{line}\n{{\"objects\":0}}\n");
        fs::write(&file, text).unwrap();
        let (file, name) = (
            file.display().to_string(),
            format!("thorp://alps/d{number}"),
        );
        let words = ["load", &file, &name];
        let said = s.anna_runs(&words);
        assert_harmless(&words, &said);
        assert_ne!(said.code, 0, "{line}: {said:?}");
    }
}

/// A home takes no such list. What `thorp rights` prints is the list of before.
#[test]
fn a_rights_list_commands_no_terminal() {
    let mut s = Neighbours::new();
    let shared = s.shared();
    for subject in ["\u{1b}]0;pwned\u{7}", "@\u{9b}31mx"] {
        let list = format!("admin mallory\nread @members\nwrite {subject}\n");
        let reason = InvalidCommit::BadRights;
        let refused = s.writer.restrict(shared.id(), &list);
        assert_eq!(refused, Err(Refusal::Invalid { reason }), "{list:?}");
    }
    let commands: [(&[&str], i32); 3] = [
        (&["rights", SHARED], 2),
        (&["rights", "ls", SHARED], 2),
        (&["rights", "show", SHARED], 0),
    ];
    for (words, code) in commands {
        let said = s.anna_runs(words);
        assert_harmless(words, &said);
        assert_eq!(said.code, code, "{words:?}: {said:?}");
    }
}
