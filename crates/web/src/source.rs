//! What a proxy asks of a source beside versions: whether answers say themselves on what they rest.

use crate::journal::Cause;
use hyper::HeaderMap;
use std::sync::Arc;
use thorp_versions::{Cells, Followed, Place, Reader, Versions};

/// On what an answer rests, as its own fields say.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Said<E> {
    /// They say nothing: its request does.
    Nothing,
    /// It was right as of then, and rests on these.
    On(E, Vec<Place>),
    /// It has no evidence, so it is not kept (rule W3).
    NoEvidence,
    /// The fields cannot be read, are too large, or name a home that this proxy does not follow. It is not kept.
    Unreadable,
}

/// Where the truth is, for a proxy.
pub trait Source: Versions {
    /// What the fields of an answer say. `before` is what [`Versions::evidence`] gave before the fill left.
    fn said(&self, _before: &Self::Evidence, _fields: &HeaderMap) -> Said<Self::Evidence> {
        Said::Nothing
    }

    /// The names of the places that the fields of an answer say. For people: no check rests on it.
    fn names(&self, _fields: &HeaderMap) -> Vec<(Place, String)> {
        Vec::new()
    }

    /// The Thorp homes on which answers rest, and whether each has a young beat.
    fn homes(&self, _now_ms: u64) -> Vec<(String, bool)> {
        Vec::new()
    }

    /// The update that has left this number in the word of a place, if that says it.
    fn cause(&self, _place: Place, _number: u64) -> Option<Cause> {
        None
    }
}

impl Source for Followed {}

impl<C: Cells> Source for Reader<C> {}

impl<S: Source + ?Sized> Source for Arc<S> {
    fn said(&self, before: &S::Evidence, fields: &HeaderMap) -> Said<S::Evidence> {
        (**self).said(before, fields)
    }

    fn names(&self, fields: &HeaderMap) -> Vec<(Place, String)> {
        (**self).names(fields)
    }

    fn homes(&self, now_ms: u64) -> Vec<(String, bool)> {
        (**self).homes(now_ms)
    }

    fn cause(&self, place: Place, number: u64) -> Option<Cause> {
        (**self).cause(place, number)
    }
}
