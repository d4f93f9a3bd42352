//! Updates: what a program writes without waiting for the home, and what its neighbours have written so (rules C6 and C7).
//!
//! | part | what it keeps or does |
//! |---|---|
//! | `log` | batches for the disk |
//! | `conflicts` | what is noted of refused updates for the routine of the program |
//! | `asker` | whoever waits until the log has an update |
//! | `authored` | who has written updates of others that the log keeps |
//! | `giving` | updates that are given to the log of the site |
//! | `custody` | own updates until their home has them |
//! | `following` | updates of others, and from where on they are heard of |
//! | `updating` | the way of each, from the program to the disk, the home, and out of the view |
//! | `pauses` | homes and segments to which nothing is sent for a while |
//! | `sharing` | what is told to neighbours, and heard from them |
//! | `leasing` | leases that are asked for and given back |

mod asker;
mod authored;
mod conflicts;
mod custody;
mod following;
mod giving;
mod leasing;
mod log;
mod pauses;
mod sharing;
mod updating;

pub(super) use updating::Updating;

use asker::Asker;
use conflicts::Conflicts;
use custody::Custody;
use following::Following;
use giving::Giving;
use log::{Gathered, Log, Origin};
use pauses::Pauses;

use crate::member::interface::{InLog, UpdateInfo};
use crate::member::lease::Lease;
use crate::member::{MemberAction, MemberConfig, Outbox, Resolution, Response};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use thorp_model::limits::{FOLLOWED_SEGMENTS_MAX, UPDATES_IN_FLIGHT_MAX};
use thorp_model::planted::Bug;
use thorp_model::records::UpdateRecord;
use thorp_model::{
    CommitId, HomeId, LogHead, LogId, MemberId, Millis, RequestId, SegmentId, TentativeChange,
    Update, UpdateId, planted,
};

/// What a member has of updates in one segment.
#[derive(Debug, Default)]
struct InSegment {
    custody: Custody,
    following: Following,
    lease: Lease,
    /// The last number of this member's log that may have been answered under a lease which was recalled.
    last_leased: u64,
    /// How many visits of the program want updates of others.
    wanted: usize,
    /// The program gives updates to the log of the site, and waits for the answer.
    gives: bool,
    /// Requests to follow that are not answered.
    waiting: Vec<RequestId>,
    /// When the program last wrote here.
    written: Option<Millis>,
    /// Nothing was written here for so long that the member needs no lease any more.
    is_idle: bool,
    /// When the member last told its updates again.
    told: Option<Millis>,
    /// Whether it is to do so again.
    is_to_tell: bool,
}

impl InSegment {
    /// Whether whoever reads with a hard bound finds an update that is answered now: the home has to have it before the lease ends,
    /// unless the home is away (rule C10).
    fn is_covered(&self, now: Millis, is_reached: bool) -> bool {
        let keeps_pace = || self.lease.keeps_pace(self.custody.age(now));
        self.lease.is_held(now) && (!is_reached || keeps_pace())
    }

    /// Whether the member has to hear of what is saved here.
    fn is_followed(&self) -> bool {
        let has_own = self.gives || !self.custody.is_settled();
        self.wanted > 0 || has_own || self.following.bytes() > 0
    }

    /// Whether the home has executed all that was answered under a recalled lease.
    fn leased_is_saved(&self, log: LogId) -> bool {
        let mut open = self.custody.open().map(|own| own.update.id);
        open.all(|id| id.log == log && id.number > self.last_leased)
    }

    /// All logs of which something is shown or kept.
    fn logs(&self) -> Vec<LogId> {
        let mut logs = self.custody.logs();
        logs.extend(self.following.logs());
        logs.sort_unstable();
        logs.dedup();
        logs
    }
}

/// An update that is durable, and whose asker has no answer yet.
#[derive(Debug)]
struct Unanswered {
    asker: Asker,
    home: HomeId,
    id: UpdateId,
    until: Millis,
    /// The commit as which the home has it, and whose answer it keeps back (rule C2).
    withheld: Option<CommitId>,
    /// It is saved under that commit, and the home is to be asked whether its answer may go.
    is_to_ask: bool,
    /// The home has it, and readers with hard bounds have seen it.
    is_saved: bool,
}

/// What a member has of updates.
///
/// Invariant: each entry of `sent` is the commit of an update that is on its way to its home.
#[derive(Debug)]
pub(super) struct Updates {
    log: Log,
    of: BTreeMap<(HomeId, SegmentId), InSegment>,
    sent: BTreeMap<CommitId, (HomeId, UpdateId)>,
    unanswered: Vec<Unanswered>,
    giving: Giving,
    /// Whether the log keeps updates of neighbours, too.
    keeps_for_others: bool,
    pauses: Pauses,
    /// Segments for which the home has refused a lease to this member together with others: each is asked for alone.
    alone: BTreeSet<(HomeId, SegmentId)>,
    /// Requests for leases that are not answered, and when each was sent.
    leasing: BTreeMap<HomeId, (Vec<SegmentId>, Millis)>,
}

impl Updates {
    /// What is in a member's log when it starts.
    pub(super) fn new(config: &MemberConfig) -> Self {
        let id = match planted::is(Bug::LogIdKept) {
            true => LogId(MemberId::new(config.id.name(), 0)),
            false => LogId(config.id),
        };
        let conflicts = Conflicts::new(config.has_routine, &config.conflicts);
        let mut log = Log::new(id, config.log.is_some(), (config.left.clone(), conflicts));
        let mut of: BTreeMap<_, InSegment> = BTreeMap::new();
        for record in config.log.iter().flatten() {
            let UpdateRecord {
                update,
                rejected,
                author,
            } = record;
            log.recovered(update, author.as_ref());
            let here = of.entry((update.home, update.id.segment)).or_default();
            here.custody.insert(update.clone(), rejected.clone(), None);
        }
        Updates {
            log,
            of,
            sent: BTreeMap::new(),
            unanswered: Vec::new(),
            giving: Giving::new(config.id),
            keeps_for_others: config.verifier.is_some(),
            pauses: Pauses::default(),
            alone: BTreeSet::new(),
            leasing: BTreeMap::new(),
        }
    }

    /// The segments of a home of which the member has to hear what is saved.
    pub(super) fn followed(&self, home: HomeId) -> Vec<SegmentId> {
        let here = self.of.iter().filter(|((of, _), _)| *of == home);
        let followed = here.filter(|(_, here)| here.is_followed());
        followed.map(|((_, segment), _)| *segment).collect()
    }

    /// How far the logs of this member are in some segments of a home.
    pub(super) fn heads(&self, home: HomeId, segments: &[SegmentId]) -> Vec<LogHead> {
        let of = |segment: &SegmentId| self.of.get(&(home, *segment)).map(|here| (*segment, here));
        let here = segments.iter().filter_map(of);
        here.flat_map(|(segment, here)| here.custody.heads(segment))
            .collect()
    }

    /// The updates that are not saved, and those that were refused.
    pub(super) fn list(&self) -> Vec<UpdateInfo> {
        let all = self.of.values();
        let list = all.flat_map(|here| {
            let open = here.custody.open().map(|own| UpdateInfo {
                update: own.update.clone(),
                rejected: None,
            });
            let rejected = here.custody.rejected().map(|(update, why)| UpdateInfo {
                update: update.clone(),
                rejected: Some(why.clone()),
            });
            open.chain(rejected)
        });
        list.collect()
    }

    /// What is in the log, for people. None: there is no log.
    pub(super) fn in_log(&self, now: Millis) -> Option<InLog> {
        let mut found = InLog {
            bytes: self.log.bytes(),
            ..InLog::default()
        };
        for here in self.of.values() {
            found.rejected += here.custody.rejected().count();
            for own in here.custody.open() {
                found.tentative += 1;
                found.of_earlier_starts += usize::from(own.since.is_none());
                let age = own.since.map(|since| now.since(since));
                found.oldest_ms = found.oldest_ms.max(age);
            }
        }
        self.log.is_there().then_some(found)
    }

    /// Updates that are not saved.
    pub(super) fn open(&self) -> usize {
        self.of
            .values()
            .map(|here| here.custody.open().count())
            .sum()
    }

    /// Whether the member holds a lease.
    pub(super) fn holds_lease(&self, home: HomeId, segment: SegmentId, now: Millis) -> bool {
        let here = self.of.get(&(home, segment));
        here.is_some_and(|here| here.lease.is_held(now))
    }

    /// Whether a home keeps back the answer to the commit of an update (rule C2).
    pub(super) fn is_withheld(&self, commit: CommitId) -> bool {
        let mut unanswered = self.unanswered.iter();
        unanswered.any(|waits| waits.withheld == Some(commit))
    }

    /// Updates that were sent to a home, and not answered.
    pub(super) fn on_their_way(&self) -> usize {
        self.sent.len()
    }

    /// When something is due.
    pub(super) fn deadline(&self, is_reached: impl Fn(HomeId) -> bool) -> Option<Millis> {
        let leases = self.of.iter().filter_map(|((home, _), here)| {
            let is_asked = self.leasing.contains_key(home);
            let is_wanted = here.written.is_some() && !is_asked && is_reached(*home);
            here.lease.due().filter(|_| is_wanted)
        });
        let told = self.of.values().filter(|here| here.is_to_tell);
        let told = told.filter_map(|here| here.told.map(|at| at.plus(sharing::TELL_MS)));
        let answers = self.unanswered.iter().map(|waits| waits.until);
        leases
            .chain(told)
            .chain(answers)
            .chain(self.giving.deadline())
            .chain(self.pauses.next())
            .min()
    }

    /// The sizes of its tables, by name.
    pub(super) fn sizes(&self) -> [(&'static str, usize); 5] {
        let shown = self.of.values().map(|here| here.following.bytes()).sum();
        [
            ("updates", self.log.len()),
            ("update_bytes", self.log.bytes()),
            ("updates_sent", self.sent.len()),
            ("updates_given", self.giving.len()),
            ("tentative_bytes", shown),
        ]
    }

    /// Whether one more segment may be followed.
    fn has_space(&self) -> bool {
        let followed = self.of.values().filter(|here| here.is_followed());
        followed.count() < FOLLOWED_SEGMENTS_MAX
    }

    /// Nothing more is given to the log of the site in these segments: they are not followed for that.
    fn end_giving(&mut self) {
        let giving = &self.giving;
        for ((home, segment), here) in self.of.iter_mut().filter(|(_, here)| here.gives) {
            here.gives = giving.is_open(*home, *segment);
        }
    }

    /// Bytes of updates of others that are shown.
    fn shown_bytes(&self) -> usize {
        self.of.values().map(|here| here.following.bytes()).sum()
    }

    /// The updates of this start and of earlier ones that are on their way to a home.
    fn sent_to(&self, home: HomeId) -> usize {
        self.sent.values().filter(|(of, _)| *of == home).count()
    }

    /// The updates that go to a home next. The oldest go first: no segment waits for the updates of another that came later.
    fn next_to_send(&self, home: HomeId, now: Millis) -> Vec<UpdateId> {
        let free = UPDATES_IN_FLIGHT_MAX.saturating_sub(self.sent_to(home));
        let may_go = |segment| !self.pauses.has_segment(home, segment, now);
        let here = self.of.iter();
        let here = here.filter(|((of, segment), _)| *of == home && may_go(*segment));
        let waiting = here.flat_map(|(_, here)| here.custody.to_send().take(free));
        let mut waiting: Vec<(Option<Millis>, UpdateId)> = waiting.collect();
        waiting.sort_by_key(|(since, _)| *since);
        let first = waiting.into_iter().take(free);
        first.map(|(_, id)| id).collect()
    }

    /// What is on its way to a home is lost: it goes again.
    fn unsend_all(&mut self, home: HomeId) -> Vec<CommitId> {
        for ((of, _), here) in &mut self.of {
            if *of == home {
                here.custody.unsend(None);
            }
        }
        let lost = self.sent.extract_if(.., |_, (of, _)| *of == home);
        lost.map(|(commit, _)| commit).collect()
    }

    /// Does with a refused update what the routine has decided. True: a new update is on its way into the log in its place.
    fn resolve(
        &mut self,
        (home, id): (HomeId, UpdateId),
        resolution: Resolution,
        outbox: &mut Outbox,
    ) -> bool {
        let Some(here) = self.of.get_mut(&(home, id.segment)) else {
            return false;
        };
        if !here.custody.is_rejected(id) || !self.log.decide(home, id) {
            return false;
        }
        match resolution {
            Resolution::Drop => {
                if let Some(update) = here.custody.take_rejected(id) {
                    self.log.give_up(&update, outbox);
                }
            }
            Resolution::Again(writes) => {
                let instead = Update { home, id, writes };
                if self.log.may_go_again(&instead) {
                    let bytes = instead.bytes();
                    let gathered = Gathered {
                        origin: Origin::Routine { replaces: id },
                        author: None,
                        home,
                        segment: id.segment,
                        writes: instead.writes,
                    };
                    return self.log.gather(gathered, bytes);
                }
                self.log.list(home, id, outbox);
            }
            Resolution::List => self.log.list(home, id, outbox),
        }
        false
    }

    /// A segment cannot be followed: nothing of it is shown any more.
    fn hide(&mut self, of: (HomeId, SegmentId)) -> TentativeChange {
        let Some(here) = self.of.get_mut(&of) else {
            return TentativeChange::default();
        };
        let mut settled = here.following.clear();
        // Whoever waits for it is told that it is over; the reads fail by themselves.
        here.wanted = 0;
        let own: Vec<UpdateId> = here.custody.open().map(|own| own.update.id).collect();
        for id in own {
            here.custody.show(id, false);
            settled.push(id);
        }
        TentativeChange {
            shown: Vec::new(),
            settled,
        }
    }

    /// The first open updates of a segment.
    fn open_in(&self, home: HomeId, segment: SegmentId, most: usize) -> Vec<Update> {
        let here = self.of.get(&(home, segment));
        let open = here.into_iter().flat_map(|here| here.custody.open());
        open.take(most).map(|own| own.update.clone()).collect()
    }
}

fn respond(request_id: RequestId, response: Response, outbox: &mut Outbox) {
    outbox.act(MemberAction::Respond(request_id, response));
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;
    use alloc::vec;

    const HOME: HomeId = HomeId(1);
    const LOG: LogId = LogId(MemberId(7));

    fn id(segment: u32, number: u64) -> UpdateId {
        UpdateId {
            log: LOG,
            segment: SegmentId(segment),
            number,
        }
    }

    /// An update of a segment, written then.
    fn write(updates: &mut Updates, id: UpdateId, since: u64) {
        let update = Update {
            home: HOME,
            id,
            writes: vec![],
        };
        let here = updates.of.entry((HOME, id.segment)).or_default();
        here.custody.insert(update, None, Some(Millis(since)));
    }

    #[test]
    fn what_was_written_first_goes_first_whatever_its_segment() {
        let mut config = MemberConfig::new(LOG.0, String::from("m"));
        config.log = Some(vec![]);
        let mut updates = Updates::new(&config);
        for number in 1..=UPDATES_IN_FLIGHT_MAX as u64 {
            write(&mut updates, id(1, number), 10 + number);
        }
        write(&mut updates, id(2, 1), 5);
        write(&mut updates, id(2, 2), 12);
        let next = updates.next_to_send(HOME, Millis(0));
        assert_eq!(next.len(), UPDATES_IN_FLIGHT_MAX);
        assert_eq!(next[..4], [id(2, 1), id(1, 1), id(1, 2), id(2, 2)]);
        let commit = CommitId {
            member: MemberId(7),
            sequence: 1,
        };
        // A segment that the home does not take now leaves its place to others.
        updates.pauses.pause(HOME, Some(SegmentId(1)), Millis(9));
        let next = updates.next_to_send(HOME, Millis(0));
        assert_eq!(next, [id(2, 1), id(2, 2)]);
        updates.pauses.end(HOME);
        updates.sent.insert(commit, (HOME, id(2, 1)));
        assert_eq!(
            updates.next_to_send(HOME, Millis(0)).len(),
            UPDATES_IN_FLIGHT_MAX - 1
        );
    }
}
