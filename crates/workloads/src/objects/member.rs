//! A segment of a village, by way of the client library.

use thorp_client::{Member, Reference, Result, Segment, Session, Stats, Transaction};

use super::{Objects, Store};

/// A segment as one member works on it.
#[derive(Clone, Debug)]
pub struct MemberStore {
    member: Member,
    segment: Segment,
    session: Session,
}

/// A transaction of the member, and the segment it makes objects in.
#[derive(Debug)]
pub struct MemberObjects<'a> {
    transaction: &'a mut Transaction,
    store: &'a MemberStore,
}

impl MemberStore {
    /// The segment, worked on by that member in sessions of that kind.
    #[must_use]
    pub fn new(member: Member, segment: Segment, session: Session) -> Self {
        MemberStore {
            member,
            segment,
            session,
        }
    }

    /// The member.
    #[must_use]
    pub fn member(&self) -> &Member {
        &self.member
    }

    /// The segment.
    #[must_use]
    pub fn segment(&self) -> &Segment {
        &self.segment
    }

    /// A running transaction of this member, for work on this segment; who began it commits it.
    pub fn within<'a>(&'a self, transaction: &'a mut Transaction) -> MemberObjects<'a> {
        MemberObjects {
            transaction,
            store: self,
        }
    }
}

impl Store for MemberStore {
    type Objects<'a> = MemberObjects<'a>;

    fn transact<T>(
        &self,
        mut work: impl for<'a, 'b> FnMut(&'b mut MemberObjects<'a>) -> Result<T>,
    ) -> Result<T> {
        self.member.transact_with(self.session, |transaction| {
            work(&mut self.within(transaction))
        })
    }

    fn stats(&self) -> Stats {
        self.member.stats()
    }
}

impl Objects for MemberObjects<'_> {
    #[inline]
    fn read(&mut self, reference: &Reference) -> Result<&[u8]> {
        self.transaction.read(reference)
    }

    fn read_at(&mut self, reference: &Reference, offset: u64, len: usize) -> Result<Vec<u8>> {
        self.transaction.read_at(reference, offset, len)
    }

    fn size(&mut self, reference: &Reference) -> Result<u64> {
        self.transaction.size(reference)
    }

    fn write(&mut self, reference: &Reference, bytes: Vec<u8>) -> Result<()> {
        self.transaction.write(reference, bytes)
    }

    #[inline]
    fn patch(&mut self, reference: &Reference, offset: u64, bytes: &[u8]) -> Result<()> {
        self.transaction.patch(reference, offset, bytes)
    }

    fn create(&mut self, bytes: Vec<u8>) -> Result<Reference> {
        self.transaction.create(&self.store.segment, bytes)
    }

    fn create_near(&mut self, near: &Reference, bytes: Vec<u8>) -> Result<Reference> {
        self.transaction.create_near(near, bytes)
    }

    fn delete(&mut self, reference: &Reference) -> Result<()> {
        self.transaction.delete(reference)
    }

    fn root(&mut self, name: &str) -> Result<Option<Reference>> {
        self.transaction.root(&self.store.segment, name)
    }

    fn set_root(&mut self, name: &str, reference: &Reference) -> Result<()> {
        self.transaction
            .set_root(&self.store.segment, name, Some(*reference))
    }

    fn prefetch(&mut self, references: &[Reference]) {
        self.store.member.prefetch(references);
    }
}
