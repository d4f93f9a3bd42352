//! An attacker's edge to the home.

use std::time::Duration;
use thorp_model::{CallId, CallRequest, Down, Epoch, HomeId, MemberId, Message, Up, message};
use thorp_testing::{Attacker, AttackerEdge};

const PATIENCE: Duration = Duration::from_secs(1);

/// An edge to the home, in the middle of its stream.
pub(crate) struct Stream {
    pub(crate) edge: AttackerEdge,
    pub(crate) member: MemberId,
    pub(crate) home: HomeId,
    pub(crate) epoch: Epoch,
    pub(crate) number: u64,
}

impl Stream {
    pub(crate) fn begin(attacker: &Attacker, address: &str) -> Option<Self> {
        let hello = attacker.greeting();
        let mut edge = attacker.call(address, &hello).ok()?;
        loop {
            if let Message::Down(Down::Begin(begin)) = edge.receive_within(PATIENCE)?? {
                return Some(Stream {
                    edge,
                    member: hello.node,
                    home: begin.home,
                    epoch: begin.epoch,
                    number: 0,
                });
            }
        }
    }

    /// Each call is one of another process.
    pub(crate) fn call(&self, request: CallRequest) -> Up {
        let member = match request {
            CallRequest::Register(_) => MemberId::new(self.member.name(), self.number),
            _ => self.member,
        };
        let call = CallId {
            member,
            number: self.number,
        };
        Up::Call(message::Call {
            call,
            home: self.home,
            request,
        })
    }
}
