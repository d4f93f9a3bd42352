//! What the unit tests share: a member as its transactions see it, over the real page cache.

use crate::commit::World;
use crate::own_commits::OwnCommits;
use crate::stop::Stop;
use crate::transaction::{Terms, Transaction};
use std::collections::BTreeSet;
use thorp_cache::{Cache, ReadSet};
use thorp_model::{
    CommitId, Draft, Generation, HomeId, Image, ImageEdit, MemberId, Millis, ObjectId,
    OverlayUpdate, PageId, PageNo, Place, Position, Publish, Reference, Slot, SlotSet, Stamp,
};

/// A home that is ahead of the other.
pub(crate) const A: HomeId = HomeId(1);
/// A home that lags behind the other.
pub(crate) const B: HomeId = HomeId(2);

/// The page that each home has.
pub(crate) const PAGE: PageId = PageId::new(1, 1);
/// An overflow page that a home may have.
pub(crate) const OVERFLOW_PAGE: PageId = PageId {
    segment: PAGE.segment,
    page: PageNo::OVERFLOW_FIRST,
};
/// The generation of all objects.
pub(crate) const GENERATION: Generation = Generation(1);

/// A session with the usual terms.
pub(crate) const USUAL: Terms = Terms {
    strict: false,
    optimistic: false,
    staleness_ms_max: 100,
};
/// A session whose homes validate each transaction.
pub(crate) const STRICT: Terms = Terms {
    strict: true,
    ..USUAL
};
/// A session that reads on while a home is silent.
pub(crate) const OPTIMISTIC: Terms = Terms {
    optimistic: true,
    ..USUAL
};

/// An own commit of the member.
pub(crate) const OWN: CommitId = CommitId {
    member: MemberId(7),
    sequence: 1,
};

/// A member as its transactions see it.
pub(crate) struct Member {
    pub(crate) cache: Cache,
    pub(crate) now: Millis,
    /// Own commits that are shown and not answered.
    pub(crate) open: BTreeSet<CommitId>,
    /// The stamp of each own commit that is answered.
    pub(crate) own_stamp: Stamp,
}

impl OwnCommits for Member {
    fn is_open(&self, id: CommitId) -> bool {
        self.open.contains(&id)
    }

    fn stamp(&self, _: CommitId) -> Stamp {
        self.own_stamp
    }
}

impl Member {
    /// A member at position 20 of home A, and at position 10 of home B. From each it has [`PAGE`], as of that position, with
    /// four objects.
    pub(crate) fn new() -> Self {
        let member = Member {
            cache: Cache::new(1 << 20),
            now: Millis(20),
            open: BTreeSet::new(),
            own_stamp: Stamp::default(),
        };
        for (home, position) in [(A, 20), (B, 10)] {
            member.receives_page(home, position, PAGE, &values(None));
        }
        member
    }

    pub(crate) fn world(&self) -> World<'_> {
        World {
            cache: &self.cache,
            now: self.now,
            own: self,
        }
    }

    pub(crate) fn publish(&self, publish: &Publish) {
        self.cache.publish(publish);
    }

    /// A page arrives.
    pub(crate) fn receives_page(&self, home: HomeId, position: u64, page: PageId, slots: &[Draft]) {
        self.publish(&Publish {
            images: vec![(page, Some(image(position, slots)))],
            ..at(home, position)
        });
    }

    /// A home promises more, at the position where the member is.
    pub(crate) fn receives_promise(&self, home: HomeId, watermark: u64) {
        self.publish(&Publish {
            watermark: stamp(watermark),
            ..at(home, self.cache.position(home).0)
        });
    }

    /// The commit at a position changes a slot of [`PAGE`].
    pub(crate) fn receives_change(&self, home: HomeId, position: u64, slot: u16) {
        self.publish(&Publish {
            touched: vec![(PAGE, slots(&[slot]))],
            images: vec![(PAGE, Some(image(position, &values(Some(slot)))))],
            ..at(home, position)
        });
    }

    /// The member evicts [`PAGE`].
    pub(crate) fn evicts(&self, home: HomeId, position: u64) {
        self.publish(&Publish {
            evicted: vec![PAGE],
            images: vec![(PAGE, None)],
            ..at(home, position)
        });
    }

    /// The member shows what [`OWN`] wrote to a slot of [`PAGE`] before the home has answered.
    pub(crate) fn shows_own(&mut self, home: HomeId, slot: u16) {
        self.open.insert(OWN);
        let position = self.cache.position(home).0;
        self.publish(&Publish {
            overlay: OverlayUpdate {
                shown: vec![(PAGE, slots(&[slot]))],
                values: vec![(PAGE, slots(&[slot]), OWN)],
                ..OverlayUpdate::default()
            },
            images: vec![(PAGE, Some(image(position, &values(Some(slot)))))],
            ..at(home, position)
        });
    }

    /// The home commits [`OWN`].
    pub(crate) fn own_is_answered(&mut self, stamp: Stamp) {
        self.open.remove(&OWN);
        self.own_stamp = stamp;
    }

    /// Reads an object of [`PAGE`].
    pub(crate) fn read<R>(
        &self,
        tx: &mut Transaction<R>,
        home: HomeId,
        slot: u16,
    ) -> Result<Vec<u8>, Stop> {
        let reference = reference(home, slot);
        let found = tx.find(&self.cache, &reference)?;
        Ok(tx.bytes(&reference, found).unwrap().to_vec())
    }
}

/// A transaction that has done nothing.
pub(crate) fn begin<R>(terms: Terms) -> Transaction<R> {
    Transaction::begin(terms, ReadSet::new(), Stamp::default())
}

/// A publication of a position, with a promise up to it.
pub(crate) fn at(home: HomeId, position: u64) -> Publish {
    Publish {
        home,
        overlay: OverlayUpdate::default(),
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

/// Four objects of one byte each: its slot's number, but 99 in a slot that a commit has changed.
fn values(changed: Option<u16>) -> [Draft; 4] {
    [0, 1, 2, 3].map(|slot| match changed == Some(slot) {
        true => Draft::Value(vec![99]),
        false => Draft::Value(vec![slot as u8]),
    })
}

pub(crate) fn image(version: u64, slots: &[Draft]) -> Image {
    let mut edit = ImageEdit::default();
    for (slot, draft) in (0..).zip(slots) {
        edit.set(Slot(slot), GENERATION, draft.clone());
    }
    edit.finish(Position(version), stamp(version))
}

pub(crate) fn stamp(clock: u64) -> Stamp {
    Stamp { clock, home: A }
}

pub(crate) fn slots(slots: &[u16]) -> SlotSet {
    slots.iter().copied().map(Slot).collect()
}

pub(crate) fn place(home: HomeId) -> Place {
    Place { home, page: PAGE }
}

pub(crate) fn object(slot: u16) -> ObjectId {
    let slot = Slot(slot);
    ObjectId { page: PAGE, slot }
}

pub(crate) fn reference(home: HomeId, slot: u16) -> Reference {
    Reference {
        home,
        object: object(slot),
        generation: GENERATION,
        offset: 0,
    }
}
