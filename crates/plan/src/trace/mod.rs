//! Traces: which object was asked for, in which order, and, where they tell it, when and by whom.
//!
//! Replaying needs no more of an object than whether it is the same as an earlier one; so objects become dense numbers from 0,
//! *pages*, as they are read, and policies can look them up in vectors. All pages count as one, whatever their size.
//!
//! # Formats
//!
//! | name | what it is |
//! |---|---|
//! | `thorp` | what Thorp's own members record, see below |
//! | `oracle` | libCacheSim's *oracleGeneral*: records of 24 bytes, little-endian: time in seconds (u32), object (u64), size in bytes (u32), when it is asked for next (i64, not used here) |
//! | `csv` | a table with a column for objects, and perhaps others for times, sizes and clients, which [`Columns`] finds by their heads, or is told |
//! | `lines` | one object a line: a number or any other text; empty lines are left out |
//! | `packed` | objects alone, as little-endian u32 |
//!
//! Any of them may be compressed by gzip, xz or zstd. Which it is, and which format, is told by the name and the first bytes
//! ([`Format::guess`]); a format can be named instead.
//!
//! # What members record
//!
//! Text in UTF-8, a request a line, lines end in `\n`. The first line is always
//!
//! ```text
//! time_us,client,op,object,size
//! ```
//!
//! | column | |
//! |---|---|
//! | `time_us` | microseconds since recording began, a whole number; not below that of the line before, except for what threads did at the same time |
//! | `client` | who asked: any text that is the same for all requests of the same member, and another for others |
//! | `op` | `read` or `write` |
//! | `object` | what was asked for: any text |
//! | `size` | its size in bytes, a whole number; 0 if it is not known |
//!
//! Text with a comma, a quotation mark or a line end in it is put in quotation marks, with its own doubled (RFC 4180). Files are
//! only ever added to; one that was cut in the middle of a line is refused with the number of that line, so that nobody takes
//! half a name for another object. Reads and writes are both replayed as accesses of the page.

mod compressed;
mod csv;
mod deal;
mod format;
mod names;
mod plain;
#[cfg(test)]
mod tests;

pub use self::csv::{Column, Columns};
pub use deal::{Dealing, dealt};
pub use format::Format;

use names::Names;
use std::fmt;
use std::io::{self, Read};
use std::path::Path;

/// Requests in the order in which they were made.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Trace {
    /// What it is called: the file's name.
    pub name: String,
    /// The page that each request asks for, numbered from 0 in the order of their first requests.
    pub pages: Vec<u32>,
    /// How many pages there are.
    pub footprint: usize,
    /// When each request was made, in microseconds; empty if the trace does not tell.
    pub times_us: Vec<u64>,
    /// Who made each request, numbered from 0; empty if the trace does not tell.
    pub clients: Vec<u32>,
    /// How many bytes were asked for in all; 0 if the trace does not tell.
    pub bytes: u64,
}

impl Trace {
    /// A trace of these pages, which are numbered anew.
    pub fn of(name: &str, pages: impl IntoIterator<Item = u64>) -> Self {
        let mut trace = Building::new(usize::MAX);
        pages.into_iter().for_each(|page| trace.number(page));
        trace.finished(name)
    }

    /// How many clients it names; 0 if it names none.
    pub fn client_count(&self) -> usize {
        self.clients
            .iter()
            .max()
            .map_or(0, |&last| last as usize + 1)
    }
}

/// How a file is to be read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Reading {
    /// Its format; `None` to guess.
    pub format: Option<Format>,
    /// Where its columns are, if it is `csv`.
    pub columns: Columns,
    /// Read no more requests than this.
    pub requests_most: Option<usize>,
}

impl Reading {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// [`TraceError`] with the file, the line or byte, and what is wrong there.
    pub fn file(&self, path: &Path) -> Result<Trace, TraceError> {
        let shown = path.display().to_string();
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        let name = name.unwrap_or_else(|| shown.clone());
        let told = |wrong: Wrong| TraceError {
            file: shown.clone(),
            wrong,
        };
        let file = std::fs::File::open(path).map_err(|error| told(error.into()))?;
        self.read(&name, file).map_err(told)
    }

    /// Reads what a file of this name has in it.
    ///
    /// # Errors
    ///
    /// As [`Reading::file`].
    pub fn bytes(&self, name: &str, bytes: &[u8]) -> Result<Trace, TraceError> {
        self.read(name, bytes).map_err(|wrong| TraceError {
            file: name.to_owned(),
            wrong,
        })
    }

    fn read<'a>(&self, name: &str, file: impl Read + 'a) -> Result<Trace, Wrong> {
        let (mut text, head, name) = compressed::opened(name, file)?;
        let format = match self.format {
            Some(format) => format,
            None => Format::guess(name, &head)?,
        };
        let mut trace = Building::new(self.requests_most.unwrap_or(usize::MAX));
        match format {
            Format::Oracle => plain::oracle(&mut text, &mut trace),
            Format::Packed => plain::packed(&mut text, &mut trace),
            Format::Lines => plain::lines(&mut text, &mut trace),
            Format::Csv => csv::table(&mut text, &head, &self.columns, &mut trace),
            Format::Thorp => csv::recorded(&mut text, &mut trace),
        }?;
        if trace.pages.is_empty() {
            return Err(Wrong::whole("has no requests in it"));
        }
        Ok(trace.finished(name))
    }
}

/// A trace that cannot be read: which file, where, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceError {
    file: String,
    wrong: Wrong,
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.wrong.at {
            At::Whole => write!(f, "{}: {}", self.file, self.wrong.why),
            At::Line(line) => write!(f, "{}, line {line}: {}", self.file, self.wrong.why),
            At::Byte(byte) => write!(f, "{}, at byte {byte}: {}", self.file, self.wrong.why),
        }
    }
}

impl std::error::Error for TraceError {}

/// What is wrong in a file, before it is known which.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Wrong {
    at: At,
    why: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum At {
    Whole,
    Line(u64),
    /// Of what was compressed, as it is without compression.
    Byte(u64),
}

impl Wrong {
    fn whole(why: impl Into<String>) -> Self {
        Wrong {
            at: At::Whole,
            why: why.into(),
        }
    }

    fn line(line: u64, why: impl Into<String>) -> Self {
        Wrong {
            at: At::Line(line),
            why: why.into(),
        }
    }
}

impl From<io::Error> for Wrong {
    fn from(error: io::Error) -> Self {
        Wrong::whole(format!("cannot be read: {error}"))
    }
}

/// A trace as far as it was read.
struct Building {
    trace: Trace,
    objects: Names,
    clients: Names,
    pages: Vec<u32>,
    requests_most: usize,
}

impl Building {
    fn new(requests_most: usize) -> Self {
        Building {
            trace: Trace::default(),
            objects: Names::default(),
            clients: Names::default(),
            pages: Vec::new(),
            requests_most,
        }
    }

    fn is_full(&self) -> bool {
        self.pages.len() >= self.requests_most
    }

    fn number(&mut self, object: u64) {
        let page = self.objects.number(object);
        self.pages.push(page);
    }

    fn text(&mut self, object: &[u8]) {
        let page = self.objects.text(object);
        self.pages.push(page);
    }

    fn client(&mut self, name: &[u8]) {
        let client = self.clients.text(name);
        self.trace.clients.push(client);
    }

    fn finished(mut self, name: &str) -> Trace {
        self.trace.name = name.to_owned();
        self.trace.footprint = self.objects.len();
        self.trace.pages = self.pages;
        self.trace
    }
}
