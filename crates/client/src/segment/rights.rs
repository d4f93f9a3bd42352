//! Changing who may do what in a segment.

use super::Segment;
use crate::Result;
use thorp_model::{Right, RightsList, Subject};

impl Segment {
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

    fn change_rights(&self, change: impl Fn(&mut RightsList)) -> Result<RightsList> {
        self.member().transact(|tx| {
            let mut list = tx.rights(self)?.unwrap_or_else(RightsList::without_list);
            change(&mut list);
            tx.set_rights(self, &list)?;
            Ok(list)
        })
    }
}
