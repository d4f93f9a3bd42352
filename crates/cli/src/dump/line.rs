//! One line of a dump.

use super::{Piece, VERSION};
use crate::text;
use serde::{Deserialize, Serialize};

/// What a line says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Line {
    /// The first one.
    Head,
    /// An object and its bytes.
    Object(u64, Value),
    /// A named root.
    Root(String, Target),
    /// The last one: how many objects there are.
    End(u64),
}

/// The bytes of an object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Value {
    Text(String),
    Pieces(Vec<Piece>),
}

/// What a root names.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
#[serde(untagged)]
pub(crate) enum Target {
    /// An object of the dump.
    Id(u64),
    /// An object of another segment.
    Name(String),
}

/// A line as JSON has it.
#[derive(Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Raw {
    #[serde(skip_serializing_if = "Option::is_none")]
    thorp_dump: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Vec<Piece>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<Target>,
    #[serde(skip_serializing_if = "Option::is_none")]
    objects: Option<u64>,
}

impl Line {
    /// The line of an object. What is text and refers to nothing is written as such.
    pub(crate) fn object(id: u64, bytes: &[u8], pieces: Vec<Piece>) -> Line {
        let refers = pieces.iter().any(|piece| matches!(piece, Piece::To { .. }));
        match str::from_utf8(bytes) {
            Ok(text) if !refers => Line::Object(id, Value::Text(text.to_owned())),
            _ => Line::Object(id, Value::Pieces(pieces)),
        }
    }

    /// What a line says, or what is wrong with it, for a person.
    pub(crate) fn parse(text: &[u8]) -> Result<Line, String> {
        let raw: Raw = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        match raw {
            Raw {
                thorp_dump: Some(VERSION),
                id: None,
                root: None,
                objects: None,
                ..
            } => Ok(Line::Head),
            Raw {
                thorp_dump: Some(other),
                ..
            } => Err(format!(
                "it is a dump of version {other}, and this thorp reads {VERSION}"
            )),
            Raw {
                id: Some(id),
                text: Some(text),
                value: None,
                root: None,
                ..
            } => Ok(Line::Object(id, Value::Text(text))),
            Raw {
                id: Some(id),
                text: None,
                value: Some(pieces),
                root: None,
                ..
            } => Ok(Line::Object(id, Value::Pieces(pieces))),
            Raw {
                id: None,
                root: Some(root),
                to: Some(to),
                ..
            } => Ok(Line::Root(root, to)),
            Raw {
                id: None,
                root: None,
                objects: Some(objects),
                ..
            } => Ok(Line::End(objects)),
            _ => Err(
                "it is neither an object, nor a root, nor the first or the last line".to_owned(),
            ),
        }
    }

    /// The line as JSON, in which no character commands a terminal.
    pub(crate) fn print(&self) -> Result<String, serde_json::Error> {
        let mut raw = Raw::default();
        match self.clone() {
            Line::Head => raw.thorp_dump = Some(VERSION),
            Line::Object(id, Value::Text(text)) => (raw.id, raw.text) = (Some(id), Some(text)),
            Line::Object(id, Value::Pieces(pieces)) => {
                (raw.id, raw.value) = (Some(id), Some(pieces));
            }
            Line::Root(root, to) => (raw.root, raw.to) = (Some(root), Some(to)),
            Line::End(objects) => raw.objects = Some(objects),
        }
        serde_json::to_string(&raw).map(|line| text::json(&line))
    }
}

impl Value {
    /// The objects that it refers to.
    pub(crate) fn refers_to(&self) -> impl Iterator<Item = u64> {
        let pieces = match self {
            Value::Text(_) => &[][..],
            Value::Pieces(pieces) => pieces,
        };
        pieces.iter().filter_map(|piece| match piece {
            Piece::To { to, .. } => Some(*to),
            Piece::Hex(_) => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_printed_is_read_again() {
        let pieces = vec![
            Piece::Hex("00ff".to_owned()),
            Piece::To { to: 2, offset: 9 },
        ];
        let lines = [
            (Line::Head, r#"{"thorp_dump":1}"#),
            (
                Line::object(1, b"hi", Vec::new()),
                r#"{"id":1,"text":"hi"}"#,
            ),
            (
                Line::object(2, b"", pieces),
                r#"{"id":2,"value":["00ff",{"to":2,"offset":9}]}"#,
            ),
            (
                Line::Root("a".to_owned(), Target::Id(1)),
                r#"{"root":"a","to":1}"#,
            ),
            (Line::End(2), r#"{"objects":2}"#),
        ];
        for (line, text) in lines {
            assert_eq!(line.print().unwrap(), text);
            assert_eq!(Line::parse(text.as_bytes()), Ok(line));
        }
    }

    #[test]
    fn a_broken_line_says_what_is_wrong() {
        let why = |text: &str| Line::parse(text.as_bytes()).unwrap_err();
        assert!(why("{\"id\":1").contains("EOF"));
        assert!(why("{\"id\":1}").contains("neither"));
        assert!(why("{\"thorp_dump\":9}").contains("version 9"));
        assert!(why("{\"id\":1,\"txt\":\"\"}").contains("txt"));
        assert!(why("{\"id\":1,\"text\":\"\",\"value\":[]}").contains("neither"));
    }
}
