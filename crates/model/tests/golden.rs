//! The bytes of every message, log record and image are those of the file
//! `golden/bytes.txt`: what travels and what is stored keeps its form.
//!
//! `THORP_BLESS=1` writes the file anew. A line of it may change only together
//! with a version: of the protocol, or of a home's records.

#[path = "golden/calls.rs"]
mod calls;
#[path = "golden/messages.rs"]
mod messages;
#[path = "golden/records.rs"]
mod records;
#[path = "golden/values.rs"]
mod values;

use serde::Serialize;
use std::fmt::Write as _;

/// A name and the bytes of one sample.
pub(crate) type Sample = (String, Vec<u8>);

/// The sample of a value that `postcard` encodes.
pub(crate) fn sample(name: &str, value: &impl Serialize) -> Sample {
    let bytes = postcard::to_allocvec(value).expect("samples encode");
    (name.to_owned(), bytes)
}

#[test]
fn bytes_are_as_before() {
    let samples = messages::all().into_iter().chain(records::all());
    let mut text = String::new();
    for (name, bytes) in samples {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let _ = writeln!(text, "{name}: {hex}");
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/bytes.txt");
    if std::env::var_os("THORP_BLESS").is_some() {
        std::fs::write(path, &text).expect("the file is written");
    }
    let before = std::fs::read_to_string(path).expect("the file is there");
    for (now, before) in text.lines().zip(before.lines()) {
        assert_eq!(now, before);
    }
    assert_eq!(text.lines().count(), before.lines().count());
}

/// What rules R6 and R9 cost on the wire, at most: 16 bytes for each page of a step and one for the list, and 96 for the
/// receipt before a commit's answer.
#[test]
fn digests_and_receipts_take_few_bytes() {
    for pages in [0, 1, 2, 100] {
        assert_eq!(messages::digest_bytes(pages), 16 * pages + 1);
    }
    let longest = messages::longest_receipt_bytes();
    assert!(longest <= 96, "{longest} bytes");
}
