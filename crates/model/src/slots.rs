//! A set of slots on the wire: as runs or as bits, whichever is shorter, in nibbles.
//!
//! Runs: how many, then for each the slots left out before it (but for the one that must be, between
//! two) and the slots in it (but for the first). Bits: zero runs, then how many nibbles of bits (but
//! for the first), then these, from slot 0 to the last one in the set. Each set has one form only, and
//! the empty one has none.

use crate::change::SlotSet;
use crate::ids::Slot;
use crate::limits::SLOTS_MAX;
use crate::nibble::{Reader, Writer, nibbles_of};
use core::ops::Range;

/// Writes a set that has a slot. Those that no page has are left out.
pub(crate) fn put(set: &SlotSet, out: &mut Writer) {
    debug_assert!(is_any(set));
    let shape = Shape::of(set);
    if shape.is_shorter_as_bits() {
        return put_bits(set, shape.end, out);
    }
    out.put(shape.runs);
    for (gap, run) in runs(set) {
        out.put(gap);
        out.put(u32::from(run.end - run.start - 1));
    }
}

/// Reads a set, if it is one, and in the form that it is written in.
pub(crate) fn take(from: &mut Reader<'_>) -> Option<SlotSet> {
    let runs = from.number()?;
    let set = match runs {
        0 => take_bits(from)?,
        _ => take_runs(runs, from)?,
    };
    let is_right_form = Shape::of(&set).is_shorter_as_bits() == (runs == 0);
    is_right_form.then_some(set)
}

/// Whether a set has a slot that a page can have.
pub(crate) fn is_any(set: &SlotSet) -> bool {
    runs(set).next().is_some()
}

fn put_bits(set: &SlotSet, end: u16, out: &mut Writer) {
    let nibbles = end.div_ceil(NIBBLE_BITS);
    out.put(0);
    out.put(u32::from(nibbles) - 1);
    for nibble in 0..nibbles {
        let bit = |at: u16| u8::from(set.contains(Slot(nibble * NIBBLE_BITS + at))) << at;
        out.put_nibble((0..NIBBLE_BITS).map(bit).sum());
    }
}

fn take_bits(from: &mut Reader<'_>) -> Option<SlotSet> {
    let nibbles = u16::try_from(from.number()?).ok()?.checked_add(1)?;
    if nibbles > NIBBLES_MAX {
        return None;
    }
    let mut set = SlotSet::default();
    let mut last = 0;
    for nibble in 0..nibbles {
        last = from.nibble()?;
        let bits = (0..NIBBLE_BITS).filter(|at| last >> at & 1 == 1);
        set.extend(bits.map(|at| Slot(nibble * NIBBLE_BITS + at)).collect());
    }
    (last != 0).then_some(set)
}

fn take_runs(runs: u32, from: &mut Reader<'_>) -> Option<SlotSet> {
    let mut set = SlotSet::default();
    let mut end = 0_u32;
    for run in 0..runs {
        let between = u32::from(run > 0);
        let start = end.checked_add(between)?.checked_add(from.number()?)?;
        end = start.checked_add(1)?.checked_add(from.number()?)?;
        if end > u32::from(SLOTS_MAX) {
            return None;
        }
        set.extend((start as u16..end as u16).map(Slot).collect());
    }
    Some(set)
}

/// What decides how a set is written.
struct Shape {
    /// Its runs.
    runs: u32,
    /// Nibbles that these take.
    run_nibbles: u32,
    /// The slot after the last.
    end: u16,
}

impl Shape {
    fn of(set: &SlotSet) -> Self {
        let none = Shape {
            runs: 0,
            run_nibbles: 0,
            end: 0,
        };
        runs(set).fold(none, |shape, (gap, run)| Shape {
            runs: shape.runs + 1,
            run_nibbles: shape.run_nibbles
                + nibbles_of(gap)
                + nibbles_of(u32::from(run.end - run.start - 1)),
            end: run.end,
        })
    }

    fn is_shorter_as_bits(&self) -> bool {
        let nibbles = u32::from(self.end.div_ceil(NIBBLE_BITS));
        let as_bits = 1 + nibbles_of(nibbles.saturating_sub(1)) + nibbles;
        as_bits < nibbles_of(self.runs) + self.run_nibbles
    }
}

/// The runs of a set, each with the slots left out before it, but for the one that must be.
fn runs(set: &SlotSet) -> impl Iterator<Item = (u32, Range<u16>)> + '_ {
    let slots = set.iter().map(|slot| slot.0);
    let mut slots = slots.take_while(|slot| *slot < SLOTS_MAX).peekable();
    let mut first_that_may_be = 0;
    core::iter::from_fn(move || {
        let start = slots.next()?;
        let mut end = start + 1;
        while slots.next_if_eq(&end).is_some() {
            end += 1;
        }
        let gap = u32::from(start - first_that_may_be);
        first_that_may_be = end + 1;
        Some((gap, start..end))
    })
}

/// Slots in a nibble.
const NIBBLE_BITS: u16 = 4;

/// Nibbles for all slots of a page.
const NIBBLES_MAX: u16 = SLOTS_MAX / NIBBLE_BITS;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Xoshiro256;
    use alloc::vec::Vec;

    fn nibbles(numbers: &[u32]) -> Writer {
        let mut writer = Writer::default();
        numbers.iter().for_each(|number| writer.put(*number));
        writer
    }

    fn bytes_of(set: &SlotSet) -> Vec<u8> {
        let mut writer = Writer::default();
        put(set, &mut writer);
        writer.finish()
    }

    fn read(bytes: &[u8]) -> Option<SlotSet> {
        let mut reader = Reader::new(bytes);
        take(&mut reader).filter(|_| reader.is_at_end())
    }

    fn set_of(slots: impl IntoIterator<Item = u16>) -> SlotSet {
        slots.into_iter().map(Slot).collect()
    }

    #[test]
    fn a_set_takes_what_its_shape_is_worth() {
        let one = set_of([3]);
        assert_eq!(bytes_of(&one), [0x31, 0x00], "one run, after three, of one");
        let all = set_of(0..SLOTS_MAX);
        assert_eq!(
            bytes_of(&all),
            [0x01, 0xdf, 0x03],
            "one run, after none, of 240"
        );
        let runs = set_of((2..7).chain(9..14).chain(20..25));
        assert_eq!(bytes_of(&runs), [0x23, 0x14, 0x54, 0x04]);
        let every_second = set_of((0..SLOTS_MAX).step_by(2));
        assert_eq!(
            bytes_of(&every_second).len(),
            32,
            "bits: 60 nibbles and three more"
        );
    }

    #[test]
    fn every_set_comes_back() {
        let mut dice = Xoshiro256::new(11);
        for _ in 0..4_000 {
            let (within, wanted) = (dice.below(240) as u16 + 1, dice.below(241));
            let slots = (0..=wanted).map(|_| dice.below(u64::from(within)) as u16);
            let set = set_of(slots);
            let bytes = bytes_of(&set);
            assert_eq!(read(&bytes), Some(set));
            assert!(bytes.len() <= 32);
        }
    }

    #[test]
    fn whatever_is_read_is_written_so() {
        let mut dice = Xoshiro256::new(12);
        let mut sets = 0;
        for _ in 0..30_000 {
            let length = dice.below(8) + 1;
            let bytes: Vec<u8> = (0..length).map(|_| dice.below(256) as u8).collect();
            if let Some(set) = read(&bytes) {
                sets += 1;
                assert_eq!(bytes_of(&set), bytes);
            }
        }
        assert!(sets > 100, "{sets} of them are sets");
    }

    #[test]
    fn slots_that_no_page_has_are_neither_written_nor_read() {
        assert_eq!(bytes_of(&SlotSet::ALL), bytes_of(&set_of(0..SLOTS_MAX)));
        assert!(!is_any(&SlotSet::from_words([0, 0, 0, 1 << 63])));
        let beyond = nibbles(&[1, 0, u32::from(SLOTS_MAX)]);
        assert_eq!(read(&beyond.finish()), None, "a run of 241");
        let overflowing = nibbles(&[1, u32::MAX, u32::MAX]);
        assert_eq!(read(&overflowing.finish()), None);
        let mut long = nibbles(&[0, u32::from(NIBBLES_MAX)]);
        (0..=NIBBLES_MAX).for_each(|_| long.put_nibble(0b0101));
        assert_eq!(read(&long.finish()), None, "61 nibbles of bits");
    }

    #[test]
    fn the_longer_form_of_a_set_is_none() {
        let mut bits = nibbles(&[0, 0]);
        bits.put_nibble(0b0001);
        assert_eq!(read(&bits.finish()), None, "slot 0 is a run");
        let empty = nibbles(&[0, 0, 0]);
        assert_eq!(read(&empty.finish()), None);
    }
}
