//! A small auction house on the web: shelves of lots, and bids. It keeps its data at a Thorp home, or the same data in PostgreSQL.
//!
//! With a Thorp home, each answer says what it has read, so that `thorp web` can keep it until that changes. With PostgreSQL, the recipe
//! of the operator says it.

mod http;
mod pages;
mod postgres;
mod thorp;

pub use http::{Answer, Request, serve};
pub use pages::{answer, unavailable};
pub use postgres::InPostgres;
pub use thorp::AtHome;

use serde::{Deserialize, Serialize};
use std::error::Error;

/// Lots of a house.
pub const LOTS: u32 = 100;

/// Lots on a shelf.
pub const LOTS_OF_SHELF: u32 = 10;

/// Something to be sold.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Lot {
    /// Its number, from 0.
    pub number: u32,
    /// What it is.
    pub title: String,
    /// The highest bid, in cents.
    pub price: u64,
    /// Bids so far.
    pub bids: u64,
    /// Who has made the highest one.
    pub bidder: String,
}

/// A bid.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bid {
    /// Who bids.
    pub bidder: String,
    /// How much, in cents.
    pub cents: u64,
}

impl Bid {
    /// Reads `bidder=anna&cents=120`. None: it is no bid.
    fn parse(body: &str) -> Option<Self> {
        let (mut bidder, mut cents) = (None, None);
        for pair in body.trim().split('&') {
            match pair.split_once('=')? {
                ("bidder", name) if name.len() <= 64 => bidder = Some(name.to_owned()),
                ("cents", number) => cents = Some(number.parse().ok()?),
                _ => return None,
            }
        }
        Some(Bid {
            bidder: bidder?,
            cents: cents?,
        })
    }
}

/// What became of a bid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Taken {
    /// It is the highest one now.
    Yes,
    /// The price is this much already, in cents.
    TooLow(u64),
    /// There is no such lot.
    NoLot,
}

/// What was read, with the fields of an answer that say on what it rests; none if they say nothing.
pub type Read<T> = (T, Option<[(&'static str, String); 2]>);

/// Where a house keeps its data. A thread that serves has one of its own.
pub trait Books {
    /// A lot. None: there is no such one.
    fn lot(&mut self, number: u32) -> Result<Read<Option<Lot>>, Box<dyn Error>>;

    /// The lots on a shelf.
    fn shelf(&mut self, number: u32) -> Result<Read<Vec<Lot>>, Box<dyn Error>>;

    /// Takes a bid that is higher than all before.
    fn bid(&mut self, number: u32, bid: &Bid) -> Result<Taken, Box<dyn Error>>;
}

/// The lots with which a house begins.
fn first_lots() -> impl Iterator<Item = Lot> {
    (0..LOTS).map(|number| Lot {
        number,
        title: format!("lot {number}"),
        price: 0,
        bids: 0,
        bidder: String::new(),
    })
}

/// The numbers of the lots on a shelf.
fn on_shelf(number: u32) -> std::ops::Range<u32> {
    let first = number.saturating_mul(LOTS_OF_SHELF).min(LOTS);
    first..(first + LOTS_OF_SHELF).min(LOTS)
}
