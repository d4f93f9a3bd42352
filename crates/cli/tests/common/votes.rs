//! Votes whose outcome nobody tells.

use thorp_client::Reference;
use thorp_model::{
    Blob, CommitId, CommitRequest, Down, HomeId, NewValue, PageWrites, Part, Participant,
    Registration, Stamp, Up, WriteOp,
};
use thorp_testing::Intruder;

/// What they write.
pub(crate) const NEW: &[u8] = b"new";

/// Has a home vote for a part that writes an object, and never says how that ended.
pub(crate) fn leave_a_vote(
    intruder: &mut Intruder,
    other: HomeId,
    (sequence, of): (u64, &Reference),
) -> CommitId {
    let registration = intruder.register();
    let id = CommitId {
        member: intruder.member,
        sequence,
    };
    let write = WriteOp::Write {
        generation: of.generation,
        value: NewValue::Inline(Blob::from(NEW)),
    };
    let mut with = [(intruder.home, registration), (other, Registration(1))]
        .map(|(home, registration)| Participant { home, registration });
    with.sort_by_key(|participant| participant.home);
    intruder.send(Up::Commit(CommitRequest {
        id,
        registration,
        part: Part {
            home: intruder.home,
            evidence: intruder.position,
            reads: Vec::new(),
            writes: vec![PageWrites {
                page: of.object.page,
                slots: vec![(of.object.slot, write)],
            }],
            under: None,
        },
        with: Vec::from(with),
        depends_on: Vec::new(),
        after: Stamp::default(),
    }));
    match intruder.hear() {
        Down::Voted(voted) => assert_eq!(voted.commit, id),
        other => panic!("{other:?}"),
    }
    id
}
