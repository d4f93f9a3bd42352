//! More requests than any child may have (rule 15).

use super::attack::{Attack, Target, ToParent};
use super::eyes::{Eyes, nothing};
use thorp_model::limits::{CALLS_PER_CHILD_MAX, COMMITS_IN_FLIGHT_MAX, FETCHES_PER_CHILD_MAX};
use thorp_model::{
    Attempt, CallId, CallRequest, CommitId, PageId, Registration, SegmentId, Up, Xoshiro256,
    message,
};

/// Floods a parent with fetches, calls, commits or watches.
#[derive(Default)]
pub(crate) struct Floods {
    sent: u64,
}

impl Attack for Floods {
    fn name(&self) -> &'static str {
        "attack: floods"
    }

    fn strike(&mut self, at: Target, eyes: &Eyes, prng: &mut Xoshiro256, outbox: &mut ToParent) {
        let most = match prng.below(8) {
            0 => (FETCHES_PER_CHILD_MAX * 5 / 4) as u64,
            1..=3 => (CALLS_PER_CHILD_MAX * 5 / 4) as u64,
            _ => (COMMITS_IN_FLIGHT_MAX * 2) as u64,
        };
        let kind = prng.below(4);
        for _ in 0..most {
            self.sent += 1;
            outbox.up(at.edge, self.request(kind, at, eyes));
        }
    }
}

impl Floods {
    fn request(&self, kind: u64, at: Target, eyes: &Eyes) -> Up {
        let (home, epoch, number) = (at.home, at.epoch, self.sent);
        let call = CallId {
            member: eyes.member,
            number,
        };
        match kind {
            0 => Up::Fetch(message::Fetch {
                home,
                epoch,
                page: PageId::new(1 + number as u32 % 4, number as u32),
                attempt: Attempt(number),
                peers: number.is_multiple_of(2),
                ahead: number.is_multiple_of(3),
                updates: number as u8,
            }),
            1 => Up::Call(message::Call {
                call,
                home,
                request: CallRequest::List {
                    prefix: String::new(),
                    after: String::new(),
                },
            }),
            2 => Up::Watch(message::Watch {
                home,
                epoch,
                segment: SegmentId(number as u32),
                on: true,
            }),
            _ => Up::Commit(nothing(
                CommitId {
                    member: eyes.member,
                    sequence: number,
                },
                eyes.registration(home).unwrap_or(Registration(1)),
                home,
            )),
        }
    }
}
