//! Contexts: where the programs of a user join, and as whom.
//!
//! A context is a named entry in the user's configuration directory: `contexts/NAME/context.toml` with the addresses and
//! the village, and beside it `identity` with the user's own certificate and key. The file `current` names the context
//! that counts where neither a flag nor a variable says anything.

mod contexts;
mod error;
mod whereabouts;

pub use contexts::{Context, Contexts};
pub use error::ContextError;
pub use whereabouts::{ChosenBy, Given, Origin, Origins, Whereabouts};
