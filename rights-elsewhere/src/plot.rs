//! What everybody in the village knows: the board, and the segments that rounds are about.

use thorp_client::Reference;

/// Where the number of the round stands, which every member may read.
#[derive(Clone)]
pub(crate) struct Board {
    pub(crate) number: Reference,
}

/// A segment that rounds are about, with an object that everybody knows.
#[derive(Clone)]
pub(crate) struct Plot {
    pub(crate) path: String,
    pub(crate) object: Reference,
}
