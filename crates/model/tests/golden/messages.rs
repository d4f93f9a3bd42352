//! One sample of each message and of each thing that a message can carry.

use crate::Sample;
use crate::calls::{requests, results};
use crate::values::{
    ATTEMPT, ENTRY, EPOCH, HOME, POSITION, REGISTRATION, SEGMENT, blob, commit_id, image, member,
    object, overflow, page, slots, stamp,
};
use thorp_model::codec::{decode, encode};
use thorp_model::{message, *};

/// Samples of all messages; each is decoded again, too.
pub(crate) fn all() -> Vec<Sample> {
    let ups = ups().into_iter().map(Message::Up);
    let downs = downs().into_iter().map(Message::Down);
    let claims = Message::Claims(vec![(HOME, claim())]);
    let homes = Message::Homes(HomeNames {
        names: vec![String::from("alps"), String::from("dale")],
        is_all: true,
    });
    let messages = ups.chain(downs).chain([Message::Alive, claims, homes]);
    let samples: Vec<Sample> = messages.map(|message| encoded(&message)).collect();
    assert_eq!(
        variants(&samples, "up"),
        19,
        "a kind of message has no sample"
    );
    assert_eq!(
        variants(&samples, "down"),
        26,
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
        Message::Claims(_) => String::from("claims"),
        Message::Homes(_) => String::from("homes"),
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
        Up::Judge(_) => "judge",
        Up::Save(_) => "save",
        Up::Update(_) => "update",
        Up::Heads(_) => "heads",
        Up::GiveBack(_) => "give back",
        Up::Seen(_) => "seen",
        Up::Keep(_) => "keep",
        Up::Kept(_) => "kept",
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
        Down::Receipt(_) => "receipt",
        Down::Judged(_) => "judged",
        Down::Saved(_) => "saved",
        Down::Update(_) => "update",
        Down::Get(_) => "get",
        Down::Tell(_) => "tell",
        Down::Withheld(_) => "withheld",
        Down::SeenWanted(_) => "seen wanted",
        Down::Recall(_) => "recall",
        Down::Keep(_) => "keep",
        Down::Kept(_) => "kept",
    }
}

// Numbers of one, two and more bytes, so that no two fields look alike.

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
        Up::Save(Box::new(message::Save {
            request: alone(),
            update: update_id(),
            confirmed: 299,
            custody: proof(),
            author: None,
        })),
        Up::Save(Box::new(message::Save {
            request: alone(),
            update: update_id(),
            confirmed: 299,
            custody: proof(),
            author: Some(authorship()),
        })),
        Up::Keep(Box::new(keep())),
        Up::Kept(kept(Ok(InCustody {
            id: update_id(),
            is_leased: true,
        }))),
        Up::Kept(kept(Err(NotKept::LogFull))),
        Up::Update(told()),
        Up::GiveBack(message::GiveBack {
            home: HOME,
            segments: vec![SEGMENT],
            privilege: Privilege::Write,
        }),
        Up::Seen(message::Seen {
            home: HOME,
            after: Position(3),
            position: POSITION,
        }),
        Up::Heads(message::Heads {
            home: HOME,
            pull: 300,
            heads: vec![LogHead {
                log: update_id().log,
                segment: SEGMENT,
                number: 300,
            }],
        }),
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
            site: Some("office".into()),
        }),
        Up::Judge(message::Judge {
            epoch: EPOCH,
            question: 300,
            claim: claim(),
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
            under: None,
        },
        with: vec![Participant {
            home: HOME,
            registration: REGISTRATION,
        }],
        depends_on: vec![commit_id()],
        after: stamp(),
    }
}

/// An update, and its name.
fn told() -> message::Told {
    let update = Update {
        home: HOME,
        id: update_id(),
        writes: commit().part.writes,
    };
    message::Told {
        update,
        since: POSITION,
        author: Some(member()),
    }
}

/// An update on its way to the log of a site.
fn keep() -> message::Keep {
    message::Keep {
        home: HOME,
        log: NameId::of("office"),
        author: authorship(),
        writes: commit().part.writes,
        patience_ms: 300,
    }
}

fn kept(result: Result<InCustody, NotKept>) -> message::Kept {
    let by = authorship().by;
    message::Kept {
        home: HOME,
        by,
        result,
    }
}

fn authorship() -> Authorship {
    let by = Author {
        member: member(),
        sequence: 300,
    };
    Authorship { by, proof: proof() }
}

fn proof() -> Proof {
    Proof {
        scheme: 0x0403,
        certificate: Blob::from(vec![0x30, 0x82]),
        signature: Blob::from(vec![0x30, 0x45, 0x02]),
    }
}

fn update_id() -> UpdateId {
    UpdateId {
        log: LogId(member()),
        segment: SEGMENT,
        number: 300,
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
            under: None,
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
            receipt: receipt(),
            verdict: Verdict::Forget,
        }),
        Down::Receipt(receipt()),
        Down::Judged(message::Judged {
            home: HOME,
            question: 300,
            verdict: Verdict::Known,
        }),
        Down::End(message::End { home: HOME }),
        Down::Saved(Box::new(message::Saved {
            update: update_id(),
            is_executed: true,
            step: step(None),
        })),
        Down::Update(told()),
        Down::Get(message::Get {
            home: HOME,
            pull: 300,
            segments: vec![SEGMENT],
            void: vec![(SEGMENT, NameId(300))],
        }),
        Down::Recall(message::Recall {
            home: HOME,
            segments: vec![SEGMENT],
        }),
        Down::Keep(Box::new(keep())),
        Down::Kept(kept(Err(NotKept::OtherLog(NameId::of("office"))))),
        Down::Withheld(message::Withheld {
            home: HOME,
            commit: commit_id(),
        }),
        Down::SeenWanted(message::SeenWanted {
            home: HOME,
            position: POSITION,
            segments: vec![SEGMENT],
        }),
        Down::Tell(message::Tell {
            home: HOME,
            segment: SEGMENT,
        }),
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
        FetchRefusal::NotCarried,
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

pub(crate) fn receipt() -> Receipt {
    let point = Point {
        life: LifeId {
            counter: 300,
            random: u64::MAX,
        },
        mark: Mark(70_000),
        position: POSITION,
        clock: stamp().clock,
    };
    let incarnation = Incarnation::new(300).expect("there are more");
    Receipt::new(HOME, incarnation, point, &ReceiptKey::new([7; 32]))
}

fn claim() -> Claim {
    Claim {
        receipt: receipt(),
        position: POSITION,
        clock: stamp().clock,
    }
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

/// Bytes that a step to a site has for the digests of so many pages (rule R6).
pub(crate) fn digest_bytes(pages: usize) -> usize {
    let bytes = |digests| {
        let step = Down::Step(Step {
            digests,
            ..step(None)
        });
        encode(&Message::Down(step)).expect("it encodes").len()
    };
    // A program from before had not even the list.
    bytes(vec![PageDigest([0xd2; 16]); pages]) - bytes(Vec::new()) + 1
}

/// Bytes of the longest receipt, as a message of its own (rule R9).
pub(crate) fn longest_receipt_bytes() -> usize {
    let point = Point {
        life: LifeId {
            counter: u32::MAX,
            random: u64::MAX,
        },
        mark: Mark(u64::MAX),
        position: Position(u64::MAX),
        clock: u64::MAX,
    };
    let incarnation =
        Incarnation::new(thorp_model::limits::INCARNATIONS_MAX).expect("it is the last one");
    let key = ReceiptKey::new([7; 32]);
    let receipt = Receipt::new(HomeId(u32::MAX), incarnation, point, &key);
    let message = Message::Down(Down::Receipt(receipt));
    encode(&message).expect("it encodes").len()
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
        InvalidCommit::Procedure {
            object: object(),
            why: NotRun::NoSet,
        },
        InvalidCommit::ProcedureOfSeveral,
        InvalidCommit::NotProven,
        InvalidCommit::Procedure {
            object: object(),
            why: NotRun::KeyTaken,
        },
    ];
    let mut refused = vec![
        Refusal::Conflict { object: object() },
        Refusal::InDoubt,
        Refusal::Busy {
            retry_after_ms: 250,
        },
        Refusal::Full(Lack::OF_ALL),
        Refusal::BuiltOnRefused,
        Refusal::Unknown,
        Refusal::NoRight {
            right: Right::Write,
        },
        Refusal::Forgotten,
        Refusal::Elsewhere,
        Refusal::NotDelegated(NotDelegated::Ended),
        Refusal::WentBack,
        Refusal::Lost,
        Refusal::Share(Share::Space),
        Refusal::NotYet { number: 300 },
        Refusal::OtherLog,
        Refusal::Locked { ends_ms: 300 },
        Refusal::LockLost,
    ];
    refused.extend(invalid.map(|reason| Refusal::Invalid { reason }));
    refused
}

fn readers() -> Vec<(SegmentId, Audience)> {
    let closed = Audience {
        readers: Readers::Names(vec![NameId(1), NameId(u64::MAX)]),
        carriers: Carriers {
            sites: false,
            names: vec![NameId(300)],
        },
    };
    vec![(SEGMENT, Audience::EVERYBODY), (SegmentId(300), closed)]
}
