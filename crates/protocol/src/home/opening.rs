//! How operators see the history of a home, and how they open a closed one (rule R9).

use crate::home::history::Reopen;
use crate::home::log::Log;
use crate::home::operators::{self, Asker};
use crate::home::tables::Tables;
use crate::home::{HomeAction, Outbox};
use thorp_model::planted::Bug;
use thorp_model::{
    CallError, CallResponse, Closed, Incarnation, KnownHistory, Note, Operator, planted,
};

/// Serves an operator that looks after the history of the home.
#[derive(Debug)]
pub(super) struct Opening<'a> {
    pub(super) closed: Option<&'a Closed>,
    pub(super) log: &'a mut Log,
    pub(super) tables: &'a mut Tables,
}

impl Opening<'_> {
    /// What the home knows of its own history.
    ///
    /// # Errors
    ///
    /// *No right*.
    pub(super) fn history(&mut self, asker: Asker) -> Result<CallResponse, CallError> {
        operators::check(&mut self.tables.audit, asker)?;
        let point = self.log.receipt(self.tables.votes.lowest_stamp()).point;
        let shared = match self.closed {
            Some(Closed::OtherHistory(met)) => self.log.end_of(met.point.life),
            _ => None,
        };
        Ok(CallResponse::History(KnownHistory {
            incarnation: self.log.incarnation(),
            point,
            closed: self.closed.cloned(),
            shared,
        }))
    }

    /// Opens the home, if it is as the operator has seen it. This life ends then, and the next one answers: the operator
    /// calls again, and finds the home above the incarnation that it has seen.
    ///
    /// # Errors
    ///
    /// *No right*; *not closed*; *invalid*, if the operator has seen an incarnation that this home never had; *too many*,
    /// if there are no more incarnations.
    pub(super) fn confirm(
        &mut self,
        asker: Asker,
        (seen, apart): (Incarnation, bool),
        outbox: &mut Outbox,
    ) -> Result<CallResponse, CallError> {
        if !planted::is(Bug::AnybodyConfirms) {
            operators::check(&mut self.tables.audit, asker)?;
        }
        let own = self.log.incarnation();
        if own > seen && !planted::is(Bug::ConfirmedTwice) {
            return Ok(CallResponse::Opened(own));
        }
        let closed = self.closed.ok_or(CallError::NotClosed)?;
        if own < seen {
            return Err(CallError::Invalid);
        }
        own.after(Some(closed)).ok_or(CallError::TooMany)?;
        outbox.note(Note::Confirmed);
        let id = asker.0.name;
        let name = self.tables.audit.name(id).unwrap_or_default();
        let by = Operator { id, name };
        outbox.act(HomeAction::Reopen(Reopen { apart, by }));
        // The next life has the answer.
        Err(CallError::Busy)
    }
}
