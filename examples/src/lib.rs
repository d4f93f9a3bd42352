//! Small programs that show how to use Thorp. Each is a function that is tried in a test, and a program that calls it:
//!
//! ```text
//! cargo run -p thorp-examples --bin counter -- 127.0.0.1:7402 me thorp://alps/counter
//! ```

mod auction;
pub mod counter;
pub mod graph;
pub mod neighbours;
pub mod notes;

pub use auction::{
    Answer, AtHome, Bid, Books, InPostgres, LOTS, LOTS_OF_SHELF, Lot, Read, Request, Taken, answer,
    serve, unavailable,
};

use std::fmt;
use thorp_client::{JoinConfig, Member};

/// What each program is told: where to join, whose identity to use, and the segment to work in.
#[derive(Debug)]
pub struct Arguments {
    /// Address of a site or a home.
    pub address: String,
    /// The directory of the identity.
    pub identity: String,
    /// The segment's name.
    pub segment: String,
    /// What comes after.
    pub rest: Vec<String>,
}

/// What went wrong, in words. What `main` returns is printed as `Debug` says: here, as a person reads it.
pub struct Failure(String);

impl<E: fmt::Display> From<E> for Failure {
    fn from(error: E) -> Self {
        Failure(error.to_string())
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Arguments {
    /// From the command line.
    pub fn parse() -> Result<Self, String> {
        let mut arguments = std::env::args();
        let program = arguments.next().unwrap_or_default();
        let mut next = || arguments.next();
        match (next(), next(), next()) {
            (Some(address), Some(identity), Some(segment)) => Ok(Arguments {
                address,
                identity,
                segment,
                rest: arguments.collect(),
            }),
            _ => Err(format!(
                "usage: {program} ADDRESS IDENTITY-DIR thorp://HOME/SEGMENT .."
            )),
        }
    }

    /// Joins.
    pub fn join(&self) -> Result<Member, thorp_client::JoinError> {
        let mut addresses = self.address.split(',');
        let config = JoinConfig::new(addresses.next().unwrap_or_default());
        let config = addresses.fold(config, JoinConfig::or_at);
        Member::join(config.identity(&self.identity))
    }
}
