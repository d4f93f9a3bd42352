//! A member signs that the sites on its way to a home may carry its requests (rule R2).

use alloc::sync::Arc;
use alloc::vec::Vec;
use thorp_model::limits::DELEGATION_MS;
use thorp_model::{
    Certified, DELEGATION_VERSION, Delegation, DelegationNo, DelegationText, HomeId, MemberId,
    NameId, Now, Proof, SignedText, Signer, Verifier,
};

/// Signs delegations, each under the next number.
///
/// Invariant: a number is used once in the life of the member, whatever home it is for.
#[derive(Debug)]
pub(super) struct Signing {
    member: MemberId,
    signer: Arc<dyn Signer>,
    /// Checks what neighbours have signed, if this member keeps updates for them.
    verifier: Option<Arc<dyn Verifier>>,
    last: DelegationNo,
    /// The time of the event that is handled.
    pub(super) now: Now,
}

impl Signing {
    /// A member that has signed nothing.
    pub(super) fn new(
        member: MemberId,
        signer: Arc<dyn Signer>,
        verifier: Option<Arc<dyn Verifier>>,
    ) -> Self {
        Signing {
            member,
            signer,
            verifier,
            last: DelegationNo(0),
            now: Now::default(),
        }
    }

    /// Signs in the name of the member.
    pub(super) fn signer(&self) -> &dyn Signer {
        &*self.signer
    }

    /// Who has signed a text, as of now. None: nobody whom this member believes.
    pub(super) fn verify(&self, text: &dyn SignedText, proof: &Proof) -> Option<Certified> {
        let verifier = self.verifier.as_ref()?;
        verifier.verify(text, proof, self.now.wall)
    }

    /// Signs that these sites may carry what goes to a home.
    pub(super) fn sign(&mut self, home: HomeId, sites: Vec<NameId>) -> Delegation {
        self.last = self.last.next();
        let text = DelegationText {
            version: DELEGATION_VERSION,
            home,
            member: self.member,
            number: self.last,
            ends: self.now.wall.plus(DELEGATION_MS),
            sites,
        };
        let proof = self.signer.sign(&text);
        Delegation { text, proof }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thorp_model::{Millis, NoSigner};

    #[test]
    fn each_delegation_has_a_higher_number_and_ends_later() {
        let mut signing = Signing::new(MemberId(7), Arc::new(NoSigner), None);
        let mut sign = |wall| {
            signing.now.wall = Millis(wall);
            signing.sign(HomeId(1), Vec::from([NameId(8)])).text
        };
        let (first, second) = (sign(1_000), sign(2_000));
        assert_eq!([first.number, second.number], [1, 2].map(DelegationNo));
        assert_eq!(first.ends, Millis(1_000 + DELEGATION_MS));
        assert_eq!(second.ends, Millis(2_000 + DELEGATION_MS));
    }
}
