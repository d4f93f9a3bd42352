//! Whom a node lets in.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{CertifiedName, NodeRole};

/// The gate of a node: open to the whole village, or closed to everybody but operators (rule R9). Clones are one gate.
///
/// A caller passes it when the loop takes the caller in. Edges that stand are not its matter.
#[derive(Clone, Debug, Default)]
pub struct Gate(Arc<Mutex<Option<String>>>);

impl Gate {
    /// From now on only operators get in. Others hear the reason.
    pub fn close(&self, reason: impl Into<String>) {
        *self.reason() = Some(reason.into());
    }

    /// From now on the whole village gets in.
    pub fn open(&self) {
        *self.reason() = None;
    }

    /// Why a caller does not get in; none if it does.
    pub(crate) fn refusal(&self, caller: &CertifiedName) -> Option<String> {
        let reason = self.reason().clone();
        reason.filter(|_| caller.role() != NodeRole::Operator)
    }

    fn reason(&self) -> MutexGuard<'_, Option<String>> {
        // Nothing panics half-way through a change.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_operators_pass_a_closed_gate() {
        let name = |role| CertifiedName::new(role, "anna").unwrap();
        let roles = [
            NodeRole::Home,
            NodeRole::Site,
            NodeRole::Member,
            NodeRole::Operator,
        ];
        let gate = Gate::default();
        assert!(
            roles
                .iter()
                .all(|role| gate.refusal(&name(*role)).is_none())
        );
        gate.clone().close("it is a copy");
        for role in roles {
            let wanted = (role != NodeRole::Operator).then(|| "it is a copy".to_owned());
            assert_eq!(gate.refusal(&name(role)), wanted, "{role}");
        }
        gate.open();
        assert!(
            roles
                .iter()
                .all(|role| gate.refusal(&name(*role)).is_none())
        );
    }
}
