//! The log of a site: members without one give their updates to the member that keeps it (rule C6).

use crate::edge::downstream::cut_off;
use crate::edge::shares::Shares;
use crate::redirector::Outbox;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use thorp_model::limits::{COMMIT_BYTES_MAX, KEEP_BYTES_MAX, PROOF_BYTES_MAX};
use thorp_model::message::{Keep, Kept};
use thorp_model::{Author, Down, EdgeId, HomeId, InCustody, NameId, NodeKind, NotKept, Note, Peer};

/// Passes updates to the keeper of the site's log, and its answers back.
///
/// Invariant: `shares` counts the bytes of each update in `passed` for the name of its author.
#[derive(Debug, Default)]
pub(super) struct SiteLog {
    /// The name of the member that keeps it. None: the site has no log.
    keeper: Option<NameId>,
    passed: BTreeMap<Author, Passed>,
    shares: Shares<NameId>,
}

/// An update that the keeper has not answered.
#[derive(Debug)]
struct Passed {
    from: EdgeId,
    to: EdgeId,
    home: HomeId,
    bytes: u64,
}

impl SiteLog {
    /// The log of a site that this name keeps.
    pub(super) fn kept_by(keeper: Option<NameId>) -> Self {
        SiteLog {
            keeper,
            ..SiteLog::default()
        }
    }

    /// Updates on their way into it.
    pub(super) fn len(&self) -> usize {
        self.passed.len()
    }

    /// A member asks for custody of an update.
    pub(super) fn keep(
        &mut self,
        (from, child): (EdgeId, &Peer),
        keep: Box<Keep>,
        below: &BTreeMap<EdgeId, Peer>,
        outbox: &mut Outbox,
    ) {
        let (home, by, bytes) = (keep.home, keep.author.by, keep.bytes());
        if bytes > COMMIT_BYTES_MAX + PROOF_BYTES_MAX {
            return cut_off(from, "an update that cannot be right", outbox);
        }
        match self.way(child, &keep, below) {
            Ok(to) => {
                let name = child.node.name();
                let bytes = bytes as u64;
                let passed = Passed {
                    from,
                    to,
                    home,
                    bytes,
                };
                self.shares.take(Some(name), bytes);
                if let Some(old) = self.passed.insert(by, passed) {
                    self.shares.give_back(Some(name), old.bytes);
                }
                outbox.down(to, Down::Keep(keep));
            }
            Err(why) => answer(from, (home, by), Err(why), outbox),
        }
    }

    /// The edge of the keeper, if it may be asked.
    fn way(
        &self,
        child: &Peer,
        keep: &Keep,
        below: &BTreeMap<EdgeId, Peer>,
    ) -> Result<EdgeId, NotKept> {
        // A site below has a log of its own, or none.
        let keeper = self.keeper.filter(|_| child.kind == NodeKind::Member);
        let keeper = keeper.ok_or(NotKept::NoLog)?;
        let is_keeper = |peer: &Peer| peer.kind == NodeKind::Member && peer.node.name() == keeper;
        let edge = below.iter().find(|(_, peer)| is_keeper(peer));
        let (edge, _) = edge.ok_or(NotKept::NoLog)?;
        if keep.log != keeper {
            return Err(NotKept::OtherLog(keeper));
        }
        let limits = (KEEP_BYTES_MAX as u64, KEEP_BYTES_MAX as u64);
        let bytes = keep.bytes() as u64;
        match self.shares.allows(child.node.name(), bytes, limits) {
            true => Ok(*edge),
            false => Err(NotKept::LogFull),
        }
    }

    /// The keeper has answered. Whoever else says so is not believed.
    pub(super) fn kept(&mut self, from: EdgeId, kept: &Kept, outbox: &mut Outbox) {
        let is_asked = |passed: &Passed| passed.to == from && passed.home == kept.home;
        if !self.passed.get(&kept.by).is_some_and(is_asked) {
            return outbox.note(Note::UpdateNotShown);
        }
        if let Some(passed) = self.take(kept.by) {
            answer(passed.from, (kept.home, kept.by), kept.result, outbox);
        }
    }

    fn take(&mut self, by: Author) -> Option<Passed> {
        let passed = self.passed.remove(&by)?;
        self.shares.give_back(Some(by.member.name()), passed.bytes);
        Some(passed)
    }

    /// A child is gone. What the keeper had not answered may be kept.
    pub(super) fn child_went(&mut self, edge: EdgeId, outbox: &mut Outbox) {
        let passed = self.passed.iter();
        let lost = passed.filter(|(_, passed)| passed.from == edge || passed.to == edge);
        let lost: Vec<Author> = lost.map(|(by, _)| *by).collect();
        for by in lost {
            if let Some(passed) = self.take(by).filter(|passed| passed.to == edge) {
                let in_doubt = Err(NotKept::InDoubt);
                answer(passed.from, (passed.home, by), in_doubt, outbox);
            }
        }
    }
}

fn answer(
    to: EdgeId,
    (home, by): (HomeId, Author),
    result: Result<InCustody, NotKept>,
    outbox: &mut Outbox,
) {
    outbox.down(to, Down::Kept(Kept { home, by, result }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;
    use alloc::vec;
    use thorp_model::{Action, Authorship, MemberId, Message, PageWrites, Proof};

    const OFFICE: NameId = NameId(8);
    const KEEPER: EdgeId = EdgeId(1);
    const ANNA: EdgeId = EdgeId(2);

    fn peer(name: u64) -> Peer {
        Peer {
            node: MemberId::new(NameId(name), 1),
            kind: NodeKind::Member,
            name: String::from("somebody"),
            is_operator: false,
            is_carried: false,
        }
    }

    fn below() -> BTreeMap<EdgeId, Peer> {
        BTreeMap::from([(KEEPER, peer(OFFICE.0)), (ANNA, peer(3))])
    }

    fn keep(sequence: u64, log: NameId) -> Box<Keep> {
        let member = peer(3).node;
        let by = Author { member, sequence };
        let proof = Proof::none();
        Box::new(Keep {
            home: HomeId(1),
            log,
            author: Authorship { by, proof },
            writes: Vec::<PageWrites>::new(),
            patience_ms: 0,
        })
    }

    fn kept(keep: &Keep) -> Kept {
        Kept {
            home: keep.home,
            by: keep.author.by,
            result: Err(NotKept::LogFull),
        }
    }

    /// What a site's log sends for one thing that it does.
    fn sent(doing: impl FnOnce(&mut Outbox)) -> Vec<(EdgeId, Message)> {
        let mut outbox = Outbox::new();
        doing(&mut outbox);
        let actions = outbox.actions.into_iter();
        let sent = actions.filter_map(|action| match action {
            Action::Send(edge, message) => Some((edge, message)),
            _ => None,
        });
        sent.collect()
    }

    fn told(edge: EdgeId, keep: &Keep, why: NotKept) -> Vec<(EdgeId, Message)> {
        let (home, by, result) = (keep.home, keep.author.by, Err(why));
        vec![(edge, Message::Down(Down::Kept(Kept { home, by, result })))]
    }

    #[test]
    fn the_keeper_gets_what_is_signed_for_it_and_only_its_answer_counts() {
        let mut log = SiteLog::kept_by(Some(OFFICE));
        let (anna, below) = (peer(3), below());
        let other = keep(1, NameId(9));
        let said = sent(|outbox| log.keep((ANNA, &anna), other.clone(), &below, outbox));
        assert_eq!(said, told(ANNA, &other, NotKept::OtherLog(OFFICE)));
        let own = keep(2, OFFICE);
        let said = sent(|outbox| log.keep((ANNA, &anna), own.clone(), &below, outbox));
        let expected = Message::Down(Down::Keep(own.clone()));
        assert_eq!(said, [(KEEPER, expected)]);
        assert_eq!(sent(|outbox| log.kept(ANNA, &kept(&own), outbox)), []);
        let said = sent(|outbox| log.kept(KEEPER, &kept(&own), outbox));
        assert_eq!(said, told(ANNA, &own, NotKept::LogFull));
        assert_eq!(log.len(), 0);
    }

    #[test]
    fn what_the_keeper_takes_with_it_is_in_doubt() {
        let mut log = SiteLog::kept_by(Some(OFFICE));
        let own = keep(1, OFFICE);
        sent(|outbox| log.keep((ANNA, &peer(3)), own.clone(), &below(), outbox));
        let said = sent(|outbox| log.child_went(KEEPER, outbox));
        assert_eq!(said, told(ANNA, &own, NotKept::InDoubt));
        let mut alone = below();
        alone.remove(&KEEPER);
        let said = sent(|outbox| log.keep((ANNA, &peer(3)), own.clone(), &alone, outbox));
        assert_eq!(said, told(ANNA, &own, NotKept::NoLog));
    }
}
