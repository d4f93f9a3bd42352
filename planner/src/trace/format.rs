//! Which format a trace has.

use super::Wrong;
use super::plain::part;
use std::fmt;
use std::str::FromStr;

/// A format of traces; the module says what each is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// What Thorp's members record.
    Thorp,
    /// libCacheSim's oracleGeneral.
    Oracle,
    /// A table.
    Csv,
    /// An object a line.
    Lines,
    /// Little-endian u32.
    Packed,
}

impl Format {
    /// All of them.
    pub const ALL: [Format; 5] = [
        Format::Thorp,
        Format::Oracle,
        Format::Csv,
        Format::Lines,
        Format::Packed,
    ];

    fn name(self) -> &'static str {
        match self {
            Format::Thorp => "thorp",
            Format::Oracle => "oracle",
            Format::Csv => "csv",
            Format::Lines => "lines",
            Format::Packed => "packed",
        }
    }

    /// What it is, in words.
    pub fn words(self) -> &'static str {
        match self {
            Format::Thorp => "what members recorded",
            Format::Oracle => "libCacheSim's oracleGeneral",
            Format::Csv => "a table with columns",
            Format::Lines => "an object a line",
            Format::Packed => "packed 32-bit numbers",
        }
    }

    /// Guesses it from a file's name, without the ending of its compression, and what it begins with.
    pub(super) fn guess(name: &str, head: &[u8]) -> Result<Self, Wrong> {
        let name = name.to_ascii_lowercase();
        if name.contains("oraclegeneral") {
            return Ok(Format::Oracle);
        }
        if !is_text(head) {
            return binary(head);
        }
        let first = head
            .split(|&byte| byte == b'\n')
            .next()
            .unwrap_or(head)
            .trim_ascii();
        let is_table = name.ends_with(".csv")
            || name.ends_with(".tsv")
            || first.iter().any(|byte| b",;\t".contains(byte));
        Ok(match is_table {
            _ if first == HEAD.as_bytes() => Format::Thorp,
            true => Format::Csv,
            false => Format::Lines,
        })
    }
}

/// The first line of what members record.
pub(super) const HEAD: &str = "time_us,client,op,object,size";

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Format::ALL.iter().find(|format| format.name() == text);
        known.copied().ok_or_else(|| {
            let names: Vec<&str> = Format::ALL.iter().map(|format| format.name()).collect();
            format!("{text} is none of {}", names.join(", "))
        })
    }
}

fn is_text(head: &[u8]) -> bool {
    let is_printed = |byte: &u8| *byte >= b' ' && *byte != 0x7f || b"\t\r\n".contains(byte);
    head.iter().all(is_printed)
}

/// oracleGeneral where times do not go back and what is asked for again is so later; else numbers of 4 bytes.
fn binary(head: &[u8]) -> Result<Format, Wrong> {
    let records: Vec<&[u8]> = head.chunks_exact(24).take(1000).collect();
    let time = |record: &[u8]| u32::from_le_bytes(part(record, 0));
    let next = |record: &[u8]| i64::from_le_bytes(part(record, 16));
    let is_in_time = records
        .windows(2)
        .all(|pair| time(pair[0]) <= time(pair[1]));
    let is_later = (0..)
        .zip(&records)
        .all(|(at, record)| next(record) == -1 || next(record) > at);
    match !records.is_empty() && is_in_time && is_later {
        true => Ok(Format::Oracle),
        false if head.len() >= 4 => Ok(Format::Packed),
        false => Err(Wrong::whole(
            "is neither text nor long enough for a record; say which format it has",
        )),
    }
}
