//! Numbers in what people read, for programs.

use super::{Assumption, Table};
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

/// A cell of a table whose number who wrote it knows better than its text does.
#[derive(Clone, PartialEq, Debug)]
pub struct Cell {
    pub(super) text: String,
    pub(super) exact: Option<Number<'static>>,
}

impl Cell {
    /// A time, and how many seconds that is.
    pub fn time(text: impl Into<String>, seconds: f64) -> Self {
        Cell::exact(text.into(), seconds, "s")
    }

    /// A part of a whole, and how much of 1 that is.
    pub fn part(text: impl Into<String>, part: f64) -> Self {
        Cell::exact(text.into(), part * 100.0, "%")
    }

    /// A number without unit.
    pub fn count(text: impl Into<String>, value: f64) -> Self {
        Cell::exact(text.into(), value, "")
    }

    /// A size, and how many bytes that is.
    pub fn size(text: impl Into<String>, bytes: f64) -> Self {
        Cell::exact(text.into(), bytes, "bytes")
    }

    /// How often something happens, and how often in a second that is.
    pub fn rate(text: impl Into<String>, per_s: f64) -> Self {
        Cell::exact(text.into(), per_s, "/s")
    }

    fn exact(text: String, value: f64, unit: &'static str) -> Self {
        // JSON has no other numbers.
        let exact = value.is_finite().then_some(Number { value, unit });
        Cell { text, exact }
    }
}

/// A text that is perhaps a number.
impl From<String> for Cell {
    fn from(text: String) -> Self {
        Cell { text, exact: None }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

/// A text, and the number that it is, in the one unit that there is for what it counts.
#[derive(Serialize)]
struct Shown<'a> {
    text: &'a str,
    #[serde(flatten)]
    number: Option<Number<'a>>,
}

#[derive(Clone, Copy, Serialize, Debug, PartialEq)]
pub(super) struct Number<'a> {
    value: f64,
    /// Empty for what is counted.
    unit: &'a str,
}

impl Number<'_> {
    /// Times in seconds, sizes in bytes, whatever the text has them in.
    fn in_base(self) -> Self {
        let known = BASES.iter().find(|(unit, _, _)| *unit == self.unit);
        known.map_or(self, |&(_, per, base)| Number {
            // Dividing keeps what is written in digits: 0.54 ms are 0.00054 s.
            value: match per {
                Per::Base(times) => self.value * times,
                Per::Unit(parts) => self.value / parts,
            },
            unit: base,
        })
    }
}

/// How many of the base a unit has, or how many of it the base has.
#[derive(Clone, Copy)]
enum Per {
    Base(f64),
    Unit(f64),
}

const BASES: [(&str, Per, &str); 12] = [
    ("ns", Per::Unit(1e9), "s"),
    ("µs", Per::Unit(1e6), "s"),
    ("us", Per::Unit(1e6), "s"),
    ("ms", Per::Unit(1e3), "s"),
    ("min", Per::Base(60.0), "s"),
    ("h", Per::Base(3600.0), "s"),
    ("days", Per::Base(86_400.0), "s"),
    ("B", Per::Base(1.0), "bytes"),
    ("kB", Per::Base(1e3), "bytes"),
    ("MB", Per::Base(1e6), "bytes"),
    ("GB", Per::Base(1e9), "bytes"),
    ("TB", Per::Base(1e12), "bytes"),
];

/// Tables are shown to programs with the number and the unit of each cell that is one.
impl Serialize for Table {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut shown = serializer.serialize_struct("Table", 3)?;
        shown.serialize_field("title", &self.title)?;
        shown.serialize_field("columns", &self.columns)?;
        let rows: Vec<Vec<Shown<'_>>> = (0..self.rows.len()).map(|row| self.shown(row)).collect();
        shown.serialize_field("rows", &rows)?;
        shown.end()
    }
}

impl Table {
    fn shown(&self, row: usize) -> Vec<Shown<'_>> {
        let exact = |column: usize| *self.exact.get(row)?.get(column)?;
        let cells = self.rows[row].iter().enumerate();
        let shown = cells.map(|(column, text)| Shown {
            text,
            number: exact(column).or_else(|| self.read(column, text)),
        });
        shown.collect()
    }

    /// The number that a text is; its unit may stand in the head: *round trip, ms*.
    fn read<'a>(&'a self, column: usize, text: &'a str) -> Option<Number<'a>> {
        let read = number(text)?;
        let head = self
            .columns
            .get(column)
            .and_then(|head| head.rsplit_once(", "));
        let unit = head.map_or("", |(_, unit)| unit);
        let is_told_by_head = read.unit.is_empty()
            && (unit == "s" || unit == "%" || BASES.iter().any(|base| base.0 == unit));
        let told = match is_told_by_head {
            true => Number { unit, ..read },
            false => read,
        };
        Some(told.in_base())
    }
}

/// The value of a parameter is shown to programs as a cell of a table is.
impl Serialize for Assumption {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let read = number(&self.value).map(|read| Number {
            value: self.exact.unwrap_or(read.value),
            ..read
        });
        let value = Shown {
            text: &self.value,
            number: read.map(Number::in_base),
        };
        let mut shown = serializer.serialize_struct("Assumption", 3)?;
        shown.serialize_field("name", &self.name)?;
        shown.serialize_field("value", &value)?;
        shown.serialize_field("source", &self.source)?;
        shown.end()
    }
}

/// *12.3 %*, *250,000*, *3.2 billion*, *53/s*: a numeral, how many of them, and a unit of one word. `None` for all else, also for
/// what has a number in it.
fn number(text: &str) -> Option<Number<'_>> {
    let is_part = |at: char| at.is_ascii_digit() || matches!(at, '+' | '-' | '.' | ',' | 'e');
    let end = text.find(|at| !is_part(at)).unwrap_or(text.len());
    let (numeral, rest) = text.split_at(end);
    let (factor, rest) = SCALES
        .iter()
        .find_map(|(name, factor)| Some((*factor, rest.strip_prefix(name)?)))
        .unwrap_or((1.0, rest));
    let unit = unit(rest)?;
    let value = without_groups(numeral)?.parse::<f64>().ok()? * factor;
    value.is_finite().then_some(Number { value, unit })
}

/// What is left of a text behind its number.
fn unit(rest: &str) -> Option<&str> {
    let unit = match rest.strip_prefix(' ') {
        Some(unit) if !unit.is_empty() => unit,
        Some(_) => return None,
        None if rest.is_empty() || rest.starts_with(['/', '%']) => rest,
        None => return None,
    };
    let is_word = |at: char| at.is_alphabetic() || matches!(at, '%' | '/');
    unit.chars().all(is_word).then_some(unit)
}

/// Digits in threes are one numeral; any others with commas are several.
fn without_groups(numeral: &str) -> Option<String> {
    let mut groups = numeral.split(',');
    let first = groups.next()?.to_owned();
    groups.try_fold(first, |all, group| {
        let whole = group.split('.').next()?;
        (whole.len() == 3 && !all.contains('.')).then(|| all + group)
    })
}

const SCALES: [(&str, f64); 2] = [(" million", 1e6), (" billion", 1e9)];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_a_number_has_its_value_and_unit() {
        for (text, value, unit) in [
            ("0.54 ms", 0.54, "ms"),
            ("12.3 %", 12.3, "%"),
            ("-6.0 %", -6.0, "%"),
            ("+0.9 %", 0.9, "%"),
            ("84", 84.0, ""),
            ("1e-9", 1e-9, ""),
            ("250,000", 250_000.0, ""),
            ("1,234,567.5 s", 1_234_567.5, "s"),
            ("3.2 billion", 3.2e9, ""),
            ("20 million documents", 2e7, "documents"),
            ("53/s", 53.0, "/s"),
            ("5%", 5.0, "%"),
            ("194 µs", 194.0, "µs"),
        ] {
            assert_eq!(number(text), Some(Number { value, unit }), "{text}");
        }
    }

    #[test]
    fn times_are_told_in_seconds_and_sizes_in_bytes() {
        let mut table = Table::new("", &["took", "far, ms", "size", "saved"]);
        let thirds = Cell::time("333 ms", 1.0 / 3.0);
        table.cells(vec![
            thirds,
            "0.5".into(),
            "4 MB".into(),
            Cell::part("33 %", 1.0 / 3.0),
        ]);
        table.row(
            ["2.5 min", "40", "12 bytes", "6 %"]
                .map(String::from)
                .to_vec(),
        );
        table.row(["54 ms", "1 s", "1.5 TB", "-"].map(String::from).to_vec());
        let numbers = |column: usize| [0, 1, 2].map(|row| table.shown(row)[column].number);
        let all = |values: [f64; 3], unit| values.map(|value| Some(Number { value, unit }));
        assert_eq!(numbers(0), all([1.0 / 3.0, 150.0, 0.054], "s"));
        assert_eq!(numbers(1), all([0.0005, 0.04, 1.0], "s"));
        assert_eq!(numbers(2), all([4e6, 12.0, 1.5e12], "bytes"));
        assert_eq!(
            numbers(3)[..2],
            all([1.0 / 3.0 * 100.0, 6.0, 0.0], "%")[..2]
        );
        assert_eq!(numbers(3)[2], None);
        assert_eq!(table.shown(0)[0].text, "333 ms");
    }

    #[test]
    fn what_only_begins_with_a_number_is_text() {
        for text in [
            "",
            "-",
            "∞",
            "GMS",
            "e",
            "0.523 (12 %)",
            "5 to 20 %",
            "10 or 12",
            "7/12",
            "1.2.3",
            "12, 13",
            "1,2",
            "2 ",
            "inf",
            "3 %, 1.05",
            "24: (0.75, 0.025)",
            "201 ± 2",
            "40ms",
        ] {
            assert_eq!(number(text), None, "{text}");
        }
    }
}
