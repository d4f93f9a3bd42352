//! Whether a transaction ended in two ways, because an operator settled one of them (rule R7).

use thorp_model::{Decision, Outcome, Refusal};

/// What an outcome at another home says about the transaction. None: that home has forgotten it.
pub(super) fn decision_of(outcome: &Outcome) -> Option<Decision> {
    match outcome {
        Outcome::Committed { stamp, .. } => Some(Decision::Commit(*stamp)),
        Outcome::Refused(Refusal::Forgotten) => None,
        Outcome::Refused(_) => Some(Decision::Abort),
    }
}

/// Whether a vote ended here in another way than somebody else says.
pub(super) fn is_otherwise(ended: &Outcome, said: Decision) -> bool {
    decision_of(ended).is_some_and(|ended| ended != said)
}

#[cfg(test)]
mod tests {
    use super::*;
    use thorp_model::{HomeId, Position, Stamp};

    #[test]
    fn an_outcome_and_its_stamp_have_to_be_the_same() {
        let stamp = |clock| Stamp {
            clock,
            home: HomeId(1),
        };
        let committed = Outcome::Committed {
            position: Position(7),
            stamp: stamp(5),
        };
        let refused = Outcome::Refused(Refusal::Elsewhere);
        assert!(!is_otherwise(&committed, Decision::Commit(stamp(5))));
        assert!(is_otherwise(&committed, Decision::Commit(stamp(6))));
        assert!(is_otherwise(&committed, Decision::Abort));
        assert!(is_otherwise(&refused, Decision::Commit(stamp(5))));
        assert!(!is_otherwise(&refused, Decision::Abort));
        let forgotten = Outcome::Refused(Refusal::Forgotten);
        assert_eq!(decision_of(&forgotten), None, "it says nothing");
    }
}
