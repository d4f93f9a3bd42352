//! The way of an update: from the program to the disk, to the neighbours, to the home, and out of the view (rules C6 and C7).

use crate::edge::pending_writes::PendingWrites;
use crate::member::caller::Caller;
use crate::member::commits::Commits;
use crate::member::updates::asker::Asker;
use crate::member::updates::giving::Wanted;
use crate::member::updates::leasing::Leasing;
use crate::member::updates::log::{Gathered, Origin};
use crate::member::updates::sharing::Sharing;
use crate::member::updates::{Unanswered, Updates, respond};
use crate::member::{MemberAction, NotKept, Outbox, Resolution, Response};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use thorp_model::limits::{BUSY_RETRY_MS, COMMIT_BYTES_MAX, KEEP_PATIENCE_MS_MAX, PROOF_BYTES_MAX};
use thorp_model::message::{Keep, Kept};
use thorp_model::planted::Bug;
use thorp_model::{
    Authorship, CallError, CallRequest, CallResponse, CommitId, CommitRequest, EdgeId, HomeId,
    Lack, LogState, Mark, Millis, NodeKind, Note, PageWrites, Part, Position, Proof, Refusal,
    Registration, RequestId, SegmentId, SignedText, Stamp, TentativeChange, Up, Update, UpdateId,
    WhyLeft, message, planted,
};

/// When a home that has no room for an update is asked again.
const LONG_RETRY_MS: u32 = 2_000;

/// Moves updates on.
#[derive(Debug)]
pub(in crate::member) struct Updating<'a> {
    pub(in crate::member) updates: &'a mut Updates,
    pub(in crate::member) caller: Caller<'a>,
    pub(in crate::member) commits: &'a mut Commits,
    pub(in crate::member) pending_writes: &'a mut PendingWrites,
    pub(in crate::member) parents: &'a BTreeMap<EdgeId, NodeKind>,
}

impl Updating<'_> {
    fn now(&self) -> Millis {
        self.caller.signing.now.mono
    }

    /// What the member does for leases.
    pub(in crate::member) fn leasing(&mut self) -> Leasing<'_> {
        Leasing {
            updates: self.updates,
            caller: self.caller.reborrow(),
        }
    }

    /// What the member does with its neighbours.
    pub(in crate::member) fn sharing(&mut self) -> Sharing<'_> {
        Sharing {
            updates: self.updates,
            caller: self.caller.reborrow(),
            parents: self.parents,
        }
    }

    fn show(&mut self, home: HomeId, tentative: TentativeChange, outbox: &mut Outbox) {
        if tentative != TentativeChange::default() {
            let replica = self.caller.homes.at(home);
            replica.show_tentatively(tentative, outbox);
        }
    }

    // --- The program ---

    /// The program writes: first the log makes it durable.
    pub(in crate::member) fn update(
        &mut self,
        request_id: RequestId,
        (home, writes): (HomeId, Vec<PageWrites>),
        patience_ms: u32,
        outbox: &mut Outbox,
    ) {
        let asker = Asker::Program(request_id);
        let is_kept = match self.updates.log.is_there() {
            true => self.gather((asker, None), (home, writes), patience_ms, outbox),
            false => {
                let wanted = Wanted {
                    request_id,
                    home,
                    writes,
                    patience_ms,
                };
                self.give(wanted, outbox)
            }
        };
        if let Err(why) = is_kept {
            respond(request_id, Response::NotKept(why), outbox);
        }
    }

    /// Somebody wants the log to keep an update.
    fn gather(
        &mut self,
        (asker, author): (Asker, Option<Authorship>),
        (home, writes): (HomeId, Vec<PageWrites>),
        patience_ms: u32,
        outbox: &mut Outbox,
    ) -> Result<(), NotKept> {
        let update = self.checked(home, writes)?;
        let (bytes, segment) = (update.bytes(), update.id.segment);
        let until = self.now().plus(u64::from(patience_ms));
        let gathered = Gathered {
            origin: Origin::Asked { asker, until },
            author,
            home,
            segment,
            writes: update.writes,
        };
        if !self.updates.log.gather(gathered, bytes) {
            return Err(NotKept::LogFull);
        }
        self.gathered((home, segment), outbox);
        Ok(())
    }

    /// What is written as an update without a number, if it can be one.
    fn checked(&self, home: HomeId, writes: Vec<PageWrites>) -> Result<Update, NotKept> {
        let first = writes.first().ok_or(NotKept::Invalid)?;
        let id = UpdateId {
            log: self.updates.log.id(),
            segment: first.page.segment,
            number: 0,
        };
        let update = Update { home, id, writes };
        let is_right = update.is_whole() && update.bytes() <= COMMIT_BYTES_MAX;
        is_right.then_some(update).ok_or(NotKept::Invalid)
    }

    // --- The log of the site ---

    /// Gives an update to the log of the site. The home is asked for a lease: so the site learns that this member may write.
    fn give(&mut self, wanted: Wanted, outbox: &mut Outbox) -> Result<(), NotKept> {
        let home = wanted.home;
        let update = self.checked(home, wanted.writes)?;
        self.site(home).ok_or(NotKept::NoLog)?;
        let (now, segment) = (self.now(), update.id.segment);
        let here = self.updates.of.entry((home, segment)).or_default();
        here.written = Some(now);
        here.gives = true;
        let wanted = Wanted {
            writes: update.writes,
            ..wanted
        };
        self.updates.giving.take(wanted, now);
        self.leasing().lease(home, outbox);
        self.sharing().follow_all(home, outbox);
        self.send_given(home, segment, outbox);
        Ok(())
    }

    /// Sends what waits until the member follows a segment, or its home is away: so the member shows it until the home has it.
    fn send_given(&mut self, home: HomeId, segment: SegmentId, outbox: &mut Outbox) {
        let here = self.updates.of.get(&(home, segment));
        let follows = here.is_some_and(|here| here.following.since().is_some());
        let may_go = follows || self.caller.homes.edge(home).is_none();
        if let Some(site) = self.site(home).filter(|_| may_go) {
            let signer = self.caller.signing.signer();
            let to = (site, home, segment);
            self.updates.giving.send_to(to, signer, outbox);
        }
    }

    /// The site at which the member is, also while it has no home.
    fn site(&self, home: HomeId) -> Option<EdgeId> {
        let is_site = |edge: &EdgeId| self.parents.get(edge) == Some(&NodeKind::Redirector);
        let of_home = self.caller.homes.edge(home).filter(is_site);
        of_home.or_else(|| self.parents.keys().copied().find(is_site))
    }

    /// The site has answered what was given to its log. The program finds its own update when it is answered.
    pub(in crate::member) fn given(&mut self, edge: EdgeId, kept: &Kept, outbox: &mut Outbox) {
        let signer = self.caller.signing.signer();
        let given = self.updates.giving.kept(edge, kept, signer, outbox);
        self.updates.end_giving();
        let Some((request_id, update, is_leased)) = given else {
            return;
        };
        let id = update.id;
        self.show_given(update, outbox);
        respond(request_id, Response::Kept { id, is_leased }, outbox);
    }

    fn show_given(&mut self, update: Update, outbox: &mut Outbox) {
        let (home, id, bytes) = (update.home, update.id, update.bytes());
        let since = self.caller.homes.at(home).up.position;
        let Some(here) = self.updates.of.get_mut(&(home, id.segment)) else {
            return;
        };
        let is_shown = match here.following.since() {
            Some(_) => here.following.show(id, bytes, since),
            None => here.following.show_own(id, bytes),
        };
        if is_shown {
            let shown = TentativeChange {
                shown: Vec::from([update]),
                settled: Vec::new(),
            };
            self.show(home, shown, outbox);
        }
    }

    /// The site of this member is gone.
    pub(in crate::member) fn parent_went(&mut self, edge: EdgeId, outbox: &mut Outbox) {
        self.updates.giving.parent_went(edge, outbox);
        self.updates.end_giving();
    }

    /// A neighbour without a log wants this one to keep an update (rule C6).
    pub(in crate::member) fn keep(&mut self, edge: EdgeId, keep: Keep, outbox: &mut Outbox) {
        let asker = Asker::Neighbour(edge, keep.author.by);
        let home = keep.home;
        let is_kept = self.check_author(&keep).and_then(|()| {
            let by = (asker, Some(keep.author));
            let patience_ms = keep.patience_ms.min(KEEP_PATIENCE_MS_MAX);
            self.gather(by, (home, keep.writes), patience_ms, outbox)
        });
        if let Err(why) = is_kept {
            asker.refused(home, why, outbox);
        }
    }

    /// Whether this log keeps updates of neighbours, and the author has signed this one for it.
    fn check_author(&self, keep: &Keep) -> Result<(), NotKept> {
        let signing = &self.caller.signing;
        let own = self.updates.log.id().name();
        let keeps = self.updates.log.is_there() && self.updates.keeps_for_others;
        let segment = keep.segment().ok_or(NotKept::Invalid)?;
        match (keeps, keep.log == own) {
            (false, _) => return Err(NotKept::NoLog),
            (true, false) => return Err(NotKept::OtherLog(own)),
            (true, true) => {}
        }
        let proof = &keep.author.proof;
        if !self
            .updates
            .log
            .has_share(keep.author.by.member.name(), keep.bytes())
        {
            return Err(NotKept::LogFull);
        }
        let text = keep.text(segment);
        let is_small = proof.bytes() <= PROOF_BYTES_MAX;
        let certified = signing.verify(&text, proof).filter(|_| is_small);
        let is_proven = certified.is_some_and(|signer| signer.who.name == text.by());
        let is_believed = is_proven;
        match is_believed || planted::is(Bug::KeptUnproven) {
            true => Ok(()),
            false => Err(NotKept::NotProven),
        }
    }

    /// An update is to be durable, and wants a lease.
    fn gathered(&mut self, (home, segment): (HomeId, SegmentId), outbox: &mut Outbox) {
        let now = self.now();
        let here = self.updates.of.entry((home, segment)).or_default();
        here.written = Some(now);
        self.write(outbox);
        self.leasing().lease(home, outbox);
    }

    /// The routine of the program has decided what becomes of a refused update.
    pub(in crate::member) fn resolve(
        &mut self,
        of: (HomeId, UpdateId),
        resolution: Resolution,
        outbox: &mut Outbox,
    ) {
        if self.updates.resolve(of, resolution, outbox) {
            let (home, id) = of;
            self.gathered((home, id.segment), outbox);
        }
    }

    fn write(&mut self, outbox: &mut Outbox) {
        let Updates { log, of, .. } = &mut *self.updates;
        let id = log.id();
        let mut given: BTreeMap<(HomeId, SegmentId), u64> = BTreeMap::new();
        let next_number = |home, segment| {
            let here = of.entry((home, segment)).or_default();
            let next = given.entry((home, segment));
            let next = next.or_insert_with(|| here.custody.next_number(id) - 1);
            *next += 1;
            *next
        };
        log.write(next_number, outbox);
    }

    /// Updates are durable: now everybody may know.
    pub(in crate::member) fn kept(&mut self, mark: Mark, outbox: &mut Outbox) {
        let mut homes = Vec::new();
        let now = self.now();
        for (update, origin) in self.updates.log.kept(mark) {
            outbox.note(Note::UpdateKept);
            let (home, id) = (update.home, update.id);
            let here = self.updates.of.entry((home, id.segment)).or_default();
            here.custody.insert(update.clone(), None, Some(now));
            if let Origin::Routine { replaces } = origin
                && let Some(old) = here.custody.take_rejected(replaces)
            {
                self.updates.log.replaced(&old);
            }
            self.show(
                home,
                TentativeChange {
                    shown: Vec::from([update.clone()]),
                    settled: Vec::new(),
                },
                outbox,
            );
            self.sharing().tell(&update, outbox);
            if let Origin::Asked { asker, until } = origin {
                self.updates.unanswered.push(Unanswered {
                    asker,
                    home,
                    id,
                    until,
                    withheld: None,
                    is_to_ask: false,
                    is_saved: false,
                });
            }
            homes.push(home);
        }
        homes.dedup();
        for home in homes {
            self.sharing().follow_all(home, outbox);
            self.send(home, outbox);
        }
        self.leasing().answer(outbox);
        self.write(outbox);
    }

    /// The disk did not take a batch. Its updates never were.
    pub(in crate::member) fn not_kept(
        &mut self,
        mark: Mark,
        lack: Option<Lack>,
        outbox: &mut Outbox,
    ) {
        for (update, origin) in self.updates.log.not_kept(mark) {
            let why = lack.map_or(NotKept::Broken, NotKept::DiskFull);
            if let Origin::Asked { asker, .. } = origin {
                asker.refused(update.home, why, outbox);
            }
        }
        self.write(outbox);
    }

    // --- To the home ---

    /// A stream begins: what was on its way goes again, and the member says what it has (rule C7).
    pub(in crate::member) fn begin(&mut self, home: HomeId, forgets: bool, outbox: &mut Outbox) {
        if !planted::is(Bug::UpdatesNotSentAgain) {
            for commit in self.updates.unsend_all(home) {
                self.is_over(home, commit);
            }
        }
        self.updates.leasing.remove(&home);
        self.updates.pauses.end(home);
        self.updates.alone.retain(|(of, _)| *of != home);
        for waits in &mut self.updates.unanswered {
            // Sent again, it is told anew whether its answer follows.
            waits.withheld.take_if(|_| waits.home == home);
            waits.is_to_ask &= waits.home != home;
        }
        let now = self.now();
        let mut gone = Vec::new();
        for ((of, _), here) in &mut self.updates.of {
            if *of == home {
                here.following.stream_began();
                here.lease.stream_ended();
                if forgets {
                    gone.extend(here.following.clear());
                    // Another incarnation of the home knows of no lease (rule R9).
                    here.lease.give_back(now);
                }
            }
        }
        self.show(
            home,
            TentativeChange {
                shown: Vec::new(),
                settled: gone,
            },
            outbox,
        );
        self.sharing().follow_all(home, outbox);
        self.leasing().lease(home, outbox);
        self.send(home, outbox);
    }

    /// The stream has ended. The members of the site go on sharing.
    pub(in crate::member) fn end(&mut self, home: HomeId, outbox: &mut Outbox) {
        self.updates.leasing.remove(&home);
        let mut waiting = Vec::new();
        for ((of, _), here) in &mut self.updates.of {
            if *of == home {
                here.following.stream_ended();
                here.lease.stream_ended();
                waiting.append(&mut here.waiting);
            }
        }
        for request_id in waiting {
            respond(request_id, Response::Following, outbox);
        }
        self.leasing().answer(outbox);
        let given = self.updates.of.iter();
        let given = given.filter(|((of, _), here)| *of == home && here.gives);
        let given: Vec<SegmentId> = given.map(|((_, segment), _)| *segment).collect();
        for segment in given {
            self.send_given(home, segment, outbox);
        }
    }

    /// The home has told how far the logs of a segment are. True: the member waited for that, and it was the last.
    pub(in crate::member) fn following(
        &mut self,
        (home, segment): (HomeId, SegmentId),
        result: Result<CallResponse, CallError>,
        outbox: &mut Outbox,
    ) {
        let of = (home, segment);
        let (settled, is_over) = match result {
            // Meanwhile the log of the site has taken an update of this member. The home is asked for that log, too.
            Ok(CallResponse::Following { logs, .. }) if self.lacks_log(of, &logs) => {
                if let Some(here) = self.updates.of.get_mut(&of) {
                    here.following.stream_ended();
                }
                return self.sharing().follow_all(home, outbox);
            }
            Ok(CallResponse::Following { position, logs }) => {
                self.caller.homes.at(home).up.advance(position);
                (self.settle(of, position, &logs, outbox), true)
            }
            // The home has too much to do, or does not know this member any more: the member asks again.
            Err(CallError::Busy | CallError::NotDelegated(_) | CallError::NotRegistered) => {
                if let Some(here) = self.updates.of.get_mut(&of) {
                    here.following.stream_ended();
                }
                let again = self.now().plus(u64::from(BUSY_RETRY_MS));
                self.updates.pauses.pause(home, None, again);
                (TentativeChange::default(), false)
            }
            // It cannot be followed: nothing of it is shown.
            _ => (self.updates.hide(of), true),
        };
        let replica = self.caller.homes.at(home);
        replica.followed(segment, settled, is_over, outbox);
        let Some(here) = self.updates.of.get_mut(&of).filter(|_| is_over) else {
            return;
        };
        for request_id in core::mem::take(&mut here.waiting) {
            respond(request_id, Response::Following, outbox);
        }
        here.is_to_tell = true;
        self.sharing().tell_due(outbox);
        self.leasing().give_back_recalled(home, outbox);
        self.send_given(home, segment, outbox);
    }

    /// Whether an answer of the home says nothing of a log of another of which something is shown.
    fn lacks_log(&self, of: (HomeId, SegmentId), logs: &[LogState]) -> bool {
        let here = self.updates.of.get(&of);
        let known = |log| logs.iter().any(|state| state.log == log);
        here.is_some_and(|here| !here.following.logs().into_iter().all(known))
    }

    fn settle(
        &mut self,
        of: (HomeId, SegmentId),
        position: Position,
        logs: &[LogState],
        outbox: &mut Outbox,
    ) -> TentativeChange {
        let mut change = TentativeChange::default();
        let Some(here) = self.updates.of.get_mut(&of) else {
            return change;
        };
        here.following.begin(position, logs);
        let (mut saved, mut commits) = (Vec::new(), Vec::new());
        for state in logs {
            let settled = here.following.settle(state.log, state.saved);
            change.settled.extend(settled);
            let (left, sent) = here.custody.settle(state);
            saved.extend(left);
            commits.extend(sent);
        }
        change.settled.extend(saved.iter().map(|update| update.id));
        let open: Vec<(UpdateId, bool)> = here
            .custody
            .open()
            .map(|own| (own.update.id, own.is_shown))
            .collect();
        for (id, is_shown) in open {
            let state = logs.iter().find(|state| state.log == id.log);
            let is_refused = state.is_some_and(|state| state.refused.contains(&id.number));
            match (is_refused, is_shown) {
                (true, true) => {
                    here.custody.show(id, false);
                    change.settled.push(id);
                }
                (false, false) => change.shown.extend(here.custody.show(id, true).cloned()),
                _ => {}
            }
        }
        self.updates.log.forget(&saved, outbox);
        // Those of this start leave so whenever a stream has broken.
        let of_this_start = self.updates.log.id();
        let earlier = saved.iter().map(|update| update.id);
        let earlier = earlier.filter(|id| id.log != of_this_start);
        let log = &mut self.updates.log;
        log.note_left(of.0, earlier, WhyLeft::Saved, outbox);
        for commit in commits {
            self.updates.sent.remove(&commit);
            self.is_over(of.0, commit);
        }
        change
    }

    /// Sends what may be on its way, in order.
    pub(in crate::member) fn send(&mut self, home: HomeId, outbox: &mut Outbox) {
        let Some(edge) = self.caller.homes.edge(home) else {
            return;
        };
        if self.updates.pauses.has_home(home, self.now()) {
            return;
        }
        let waiting = self.updates.next_to_send(home, self.now());
        if waiting.is_empty() {
            return;
        }
        let Some(registration) = self.caller.homes.get(home).and_then(|at| at.registration) else {
            return self.caller.register(home, outbox);
        };
        for id in waiting {
            let here = self.updates.of.get(&(home, id.segment));
            let Some(own) = here.and_then(|here| here.custody.get(id)) else {
                continue;
            };
            let part = own.update.part();
            let bytes = part.bytes();
            let homes = &*self.caller.homes;
            let is_on = |home| homes.is_on(home, edge);
            if !self.caller.uplink.has_space_for_commit(bytes, is_on) {
                return;
            }
            self.send_as((edge, id), part, registration, outbox);
        }
    }

    fn send_as(
        &mut self,
        (edge, update): (EdgeId, UpdateId),
        part: Part,
        registration: Registration,
        outbox: &mut Outbox,
    ) {
        let (home, bytes, id) = (part.home, part.bytes(), self.commits.next_id());
        self.caller.uplink.commit_sent(home, id, bytes);
        self.pending_writes.put(id, &part, outbox);
        self.updates.sent.insert(id, (home, update));
        let here = self.updates.of.entry((home, update.segment)).or_default();
        here.custody.sent(update, id);
        let confirmed = here.custody.confirmed(update.log);
        let request = CommitRequest {
            id,
            registration,
            part,
            with: Vec::new(),
            depends_on: Vec::new(),
            after: Stamp::default(),
        };
        let mut save = message::Save {
            request,
            update,
            confirmed,
            custody: Proof::none(),
            author: self.updates.log.author(home, update).cloned(),
        };
        // A home believes the edge of the member itself.
        if self.parents.get(&edge) == Some(&NodeKind::Redirector) {
            save.custody = self.caller.signing.signer().sign(&save.text());
        }
        outbox.up(edge, Up::Save(Box::new(save)));
    }

    /// A commit of an update is answered, or its answer does not come.
    fn is_over(&mut self, home: HomeId, commit: CommitId) {
        self.pending_writes.drop_commit(home, commit);
        self.caller.uplink.commit_answered(home, commit, true);
    }

    /// Whether a commit is that of an update.
    pub(in crate::member) fn is_sent(&self, commit: CommitId) -> bool {
        self.updates.sent.contains_key(&commit)
    }

    /// A position has come at which an update was settled. What is to leave the view with it is returned (rule C6).
    pub(in crate::member) fn saved(
        &mut self,
        home: HomeId,
        (id, is_executed): (UpdateId, bool),
        outbox: &mut Outbox,
    ) -> Vec<UpdateId> {
        let Some(here) = self.updates.of.get_mut(&(home, id.segment)) else {
            return Vec::new();
        };
        let mut settled = here.following.settle(id.log, id.number);
        let Some(own) = here.custody.get(id) else {
            return settled;
        };
        if own.is_shown {
            settled.push(id);
        }
        if is_executed {
            let (left, commit) = here.custody.take(id).unzip();
            self.updates.log.forget(left.as_slice(), outbox);
            if let Some(commit) = commit.flatten() {
                self.updates.sent.remove(&commit);
                self.is_over(home, commit);
            }
            self.is_saved((home, id), outbox);
        } else {
            // Its reason comes with the answer to the commit, or when it is sent once more.
            here.custody.show(id, false);
        }
        self.leasing().give_back_recalled(home, outbox);
        settled
    }

    /// The home keeps back the answer to the commit of an update (rule C2).
    pub(in crate::member) fn withheld(&mut self, commit: CommitId) {
        let sent = self.updates.sent.get(&commit);
        let Some((home, id)) = sent.copied() else {
            return;
        };
        let mut unanswered = self.updates.unanswered.iter_mut();
        if let Some(waits) = unanswered.find(|waits| (waits.home, waits.id) == (home, id)) {
            waits.withheld = Some(commit);
        }
    }

    /// The home has an update. Its program is told when readers with hard bounds have seen it.
    fn is_saved(&mut self, of: (HomeId, UpdateId), outbox: &mut Outbox) {
        let mut unanswered = self.updates.unanswered.iter_mut();
        let Some(waits) = unanswered.find(|waits| (waits.home, waits.id) == of) else {
            return;
        };
        waits.is_to_ask = waits.withheld.is_some();
        waits.is_saved = waits.withheld.is_none();
        match waits.is_to_ask {
            true => self.ask_withheld(outbox),
            false => self.leasing().answer(outbox),
        }
    }

    /// Asks for the answers that homes keep back.
    fn ask_withheld(&mut self, outbox: &mut Outbox) {
        for waits in &mut self.updates.unanswered {
            let commit = waits.withheld.filter(|_| waits.is_to_ask);
            let home = waits.home;
            let (Some(commit), Some(_)) = (commit, self.caller.homes.edge(home)) else {
                continue;
            };
            waits.is_to_ask = false;
            let at = self.caller.homes.get(home);
            let registration = at.and_then(|at| at.registration).unwrap_or_default();
            let request = CallRequest::Outcome {
                commit,
                registration,
            };
            self.caller.ask_outcome(home, commit, request, outbox);
        }
    }

    /// The home has answered the question for the outcome of an update's commit. One that is busy is asked again with the next tick.
    pub(in crate::member) fn released(
        &mut self,
        commit: CommitId,
        result: &Result<CallResponse, CallError>,
        outbox: &mut Outbox,
    ) {
        let is_busy = result.is_err();
        for waits in &mut self.updates.unanswered {
            if waits.withheld == Some(commit) {
                (waits.is_to_ask, waits.is_saved) = (is_busy, !is_busy);
            }
        }
        self.leasing().answer(outbox);
    }

    /// The home has answered the commit of an update otherwise.
    pub(in crate::member) fn answered(
        &mut self,
        commit: CommitId,
        refusal: Option<Refusal>,
        outbox: &mut Outbox,
    ) {
        let Some((home, id)) = self.updates.sent.remove(&commit) else {
            return;
        };
        self.is_over(home, commit);
        match refusal {
            None => {
                let settled = self.saved(home, (id, true), outbox);
                self.show(
                    home,
                    TentativeChange {
                        shown: Vec::new(),
                        settled,
                    },
                    outbox,
                );
            }
            Some(refusal) if is_for_good(&refusal) => self.reject(home, id, refusal, outbox),
            Some(refusal) => self.go_back(home, id, refusal, outbox),
        }
        self.leasing().give_back_recalled(home, outbox);
        self.send(home, outbox);
    }

    /// The home refused an update for good: it goes to the list of rejected ones.
    fn reject(&mut self, home: HomeId, id: UpdateId, refusal: Refusal, outbox: &mut Outbox) {
        let Some(here) = self.updates.of.get_mut(&(home, id.segment)) else {
            return;
        };
        let was_shown = here.custody.get(id).is_some_and(|own| own.is_shown);
        let Some(update) = here.custody.reject(id, refusal.clone()) else {
            return;
        };
        self.updates.log.reject(&update, refusal.clone(), outbox);
        outbox.act(MemberAction::Rejected(update, refusal));
        let settled = was_shown.then_some(id).into_iter().collect();
        self.show(
            home,
            TentativeChange {
                shown: Vec::new(),
                settled,
            },
            outbox,
        );
    }

    /// The home did not take an update now. All later ones of its log come to nothing, too, and go again in order.
    fn go_back(&mut self, home: HomeId, id: UpdateId, refusal: Refusal, outbox: &mut Outbox) {
        let commits = match self.updates.of.get_mut(&(home, id.segment)) {
            Some(here) => here.custody.unsend(Some(id.log)),
            None => Vec::new(),
        };
        for commit in commits {
            self.updates.sent.remove(&commit);
            self.is_over(home, commit);
        }
        match &refusal {
            Refusal::NotDelegated(_) => self.caller.is_not_delegated(home),
            Refusal::Forgotten => self.caller.homes.at(home).is_forgotten(),
            Refusal::NotYet { number } => self.void((home, id), *number, outbox),
            _ => {}
        }
        let is_long = matches!(refusal, Refusal::Full(_) | Refusal::Share(_));
        let wait = if is_long {
            LONG_RETRY_MS
        } else {
            BUSY_RETRY_MS
        };
        let again = self.now().plus(u64::from(wait));
        // Before this member has registered anew, the home takes nothing of it.
        let is_of_all = matches!(refusal, Refusal::NotDelegated(_) | Refusal::Forgotten);
        let segment = (!is_of_all).then_some(id.segment);
        self.updates.pauses.pause(home, segment, again);
    }

    /// The home wants a number that the log does not send any more, because a history that is lost had saved it or refused it: the
    /// log declares it void (rule C7). One that is refused stays on the list of rejected ones.
    fn void(&mut self, (home, id): (HomeId, UpdateId), number: u64, outbox: &mut Outbox) {
        let here = self.updates.of.get(&(home, id.segment));
        let missing = UpdateId { number, ..id };
        let is_open = here.is_some_and(|here| number > here.custody.confirmed(id.log));
        let is_kept = here.is_some_and(|here| here.custody.get(missing).is_some());
        let edge = self.caller.homes.edge(home);
        let registration = self.caller.homes.get(home).and_then(|at| at.registration);
        if let (false, Some(edge), Some(registration)) = (is_open, edge, registration) {
            if !is_kept {
                let log = &mut self.updates.log;
                log.note_left(home, [missing].into_iter(), WhyLeft::Void, outbox);
            }
            let part = Part {
                home,
                evidence: Position(0),
                reads: Vec::new(),
                writes: Vec::new(),
                under: None,
            };
            self.send_as((edge, missing), part, registration, outbox);
        }
    }

    // --- Time ---

    /// Does what is due.
    pub(in crate::member) fn tick(&mut self, outbox: &mut Outbox) {
        let now = self.now();
        for home in self.updates.pauses.take_due(now) {
            self.sharing().follow_all(home, outbox);
            self.send(home, outbox);
        }
        let mut homes: Vec<HomeId> = self.updates.of.keys().map(|(home, _)| *home).collect();
        homes.dedup();
        for home in homes {
            self.leasing().lease(home, outbox);
        }
        self.sharing().tell_due(outbox);
        self.ask_withheld(outbox);
        self.leasing().answer(outbox);
        self.updates.giving.tick(now, outbox);
        self.updates.end_giving();
    }
}

/// Whether a refusal has taken the number of its update.
fn is_for_good(refusal: &Refusal) -> bool {
    let is_in_doubt = matches!(
        refusal,
        Refusal::Forgotten
            | Refusal::InDoubt
            | Refusal::Unknown
            | Refusal::WentBack
            | Refusal::Lost
    );
    !refusal.leaves_id_usable() && !is_in_doubt || *refusal == Refusal::OtherLog
}
