//! The attacks. Each goes on until its process is killed.

use crate::reads;
use crate::stream::Stream;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;
use thorp_bench::{Result, process};
use thorp_model::{
    Attempt, Blob, CallRequest, Claim, CommitId, CommitRequest, Generation, MemberId, Message,
    NewValue, PageId, PageWrites, Part, Position, Registration, ReportNo, SegmentId, Slot, Stamp,
    Up, WriteOp, message,
};
use thorp_testing::{Attacker, made_up_receipt};

/// What floods the home.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attack {
    /// Sockets that say nothing, without a certificate (threat 6).
    SilentCallers,
    /// Handshakes, one after the other (threat 17).
    Handshakes,
    /// Registrations of ever new processes (threat 7).
    Registrations,
    /// Calls that look through all segments.
    Calls,
    /// Commits to a segment that is not there (threat 15).
    Commits,
    /// Fetches of pages by number (threat 21).
    Fetches,
    /// Watches that begin and end (threat 18).
    Watches,
    /// Reports of pages that it does not hold (threat 19).
    Reports,
    /// Claims that nothing proves (rule R9).
    Claims,
    /// Transactions that read very many pages each.
    Reads,
}

/// Messages that are sent before the answers are heard.
const AT_ONCE: u64 = 64;
const SILENT_SOCKETS: usize = 600;
const A_LITTLE: Duration = Duration::from_millis(1);

impl Attack {
    pub(crate) const ALL: [Attack; 10] = [
        Attack::SilentCallers,
        Attack::Handshakes,
        Attack::Registrations,
        Attack::Calls,
        Attack::Commits,
        Attack::Fetches,
        Attack::Watches,
        Attack::Reports,
        Attack::Claims,
        Attack::Reads,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Attack::SilentCallers => "silent_callers",
            Attack::Handshakes => "handshakes",
            Attack::Registrations => "registrations",
            Attack::Calls => "calls",
            Attack::Commits => "commits",
            Attack::Fetches => "fetches",
            Attack::Watches => "watches",
            Attack::Reports => "reports",
            Attack::Claims => "claims",
            Attack::Reads => "reads",
        }
    }
}

/// Plays the attacker: which attack, the directory of its certificate, and the home's address.
pub(crate) fn play(arguments: &[String]) -> Result<()> {
    let [attack, identity, address] = arguments else {
        return Err("an attack, a certificate and an address".into());
    };
    let attack = Attack::ALL.into_iter().find(|one| one.name() == attack);
    let attack = attack.ok_or("no such attack")?;
    let attacker = Attacker::at(identity);
    process::ready();
    match attack {
        Attack::SilentCallers => silent_callers(address),
        Attack::Handshakes => handshakes(&attacker, address),
        Attack::Reads => reads::flood(&attacker, address),
        _ => loop {
            // It is turned away for a while, or its edge ended.
            if let Some(stream) = Stream::begin(&attacker, address) {
                let mut flood = Flood(stream);
                while flood.flood(attack) {}
            }
            thread::sleep(A_LITTLE);
        },
    }
}

fn silent_callers(address: &str) -> Result<()> {
    let path = address
        .strip_prefix("unix:")
        .ok_or("a socket of this machine")?;
    loop {
        let sockets = (0..SILENT_SOCKETS).map_while(|_| UnixStream::connect(path).ok());
        let sockets: Vec<UnixStream> = sockets.collect();
        thread::sleep(A_LITTLE * 100);
        drop(sockets);
    }
}

fn handshakes(attacker: &Attacker, address: &str) -> Result<()> {
    let mut hello = attacker.greeting();
    loop {
        hello.node = MemberId::new(hello.node.name(), next_process(hello.node));
        // Whether it is let in or not.
        let _ = attacker.call(address, &hello);
    }
}

fn next_process(member: MemberId) -> u64 {
    (member.0 as u64).wrapping_add(1)
}

/// A stream that floods the home.
struct Flood(Stream);

impl Flood {
    /// Sends some messages, and hears what has come. Whether the edge is still there.
    fn flood(&mut self, attack: Attack) -> bool {
        for _ in 0..AT_ONCE {
            self.0.number += 1;
            if !self.0.edge.offer(&self.message(attack)) {
                break;
            }
        }
        loop {
            match self.0.edge.receive_within(A_LITTLE) {
                Some(Some(_)) => {}
                Some(None) => return false,
                None => return true,
            }
        }
    }

    fn message(&self, attack: Attack) -> Message {
        let (home, epoch) = (self.0.home, self.0.epoch);
        let page = PageId::new(
            1 + (self.0.number % 8) as u32,
            (self.0.number % 1_000) as u32,
        );
        Message::Up(match attack {
            Attack::Registrations => self.0.call(CallRequest::Register(None)),
            Attack::Commits => Up::Commit(self.commit(page)),
            Attack::Fetches => Up::Fetch(message::Fetch {
                home,
                epoch,
                page,
                attempt: Attempt(self.0.number),
                peers: false,
                ahead: false,
                updates: 0,
            }),
            Attack::Watches => Up::Watch(message::Watch {
                home,
                epoch,
                segment: SegmentId(page.segment.0),
                on: self.0.number.is_multiple_of(2),
            }),
            Attack::Reports => Up::Report(message::Report {
                home,
                epoch,
                report: ReportNo(self.0.number),
                pages: (0..100).map(|page| self.reported(page)).collect(),
            }),
            Attack::Claims => return self.claims(),
            _ => self.0.call(CallRequest::List {
                prefix: String::new(),
                after: String::new(),
            }),
        })
    }

    fn commit(&self, page: PageId) -> CommitRequest {
        let write = WriteOp::Write {
            generation: Generation(1),
            value: NewValue::Inline(Blob::from(vec![0; 1_000])),
        };
        let writes = PageWrites {
            page,
            slots: vec![(Slot(1), write)],
        };
        CommitRequest {
            id: CommitId {
                member: self.0.member,
                sequence: self.0.number,
            },
            registration: Registration(self.0.number),
            part: Part {
                home: self.0.home,
                evidence: Position(0),
                reads: Vec::new(),
                writes: vec![writes],
                under: None,
            },
            with: Vec::new(),
            depends_on: Vec::new(),
            after: Stamp::default(),
        }
    }

    fn reported(&self, number: u32) -> message::Reported {
        message::Reported {
            page: PageId::new(1, number),
            as_of: Position(1),
            complete: true,
        }
    }

    fn claims(&self) -> Message {
        let receipt = made_up_receipt(self.0.home);
        let claim = Claim {
            receipt,
            position: Position(self.0.number),
            clock: self.0.number,
        };
        Message::Claims(vec![(self.0.home, claim)])
    }
}
