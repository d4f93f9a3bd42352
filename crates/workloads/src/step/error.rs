//! What is wrong with a STEP file, and where.

use std::fmt;

use super::{EntityId, NESTING_MAX};

/// A malformed STEP file: the first thing found wrong with it and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepError {
    /// Line, counted from 1.
    pub line: usize,
    /// Column in bytes, counted from 1.
    pub column: usize,
    /// What was found there.
    pub reason: Reason,
}

/// The ways in which a STEP file can be malformed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The file holds nothing, or only blanks and comments.
    EmptyFile,
    /// The file does not begin with `ISO-10303-21;`.
    NotStep,
    /// No `HEADER;` where it has to be.
    MissingHeader,
    /// No `DATA` section after the header.
    MissingData,
    /// A section goes on without the `ENDSEC;` that ends it.
    MissingEndsec,
    /// No `END-ISO-10303-21;` after the last section.
    MissingEndMarker,
    /// The file ends in the middle of something.
    Truncated,
    /// Something follows the end marker.
    TrailingData,
    /// A string, beginning here, has no closing apostrophe.
    UnterminatedString,
    /// A comment, beginning here, has no end.
    UnterminatedComment,
    /// A binary value, beginning here, has no closing quotation mark.
    UnterminatedBinary,
    /// A statement does not end in a semicolon.
    MissingSemicolon,
    /// An entity number was used before.
    DuplicateId(EntityId),
    /// A reference to an entity that the file does not define.
    DanglingReference(EntityId),
    /// An entity number that is zero or does not fit 64 bits.
    BadId,
    /// A number that is not spelled as an integer or a real.
    BadNumber,
    /// A byte that cannot stand here.
    GarbageByte(u8),
    /// Lists and typed parameters lie deeper in each other than [`NESTING_MAX`].
    NestingTooDeep,
    /// Something else had to stand here.
    Expected(&'static str),
    /// A part of the standard that this reader does not know.
    Unsupported(&'static str),
}

impl StepError {
    pub(super) fn at(bytes: &[u8], offset: usize, reason: Reason) -> Self {
        let before = &bytes[..offset.min(bytes.len())];
        let line_start = before
            .iter()
            .rposition(|&byte| byte == b'\n')
            .map_or(0, |newline| newline + 1);
        let newlines = before.iter().filter(|&&byte| byte == b'\n').count();
        Self {
            line: newlines + 1,
            column: before.len() - line_start + 1,
            reason,
        }
    }
}

impl fmt::Display for StepError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "line {}, column {}: {}",
            self.line, self.column, self.reason
        )
    }
}

impl std::error::Error for StepError {}

impl fmt::Display for Reason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EmptyFile => out.write_str("the file is empty"),
            Self::NotStep => out.write_str("not a STEP file: it does not begin with ISO-10303-21;"),
            Self::MissingHeader => out.write_str("the HEADER section is missing"),
            Self::MissingData => out.write_str("the DATA section is missing"),
            Self::MissingEndsec => out.write_str("ENDSEC; is missing before this"),
            Self::MissingEndMarker => out.write_str("END-ISO-10303-21; is missing"),
            Self::Truncated => out.write_str("the file ends too early"),
            Self::TrailingData => out.write_str("something follows END-ISO-10303-21;"),
            Self::UnterminatedString => out.write_str("a string begins here and never ends"),
            Self::UnterminatedComment => out.write_str("a comment begins here and never ends"),
            Self::UnterminatedBinary => out.write_str("a binary value begins here and never ends"),
            Self::MissingSemicolon => out.write_str("a semicolon is missing before this"),
            Self::DuplicateId(id) => write!(out, "{id} is defined a second time"),
            Self::DanglingReference(id) => write!(out, "{id} is referenced but nowhere defined"),
            Self::BadId => out.write_str("an entity number must be from 1 to 18446744073709551615"),
            Self::BadNumber => out.write_str("this is not an integer or a real"),
            Self::GarbageByte(byte) => write!(out, "a byte 0x{byte:02x} cannot stand here"),
            Self::NestingTooDeep => write!(
                out,
                "parameters are nested deeper than {NESTING_MAX} levels"
            ),
            Self::Expected(what) => write!(out, "{what} expected"),
            Self::Unsupported(what) => write!(out, "{what}: this reader does not support that"),
        }
    }
}
