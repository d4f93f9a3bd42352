//! What commits write and what streams deliver, and how a page takes it in.

use crate::blob::Blob;
use crate::ids::{Generation, PageId, Position, Slot, Stamp};
use crate::image::{Content, Draft, Image, ImageEdit, Overflow};
use crate::limits::{
    INLINE_VALUE_BYTES_MAX, PROCEDURE_CHARGE_BYTES, PROCEDURES_OF_OBJECT_MAX, SLOTS_MAX,
};
use crate::planted;
use crate::planted::Bug;
use crate::procedure::Procedure;
use alloc::vec::Vec;
use core::fmt;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A set of slots of one page.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct SlotSet([u64; 4]);

impl SlotSet {
    /// All slots that a page can have.
    pub const ALL: SlotSet = SlotSet([u64::MAX; 4]);

    /// A set of one.
    pub fn of(slot: Slot) -> Self {
        let mut set = Self::default();
        set.insert(slot);
        set
    }

    /// Adds a slot. Those beyond [`SLOTS_MAX`] do not exist and are left out.
    pub fn insert(&mut self, slot: Slot) {
        if slot.0 < SLOTS_MAX {
            self.0[usize::from(slot.0 / 64)] |= 1 << (slot.0 % 64);
        }
    }

    /// Adds all of another set.
    pub fn extend(&mut self, other: SlotSet) {
        for (word, more) in self.0.iter_mut().zip(other.0) {
            *word |= more;
        }
    }

    /// Whether a slot is in it.
    pub fn contains(&self, slot: Slot) -> bool {
        slot.0 < SLOTS_MAX && self.0[usize::from(slot.0 / 64)] & (1 << (slot.0 % 64)) != 0
    }

    /// Whether both have a slot in common.
    pub fn touches(&self, other: &SlotSet) -> bool {
        self.0.iter().zip(other.0).any(|(a, b)| a & b != 0)
    }

    /// The set without some slots.
    #[must_use]
    pub fn without(mut self, slots: impl IntoIterator<Item = Slot>) -> Self {
        for slot in slots.into_iter().filter(|slot| slot.0 < SLOTS_MAX) {
            self.0[usize::from(slot.0 / 64)] &= !(1 << (slot.0 % 64));
        }
        self
    }

    /// Whether no slot is in it.
    pub fn is_empty(&self) -> bool {
        self.0 == [0; 4]
    }

    /// Its slots, ascending.
    pub fn iter(&self) -> impl Iterator<Item = Slot> + '_ {
        self.0.into_iter().zip(0..).flat_map(|(word, at)| {
            // Clears the lowest bit that is set, until there is none.
            let rest = |word: &u64| Some(word & (word - 1)).filter(|rest| *rest != 0);
            let words = core::iter::successors(Some(word).filter(|word| *word != 0), rest);
            words.map(move |word| Slot(at * 64 + word.trailing_zeros() as u16))
        })
    }

    /// The bits as words, lowest slots first.
    pub fn words(&self) -> [u64; 4] {
        self.0
    }

    /// The set of [`SlotSet::words`].
    pub fn from_words(words: [u64; 4]) -> Self {
        SlotSet(words)
    }
}

impl FromIterator<Slot> for SlotSet {
    fn from_iter<I: IntoIterator<Item = Slot>>(slots: I) -> Self {
        let mut set = Self::default();
        slots.into_iter().for_each(|slot| set.insert(slot));
        set
    }
}

impl fmt::Debug for SlotSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::ALL {
            return write!(f, "{{all}}");
        }
        f.debug_set().entries(self.iter()).finish()
    }
}

/// As it is in the store. On the wire it is shorter (`crate::slots`).
impl Serialize for SlotSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let used = 4 - self.0.iter().rev().take_while(|word| **word == 0).count();
        self.0[..used].serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for SlotSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let words = Vec::<u64>::deserialize(deserializer)?;
        if words.len() > 4 {
            return Err(serde::de::Error::custom(
                "a slot set of more than 256 slots",
            ));
        }
        let mut set = Self::default();
        for (to, from) in set.0.iter_mut().zip(words) {
            *to = from;
        }
        Ok(set)
    }
}

/// A new value in a commit request.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum NewValue {
    /// The bytes, at most [`crate::limits::INLINE_VALUE_BYTES_MAX`].
    Inline(Blob),
    /// Overflow pages that were staged for this commit (foundation 3).
    Staged(Overflow),
}

/// What a transaction does to one slot.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum WriteOp {
    /// A new object; the generation is one above the slot's last.
    Create {
        /// The new object's generation.
        generation: Generation,
        /// Its value.
        value: NewValue,
    },
    /// A new value; blind, unless the slot was read too.
    Write {
        /// The generation it is meant for.
        generation: Generation,
        /// The value.
        value: NewValue,
    },
    /// New bytes at an offset of a value of this length or longer; a read of the slot.
    Patch {
        /// The generation it is meant for.
        generation: Generation,
        /// Where, in bytes.
        offset: u32,
        /// The bytes.
        bytes: Blob,
    },
    /// The object's end; a read of the slot.
    Delete {
        /// The generation it is meant for.
        generation: Generation,
    },
    /// What the home runs on the value that it finds; blind, unless the slot was read too (rule C8).
    Apply {
        /// The generation it is meant for.
        generation: Generation,
        /// One after the other: all run, or the commit is refused.
        procedures: Vec<Procedure>,
    },
}

impl WriteOp {
    /// The generation that the slot has afterwards.
    pub fn generation(&self) -> Generation {
        match self {
            WriteOp::Create { generation, .. }
            | WriteOp::Write { generation, .. }
            | WriteOp::Patch { generation, .. }
            | WriteOp::Apply { generation, .. }
            | WriteOp::Delete { generation } => *generation,
        }
    }

    /// Whether the operation depends on what was there (rule 4).
    pub fn reads(&self) -> bool {
        !matches!(self, WriteOp::Write { .. } | WriteOp::Apply { .. })
    }

    /// Bytes of values, for limits. Each procedure is charged for what running it costs, too.
    pub fn bytes(&self) -> usize {
        match self {
            WriteOp::Create { value, .. } | WriteOp::Write { value, .. } => match value {
                NewValue::Inline(blob) => blob.bytes().len(),
                NewValue::Staged(_) => 0,
            },
            WriteOp::Patch { bytes, .. } => bytes.bytes().len(),
            WriteOp::Apply { procedures, .. } => {
                let each = procedures.iter().map(Procedure::bytes);
                each.map(|bytes| bytes + PROCEDURE_CHARGE_BYTES).sum()
            }
            WriteOp::Delete { .. } => 0,
        }
    }

    /// Whether its value, or each of its procedures, may travel in a commit.
    pub fn is_inline(&self) -> bool {
        match self {
            WriteOp::Apply { procedures, .. } => {
                let mut bytes = procedures.iter().map(Procedure::bytes);
                procedures.len() <= PROCEDURES_OF_OBJECT_MAX
                    && bytes.all(|bytes| bytes <= INLINE_VALUE_BYTES_MAX)
            }
            _ => self.bytes() <= INLINE_VALUE_BYTES_MAX,
        }
    }

    /// What the stream would say of it if the home spills nothing. Only the home knows what a procedure left.
    pub fn effect(&self) -> SlotChange {
        match self {
            WriteOp::Create { generation, value } | WriteOp::Write { generation, value } => {
                match value {
                    NewValue::Inline(bytes) => SlotChange::Value {
                        generation: *generation,
                        bytes: bytes.clone(),
                    },
                    NewValue::Staged(overflow) => SlotChange::Overflow {
                        generation: *generation,
                        overflow: *overflow,
                    },
                }
            }
            WriteOp::Patch {
                generation,
                offset,
                bytes,
            } => SlotChange::Patch {
                generation: *generation,
                offset: *offset,
                bytes: bytes.clone(),
            },
            WriteOp::Delete { generation } => SlotChange::Deleted {
                generation: *generation,
            },
            WriteOp::Apply { .. } => SlotChange::Invalid,
        }
    }
}

/// What happened to one slot at a position.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum SlotChange {
    /// It changed; the value is not told. It becomes a hole.
    Invalid,
    /// Its value.
    Value {
        /// The object's generation.
        generation: Generation,
        /// All its bytes.
        bytes: Blob,
    },
    /// A part of its value.
    Patch {
        /// The object's generation.
        generation: Generation,
        /// Where, in bytes.
        offset: u32,
        /// The new bytes there.
        bytes: Blob,
    },
    /// Its value runs over overflow pages, or was spilled there.
    Overflow {
        /// The object's generation.
        generation: Generation,
        /// Where it lies.
        overflow: Overflow,
    },
    /// It is no more.
    Deleted {
        /// The generation of the object that was deleted.
        generation: Generation,
    },
}

impl SlotChange {
    /// Bytes of values, for limits.
    pub fn bytes(&self) -> usize {
        match self {
            SlotChange::Value { bytes, .. } | SlotChange::Patch { bytes, .. } => {
                bytes.bytes().len()
            }
            _ => 0,
        }
    }

    /// The same with its value left out: what other sites are told. Where an
    /// object went and that it ended cost nothing and are told to all.
    #[must_use]
    pub fn without_value(&self) -> SlotChange {
        match self {
            SlotChange::Overflow { .. } | SlotChange::Deleted { .. } => self.clone(),
            _ => SlotChange::Invalid,
        }
    }
}

/// What happened to one page at a position.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PageChange {
    /// The page.
    pub page: PageId,
    /// Its slots, or that the page is no more.
    pub slots: PageSlots,
}

/// The changed part of a page.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum PageSlots {
    /// The whole page is invalid: drop it.
    Whole,
    /// These slots changed, ascending, each once.
    Some(Vec<(Slot, SlotChange)>),
}

impl PageChange {
    /// The slots it touches.
    pub fn slot_set(&self) -> SlotSet {
        match &self.slots {
            PageSlots::Whole => SlotSet::ALL,
            PageSlots::Some(slots) => slots.iter().map(|(slot, _)| *slot).collect(),
        }
    }

    /// The same with values left out.
    #[must_use]
    pub fn without_values(&self) -> PageChange {
        PageChange {
            page: self.page,
            slots: match &self.slots {
                PageSlots::Whole => PageSlots::Whole,
                PageSlots::Some(slots) => PageSlots::Some(
                    slots
                        .iter()
                        .map(|(slot, change)| (*slot, change.without_value()))
                        .collect(),
                ),
            },
        }
    }

    /// The same with the values of these slots only.
    #[must_use]
    pub fn with_values_of(&self, kept: SlotSet) -> PageChange {
        let kept = |(slot, change): &(Slot, SlotChange)| match kept.contains(*slot) {
            true => (*slot, change.clone()),
            false => (*slot, change.without_value()),
        };
        PageChange {
            page: self.page,
            slots: match &self.slots {
                PageSlots::Whole => PageSlots::Whole,
                PageSlots::Some(slots) => PageSlots::Some(slots.iter().map(kept).collect()),
            },
        }
    }

    /// The slots whose values it tells.
    pub fn valued(&self) -> SlotSet {
        let tells = |(_, change): &&(Slot, SlotChange)| matches!(change, SlotChange::Value { .. });
        match &self.slots {
            PageSlots::Whole => SlotSet::default(),
            PageSlots::Some(slots) => slots.iter().filter(tells).map(|(slot, _)| *slot).collect(),
        }
    }

    /// Slots that it names.
    pub fn slot_count(&self) -> usize {
        match &self.slots {
            PageSlots::Whole => 0,
            PageSlots::Some(slots) => slots.len(),
        }
    }

    /// Bytes of values, for limits.
    pub fn bytes(&self) -> usize {
        match &self.slots {
            PageSlots::Whole => 0,
            PageSlots::Some(slots) => slots.iter().map(|(_, change)| change.bytes()).sum(),
        }
    }

    /// Whether a reader of the page would find a hole after it.
    pub fn makes_holes(&self) -> bool {
        match &self.slots {
            PageSlots::Whole => true,
            PageSlots::Some(slots) => slots.iter().any(|(_, c)| *c == SlotChange::Invalid),
        }
    }
}

/// Applies what happened to a page at `position`: the image as of that position,
/// or `None` if the page is no more (or no page at all: drop it).
///
/// A patch never fills a hole (rule 8); a patch that does not fit its base, which
/// no right home sends, makes one. A value fills a hole: it is the committed
/// value as of the position, which is all that rule 3 asks.
pub fn apply(
    image: &Image,
    change: &PageChange,
    position: Position,
    stamp: Stamp,
) -> Option<Image> {
    let PageSlots::Some(slots) = &change.slots else {
        return None;
    };
    let mut edit = ImageEdit::of(image);
    for (slot, slot_change) in slots {
        apply_slot(&mut edit, *slot, slot_change);
    }
    let highest = match planted::is(Bug::LastStampTold) {
        true => stamp,
        false => stamp.max(image.stamp()),
    };
    // No right home lets a page outgrow its limit; a wrong one must not harm us.
    edit.fits().then(|| edit.finish(position, highest))
}

/// Applies what happened to one slot.
pub fn apply_slot(edit: &mut ImageEdit, slot: Slot, change: &SlotChange) {
    let (old_generation, old) = edit.get(slot);
    let (generation, draft) = match change {
        SlotChange::Invalid => (old_generation, Draft::Hole),
        SlotChange::Value { generation, bytes } => {
            (*generation, Draft::Value(bytes.bytes().to_vec()))
        }
        SlotChange::Overflow {
            generation,
            overflow,
        } => (*generation, Draft::Overflow(*overflow)),
        SlotChange::Deleted { generation } => (*generation, Draft::Free),
        SlotChange::Patch {
            generation,
            offset,
            bytes,
        } => (
            *generation,
            patched(old_generation == *generation, old, *offset, bytes.bytes()),
        ),
    };
    edit.set(slot, generation, draft);
}

fn patched(same_object: bool, base: Content<'_>, offset: u32, bytes: &[u8]) -> Draft {
    let Content::Value(base) = base else {
        return filled(base, offset, bytes);
    };
    match patch(base, offset, bytes) {
        Some(value) if same_object => Draft::Value(value),
        _ => Draft::Hole,
    }
}

/// What a patch makes of what is no value: a hole, but for a planted bug.
fn filled(base: Content<'_>, offset: u32, bytes: &[u8]) -> Draft {
    if base == Content::Hole && planted::is(Bug::PatchFillsHole) {
        let zeros = core::iter::repeat_n(0, offset as usize);
        return Draft::Value(zeros.chain(bytes.iter().copied()).collect());
    }
    Draft::Hole
}

/// A value with new bytes at an offset; `None` if they lie beyond its end.
pub fn patch(base: &[u8], offset: u32, bytes: &[u8]) -> Option<Vec<u8>> {
    let start = usize::try_from(offset).ok()?;
    let end = start.checked_add(bytes.len())?;
    let mut value = base.to_vec();
    value.get_mut(start..end)?.copy_from_slice(bytes);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::PageNo;
    use alloc::vec;

    fn page_of(slots: Vec<(Slot, SlotChange)>) -> PageChange {
        PageChange {
            page: PageId::new(1, 1),
            slots: PageSlots::Some(slots),
        }
    }

    fn value(text: &str) -> SlotChange {
        SlotChange::Value {
            generation: Generation(1),
            bytes: Blob::from(text.as_bytes()),
        }
    }

    fn patch_of(offset: u32, text: &str) -> SlotChange {
        SlotChange::Patch {
            generation: Generation(1),
            offset,
            bytes: Blob::from(text.as_bytes()),
        }
    }

    fn applied(image: &Image, slots: Vec<(Slot, SlotChange)>, position: u64) -> Image {
        apply(image, &page_of(slots), Position(position), Stamp::default()).expect("not whole")
    }

    #[test]
    fn a_patch_changes_a_value_and_never_fills_a_hole() {
        let image = applied(&Image::empty(), vec![(Slot(0), value("abcdef"))], 1);
        let image = applied(&image, vec![(Slot(0), patch_of(2, "XY"))], 2);
        assert_eq!(
            image.content(Slot(0)),
            crate::image::Content::Value(b"abXYef")
        );
        let image = applied(&image, vec![(Slot(0), SlotChange::Invalid)], 3);
        let image = applied(&image, vec![(Slot(0), patch_of(0, "Z"))], 4);
        assert_eq!(image.holes(), 1);
        let image = applied(&image, vec![(Slot(0), value("new"))], 5);
        assert!(image.is_complete());
    }

    #[test]
    fn a_patch_of_another_generation_or_beyond_the_end_makes_a_hole() {
        let image = applied(&Image::empty(), vec![(Slot(0), value("abc"))], 1);
        let beyond = applied(&image, vec![(Slot(0), patch_of(2, "XY"))], 2);
        assert_eq!(beyond.holes(), 1);
        let other = SlotChange::Patch {
            generation: Generation(2),
            offset: 0,
            bytes: Blob::from(&b"Z"[..]),
        };
        assert_eq!(applied(&image, vec![(Slot(0), other)], 2).holes(), 1);
    }

    #[test]
    fn other_sites_learn_where_an_object_went_but_not_its_value() {
        let overflow = SlotChange::Overflow {
            generation: Generation(1),
            overflow: Overflow {
                bytes: 1,
                first: PageNo(9),
                pages: 1,
            },
        };
        let change = page_of(vec![
            (Slot(0), value("secret")),
            (Slot(1), overflow.clone()),
        ]);
        let told = page_of(vec![(Slot(0), SlotChange::Invalid), (Slot(1), overflow)]);
        assert_eq!(change.without_values(), told);
    }

    #[test]
    fn slot_sets_hold_what_pages_can() {
        let mut set: SlotSet = [Slot(0), Slot(63), Slot(64), Slot(239)]
            .into_iter()
            .collect();
        assert_eq!(set.iter().count(), 4);
        set.insert(Slot(240));
        assert_eq!(set.iter().count(), 4);
        assert!(set.touches(&SlotSet::of(Slot(239))));
        assert!(!set.touches(&SlotSet::of(Slot(238))));
        assert!(SlotSet::ALL.contains(Slot(239)) && !SlotSet::ALL.contains(Slot(250)));
    }
}
