//! Messages at their limits, and just beyond. The simulator carries messages and no frames, so this is what stands for
//! huge frames.

use super::attack::{Attack, Target, ToParent};
use super::eyes::{Eyes, nothing};
use thorp_model::limits::{
    COMMIT_BYTES_MAX, DEPENDS_ON_MAX, OVERFLOW_CHUNK_BYTES, PARTICIPANTS_MAX, PROOF_BYTES_MAX,
    READ_PAGES_MAX, SEGMENT_PATH_BYTES_MAX, SLOTS_MAX, STAGE_PAGES_MAX,
};
use thorp_model::{
    Blob, CallId, CallRequest, CommitId, CommitRequest, Generation, HomeId, NewValue, PageId,
    PageWrites, Participant, Registration, SegmentId, Slot, SlotSet, Up, WriteOp, Xoshiro256,
    message,
};

/// Sends what is as large as may be, or larger.
#[derive(Default)]
pub(crate) struct Limits {
    sent: u64,
}

/// Its numbers lie above those of other attacks.
const FIRST: u64 = 1 << 21;

/// A segment that no home has. What it writes there is refused.
const NOWHERE: SegmentId = SegmentId(u32::MAX - 1);

impl Attack for Limits {
    fn name(&self) -> &'static str {
        "attack: messages at their limits"
    }

    fn strike(&mut self, at: Target, eyes: &Eyes, prng: &mut Xoshiro256, outbox: &mut ToParent) {
        self.sent += 1;
        let number = FIRST + self.sent;
        let more = prng.below(2) as usize;
        if prng.percent(50) {
            let id = CommitId {
                member: eyes.member,
                sequence: number,
            };
            let registration = eyes.registration(at.home).unwrap_or(Registration(1));
            let request = nothing(id, registration, at.home);
            return outbox.up(at.edge, Up::Commit(large_commit(request, more, prng)));
        }
        let member = eyes.member;
        outbox.up(
            at.edge,
            Up::Call(message::Call {
                call: CallId { member, number },
                home: at.home,
                request: large_call(at, eyes, more, prng),
            }),
        );
    }
}

fn large_commit(mut request: CommitRequest, more: usize, prng: &mut Xoshiro256) -> CommitRequest {
    let id = request.id;
    match prng.below(4) {
        0 => {
            let others = (1..=DEPENDS_ON_MAX + more).map(|sequence| CommitId {
                sequence: sequence as u64,
                ..id
            });
            request.depends_on = others.collect();
        }
        1 => {
            let registration = request.registration;
            let homes = 1..=(PARTICIPANTS_MAX + more) as u32;
            let with = homes.map(|home| Participant {
                home: HomeId(home),
                registration,
            });
            request.with = with.collect();
        }
        2 => {
            let pages = (READ_PAGES_MAX / 64 + more) as u32;
            let reads = (0..pages).map(|page| (PageId::new(NOWHERE.0, page), all_slots()));
            request.part.reads = reads.collect();
        }
        _ => request.part.writes = large_writes(more),
    }
    request
}

/// As one part travels: a set has no slots beyond those of a page.
fn all_slots() -> SlotSet {
    (0..SLOTS_MAX).map(Slot).collect()
}

fn large_writes(more: usize) -> Vec<PageWrites> {
    let value = Blob::from(vec![7; COMMIT_BYTES_MAX / 16 + more]);
    let op = WriteOp::Write {
        generation: Generation(1),
        value: NewValue::Inline(value),
    };
    let page = PageId::new(NOWHERE.0, 1);
    let slots = Vec::from([(Slot(0), op)]);
    Vec::from([PageWrites { page, slots }])
}

fn large_call(at: Target, eyes: &Eyes, more: usize, prng: &mut Xoshiro256) -> CallRequest {
    match prng.below(4) {
        0 => CallRequest::Open {
            path: "p".repeat(SEGMENT_PATH_BYTES_MAX + more),
            create: false,
        },
        1 => CallRequest::Stage {
            segment: NOWHERE,
            registration: eyes.registration(at.home).unwrap_or(Registration(1)),
            token: prng.below(4),
            bytes: u64::MAX,
            index: prng.bits() as u32,
            chunks: vec![Blob::from(vec![1; OVERFLOW_CHUNK_BYTES]); STAGE_PAGES_MAX + more],
        },
        2 => {
            let mut delegation = eyes.delegation(at.now, at.home, vec![eyes.member.name(); 9]);
            delegation.proof.signature = Blob::from(vec![1; PROOF_BYTES_MAX + more]);
            CallRequest::Register(Some(delegation))
        }
        _ => CallRequest::List {
            prefix: "\u{0}".repeat(SEGMENT_PATH_BYTES_MAX + more),
            after: "z".repeat(SEGMENT_PATH_BYTES_MAX + more),
        },
    }
}
