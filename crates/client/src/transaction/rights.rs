//! Rights lists: who may read, write and administer a segment. The list is an object of the segment (rule R3).

use super::Transaction;
use crate::head_page::HEAD_PAGE;
use crate::runtime::block_on;
use crate::{Error, ErrorKind, Reference, Result, Segment};
use thorp_model::limits::RIGHTS_BYTES_MAX;
use thorp_model::{Generation, ObjectId, RIGHTS_SLOT, RightsList};
use thorp_session::Act;

impl Transaction {
    /// A segment's rights list. A segment from before there were rights has none: every member may read and write it.
    ///
    /// # Errors
    ///
    /// As [`Transaction::read`], and [`DataDamaged`](crate::ErrorKind::DataDamaged) if the object is no list: then only
    /// operators have rights.
    pub fn rights(&mut self, segment: &Segment) -> Result<Option<RightsList>> {
        block_on(self.rights_async(segment))
    }

    /// As [`Transaction::rights`].
    ///
    /// # Errors
    ///
    /// As [`Transaction::rights`].
    pub async fn rights_async(&mut self, segment: &Segment) -> Result<Option<RightsList>> {
        let object = list_of(segment);
        if !self.exists_async(&object).await? {
            return Ok(None);
        }
        let bytes = self.read_async(&object).await?;
        match RightsList::parse(bytes) {
            Ok(list) => Ok(Some(list)),
            Err(error) => {
                let name = segment.name();
                Err(Error::damaged(format!(
                    "the rights of {name} are damaged: {error}; an operator can set them anew"
                )))
            }
        }
    }

    /// Sets a segment's rights list. From this transaction's position on, who is not in the list gets nothing newer of
    /// the segment. A list without an admin leaves the segment to operators.
    ///
    /// # Errors
    ///
    /// As [`Transaction::write`], and [`TooLarge`](crate::ErrorKind::TooLarge) if the list has more than 2,048 bytes. The
    /// commit fails with [`NoRight`](crate::ErrorKind::NoRight) if the member is no admin of the segment, and with
    /// [`Invalid`](crate::ErrorKind::Invalid) if the transaction touches several homes.
    pub fn set_rights(&mut self, segment: &Segment, list: &RightsList) -> Result<()> {
        block_on(self.set_rights_async(segment, list))
    }

    /// As [`Transaction::set_rights`].
    ///
    /// # Errors
    ///
    /// As [`Transaction::set_rights`].
    pub async fn set_rights_async(&mut self, segment: &Segment, list: &RightsList) -> Result<()> {
        let bytes = list.to_bytes();
        if bytes.len() > RIGHTS_BYTES_MAX {
            let words = format!(
                "a rights list of {} bytes; {RIGHTS_BYTES_MAX} is the limit: remove entries",
                bytes.len()
            );
            return Err(Error::new(ErrorKind::TooLarge, words));
        }
        self.begin_writing()?;
        let object = list_of(segment);
        if self.exists_async(&object).await? {
            return self.replace(&object, bytes);
        }
        let act = Act::Created(bytes);
        let writes = self.inner.writes_mut();
        writes.set((&object).into(), object.generation, act);
        Ok(())
    }
}

fn list_of(segment: &Segment) -> Reference {
    let allocator = segment.allocator();
    Reference {
        home: allocator.home,
        object: ObjectId {
            page: allocator.place(HEAD_PAGE).page,
            slot: RIGHTS_SLOT,
        },
        generation: Generation(1),
        offset: 0,
    }
}
