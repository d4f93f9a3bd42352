//! What a site with an ordinary certificate may do in the name of a member that never joined it: nothing (rule R2).

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod common;

use common::thorp;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};
use thorp_client::{JoinConfig, Member, Reference, Session};
use thorp_model::{
    Blob, CallError, CallId, CallRequest, CommitId, CommitRequest, DELEGATION_VERSION, Decision,
    DelegationNo, DelegationText, Down, Generation, HomeId, MemberId, Message, Millis, NewValue,
    NotDelegated, PageWrites, Part, Position, Refusal, Registration, Stamp, Up, WriteOp, message,
};
use thorp_testing::{Attacker, AttackerEdge, HomeProcess, OF_A_TEST, PATIENCE, Process};

/// The newest registrations of the home, one of which is anna's.
const REGISTRATIONS: std::ops::RangeInclusive<u64> = 1..=4;

/// A home, an honest site with anna below it, and a site that keeps no rules.
struct Village {
    home: HomeProcess,
    _valley: Process,
    valley_via: String,
    evil: Attacker,
}

/// The edge of the evil site to the home.
struct EvilEdge {
    edge: AttackerEdge,
    home: HomeId,
    position: Position,
    calls: u64,
}

impl Village {
    fn start(dir: &Path) -> Self {
        let home = thorp().home(dir);
        let path = |name: &str| dir.join(name).display().to_string();
        for (name, role) in [
            ("valley", "site"),
            ("evil", "site"),
            ("anna", "member"),
            ("olga", "operator"),
        ] {
            let invite = ["invite", name, "--role", role, "--dir", &home.authority];
            let said = thorp().run(&[&invite[..], &["--out", &path(name)]].concat());
            assert_eq!(said.code, 0, "{}", said.err);
        }
        let valley_via = format!("unix:{}", path("valley.sock"));
        let mut command = thorp().command(&["site", "--identity", &path("valley")]);
        command
            .arg(format!("--home=alps={}", home.via))
            .args(["--listen", &valley_via])
            .args(OF_A_TEST);
        let valley = Process::start(command);
        valley.ready();
        Village {
            home,
            _valley: valley,
            valley_via,
            evil: Attacker::at(&path("evil")),
        }
    }

    fn join(&self, dir: &Path, name: &str) -> Member {
        let config = JoinConfig::new(&self.valley_via).identity(dir.join(name));
        Member::join(config.join_timeout(PATIENCE)).unwrap()
    }

    fn enter(&self) -> EvilEdge {
        let mut edge = self
            .evil
            .call(&self.home.via, &self.evil.greeting())
            .unwrap();
        loop {
            if let Some(Message::Down(Down::Begin(begin))) = edge.receive() {
                return EvilEdge {
                    edge,
                    home: begin.home,
                    position: begin.position,
                    calls: 0,
                };
            }
        }
    }
}

impl EvilEdge {
    fn send(&self, up: Up) {
        self.edge.send(&Message::Up(up));
    }

    /// The next message that is neither a heartbeat nor a sign of life.
    fn hear(&mut self) -> Down {
        loop {
            match self.edge.receive() {
                Some(Message::Down(Down::Heartbeat(_) | Down::Receipt(_)) | Message::Alive) => {}
                Some(Message::Down(down)) => return down,
                other => panic!("{other:?} comes instead of an answer"),
            }
        }
    }

    fn call(&mut self, member: MemberId, request: CallRequest) -> CallError {
        self.calls += 1;
        let call = CallId {
            member,
            number: self.calls,
        };
        self.send(Up::Call(message::Call {
            call,
            home: self.home,
            request,
        }));
        match self.hear() {
            Down::CallResult(message::CallResult {
                result: Err(error), ..
            }) => error,
            other => panic!("the site speaks for another: {other:?}"),
        }
    }

    fn refusal(&mut self, up: Up) -> Refusal {
        self.send(up);
        match self.hear() {
            Down::Refused(refused) => refused.refusal,
            other => panic!("the site speaks for another: {other:?}"),
        }
    }

    /// Writes to an object in the name of a member, under an id that the member uses next.
    fn commit(&mut self, id: CommitId, registration: Registration, object: &Reference) -> Refusal {
        let (page, slot) = (object.object.page, object.object.slot);
        let op = WriteOp::Write {
            generation: Generation(1),
            value: NewValue::Inline(Blob::from(&b"forged"[..])),
        };
        let slots = vec![(slot, op)];
        self.refusal(Up::Commit(CommitRequest {
            id,
            registration,
            part: Part {
                home: self.home,
                evidence: self.position,
                reads: Vec::new(),
                writes: vec![PageWrites { page, slots }],
                under: None,
            },
            with: Vec::new(),
            depends_on: Vec::new(),
            after: Stamp::default(),
        }))
    }
}

fn now() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Millis(u64::try_from(since.as_millis()).unwrap())
}

/// A member's process id is in its commits. Every neighbour sees it, too.
fn process_id(member: &Member, note: &Reference) -> MemberId {
    let mut transaction = member.begin(Session::new());
    transaction.write(note, b"mine".to_vec()).unwrap();
    transaction.commit().unwrap().id.unwrap().member
}

/// Threats 3, 7 and 22: a site that knew the process id of a member committed in its name, ended its ids in advance by asking
/// for their outcomes, and registered it by its own edge.
#[test]
fn a_site_speaks_for_no_member_that_has_not_signed_so() {
    let dir = tempfile::tempdir().unwrap();
    let village = Village::start(dir.path());
    let anna = village.join(dir.path(), "anna");
    let notes = anna.create("thorp://alps/notes").unwrap();
    let note = anna.transact(|tx| tx.create(&notes, b"mine".to_vec()));
    let note = note.unwrap();
    let member = process_id(&anna, &note);
    let mut evil = village.enter();
    let text = DelegationText {
        version: DELEGATION_VERSION,
        home: evil.home,
        member,
        number: DelegationNo(1_000),
        ends: Millis(now().0 + 60_000),
        sites: vec![village.evil.greeting().node.name()],
    };

    // The evil site signs itself what only anna can sign.
    let forged = village.evil.sign(text);
    let error = evil.call(member, CallRequest::Register(Some(forged)));
    assert_eq!(error, CallError::NotDelegated(NotDelegated::NotProven));
    let not_named = NotDelegated::OtherSite;
    let registering = evil.call(member, CallRequest::Register(None));
    assert_eq!(registering, CallError::NotDelegated(not_named));
    for registration in REGISTRATIONS.map(Registration) {
        for sequence in 1..=20 {
            let commit = CommitId { member, sequence };
            let asked = CallRequest::Outcome {
                commit,
                registration,
            };
            let error = evil.call(member, asked);
            assert_eq!(error, CallError::NotDelegated(not_named));
            let refusal = evil.commit(commit, registration, &note);
            assert_eq!(refusal, Refusal::NotDelegated(not_named));
            let refusal = evil.refusal(Up::Decide(message::Decide {
                home: evil.home,
                commit,
                registration,
                decision: Decision::Abort,
            }));
            assert_eq!(refusal, Refusal::NotDelegated(not_named));
        }
    }

    // Of none of anna's ids has anything been recorded, and nothing was written.
    for number in 0..10u8 {
        let seen = anna.transact(|tx| {
            let seen = tx.read(&note)?.to_vec();
            tx.write(&note, vec![number])?;
            Ok(seen)
        });
        let expected = match number {
            0 => b"mine".to_vec(),
            _ => vec![number - 1],
        };
        assert_eq!(seen.unwrap(), expected);
    }
}

/// The home knows the role of a member behind a site by what the member has signed.
#[test]
fn an_operator_is_one_also_by_way_of_a_site() {
    let dir = tempfile::tempdir().unwrap();
    let village = Village::start(dir.path());
    let anna = village.join(dir.path(), "anna");
    let diary = anna.create("thorp://alps/diary").unwrap();
    diary.revoke(&thorp_model::Subject::Members).unwrap();
    drop(anna);
    let olga = village.join(dir.path(), "olga");
    let diary = olga.open("thorp://alps/diary").unwrap();
    let rights = olga.transact(|tx| tx.rights(&diary)).unwrap().unwrap();
    // And the home knows anna's name, although she came by a site.
    assert_eq!(rights.to_string(), "admin anna\n");
}
