//! What a session does beside transactions: segments, reservations, large values,
//! watches, and floods that no right program would make.

use crate::checks::watches::Watches;

use super::session::{Context, Phase, Session, Wish};
use std::collections::BTreeMap;
use std::sync::Arc;
use thorp_model::limits::{EXTENT_PAGES, OVERFLOW_CHUNK_BYTES};
use thorp_model::{
    Blob, CallError, CallRequest, CallResponse, Overflow, PageId, PageNo, Place, SegmentId,
};
use thorp_protocol::Request;

/// Names of segments that come and go, sometimes two at once.
const PASSING: [&str; 2] = ["passing", "fleeting"];

/// Something that a session asks of the home besides.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Errand {
    /// Open the plaza.
    Plaza,
    /// Open the bank.
    Bank,
    /// Open a segment that somebody may remove.
    Passing,
    /// Remove it.
    Remove(SegmentId),
    /// Reserve pages of a segment.
    Reserve(SegmentId),
    /// Learn the member's registration.
    Register,
    /// Stage the next piece of a large value.
    Stage,
    /// Forget the staged value.
    Unstage,
    /// Ask for far too much at once.
    Flood,
    /// Watch far more segments than there are.
    WatchAll,
    /// Watch a segment, or no longer.
    Watch(SegmentId, bool),
    /// Be sure that the watch of this number is told everything.
    Fence(SegmentId, u64),
}

/// A large value on its way.
pub struct Large {
    token: u64,
    value: Arc<[u8]>,
    /// Chunks that the home has.
    have: u32,
    /// Where it lies, once all of it is there.
    pub(super) overflow: Option<Overflow>,
}

impl Session {
    /// Now and then a session does something else than transactions.
    pub(super) fn plan_errands(&mut self, context: &Context<'_>) {
        if !self.todo.is_empty() || context.healed {
            return;
        }
        let habits = context.habits;
        if self.places.passing.is_some() {
            self.visits += 1;
            if self.visits > 3 {
                self.visits = 0;
                if self.prng.percent(60) {
                    self.todo.extend(self.places.passing.map(Errand::Remove));
                }
                self.leave_passing();
            }
        } else if self.prng.per_mille(habits.passing) {
            self.todo.push_back(Errand::Passing);
        }
        if self.large.is_none() && self.prng.percent(habits.large) {
            self.begin_large();
        }
        if self.prng.per_mille(habits.flood) {
            self.todo.push_back(Errand::Flood);
        }
        if self.prng.per_mille(habits.flood / 5) {
            self.todo.push_back(Errand::WatchAll);
        }
        self.plan_watches(context);
    }

    /// Now and then a program watches where it works. When something is lost it asks its member
    /// for an answer, after which nothing is.
    fn plan_watches(&mut self, context: &Context<'_>) {
        let Some(segment) = self.places.passing.or(self.places.plaza) else {
            return;
        };
        if self.prng.per_mille(20) {
            let on = self.prng.percent(70);
            self.todo.push_back(Errand::Watch(segment, on));
        }
        let wants = |watches: &Watches| watches.wants_fence(self.home, segment);
        if context.watches.is_some_and(wants) && self.prng.percent(50) {
            self.todo.push_back(Errand::Fence(segment, 0));
        }
    }

    pub(super) fn leave_passing(&mut self) {
        if let Some(segment) = self.places.passing.take() {
            self.known
                .retain(|object, _| object.page.segment != segment);
        }
    }

    fn begin_large(&mut self) {
        if self.registration.is_none() {
            self.todo.push_back(Errand::Register);
        }
        self.tokens += 1;
        let bytes = self.prng.range(100, 3 * OVERFLOW_CHUNK_BYTES as u64);
        self.large = Some(Large {
            token: self.tokens,
            value: self.maker.value_of(0, bytes as usize).into(),
            have: 0,
            overflow: None,
        });
        self.todo.push_back(Errand::Stage);
    }

    pub(super) fn set_out(&mut self, mut errand: Errand, context: &Context<'_>) -> Wish {
        let open = |path: &str| CallRequest::Open {
            path: path.into(),
            create: true,
        };
        let request = match &errand {
            Errand::Plaza => open("plaza"),
            Errand::Bank => open("bank"),
            Errand::Passing => {
                self.places.own = context.member.name();
                open(PASSING[self.prng.index(PASSING.len())])
            }
            Errand::Remove(segment) => CallRequest::Remove { segment: *segment },
            Errand::Reserve(segment) => CallRequest::Reserve {
                segment: *segment,
                pages: EXTENT_PAGES,
            },
            Errand::Register => CallRequest::Register(None),
            Errand::Stage => match self.next_piece() {
                Some(request) => request,
                None => return Wish::Rest(0),
            },
            Errand::Unstage => match (self.registration, self.large.take()) {
                (Some(registration), Some(large)) => CallRequest::Unstage {
                    registration,
                    token: large.token,
                },
                _ => return Wish::Rest(0),
            },
            Errand::Flood => return Wish::Flood(self.flood()),
            Errand::WatchAll => return Wish::Flood(self.watch_all()),
            Errand::Watch(segment, on) => {
                let (home, segment, on) = (self.home, *segment, *on);
                if on {
                    self.todo.push_front(Errand::Fence(segment, 0));
                }
                return Wish::Flood(vec![Request::Watch { home, segment, on }]);
            }
            // Any answer that comes down the stream does.
            Errand::Fence(segment, _) => {
                let watches = context.watches;
                let number = watches.and_then(|watches| watches.number(self.home, *segment));
                let Some(number) = number else {
                    return Wish::Rest(0);
                };
                errand = Errand::Fence(*segment, number);
                CallRequest::List {
                    prefix: "nothing".into(),
                    after: String::new(),
                }
            }
        };
        self.phase = Phase::Calling(errand);
        let patience = self.patience(context);
        let home = self.home;
        Wish::Request(Request::Call { home, request }, patience)
    }

    fn watch_all(&self) -> Vec<Request> {
        let (home, on) = (self.home, true);
        let segments = (1_000..1_300).map(SegmentId);
        segments
            .map(|segment| Request::Watch { home, segment, on })
            .collect()
    }

    fn flood(&mut self) -> Vec<Request> {
        let home = self.home;
        let list = CallRequest::List {
            prefix: String::new(),
            after: String::new(),
        };
        let segment = self.places.plaza.unwrap_or(SegmentId(1));
        let page = |page: u32| PageId {
            segment,
            page: PageNo(page),
        };
        if self.prng.percent(75) {
            let request = list;
            return (0..300)
                .map(|_| Request::Call {
                    home,
                    request: request.clone(),
                })
                .collect();
        }
        let places = (0..1100).map(|n| Place {
            home,
            page: page(1000 + n),
        });
        places.map(Request::Fetch).collect()
    }

    fn next_piece(&mut self) -> Option<CallRequest> {
        let (large, registration, segment) =
            (self.large.as_ref()?, self.registration?, self.places.plaza?);
        let chunks = large.value.chunks(OVERFLOW_CHUNK_BYTES);
        let count = 1 + self.prng.below(2) as usize;
        let chunks = chunks.skip(large.have as usize).take(count);
        Some(CallRequest::Stage {
            segment,
            registration,
            token: large.token,
            bytes: large.value.len() as u64,
            index: large.have,
            chunks: chunks.map(Blob::from).collect(),
        })
    }

    pub(super) fn called(
        &mut self,
        errand: Errand,
        result: Result<CallResponse, CallError>,
    ) -> Wish {
        match (errand, result) {
            (Errand::Plaza, Ok(CallResponse::Segment(info))) => {
                self.places.plaza = Some(info.id);
                self.todo.push_back(Errand::Reserve(info.id));
                self.todo.push_back(Errand::Bank);
            }
            (Errand::Bank, Ok(CallResponse::Segment(info))) => {
                self.places.bank = Some(info.id);
                self.todo.push_back(Errand::Reserve(info.id));
            }
            (Errand::Passing, Ok(CallResponse::Segment(info))) => {
                self.places.passing = Some(info.id);
                self.todo.push_back(Errand::Reserve(info.id));
            }
            (Errand::Reserve(segment), Ok(CallResponse::Extent { first, .. })) => {
                if Some(segment) == self.places.plaza {
                    self.places.reserved = Some(first);
                }
            }
            (Errand::Register, Ok(CallResponse::Registered(registration))) => {
                self.registration = Some(registration);
            }
            (Errand::Stage, Ok(CallResponse::Staged(overflow))) => self.staged(overflow),
            (Errand::Remove(_), Ok(CallResponse::Removed) | Err(CallError::NoRight { .. }))
            | (Errand::Unstage | Errand::Fence(..), Ok(_)) => {}
            // Somebody else has restricted it.
            (Errand::Passing, Err(CallError::NoSuchSegment)) => {}
            (
                Errand::Reserve(segment),
                Err(CallError::NoSuchSegment | CallError::NoRight { .. }),
            ) => {
                if Some(segment) == self.places.passing {
                    self.leave_passing();
                }
            }
            (Errand::Stage, Err(CallError::NotRegistered | CallError::Invalid)) => {
                self.large = None;
                self.registration = None;
            }
            (Errand::Stage, Err(CallError::TooMany)) => self.todo.push_front(Errand::Unstage),
            (errand, _) => {
                // The home has no room or too much to do: again, a little later.
                self.todo.push_front(errand);
                return Wish::Rest(self.prng.range(50_000, 300_000));
            }
        }
        Wish::Rest(self.prng.below(20_000))
    }

    fn staged(&mut self, overflow: Overflow) {
        let Some(large) = &mut self.large else {
            return;
        };
        let chunks = large.value.chunks(OVERFLOW_CHUNK_BYTES).count() as u32;
        // The answer does not tell how much of it was new: count what was sent.
        large.have = (large.have + 1).min(chunks);
        let key = (self.places.plaza.unwrap_or_default(), overflow.first);
        self.staged.insert(key, large.value.clone());
        if large.have < chunks {
            self.todo.push_front(Errand::Stage);
        } else {
            large.overflow = Some(overflow);
        }
    }

    /// The values that this session has staged, by segment and first page.
    pub fn staged_values(&self) -> &BTreeMap<(SegmentId, PageNo), Arc<[u8]>> {
        &self.staged
    }
}
