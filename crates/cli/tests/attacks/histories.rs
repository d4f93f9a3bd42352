//! What a member makes up about the history of a home (rule R9): it comes to nothing.

use crate::common::one_site::OneSite;
use crate::common::thorp;
use crate::scene::join;
use serde_json::Value;
use std::path::Path;
use std::thread;
use std::time::Duration;
use thorp_model::limits::{CLAIMS_MAX, EXTENT_PAGES, OVERFLOW_CHUNK_BYTES};
use thorp_model::{
    Blob, CallId, CallRequest, CallResponse, Claim, Down, Epoch, HomeId, Mark, MemberId, Message,
    Position, Receipt, Up, Verdict, message,
};
use thorp_testing::{Attacker, AttackerEdge, HomeProcess, finish, made_up_receipt};

fn status(home: &HomeProcess) -> Value {
    let said = thorp().run(&["status", &home.http, "--json"]);
    serde_json::from_str(&said.out).unwrap()
}

fn claim_of(receipt: Receipt) -> Claim {
    Claim {
        position: receipt.point.position,
        clock: receipt.point.clock,
        receipt,
    }
}

/// A member that claims what a test wants, and keeps all receipts that it hears.
struct Claimant {
    edge: AttackerEdge,
    member: MemberId,
    home: HomeId,
    epoch: Epoch,
    receipts: Vec<Receipt>,
    calls: u64,
}

impl Claimant {
    fn come(attacker: &Attacker, via: &str, claims: Vec<(HomeId, Claim)>) -> Option<Self> {
        let hello = attacker.greeting();
        let mut edge = attacker.call_and_wait(via, &hello).unwrap();
        edge.send(&Message::Claims(claims));
        loop {
            if let Message::Down(Down::Begin(begin)) = edge.receive()? {
                return Some(Claimant {
                    edge,
                    member: hello.node,
                    home: begin.home,
                    epoch: begin.epoch,
                    receipts: vec![begin.receipt],
                    calls: 0,
                });
            }
        }
    }

    fn hear(&mut self) -> Down {
        loop {
            match self.edge.receive() {
                Some(Message::Down(Down::Receipt(receipt))) => self.receipts.push(receipt),
                Some(Message::Down(Down::Heartbeat(_)) | Message::Alive | Message::Homes(_)) => {}
                Some(Message::Down(down)) => return down,
                other => panic!("{other:?}"),
            }
        }
    }

    fn call(&mut self, request: CallRequest) -> Option<CallResponse> {
        self.calls += 1;
        let call = CallId {
            member: self.member,
            number: self.calls,
        };
        let home = self.home;
        self.edge.send(&Message::Up(Up::Call(message::Call {
            call,
            home,
            request,
        })));
        match self.hear() {
            Down::CallResult(answer) => answer.result.ok(),
            other => panic!("{other:?}"),
        }
    }

    /// What the home says of a claim, asked as only sites ask.
    fn judge(&mut self, claim: Claim) -> Verdict {
        self.edge.send(&Message::Up(Up::Judge(message::Judge {
            epoch: self.epoch,
            question: 7,
            claim,
        })));
        match self.hear() {
            Down::Judged(judged) => judged.verdict,
            other => panic!("{other:?}"),
        }
    }
}

fn start(dir: &Path) -> (OneSite, Attacker) {
    let village = OneSite::start(dir, &["anna", "mallory"], &[]);
    let mallory = Attacker::at(&dir.join("mallory").display().to_string());
    (village, mallory)
}

/// Rule R9: a child's own numbers and receipts that the home has not made close nothing.
#[test]
fn claims_that_are_made_up_close_no_home() {
    let dir = tempfile::tempdir().unwrap();
    let (village, mallory) = start(dir.path());
    for via in [&village.home.via, &village.site_via] {
        let honest = Claimant::come(&mallory, via, Vec::new()).unwrap();
        let (home, real) = (honest.home, honest.receipts[0]);
        drop(honest);
        let mut lies = vec![claim_of(made_up_receipt(home)); 8];
        lies[1].receipt.point.mark = Mark(u64::MAX);
        for lie in &mut lies[2..] {
            *lie = claim_of(real);
        }
        lies[2].receipt.point.mark = Mark(u64::MAX);
        lies[3].receipt.point.position = Position(u64::MAX);
        lies[4].receipt.point.clock = u64::MAX;
        lies[5].receipt.point.life.counter = 0;
        lies[6].position = Position(u64::MAX);
        lies[7].clock = u64::MAX;
        for lie in lies {
            let mut member = Claimant::come(&mallory, via, vec![(home, lie)]).unwrap();
            // A site cuts off a member that asks so.
            if *via == village.home.via {
                member.judge(lie);
                member.judge(claim_of(real));
            }
        }
        // Under another home's number, more than one, and more than there may be.
        let other = HomeId(home.0 ^ 1);
        let many = |count| vec![(other, claim_of(made_up_receipt(other))); count];
        let claims = [
            many(CLAIMS_MAX - 2),
            vec![
                (home, claim_of(real)),
                (home, claim_of(made_up_receipt(home))),
            ],
        ];
        let member = Claimant::come(&mallory, via, claims.concat()).unwrap();
        drop(member);
        assert!(Claimant::come(&mallory, via, many(CLAIMS_MAX + 1)).is_none());
    }
    assert_eq!(status(&village.home)["history"]["closed"], Value::Null);
    let anna = join(dir.path(), "anna", &village.site_via);
    let letters = anna.create("thorp://alps/letters").unwrap();
    anna.transact(|tx| tx.create(&letters, b"dear bert".to_vec()))
        .unwrap();
}

/// Rule R9: whatever is under way, and however often the home is killed: each receipt that it gave is in its history.
#[test]
fn receipts_that_were_kept_over_crashes_close_no_home() {
    let dir = tempfile::tempdir().unwrap();
    let mut home = thorp().home_with(dir.path(), &["--limit-bytes", "1 MiB"]);
    for name in ["anna", "mallory"] {
        let out = dir.path().join(name).display().to_string();
        let words = ["invite", name, "--dir", &home.authority, "--out", &out];
        assert_eq!(thorp().run(&words).code, 0);
    }
    let mallory = Attacker::at(&dir.path().join("mallory").display().to_string());
    let mut kept: Vec<Receipt> = Vec::new();
    for life in 0..12_u64 {
        let mut member = Claimant::come(&mallory, &home.via, Vec::new()).unwrap();
        for receipt in &kept {
            assert_eq!(
                member.judge(claim_of(*receipt)),
                Verdict::Known,
                "{receipt:?}"
            );
        }
        let registration = match member.call(CallRequest::Register(None)) {
            Some(CallResponse::Registered(registration)) => registration,
            other => panic!("{other:?}"),
        };
        // Batches of all kinds, also some that only remove, and in later lives on a full store.
        for number in 0..(20 + 3 * life) {
            let path = format!("m{life}-{number}");
            let Some(CallResponse::Segment(made)) =
                member.call(CallRequest::Open { path, create: true })
            else {
                continue;
            };
            let token = life * 1_000 + number;
            let chunk = || Blob::from(vec![number as u8; OVERFLOW_CHUNK_BYTES]);
            member.call(CallRequest::Stage {
                segment: made.id,
                registration,
                token,
                bytes: 2 * OVERFLOW_CHUNK_BYTES as u64,
                index: 0,
                chunks: vec![chunk(), chunk()],
            });
            member.call(CallRequest::Reserve {
                segment: made.id,
                pages: EXTENT_PAGES,
            });
            if number % 3 != 0 {
                member.call(CallRequest::Unstage {
                    registration,
                    token,
                });
            }
            if number % 4 == 1 {
                member.call(CallRequest::Remove { segment: made.id });
            }
        }
        thread::sleep(Duration::from_millis(100 * (life % 6)));
        while let Some(Some(message)) = member.edge.receive_within(Duration::from_millis(1)) {
            if let Message::Down(Down::Receipt(receipt)) = message {
                member.receipts.push(receipt);
            }
        }
        kept.append(&mut member.receipts);
        // It is killed in the middle.
        drop(home);
        home = thorp().home_with(dir.path(), &["--limit-bytes", "1 MiB"]);
    }
    assert!(kept.len() > 100, "{}", kept.len());
    assert_eq!(status(&home)["history"]["closed"], Value::Null);
    let said = finish(home.command(&["ls"]));
    assert_eq!(said.code, 0, "{}", said.err);
}
