//! On what an answer to others rests: what a transaction has read at each home, and as of when that was so.

use super::Transaction;
use std::fmt::Write as _;
use thorp_model::{HomeId, ObjectId, Position, ReadKey};

/// The field of an HTTP answer with [`AnswerBasis::evidence_field`].
pub const EVIDENCE_FIELD: &str = "Thorp-Evidence";

/// The field of an HTTP answer with [`AnswerBasis::reads_field`].
pub const READS_FIELD: &str = "Thorp-Reads";

/// On what the answer of a transaction rests. `thorp web` keeps an answer that has it, until any of it changes.
///
/// An answer that shows anything else that changes must not have it: names and lists of segments, the time, what an early commit is to
/// write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AnswerBasis {
    homes: Vec<BasisAt>,
}

/// The part of one home.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct BasisAt {
    /// The name of the home. None: this member does not know it any more.
    pub home: Option<String>,
    /// A position at which all of it was so, and its home has confirmed that. None: there is no evidence.
    pub position: Option<Position>,
    /// What was read, also where there was no object: at most [`READ_KEYS_MAX`](thorp_model::limits::READ_KEYS_MAX) keys. With more
    /// objects these are their pages, with more pages their segments. None: there are more of those, too.
    pub keys: Option<Vec<ReadKey>>,
}

impl AnswerBasis {
    /// What a transaction has read. It has evidence if its homes validate it, it has written nothing, and it has read nothing of this member
    /// that a home has not delivered (rule W3, trap W16).
    pub(super) fn of(tx: &mut Transaction) -> Self {
        let has_evidence = tx.session.strict
            && tx.inner.writes().is_empty()
            && tx.inner.reads().built_on().is_empty();
        let homes: Vec<HomeId> = tx.inner.reads().homes().collect();
        let homes = homes.into_iter().map(|home| BasisAt {
            home: tx.shared.homes.name(home),
            position: tx
                .inner
                .evidence(&tx.shared.cache, home)
                .ok()
                .filter(|_| has_evidence),
            keys: ReadKey::fold(objects(tx, home)),
        });
        AnswerBasis {
            homes: homes.collect(),
        }
    }

    /// The part of each home of which anything was read.
    pub fn homes(&self) -> &[BasisAt] {
        &self.homes
    }

    /// The field `Thorp-Evidence`: as `alps=7, dale=9`. None: leave both fields out. Nothing was read, or what was read has no evidence
    /// at one of the homes.
    pub fn evidence_field(&self) -> Option<String> {
        let members = self.homes.iter().map(BasisAt::evidence);
        let members = members.collect::<Option<Vec<String>>>()?;
        (!members.is_empty()).then(|| members.join(", "))
    }

    /// The field `Thorp-Reads`: as `alps 3/0.4 3/7, dale 5`. A home without keys stands for all that it has.
    pub fn reads_field(&self) -> String {
        let members: Vec<String> = self.homes.iter().filter_map(BasisAt::reads).collect();
        members.join(", ")
    }

    /// Both fields with their names, or none.
    pub fn fields(&self) -> Option<[(&'static str, String); 2]> {
        let evidence = self.evidence_field()?;
        Some([
            (EVIDENCE_FIELD, evidence),
            (READS_FIELD, self.reads_field()),
        ])
    }
}

impl BasisAt {
    fn evidence(&self) -> Option<String> {
        let (home, position) = (self.home.as_ref()?, self.position?);
        Some(format!("{home}={}", position.0))
    }

    fn reads(&self) -> Option<String> {
        let mut member = self.home.clone()?;
        for key in self.keys.iter().flatten() {
            // Writing to memory does not fail.
            let _ = write!(member, " {key}");
        }
        Some(member)
    }
}

fn objects(tx: &Transaction, home: HomeId) -> impl Iterator<Item = ObjectId> {
    let pages = tx.inner.reads().reads(home);
    pages.flat_map(|(page, slots)| {
        let slots: Vec<_> = slots.iter().collect();
        let slots = slots.into_iter();
        slots.map(move |slot| ObjectId { page, slot })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use thorp_model::{PageId, SegmentId, Slot};

    fn at(home: &str, position: Option<u64>, keys: Option<Vec<ReadKey>>) -> BasisAt {
        BasisAt {
            home: Some(home.to_owned()),
            position: position.map(Position),
            keys,
        }
    }

    #[test]
    fn the_fields_name_each_home() {
        let page = PageId::new(3, 0);
        let slot = Slot(4);
        let keys = vec![
            ReadKey::Object(ObjectId { page, slot }),
            ReadKey::Page(page),
        ];
        let homes = vec![
            at("alps", Some(7), Some(keys)),
            at("dale", Some(9), Some(vec![ReadKey::Segment(SegmentId(5))])),
            at("vale", Some(1), None),
        ];
        let mut basis = AnswerBasis { homes };
        let fields = basis.fields().expect("evidence");
        assert_eq!(fields[0].1, "alps=7, dale=9, vale=1");
        assert_eq!(fields[1].1, "alps 3/0.4 3/0, dale 5, vale");
        basis.homes[1].position = None;
        assert_eq!(basis.fields(), None, "one home without evidence is enough");
        basis.homes.clear();
        assert_eq!(basis.fields(), None);
    }
}
