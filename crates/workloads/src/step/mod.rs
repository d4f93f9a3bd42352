//! The STEP physical file (ISO 10303-21), read and written so that nothing is lost.
//!
//! Numbers, strings and enumerations keep the spelling they had in the file, because a model that went through the
//! store and back must not differ from the one that went in. Comments and the layout of lines are not kept.
//!
//! [`parse`] reads a whole file and [`Reader`] one entity at a time; [`write()`] is their inverse. In a store an entity
//! is a [`Stored`]: its number, its place in the file and its [`Body`], whose references may be of any type.

mod cursor;
mod error;
mod model;
mod parameters;
mod reader;
mod spelling;
mod stored;
mod text;
mod tokens;
mod writer;

pub use error::{Reason, StepError};
pub use model::{Body, Entity, EntityId, Param, Record, StepFile, Typed};
pub use reader::{Reader, parse};
pub use stored::{Order, Stored, restore};
pub use text::RawText;
pub use writer::write;

/// How deep lists and typed parameters may lie in each other. Real files stay below ten; the limit keeps a hostile
/// file, or a hostile stored value, from exhausting the stack.
pub const NESTING_MAX: usize = 64;
