//! What a model has to say: the answer in a sentence, what it rests on, tables, charts; and how it is shown to people.

mod html;
mod markdown;
mod number;
mod svg;
mod text;
mod words;

use serde::Serialize;

pub use html::html;
pub use markdown::{markdown, page};
pub use number::Cell;
pub use svg::svg;
pub use text::text;
pub use words::{long_time, percent};

/// An answer with all that belongs to it.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Report {
    /// The answer, in a sentence or two that need no table: *Yes: at 40 ms five members save 46 %.*
    pub answer: String,
    /// The rest, in the order in which it is read.
    pub sections: Vec<Section>,
    /// The parameters that it was computed with.
    pub assumptions: Vec<Assumption>,
}

/// A parameter, what it was taken to be, and who said so.
#[derive(Clone, PartialEq, Debug)]
pub struct Assumption {
    /// In words, with what it means: *time to fetch a page from the home*.
    pub name: String,
    /// With its unit: *40 ms*. Shown to programs as a cell of a table is.
    pub value: String,
    /// Where it comes from: *told*, *measured there*, *default: table 5.1*.
    pub source: String,
    /// The number that the value rounds, in the unit of its text.
    exact: Option<f64>,
}

/// A part of a report.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Section {
    /// Its heading; empty for none.
    pub heading: String,
    /// Its paragraphs, before tables and charts.
    pub words: Vec<String>,
    /// Its tables.
    pub tables: Vec<Table>,
    /// Its charts.
    pub charts: Vec<Chart>,
}

/// A table. Columns whose cells are all numbers are set to the right.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Table {
    /// What it shows.
    pub title: String,
    /// The heads of the columns.
    pub columns: Vec<String>,
    /// The rows, with a cell for each column. Programs are shown the number and the unit of each that is one beside its text:
    /// times in seconds (`s`), parts in `%`, sizes in `bytes`.
    pub rows: Vec<Vec<String>>,
    /// The numbers that cells of each row round, where who wrote them told.
    exact: Vec<Vec<Option<number::Number<'static>>>>,
}

/// Curves over one axis.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Chart {
    /// What its file is called, without an ending: small letters, digits and hyphens.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// The axis to the right.
    pub x: Axis,
    /// The axis up.
    pub y: Axis,
    /// The curves, in the order of the legend.
    pub series: Vec<Series>,
}

/// An axis of a chart.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Axis {
    /// What it shows, with the unit: *round trip, ms*.
    pub label: String,
    /// Whether each step multiplies.
    pub is_log: bool,
}

/// One curve.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Series {
    /// What the legend says.
    pub name: String,
    /// How it is drawn.
    pub style: Style,
    /// Its points from left to right. What is no number is left out.
    pub points: Vec<(f64, f64)>,
}

/// How a curve is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum Style {
    /// A line.
    Line,
    /// A thin line without points: a limit, or something to compare with.
    Thin,
    /// Points alone: what was measured, or what a paper says.
    Points,
}

impl Section {
    /// One that could not be computed, and why.
    pub fn left_out(heading: &str, why: &str) -> Self {
        Section {
            heading: heading.to_owned(),
            words: vec![format!("{LEFT_OUT}{why}.")],
            ..Section::default()
        }
    }

    /// Why it could not be computed, if that is so.
    pub fn why_left_out(&self) -> Option<&str> {
        self.words.first()?.strip_prefix(LEFT_OUT)
    }
}

const LEFT_OUT: &str = "Not computed: ";

impl Axis {
    /// An axis whose steps add.
    pub fn linear(label: &str) -> Self {
        Axis {
            label: label.to_owned(),
            is_log: false,
        }
    }

    /// An axis whose steps multiply.
    pub fn log(label: &str) -> Self {
        Axis {
            label: label.to_owned(),
            is_log: true,
        }
    }
}

impl Series {
    /// A curve drawn as a line.
    pub fn line(name: &str, points: Vec<(f64, f64)>) -> Self {
        Series {
            name: name.to_owned(),
            style: Style::Line,
            points,
        }
    }

    /// The same, drawn otherwise.
    pub fn drawn(mut self, style: Style) -> Self {
        self.style = style;
        self
    }
}

impl Table {
    /// A table without rows yet.
    pub fn new(title: &str, columns: &[&str]) -> Self {
        Table {
            title: title.to_owned(),
            columns: columns.iter().map(|&column| column.to_owned()).collect(),
            rows: Vec::new(),
            exact: Vec::new(),
        }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<String>) {
        self.cells(cells.into_iter().map(Cell::from).collect());
    }

    /// Adds a row with what its cells round.
    pub fn cells(&mut self, cells: Vec<Cell>) {
        debug_assert_eq!(cells.len(), self.columns.len(), "{}", self.title);
        let (texts, exact) = cells
            .into_iter()
            .map(|cell| (cell.text, cell.exact))
            .unzip();
        self.rows.push(texts);
        self.exact.push(exact);
    }

    /// Whether a column is one of numbers.
    fn is_numbers(&self, column: usize) -> bool {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        let mut cells = cells.filter(|cell| !cell.is_empty()).peekable();
        cells.peek().is_some() && cells.all(|cell| cell.starts_with(is_numeral))
    }
}

fn is_numeral(first: char) -> bool {
    first.is_ascii_digit() || matches!(first, '-' | '+' | '<' | '>' | '≤' | '≥' | '∞')
}

impl Assumption {
    /// A parameter, what it was taken to be, and who said so.
    pub fn new(name: &str, value: impl Into<String>, source: &str) -> Self {
        Assumption {
            name: name.to_owned(),
            value: value.into(),
            source: source.to_owned(),
            exact: None,
        }
    }

    /// A number, in a text that rounds it.
    pub fn rounded(name: &str, value: impl Into<String>, exact: f64, source: &str) -> Self {
        Assumption {
            exact: Some(exact),
            ..Assumption::new(name, value, source)
        }
    }
}

/// A report for tests of how they are shown.
#[cfg(test)]
fn example() -> Report {
    let mut table = Table::new("By members", &["members", "saved", "why"]);
    table.row(vec!["1".into(), "0 %".into(), "alone".into()]);
    table.row(vec!["10".into(), "86 %".into(), "a < b & c|d".into()]);
    let chart = Chart {
        name: "by-members".into(),
        title: "Saved, by members".into(),
        x: Axis::log("members"),
        y: Axis::linear("saved, %"),
        series: vec![
            Series::line("model", vec![(1.0, 0.0), (10.0, 86.0), (100.0, f64::NAN)]),
            Series::line("paper", vec![(3.0, 39.0), (5.0, 46.0)]).drawn(Style::Points),
        ],
    };
    let section = Section {
        heading: "Members".into(),
        words: vec!["The more the better.".into()],
        tables: vec![table],
        charts: vec![chart],
    };
    Report {
        answer: "Yes: ten members save 86 %.".into(),
        sections: vec![section],
        assumptions: vec![Assumption::new("round trip", "40 ms", "told")],
    }
}
