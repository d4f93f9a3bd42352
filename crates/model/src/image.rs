//! A page's bytes as of a position: immutable, shared, read in place.
//!
//! ```text
//!  0        8            16          20      22      24
//!  | version | stamp clock | stamp home | slots | holes | slot table | values ...
//!
//!  slot entry, 8 bytes: | offset u16 | length u16 | kind 2 bits, generation 30 bits |
//! ```
//!
//! All numbers little-endian. Values follow one another without gaps, in slot
//! order, so equal content has equal bytes.

use crate::ids::{Generation, HomeId, PageNo, Position, Slot, Stamp};
use crate::limits::{
    IMAGE_HEADER_BYTES, OVERFLOW_HEAD_BYTES, PAGE_BYTES, SLOT_CHARGE_MIN, SLOT_ENTRY_BYTES,
    SLOTS_MAX,
};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An immutable page image. Cloning shares the bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Image(Arc<[u8]>);

/// What a slot holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Content<'a> {
    /// No object: never used (generation zero) or deleted.
    Free,
    /// An object's bytes.
    Value(&'a [u8]),
    /// An object that runs over overflow pages.
    Overflow(Overflow),
    /// An object that was invalidated in this cached page.
    Hole,
}

impl Content<'_> {
    fn bytes(&self) -> usize {
        match self {
            Content::Free | Content::Hole => 0,
            Content::Value(value) => value.len(),
            Content::Overflow(_) => OVERFLOW_HEAD_BYTES,
        }
    }

    fn kind(&self) -> u32 {
        match self {
            Content::Free => FREE,
            Content::Value(_) => VALUE,
            Content::Overflow(_) => OVERFLOW,
            Content::Hole => HOLE,
        }
    }
}

/// Where an object that runs over overflow pages lies.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Overflow {
    /// Bytes of the object.
    pub bytes: u64,
    /// The first of its pages, in its own segment.
    pub first: PageNo,
    /// How many pages, one after another.
    pub pages: u32,
}

impl Overflow {
    /// Its pages in order.
    pub fn page_numbers(self) -> impl Iterator<Item = PageNo> {
        (self.first.0..self.first.0.saturating_add(self.pages)).map(PageNo)
    }
}

/// Why bytes are not a page image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MalformedImage(&'static str);

impl fmt::Display for MalformedImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a page image: {}", self.0)
    }
}

impl core::error::Error for MalformedImage {}

const KIND_SHIFT: u32 = 30;
const GENERATION_MASK: u32 = (1 << KIND_SHIFT) - 1;
const FREE: u32 = 0;
const VALUE: u32 = 1;
const OVERFLOW: u32 = 2;
const HOLE: u32 = 3;

impl Image {
    /// The image of a page that nothing was ever written to.
    pub fn empty() -> Self {
        Image(Arc::from([0; IMAGE_HEADER_BYTES]))
    }

    /// Checks bytes off a wire or a disk.
    pub fn parse(bytes: &[u8]) -> Result<Self, MalformedImage> {
        check(bytes)?;
        Ok(Image(Arc::from(bytes)))
    }

    /// The encoded bytes, at most [`PAGE_BYTES`].
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The encoded bytes, held together with whoever holds the image.
    pub fn shared(&self) -> Arc<[u8]> {
        Arc::clone(&self.0)
    }

    /// The position of the last commit that changed the page.
    pub fn version(&self) -> Position {
        Position(u64_at(&self.0, 0))
    }

    /// The highest stamp contained.
    pub fn stamp(&self) -> Stamp {
        Stamp {
            clock: u64_at(&self.0, 8),
            home: HomeId(u32_at(&self.0, 16)),
        }
    }

    /// Slots in the table; those beyond it were never used.
    pub fn slots(&self) -> u16 {
        u16_at(&self.0, 20)
    }

    /// Invalidated objects of this cached page.
    pub fn holes(&self) -> u16 {
        u16_at(&self.0, 22)
    }

    /// Whether the page has no holes.
    pub fn is_complete(&self) -> bool {
        self.holes() == 0
    }

    /// What a slot holds.
    pub fn content(&self, slot: Slot) -> Content<'_> {
        self.slot(slot).1
    }

    /// A slot's generation; zero if it was never used.
    pub fn generation(&self, slot: Slot) -> Generation {
        self.slot(slot).0
    }

    /// A slot's generation and content.
    pub fn slot(&self, slot: Slot) -> (Generation, Content<'_>) {
        if slot.0 >= self.slots() {
            return (Generation(0), Content::Free);
        }
        let entry = IMAGE_HEADER_BYTES + usize::from(slot.0) * SLOT_ENTRY_BYTES;
        let offset = usize::from(u16_at(&self.0, entry));
        let length = usize::from(u16_at(&self.0, entry + 2));
        let word = u32_at(&self.0, entry + 4);
        let value = &self.0[offset..offset + length];
        let content = match word >> KIND_SHIFT {
            FREE => Content::Free,
            VALUE => Content::Value(value),
            OVERFLOW => Content::Overflow(read_overflow(value)),
            _ => Content::Hole,
        };
        (Generation(word & GENERATION_MASK), content)
    }

    /// All slots in the table.
    pub fn iter(&self) -> impl Iterator<Item = (Slot, Generation, Content<'_>)> {
        (0..self.slots()).map(|slot| {
            let (generation, content) = self.slot(Slot(slot));
            (Slot(slot), generation, content)
        })
    }

    /// How many holders share these bytes, this one included.
    pub fn holders(&self) -> usize {
        Arc::strong_count(&self.0)
    }

    /// Whether both are the very same bytes in memory.
    pub fn is_same(&self, other: &Image) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// An object's content while a page is being changed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Draft {
    /// No object.
    #[default]
    Free,
    /// Its bytes.
    Value(Vec<u8>),
    /// Where it lies.
    Overflow(Overflow),
    /// Invalidated.
    Hole,
}

impl Draft {
    fn content(&self) -> Content<'_> {
        match self {
            Draft::Free => Content::Free,
            Draft::Value(value) => Content::Value(value),
            Draft::Overflow(overflow) => Content::Overflow(*overflow),
            Draft::Hole => Content::Hole,
        }
    }
}

/// A page that is being changed: an image and what differs from it, so that
/// changing one object copies the page once and takes nothing apart.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ImageEdit {
    base: Image,
    changed: BTreeMap<Slot, (Generation, Draft)>,
}

impl Default for ImageEdit {
    fn default() -> Self {
        ImageEdit::of(&Image::empty())
    }
}

impl ImageEdit {
    /// Begins with an image.
    pub fn of(image: &Image) -> Self {
        ImageEdit {
            base: image.clone(),
            changed: BTreeMap::new(),
        }
    }

    /// What a slot holds now.
    pub fn get(&self, slot: Slot) -> (Generation, Content<'_>) {
        match self.changed.get(&slot) {
            Some((generation, draft)) => (*generation, draft.content()),
            None => self.base.slot(slot),
        }
    }

    /// Sets a slot. The slot is below [`SLOTS_MAX`]: codecs and homes check it.
    pub fn set(&mut self, slot: Slot, generation: Generation, draft: Draft) {
        debug_assert!(slot.0 < SLOTS_MAX);
        self.changed.insert(slot, (generation, draft));
    }

    /// Bytes that the home counts against [`PAGE_BYTES`]: every slot pays for
    /// its entry and at least for the head of an overflow.
    pub fn charge(&self) -> usize {
        let slots: usize = self
            .iter()
            .map(|(_, content)| (SLOT_ENTRY_BYTES + content.bytes()).max(SLOT_CHARGE_MIN))
            .sum();
        IMAGE_HEADER_BYTES + slots
    }

    /// Whether the page keeps within [`PAGE_BYTES`].
    pub fn fits(&self) -> bool {
        self.fits_with(0, 0)
    }

    /// The same, if the page comes to have so many slots, and so many bytes stay free.
    pub fn fits_with(&self, slots: u16, free: usize) -> bool {
        let more = usize::from(slots.saturating_sub(self.slots()));
        self.charge() + more * SLOT_CHARGE_MIN + free <= PAGE_BYTES
    }

    fn slots(&self) -> u16 {
        let last = self.changed.last_key_value();
        let changed = last.map_or(0, |(slot, _)| slot.0 + 1);
        self.base.slots().max(changed)
    }

    fn iter(&self) -> impl Iterator<Item = (Generation, Content<'_>)> {
        let mut changed = self.changed.iter().peekable();
        (0..self.slots()).map(
            move |slot| match changed.next_if(|(changed, _)| changed.0 == slot) {
                Some((_, (generation, draft))) => (*generation, draft.content()),
                None => self.base.slot(Slot(slot)),
            },
        )
    }

    /// Encodes the page as of a position.
    pub fn finish(&self, version: Position, stamp: Stamp) -> Image {
        let slots = self.slots();
        let holes = self.iter().filter(|(_, c)| *c == Content::Hole).count();
        let table_end = IMAGE_HEADER_BYTES + usize::from(slots) * SLOT_ENTRY_BYTES;
        let values: usize = self.iter().map(|(_, content)| content.bytes()).sum();
        let mut bytes = Vec::with_capacity(table_end + values);
        bytes.extend_from_slice(&version.0.to_le_bytes());
        bytes.extend_from_slice(&stamp.clock.to_le_bytes());
        bytes.extend_from_slice(&stamp.home.0.to_le_bytes());
        bytes.extend_from_slice(&slots.to_le_bytes());
        bytes.extend_from_slice(&(holes as u16).to_le_bytes());
        let mut offset = table_end;
        for (generation, content) in self.iter() {
            let length = content.bytes();
            let word = (content.kind() << KIND_SHIFT) | (generation.0 & GENERATION_MASK);
            bytes.extend_from_slice(&(offset as u16).to_le_bytes());
            bytes.extend_from_slice(&(length as u16).to_le_bytes());
            bytes.extend_from_slice(&word.to_le_bytes());
            offset += length;
        }
        for (_, content) in self.iter() {
            write_content(&mut bytes, content);
        }
        Image(Arc::from(bytes))
    }
}

fn write_content(bytes: &mut Vec<u8>, content: Content<'_>) {
    match content {
        Content::Free | Content::Hole => {}
        Content::Value(value) => bytes.extend_from_slice(value),
        Content::Overflow(overflow) => {
            bytes.extend_from_slice(&overflow.bytes.to_le_bytes());
            bytes.extend_from_slice(&overflow.first.0.to_le_bytes());
            bytes.extend_from_slice(&overflow.pages.to_le_bytes());
        }
    }
}

fn read_overflow(value: &[u8]) -> Overflow {
    Overflow {
        bytes: u64_at(value, 0),
        first: PageNo(u32_at(value, 8)),
        pages: u32_at(value, 12),
    }
}

fn check(bytes: &[u8]) -> Result<(), MalformedImage> {
    if bytes.len() < IMAGE_HEADER_BYTES {
        return Err(MalformedImage("shorter than its header"));
    }
    if bytes.len() > PAGE_BYTES {
        return Err(MalformedImage("longer than a page"));
    }
    let slots = u16_at(bytes, 20);
    if slots > SLOTS_MAX {
        return Err(MalformedImage("too many slots"));
    }
    let table_end = IMAGE_HEADER_BYTES + usize::from(slots) * SLOT_ENTRY_BYTES;
    if bytes.len() < table_end {
        return Err(MalformedImage("its slot table is cut off"));
    }
    let mut offset = table_end;
    let mut holes = 0;
    for slot in 0..usize::from(slots) {
        let entry = IMAGE_HEADER_BYTES + slot * SLOT_ENTRY_BYTES;
        let length = usize::from(u16_at(bytes, entry + 2));
        let kind = u32_at(bytes, entry + 4) >> KIND_SHIFT;
        if usize::from(u16_at(bytes, entry)) != offset {
            return Err(MalformedImage("a value is out of place"));
        }
        let right_length = match kind {
            FREE => length == 0,
            HOLE => length == 0,
            OVERFLOW => length == OVERFLOW_HEAD_BYTES,
            _ => true,
        };
        if !right_length {
            return Err(MalformedImage("a slot's length does not fit its kind"));
        }
        holes += u16::from(kind == HOLE);
        offset += length;
    }
    if offset != bytes.len() {
        return Err(MalformedImage("its length is not that of its slots"));
    }
    if holes != u16_at(bytes, 22) {
        return Err(MalformedImage("its holes are miscounted"));
    }
    Ok(())
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | (u64::from(u32_at(bytes, at + 4)) << 32)
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}{{", self.version())?;
        let used = self.iter().filter(|(_, generation, _)| generation.0 > 0);
        for (index, (slot, generation, content)) in used.enumerate() {
            if index > 0 {
                write!(f, " ")?;
            }
            write!(f, "{slot}.{generation}=")?;
            match content {
                Content::Free => write!(f, "-")?,
                Content::Hole => write!(f, "?")?,
                Content::Value(value) => crate::blob::write_bytes(f, value)?,
                Content::Overflow(o) => write!(f, "{}B@{}+{}", o.bytes, o.first, o.pages)?,
            }
        }
        write!(f, "}}")
    }
}

impl Serialize for Image {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Image {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes = <&[u8]>::deserialize(deserializer)?;
        Image::parse(bytes).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn sample() -> Image {
        let mut edit = ImageEdit::default();
        edit.set(Slot(0), Generation(1), Draft::Value(vec![7; 100]));
        edit.set(Slot(2), Generation(9), Draft::Hole);
        let overflow = Overflow {
            bytes: 1 << 20,
            first: PageNo::OVERFLOW_FIRST,
            pages: 129,
        };
        edit.set(Slot(3), Generation(2), Draft::Overflow(overflow));
        edit.finish(
            Position(42),
            Stamp {
                clock: 5 << 16,
                home: HomeId(3),
            },
        )
    }

    #[test]
    fn what_was_put_in_comes_out() {
        let image = sample();
        assert_eq!(image.version(), Position(42));
        assert_eq!(image.stamp().clock, 5 << 16);
        assert_eq!(image.content(Slot(0)), Content::Value(&[7; 100]));
        assert_eq!(image.slot(Slot(1)), (Generation(0), Content::Free));
        assert_eq!(image.slot(Slot(2)), (Generation(9), Content::Hole));
        assert!(matches!(image.content(Slot(3)), Content::Overflow(o) if o.pages == 129));
        assert_eq!(image.slot(Slot(200)), (Generation(0), Content::Free));
        assert!(!image.is_complete());
        assert_eq!(Image::parse(image.bytes()), Ok(image.clone()));
        assert_eq!(
            ImageEdit::of(&image).finish(image.version(), image.stamp()),
            image
        );
    }

    #[test]
    fn no_change_of_a_byte_makes_a_reader_panic() {
        let image = sample();
        for at in 0..image.bytes().len() {
            for flip in [1u8, 0x80, 0xff] {
                let mut bytes = image.bytes().to_vec();
                bytes[at] ^= flip;
                if let Ok(image) = Image::parse(&bytes) {
                    assert!(image.iter().count() <= usize::from(SLOTS_MAX));
                }
            }
        }
        for length in 0..image.bytes().len() {
            assert!(Image::parse(&image.bytes()[..length]).is_err());
        }
    }

    #[test]
    fn a_page_full_of_small_objects_can_spill_every_one() {
        let mut edit = ImageEdit::default();
        for slot in 0..SLOTS_MAX {
            edit.set(Slot(slot), Generation(1), Draft::Value(vec![1]));
        }
        assert!(edit.fits());
        let overflow = Overflow {
            bytes: 9,
            first: PageNo(1),
            pages: 1,
        };
        for slot in 0..SLOTS_MAX {
            edit.set(Slot(slot), Generation(1), Draft::Overflow(overflow));
        }
        assert!(edit.fits());
        assert!(edit.finish(Position(1), Stamp::default()).bytes().len() <= PAGE_BYTES);
    }
}
