//! What a command that only reads does with `--consistency`.

use crate::failure::{Code, Failure};
use crate::text;
use thorp_client::{Consistency, Member, Segment, Session, SessionKind, Visit};

/// How a command reads that changes nothing: by transactions, or as a visit does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    visit: Option<Consistency>,
    is_strict: bool,
}

impl Reading {
    /// As it is told. What this build does not do is found before the command joins.
    pub(super) fn of(consistency: Option<Consistency>) -> Result<Self, Failure> {
        let visit = consistency.filter(|value| value.kind() == SessionKind::Visit);
        let visit = visit.map(Consistency::for_reading);
        let checked = visit.as_ref().map_or(Ok(()), Visit::check);
        checked.map_err(|error| {
            let todo = "leave --consistency out, or take another: `thorp consistency` lists them";
            Failure::new(error.to_string(), todo).with(Code::Usage)
        })?;
        Ok(Reading {
            visit,
            is_strict: consistency == Some(Consistency::STRICT),
        })
    }

    /// Refuses what keeps others from writing, of a command that goes on until it is stopped.
    pub(super) fn without_locks(self) -> Result<Self, Failure> {
        if !self.visit.is_some_and(|visit| visit.mode().is_lock()) {
            return Ok(self);
        }
        let what = "a watch goes on until it is stopped, and nobody could write in the segment while it holds a lock";
        let todo = "take a consistency without a lock: mode=rd, or one of `thorp consistency`";
        Err(Failure::new(what, todo).with(Code::Usage))
    }

    /// Whether it reads as a visit does.
    pub(super) fn is_visit(self) -> bool {
        self.visit.is_some()
    }

    /// The session of its transactions. What is older than the bounds of a visit allow is asked for when it opens.
    pub(super) fn session(self, session: Session) -> Session {
        let session = session.strict(self.is_strict);
        match self.visit {
            Some(_) => session.optimistic_reads(true),
            None => session,
        }
    }

    /// Opens its visit on a segment, if it reads as one.
    pub(super) fn open(self, member: &Member, segment: &Segment) -> Result<Option<Visit>, Failure> {
        let visit = self.visit;
        let visit = visit.map(|consistency| Visit::open(member, consistency, &[segment]));
        Ok(visit.transpose()?)
    }
}

/// The homes that did not answer. A person is told.
pub(super) fn left_out(visit: &Visit) -> Vec<String> {
    let left_out = visit.left_out();
    if !left_out.is_empty() {
        let who = left_out.join(" and ");
        // Whoever reads no notes finds it in the JSON.
        let _ = text::note(&format!("{who} did not answer: this may be older"));
    }
    left_out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(value: &str) -> Result<Reading, Failure> {
        Reading::of(Some(value.parse().unwrap()))
    }

    #[test]
    fn only_a_watch_refuses_locks() {
        for value in ["locking", "mode=rdlk"] {
            let reading = of(value).unwrap();
            let refused = reading.without_locks().unwrap_err();
            assert_eq!(refused.code(), Code::Usage, "{value}");
        }
        for value in ["eventual", "strict", "stream", "bounded,mods=5,hard"] {
            assert!(of(value).unwrap().without_locks().is_ok(), "{value}");
        }
    }

    #[test]
    fn whoever_only_reads_needs_no_order() {
        let reading = of("mode=wr,order=stamp").unwrap();
        assert!(reading.visit.is_some());
        let (strict, none) = (of("strict").unwrap(), Reading::of(None).unwrap());
        assert!(strict.is_strict && strict.visit.is_none());
        assert!(!none.is_strict && none.visit.is_none());
    }
}
