//! The audit of a home: what is recorded about rights, and when it is written (rule R8).

use crate::home::history::OtherHistory;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use thorp_model::limits::{AUDIT_NAMES_MAX, AUDIT_PENDING_MAX};
use thorp_model::records::OpenedMark;
use thorp_model::{
    AUDIT_RECORDS_MAX, AuditEvent, AuditRecord, HomeOpened, NameId, Position, Receipt, Right,
    SegmentId, Subject, TurnedAway,
};

/// Denials that wait to be written: the rest is for uses of power.
const DENIALS_PENDING_MAX: usize = AUDIT_PENDING_MAX / 4 * 3;
/// Sums of denials that wait beyond that: one for each source and right.
const SUMS_PENDING_MAX: usize = AUDIT_PENDING_MAX / 8;

/// Whom nothing proves: all such callers have one share.
const NOBODY: NameId = NameId(0);

/// What makes two events equal: they are one record, with a count.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(in crate::home) struct Occasion {
    pub(in crate::home) event: AuditEvent,
    pub(in crate::home) who: NameId,
    pub(in crate::home) segment: SegmentId,
    /// The site that says so: it reported the event, or brought the request. None: the name did it
    /// on an edge of its own.
    pub(in crate::home) site: Option<NameId>,
    /// The site below that one which says so, on the word of that one.
    pub(in crate::home) below: Option<NameId>,
}

impl Occasion {
    /// A name did something that concerns no segment.
    pub(in crate::home) fn of(who: NameId, event: AuditEvent) -> Self {
        Occasion {
            event,
            who,
            segment: SegmentId(0),
            site: None,
            below: None,
        }
    }

    /// A name wanted a right at the home itself.
    pub(in crate::home) fn denied(who: NameId, segment: SegmentId, right: Right) -> Self {
        Occasion {
            event: AuditEvent::Denied { right },
            who,
            segment,
            site: None,
            below: None,
        }
    }

    /// A caller was turned away at the door.
    fn turned_away(away: &TurnedAway) -> Self {
        let name = away.name.as_deref();
        let event = AuditEvent::TurnedAway {
            why: away.why,
            from: away.from,
        };
        Occasion::of(name.map_or(NOBODY, NameId::of), event)
    }

    /// Who pays for it: the site that says so, or who did it.
    fn source(&self) -> NameId {
        self.site.unwrap_or(self.who)
    }

    /// Whether somebody was refused something: anybody can cause that.
    fn is_denial(&self) -> bool {
        matches!(
            self.event,
            AuditEvent::Denied { .. } | AuditEvent::TurnedAway { .. }
        )
    }

    /// The same, by the edge of this node. A member signs who may carry its
    /// requests, and not each request (rule R2): only its own edge proves that it was the member.
    pub(in crate::home) fn brought_by(self, carrier: Option<NameId>) -> Self {
        let site = carrier.filter(|carrier| *carrier != self.who);
        Occasion { site, ..self }
    }

    /// The same, which the site has from a site below it.
    pub(in crate::home) fn said_by(self, below: Option<NameId>) -> Self {
        Occasion { below, ..self }
    }

    /// What a source has no space for is counted together, as something that concerns no segment.
    fn summed(&self) -> Self {
        let event = match self.event {
            AuditEvent::TurnedAway { why, .. } => AuditEvent::TurnedAway { why, from: None },
            event => event,
        };
        Occasion {
            event,
            who: self.source(),
            segment: SegmentId(0),
            site: self.site,
            below: None,
        }
    }
}

/// Events that are not written yet, and where the records of equal ones lie.
///
/// Invariant: `pending` has at most [`AUDIT_PENDING_MAX`] occasions. At most [`DENIALS_PENDING_MAX`] of them are denials, and
/// [`SUMS_PENDING_MAX`] are sums of more. No source takes more of them than it leaves free, but for its sums. `names` has at most [`AUDIT_NAMES_MAX`] names, and half of them from
/// sites. `written` names only records that the ring still has, and a name or a site has at most a quarter of the ring. So
/// no sender of requests makes it grow, and none alone keeps out what others did.
#[derive(Debug, Default)]
pub(in crate::home) struct Audit {
    pending: BTreeMap<Occasion, u64>,
    /// Of each occasion its record, and how often it was counted there.
    written: BTreeMap<Occasion, (u64, u64)>,
    names: BTreeMap<NameId, String>,
    /// The number of the last record.
    last: u64,
    /// The number of the last opening that was noted, until it is written.
    opened: Option<u64>,
}

impl Audit {
    /// An audit that goes on after the record with a number.
    pub(in crate::home) fn new(last: u64) -> Self {
        Audit {
            last,
            ..Audit::default()
        }
    }

    /// The number of the last record.
    pub(in crate::home) fn last(&self) -> u64 {
        self.last
    }

    /// The name that an id belongs to is known. The first come stay: a name costs a certificate.
    pub(in crate::home) fn learn(&mut self, name: &str) {
        if self.names.len() < AUDIT_NAMES_MAX {
            self.names.insert(NameId::of(name), String::from(name));
        }
    }

    fn learn_name(&mut self, id: NameId, name: &str) {
        if NameId::of(name) == id {
            self.learn(name);
        }
    }

    /// The same of a name that a site reports. A site can make names up, so they take only half of
    /// the space.
    pub(in crate::home) fn learn_reported(&mut self, name: &str) {
        if self.names.len() < AUDIT_NAMES_MAX / 2 {
            self.learn(name);
        }
    }

    /// Whom a rights list means by an id: the name, if the home knows one that a list can have.
    pub(in crate::home) fn subject(&self, who: NameId) -> Subject {
        let name = self.names.get(&who).and_then(|name| name.parse().ok());
        name.filter(|subject: &Subject| subject.id() == Some(who))
            .unwrap_or(Subject::Id(who))
    }

    /// The name that an id belongs to, if it is known.
    pub(in crate::home) fn name(&self, who: NameId) -> Option<String> {
        self.names.get(&who).cloned()
    }

    /// Something has happened, so many times.
    pub(in crate::home) fn note(&mut self, occasion: Occasion, times: u64) {
        if let Some(count) = self.pending.get_mut(&occasion) {
            *count = count.saturating_add(times);
        } else if self.has_space_for(&occasion) {
            self.pending.insert(occasion, times);
        } else if occasion.is_denial() {
            self.note_summed(occasion.summed(), times);
        }
    }

    /// That a source was denied more than it has space for stays known.
    fn note_summed(&mut self, occasion: Occasion, times: u64) {
        let denials = self.pending.keys().filter(|known| known.is_denial());
        let has_space = denials.count() < DENIALS_PENDING_MAX + SUMS_PENDING_MAX
            && self.pending.len() < AUDIT_PENDING_MAX;
        if let Some(count) = self.pending.get_mut(&occasion) {
            *count = count.saturating_add(times);
        } else if has_space {
            self.pending.insert(occasion, times);
        }
    }

    fn has_space_for(&self, occasion: &Occasion) -> bool {
        let pending = || self.pending.keys();
        let own = pending().filter(|known| known.source() == occasion.source());
        let denials = pending().filter(|known| known.is_denial());
        let is_too_many = occasion.is_denial() && denials.count() >= DENIALS_PENDING_MAX;
        own.count() + self.pending.len() < AUDIT_PENDING_MAX && !is_too_many
    }

    /// A caller was turned away at the door (rule R1).
    pub(in crate::home) fn note_turned_away(&mut self, away: &TurnedAway) {
        if let Some(name) = &away.name {
            self.learn(name);
        }
        self.note(Occasion::turned_away(away), 1);
    }

    /// A node has claimed what nothing proves (rule R9).
    pub(in crate::home) fn note_unproven(&mut self, by: &str) {
        self.note(Occasion::of(NameId::of(by), AuditEvent::ClaimUnproven), 1);
    }

    /// A node has brought a receipt of another history (rule R9).
    pub(in crate::home) fn note_met(&mut self, other: &OtherHistory) {
        let Receipt {
            incarnation, point, ..
        } = other.receipt;
        let event = AuditEvent::OtherHistory {
            incarnation,
            life: point.life.counter,
            position: point.position,
        };
        self.learn(&other.by);
        self.note(Occasion::of(NameId::of(&other.by), event), 1);
    }

    /// Operators have opened the home of this name since the last opening that is in the audit (rule R9). It goes on from
    /// a position.
    pub(in crate::home) fn note_openings(
        &mut self,
        openings: &[HomeOpened],
        (recorded, home, position): (OpenedMark, &str, Position),
    ) {
        let new = openings
            .iter()
            .filter(|opened| opened.number > recorded.last);
        for opened in new {
            let who = match &opened.by {
                Some(operator) => {
                    self.learn_name(operator.id, &operator.name);
                    operator.id
                }
                None => {
                    self.learn(home);
                    NameId::of(home)
                }
            };
            let event = AuditEvent::Opened {
                how: opened.how,
                incarnation: opened.incarnation,
                life: opened.life,
                position,
            };
            self.note(Occasion::of(who, event), 1);
            self.opened = Some(opened.number);
        }
    }

    /// The number of the last opening, if all are written now, and were not before.
    pub(in crate::home) fn take_opened(&mut self) -> Option<OpenedMark> {
        let is_opening = |occasion: &Occasion| matches!(occasion.event, AuditEvent::Opened { .. });
        if self.pending.keys().any(is_opening) {
            return None;
        }
        self.opened.take().map(|last| OpenedMark { last })
    }

    /// Whether something has to be written.
    pub(in crate::home) fn is_due(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Takes what has to be written and is paid for: by the name that the record is about, or by the site that reported
    /// it. Uses of power come first. The paths are those of now.
    pub(in crate::home) fn take(
        &mut self,
        (position, wall_ms): (Position, u64),
        path_of: impl Fn(SegmentId) -> Option<String>,
        mut is_paid: impl FnMut(NameId) -> bool,
    ) -> Vec<AuditRecord> {
        let mut by_power: Vec<&Occasion> = self.pending.keys().rev().collect();
        by_power.sort_by_key(|occasion| occasion.is_denial());
        let paid = by_power.into_iter().filter(|o| is_paid(o.source()));
        let paid: Vec<Occasion> = paid.cloned().collect();
        let paid = paid.into_iter().rev();
        let paid: Vec<(Occasion, u64)> = paid
            .filter_map(|occasion| self.pending.remove_entry(&occasion))
            .collect();
        let records = paid.into_iter().map(|(occasion, times)| {
            let occasion = self.bounded(occasion);
            let (number, count) = self.place(&occasion, times);
            AuditRecord {
                number,
                event: occasion.event,
                who: occasion.who,
                name: self.names.get(&occasion.who).cloned().unwrap_or_default(),
                site: self.site_of(&occasion),
                segment: occasion.segment,
                path: path_of(occasion.segment).unwrap_or_default(),
                position,
                wall_ms,
                count,
            }
        });
        let records: Vec<AuditRecord> = records.collect();
        let oldest = self.last.saturating_sub(u64::from(AUDIT_RECORDS_MAX) - 1);
        self.written.retain(|_, (number, _)| *number >= oldest);
        records
    }

    /// The sites that say so, as an operator reads them.
    fn site_of(&self, occasion: &Occasion) -> Option<String> {
        let site = self.subject(occasion.site?);
        Some(match occasion.below {
            Some(below) => format!("{}, below {site}", self.subject(below)),
            None => site.to_string(),
        })
    }

    /// What is written of an occasion. A site that reports more kinds than a quarter of the ring has
    /// is counted as a whole from there on: it must not write over what others did.
    fn bounded(&self, occasion: Occasion) -> Occasion {
        let Some(site) = occasion.site else {
            return occasion;
        };
        let of_site = |known: &&Occasion| known.site == Some(site);
        let reported = self.written.keys().filter(of_site).count();
        let is_known = self.written.contains_key(&occasion);
        if is_known || reported < AUDIT_RECORDS_MAX as usize / 4 {
            return occasion;
        }
        occasion.summed()
    }

    /// The number of a new record. A name that has an eighth of the ring, of what it was denied or of what it did, writes over
    /// its own oldest record of that kind. So what it does hides nothing of what it was denied.
    fn number_for(&mut self, occasion: &Occasion, oldest: u64) -> u64 {
        let kind = |of: &Occasion| (of.site, of.source(), of.is_denial());
        let is_its = |known: &&Occasion| known.site.is_none() && kind(known) == kind(occasion);
        let own = self.written.iter().filter(|(known, _)| is_its(known));
        let own = own.filter(|(_, (number, _))| *number > oldest);
        let first = own.clone().min_by_key(|(_, (number, _))| *number);
        if own.count() >= AUDIT_RECORDS_MAX as usize / 8
            && let Some((known, (number, _))) = first.map(|(known, at)| (known.clone(), *at))
        {
            self.written.remove(&known);
            return number;
        }
        self.last += 1;
        self.last
    }

    /// The record of an occasion, and how often it has happened by now.
    fn place(&mut self, occasion: &Occasion, times: u64) -> (u64, u64) {
        let oldest = self.last.saturating_sub(u64::from(AUDIT_RECORDS_MAX) - 1);
        let known = self.written.get(occasion).copied();
        let (number, count) = match known.filter(|(number, _)| *number > oldest) {
            Some((number, count)) => (number, count.saturating_add(times)),
            None => (self.number_for(occasion, oldest), times),
        };
        self.written.insert(occasion.clone(), (number, count));
        (number, count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::IpAddr;
    use thorp_model::{HowOpened, Incarnation, Operator, WhyTurnedAway};

    const SEGMENT: SegmentId = SegmentId(2);
    const AT: (Position, u64) = (Position(5), 1_000);

    fn denied(name: &str) -> Occasion {
        Occasion::denied(NameId::of(name), SEGMENT, Right::Read)
    }

    fn take(audit: &mut Audit) -> Vec<(u64, u64, String)> {
        let records = audit.take(AT, |_| Some(String::from("plans")), |_| true);
        let told = records.into_iter();
        told.map(|record| (record.number, record.count, record.name))
            .collect()
    }

    #[test]
    fn equal_events_are_counted_in_one_record() {
        let mut audit = Audit::new(7);
        audit.learn("ben");
        audit.note(denied("ben"), 1);
        audit.note(denied("ben"), 2);
        assert!(audit.is_due());
        assert_eq!(take(&mut audit), [(8, 3, String::from("ben"))]);
        assert!(!audit.is_due());
        audit.note(denied("ben"), 1);
        audit.note(denied("eve"), 1);
        let mut records = take(&mut audit);
        records.sort();
        assert_eq!(records[0], (8, 4, String::from("ben")));
        assert_eq!(records[1], (9, 1, String::new()), "nobody told its name");
    }

    #[test]
    fn what_a_site_brings_is_no_proof_of_who_it_was() {
        let mut audit = Audit::default();
        audit.learn("ben");
        audit.learn("office");
        audit.note(denied("ben").brought_by(Some(NameId::of("ben"))), 1);
        audit.note(denied("ben").brought_by(Some(NameId::of("office"))), 1);
        let records = audit.take(AT, |_| None, |_| true);
        let sites: Vec<_> = records
            .iter()
            .map(|record| record.site.as_deref())
            .collect();
        assert_eq!(sites, [None, Some("office")]);
    }

    #[test]
    fn one_site_leaves_space_for_what_others_did() {
        let mut audit = Audit::default();
        for number in 0..2 * AUDIT_PENDING_MAX {
            let made_up = denied(&format!("n{number}"));
            audit.note(made_up.brought_by(Some(NameId::of("evil"))), 1);
        }
        audit.note(denied("ben"), 1);
        audit.learn("evil");
        let taken = take(&mut audit);
        // All that it said beyond that is one record, about itself.
        let (of_site, sum) = (AUDIT_PENDING_MAX / 2, AUDIT_PENDING_MAX as u64 * 3 / 2);
        assert_eq!(taken.len(), of_site + 2);
        let sums = taken.iter().filter(|(_, _, name)| name == "evil");
        let sums: Vec<u64> = sums.map(|(_, times, _)| *times).collect();
        assert_eq!(sums, [sum]);
    }

    #[test]
    fn a_site_that_makes_names_up_writes_over_nothing_of_others() {
        let mut audit = Audit::default();
        audit.note(denied("ben"), 1);
        take(&mut audit);
        for number in 0..2 * AUDIT_RECORDS_MAX {
            let occasion = Occasion {
                site: Some(NameId::of("evil")),
                ..denied(&format!("n{number}"))
            };
            audit.note(occasion, 1);
            audit.learn_reported(&format!("n{number}"));
            take(&mut audit);
        }
        assert!(audit.last() < u64::from(AUDIT_RECORDS_MAX) / 2);
        audit.note(denied("ben"), 1);
        assert_eq!(take(&mut audit)[0].0, 1, "its record is still there");
        assert!(audit.names.len() <= AUDIT_NAMES_MAX / 2);
    }

    #[test]
    fn a_name_writes_over_its_own_records_and_not_over_those_of_others() {
        let mut audit = Audit::default();
        audit.note(denied("ben"), 1);
        take(&mut audit);
        for number in 0..2 * AUDIT_RECORDS_MAX {
            let changed = Occasion {
                event: AuditEvent::RightsChanged,
                segment: SegmentId(number),
                ..denied("mallory")
            };
            audit.note(changed, 1);
            let written = take(&mut audit);
            assert!(written[0].0 > 1, "it writes over what ben did");
        }
        assert_eq!(audit.last(), 1 + u64::from(AUDIT_RECORDS_MAX) / 8);
        audit.note(denied("ben"), 1);
        assert_eq!(take(&mut audit)[0].0, 1, "its record is still there");
    }

    #[test]
    fn what_nobody_pays_for_waits_and_uses_of_power_come_first() {
        let mut audit = Audit::default();
        let changed = Occasion {
            event: AuditEvent::RightsChanged,
            ..denied("anna")
        };
        audit.note(denied("anna"), 1);
        audit.note(denied("ben").brought_by(Some(NameId::of("office"))), 1);
        audit.note(changed, 1);
        let mut asked = Vec::new();
        let records = audit.take(
            AT,
            |_| None,
            |payer| {
                asked.push(payer);
                asked.len() == 1
            },
        );
        assert_eq!(records.len(), 1);
        assert_eq!(records[0].event, AuditEvent::RightsChanged);
        let payers = ["anna", "office", "anna"].map(NameId::of);
        asked[1..].sort();
        let mut expected = payers;
        expected[1..].sort();
        assert_eq!(asked, expected);
        assert!(audit.is_due(), "the others wait");
        assert_eq!(take(&mut audit).len(), 2);
    }

    #[test]
    fn each_opening_is_recorded_once_with_who_did_it() {
        let opened = |number, by| HomeOpened {
            number,
            how: HowOpened::Apart,
            by,
            incarnation: Incarnation::default(),
            life: 6,
        };
        let olga = Operator {
            id: NameId::of("olga"),
            name: String::from("olga"),
        };
        let openings = [opened(1, None), opened(2, Some(olga)), opened(3, None)];
        let mut audit = Audit::default();
        audit.note_openings(&openings, (OpenedMark { last: 1 }, "alps", Position(4)));
        assert_eq!(audit.take_opened(), None, "nothing is written yet");
        let records = audit.take(AT, |_| None, |_| true);
        let mut by: Vec<&str> = records.iter().map(|record| &*record.name).collect();
        by.sort_unstable();
        assert_eq!(by, ["alps", "olga"]);
        let event = AuditEvent::Opened {
            how: HowOpened::Apart,
            incarnation: Incarnation::default(),
            life: 6,
            position: Position(4),
        };
        assert!(records.iter().all(|record| record.event == event));
        assert_eq!(audit.take_opened(), Some(OpenedMark { last: 3 }));
        assert_eq!(audit.take_opened(), None);
    }

    #[test]
    fn callers_whom_nothing_proves_have_one_share() {
        let mut audit = Audit::default();
        audit.note(denied("ben"), 1);
        take(&mut audit);
        let away = |from: u32, name: Option<&str>| TurnedAway {
            why: WhyTurnedAway::OtherVillage,
            from: Some(IpAddr::from(from.to_be_bytes())),
            name: name.map(String::from),
        };
        for caller in 0..2 * AUDIT_RECORDS_MAX {
            audit.note_turned_away(&away(caller, None));
            if caller % 64 == 0 {
                take(&mut audit);
            }
        }
        assert!(audit.last() <= 2 + u64::from(AUDIT_RECORDS_MAX) / 8);
        for caller in 0..2 * AUDIT_PENDING_MAX {
            audit.note_turned_away(&away(caller as u32, None));
        }
        audit.note_turned_away(&away(9, Some("mallory")));
        let taken = take(&mut audit);
        assert!(taken.len() <= AUDIT_PENDING_MAX / 2 + 2);
        let mallory = taken.iter().filter(|(_, _, name)| name == "mallory");
        assert_eq!(mallory.count(), 1);
        audit.note(denied("ben"), 1);
        assert_eq!(take(&mut audit)[0].0, 1, "its record is still there");
    }

    #[test]
    fn a_list_gets_the_name_where_the_home_knows_it() {
        let mut audit = Audit::default();
        let (anna, strange) = (NameId::of("anna"), NameId::of("An na"));
        assert_eq!(audit.subject(anna), Subject::Id(anna));
        audit.learn("anna");
        audit.learn("An na");
        assert_eq!(audit.subject(anna), Subject::Name(String::from("anna")));
        assert_eq!(audit.subject(strange), Subject::Id(strange));
    }

    #[test]
    fn a_flood_of_names_takes_no_more_than_its_space() {
        let mut audit = Audit::default();
        for number in 0..2 * AUDIT_PENDING_MAX {
            audit.note(denied(&format!("n{number}")), 1);
            audit.learn(&format!("n{number}"));
        }
        let changed = Occasion {
            event: AuditEvent::RightsChanged,
            ..denied("anna")
        };
        audit.note(changed, 1);
        let most = DENIALS_PENDING_MAX + SUMS_PENDING_MAX + 1;
        assert_eq!(take(&mut audit).len(), most);
        assert!(audit.names.len() <= AUDIT_NAMES_MAX);
        // What the ring has written over is a new record when it happens again.
        for number in 0..2 * AUDIT_RECORDS_MAX {
            audit.note(denied(&format!("x{number}")), 1);
            take(&mut audit);
        }
        assert!(audit.written.len() <= AUDIT_RECORDS_MAX as usize);
        audit.note(denied("x0"), 1);
        assert_eq!(take(&mut audit)[0].0, audit.last());
    }
}
