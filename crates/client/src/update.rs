//! What updates do to objects, and how homes get it.

use crate::{Error, ErrorKind, Procedure, Reference, Result};
use std::collections::BTreeMap;
use thorp_model::limits::{INLINE_VALUE_BYTES_MAX, PROCEDURES_OF_OBJECT_MAX};
use thorp_model::{HomeId, NewValue, ObjectId, PageId, PageWrites, Slot, WriteOp};

/// What an update does to one object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ObjectUpdate {
    /// Its bytes are replaced.
    Write(Vec<u8>),
    /// The home runs a procedure on it.
    Run(Procedure),
    /// It is deleted.
    Delete,
}

/// Updates of objects as what their home executes: pages and slots ascending, each object once.
pub(crate) fn page_writes<'a>(
    updates: impl IntoIterator<Item = (&'a Reference, &'a ObjectUpdate)>,
) -> Result<Vec<PageWrites>> {
    let mut ops: BTreeMap<PageId, BTreeMap<Slot, WriteOp>> = BTreeMap::new();
    for (at, update) in updates {
        let slots = ops.entry(at.object.page).or_default();
        let before = slots.remove(&at.object.slot);
        slots.insert(at.object.slot, joined(at, before, update)?);
    }
    let pages = ops.into_iter();
    let pages = pages.map(|(page, slots)| PageWrites {
        page,
        slots: slots.into_iter().collect(),
    });
    Ok(pages.collect())
}

/// What a log keeps for a home, as updates of objects. None: it does what no update of a program does.
pub(crate) fn object_updates(
    home: HomeId,
    writes: &[PageWrites],
) -> Option<Vec<(Reference, ObjectUpdate)>> {
    let mut updates = Vec::new();
    for page in writes {
        for (slot, op) in &page.slots {
            let object = ObjectId {
                page: page.page,
                slot: *slot,
            };
            let at = Reference {
                home,
                object,
                generation: op.generation(),
                offset: 0,
            };
            match op {
                WriteOp::Write {
                    value: NewValue::Inline(bytes),
                    ..
                } => updates.push((at, ObjectUpdate::Write(bytes.bytes().to_vec()))),
                WriteOp::Delete { .. } => updates.push((at, ObjectUpdate::Delete)),
                WriteOp::Apply { procedures, .. } => {
                    let run = procedures.iter().cloned().map(ObjectUpdate::Run);
                    updates.extend(run.map(|update| (at, update)));
                }
                _ => return None,
            }
        }
    }
    Some(updates)
}

/// What an object's home is to do for one update after another.
fn joined(at: &Reference, before: Option<WriteOp>, update: &ObjectUpdate) -> Result<WriteOp> {
    let generation = at.generation;
    let run = |procedure: &Procedure, bytes: &[u8]| {
        let run = procedure.run(bytes);
        run.map_err(|why| Error::invalid(format!("a procedure of this visit cannot run: {why}")))
    };
    let write = |bytes: Vec<u8>| match bytes.len() <= INLINE_VALUE_BYTES_MAX {
        true => Ok(WriteOp::Write {
            generation,
            value: NewValue::Inline(bytes.into()),
        }),
        false => Err(Error::new(
            ErrorKind::TooLarge,
            format!(
                "an update that a log keeps has at most {INLINE_VALUE_BYTES_MAX} bytes of an object: write larger ones in a \
                 transaction"
            ),
        )),
    };
    match (before, update) {
        (Some(WriteOp::Delete { .. }), _) => Err(Error::new(
            ErrorKind::Gone,
            "this visit has deleted the object",
        )),
        (_, ObjectUpdate::Delete) => Ok(WriteOp::Delete { generation }),
        (_, ObjectUpdate::Write(bytes)) => write(bytes.clone()),
        (Some(WriteOp::Write { value, .. }), ObjectUpdate::Run(procedure)) => match value {
            NewValue::Inline(bytes) => write(run(procedure, bytes.bytes())?),
            NewValue::Staged(_) => Err(Error::invalid("a staged value is in no log")),
        },
        (Some(WriteOp::Apply { mut procedures, .. }), ObjectUpdate::Run(procedure)) => {
            if procedures.len() >= PROCEDURES_OF_OBJECT_MAX {
                return Err(Error::new(
                    ErrorKind::TooLarge,
                    format!(
                        "one update runs at most {PROCEDURES_OF_OBJECT_MAX} procedures on an object: publish before"
                    ),
                ));
            }
            procedures.push(procedure.clone());
            Ok(WriteOp::Apply {
                generation,
                procedures,
            })
        }
        (_, ObjectUpdate::Run(procedure)) => Ok(WriteOp::Apply {
            generation,
            procedures: vec![procedure.clone()],
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thorp_model::Generation;

    fn object(slot: u16) -> Reference {
        Reference {
            home: HomeId(1),
            object: ObjectId {
                page: PageId::new(1, 1),
                slot: Slot(slot),
            },
            generation: Generation(1),
            offset: 0,
        }
    }

    #[test]
    fn updates_are_what_they_were_after_the_way_to_a_home_and_back() {
        let append = |text: &str| ObjectUpdate::Run(Procedure::Append(text.as_bytes().into()));
        let updates = [
            (object(1), append("a")),
            (object(1), append("b")),
            (object(2), ObjectUpdate::Write(b"all".to_vec())),
            (object(3), ObjectUpdate::Delete),
        ];
        let writes = page_writes(updates.iter().map(|(at, update)| (at, update))).unwrap();
        assert_eq!(writes.len(), 1);
        assert_eq!(object_updates(HomeId(1), &writes).unwrap(), updates);
        // What comes after a whole value is part of it.
        let two = [
            (object(2), ObjectUpdate::Write(b"x".to_vec())),
            (object(2), append("y")),
        ];
        let writes = page_writes(two.iter().map(|(at, update)| (at, update))).unwrap();
        let whole = [(object(2), ObjectUpdate::Write(b"xy".to_vec()))];
        assert_eq!(object_updates(HomeId(1), &writes).unwrap(), whole);
    }
}
