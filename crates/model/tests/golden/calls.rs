//! One sample of each request of a member to a home, and of each answer.

use crate::values::{
    HOME, POSITION, REGISTRATION, SEGMENT, blob, commit_id, member, overflow, stamp,
};
use thorp_model::*;

const FENCE: Fence = Fence(1_700_000_000_000 << 20);

pub(crate) fn requests() -> Vec<CallRequest> {
    let path = String::from("shop/stock");
    vec![
        CallRequest::Register(None),
        CallRequest::Register(Some(Delegation {
            text: DelegationText {
                version: DELEGATION_VERSION,
                home: HOME,
                member: member(),
                number: DelegationNo(700),
                ends: Millis(1_700_000_000_000),
                sites: vec![NameId(1), NameId(u64::MAX)],
            },
            proof: Proof {
                scheme: 0x0403,
                certificate: blob(),
                signature: blob(),
            },
        })),
        CallRequest::Open {
            path: path.clone(),
            create: true,
        },
        CallRequest::List {
            prefix: path.clone(),
            after: String::from("shop/a"),
        },
        CallRequest::Remove { segment: SEGMENT },
        CallRequest::Reserve {
            segment: SEGMENT,
            pages: 4,
        },
        CallRequest::Stage {
            segment: SEGMENT,
            registration: REGISTRATION,
            token: 600,
            bytes: 20_000,
            index: 2,
            chunks: vec![blob()],
        },
        CallRequest::Unstage {
            registration: REGISTRATION,
            token: 600,
        },
        CallRequest::Watermark { at_least: stamp() },
        CallRequest::Outcome {
            commit: commit_id(),
            registration: REGISTRATION,
        },
        CallRequest::Doubts { after: None },
        CallRequest::Doubts {
            after: Some((stamp(), commit_id())),
        },
        CallRequest::Settle {
            commit: commit_id(),
            ruling: Ruling::Commit,
        },
        CallRequest::Settle {
            commit: commit_id(),
            ruling: Ruling::Abort,
        },
        CallRequest::History,
        CallRequest::Follow {
            segment: SEGMENT,
            logs: vec![LogId(member())],
        },
        CallRequest::Lease {
            segments: vec![SEGMENT],
            privilege: Privilege::Write,
        },
        CallRequest::Lease {
            segments: vec![SEGMENT],
            privilege: Privilege::Read { mods: 300 },
        },
        CallRequest::Pull {
            segments: vec![SEGMENT],
            patience_ms: 300,
        },
        CallRequest::Lock {
            segments: vec![SEGMENT],
            mode: LockMode::Write,
            patience_ms: 300,
        },
        CallRequest::Lock {
            segments: vec![SEGMENT],
            mode: LockMode::Read,
            patience_ms: 0,
        },
        CallRequest::KeepLock { fence: FENCE },
        CallRequest::Unlock { fence: FENCE },
        CallRequest::Confirm {
            seen: incarnation(),
            apart: true,
        },
        joint(JointQuestion::Homes),
        joint(JointQuestion::List {
            after: Some((stamp(), commit_id())),
            with: Some(HomeId(9)),
        }),
        joint(JointQuestion::Of(vec![(stamp(), commit_id())])),
    ]
}

pub(crate) fn results() -> Vec<Result<CallResponse, CallError>> {
    let info = SegmentInfo {
        id: SEGMENT,
        path: String::from("shop/stock"),
        extent: PageNo(300),
    };
    let committed = Outcome::Committed {
        position: POSITION,
        stamp: stamp(),
    };
    let responses = [
        CallResponse::Registered(REGISTRATION),
        CallResponse::Segment(info.clone()),
        CallResponse::Segments {
            segments: vec![info],
            more: true,
        },
        CallResponse::Removed,
        CallResponse::Extent {
            first: PageNo(300),
            pages: 16,
        },
        CallResponse::Staged(overflow()),
        CallResponse::Unstaged,
        CallResponse::Watermark(stamp()),
        CallResponse::Outcome(committed),
        CallResponse::Outcome(Outcome::Refused(Refusal::Full(Lack::OF_ALL))),
        CallResponse::Voted(stamp()),
        CallResponse::Doubts {
            doubts: vec![doubt()],
            more: true,
        },
        CallResponse::Settled(Outcome::Refused(Refusal::Elsewhere)),
        CallResponse::History(known_history()),
        CallResponse::Opened(incarnation()),
        CallResponse::Joint(JointAnswer::Homes {
            homes: vec![OtherHome {
                home: HOME,
                name: Some(String::from("dale")),
            }],
            unheard: vec![String::from("isle")],
        }),
        CallResponse::Joint(JointAnswer::List {
            joints: vec![Joint {
                stamp: stamp(),
                commit: commit_id(),
                name: Some(String::from("anna")),
                homes: vec![HOME, HomeId(9)],
            }],
            more: true,
            since: stamp(),
        }),
        CallResponse::Following {
            position: POSITION,
            logs: vec![LogState {
                log: LogId(member()),
                saved: 300,
                refused: vec![299],
            }],
        },
        CallResponse::Leased { lease_ms: 60_000 },
        CallResponse::Pulled,
        CallResponse::Locked {
            fence: FENCE,
            lease_ms: 60_000,
        },
        CallResponse::Unlocked,
        CallResponse::Joint(JointAnswer::NotReached),
        CallResponse::Joint(JointAnswer::Of(vec![
            JointPart::Kept,
            JointPart::InDoubt,
            JointPart::Forgotten,
            JointPart::Lost,
        ])),
    ];
    let errors = [
        CallError::NoSuchSegment,
        CallError::BadPath,
        CallError::TooMany,
        CallError::Busy,
        CallError::Full(Lack::OF_ALL),
        CallError::Invalid,
        CallError::NotRegistered,
        CallError::NoRight {
            right: Right::Admin,
        },
        CallError::NotDelegated(NotDelegated::OtherSite),
        CallError::NoSuchVote,
        CallError::Share(Share::Segments),
        CallError::NotClosed,
        CallError::Awaits {
            name: String::from("ben"),
            ends_ms: 300,
        },
        CallError::Privileged,
        CallError::Locked {
            name: String::from("anna"),
        },
        CallError::LockLost,
        CallError::InDoubt(CommitId {
            member: MemberId(5),
            sequence: 6,
        }),
    ];
    let responses = responses.into_iter().map(Ok);
    responses.chain(errors.into_iter().map(Err)).collect()
}

fn incarnation() -> Incarnation {
    Incarnation::new(300).expect("there are so many")
}

fn known_history() -> KnownHistory {
    let point = |counter, position| Point {
        life: LifeId { counter, random: 9 },
        mark: Mark(7),
        position: Position(position),
        clock: 1_700_000_000_000,
    };
    KnownHistory {
        incarnation: incarnation(),
        point: point(12, 400),
        closed: Some(Closed::OtherHistory(Met {
            by: String::from("anna"),
            incarnation: incarnation(),
            point: point(11, 500),
        })),
        shared: Some(LifeEnd {
            mark: Mark(7),
            position: Position(300),
            ceiling: 1_700_000_000_000,
        }),
    }
}

fn joint(question: JointQuestion) -> CallRequest {
    CallRequest::Joint {
        at: HomeId(9),
        question,
    }
}

fn doubt() -> Doubt {
    let known = DoubtHome {
        home: HOME,
        name: Some(String::from("dale")),
        is_reached: true,
        vote: Some(stamp()),
    };
    let unknown = DoubtHome {
        home: HomeId(9),
        name: None,
        is_reached: false,
        vote: None,
    };
    Doubt {
        commit: commit_id(),
        name: Some(String::from("anna")),
        stamp: stamp(),
        age_ms: 70_000,
        others: vec![known, unknown],
    }
}
