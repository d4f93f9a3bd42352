//! What changed lately, object by object, down to the validation floor (rule 6).

use alloc::collections::{BTreeMap, VecDeque};
use thorp_model::planted::Bug;
use thorp_model::{ObjectId, PageId, Position, Slot, SlotSet, planted};

/// The last change of every object that changed above the floor.
#[derive(Debug)]
pub(in crate::home) struct Changes {
    known: BTreeMap<ObjectId, Position>,
    order: VecDeque<(Position, ObjectId)>,
    floor: Position,
    known_max: usize,
}

/// Stands for all slots of a page.
const WHOLE: Slot = Slot(u16::MAX);

/// What is known of an object that was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::home) enum Verdict {
    /// Unchanged since the evidence.
    Current,
    /// Changed since.
    Changed(ObjectId),
    /// The evidence lies below the floor: the page's version must tell.
    AskPage,
}

impl Changes {
    /// Knows nothing up to the floor.
    pub(in crate::home) fn new(floor: Position, known_max: usize) -> Self {
        Changes {
            known: BTreeMap::new(),
            order: VecDeque::new(),
            floor,
            known_max: known_max.max(1),
        }
    }

    /// The validation floor: everything above it is known for each object.
    pub(in crate::home) fn floor(&self) -> Position {
        self.floor
    }

    /// Objects known.
    pub(in crate::home) fn len(&self) -> usize {
        self.order.len()
    }

    /// Notes a change; true if the floor had to rise.
    pub(in crate::home) fn note(&mut self, object: ObjectId, position: Position) -> bool {
        self.known.insert(object, position);
        self.order.push_back((position, object));
        let full = self.order.len() > self.known_max;
        if full {
            self.forget_first();
        }
        full
    }

    /// Notes that a whole page is gone.
    pub(in crate::home) fn note_page(&mut self, page: PageId, position: Position) -> bool {
        self.note(ObjectId { page, slot: WHOLE }, position)
    }

    /// Forgets what everybody has acknowledged (rule 7), but not while there is
    /// space: a slow request is then still judged by objects.
    pub(in crate::home) fn trim(&mut self, acknowledged: Position) -> bool {
        let keep = self.known_max / 2;
        let mut trimmed = false;
        while self.order.len() > keep && self.order.front().is_some_and(|(p, _)| *p <= acknowledged)
        {
            self.forget_first();
            trimmed = true;
        }
        trimmed
    }

    fn forget_first(&mut self) {
        let Some((position, object)) = self.order.pop_front() else {
            return;
        };
        if self.known.get(&object) == Some(&position) {
            self.known.remove(&object);
        }
        self.floor = self.floor.max(position);
    }

    /// Whether slots of a page are unchanged since the evidence, or were changed last at a position
    /// that is named as evidence itself.
    pub(in crate::home) fn judge(
        &self,
        page: PageId,
        slots: &SlotSet,
        evidence: Position,
        named: &[Position],
    ) -> Verdict {
        let is_named = |position: &Position| {
            named.contains(position) || (planted::is(Bug::NamedNotLast) && !named.is_empty())
        };
        let range = ObjectId {
            page,
            slot: Slot(0),
        }..=ObjectId { page, slot: WHOLE };
        for (object, position) in self.known.range(range) {
            let read = object.slot == WHOLE || slots.contains(object.slot);
            let excused = is_shown_before_its_place(object) && is_named(position);
            if read && *position > evidence && !excused {
                // Of a page that is gone one of the slots that were read is told: there is none with that number.
                let ended = object.slot == WHOLE;
                let slot = slots.iter().next().filter(|_| ended);
                let slot = slot.unwrap_or(if ended { Slot(0) } else { object.slot });
                return Verdict::Changed(ObjectId { page, slot });
            }
        }
        if evidence < self.floor {
            return Verdict::AskPage;
        }
        Verdict::Current
    }
}

/// Whether who wrote an object may have read its new value before it was delivered. Not an extent that the commit raised,
/// nor a page that it ended: these are the home's own doing, which the writer sees in the stream like everybody else. (What the
/// home moved to make space for it is the same as before, and not noted at all.)
fn is_shown_before_its_place(object: &ObjectId) -> bool {
    let is_extent = object.page.page.0 == 0 && object.slot.0 == 0;
    object.slot != WHOLE && !is_extent
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_commit_excuses_what_it_wrote_and_not_what_the_home_did_for_it() {
        let mut changes = Changes::new(Position(0), 10);
        let extent = ObjectId {
            page: PageId::new(1, 0),
            slot: Slot(0),
        };
        changes.note(object(3), Position(7));
        changes.note(extent, Position(7));
        let slots = |object: ObjectId| SlotSet::of(object.slot);
        let judge = |read: ObjectId, named: &[Position]| {
            changes.judge(read.page, &slots(read), Position(6), named)
        };
        assert_eq!(judge(object(3), &[Position(7)]), Verdict::Current);
        assert_eq!(judge(object(3), &[]), Verdict::Changed(object(3)));
        // A scan that began before it has not seen the page that was added (trap 12).
        assert_eq!(judge(extent, &[Position(7)]), Verdict::Changed(extent));
    }

    #[test]
    fn of_a_page_that_is_gone_a_slot_is_told_that_was_read() {
        let mut changes = Changes::new(Position(0), 10);
        let page = object(0).page;
        changes.note_page(page, Position(7));
        let judge =
            |slots: &SlotSet, named: &[Position]| changes.judge(page, slots, Position(6), named);
        let read = SlotSet::of(Slot(3));
        assert_eq!(judge(&read, &[]), Verdict::Changed(object(3)));
        // Its writer sees that in the stream, like everybody else.
        assert_eq!(judge(&read, &[Position(7)]), Verdict::Changed(object(3)));
        let all = judge(&SlotSet::ALL, &[]);
        assert_eq!(all, Verdict::Changed(object(0)));
    }

    fn object(slot: u16) -> ObjectId {
        ObjectId {
            page: PageId::new(1, 1),
            slot: Slot(slot),
        }
    }

    #[test]
    fn objects_above_the_floor_and_pages_below_it() {
        let mut changes = Changes::new(Position(0), 2);
        let page = PageId::new(1, 1);
        assert!(!changes.note(object(1), Position(1)));
        assert!(!changes.note(object(2), Position(2)));
        assert_eq!(
            changes.judge(page, &SlotSet::of(Slot(1)), Position(1), &[]),
            Verdict::Current
        );
        assert_eq!(
            changes.judge(page, &SlotSet::of(Slot(2)), Position(1), &[]),
            Verdict::Changed(object(2))
        );
        assert!(
            changes.note(object(3), Position(3)),
            "the first is forgotten"
        );
        assert_eq!(changes.floor(), Position(1));
        assert_eq!(
            changes.judge(page, &SlotSet::of(Slot(1)), Position(0), &[]),
            Verdict::AskPage
        );
        assert_eq!(
            changes.judge(page, &SlotSet::of(Slot(1)), Position(1), &[]),
            Verdict::Current
        );
    }

    #[test]
    fn a_whole_page_changes_every_slot() {
        let mut changes = Changes::new(Position(0), 9);
        changes.note_page(PageId::new(1, 1), Position(4));
        let verdict = changes.judge(PageId::new(1, 1), &SlotSet::of(Slot(7)), Position(3), &[]);
        assert!(matches!(verdict, Verdict::Changed(_)));
    }
}
