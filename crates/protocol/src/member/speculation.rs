//! Commits whose program goes on before they are answered: what they wrote is shown meanwhile, as long as it can still
//! come true (rule 14).

use crate::member::in_flight::{AtPart, InFlight};
use crate::member::overlay::Rests;
use crate::member::replica::Replica;
use crate::member::{Member, MemberAction, Outbox, Response, overlay};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use thorp_model::planted::Bug;
use thorp_model::{CommitId, HomeId, Note, ObjectId, Part, Position, Stamp, planted};

impl Member {
    /// The commits that a transaction names at its homes: those whose values it has read, and those over whose values it
    /// writes, as far as they are not delivered within its evidence (rules 4 and 14, trap 23). Of those that are it was not
    /// told the stamps when it read them: the highest is told here, above which it stands (rule 5).
    pub(super) fn names(
        &self,
        parts: &[Part],
        read: &[(HomeId, CommitId)],
    ) -> (Vec<(HomeId, CommitId)>, Stamp) {
        let (mut names, mut stamp) = (Vec::new(), Stamp::default());
        for part in parts {
            let here = read.iter().filter(|(home, _)| *home == part.home);
            let state = self.homes.get(&part.home);
            let over = state.into_iter().flat_map(|at| at.written_over(part, read));
            for id in here.map(|(_, id)| *id).chain(over) {
                let delivered = state.and_then(|at| at.recent_changes.delivered(id));
                match delivered.filter(|(at, _)| *at <= part.evidence) {
                    Some(_) if planted::is(Bug::EarlyStampNotKnown) => {}
                    Some((_, past)) => stamp = stamp.max(past),
                    None if names.contains(&(part.home, id)) => {}
                    None => names.push((part.home, id)),
                }
            }
        }
        (names, stamp)
    }

    /// Shows what a commit wrote whose program wants to go on, if nothing that is known here speaks against it.
    pub(super) fn show_early(&mut self, id: CommitId, commit: &mut InFlight, outbox: &mut Outbox) {
        if !commit.early {
            return;
        }
        commit.early = match &commit.parts[..] {
            [at] => self.show_part(id, at.home(), commit, outbox),
            _ => false,
        };
        match (commit.early, commit.request_id) {
            (true, Some(request_id)) => {
                outbox.act(MemberAction::Respond(request_id, Response::Shown(id)))
            }
            _ => outbox.note(Note::EarlyNotShown),
        }
    }

    fn show_part(
        &mut self,
        id: CommitId,
        home: HomeId,
        commit: &InFlight,
        outbox: &mut Outbox,
    ) -> bool {
        let Some(part) = commit.parts().first().map(|at| &at.part) else {
            return false;
        };
        let state = self.at(home);
        let names: Vec<CommitId> = commit.names_at(home).collect();
        let stands_on = state.stands_on(&names, part.evidence);
        let rests = Rests::of(part, names, stands_on);
        // What that wrote its home will have before.
        let is_behind = self
            .hidden_before(home, id)
            .flat_map(objects)
            .any(|object| rests.includes(object));
        !is_behind && self.at(home).show_early(id, part, rests, outbox)
    }

    /// A commit that is not answered, if it is one, is shown no more.
    pub(super) fn withdraw(&mut self, home: HomeId, id: CommitId, outbox: &mut Outbox) {
        if let Some(state) = self.homes.get_mut(&home) {
            state.withdraw(id, outbox);
        }
    }

    /// Whether a commit has to wait for an earlier one that its program has made: one over which it writes, and which is
    /// not shown any more, so that it names it no more. What was made first would stay otherwise, if it comes last.
    pub(super) fn writes_over_withdrawn(&self, home: HomeId, id: CommitId) -> bool {
        let parts = self.commits.get(&id).map_or(&[][..], InFlight::parts);
        let Some(at) = parts.iter().find(|at| at.home() == home) else {
            return false;
        };
        let mut hidden = self.hidden_before(home, id);
        hidden.any(|earlier| writes_over(&at.part, earlier))
            && !planted::is(Bug::WithdrawnOvertaken)
    }

    /// The same at one of the other homes of a commit, all parts of which are sent at once; or what it names there is not sent yet.
    pub(super) fn waits_elsewhere(&self, home: HomeId, id: CommitId) -> bool {
        let Some(commit) = self.commits.get(&id) else {
            return false;
        };
        let is_waiting = |named: CommitId| {
            let named = self.commits.get(&named);
            named.is_some_and(|named| named.parts().iter().any(AtPart::is_waiting))
        };
        let mut others = commit
            .parts()
            .iter()
            .map(AtPart::home)
            .filter(|of| *of != home);
        let waits = |of| self.writes_over_withdrawn(of, id) || commit.names_at(of).any(is_waiting);
        others.any(waits) && !planted::is(Bug::OtherHomesAhead)
    }

    /// What a program has committed here before another commit, was shown, and is not any more, and not answered.
    fn hidden_before(&self, home: HomeId, id: CommitId) -> impl Iterator<Item = &Part> + '_ {
        let own = self.homes.get(&home).map(|state| &state.overlay);
        let earlier = self.commits.range(..id).filter(|(_, commit)| commit.early);
        let hidden = earlier.filter(move |(id, _)| own.is_some_and(|own| !own.has(**id)));
        let parts = hidden.flat_map(|(_, commit)| commit.parts());
        let open = parts.filter(move |at| at.home() == home && at.is_open());
        open.map(|at| &at.part)
    }
}

fn objects(part: &Part) -> impl Iterator<Item = ObjectId> + '_ {
    part.writes.iter().flat_map(|writes| {
        let page = writes.page;
        let slots = writes.slots.iter();
        slots.map(move |(slot, _)| ObjectId { page, slot: *slot })
    })
}

fn writes_over(later: &Part, earlier: &Part) -> bool {
    let earlier: BTreeSet<ObjectId> = objects(earlier).collect();
    objects(later).any(|object| earlier.contains(&object))
}

impl Replica {
    /// The commits over whose values a part writes without having read them: of each object the last such, for that is bound to
    /// those below it. A name excuses all that a commit changed: so none of these of which something was read, for that may have
    /// been before it was shown; unless the part has read what stands on it, which was shown after it: whoever had read it
    /// before was doomed then. What was read of it at another home tells nothing of here.
    fn written_over(&self, part: &Part, read: &[(HomeId, CommitId)]) -> Vec<CommitId> {
        if self.overlay.is_empty() || planted::is(Bug::WrittenOverNotNamed) {
            return Vec::new();
        }
        // Itself, or what stands on it.
        let is_known = |id: &CommitId| {
            let is_here = |home| home == part.home || planted::is(Bug::KnownElsewhere);
            let mut read = read.iter().filter(|(home, _)| is_here(*home));
            read.any(|(_, read)| {
                let below = self.overlay.stands_on(*read);
                read == id || below.is_some_and(|below| below.contains(id))
            })
        };
        let may_be_named = |id: &CommitId| {
            let mut reads = part.reads.iter();
            !reads.any(|(page, slots)| self.overlay.writes(*id, *page, slots))
                || is_known(id)
                || planted::is(Bug::WrittenOverTakenForRead)
        };
        let looked_at = match planted::is(Bug::WrittenOverLastOnly) {
            true => 1,
            false => usize::MAX,
        };
        let over = |object| {
            self.overlay
                .writers(object)
                .take(looked_at)
                .find(may_be_named)
        };
        objects(part).filter_map(over).collect()
    }

    /// The commits that these stand on, and these, as far as they are not delivered within the evidence.
    fn stands_on(&self, names: &[CommitId], evidence: Position) -> BTreeSet<CommitId> {
        let below = |id: &CommitId| {
            if planted::is(Bug::OnlyNamesSeen) {
                return None.into_iter().flatten();
            }
            let own = self.overlay.stands_on(*id);
            own.or_else(|| self.recent_changes.stood_on(*id))
                .into_iter()
                .flatten()
        };
        let all = names.iter().chain(names.iter().flat_map(below));
        let is_open = |id: &&CommitId| {
            let delivered = self.recent_changes.delivered(**id);
            delivered.map_or(self.overlay.has(**id), |(at, _)| at > evidence)
        };
        all.filter(is_open).copied().collect()
    }

    /// True if it is shown from now on.
    fn show_early(&mut self, id: CommitId, part: &Part, rests: Rests, outbox: &mut Outbox) -> bool {
        self.recent_changes.begin(self.up.position);
        if !self.may_show(part, &rests) {
            return false;
        }
        let shown = self.overlay.enter_early(id, rests, &part.writes);
        if part
            .writes
            .iter()
            .any(|writes| self.is_covered(writes.page))
        {
            // It does not fit, and only its home can say where it goes.
            self.overlay.withdraw(id);
            return false;
        }
        outbox.note(Note::EarlyShown);
        outbox.act(MemberAction::Showing(id));
        self.publish_shown(shown, outbox);
        true
    }

    /// Whether a commit stands, as far as that is known here: of all that it has read or written, everything later would be
    /// heard here, and nothing has been.
    fn may_show(&self, part: &Part, rests: &Rests) -> bool {
        let is_live = self.up.edge.is_some() && !self.up.is_held();
        let heard = |page| self.pages.get(&page).map(|held| held.since);
        let holds = |page| heard(page).is_some_and(|since| since <= part.evidence);
        is_live
            && !part.writes.is_empty()
            && overlay::can_be_shown(part)
            && rests.pages().all(holds)
            && (self.is_as_read(part, rests) || planted::is(Bug::ShownTooLate))
            && part.writes.iter().all(|writes| {
                let shown = self.shown(writes.page);
                // A page that was never written to may lie beyond its segment's end, which only the home moves.
                let written = shown.filter(|image| image.version() > Position(0));
                let mut slots = writes.slots.iter();
                written
                    .is_some_and(|image| slots.all(|(slot, op)| overlay::fits(&image, *slot, op)))
            })
    }

    /// Whether all that it names is shown or delivered, and all else that it has read is as it was.
    fn is_as_read(&self, part: &Part, rests: &Rests) -> bool {
        let is_there =
            |id: &CommitId| self.overlay.has(*id) || self.recent_changes.delivered(*id).is_some();
        let has_seen = |(page, slots): &(_, thorp_model::SlotSet)| {
            let mut own = self.overlay.of(*page);
            own.all(|(own, id)| !own.touches(slots) || rests.names().contains(&id))
        };
        rests.names().iter().all(is_there)
            && part.reads.iter().all(has_seen)
            && self.recent_changes.leaves(rests, part.evidence)
    }

    fn withdraw(&mut self, id: CommitId, outbox: &mut Outbox) {
        let shown = self.overlay.withdraw(id);
        if !shown.is_empty() {
            outbox.note(Note::EarlyWithdrawn);
            self.publish_shown(shown, outbox);
        }
    }
}
