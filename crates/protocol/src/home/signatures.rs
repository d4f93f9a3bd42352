//! Who has written an update, and who keeps it: a home checks both when it executes the update (rule C7).

use thorp_model::limits::PROOF_BYTES_MAX;
use thorp_model::planted::Bug;
use thorp_model::{Authorship, Millis, Principal, SignedText, Verifier, message, planted};

/// Checks signatures of updates, at a time of the wall clock.
#[derive(Debug)]
pub(in crate::home) struct Signatures<'a> {
    pub(in crate::home) verifier: &'a dyn Verifier,
    pub(in crate::home) wall: Millis,
}

impl Signatures<'_> {
    /// Whether the member whose log it is has given the update this number. A site could have made the update, or another number.
    pub(in crate::home) fn prove_custody(&self, save: &message::Save) -> bool {
        let proof = &save.custody;
        if proof.bytes() > PROOF_BYTES_MAX {
            return false;
        }
        let text = save.text();
        let certified = self.verifier.verify(&text, proof, self.wall);
        let is_its_log = certified.is_some_and(|signer| signer.who.name == text.by());
        is_its_log || planted::is(Bug::CustodyBelieved)
    }

    /// Whose rights count, if the log's own member has not written the update. `Some(None)`: nobody has proven to be its author.
    pub(in crate::home) fn author(&self, save: &message::Save) -> Option<Option<Principal>> {
        let author = save.author.as_ref()?;
        Some(self.principal(save, author))
    }

    fn principal(&self, save: &message::Save, author: &Authorship) -> Option<Principal> {
        let text = save.author_text(author);
        let name = text.by();
        if planted::is(Bug::AuthorBelieved) {
            let is_operator = false;
            return Some(Principal { name, is_operator });
        }
        if author.proof.bytes() > PROOF_BYTES_MAX {
            return None;
        }
        let certified = self.verifier.verify(&text, &author.proof, self.wall)?;
        Some(certified.who).filter(|who| who.name == name)
    }
}
