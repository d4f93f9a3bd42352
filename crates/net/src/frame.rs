//! A frame on its way out, in two parts that follow one another: bytes of its own, and bytes that others hold, too.

use std::sync::Arc;

/// What is sent as one. A page image at its end is nobody's copy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    head: Vec<u8>,
    tail: Option<Arc<[u8]>>,
}

impl Frame {
    /// A frame that ends with bytes that are shared.
    pub fn sharing(head: Vec<u8>, tail: Option<Arc<[u8]>>) -> Self {
        Self { head, tail }
    }

    /// Its length without the prefix.
    pub(crate) fn len(&self) -> usize {
        self.head.len() + self.tail().len()
    }

    pub(crate) fn head(&self) -> &[u8] {
        &self.head
    }

    pub(crate) fn tail(&self) -> &[u8] {
        self.tail.as_deref().unwrap_or_default()
    }
}

impl From<Vec<u8>> for Frame {
    fn from(head: Vec<u8>) -> Self {
        Self { head, tail: None }
    }
}
