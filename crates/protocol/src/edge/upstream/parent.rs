//! What a fetch depends on: the parent, and how far the stream from it has come.

use thorp_model::{EdgeId, Epoch, HomeId, Position};

/// The parent that a fetch goes to, at the moment of the fetch or of its answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parent {
    pub(super) home: HomeId,
    /// The edge of the stream, while it is live.
    pub(super) edge: Option<EdgeId>,
    pub(super) epoch: Epoch,
    /// Whether it has children that can help.
    pub(super) helpers: bool,
    /// Whether it may answer beside the stream itself.
    pub(super) images_beside: bool,
    /// This node's position.
    pub(super) position: Position,
    /// How far the parent has sent its stream in this epoch.
    pub(super) sent: Position,
    /// Whether this node shows no image yet: it and its parent stand at different places.
    pub(super) is_apart: bool,
}

impl Parent {
    /// Whether an answer may come beside the stream.
    pub(super) fn answers_beside(self) -> bool {
        self.helpers || self.images_beside
    }
}
