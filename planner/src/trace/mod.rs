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
//! | `client` | who asked: any text that is the same for all requests of the same member, and another for others; each command joins as a member of its own |
//! | `op` | `read` or `write` |
//! | `object` | what was asked for: any text |
//! | `size` | its size in bytes, a whole number; 0 if it is not known |
//!
//! Text with a comma, a quotation mark or a line end in it is put in quotation marks, with its own doubled (RFC 4180). Files are
//! only ever added to, perhaps by several members, each of which writes many lines at a time; requests are put in the order of
//! their times when they are read, and so are those of several members' files: as in any format that tells when. A file that was cut in the middle of a line is
//! refused with the number of that line, so that nobody takes half a name for another object. Reads and writes are both replayed
//! as accesses of the page.

mod compressed;
mod csv;
mod deal;
mod format;
mod names;
mod papers;
mod plain;
#[cfg(test)]
mod tests;

pub use self::csv::{Column, Columns};
pub(crate) use deal::share;
pub use deal::{Dealing, dealt};
pub use format::Format;
pub(crate) use papers::of_papers;

use names::Names;
use std::collections::HashSet;
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
    /// The files that it was read from.
    pub files: Vec<Source>,
    /// Which of the files each request is from, counted from 0; empty if there is only one.
    pub from: Vec<u32>,
    /// The files had it in another order than that of their times.
    pub was_sorted: bool,
}

/// A file that a trace was read from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Source {
    /// Its name.
    pub name: String,
    /// How it was read.
    pub format: Format,
    /// Nobody told the format: its name and its beginning did.
    pub is_guessed: bool,
    /// What is in it speaks for the format that was guessed: heads, times that go on, numbers alone.
    pub is_evident: bool,
    /// How many clients it names; 0 if it names none.
    pub clients: usize,
    /// The heads of columns that were not understood, nor told.
    pub unknown: Vec<String>,
    /// It was read as a table, and has one column.
    pub is_one_column: bool,
}

impl Source {
    /// What it was read as, in words.
    pub fn words(&self) -> &'static str {
        match self.is_one_column {
            true => "a table of one column",
            false => self.format.words(),
        }
    }
}

impl Trace {
    /// A trace of these pages, which are numbered anew.
    pub fn of(name: &str, pages: impl IntoIterator<Item = u64>) -> Self {
        let mut trace = Building::new(&Reading::default());
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

    /// Puts requests in the order of their times, if all have one; those of the same time stay as they are.
    fn sort(&mut self) {
        if self.times_us.is_sorted() {
            return;
        }
        let mut order: Vec<usize> = (0..self.pages.len()).collect();
        order.sort_by_key(|&at| self.times_us[at]);
        let sorted = |of: &[u32]| {
            let found = order.iter().filter_map(|&at| of.get(at).copied());
            found.collect::<Vec<u32>>()
        };
        self.pages = sorted(&self.pages);
        self.clients = sorted(&self.clients);
        self.from = sorted(&self.from);
        self.times_us = order.iter().map(|&at| self.times_us[at]).collect();
        self.was_sorted = true;
    }

    /// Keeps the first requests only, with their pages numbered anew. What all of them asked for together is no longer known.
    fn cut(&mut self, requests_most: usize) {
        if self.pages.len() <= requests_most {
            return;
        }
        self.pages.truncate(requests_most);
        self.times_us.truncate(requests_most);
        self.clients.truncate(requests_most);
        self.from.truncate(requests_most);
        self.bytes = 0;
        let mut names = Names::default();
        for page in &mut self.pages {
            *page = names.number(u64::from(*page));
        }
        self.footprint = names.len();
    }

    /// Several files of which none tells members apart: what each of them has may be what one member asked for.
    pub fn is_by_file(&self) -> bool {
        self.files.len() > 1
            && self.client_count() <= 1
            && self.files.iter().all(|file| file.clients <= 1)
    }

    /// Several commands recorded one of the files: each joined as a member of its own, and one member ran them all.
    pub fn is_of_commands(&self) -> bool {
        let recorded = |file: &Source| file.format == Format::Thorp;
        let mut several = self.files.iter().filter(|file| file.clients > 1).peekable();
        several.peek().is_some() && several.all(recorded)
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
    /// Refuse a trace that would have more than these, as soon as that is known; `None` where only memory limits them.
    pub refused_above: Option<usize>,
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

    /// Reads several files as one trace: by time if all of them tell when, else that of the first, then that of the second, and
    /// so on.
    ///
    /// # Errors
    ///
    /// As [`Reading::file`].
    pub fn files(&self, paths: &[&Path]) -> Result<Trace, TraceError> {
        let mut trace = Building::new(self);
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
        let mut trace = Building::new(self);
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
        let (mut text, head, bare) = compressed::opened(name, file)?;
        let format = match self.format {
            Some(format) => format,
            None => Format::guess(bare, &head)?,
        };
        trace.begin();
        match format {
            Format::Oracle => plain::oracle(&mut text, trace),
            Format::Packed => plain::packed(&mut text, trace),
            Format::Lines => plain::lines(&mut text, trace),
            Format::Csv => csv::table(&mut text, &head, &self.columns, trace),
            Format::Thorp => csv::recorded(&mut text, trace),
        }?;
        if trace.pages.len() == trace.began && !trace.is_full() {
            return Err(Wrong::whole("has no requests in it"));
        }
        trace.end(name, format, self.format.is_none());
        Ok(())
    }
}

/// A trace that cannot be read: which file, where, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceError {
    file: String,
    wrong: Wrong,
}

impl TraceError {
    /// There is nothing wrong with it but that it has more requests than may be: [`Reading::refused_above`].
    pub fn is_too_long(&self) -> bool {
        self.wrong.at == At::End
    }

    /// The end of what was compressed is missing.
    pub fn is_cut(&self) -> bool {
        self.wrong.why.ends_with(CUT)
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.wrong.at {
            At::Whole | At::End => write!(f, "{}: {}", self.file, self.wrong.why),
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
    /// Further than is read.
    End,
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
        Wrong::whole(format!("cannot be read: {}", why(&error)))
    }
}

/// Why something cannot be read: decoders that miss the end say so in words of their own, perhaps inside of others.
fn why(error: &(dyn std::error::Error + 'static)) -> String {
    let is_end = |cause: &(dyn std::error::Error + 'static)| {
        let io = cause.downcast_ref::<io::Error>();
        io.is_some_and(|io| io.kind() == io::ErrorKind::UnexpectedEof)
    };
    let mut causes = std::iter::successors(Some(error), |&cause| inner(cause));
    match causes.any(is_end) {
        true => CUT.to_owned(),
        false => error.to_string(),
    }
}

const CUT: &str = "the file was cut";

/// What an error wraps; an [`io::Error`] hides that as its source.
fn inner<'e>(
    error: &'e (dyn std::error::Error + 'static),
) -> Option<&'e (dyn std::error::Error + 'static)> {
    match error.downcast_ref::<io::Error>() {
        Some(io) => io.get_ref().map(|inner| inner as _),
        None => error.source(),
    }
}

/// So many requests cannot name more pages than there are numbers for.
const PAGES_MAX: usize = u32::MAX as usize - 1;

/// A trace as far as it was read.
struct Building {
    trace: Trace,
    objects: Names,
    clients: Names,
    pages: Vec<u32>,
    /// Of each file: which of all of them are the first is only known when all are read.
    requests_most: usize,
    /// Of all files.
    refused_above: usize,
    /// Where the requests of the present file begin, and the clients that it names.
    began: usize,
    clients_began: usize,
    texts_began: usize,
    /// What the present file's first row told.
    heads: csv::Heads,
}

impl Building {
    fn new(reading: &Reading) -> Self {
        let requests_most = reading.requests_most.unwrap_or(usize::MAX);
        let refused_above = reading.refused_above.unwrap_or(PAGES_MAX).min(PAGES_MAX);
        Building {
            trace: Trace::default(),
            objects: Names::default(),
            clients: Names::default(),
            pages: Vec::new(),
            requests_most,
            // Of files that are cut to less than that together nothing is refused.
            refused_above: match requests_most <= refused_above {
                true => PAGES_MAX,
                false => refused_above,
            },
            began: 0,
            clients_began: 0,
            texts_began: 0,
            heads: csv::Heads::default(),
        }
    }

    fn is_full(&self) -> bool {
        self.pages.len() - self.began >= self.requests_most
    }

    /// Whether another request of the file is to be read.
    fn wants_more(&self) -> Result<bool, Wrong> {
        if self.pages.len() > self.refused_above {
            return Err(Wrong {
                at: At::End,
                why: format!("more than {} requests are too many", self.refused_above),
            });
        }
        Ok(!self.is_full())
    }

    /// Another file begins.
    fn begin(&mut self) {
        self.began = self.pages.len();
        self.clients_began = self.trace.clients.len();
        self.texts_began = self.objects.texts();
        self.heads = csv::Heads::default();
    }

    /// The file has ended.
    fn end(&mut self, name: &str, format: Format, is_guessed: bool) {
        let at = self.trace.files.len() as u32;
        self.trace
            .from
            .extend(std::iter::repeat_n(at, self.pages.len() - self.began));
        let named: HashSet<&u32> = self.trace.clients[self.clients_began..].iter().collect();
        let clients = named.len();
        let heads = std::mem::take(&mut self.heads);
        let is_evident = match format {
            Format::Thorp | Format::Oracle => true,
            Format::Csv => heads.is_any,
            Format::Lines => self.objects.texts() == self.texts_began,
            Format::Packed => false,
        };
        self.trace.files.push(Source {
            name: name.to_owned(),
            format,
            is_guessed,
            is_evident,
            clients,
            unknown: heads.unknown,
            is_one_column: heads.is_one_column,
        });
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
        self.trace.sort();
        self.trace.cut(self.requests_most);
        if self.trace.files.len() < 2 {
            self.trace.from.clear();
        }
        self.trace
    }
}
