//! The tentative view: updates that their homes have not executed, over the committed images (rule C6).

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use thorp_model::change::patch;
use thorp_model::{
    Content, Draft, Generation, HomeId, Image, ImageEdit, NewValue, PageId, PageNo, PageWrites,
    Place, SegmentId, Slot, TentativeChange, Update, UpdateId, WriteOp,
};

/// An object as a session sees it that reads tentatively; none: there is none.
pub type Object = Option<(Generation, Vec<u8>)>;

/// The updates that are shown, by page, in the order in which they came.
///
/// Invariant: `version` is odd while images change together with updates. Whoever finds the same even version before and after
/// reading an image has read one moment: each update is in the image, or over it, and not in both.
#[derive(Default)]
pub(crate) struct Tentative {
    version: AtomicU64,
    shown: Mutex<Shown>,
}

#[derive(Default)]
struct Shown {
    by_page: BTreeMap<Place, Vec<Arc<Laid>>>,
    known: BTreeMap<(HomeId, UpdateId), BTreeSet<PageId>>,
}

/// What one update does to one page.
#[derive(Clone)]
struct Laid {
    id: UpdateId,
    slots: Vec<(Slot, WriteOp)>,
}

impl Tentative {
    /// The version, unless something changes just now.
    pub(crate) fn version(&self) -> Option<u64> {
        let version = self.version.load(Ordering::SeqCst);
        version.is_multiple_of(2).then_some(version)
    }

    /// Images change together with what is shown: it is over when this is dropped.
    pub(crate) fn begin(&self) -> Changing<'_> {
        self.version.fetch_add(1, Ordering::SeqCst);
        Changing(self)
    }

    /// The updates that are shown in some segments now.
    pub(crate) fn of(&self, segments: &[(HomeId, SegmentId)]) -> Overlay {
        let shown = self.shown();
        let of_segment = |(home, segment): &(HomeId, SegmentId)| {
            let page = |page| Place {
                home: *home,
                page: PageId {
                    segment: *segment,
                    page,
                },
            };
            let pages = page(PageNo(u32::MIN))..=page(PageNo(u32::MAX));
            let laid = shown.by_page.range(pages);
            laid.map(|(place, laid)| (*place, laid.clone()))
                .collect::<Vec<_>>()
        };
        Overlay(segments.iter().flat_map(of_segment).collect())
    }

    /// How many updates are shown.
    pub(crate) fn len(&self) -> usize {
        self.shown().known.len()
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Updates over committed images, as of one moment.
#[derive(Clone, Default)]
pub struct Overlay(BTreeMap<Place, Vec<Arc<Laid>>>);

impl Overlay {
    /// An object as committed, with the updates over it.
    pub fn over(&self, place: Place, slot: Slot, committed: Object) -> Object {
        let laid = self.0.get(&place).into_iter().flatten();
        let ops = laid.flat_map(|laid| laid.slots.iter().filter(|(at, _)| *at == slot));
        ops.fold(committed, |object, (_, op)| after(object, op))
    }
}

/// While images and updates change together.
pub(crate) struct Changing<'a>(&'a Tentative);

impl Changing<'_> {
    /// What is shown from now on, and what no more.
    pub(crate) fn take(&self, home: HomeId, change: &TentativeChange) {
        let mut shown = self.0.shown();
        for update in &change.shown {
            shown.show(update);
        }
        for id in &change.settled {
            shown.settle(home, *id);
        }
    }
}

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        self.0.version.fetch_add(1, Ordering::SeqCst);
    }
}

impl Shown {
    fn show(&mut self, update: &Update) {
        let (home, id) = (update.home, update.id);
        let pages: BTreeSet<PageId> = update.writes.iter().map(|writes| writes.page).collect();
        if self.known.insert((home, id), pages).is_some() {
            return;
        }
        for writes in &update.writes {
            let slots = writes.slots.clone();
            let page = writes.page;
            let laid = self.by_page.entry(Place { home, page }).or_default();
            laid.push(Arc::new(Laid { id, slots }));
        }
    }

    fn settle(&mut self, home: HomeId, id: UpdateId) {
        for page in self.known.remove(&(home, id)).unwrap_or_default() {
            let laid = self.by_page.entry(Place { home, page });
            if let Entry::Occupied(mut laid) = laid {
                laid.get_mut().retain(|laid| laid.id != id);
                if laid.get().is_empty() {
                    laid.remove();
                }
            }
        }
    }
}

/// A planted bug: an image with what an update does to it.
pub(crate) fn image_with(image: &Image, writes: &PageWrites) -> Image {
    let mut edit = ImageEdit::of(image);
    for (slot, op) in &writes.slots {
        let (generation, content) = edit.get(*slot);
        if let Content::Value(bytes) = content
            && let Some((generation, bytes)) = after(Some((generation, bytes.to_vec())), op)
        {
            edit.set(*slot, generation, Draft::Value(bytes));
        }
    }
    edit.finish(image.version(), image.stamp())
}

/// What an operation makes of an object. One that does not fit does nothing: its home will refuse the update.
fn after(object: Object, op: &WriteOp) -> Object {
    let inline = |value: &NewValue| match value {
        NewValue::Inline(blob) => Some(blob.bytes().to_vec()),
        NewValue::Staged(_) => None,
    };
    let is_meant = object
        .as_ref()
        .is_some_and(|(generation, _)| *generation == op.generation());
    match (op, object) {
        (WriteOp::Create { generation, value }, None) => {
            inline(value).map(|bytes| (*generation, bytes))
        }
        (WriteOp::Write { generation, value }, Some(old)) if is_meant => {
            Some(inline(value).map_or(old, |bytes| (*generation, bytes)))
        }
        (
            WriteOp::Patch {
                generation,
                offset,
                bytes,
            },
            Some((_, old)),
        ) if is_meant => {
            let new = patch(&old, *offset, bytes.bytes());
            Some((*generation, new.unwrap_or(old)))
        }
        (WriteOp::Delete { .. }, Some(_)) if is_meant => None,
        (
            WriteOp::Apply {
                generation,
                procedures,
            },
            Some((_, old)),
        ) if is_meant => {
            let run = procedures
                .iter()
                .try_fold(old.clone(), |value, procedure| procedure.run(&value));
            Some((*generation, run.unwrap_or(old)))
        }
        (_, object) => object,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thorp_model::{LogId, MemberId, Procedure};

    const HOME: HomeId = HomeId(1);
    const PAGE: PageId = PageId::new(1, 1);
    const PLACE: Place = Place {
        home: HOME,
        page: PAGE,
    };

    fn update(number: u64, op: WriteOp) -> Update {
        Update {
            home: HOME,
            id: UpdateId {
                log: LogId(MemberId(1)),
                segment: SegmentId(1),
                number,
            },
            writes: vec![PageWrites {
                page: PAGE,
                slots: vec![(Slot(1), op)],
            }],
        }
    }

    fn append(number: u64, text: &str) -> Update {
        let op = WriteOp::Apply {
            generation: Generation(1),
            procedures: vec![Procedure::Append(text.as_bytes().into())],
        };
        update(number, op)
    }

    fn object(text: &str) -> Object {
        Some((Generation(1), text.as_bytes().to_vec()))
    }

    fn over(view: &Tentative, slot: u16, committed: Object) -> Object {
        let overlay = view.of(&[(HOME, PAGE.segment)]);
        overlay.over(PLACE, Slot(slot), committed)
    }

    fn show(view: &Tentative, shown: Vec<Update>, settled: Vec<UpdateId>) {
        view.begin().take(HOME, &TentativeChange { shown, settled });
    }

    #[test]
    fn updates_lie_over_an_image_until_they_are_settled() {
        let view = Tentative::default();
        let (one, two) = (append(1, "b"), append(2, "c"));
        show(&view, vec![one.clone(), two.clone(), one.clone()], vec![]);
        assert_eq!(over(&view, 1, object("a")), object("abc"));
        assert_eq!(over(&view, 2, object("a")), object("a"));
        assert_eq!(over(&view, 1, None), None);
        let before = view.of(&[(HOME, PAGE.segment)]);
        show(&view, vec![], vec![one.id]);
        assert_eq!(over(&view, 1, object("ab")), object("abc"));
        show(&view, vec![], vec![two.id, two.id]);
        let then = before.over(PLACE, Slot(1), object("a"));
        assert_eq!(then, object("abc"), "as of that moment");
        assert_eq!((view.len(), over(&view, 1, object("a"))), (0, object("a")));
    }

    #[test]
    fn what_does_not_fit_does_nothing() {
        let delete = |generation| WriteOp::Delete {
            generation: Generation(generation),
        };
        assert_eq!(after(object("a"), &delete(2)), object("a"));
        assert_eq!(after(object("a"), &delete(1)), None);
        let create = WriteOp::Create {
            generation: Generation(2),
            value: NewValue::Inline(b"new"[..].into()),
        };
        assert_eq!(after(object("a"), &create), object("a"));
        assert_eq!(after(None, &create), Some((Generation(2), b"new".to_vec())));
    }

    #[test]
    fn the_version_is_hidden_while_images_change() {
        let view = Tentative::default();
        let before = view.version();
        let changing = view.begin();
        assert_eq!(view.version(), None);
        drop(changing);
        assert!(view.version().is_some() && view.version() != before);
    }
}
