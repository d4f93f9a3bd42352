//! What a hostile node knows: who is there, and what its parents have sent.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use thorp_model::limits::DELEGATION_MS;
use thorp_model::{
    CallResponse, CommitId, CommitRequest, DELEGATION_VERSION, Delegation, DelegationNo,
    DelegationText, Down, EdgeId, Epoch, HomeId, MemberId, NameId, Now, Part, Position, Receipt,
    Registration, SegmentId, Signer, Stamp, message,
};

/// Receipts that the hostile nodes of a village have. They show each other all of them.
pub(crate) type Loot = Rc<RefCell<Vec<Receipt>>>;

/// Receipts that they keep.
const LOOT_MAX: usize = 64;

/// What a hostile node knows.
pub(crate) struct Eyes {
    /// Itself.
    pub(crate) member: MemberId,
    /// Honest members, whom it would like to be.
    pub(crate) honest: Vec<(MemberId, String)>,
    /// The homes of the village.
    pub(crate) homes: Vec<HomeId>,
    /// Whether it greets as a site.
    pub(crate) is_site: bool,
    /// Signs what it states for itself. It has a certificate like every other node.
    pub(crate) signer: Arc<dyn Signer>,
    /// The receipts.
    pub(crate) loot: Loot,
    streams: BTreeMap<(EdgeId, HomeId), Epoch>,
    positions: BTreeMap<HomeId, Position>,
    segments: BTreeMap<HomeId, Vec<SegmentId>>,
    registrations: BTreeMap<HomeId, Registration>,
}

impl Eyes {
    /// A node that has heard nothing yet.
    pub(crate) fn new(
        member: MemberId,
        honest: Vec<(MemberId, String)>,
        homes: Vec<HomeId>,
        signer: Arc<dyn Signer>,
        loot: Loot,
    ) -> Self {
        Eyes {
            member,
            honest,
            homes,
            is_site: false,
            signer,
            loot,
            streams: BTreeMap::new(),
            positions: BTreeMap::new(),
            segments: BTreeMap::new(),
            registrations: BTreeMap::new(),
        }
    }

    /// Takes note of what a parent has sent.
    pub(crate) fn see(&mut self, edge: EdgeId, message: &Down) {
        match message {
            Down::Begin(begin) => {
                self.streams.insert((edge, begin.home), begin.epoch);
                self.stands(begin.home, begin.position);
                self.keep(begin.receipt);
            }
            Down::End(end) => {
                self.streams.remove(&(edge, end.home));
            }
            Down::Receipt(receipt) => self.keep(*receipt),
            Down::Step(step) => self.stands(step.home, step.position),
            Down::Heartbeat(beat) => self.stands(beat.home, beat.position),
            Down::CallResult(message::CallResult {
                home,
                result: Ok(response),
                ..
            }) => self.called(*home, response),
            _ => {}
        }
    }

    fn called(&mut self, home: HomeId, response: &CallResponse) {
        match response {
            CallResponse::Registered(registration) => {
                self.registrations.insert(home, *registration);
            }
            CallResponse::Segments { segments, .. } => {
                let ids = segments.iter().map(|info| info.id);
                self.segments.insert(home, ids.collect());
            }
            _ => {}
        }
    }

    fn stands(&mut self, home: HomeId, position: Position) {
        let known = self.positions.entry(home).or_default();
        *known = position.max(*known);
    }

    /// The first half of the receipts stays, so that some are old.
    fn keep(&self, receipt: Receipt) {
        let mut loot = self.loot.borrow_mut();
        if loot.len() >= LOOT_MAX {
            loot.remove(LOOT_MAX / 2);
        }
        loot.push(receipt);
    }

    /// An edge is gone.
    pub(crate) fn lose(&mut self, edge: EdgeId) {
        self.streams.retain(|(of, _), _| *of != edge);
    }

    /// The streams that it could attack.
    pub(crate) fn streams(&self) -> Vec<(EdgeId, HomeId, Epoch)> {
        let streams = self.streams.iter();
        streams
            .map(|((edge, home), epoch)| (*edge, *home, *epoch))
            .collect()
    }

    /// How far it has heard of a home.
    pub(crate) fn position(&self, home: HomeId) -> Position {
        self.positions.get(&home).copied().unwrap_or_default()
    }

    /// The segments of a home, as that listed them.
    pub(crate) fn segments(&self, home: HomeId) -> &[SegmentId] {
        self.segments.get(&home).map_or(&[], Vec::as_slice)
    }

    /// Its own registration at a home.
    pub(crate) fn registration(&self, home: HomeId) -> Option<Registration> {
        self.registrations.get(&home).copied()
    }

    /// A statement of its own for a home, that it may come by these sites.
    pub(crate) fn delegation(&self, now: Now, home: HomeId, sites: Vec<NameId>) -> Delegation {
        let text = DelegationText {
            version: DELEGATION_VERSION,
            home,
            member: self.member,
            number: DelegationNo(now.mono.0),
            ends: now.wall.plus(DELEGATION_MS),
            sites,
        };
        let proof = self.signer.sign(&text);
        Delegation { text, proof }
    }
}

/// A commit that neither reads nor writes.
pub(crate) fn nothing(id: CommitId, registration: Registration, home: HomeId) -> CommitRequest {
    let part = Part {
        home,
        evidence: Position(0),
        reads: Vec::new(),
        writes: Vec::new(),
        under: None,
    };
    CommitRequest {
        id,
        registration,
        part,
        with: Vec::new(),
        depends_on: Vec::new(),
        after: Stamp::default(),
    }
}
