//! Tables: of any origin, and those that Thorp's members record.

use super::format::HEAD;
use super::plain::LINE_BYTES_MAX;
use super::{Building, Wrong, why};
use csv::{ByteRecord, Reader, ReaderBuilder};
use std::cell::Cell;
use std::io::{self, BufRead, Read};
use std::rc::Rc;
use std::str::FromStr;

/// Which columns of a table are read: those that were told, or those whose heads have a usual name.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Columns {
    /// What is asked for; there has to be one.
    pub id: Option<Column>,
    /// When: in seconds, unless the head ends in `_ms`, `_us` or `_ns`.
    pub time: Option<Column>,
    /// How many bytes.
    pub size: Option<Column>,
    /// Who asks.
    pub client: Option<Column>,
}

/// A column of a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Column {
    /// By its place, from 1.
    Place(usize),
    /// By its head.
    Head(String),
}

/// From `time=1,id=object,client=4`.
impl FromStr for Columns {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut columns = Columns::default();
        for told in text.split(',') {
            let (what, column) = told
                .split_once('=')
                .ok_or_else(|| format!("{told} is not like id=2 or id=object"))?;
            let column = match column.trim().parse() {
                Ok(0) => return Err(format!("{told}: columns are counted from 1")),
                Ok(place) => Column::Place(place),
                Err(_) => Column::Head(column.trim().to_owned()),
            };
            let slot = match what.trim() {
                "id" => &mut columns.id,
                "time" => &mut columns.time,
                "size" => &mut columns.size,
                "client" => &mut columns.client,
                other => return Err(format!("{other} is none of id, time, size, client")),
            };
            *slot = Some(column);
        }
        Ok(columns)
    }
}

/// A table of any origin.
pub(super) fn table(
    text: &mut dyn BufRead,
    head: &[u8],
    columns: &Columns,
    trace: &mut Building,
) -> Result<(), Wrong> {
    let mut rows = Rows::new(text, delimiter(head));
    let mut row = ByteRecord::new();
    if !rows.next(&mut row)? {
        return Ok(());
    }
    let layout = Layout::new(columns, &row)?;
    trace.heads = layout.heads(&row);
    let mut is_data = !layout.has_heads;
    while trace.wants_more()? {
        if is_data {
            layout
                .take(&row, trace)
                .map_err(|why| Wrong::line(line(&row), why))?;
        }
        is_data = true;
        if !rows.next(&mut row)? {
            break;
        }
    }
    Ok(())
}

/// What Thorp's members record.
pub(super) fn recorded(text: &mut dyn BufRead, trace: &mut Building) -> Result<(), Wrong> {
    let mut rows = Rows::new(text, b',');
    let mut row = ByteRecord::new();
    let is_headed = rows.next(&mut row)? && row.iter().eq(HEAD.split(',').map(str::as_bytes));
    if !is_headed {
        return Err(Wrong::line(1, format!("has to be {HEAD}")));
    }
    let layout = Layout::of_recorded();
    while trace.wants_more()? && rows.next(&mut row)? {
        let told = |why| Wrong::line(line(&row), why);
        if row.len() != 5 {
            return Err(told(format!(
                "has {} of 5 columns: it was cut, or is of another table",
                row.len()
            )));
        }
        if !matches!(&row[2], b"read" | b"write") {
            return Err(told(format!("op is read or write, not {}", shown(&row[2]))));
        }
        layout.take(&row, trace).map_err(told)?;
    }
    Ok(())
}

/// What the first row of a table tells.
#[derive(Default)]
pub(super) struct Heads {
    /// It has heads.
    pub(super) is_any: bool,
    /// Those that are neither told nor usual.
    pub(super) unknown: Vec<String>,
    pub(super) is_one_column: bool,
}

/// Where things are in a row, counted from 0.
struct Layout {
    id: usize,
    time: Option<(usize, f64)>,
    size: Option<usize>,
    client: Option<usize>,
    has_heads: bool,
}

impl Layout {
    fn of_recorded() -> Self {
        Layout {
            id: 3,
            time: Some((0, 1.0)),
            size: Some(4),
            client: Some(1),
            has_heads: true,
        }
    }

    fn new(columns: &Columns, first: &ByteRecord) -> Result<Self, Wrong> {
        let told = [&columns.id, &columns.time, &columns.size, &columns.client];
        let is_usual = |cell: &[u8]| {
            [ID, TIME, SIZE, CLIENT]
                .iter()
                .any(|names| is_named(cell, names))
        };
        let has_heads = told
            .iter()
            .any(|column| matches!(column, Some(Column::Head(_))))
            || first.iter().any(is_usual);
        let place = |told: &Option<Column>, usual: &[&str]| match told {
            Some(Column::Place(place)) => Ok(Some(place - 1)),
            Some(Column::Head(head)) => {
                let found = first
                    .iter()
                    .position(|cell| cell.trim_ascii() == head.as_bytes());
                found
                    .map(Some)
                    .ok_or_else(|| Wrong::line(1, format!("has no column {head}")))
            }
            None if has_heads => Ok(first.iter().position(|cell| is_named(cell, usual))),
            None => Ok(None),
        };
        let only = (first.len() == 1).then_some(0);
        let id = place(&columns.id, ID)?.or(only).ok_or_else(|| {
            Wrong::line(
                1,
                "no head says which column the objects are in (object, id, key); tell it: id=2",
            )
        })?;
        let time = place(&columns.time, TIME)?;
        let head = |place: usize| first.get(place).filter(|_| has_heads).unwrap_or_default();
        Ok(Layout {
            id,
            time: time.map(|place| (place, unit_us(head(place)))),
            size: place(&columns.size, SIZE)?,
            client: place(&columns.client, CLIENT)?,
            has_heads,
        })
    }

    fn heads(&self, first: &ByteRecord) -> Heads {
        let read = [
            Some(self.id),
            self.time.map(|(place, _)| place),
            self.size,
            self.client,
        ];
        let heads = first.iter().enumerate().filter(|_| self.has_heads);
        let unknown = heads.filter(|(place, _)| !read.contains(&Some(*place)));
        Heads {
            is_any: self.has_heads,
            unknown: unknown
                .map(|(_, head)| String::from_utf8_lossy(head.trim_ascii()).into_owned())
                .collect(),
            is_one_column: first.len() == 1,
        }
    }

    /// Takes a row into a trace.
    fn take(&self, row: &ByteRecord, trace: &mut Building) -> Result<(), String> {
        let object = cell(row, self.id)?.trim_ascii();
        if object.is_empty() {
            return Err("names no object".to_owned());
        }
        trace.text(object);
        if let Some((place, unit_us)) = self.time {
            let time = number(row, place)? * unit_us;
            trace.trace.times_us.push(time as u64);
        }
        if let Some(place) = self.size {
            trace.trace.bytes = trace.trace.bytes.saturating_add(number(row, place)? as u64);
        }
        if let Some(place) = self.client {
            trace.client(cell(row, place)?.trim_ascii());
        }
        Ok(())
    }
}

fn cell(row: &ByteRecord, place: usize) -> Result<&[u8], String> {
    row.get(place).ok_or_else(|| {
        format!(
            "has {} columns, but column {} is wanted",
            row.len(),
            place + 1
        )
    })
}

/// A number that is not negative.
fn number(row: &ByteRecord, place: usize) -> Result<f64, String> {
    let cell = cell(row, place)?;
    let number = std::str::from_utf8(cell)
        .ok()
        .and_then(|text| text.trim().parse::<f64>().ok());
    number
        .filter(|number| number.is_finite() && *number >= 0.0)
        .ok_or_else(|| {
            format!(
                "column {}: {} is no number from 0 on",
                place + 1,
                shown(cell)
            )
        })
}

fn shown(cell: &[u8]) -> String {
    format!("\"{}\"", String::from_utf8_lossy(cell))
}

fn unit_us(head: &[u8]) -> f64 {
    let ends = |ending: &[u8]| head.trim_ascii().ends_with(ending);
    match () {
        () if ends(b"_ns") => 1e-3,
        () if ends(b"_us") => 1.0,
        () if ends(b"_ms") => 1e3,
        () => 1e6,
    }
}

fn is_named(cell: &[u8], names: &[&str]) -> bool {
    names
        .iter()
        .any(|name| cell.trim_ascii().eq_ignore_ascii_case(name.as_bytes()))
}

/// The rows of a table, none of which may be without end.
struct Rows<'a> {
    reader: Reader<Rationed<'a>>,
    /// What may still be read of the file before the present row has to end.
    ration: Rc<Cell<usize>>,
}

impl<'a> Rows<'a> {
    fn new(text: &'a mut dyn BufRead, delimiter: u8) -> Self {
        let ration = Rc::new(Cell::new(0));
        let rationed = Rationed {
            text,
            left: Rc::clone(&ration),
        };
        let reader = ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .delimiter(delimiter)
            .from_reader(rationed);
        Rows { reader, ration }
    }

    /// Whether there is another one, which is read.
    fn next(&mut self, row: &mut ByteRecord) -> Result<bool, Wrong> {
        let line = self.reader.position().line();
        self.ration.set(LINE_BYTES_MAX);
        self.reader.read_byte_record(row).map_err(|error| {
            let why = match self.ration.get() {
                0 => format!(
                    "goes on for more than {LINE_BYTES_MAX} bytes: perhaps a quotation mark has no other"
                ),
                _ => format!("cannot be read: {}", why(&error)),
            };
            Wrong::line(line, why)
        })
    }
}

/// Gives no more of a file than is left for it, and then an error, for the end would look like that of the file.
struct Rationed<'a> {
    text: &'a mut dyn BufRead,
    left: Rc<Cell<usize>>,
}

impl Read for Rationed<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.left.get() == 0 {
            return Err(io::Error::other("a row without end"));
        }
        let most = into.len().min(self.left.get());
        let read = self.text.read(&mut into[..most])?;
        self.left.set(self.left.get() - read);
        Ok(read)
    }
}

fn line(row: &ByteRecord) -> u64 {
    row.position().map_or(0, csv::Position::line)
}

/// What its first line has most of.
fn delimiter(head: &[u8]) -> u8 {
    let first = head.split(|&byte| byte == b'\n').next().unwrap_or(head);
    let count = |delimiter: u8| first.iter().filter(|&&byte| byte == delimiter).count();
    [b',', b';', b'\t']
        .into_iter()
        .rev()
        .max_by_key(|&delimiter| count(delimiter))
        .unwrap_or(b',')
}

const ID: &[&str] = &[
    "id",
    "object",
    "object_id",
    "obj_id",
    "key",
    "page",
    "block",
];
const TIME: &[&str] = &[
    "time",
    "timestamp",
    "time_s",
    "time_ms",
    "time_us",
    "time_ns",
    "clock_time",
];
const SIZE: &[&str] = &["size", "obj_size", "object_size", "bytes"];
const CLIENT: &[&str] = &["client", "client_id", "member", "host", "node"];
