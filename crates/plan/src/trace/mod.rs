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
//! Any of them may be compressed by gzip, xz or zstd. Which it is, and which format, is told by the name and the first bytes;
//! a format can be named instead.
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
//! | `time_us` | microseconds since 1970 began, a whole number |
//! | `client` | who asked: any text that is the same for all requests of the same member, and another for others |
//! | `op` | `read` or `write` |
//! | `object` | what was asked for: any text |
//! | `size` | its size in bytes, a whole number; 0 if it is not known |
//!
//! Text with a comma, a quotation mark or a line end in it is put in quotation marks, with its own doubled (RFC 4180). Files are
//! only ever added to, perhaps by several members, each of which writes many lines at a time; requests are put in the order of
//! their times when they are read, and so are those of several members' files. A file that was cut in the middle of a line is
//! refused with the number of that line, so that nobody takes half a name for another object. Reads and writes are both replayed
//! as accesses of the page.

mod compressed;
mod csv;
mod deal;
mod format;
mod names;
mod plain;
#[cfg(test)]
mod tests;

pub use self::csv::{Column, Columns};
pub(crate) use deal::share;
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
    /// The page that each request asks for, numbered from 0.
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
        let mut trace = Building::new(None);
        pages.into_iter().for_each(|page| trace.number(page));
        trace.finished(name)
    }

    /// Several files may not all have told when and by whom.
    fn keep_what_all_requests_have(&mut self) {
        if self.times_us.len() != self.pages.len() {
            self.times_us.clear();
        }
        if self.clients.len() != self.pages.len() {
            self.clients.clear();
        }
    }

    /// Puts requests in the order of their times.
    fn sort(&mut self) {
        if self.times_us.is_empty() || self.times_us.is_sorted() {
            return;
        }
        let mut order: Vec<usize> = (0..self.pages.len()).collect();
        order.sort_by_key(|&at| self.times_us[at]);
        self.pages = order.iter().map(|&at| self.pages[at]).collect();
        self.clients = order
            .iter()
            .filter_map(|&at| self.clients.get(at).copied())
            .collect();
        self.times_us = order.iter().map(|&at| self.times_us[at]).collect();
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
        self.files(&[path])
    }

    /// Reads several files as one trace: that of the first, then that of the second, and so on, unless members recorded them,
    /// with the times at which they asked.
    ///
    /// # Errors
    ///
    /// As [`Reading::file`].
    pub fn files(&self, paths: &[&Path]) -> Result<Trace, TraceError> {
        let mut trace = Building::new(self.requests_most);
        let mut names = Vec::new();
        for path in paths {
            let shown = path.display().to_string();
            let name = path
                .file_name()
                .map(|name| name.to_string_lossy().into_owned());
            names.push(name.unwrap_or_else(|| shown.clone()));
            let told = |wrong: Wrong| TraceError {
                file: shown.clone(),
                wrong,
            };
            let file = std::fs::File::open(path).map_err(|error| told(error.into()))?;
            self.read(&names[names.len() - 1], file, &mut trace)
                .map_err(told)?;
        }
        Ok(trace.finished(&names.join(", ")))
    }

    /// Reads what a file of this name has in it.
    ///
    /// # Errors
    ///
    /// As [`Reading::file`].
    pub fn bytes(&self, name: &str, bytes: &[u8]) -> Result<Trace, TraceError> {
        let mut trace = Building::new(self.requests_most);
        let told = |wrong| TraceError {
            file: name.to_owned(),
            wrong,
        };
        self.read(name, bytes, &mut trace).map_err(told)?;
        Ok(trace.finished(name))
    }

    fn read<'a>(
        &self,
        name: &str,
        file: impl Read + 'a,
        trace: &mut Building,
    ) -> Result<(), Wrong> {
        let (mut text, head, name) = compressed::opened(name, file)?;
        let format = match self.format {
            Some(format) => format,
            None => Format::guess(name, &head)?,
        };
        trace.is_by_time &= format == Format::Thorp;
        let before = trace.pages.len();
        match format {
            Format::Oracle => plain::oracle(&mut text, trace),
            Format::Packed => plain::packed(&mut text, trace),
            Format::Lines => plain::lines(&mut text, trace),
            Format::Csv => csv::table(&mut text, &head, &self.columns, trace),
            Format::Thorp => csv::recorded(&mut text, trace),
        }?;
        match trace.pages.len() {
            after if after == before && !trace.is_full() => {
                Err(Wrong::whole("has no requests in it"))
            }
            _ => Ok(()),
        }
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
    /// All of it was recorded by members.
    is_by_time: bool,
}

impl Building {
    fn new(requests_most: Option<usize>) -> Self {
        Building {
            trace: Trace::default(),
            objects: Names::default(),
            clients: Names::default(),
            pages: Vec::new(),
            requests_most: requests_most.unwrap_or(usize::MAX),
            is_by_time: true,
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
        self.trace.keep_what_all_requests_have();
        if self.is_by_time {
            self.trace.sort();
        }
        self.trace
    }
}
