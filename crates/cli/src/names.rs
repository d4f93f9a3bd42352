//! Names on the command line: a malformed one is found before a command joins. And names of what a command has found.

use std::sync::OnceLock;
use thorp_client::{
    Error, ErrorKind, Member, Reference, check_object_name, check_prefix, check_segment_name,
};

/// What people call the object that a root names. None: its segment is not there any more, or this node may not read
/// it.
pub(crate) fn of_root(member: &Member, reference: &Reference) -> Result<Option<String>, Error> {
    match member.format(reference) {
        Ok(name) => Ok(Some(name)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// What is shown in place of such a name.
pub(crate) const NO_SEGMENT: &str = "an object of a segment that is not there";

/// `thorp://HOME/path`.
pub(crate) fn segment(text: &str) -> Result<String, String> {
    let text = &whole(text);
    named(text, check_segment_name(text))
}

/// `thorp://HOME/path`, or `thorp://HOME/path#PAGE.SLOT.GENERATION`.
pub(crate) fn segment_or_object(text: &str) -> Result<String, String> {
    let text = &whole(text);
    let checked = match text.contains('#') {
        true => check_object_name(text),
        false => check_segment_name(text),
    };
    named(text, checked)
}

/// `thorp://HOME/beginning-of-path`.
pub(crate) fn prefix(text: &str) -> Result<String, String> {
    let text = &whole(text);
    named(text, check_prefix(text))
}

/// From now on relative names begin there, in this process.
pub(crate) fn begin_at(place: &str) {
    // It is done once.
    let _ = PLACE.set(place.to_owned());
}

fn whole(text: &str) -> String {
    match PLACE.get() {
        Some(place) => from_place(place, text),
        None => text.to_owned(),
    }
}

/// A name that may be relative to a place: `#1.0.1`, `path`, `.`, `..`, or `/path` at the place's home.
pub(crate) fn from_place(place: &str, text: &str) -> String {
    let Some(rest) = place.strip_prefix(SCHEME) else {
        return text.to_owned();
    };
    if text.is_empty() || text.starts_with(SCHEME) {
        return text.to_owned();
    }
    let (path, object) = text.split_at(text.find('#').unwrap_or(text.len()));
    let mut parts = rest.split('/').filter(|part| !part.is_empty());
    let home = parts.next().unwrap_or_default();
    let mut parts: Vec<&str> = match path.starts_with('/') {
        true => Vec::new(),
        false => parts.collect(),
    };
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.insert(0, home);
    format!("{SCHEME}{}{object}", parts.join("/"))
}

static PLACE: OnceLock<String> = OnceLock::new();

const SCHEME: &str = "thorp://";

/// What is wrong, and what to do.
fn named(text: &str, checked: Result<(), Error>) -> Result<String, String> {
    match checked {
        Ok(()) => Ok(text.to_owned()),
        Err(error) => Err(format!("{error}\n  -> {}", error.advice())),
    }
}

/// The name of a file where a segment's would be easily given instead.
pub(crate) fn file(text: &str) -> Result<std::path::PathBuf, String> {
    match text.starts_with("thorp://") {
        true => Err("this is a segment, and here goes a file\n  -> swap the two".to_owned()),
        false => Ok(text.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_begin_at_a_place() {
        for (place, text, wanted) in [
            ("thorp://dev/notes", "#1.0.1", "thorp://dev/notes#1.0.1"),
            ("thorp://dev/notes", ".", "thorp://dev/notes"),
            ("thorp://dev/notes", "x", "thorp://dev/notes/x"),
            ("thorp://dev/notes", "x#1.0.1", "thorp://dev/notes/x#1.0.1"),
            ("thorp://dev/notes", "..", "thorp://dev"),
            ("thorp://dev/notes", "../plans", "thorp://dev/plans"),
            ("thorp://dev/notes", "../../..", "thorp://dev"),
            ("thorp://dev/a/b", "/c", "thorp://dev/c"),
            ("thorp://dev/a/b", "..#1.0.1", "thorp://dev/a#1.0.1"),
            ("thorp://dev", "a/b", "thorp://dev/a/b"),
            ("thorp://dev/", "a", "thorp://dev/a"),
            ("thorp://dev", "thorp://alps/x", "thorp://alps/x"),
        ] {
            assert_eq!(from_place(place, text), wanted, "{text} at {place}");
        }
    }

    #[test]
    fn what_is_no_name_is_found_at_once() {
        assert!(segment("thorp://alps/notes").is_ok());
        assert!(segment("thorp://alps/notes#1.2.3").is_err());
        assert!(segment_or_object("thorp://alps/notes#1.2.3").is_ok());
        assert!(prefix("thorp://alps").is_ok());
        for wrong in ["notaurl", "alps", "thorp://", "thorp://alps/x#1.2"] {
            assert!(segment_or_object(wrong).is_err(), "{wrong}");
        }
        assert!(prefix("alps").is_err() && file("thorp://alps/x").is_err());
        assert!(file("-").is_ok() && file("house.ifc").is_ok());
    }
}
