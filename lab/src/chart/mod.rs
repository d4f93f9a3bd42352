//! Charts as files that every browser shows (SVG).

mod axis;
mod bars;
mod lines;
mod svg;

pub use bars::{Bar, Bars};
pub use lines::{Chart, Points, distribution};
