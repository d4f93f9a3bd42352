//! Whoever waits until a log has an update: a program, or a neighbour (rule C6).

use crate::member::updates::respond;
use crate::member::{NotKept, Outbox, Response};
use thorp_model::message::Kept;
use thorp_model::{Author, EdgeId, HomeId, InCustody, RequestId, Up};

/// Who waits until a log has an update.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Asker {
    /// The program of this member.
    Program(RequestId),
    /// A neighbour, by the site at this edge.
    Neighbour(EdgeId, Author),
}

impl Asker {
    /// Says that the log has the update.
    pub(super) fn kept(self, home: HomeId, kept: InCustody, outbox: &mut Outbox) {
        match self {
            Asker::Program(request_id) => {
                let InCustody { id, is_leased } = kept;
                respond(request_id, Response::Kept { id, is_leased }, outbox);
            }
            Asker::Neighbour(edge, by) => {
                let result = Ok(kept);
                outbox.up(edge, Up::Kept(Kept { home, by, result }));
            }
        }
    }

    /// Says that the log has not taken it.
    pub(super) fn refused(self, home: HomeId, why: NotKept, outbox: &mut Outbox) {
        match self {
            Asker::Program(request_id) => respond(request_id, Response::NotKept(why), outbox),
            Asker::Neighbour(edge, by) => {
                let result = Err(why);
                outbox.up(edge, Up::Kept(Kept { home, by, result }));
            }
        }
    }
}
