//! A home alone, sent what no member of ours sends.

mod admission;
mod decisions;
mod passed_questions;
mod purposes;
mod registrations;
mod room;
mod settlement;
mod updates;
mod votes;
mod world;
