//! Segments: where objects live.

mod watch;

pub use watch::{Change, Changed, Lost, Watch};

use crate::allocator::Allocator;
use crate::member::Member;
use crate::name::SegmentName;
use crate::runtime::block_on;
use crate::{Reference, Result};
use std::fmt;
use std::sync::Arc;
use thorp_model::{Carrier, HomeId, Right, RightsList, SegmentId, Subject};

/// A named, growable set of pages of one home. Cheap to clone.
#[derive(Clone)]
pub struct Segment {
    member: Member,
    allocator: Arc<Allocator>,
}

/// A segment in the list of [`Member::list`](crate::Member::list).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SegmentEntry {
    /// Its name: `thorp://HOME/path`.
    pub name: String,
    /// Its pages below this number may hold objects.
    pub pages: u32,
}

impl Segment {
    pub(crate) fn new(member: Member, allocator: Arc<Allocator>) -> Self {
        Segment { member, allocator }
    }

    pub(crate) fn allocator(&self) -> &Arc<Allocator> {
        &self.allocator
    }

    /// Its name: `thorp://HOME/path`.
    pub fn name(&self) -> String {
        let home = self.member.shared().homes.name(self.allocator.home);
        let path = self.allocator.path().unwrap_or_default();
        SegmentName::format(&home.unwrap_or_default(), path)
    }

    /// Its home.
    pub fn home(&self) -> HomeId {
        self.allocator.home
    }

    /// Its id at the home.
    pub fn id(&self) -> SegmentId {
        self.allocator.segment
    }

    /// The member that opened it.
    pub fn member(&self) -> &Member {
        &self.member
    }

    /// A named root: in a transaction of its own. In a transaction, use
    /// [`Transaction::root`](crate::Transaction::root).
    ///
    /// # Errors
    ///
    /// As [`Transaction::root`](crate::Transaction::root) and [`Member::transact`].
    pub fn root(&self, name: &str) -> Result<Option<Reference>> {
        self.member.transact(|tx| tx.root(self, name))
    }

    /// As [`Segment::root`].
    ///
    /// # Errors
    ///
    /// As [`Segment::root`].
    pub async fn root_async(&self, name: &str) -> Result<Option<Reference>> {
        self.member
            .transact_async(async |tx| tx.root_async(self, name).await)
            .await
    }

    /// Sets a named root, or takes it away: in a transaction of its own.
    ///
    /// # Errors
    ///
    /// As [`Transaction::set_root`](crate::Transaction::set_root) and [`Member::transact`].
    pub fn set_root(&self, name: &str, reference: Option<Reference>) -> Result<()> {
        self.member
            .transact(|tx| tx.set_root(self, name, reference))
    }

    /// As [`Segment::set_root`].
    ///
    /// # Errors
    ///
    /// As [`Segment::set_root`].
    pub async fn set_root_async(&self, name: &str, reference: Option<Reference>) -> Result<()> {
        self.member
            .transact_async(async |tx| tx.set_root_async(self, name, reference).await)
            .await
    }

    /// All named roots, in the order of their names: in a transaction of its own.
    ///
    /// # Errors
    ///
    /// As [`Segment::root`].
    pub fn roots(&self) -> Result<Vec<(String, Reference)>> {
        self.member.transact(|tx| tx.roots(self))
    }

    /// The segment's rights list, in a transaction of its own: see [`Transaction::rights`](crate::Transaction::rights).
    ///
    /// # Errors
    ///
    /// As [`Transaction::rights`](crate::Transaction::rights) and [`Member::transact`](crate::Member::transact).
    pub fn rights(&self) -> Result<Option<RightsList>> {
        self.member().transact(|tx| tx.rights(self))
    }

    /// Gives a subject this right instead of what it has, in a transaction of its own. Returns the new list.
    ///
    /// # Errors
    ///
    /// As [`Transaction::set_rights`](crate::Transaction::set_rights) and [`Member::transact`](crate::Member::transact).
    pub fn grant(&self, subject: &Subject, right: Right) -> Result<RightsList> {
        self.change_rights(|list| list.grant(subject.clone(), right))
    }

    /// Takes all rights that a subject has in an entry of its own, in a transaction of its own. Returns the new list. What
    /// the subject has as one of all members stays.
    ///
    /// # Errors
    ///
    /// As [`Segment::grant`].
    pub fn revoke(&self, subject: &Subject) -> Result<RightsList> {
        self.change_rights(|list| {
            list.revoke(subject);
        })
    }

    /// Lets a site carry the segment, in a transaction of its own. Returns the new list. If it named no carrier before, no
    /// other site carries the segment any more, except those that members carry who may read it.
    ///
    /// # Errors
    ///
    /// As [`Segment::grant`].
    pub fn grant_carry(&self, carrier: &Carrier) -> Result<RightsList> {
        self.change_rights(|list| list.grant_carry(carrier.clone()))
    }

    /// Takes the right to carry the segment from a site that the list names, in a transaction of its own. Returns the new
    /// list. After the last one no site carries the segment ([`Carrier::Nobody`]).
    ///
    /// # Errors
    ///
    /// As [`Segment::grant`].
    pub fn revoke_carry(&self, carrier: &Carrier) -> Result<RightsList> {
        self.change_rights(|list| {
            list.revoke_carry(carrier);
        })
    }

    fn change_rights(&self, change: impl Fn(&mut RightsList)) -> Result<RightsList> {
        self.member().transact(|tx| {
            let mut list = tx.rights(self)?.unwrap_or_else(RightsList::without_list);
            change(&mut list);
            tx.set_rights(self, &list)?;
            Ok(list)
        })
    }

    /// Watches every change in the segment that is committed from now on. Members, sites and homes have a limit of
    /// watched segments. Above it this call fails, or [`Watch::next`] does if the limit is farther up
    /// ([`ErrorKind::TooLarge`](crate::ErrorKind::TooLarge)).
    ///
    /// ```
    /// # use thorp_client::{JoinConfig, Member};
    /// # use std::time::Duration;
    /// # let village = thorp_testing::Village::new();
    /// # let home = village.home("alps");
    /// # let joining = JoinConfig::new(home.address()).identity(village.member("me"));
    /// # let member = Member::join(joining)?;
    /// # let segment = member.open_or_create("thorp://alps/notes")?;
    /// let mut watch = segment.watch()?;
    /// # member.transact(|tx| tx.create(&segment, "a note"))?;
    /// while let Some(changed) = watch.next(Duration::from_secs(60))? {
    ///     for change in changed.changes {
    ///         println!("object {} at position {}", change.object, change.position);
    ///     }
    /// #   break;
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`TooLarge`](crate::ErrorKind::TooLarge) above that limit, [`NotFound`](crate::ErrorKind::NotFound) if the
    /// segment was removed, [`HomeUnreachable`](crate::ErrorKind::HomeUnreachable), and
    /// [`Closed`](crate::ErrorKind::Closed).
    pub fn watch(&self) -> Result<Watch> {
        block_on(self.watch_async())
    }

    /// As [`Segment::watch`].
    ///
    /// # Errors
    ///
    /// As [`Segment::watch`].
    pub async fn watch_async(&self) -> Result<Watch> {
        Watch::begin(self.clone()).await
    }
}

impl PartialEq for Segment {
    fn eq(&self, other: &Self) -> bool {
        self.home() == other.home() && self.id() == other.id()
    }
}

impl Eq for Segment {}

impl fmt::Debug for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Segment({})", self.name())
    }
}
