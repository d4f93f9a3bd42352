//! Reading and writing rights lists: who may read, write and administer a segment. The list is an object of the
//! segment (rule R3).

use super::Transaction;
use crate::head_page::HEAD_PAGE;
use crate::{Error, ErrorKind, Reference, Result, Segment};
use thorp_model::limits::RIGHTS_BYTES_MAX;
use thorp_model::{Generation, ObjectId, RIGHTS_SLOT, RightsList};
use thorp_session::Act;

/// A segment's list; none if it has none.
pub(super) async fn read(tx: &mut Transaction, segment: &Segment) -> Result<Option<RightsList>> {
    let object = list_of(segment);
    if !tx.exists_async(&object).await? {
        return Ok(None);
    }
    let bytes = tx.read_async(&object).await?;
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

/// Replaces a segment's list, or makes the first one.
pub(super) async fn write(
    tx: &mut Transaction,
    segment: &Segment,
    list: &RightsList,
) -> Result<()> {
    let bytes = list.to_bytes();
    if bytes.len() > RIGHTS_BYTES_MAX {
        let words = format!(
            "a rights list of {} bytes; {RIGHTS_BYTES_MAX} is the limit: remove entries",
            bytes.len()
        );
        return Err(Error::new(ErrorKind::TooLarge, words));
    }
    tx.begin_writing()?;
    let object = list_of(segment);
    if tx.exists_async(&object).await? {
        return tx.replace(&object, bytes);
    }
    let act = Act::Created(bytes);
    let writes = tx.inner.writes_mut();
    writes.set((&object).into(), object.generation, act);
    Ok(())
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
