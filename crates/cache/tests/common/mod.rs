//! What the tests publish and read.
#![allow(dead_code, reason = "each test file uses a part")]

use thorp_cache::{Cache, Doomed, ReadError, ReadSet};
use thorp_model::{
    Content, Draft, Generation, HomeId, Image, ImageEdit, Millis, PageId, Place, Position, Publish,
    Slot, SlotSet, Stamp,
};

pub(crate) const HOME: HomeId = HomeId(1);

pub(crate) fn page(number: u32) -> PageId {
    PageId::new(1, number)
}

pub(crate) fn place(number: u32) -> Place {
    Place {
        home: HOME,
        page: page(number),
    }
}

/// An image whose slots hold these numbers; zero is a hole.
pub(crate) fn image(version: u64, values: &[u64]) -> Image {
    let mut edit = ImageEdit::default();
    for (slot, value) in values.iter().enumerate() {
        let draft = match value {
            0 => Draft::Hole,
            value => Draft::Value(value.to_le_bytes().to_vec()),
        };
        edit.set(Slot(slot as u16), Generation(1), draft);
    }
    edit.finish(Position(version), stamp(version))
}

pub(crate) fn stamp(clock: u64) -> Stamp {
    Stamp { clock, home: HOME }
}

pub(crate) fn slots(slots: &[u16]) -> SlotSet {
    slots.iter().copied().map(Slot).collect()
}

/// A publication that says nothing but a position.
pub(crate) fn at(position: u64) -> Publish {
    Publish {
        home: HOME,
        overlay: thorp_model::OverlayUpdate::default(),
        touched: Vec::new(),
        evicted: Vec::new(),
        images: Vec::new(),
        position: Position(position),
        watermark: stamp(position),
        heard: Millis(position),
        missed: None,
        tentative: Default::default(),
        history: 0,
    }
}

/// A page comes to the cache.
pub(crate) fn arrives(position: u64, number: u32, image: Image) -> Publish {
    Publish {
        images: vec![(page(number), Some(image))],
        ..at(position)
    }
}

/// A commit changed slots of a cached page.
pub(crate) fn changes(position: u64, number: u32, touched: &[u16], values: &[u64]) -> Publish {
    Publish {
        touched: vec![(page(number), slots(touched))],
        ..arrives(position, number, image(position, values))
    }
}

/// A page is evicted.
pub(crate) fn evicts(position: u64, number: u32) -> Publish {
    Publish {
        evicted: vec![page(number)],
        images: vec![(page(number), None)],
        ..at(position)
    }
}

/// Reads a slot's number; zero if there is no object.
pub(crate) fn read(
    set: &mut ReadSet,
    cache: &Cache,
    number: u32,
    slot: u16,
) -> Result<u64, ReadError> {
    let read = set.read(cache, place(number), Slot(slot))?;
    match read.content {
        Content::Free => Ok(0),
        Content::Value(bytes) => Ok(u64::from_le_bytes(bytes.try_into().expect("eight bytes"))),
        other => panic!("nobody wrote {other:?}"),
    }
}

pub(crate) fn evidence(set: &mut ReadSet, cache: &Cache) -> Result<u64, Doomed> {
    set.evidence(cache, HOME).map(|position| position.0)
}

pub(crate) fn miss(number: u32) -> Result<u64, ReadError> {
    Err(ReadError::Miss(place(number)))
}

pub(crate) fn doomed(doomed: Doomed) -> Result<u64, ReadError> {
    Err(ReadError::Doomed(doomed))
}

/// A cache at position 10 with pages 1 and 2: slots 0, 1, 2 hold page * 100 + slot.
pub(crate) fn two_pages() -> Cache {
    let cache = Cache::remembering(1 << 20, 63);
    cache.publish(&arrives(10, 1, image(10, &[100, 101, 102])));
    cache.publish(&arrives(10, 2, image(10, &[200, 201, 202])));
    cache
}
