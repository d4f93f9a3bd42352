//! What a conflict routine is asked.

use thorp_model::{Refusal, Update};

/// A refused update that a routine is to decide about, and why it was refused. The log bounds how many there are.
pub(crate) type Asked = (Update, Refusal);
