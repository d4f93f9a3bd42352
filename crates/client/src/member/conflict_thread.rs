//! The thread on which conflict routines run: nothing of the member waits for them.

use super::Member;
use crate::conflicts::{both, mine, theirs};
use crate::runtime::{Asked, MemberRuntime, Shared, block_on};
use crate::update::{object_updates, page_writes};
use crate::{
    ConflictRoutine, Conflicts, Error, ObjectUpdate, Reference, Refused, RefusedChange, Resolution,
    Session,
};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};
use thorp_model::{Refusal, Update};
use thorp_protocol::{Request, Resolution as Decided};

/// Runs the routine of a program for one refused update after another. It ends when the member does, and holds the member up by
/// nothing: it is not waited for, and what it decides too late it decides again at the next start.
pub(super) struct ConflictThread {
    conflicts: Conflicts,
    member: Weak<MemberRuntime>,
}

impl ConflictThread {
    /// Starts it.
    ///
    /// # Errors
    ///
    /// The system refuses a thread.
    pub(super) fn start(
        conflicts: Conflicts,
        member: Weak<MemberRuntime>,
        asked: Receiver<Asked>,
    ) -> io::Result<()> {
        let routine = ConflictThread { conflicts, member };
        let thread = thread::Builder::new().name("thorp-conflicts".to_owned());
        // It is not joined: the program's own code may take any time.
        drop(thread.spawn(move || {
            for (update, refusal) in asked {
                routine.resolve(update, refusal);
            }
        })?);
        Ok(())
    }

    fn resolve(&self, update: Update, refusal: Refusal) {
        let (home, id) = (update.home, update.id);
        let resolution = match &self.conflicts {
            Conflicts::Keep => Decided::List,
            Conflicts::Mine => mine(&update, &refusal),
            Conflicts::Theirs => theirs(&refusal),
            Conflicts::Both => both(&update, &refusal),
            Conflicts::Program(routine) => match self.asked(&update, refusal) {
                Some(refused) => decided(routine, &refused, &update),
                None => return,
            },
        };
        if let Some(member) = self.member.upgrade() {
            // A member that is leaving decides at its next start.
            member.shared.requests.sender.try_send(Request::Resolve {
                home,
                id,
                resolution,
            });
        }
    }

    /// The update for the program. None: the member is leaving.
    fn asked(&self, update: &Update, refusal: Refusal) -> Option<Refused> {
        let member = self.member.upgrade()?;
        let home = update.home;
        let shared: &Shared = &member.shared;
        let segment = shared.naming().segment(home, update.id.segment);
        let why = match shared.homes.name(home) {
            Some(name) => shared.refused(Some(home), refusal).of_home(&name),
            None => Error::from(refusal),
        };
        let session = Session::new().optimistic_reads(true);
        let reader = Member {
            runtime: Arc::clone(&member),
            session: session.deadline(Instant::now() + READ_PATIENCE),
        };
        let changes = object_updates(home, &update.writes).unwrap_or_default();
        let change = |(object, update): (Reference, ObjectUpdate)| RefusedChange {
            object,
            update,
            there: read(&reader, &object),
        };
        Some(Refused {
            segment,
            why,
            changes: changes.into_iter().map(change).collect(),
        })
    }
}

/// What is there now. Each object is read by itself: one that is gone hides no other.
fn read(member: &Member, object: &Reference) -> Option<Vec<u8>> {
    let mut tx = member.begin(member.session);
    let read = block_on(tx.read_async(object));
    read.ok().map(<[u8]>::to_vec)
}

/// What the routine of a program makes of an update. Whatever is wrong with that, a person sees the update on the list.
fn decided(routine: &ConflictRoutine, refused: &Refused, update: &Update) -> Decided {
    if refused.changes.is_empty() {
        return Decided::List;
    }
    // The panic has said itself what is wrong. What the routine shares with its program, that has to look after.
    let resolution = catch_unwind(AssertUnwindSafe(|| routine.run(refused)));
    match resolution {
        Err(_) | Ok(Resolution::Keep) => Decided::List,
        Ok(Resolution::Drop) => Decided::Drop,
        Ok(Resolution::Again(instead)) => {
            let of_segment = (update.home, update.id.segment);
            let is_here =
                |(at, _): &(Reference, _)| (at.home, at.object.page.segment) == of_segment;
            let is_whole = |(at, _): &(Reference, _)| at.offset == 0;
            let is_right = instead.iter().all(|one| is_here(one) && is_whole(one));
            let writes = page_writes(instead.iter().map(|(at, update)| (at, update)));
            match writes {
                Ok(writes) if is_right => Decided::Again(writes),
                _ => Decided::List,
            }
        }
    }
}

/// How long the objects of one refused update may be read.
const READ_PATIENCE: Duration = Duration::from_secs(2);
