//! The pages that the application shows, and on what they rest.

use crate::database::Row;
use crate::plan::Plan;
use thorp_versions::Place;
use thorp_web::{Dependencies, Weight};

/// Rows on one shelf.
const SHELF: usize = 2;

/// A page's name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Page {
    /// One row.
    Item(Row),
    /// The rows of a shelf: two updates may change its word at a time.
    Shelf(usize),
    /// One row, and a second one that only the answer names.
    Beside(Row, Row),
    /// All rows. Nobody has a list of its keys.
    Report,
}

/// What a page shows: rows and their values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Answer(pub(crate) Vec<(Row, u64)>);

impl Weight for Page {
    fn bytes(&self) -> u64 {
        16
    }
}

impl Weight for Answer {
    fn bytes(&self) -> u64 {
        64
    }
}

impl Page {
    pub(crate) fn all(plan: &Plan) -> Vec<Page> {
        let rows = 0..plan.rows;
        let beside = |row| Page::Beside(row, (row + 1) % plan.rows);
        let items = rows.clone().map(Page::Item);
        let besides = rows.clone().map(beside);
        let shelves = (0..plan.rows / SHELF).map(Page::Shelf);
        let all = items.chain(besides).chain(shelves);
        all.chain([Page::Report]).collect()
    }

    /// The rows that it shows.
    pub(crate) fn rows(self, plan: &Plan) -> Vec<Row> {
        match self {
            Page::Item(row) => vec![row],
            Page::Beside(row, other) => vec![row, other],
            Page::Shelf(shelf) => (shelf * SHELF..(shelf + 1) * SHELF).collect(),
            Page::Report => (0..plan.rows).collect(),
        }
    }

    pub(crate) fn dependencies(self) -> Dependencies {
        let (known, learned) = match self {
            Page::Item(row) => (vec![item(row)], Vec::new()),
            Page::Beside(row, other) => (vec![item(row)], vec![item(other)]),
            Page::Shelf(number) => (vec![shelf(number)], Vec::new()),
            Page::Report => (vec![Place::EVERYTHING], Vec::new()),
        };
        Dependencies { known, learned }
    }
}

/// The keys of rows that change.
pub(crate) fn changed(_: &Plan, rows: &[Row]) -> Vec<Place> {
    let keys = rows.iter().flat_map(|row| [item(*row), shelf(row / SHELF)]);
    keys.collect()
}

/// The same as texts.
pub(crate) fn keys(rows: &[Row]) -> Vec<String> {
    let keys = rows
        .iter()
        .flat_map(|row| [item_key(*row), shelf_key(row / SHELF)]);
    keys.collect()
}

fn item(row: Row) -> Place {
    Place::of(&item_key(row))
}

fn shelf(number: usize) -> Place {
    Place::of(&shelf_key(number))
}

fn item_key(row: Row) -> String {
    format!("item:{row}")
}

fn shelf_key(number: usize) -> String {
    format!("shelf:{number}")
}
