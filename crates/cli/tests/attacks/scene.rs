//! A home, sites below it, and nodes that keep no rules.

use crate::common::thorp;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use thorp_client::{JoinConfig, Member, Reference, Session};
use thorp_model::limits::EXTENT_PAGES;
use thorp_model::{
    Blob, CallError, CallId, CallRequest, CallResponse, Claim, CommitId, CommitRequest, Down,
    Generation, HomeId, MemberId, Message, NewValue, PageId, PageNo, PageWrites, Part, RIGHTS_SLOT,
    Refusal, Registration, SegmentId, Slot, SlotSet, Stamp, Up, WriteOp, message, rights_page,
};
use thorp_testing::{
    Attacker, AttackerEdge, HomeProcess, Intruder, OF_A_TEST, PATIENCE, Process, signal,
};

pub(crate) fn join(dir: &Path, name: &str, via: &str) -> Member {
    let config = JoinConfig::new(via).identity(dir.join(name));
    Member::join(config.join_timeout(PATIENCE)).unwrap()
}

pub(crate) fn intrude(dir: &Path, name: &str, via: &str) -> Intruder {
    Intruder::enter(&dir.join(name).display().to_string(), via)
}

pub(crate) fn invite(dir: &Path, home: &HomeProcess, name: &str, role: &str) -> String {
    let out = dir.join(name).display().to_string();
    let words = ["invite", name, "--role", role, "--dir", &home.authority];
    let said = thorp().run(&[&words[..], &["--out", &out]].concat());
    assert_eq!(said.code, 0, "{}", said.err);
    out
}

/// A home, and the certificates of nodes: names and roles.
pub(crate) fn home_with(dir: &Path, nodes: &[(&str, &str)]) -> HomeProcess {
    let home = thorp().home(dir);
    for (name, role) in nodes {
        invite(dir, &home, name, role);
    }
    home
}

pub(crate) fn open(intruder: &mut Intruder, path: &str) -> SegmentId {
    let request = CallRequest::Open {
        path: path.to_owned(),
        create: true,
    };
    match intruder.call(request) {
        Down::CallResult(message::CallResult {
            result: Ok(CallResponse::Segment(info)),
            ..
        }) => info.id,
        other => panic!("{other:?}"),
    }
}

/// Commits as one of the registrations of an intruder.
pub(crate) struct Writer {
    pub(crate) intruder: Intruder,
    pub(crate) registration: Registration,
    sequence: u64,
    calls: u64,
}

impl Writer {
    pub(crate) fn new(mut intruder: Intruder) -> Self {
        let registration = intruder.register();
        Writer {
            intruder,
            registration,
            sequence: 0,
            // An intruder calls under lower numbers.
            calls: 1_000,
        }
    }

    pub(crate) fn request(
        &mut self,
        reads: Vec<(PageId, SlotSet)>,
        writes: Vec<PageWrites>,
    ) -> CommitRequest {
        self.sequence += 1;
        CommitRequest {
            id: CommitId {
                member: self.intruder.member,
                sequence: self.sequence,
            },
            registration: self.registration,
            part: Part {
                home: self.intruder.home,
                evidence: self.intruder.position,
                reads,
                writes,
                under: None,
            },
            with: Vec::new(),
            depends_on: Vec::new(),
            after: Stamp::default(),
        }
    }

    /// Sends a commit and waits for its outcome.
    pub(crate) fn commit(&mut self, request: CommitRequest) -> Result<(), Refusal> {
        let id = request.id;
        self.intruder.send(Up::Commit(request));
        loop {
            match self.intruder.hear() {
                Down::Step(step) if step.commit == Some(id) => return Ok(()),
                Down::Committed(committed) if committed.commit == id => return Ok(()),
                Down::Refused(refused) if refused.commit == id => return Err(refused.refusal),
                _ => {}
            }
        }
    }

    /// Writes one object.
    pub(crate) fn write(&mut self, page: PageId, slot: Slot, op: WriteOp) -> Result<(), Refusal> {
        let slots = vec![(slot, op)];
        let request = self.request(Vec::new(), vec![PageWrites { page, slots }]);
        self.commit(request)
    }

    /// Changes the rights list of a segment.
    pub(crate) fn restrict(&mut self, segment: SegmentId, list: &str) -> Result<(), Refusal> {
        let op = WriteOp::Write {
            generation: Generation(1),
            value: NewValue::Inline(Blob::from(list.as_bytes())),
        };
        self.write(rights_page(segment), RIGHTS_SLOT, op)
    }

    /// Sends a call under the next number.
    fn send_call(&mut self, request: CallRequest) -> CallId {
        self.calls += 1;
        let call = CallId {
            member: self.intruder.member,
            number: self.calls,
        };
        let home = self.intruder.home;
        self.intruder.send(Up::Call(message::Call {
            call,
            home,
            request,
        }));
        call
    }

    /// Calls the home and waits for the result.
    pub(crate) fn call(&mut self, request: CallRequest) -> Result<CallResponse, CallError> {
        let call = self.send_call(request);
        loop {
            match self.intruder.hear() {
                Down::CallResult(answer) if answer.call == call => return answer.result,
                _ => {}
            }
        }
    }

    /// Asks for a page by its number, as a guess, and waits for the home's own answer. If `peers` is set, an image comes
    /// as from a peer, and this waits in vain.
    pub(crate) fn fetch(&mut self, page: PageId, peers: bool) -> message::FetchResponse {
        let mut told = self.intruder.fetch(page, peers);
        loop {
            match told {
                Down::Image(answer) if answer.page == page => return answer,
                _ => told = self.intruder.hear(),
            }
        }
    }

    /// Asks for page numbers so many times. Returns the first number that the home has not granted.
    pub(crate) fn reserve(&mut self, segment: SegmentId, times: u64) -> PageNo {
        let request = CallRequest::Reserve {
            segment,
            pages: EXTENT_PAGES,
        };
        let (mut under_way, mut done, mut end) = (0, 0, PageNo(0));
        while done < times {
            while under_way < CALLS_AT_ONCE && done + under_way < times {
                self.send_call(request.clone());
                under_way += 1;
            }
            let Down::CallResult(answer) = self.intruder.hear() else {
                continue;
            };
            under_way -= 1;
            match answer.result {
                Ok(CallResponse::Extent { first, pages }) => {
                    done += 1;
                    end = end.max(PageNo(first.0 + pages));
                }
                Err(CallError::Busy) => {}
                other => panic!("{other:?} after {done} times"),
            }
        }
        end
    }
}

/// Calls of a writer that wait for their results.
const CALLS_AT_ONCE: u64 = 400;

/// Creates the first object of a slot.
pub(crate) fn creation(bytes: &[u8]) -> WriteOp {
    WriteOp::Create {
        generation: Generation(1),
        value: NewValue::Inline(Blob::from(bytes)),
    }
}

/// A home, and a site below it.
pub(crate) struct Place {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) home: Option<HomeProcess>,
    pub(crate) _site: Process,
    pub(crate) site_via: String,
}

impl Place {
    pub(crate) fn new(site_config: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let home = thorp().home(dir.path());
        for name in ["anna", "bert", "mallory"] {
            invite(dir.path(), &home, name, "member");
        }
        let file = dir.path().join("site.toml");
        fs::write(&file, site_config).unwrap();
        let config = ["--config", file.to_str().unwrap()];
        let above = ("alps", &*home.via);
        let (site, site_via) = site(dir.path(), &home, "valley", above, &config);
        Place {
            dir,
            home: Some(home),
            _site: site,
            site_via,
        }
    }

    pub(crate) fn signal(&self, name: &str) {
        signal(name, self.home.as_ref().unwrap().process.id());
    }

    pub(crate) fn restart_home(&mut self) {
        let home = self.home.take().unwrap();
        assert_eq!(home.process.terminate(), 0);
        self.home = Some(thorp().home(self.dir.path()));
    }
}

pub(crate) fn add_one(member: &Member, counter: &Reference) -> thorp_client::Result<u64> {
    let session = Session::new().strict(true);
    let timeouts = session
        .fetch_timeout(Duration::from_secs(2))
        .commit_timeout(Duration::from_secs(2));
    let mut tx = member.begin(timeouts);
    let value = tx.read(counter)?;
    let value = u64::from_le_bytes(value.try_into().unwrap()) + 1;
    tx.write(counter, value.to_le_bytes().to_vec())?;
    tx.commit()?;
    Ok(value)
}

pub(crate) fn counter(member: &Member, path: &str) -> Reference {
    let segment = member.create(path).unwrap();
    let made = member.transact(|tx| tx.create(&segment, 0_u64.to_le_bytes()));
    made.unwrap()
}

/// How many transactions a member commits in so long.
pub(crate) fn rate(member: &Member, counter: &Reference, time: Duration) -> u32 {
    let (begun, mut count) = (Instant::now(), 0);
    while begun.elapsed() < time {
        if add_one(member, counter).is_ok() {
            count += 1;
        }
    }
    count
}

/// Starts a site below another node.
pub(crate) fn site(
    dir: &Path,
    home: &HomeProcess,
    name: &str,
    above: (&str, &str),
    flags: &[&str],
) -> (Process, String) {
    let identity = dir.join(name);
    if !identity.exists() {
        invite(dir, home, name, "site");
    }
    let via = format!("unix:{}", dir.join(format!("{name}.sock")).display());
    let identity = identity.display().to_string();
    let mut command = thorp().command(&["site", "--identity", &identity]);
    command
        .arg(format!("--home={}={}", above.0, above.1))
        .args(["--listen", &via])
        .args(flags)
        .args(OF_A_TEST);
    let site = Process::start(command);
    site.ready();
    (site, via)
}

/// A process of a name comes, with an id of its own, and claims this.
pub(crate) fn arrive(
    attacker: &Attacker,
    via: &str,
    random: u64,
    claims: Vec<(HomeId, Claim)>,
) -> (AttackerEdge, message::Begin) {
    let mut hello = attacker.greeting();
    hello.node = MemberId::new(hello.node.name(), random);
    let mut edge = attacker.call_and_wait(via, &hello).unwrap();
    edge.send(&Message::Claims(claims));
    loop {
        match edge.receive() {
            Some(Message::Down(Down::Begin(begin))) => return (edge, begin),
            Some(_) => {}
            None => panic!("turned away"),
        }
    }
}

/// The same, registered at the home.
pub(crate) fn register(
    attacker: &Attacker,
    via: &str,
    random: u64,
) -> (AttackerEdge, CommitId, Registration) {
    let (mut edge, begin) = arrive(attacker, via, random, Vec::new());
    let (member, home) = (
        MemberId::new(attacker.greeting().node.name(), random),
        begin.home,
    );
    match ask(&mut edge, (member, home), 1, CallRequest::Register(None)) {
        Ok(CallResponse::Registered(registration)) => {
            let sequence = 0;
            (edge, CommitId { member, sequence }, registration)
        }
        refused => panic!("{refused:?}"),
    }
}

/// Calls by an edge of one's own, and waits for the result.
pub(crate) fn ask(
    edge: &mut AttackerEdge,
    (member, home): (MemberId, HomeId),
    number: u64,
    request: CallRequest,
) -> Result<CallResponse, CallError> {
    let call = CallId { member, number };
    edge.send(&Message::Up(Up::Call(message::Call {
        call,
        home,
        request,
    })));
    loop {
        match edge.receive() {
            Some(Message::Down(Down::CallResult(answer))) if answer.call == call => {
                return answer.result;
            }
            Some(_) => {}
            None => panic!("turned away"),
        }
    }
}
