//! A member without a log gives its updates to the log of its site (rule C6).

use crate::member::updates::respond;
use crate::member::{NotKept, Outbox, Response};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use thorp_model::message::{Keep, Kept};
use thorp_model::{
    AUTHORSHIP_VERSION, Author, AuthorText, Authorship, EdgeId, HomeId, MemberId, Millis, NameId,
    PageWrites, Proof, RequestId, SegmentId, Signer, Up, Update,
};

/// The site has so much longer to answer than the answer may wait for a lease.
const ANSWER_MS: u64 = 5_000;

/// Updates that the program gives away, and that are not answered.
///
/// Invariant: each is sent at most once for each log that the site has named. So no log gets one twice.
#[derive(Debug)]
pub(super) struct Giving {
    member: MemberId,
    last: u64,
    /// Whose log the site has, as it said last.
    log: NameId,
    open: BTreeMap<u64, Given>,
}

#[derive(Debug)]
struct Given {
    request_id: RequestId,
    home: HomeId,
    writes: Vec<PageWrites>,
    patience_ms: u32,
    /// Where it was sent. None: it waits until the member follows its segment.
    edge: Option<EdgeId>,
    until: Millis,
    /// It was sent for the log that the site has named.
    is_corrected: bool,
}

/// What the program wants to be kept.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) request_id: RequestId,
    pub(super) home: HomeId,
    pub(super) writes: Vec<PageWrites>,
    pub(super) patience_ms: u32,
}

impl Giving {
    /// A member that has given nothing away.
    pub(super) fn new(member: MemberId) -> Self {
        Giving {
            member,
            last: 0,
            log: NameId(0),
            open: BTreeMap::new(),
        }
    }

    /// Updates that are not answered.
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    /// When the next one counts as lost.
    pub(super) fn deadline(&self) -> Option<Millis> {
        self.open.values().map(|given| given.until).min()
    }

    /// Takes an update of the program. It is sent when [`Giving::send_to`] says where.
    pub(super) fn take(&mut self, wanted: Wanted, now: Millis) {
        self.last += 1;
        let patience = u64::from(wanted.patience_ms);
        let given = Given {
            request_id: wanted.request_id,
            home: wanted.home,
            writes: wanted.writes,
            patience_ms: wanted.patience_ms,
            edge: None,
            until: now.plus(patience.saturating_add(ANSWER_MS)),
            is_corrected: false,
        };
        self.open.insert(self.last, given);
    }

    /// Whether something of a segment is not answered.
    pub(super) fn is_open(&self, home: HomeId, segment: SegmentId) -> bool {
        let mut open = self.open.values();
        open.any(|given| given.home == home && given.segment() == Some(segment))
    }

    /// Sends what waits in a segment to the log of the site at this edge.
    pub(super) fn send_to(
        &mut self,
        (edge, home, segment): (EdgeId, HomeId, SegmentId),
        signer: &dyn Signer,
        outbox: &mut Outbox,
    ) {
        let waits = self.open.iter_mut().filter(|(_, given)| {
            given.edge.is_none() && given.home == home && given.segment() == Some(segment)
        });
        let mut sent = Vec::new();
        for (sequence, given) in waits {
            given.edge = Some(edge);
            sent.push(*sequence);
        }
        for sequence in sent {
            self.send(sequence, signer, outbox);
        }
    }

    fn send(&self, sequence: u64, signer: &dyn Signer, outbox: &mut Outbox) {
        let Some(given) = self.open.get(&sequence) else {
            return;
        };
        let (Some(edge), Some(segment)) = (given.edge, given.segment()) else {
            return;
        };
        let by = Author {
            member: self.member,
            sequence,
        };
        let text = AuthorText {
            version: AUTHORSHIP_VERSION,
            home: given.home,
            segment,
            log: self.log,
            by,
            writes: &given.writes,
        };
        // Nobody keeps it for a log that the site has not named.
        let is_asking = self.log == NameId(0);
        let proof = match is_asking {
            true => Proof::none(),
            false => signer.sign(&text),
        };
        let keep = Keep {
            home: given.home,
            log: self.log,
            author: Authorship { by, proof },
            writes: given.writes.clone(),
            patience_ms: given.patience_ms,
        };
        outbox.up(edge, Up::Keep(Box::new(keep)));
    }

    /// The site has answered. Returns the update if it is durable: it is to be shown before the program is answered.
    pub(super) fn kept(
        &mut self,
        edge: EdgeId,
        kept: &Kept,
        signer: &dyn Signer,
        outbox: &mut Outbox,
    ) -> Option<(RequestId, Update, bool)> {
        let sequence = kept.by.sequence;
        let given = self.open.get_mut(&sequence)?;
        let is_its =
            kept.by.member == self.member && (given.edge, given.home) == (Some(edge), kept.home);
        if !is_its {
            return None;
        }
        if let Err(NotKept::OtherLog(log)) = kept.result
            && !given.is_corrected
        {
            given.is_corrected = true;
            self.log = log;
            self.send(sequence, signer, outbox);
            return None;
        }
        let given = self.open.remove(&sequence)?;
        match kept.result {
            Ok(kept) => {
                let update = Update {
                    home: given.home,
                    id: kept.id,
                    writes: given.writes,
                };
                Some((given.request_id, update, kept.is_leased))
            }
            Err(why) => {
                respond(given.request_id, Response::NotKept(why), outbox);
                None
            }
        }
    }

    /// The site is gone: what it has not answered may be in its log.
    pub(super) fn parent_went(&mut self, edge: EdgeId, outbox: &mut Outbox) {
        self.give_up(|given| given.edge == Some(edge), outbox);
    }

    /// The site has not answered for long.
    pub(super) fn tick(&mut self, now: Millis, outbox: &mut Outbox) {
        self.give_up(|given| given.until <= now, outbox);
    }

    fn give_up(&mut self, is_lost: impl Fn(&Given) -> bool, outbox: &mut Outbox) {
        for (_, given) in self.open.extract_if(.., |_, given| is_lost(given)) {
            // What was never sent is in no log.
            let why = given.edge.map_or(NotKept::NoLog, |_| NotKept::InDoubt);
            respond(given.request_id, Response::NotKept(why), outbox);
        }
    }
}

impl Given {
    fn segment(&self) -> Option<SegmentId> {
        Some(self.writes.first()?.page.segment)
    }
}
