//! Routines that every program may choose: mine, theirs, both.

use std::collections::HashMap;
use thorp_model::message::InvalidCommit;
use thorp_model::{Blob, NotRun, PageWrites, Procedure, Refusal, Update, UpdateId, WriteOp};
use thorp_protocol::Resolution;

/// The other value goes, if that can be.
pub(crate) fn mine(update: &Update, refusal: &Refusal) -> Resolution {
    match is_key_taken(refusal) {
        true => Resolution::Again(with_new_entries(update, |key, value| Procedure::Put {
            key,
            value,
        })),
        false => Resolution::List,
    }
}

/// The update goes, if others did what is in its way.
pub(crate) fn theirs(refusal: &Refusal) -> Resolution {
    match is_conflict(refusal) {
        true => Resolution::Drop,
        false => Resolution::List,
    }
}

/// Both values stay, if they can lie beside each other.
pub(crate) fn both(update: &Update, refusal: &Refusal) -> Resolution {
    if !is_key_taken(refusal) {
        return Resolution::List;
    }
    // Several entries of one update may want the same key.
    let mut wanted: HashMap<Blob, usize> = HashMap::new();
    let put_beside = |key: Blob, value| {
        let before = wanted.entry(key.clone()).or_default();
        let beside = beside(&key, update.id, *before);
        *before += 1;
        Procedure::PutBeside { key, beside, value }
    };
    Resolution::Again(with_new_entries(update, put_beside))
}

/// A key that names the log and the number of an update. Nobody else makes such a one.
fn beside(key: &Blob, id: UpdateId, before: usize) -> Blob {
    let mut name = format!("~{}.{}", id.log, id.number);
    if before > 0 {
        name += &format!(".{before}");
    }
    Blob::from([key.bytes(), name.as_bytes()].concat())
}

fn is_key_taken(refusal: &Refusal) -> bool {
    let taken = |reason: &InvalidCommit| {
        let why = match reason {
            InvalidCommit::Procedure { why, .. } => Some(*why),
            _ => None,
        };
        why == Some(NotRun::KeyTaken)
    };
    matches!(refusal, Refusal::Invalid { reason } if taken(reason))
}

/// Whether an update was refused for what others did to its objects.
fn is_conflict(refusal: &Refusal) -> bool {
    matches!(
        refusal,
        Refusal::Invalid {
            reason: InvalidCommit::Generation { .. }
                | InvalidCommit::NoSuchSegment
                | InvalidCommit::Procedure { .. }
        }
    )
}

/// What an update writes, with something else in the place of each new entry of a map.
fn with_new_entries(
    update: &Update,
    mut instead: impl FnMut(Blob, Blob) -> Procedure,
) -> Vec<PageWrites> {
    let mut writes = update.writes.clone();
    let slots = writes.iter_mut().flat_map(|page| &mut page.slots);
    for (_, op) in slots {
        let WriteOp::Apply { procedures, .. } = op else {
            continue;
        };
        for procedure in procedures {
            if let Procedure::PutNew { key, value } = procedure {
                *procedure = instead(key.clone(), value.clone());
            }
        }
    }
    writes
}

#[cfg(test)]
mod tests {
    use super::*;
    use thorp_model::{
        Generation, HomeId, LogId, MemberId, ObjectId, PageId, Right, SegmentId, Slot,
    };

    const OBJECT: ObjectId = ObjectId {
        page: PageId {
            segment: SegmentId(2),
            page: thorp_model::PageNo(1),
        },
        slot: Slot(0),
    };

    fn update(procedures: Vec<Procedure>) -> Update {
        let generation = Generation(1);
        let op = WriteOp::Apply {
            generation,
            procedures,
        };
        Update {
            home: HomeId(1),
            id: UpdateId {
                log: LogId(MemberId(0x7f)),
                segment: SegmentId(2),
                number: 12,
            },
            writes: vec![PageWrites {
                page: OBJECT.page,
                slots: vec![(OBJECT.slot, op)],
            }],
        }
    }

    fn not_run(why: NotRun) -> Refusal {
        let object = OBJECT;
        let reason = InvalidCommit::Procedure { object, why };
        Refusal::Invalid { reason }
    }

    fn blob(text: &str) -> Blob {
        Blob::from(text.as_bytes())
    }

    fn new(key: &str, value: &str) -> Procedure {
        let (key, value) = (blob(key), blob(value));
        Procedure::PutNew { key, value }
    }

    #[test]
    fn mine_puts_and_both_puts_beside() {
        let before = update(vec![new("a", "1"), Procedure::Add(1), new("a", "2")]);
        let taken = not_run(NotRun::KeyTaken);
        let put = |value: &str| {
            let (key, value) = (blob("a"), blob(value));
            Procedure::Put { key, value }
        };
        let after = update(vec![put("1"), Procedure::Add(1), put("2")]);
        assert_eq!(mine(&before, &taken), Resolution::Again(after.writes));
        let put_beside = |beside: &str, value: &str| {
            let (key, beside, value) = (blob("a"), blob(beside), blob(value));
            Procedure::PutBeside { key, beside, value }
        };
        let after = update(vec![
            put_beside("a~7f.12", "1"),
            Procedure::Add(1),
            put_beside("a~7f.12.1", "2"),
        ]);
        assert_eq!(both(&before, &taken), Resolution::Again(after.writes));
        assert_eq!(theirs(&taken), Resolution::Drop);
    }

    #[test]
    fn what_is_no_conflict_or_cannot_be_done_goes_to_the_list() {
        let update = update(vec![new("a", "1")]);
        let gone = Refusal::Invalid {
            reason: InvalidCommit::Generation {
                object: OBJECT,
                found: Generation(2),
            },
        };
        for refusal in [&gone, &not_run(NotRun::NoMap)] {
            assert_eq!(mine(&update, refusal), Resolution::List);
            assert_eq!(both(&update, refusal), Resolution::List);
            assert_eq!(theirs(refusal), Resolution::Drop);
        }
        let right = Right::Write;
        for refusal in [Refusal::NoRight { right }, Refusal::OtherLog] {
            assert_eq!(mine(&update, &refusal), Resolution::List);
            assert_eq!(both(&update, &refusal), Resolution::List);
            assert_eq!(theirs(&refusal), Resolution::List, "nobody wrote there");
        }
    }
}
