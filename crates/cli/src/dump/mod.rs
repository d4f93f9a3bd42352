//! The file that `thorp dump` writes and `thorp load` reads: lines of JSON.
//!
//! ```text
//! {"thorp_dump":1}
//! {"id":1,"text":"hello"}
//! {"id":2,"value":["0041",{"to":1},"ff"]}
//! {"root":"greeting","to":1}
//! {"objects":2}
//! ```
//!
//! Objects are numbered from 1, in the order of their places in the segment. What is text is a string; all else is
//! hexadecimal digits, cut where the object refers to one of this dump. So the file does not depend on the places, and a
//! segment that is loaded from it gives the same file again. References to other segments stay among the digits.

mod line;
mod pieces;
mod reader;

pub(crate) use line::{Line, Target, Value};
pub(crate) use pieces::{Ids, Piece, bytes_of, pieces_of};
pub(crate) use reader::{Checked, Lines, Source, check};

/// The version of the format.
pub(crate) const VERSION: u32 = 1;
