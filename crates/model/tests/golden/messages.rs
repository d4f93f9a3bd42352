//! One sample of each message and of each thing that a message can carry.

use crate::Sample;
use thorp_model::codec::{decode, encode};
use thorp_model::{message, *};

/// Samples of all messages; each is decoded again, too.
pub(crate) fn all() -> Vec<Sample> {
    let ups = ups().into_iter().map(Message::Up);
    let downs = downs().into_iter().map(Message::Down);
    let messages = ups.chain(downs).chain([Message::Alive]);
    let samples: Vec<Sample> = messages.map(|message| encoded(&message)).collect();
    assert_eq!(
        variants(&samples, "up"),
        11,
        "a kind of message has no sample"
    );
    assert_eq!(
        variants(&samples, "down"),
        15,
        "a kind of message has no sample"
    );
    samples
}

fn encoded(message: &Message) -> Sample {
    let bytes = encode(message).expect("samples encode");
    assert_eq!(decode(&bytes).as_ref(), Ok(message));
    let name = match message {
        Message::Up(up) => format!("up {}", up_name(up)),
        Message::Down(down) => format!("down {}", down_name(down)),
        Message::Alive => String::from("alive"),
    };
    (name, bytes)
}

/// How many kinds of one direction have samples.
fn variants(samples: &[Sample], direction: &str) -> usize {
    let names = samples
        .iter()
        .filter(|(name, _)| name.starts_with(direction));
    let tags = names.map(|(_, bytes)| bytes[1]);
    tags.collect::<std::collections::BTreeSet<u8>>().len()
}

fn up_name(up: &Up) -> &'static str {
    match up {
        Up::Fetch(_) => "fetch",
        Up::Evict(_) => "evict",
        Up::Ack(_) => "ack",
        Up::Peer(_) => "peer",
        Up::Commit(_) => "commit",
        Up::Decide(_) => "decide",
        Up::Settled(_) => "settled",
        Up::Call(_) => "call",
        Up::Watch(_) => "watch",
        Up::Report(_) => "report",
        Up::Denied(_) => "denied",
    }
}

fn down_name(down: &Down) -> &'static str {
    match down {
        Down::Begin(_) => "begin",
        Down::End(_) => "end",
        Down::Step(_) => "step",
        Down::Image(_) => "image",
        Down::Redirect(_) => "redirect",
        Down::Peer(_) => "peer",
        Down::Voted(_) => "voted",
        Down::Refused(_) => "refused",
        Down::Committed(_) => "told",
        Down::Heartbeat(_) => "heartbeat",
        Down::CallResult(_) => "answer",
        Down::Unwatched(_) => "unwatched",
        Down::Hint(_) => "hint",
        Down::Joined(_) => "joined",
        Down::Resynchronised(_) => "resynchronised",
    }
}

// Numbers of one, two and more bytes, so that no two fields look alike.
const HOME: HomeId = HomeId(3);
const EPOCH: Epoch = Epoch(1_000_001);
const ATTEMPT: Attempt = Attempt(200);
const ENTRY: EntryNo = EntryNo(70_000);
const POSITION: Position = Position(5_000_000_000);
const REGISTRATION: Registration = Registration(130);
const SEGMENT: SegmentId = SegmentId(17);

pub(crate) fn page() -> PageId {
    PageId::new(17, 300)
}

pub(crate) fn member() -> MemberId {
    MemberId(0x0123_4567_89ab_cdef_0011_2233_4455_6677)
}

pub(crate) fn stamp() -> Stamp {
    Stamp {
        clock: 1_700_000_000_000 << 16 | 5,
        home: HOME,
    }
}

pub(crate) fn commit_id() -> CommitId {
    CommitId {
        member: member(),
        sequence: 77,
    }
}

pub(crate) fn overflow() -> Overflow {
    Overflow {
        bytes: 20_000,
        first: PageNo(PageNo::OVERFLOW_FIRST.0 + 9),
        pages: 3,
    }
}

fn object() -> ObjectId {
    ObjectId {
        page: page(),
        slot: Slot(200),
    }
}

fn blob() -> Blob {
    Blob::from(&b"value"[..])
}

fn slots() -> SlotSet {
    [Slot(0), Slot(3), Slot(70), Slot(239)]
        .into_iter()
        .collect()
}

/// An image with each kind of content.
pub(crate) fn image() -> Image {
    let mut edit = ImageEdit::default();
    let drafts = [
        Draft::Value(b"hello".to_vec()),
        Draft::Overflow(overflow()),
        Draft::Hole,
        Draft::Free,
    ];
    for (slot, draft) in (1..).zip(drafts) {
        edit.set(Slot(slot), Generation(u32::from(slot) + 1), draft);
    }
    edit.finish(POSITION, stamp())
}

fn ups() -> Vec<Up> {
    let mut ups = vec![
        Up::Fetch(message::Fetch {
            home: HOME,
            epoch: EPOCH,
            page: page(),
            attempt: ATTEMPT,
            peers: true,
            ahead: false,
            updates: 7,
        }),
        Up::Evict(message::Evict {
            home: HOME,
            epoch: EPOCH,
            page: page(),
            entry: ENTRY,
        }),
        Up::Ack(message::Ack {
            home: HOME,
            epoch: EPOCH,
            position: POSITION,
        }),
        Up::Peer(peer_image(Some(image()))),
        Up::Peer(peer_image(None)),
        Up::Commit(commit()),
        Up::Commit(alone()),
        Up::Settled(message::Settled {
            home: HOME,
            commit: commit_id(),
            registration: REGISTRATION,
        }),
        Up::Watch(message::Watch {
            home: HOME,
            epoch: EPOCH,
            segment: SEGMENT,
            on: true,
        }),
        Up::Denied(message::Denied {
            home: HOME,
            name: "ben".into(),
            segment: SEGMENT,
            count: 300,
        }),
        Up::Report(message::Report {
            home: HOME,
            epoch: EPOCH,
            report: ReportNo(9),
            pages: vec![Reported {
                page: page(),
                as_of: POSITION,
                complete: true,
            }],
        }),
    ];
    ups.extend(decisions().map(|decision| {
        Up::Decide(message::Decide {
            home: HOME,
            commit: commit_id(),
            registration: REGISTRATION,
            decision,
        })
    }));
    ups.extend(requests().into_iter().map(|request| {
        Up::Call(message::Call {
            call: call(),
            home: HOME,
            request,
        })
    }));
    ups
}

pub(crate) fn decisions() -> [Decision; 2] {
    [Decision::Commit(stamp()), Decision::Abort]
}

fn peer_image(image: Option<Image>) -> PeerImage {
    PeerImage {
        home: HOME,
        page: page(),
        requester: member(),
        epoch: EPOCH,
        attempt: ATTEMPT,
        entry: ENTRY,
        position: POSITION,
        image,
    }
}

/// A part of a transaction over several homes, with each kind of write.
pub(crate) fn commit() -> CommitRequest {
    let generation = Generation(130);
    let ops = [
        WriteOp::Create {
            generation,
            value: NewValue::Inline(blob()),
        },
        WriteOp::Write {
            generation,
            value: NewValue::Staged(overflow()),
        },
        WriteOp::Patch {
            generation,
            offset: 600,
            bytes: blob(),
        },
        WriteOp::Delete { generation },
    ];
    CommitRequest {
        id: commit_id(),
        registration: REGISTRATION,
        part: Part {
            home: HOME,
            evidence: POSITION,
            reads: vec![
                (page(), slots()),
                (PageId::new(18, 0), (0..240).map(Slot).collect()),
            ],
            writes: vec![PageWrites {
                page: page(),
                slots: (4..).map(Slot).zip(ops).collect(),
            }],
        },
        with: vec![Participant {
            home: HOME,
            registration: REGISTRATION,
        }],
        depends_on: vec![commit_id()],
        after: stamp(),
    }
}

/// A commit that reads and writes nothing.
fn alone() -> CommitRequest {
    CommitRequest {
        part: Part {
            home: HOME,
            evidence: POSITION,
            reads: Vec::new(),
            writes: Vec::new(),
        },
        with: Vec::new(),
        depends_on: Vec::new(),
        ..commit()
    }
}

fn call() -> CallId {
    CallId {
        member: member(),
        number: 4_000,
    }
}

fn requests() -> Vec<CallRequest> {
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
        CallRequest::Reserve { segment: SEGMENT },
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
    ]
}

fn downs() -> Vec<Down> {
    let mut downs = vec![
        Down::Begin(message::Begin {
            home: HOME,
            name: String::from("alps"),
            epoch: EPOCH,
            position: POSITION,
            watermark: stamp(),
            silent_ms: 300,
            readers: readers(),
            sites: vec![NameId(1), NameId(u64::MAX)],
        }),
        Down::End(message::End { home: HOME }),
        Down::Step(step(Some(commit_id()))),
        Down::Step(step(None)),
        Down::Image(message::FetchResponse {
            home: HOME,
            page: page(),
            attempt: ATTEMPT,
            entry: ENTRY,
            position: POSITION,
            watermark: stamp(),
            result: FetchResult::Image(image()),
        }),
        Down::Redirect(message::Redirect {
            home: HOME,
            page: page(),
            requester: member(),
            epoch: EPOCH,
            attempt: ATTEMPT,
            entry: ENTRY,
        }),
        Down::Peer(peer_image(Some(image()))),
        Down::Voted(message::Voted {
            home: HOME,
            commit: commit_id(),
            stamp: stamp(),
        }),
        Down::Committed(message::Committed {
            home: HOME,
            commit: commit_id(),
            position: POSITION,
            stamp: stamp(),
        }),
        Down::Heartbeat(message::Heartbeat {
            home: HOME,
            position: POSITION,
            watermark: stamp(),
        }),
        Down::Unwatched(message::Unwatched {
            home: HOME,
            segment: SEGMENT,
        }),
        Down::Hint(message::Hint {
            home: HOME,
            page: page(),
            next: vec![PageId::new(17, 301), PageId::new(18, 2)],
        }),
        Down::Joined(message::Joined {
            home: HOME,
            page: page(),
        }),
        Down::Resynchronised(message::Resynchronised {
            home: HOME,
            report: ReportNo(9),
            entry: ENTRY,
            position: POSITION,
            changed: vec![page()],
            open: vec![PageId::new(18, 2)],
            digests: vec![(page(), PageDigest([0xd2; 16]))],
        }),
    ];
    let refusals = [
        FetchRefusal::NoSuchSegment,
        FetchRefusal::Damaged,
        FetchRefusal::Busy,
    ];
    downs.extend(refusals.map(|refusal| {
        Down::Image(message::FetchResponse {
            home: HOME,
            page: page(),
            attempt: ATTEMPT,
            entry: ENTRY,
            position: POSITION,
            watermark: stamp(),
            result: FetchResult::Refused(refusal),
        })
    }));
    downs.extend(refused().into_iter().map(|refusal| {
        Down::Refused(message::Refused {
            home: HOME,
            commit: commit_id(),
            refusal,
        })
    }));
    downs.extend(results().into_iter().map(|result| {
        Down::CallResult(message::CallResult {
            home: HOME,
            call: call(),
            result,
        })
    }));
    downs
}

fn step(commit: Option<CommitId>) -> Step {
    Step {
        home: HOME,
        position: POSITION,
        stamp: stamp(),
        watermark: stamp(),
        commit,
        executed: commit.map(|_| PartDigest([0xd1; 16])),
        changes: changes(),
        digests: vec![PageDigest([0xd2; 16]); 2],
        readers: readers(),
    }
}

/// Each kind of change.
pub(crate) fn changes() -> Vec<PageChange> {
    let generation = Generation(130);
    let slots = [
        SlotChange::Invalid,
        SlotChange::Value {
            generation,
            bytes: blob(),
        },
        SlotChange::Patch {
            generation,
            offset: 600,
            bytes: blob(),
        },
        SlotChange::Overflow {
            generation,
            overflow: overflow(),
        },
        SlotChange::Deleted { generation },
    ];
    vec![
        PageChange {
            page: page(),
            slots: PageSlots::Some((9..).map(Slot).zip(slots).collect()),
        },
        PageChange {
            page: PageId::new(18, 2),
            slots: PageSlots::Whole,
        },
    ]
}

/// Each refusal of a commit.
pub(crate) fn refused() -> Vec<Refusal> {
    let invalid = [
        InvalidCommit::NoSuchSegment,
        InvalidCommit::Generation {
            object: object(),
            found: Generation(130),
        },
        InvalidCommit::Patch { object: object() },
        InvalidCommit::TooLarge,
        InvalidCommit::NotStaged,
        InvalidCommit::ReservedPage,
        InvalidCommit::Malformed,
        InvalidCommit::Damaged,
        InvalidCommit::Participants,
        InvalidCommit::BadRights,
        InvalidCommit::RightsOfSeveral,
        InvalidCommit::UnknownHome { home: HOME },
    ];
    let mut refused = vec![
        Refusal::Conflict { object: object() },
        Refusal::InDoubt,
        Refusal::Busy {
            retry_after_ms: 250,
        },
        Refusal::Full,
        Refusal::BuiltOnRefused,
        Refusal::Unknown,
        Refusal::NoRight {
            right: Right::Write,
        },
        Refusal::Forgotten,
        Refusal::Elsewhere,
        Refusal::NotDelegated(NotDelegated::Ended),
        Refusal::Share(Share::Space),
    ];
    refused.extend(invalid.map(|reason| Refusal::Invalid { reason }));
    refused
}

fn results() -> Vec<Result<CallResponse, CallError>> {
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
        CallResponse::Outcome(Outcome::Refused(Refusal::Full)),
        CallResponse::Voted(stamp()),
    ];
    let errors = [
        CallError::NoSuchSegment,
        CallError::BadPath,
        CallError::TooMany,
        CallError::Busy,
        CallError::Full,
        CallError::Invalid,
        CallError::NotRegistered,
        CallError::NoRight {
            right: Right::Admin,
        },
        CallError::NotDelegated(NotDelegated::OtherSite),
        CallError::Share(Share::Segments),
    ];
    let responses = responses.into_iter().map(Ok);
    responses.chain(errors.into_iter().map(Err)).collect()
}

fn readers() -> Vec<(SegmentId, Readers)> {
    vec![
        (SEGMENT, Readers::Members),
        (
            SegmentId(300),
            Readers::Names(vec![NameId(1), NameId(u64::MAX)]),
        ),
    ]
}
