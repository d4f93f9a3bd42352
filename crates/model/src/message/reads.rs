//! What a transaction read, on the wire: half bytes, page after page, ascending.
//!
//! A page is told as its step from the one before in its segment, which is one or more, and then its
//! slots. A step of zero says that another segment follows: its step from the one before (of the
//! first, its number), and the number of the page in it. So each list has one form only.

use crate::change::SlotSet;
use crate::ids::{PageId, PageNo, SegmentId};
use crate::limits::READ_PAGES_MAX;
use crate::nibble::{Reader, Writer};
use crate::slots;
use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::fmt;
use serde::de::{Error, Visitor};
use serde::{Deserializer, Serializer};

type Reads = [(PageId, SlotSet)];

pub(super) fn serialize<S: Serializer>(reads: &Reads, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bytes(&written(reads))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<(PageId, SlotSet)>, D::Error> {
    deserializer.deserialize_bytes(Bytes)
}

struct Bytes;

impl Visitor<'_> for Bytes {
    type Value = Vec<(PageId, SlotSet)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pages and their slots, ascending")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Self::Value, E> {
        read(bytes).ok_or_else(|| E::custom("no list of pages and their slots"))
    }
}

fn written(reads: &Reads) -> Vec<u8> {
    let mut out = Writer::default();
    let mut last = None;
    for (page, slots) in in_order(reads).iter() {
        put_page(*page, last, &mut out);
        slots::put(slots, &mut out);
        last = Some(*page);
    }
    out.finish()
}

/// The pages ascending, each once, with a slot at least. Members say it so; whoever does not means
/// the same.
fn in_order(reads: &Reads) -> Cow<'_, Reads> {
    let ascending = reads.windows(2).all(|pair| pair[0].0 < pair[1].0);
    if ascending && reads.iter().all(|(_, slots)| slots::is_any(slots)) {
        return Cow::Borrowed(reads);
    }
    let mut pages: BTreeMap<PageId, SlotSet> = BTreeMap::new();
    for (page, slots) in reads.iter().filter(|(_, slots)| slots::is_any(slots)) {
        pages.entry(*page).or_default().extend(*slots);
    }
    Cow::Owned(pages.into_iter().collect())
}

fn put_page(page: PageId, last: Option<PageId>, out: &mut Writer) {
    match last {
        Some(last) if last.segment == page.segment => out.put(page.page.0 - last.page.0),
        _ => {
            out.put(0);
            out.put(page.segment.0 - last.map_or(0, |last| last.segment.0));
            out.put(page.page.0);
        }
    }
}

/// Reads a list, in the form that it is written in. What it takes in memory is bounded by
/// [`READ_PAGES_MAX`], however little the bytes are.
fn read(bytes: &[u8]) -> Option<Vec<(PageId, SlotSet)>> {
    let mut from = Reader::new(bytes);
    let mut reads = Vec::new();
    let mut last = None;
    while !from.is_at_end() {
        if reads.len() == READ_PAGES_MAX {
            return None;
        }
        let page = take_page(last, &mut from)?;
        reads.push((page, slots::take(&mut from)?));
        last = Some(page);
    }
    Some(reads)
}

fn take_page(last: Option<PageId>, from: &mut Reader<'_>) -> Option<PageId> {
    let (step, last) = match (from.number()?, last) {
        (0, last) => return take_segment(last, from),
        (step, last) => (step, last?),
    };
    let page = PageNo(last.page.0.checked_add(step)?);
    Some(PageId { page, ..last })
}

fn take_segment(last: Option<PageId>, from: &mut Reader<'_>) -> Option<PageId> {
    let segment = match (from.number()?, last) {
        (first, None) => first,
        (0, Some(_)) => return None,
        (step, Some(last)) => last.segment.0.checked_add(step)?,
    };
    Some(PageId {
        segment: SegmentId(segment),
        page: PageNo(from.number()?),
    })
}

#[cfg(test)]
mod tests;
