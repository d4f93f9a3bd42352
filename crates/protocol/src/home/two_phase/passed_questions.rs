//! Questions of operators that a home passes on to other homes (rule R9).

use crate::home::Outbox;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use thorp_model::limits::JOINTS_PASSED_MAX;
use thorp_model::{
    CallError, CallId, CallRequest, EdgeId, HomeId, JointQuestion, MemberId, Up, message,
};

/// The numbers of these calls: the inquiry counts its own from 1.
const FIRST_NUMBER: u64 = 1 << 63;

/// Where the answer to a question goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::home) struct Asked {
    /// The edge of the operator.
    pub(in crate::home) edge: EdgeId,
    /// The call of the operator.
    pub(in crate::home) call: CallId,
}

/// What was passed on and has no answer: at most [`JOINTS_PASSED_MAX`].
///
/// Each ends by the answer, by the end of the edge that it went by, or with the operator that asked.
#[derive(Debug, Default)]
pub(in crate::home) struct PassedQuestions {
    open: BTreeMap<CallId, (EdgeId, Asked)>,
    count: u64,
}

impl PassedQuestions {
    /// How many there are.
    pub(in crate::home) fn len(&self) -> usize {
        self.open.len()
    }

    /// Passes a question on by an edge.
    ///
    /// # Errors
    ///
    /// *Busy*, if too many have no answer.
    pub(in crate::home) fn pass(
        &mut self,
        node: MemberId,
        (home, edge): (HomeId, EdgeId),
        (asked, question): (Asked, JointQuestion),
        outbox: &mut Outbox,
    ) -> Result<(), CallError> {
        if self.open.len() >= JOINTS_PASSED_MAX {
            return Err(CallError::Busy);
        }
        let call = CallId {
            member: node,
            number: FIRST_NUMBER + self.count,
        };
        self.count += 1;
        self.open.insert(call, (edge, asked));
        let request = CallRequest::Joint { at: home, question };
        let call = message::Call {
            call,
            home,
            request,
        };
        outbox.up(edge, Up::Call(call));
        Ok(())
    }

    /// Who asked what another home answers, if it was asked by this edge.
    pub(in crate::home) fn answered(&mut self, edge: EdgeId, call: CallId) -> Option<Asked> {
        self.open.get(&call).filter(|(by, _)| *by == edge)?;
        self.open.remove(&call).map(|(_, asked)| asked)
    }

    /// An edge is gone. Who asked what was passed on by it.
    pub(in crate::home) fn went(&mut self, edge: EdgeId) -> Vec<Asked> {
        self.open.retain(|_, (_, asked)| asked.edge != edge);
        let lost = self.open.extract_if(.., |_, (by, _)| *by == edge);
        lost.map(|(_, (_, asked))| asked).collect()
    }
}
