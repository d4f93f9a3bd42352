//! What one child may have at its redirector (rule 15).

use crate::edge::admission::ANSWERS_PER_CHILD_MAX;
use crate::fixture;
use crate::redirector::{Outbox, Redirector, RedirectorConfig};
use alloc::string::String;
use alloc::vec::Vec;
use core::convert::Infallible;
use thorp_model::limits::{
    FETCHES_AHEAD_PER_CHILD_MAX, FOLLOWED_SEGMENTS_MAX, HINT_PAGES_MAX, LEASES_PER_CHILD_MAX,
    SUCCESSORS_UNDER_WAY_MAX,
};
use thorp_model::{
    Action, Attempt, CallError, CallId, CallRequest, CallResponse, Claim, CommitId, CommitRequest,
    DELEGATION_VERSION, Decision, Delegation, DelegationNo, DelegationText, Direction, Down,
    EdgeId, EntryNo, Epoch, Event, FetchRefusal, FetchResult, HomeId, MemberId, Message, Millis,
    NameId, NodeKind, Note, Now, PageId, Part, Participant, Peer, Position, Privilege, Proof,
    Registration, SegmentId, Stamp, StateMachine, Step, Up, message,
};

const HOME: HomeId = HomeId(1);
const ABOVE: EdgeId = EdgeId(1);
const CHILD: EdgeId = EdgeId(2);

fn tell(redirector: &mut Redirector, input: Event<Infallible>) -> Vec<Action<Infallible>> {
    let mut outbox = Outbox::new();
    let now = Now {
        mono: Millis(0),
        wall: Millis(0),
    };
    redirector.handle(now, input, &mut outbox);
    outbox.actions
}

/// The node at the other end of an edge. Each has a name of its own.
fn node_at(edge: EdgeId) -> MemberId {
    MemberId::new(NameId(edge.0), edge.0)
}

fn connected(edge: EdgeId, direction: Direction, kind: NodeKind) -> Event<Infallible> {
    let peer = Peer {
        kind,
        node: node_at(edge),
        name: String::from("p"),
        is_operator: false,
        is_carried: false,
    };
    Event::Connected {
        edge,
        direction,
        peer,
    }
}

/// A child claims to hold nothing, or nothing more.
fn claims(edge: EdgeId) -> Event<Infallible> {
    Event::Received {
        edge,
        message: Message::Claims(Vec::new()),
    }
}

/// What a child holds that has been where the redirector is.
fn claim() -> Claim {
    Claim {
        receipt: fixture::receipt(HOME),
        position: Position(1),
        clock: 0,
    }
}

/// With a home above and a member below.
fn redirector() -> Redirector {
    let mut redirector = Redirector::new(RedirectorConfig::new(MemberId(9), String::from("r")));
    let begin = Message::Down(Down::Begin(fixture::begin(HOME, "h", 1, 1)));
    for input in [
        connected(ABOVE, Direction::Up, NodeKind::Home),
        Event::Received {
            edge: ABOVE,
            message: begin,
        },
        connected(CHILD, Direction::Down, NodeKind::Member),
        claims(CHILD),
    ] {
        tell(&mut redirector, input);
    }
    redirector
}

fn decide(sequence: u64) -> Event<Infallible> {
    let message = Message::Up(Up::Decide(message::Decide {
        home: HOME,
        commit: CommitId {
            member: node_at(CHILD),
            sequence,
        },
        registration: Registration(1),
        decision: Decision::Abort,
    }));
    Event::Received {
        edge: CHILD,
        message,
    }
}

#[test]
fn what_a_child_decides_is_bounded() {
    let mut redirector = redirector();
    let mut limited = 0;
    for sequence in 0..2 * ANSWERS_PER_CHILD_MAX as u64 {
        let effects = tell(&mut redirector, decide(sequence));
        limited += effects
            .iter()
            .filter(|effect| matches!(effect, Action::Note(Note::ChildLimited)))
            .count();
    }
    assert_eq!(limited, ANSWERS_PER_CHILD_MAX);
    let sizes = redirector.sizes();
    assert!(
        sizes.contains(&("commits", ANSWERS_PER_CHILD_MAX)),
        "{sizes:?}"
    );
    // What is known is passed on as ever.
    let again = tell(&mut redirector, decide(0));
    assert!(
        again
            .iter()
            .any(|effect| matches!(effect, Action::Send(edge, _) if *edge == ABOVE))
    );
}

/// A commit of a child, or of somebody below a site: at this home alone, or at others, too.
fn commit(from: EdgeId, member: EdgeId, homes: u32) -> Event<Infallible> {
    let registration = Registration(1);
    let with = (1..=homes).map(|home| Participant {
        home: HomeId(home),
        registration,
    });
    let request = CommitRequest {
        id: id_of(member),
        registration,
        part: Part {
            home: HOME,
            evidence: Position(1),
            reads: Vec::new(),
            writes: Vec::new(),
            under: None,
        },
        with: with.collect(),
        depends_on: Vec::new(),
        after: Stamp::default(),
    };
    Event::Received {
        edge: from,
        message: Message::Up(Up::Commit(request)),
    }
}

fn id_of(member: EdgeId) -> CommitId {
    CommitId {
        member: node_at(member),
        sequence: 1,
    }
}

fn from_above(message: Down) -> Event<Infallible> {
    Event::Received {
        edge: ABOVE,
        message: Message::Down(message),
    }
}

fn told() -> Event<Infallible> {
    from_above(Down::Committed(message::Committed {
        home: HOME,
        commit: id_of(CHILD),
        position: Position(2),
        stamp: Stamp::default(),
    }))
}

fn size(redirector: &Redirector, table: &str) -> usize {
    let sizes = redirector.sizes();
    let found = sizes.iter().find(|(name, _)| *name == table);
    found.expect("a table").1
}

/// Or who comes again and again would fill the queue to the parent.
#[test]
fn a_child_that_goes_takes_nothing_off_the_way_up() {
    for homes in [0, 2] {
        let mut redirector = redirector();
        tell(&mut redirector, commit(CHILD, CHILD, homes));
        let under_way = size(&redirector, "upward_bytes");
        assert!(under_way > 0);
        tell(&mut redirector, Event::Disconnected { edge: CHILD });
        assert_eq!(size(&redirector, "upward_bytes"), under_way);
        assert_eq!(size(&redirector, "commits"), 0);
        tell(&mut redirector, told());
        assert_eq!(size(&redirector, "upward_bytes"), 0);
    }
}

/// The member names this site, and the home takes that.
fn signs_for(redirector: &mut Redirector, site: EdgeId) {
    let member = id_of(CHILD).member;
    let text = DelegationText {
        version: DELEGATION_VERSION,
        home: HOME,
        member,
        number: DelegationNo(site.0),
        ends: Millis(0),
        sites: Vec::from([node_at(site).name()]),
    };
    let proof = Proof::none();
    let (home, number) = (HOME, site.0);
    let call = CallId { member, number };
    let request = CallRequest::Register(Some(Delegation { text, proof }));
    let asked = message::Call {
        call,
        home,
        request,
    };
    let message = Message::Up(Up::Call(asked));
    tell(
        redirector,
        Event::Received {
            edge: site,
            message,
        },
    );
    let result = Ok(CallResponse::Registered(Registration(1)));
    let answer = message::CallResult { home, call, result };
    tell(redirector, from_above(Down::CallResult(answer)));
}

/// A member moves from one site to another, all below this one.
#[test]
fn every_way_that_a_commit_came_hears_how_it_ended() {
    const SITES: [EdgeId; 3] = [EdgeId(5), EdgeId(6), EdgeId(7)];
    let mut redirector = redirector();
    for site in SITES {
        let came = connected(site, Direction::Down, NodeKind::Redirector);
        tell(&mut redirector, came);
        tell(&mut redirector, claims(site));
        signs_for(&mut redirector, site);
        tell(&mut redirector, commit(site, CHILD, 2));
    }
    tell(&mut redirector, Event::Disconnected { edge: SITES[2] });
    let mut heard = |input: Event<Infallible>| -> Vec<EdgeId> {
        let effects = tell(&mut redirector, input);
        let to = effects.iter().filter_map(|effect| match effect {
            Action::Send(to, Message::Down(Down::Voted(_) | Down::Committed(_))) => Some(*to),
            _ => None,
        });
        let mut to: Vec<EdgeId> = to.collect();
        to.sort();
        to
    };
    let voted = from_above(Down::Voted(message::Voted {
        home: HOME,
        commit: id_of(CHILD),
        stamp: Stamp::default(),
    }));
    assert_eq!(heard(voted), SITES[..2]);
    assert_eq!(heard(told()), SITES[..2]);
    assert_eq!(size(&redirector, "commits"), 0);
}

#[test]
fn a_member_speaks_for_itself() {
    let mut redirector = redirector();
    let effects = tell(&mut redirector, commit(CHILD, EdgeId(7), 0));
    let is_closed =
        |effect: &Action<Infallible>| matches!(effect, Action::Close(edge, _) if *edge == CHILD);
    assert!(effects.iter().any(is_closed), "{effects:?}");
    assert_eq!(size(&redirector, "upward_bytes"), 0);
}

/// It has been further down than its new parent is (rule 13), and so has everybody below it.
#[test]
fn what_is_promised_with_a_step_is_promised_where_the_step_is() {
    let stamp = |clock| Stamp { clock, home: HOME };
    let begin = |position, watermark| {
        from_above(Down::Begin(message::Begin {
            watermark,
            ..fixture::begin(HOME, "h", position, position)
        }))
    };
    let mut redirector = redirector();
    tell(
        &mut redirector,
        from_above(Down::End(message::End { home: HOME })),
    );
    // The child answers each end.
    let again = || Event::Received {
        edge: CHILD,
        message: Message::Claims(Vec::from([(HOME, claim())])),
    };
    tell(&mut redirector, again());
    tell(&mut redirector, begin(9, stamp(900)));
    tell(
        &mut redirector,
        from_above(Down::End(message::End { home: HOME })),
    );
    tell(&mut redirector, again());
    tell(&mut redirector, begin(5, stamp(500)));
    tell(&mut redirector, commit(CHILD, CHILD, 0));
    let mut promised = |position, watermark| {
        let step = from_above(Down::Step(Step {
            home: HOME,
            position: Position(position),
            stamp: watermark,
            watermark,
            commit: Some(id_of(CHILD)),
            executed: None,
            changes: Vec::new(),
            digests: Vec::new(),
            readers: Vec::new(),
        }));
        let effects = tell(&mut redirector, step);
        let told = effects.iter().find_map(|effect| match effect {
            Action::Send(CHILD, Message::Down(Down::Step(step))) => Some(step.watermark),
            _ => None,
        });
        tell(&mut redirector, commit(CHILD, CHILD, 0));
        told
    };
    assert_eq!(promised(6, stamp(600)), Some(stamp(600)));
    assert_eq!(promised(9, stamp(800)), Some(stamp(900)));
    assert_eq!(promised(10, stamp(1000)), Some(stamp(1000)));
}

fn fetch(page: u32, attempt: u64, ahead: bool) -> Event<Infallible> {
    fetch_by((CHILD, Epoch(1)), page, attempt, ahead)
}

fn fetch_by(
    (edge, epoch): (EdgeId, Epoch),
    page: u32,
    attempt: u64,
    ahead: bool,
) -> Event<Infallible> {
    let message = Message::Up(Up::Fetch(message::Fetch {
        home: HOME,
        epoch,
        page: PageId::new(1, page),
        attempt: Attempt(attempt),
        peers: false,
        ahead,
        updates: 0,
    }));
    Event::Received { edge, message }
}

/// What was asked above: the page, the attempt, and whether ahead.
fn asked_above(effects: &[Action<Infallible>]) -> Vec<(PageId, Attempt, bool)> {
    let asked = effects.iter().filter_map(|effect| match effect {
        Action::Send(
            ABOVE,
            Message::Up(Up::Fetch(message::Fetch {
                page,
                attempt,
                ahead,
                ..
            })),
        ) => Some((*page, *attempt, *ahead)),
        _ => None,
    });
    asked.collect()
}

fn refused_below(effects: &[Action<Infallible>]) -> usize {
    let is_busy = |effect: &&Action<Infallible>| {
        matches!(
            effect,
            Action::Send(
                _,
                Message::Down(Down::Image(message::FetchResponse {
                    result: FetchResult::Refused(FetchRefusal::Busy),
                    ..
                }))
            )
        )
    };
    effects.iter().filter(is_busy).count()
}

#[test]
fn what_is_fetched_ahead_leaves_space_for_what_is_waited_for() {
    let mut redirector = redirector();
    let most = FETCHES_AHEAD_PER_CHILD_MAX as u32;
    for page in 1..=most {
        let effects = tell(&mut redirector, fetch(page, u64::from(page), true));
        assert!(matches!(asked_above(&effects)[..], [(_, _, true)]));
    }
    let effects = tell(&mut redirector, fetch(most + 1, 1001, true));
    assert_eq!(
        (asked_above(&effects), refused_below(&effects)),
        (Vec::new(), 1)
    );
    let effects = tell(&mut redirector, fetch(most + 1, 1002, false));
    assert!(matches!(asked_above(&effects)[..], [(_, _, false)]));
}

/// Epochs are given in the order in which children come.
fn further_child(redirector: &mut Redirector, number: u64) -> (EdgeId, Epoch) {
    let edge = EdgeId(CHILD.0 + number);
    let input = connected(edge, Direction::Down, NodeKind::Member);
    tell(redirector, input);
    tell(redirector, claims(edge));
    (edge, Epoch(1 + number))
}

fn told_joined(effects: &[Action<Infallible>]) -> Vec<EdgeId> {
    let told = effects.iter().filter_map(|effect| match effect {
        Action::Send(edge, Message::Down(Down::Joined(_))) => Some(*edge),
        _ => None,
    });
    told.collect()
}

#[test]
fn neighbours_that_ask_ahead_for_the_same_pages_take_their_space_once() {
    let mut redirector = redirector();
    let [ben, cleo, dora, emil] = [1, 2, 3, 4].map(|n| further_child(&mut redirector, n));
    let most = FETCHES_AHEAD_PER_CHILD_MAX as u32;
    let mut ask = |child, page| {
        let attempt = u64::from(page);
        tell(&mut redirector, fetch_by(child, page, attempt, true))
    };
    for page in 1..=most {
        let effects = ask((CHILD, Epoch(1)), page);
        assert_eq!(asked_above(&effects).len(), 1);
        assert_eq!(told_joined(&effects), []);
    }
    for child in [ben, cleo] {
        for page in 1..=most {
            let effects = ask(child, page);
            assert_eq!(
                (asked_above(&effects).len(), refused_below(&effects)),
                (0, 0)
            );
            assert_eq!(told_joined(&effects), [child.0]);
        }
    }
    // Three wait for as many pages as one may: that is half of the room.
    for page in most + 1..=2 * most {
        assert_eq!(asked_above(&ask(dora, page)).len(), 1, "{page}");
    }
    // Now all of it is taken, but for what is on its way.
    let effects = ask(emil, 2 * most + 1);
    assert_eq!(
        (asked_above(&effects).len(), refused_below(&effects)),
        (0, 1)
    );
    let effects = ask(emil, 2 * most);
    assert_eq!(
        (refused_below(&effects), told_joined(&effects)),
        (0, [emil.0].to_vec())
    );
    // And a child that has as many as it may gets no more, whoever else does.
    assert_eq!(refused_below(&ask(ben, 2 * most)), 1);
}

#[test]
fn what_was_refused_ahead_is_asked_for_anew_for_who_waits_meanwhile() {
    let mut redirector = redirector();
    let effects = tell(&mut redirector, fetch(1, 1, true));
    let [(page, first, true)] = asked_above(&effects)[..] else {
        panic!("{effects:?}");
    };
    let busy = |attempt| {
        from_above(Down::Image(message::FetchResponse {
            home: HOME,
            page,
            attempt,
            entry: EntryNo(0),
            position: Position(1),
            watermark: Stamp::default(),
            result: FetchResult::Refused(FetchRefusal::Busy),
        }))
    };
    let joined = tell(&mut redirector, fetch(1, 2, false));
    assert_eq!(asked_above(&joined), []);
    let effects = tell(&mut redirector, busy(first));
    let [(_, second, false)] = asked_above(&effects)[..] else {
        panic!("{effects:?}");
    };
    assert!(second > first && refused_below(&effects) == 0);
    // Who waits and is refused is told.
    let effects = tell(&mut redirector, busy(second));
    assert_eq!(
        (asked_above(&effects).len(), refused_below(&effects)),
        (0, 2)
    );
}

/// A child goes the same way once more, and no answer comes: what is likely is asked for ahead of it, though not all of it.
#[test]
fn what_is_likely_is_asked_for_within_its_limit() {
    const PAGES: u32 = 300;
    let mut redirector = redirector();
    for page in 1..=PAGES {
        let effects = tell(&mut redirector, fetch(page, u64::from(page), false));
        let [(_, attempt, false)] = asked_above(&effects)[..] else {
            panic!("{effects:?}");
        };
        let refused = Down::Image(message::FetchResponse {
            home: HOME,
            page: PageId::new(1, page),
            attempt,
            entry: EntryNo(0),
            position: Position(1),
            watermark: Stamp::default(),
            result: FetchResult::Refused(FetchRefusal::NoSuchSegment),
        });
        tell(&mut redirector, from_above(refused));
    }
    let (mut ahead, mut longest) = (0, 0);
    for page in 1..=PAGES {
        let effects = tell(&mut redirector, fetch(page, u64::from(1000 + page), false));
        let asked = asked_above(&effects);
        ahead += asked.iter().filter(|(_, _, ahead)| *ahead).count();
        assert!(size(&redirector, "ahead") <= SUCCESSORS_UNDER_WAY_MAX);
        // What is waited for goes first.
        let is_first = asked.iter().skip(1).all(|(_, _, ahead)| *ahead);
        assert!(is_first, "{asked:?}");
        let hints = effects.iter().filter_map(|effect| match effect {
            Action::Send(CHILD, Message::Down(Down::Hint(message::Hint { next, .. }))) => {
                Some(next.len())
            }
            _ => None,
        });
        longest = hints.fold(longest, usize::max);
    }
    assert_eq!((ahead, longest), (SUCCESSORS_UNDER_WAY_MAX, HINT_PAGES_MAX));
}

/// A child asks its home for something by a call; the home grants it. What the child is told.
fn granted(
    redirector: &mut Redirector,
    number: u64,
    (request, response): (CallRequest, CallResponse),
) -> Vec<Result<CallResponse, CallError>> {
    let member = node_at(CHILD);
    let call = CallId { member, number };
    let home = HOME;
    let asked = message::Call {
        call,
        home,
        request,
    };
    let message = Message::Up(Up::Call(asked));
    let edge = CHILD;
    // The site answers itself, or the home does.
    let mut effects = tell(redirector, Event::Received { edge, message });
    let result = Ok(response);
    let answer = message::CallResult { home, call, result };
    effects.extend(tell(redirector, from_above(Down::CallResult(answer))));
    let told = effects.into_iter().filter_map(|effect| match effect {
        Action::Send(CHILD, Message::Down(Down::CallResult(answer))) => Some(answer.result),
        _ => None,
    });
    told.collect()
}

/// A site that has no place for a lease would not ask its holder, so a pull would miss what the holder has answered (rule C3).
#[test]
fn a_lease_for_which_a_site_has_no_place_is_none() {
    let mut redirector = redirector();
    // One name gets no more than it leaves free.
    let fits = LEASES_PER_CHILD_MAX as u32 / 2;
    let mut lease = |segment| {
        let segments = Vec::from([SegmentId(segment)]);
        let request = CallRequest::Lease {
            segments,
            privilege: Privilege::Write,
        };
        let response = CallResponse::Leased { lease_ms: 1_000 };
        granted(
            &mut redirector,
            u64::from(segment),
            (request, response.clone()),
        )
    };
    let leased = Vec::from([Ok(CallResponse::Leased { lease_ms: 1_000 })]);
    for segment in 1..=fits {
        assert_eq!(lease(segment), leased, "{segment}");
    }
    assert_eq!(lease(fits + 1), [Err(CallError::TooMany)]);
    assert_eq!(lease(1), leased, "more time for one that it holds");
}

/// A child that follows is told of each update that is saved. So it must not believe that it follows where the site has no place.
#[test]
fn a_child_follows_only_where_its_site_has_a_place() {
    let mut redirector = redirector();
    let fits = FOLLOWED_SEGMENTS_MAX as u32;
    let mut is_followed = |segment| {
        let (logs, segment_id) = (Vec::new(), SegmentId(segment));
        let request = CallRequest::Follow {
            segment: segment_id,
            logs,
        };
        let response = CallResponse::Following {
            position: Position(1),
            logs: Vec::new(),
        };
        let told = granted(&mut redirector, u64::from(segment), (request, response));
        assert_eq!(told.len(), 1);
        told[0].is_ok()
    };
    assert!((1..=fits).all(&mut is_followed));
    assert!(!is_followed(fits + 1));
}
