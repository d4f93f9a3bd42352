//! Updates of logs, against a home and a site with a log (rules C6 and C7).

use crate::common::one_site::OneSite;
use crate::scene::{Writer, creation, home_with, intrude, invite, join, open, site};
use std::path::Path;
use thorp_client::{Procedure, Visit};
use thorp_model::message::{Keep, Kept, Save};
use thorp_model::{
    AUTHORSHIP_VERSION, Author, AuthorText, Authorship, Blob, Down, Generation, InvalidCommit,
    LogId, MemberId, NameId, NotKept, PageId, PageWrites, Position, Proof, Refusal, SegmentId,
    Slot, Up, UpdateId, WriteOp,
};
use thorp_testing::{Attacker, Intruder};

fn path(dir: &Path, name: &str) -> String {
    dir.join(name).display().to_string()
}

/// The first object of a segment, to be written over.
fn writes(page: PageId, bytes: &[u8]) -> Vec<PageWrites> {
    let op = WriteOp::Apply {
        generation: Generation(1),
        procedures: vec![Procedure::Append(Blob::from(bytes))],
    };
    let slots = vec![(Slot(0), op)];
    vec![PageWrites { page, slots }]
}

/// Rule C7: nobody writes under another's name, whatever it has signed, or another has signed for another log.
#[test]
fn a_log_makes_no_author_up() {
    let dir = tempfile::tempdir().unwrap();
    let village = OneSite::start(dir.path(), &["anna", "mallory"], &[]);
    let mut anna = Writer::new(intrude(dir.path(), "anna", &village.home.via));
    let segment = open(&mut anna.intruder, "private");
    anna.reserve(segment, 1);
    let page = PageId::new(segment.0, 1);
    anna.write(page, Slot(0), creation(b"a")).unwrap();
    anna.restrict(segment, "admin anna\nread mallory\n")
        .unwrap();
    let of_anna = Attacker::at(&path(dir.path(), "anna"));
    let of_mallory = Attacker::at(&path(dir.path(), "mallory"));
    let mut mallory = Writer::new(intrude(dir.path(), "mallory", &village.home.via));
    let by = Author {
        member: MemberId::new(NameId::of("anna"), 7),
        sequence: 1,
    };
    let evil = writes(page, b"evil");
    let text = |log: &str| AuthorText {
        version: AUTHORSHIP_VERSION,
        home: anna.intruder.home,
        segment,
        log: NameId::of(log),
        by,
        writes: &evil,
    };
    let proofs = [
        Proof::none(),
        of_mallory.prove(&text("mallory")),
        // Anna gave it to the log of her site, and mallory has got hold of it.
        of_anna.prove(&text("office-log")),
        // It is Anna's signature, under something else.
        of_anna.prove(&AuthorText {
            writes: &[],
            ..text("mallory")
        }),
    ];
    for (number, proof) in (1..).zip(proofs) {
        let refused = save(
            &mut mallory,
            (segment, number),
            &evil,
            Authorship { by, proof },
        );
        let reason = InvalidCommit::NotProven;
        assert_eq!(refused, Err(Refusal::Invalid { reason }), "{number}");
    }
    // And the check is not blind: what Anna has signed for this log is hers to write.
    let proof = of_anna.prove(&text("mallory"));
    let saved = save(&mut mallory, (segment, 5), &evil, Authorship { by, proof });
    assert_eq!(saved, Ok(()));
}

/// Saves an update of the log of a writer that another one is said to have written.
fn save(
    writer: &mut Writer,
    (segment, number): (SegmentId, u64),
    writes: &[PageWrites],
    author: Authorship,
) -> Result<(), Refusal> {
    let mut request = writer.request(Vec::new(), writes.to_vec());
    request.part.evidence = Position(0);
    let id = request.id;
    let log = LogId(writer.intruder.member);
    let update = UpdateId {
        log,
        segment,
        number,
    };
    writer.intruder.send(Up::Save(Box::new(Save {
        request,
        update,
        confirmed: number - 1,
        custody: Proof::none(),
        author: Some(author),
    })));
    loop {
        match writer.intruder.hear() {
            Down::Refused(refused) if refused.commit == id => return Err(refused.refusal),
            Down::Committed(committed) if committed.commit == id => return Ok(()),
            Down::Saved(saved) if saved.step.commit == Some(id) => return Ok(()),
            _ => {}
        }
    }
}

/// Rule C6: the log of a site keeps what its author has signed, and answers nobody but through its site.
#[test]
fn the_log_of_a_site_keeps_nothing_for_others() {
    let dir = tempfile::tempdir().unwrap();
    let home = home_with(dir.path(), &[("anna", "member"), ("mallory", "member")]);
    let log = invite(dir.path(), &home, "office-log", "member");
    let site_dir = path(dir.path(), "office-dir");
    let flags = ["--log-identity", &log, "--dir", &site_dir];
    let (_site, via) = site(dir.path(), &home, "office", ("alps", &home.via), &flags);
    let anna = join(dir.path(), "anna", &via);
    let notes = anna.open_or_create("thorp://alps/notes").unwrap();
    let counter = anna
        .transact(|tx| tx.create(&notes, [0].as_slice()))
        .unwrap();
    let object = counter.object;
    let of_mallory = Attacker::at(&path(dir.path(), "mallory"));
    let mut mallory = intrude(dir.path(), "mallory", &via);
    let keep = |mallory: &Intruder, by: Author, proof: Proof, log: &str| {
        mallory.send(Up::Keep(Box::new(Keep {
            home: mallory.home,
            log: NameId::of(log),
            author: Authorship { by, proof },
            writes: writes(object.page, b"evil"),
            patience_ms: 0,
        })));
    };
    let own = Author {
        member: mallory.member,
        sequence: 1,
    };
    // Whose log it is, mallory learns as everybody does.
    keep(&mallory, own, Proof::none(), "nobody");
    let office = NameId::of("office-log");
    assert_eq!(answer(&mut mallory), Err(NotKept::OtherLog(office)));
    keep(&mallory, own, Proof::none(), "office-log");
    assert_eq!(answer(&mut mallory), Err(NotKept::NotProven));
    let nothing = AuthorText {
        version: AUTHORSHIP_VERSION,
        home: mallory.home,
        segment: object.page.segment,
        log: office,
        by: own,
        writes: &[],
    };
    keep(&mallory, own, of_mallory.prove(&nothing), "office-log");
    assert_eq!(answer(&mut mallory), Err(NotKept::NotProven));
    // An answer that nobody asked for, in the name of the log.
    let anna_is = Author {
        member: MemberId::new(NameId::of("anna"), 1),
        sequence: 1,
    };
    mallory.send(Up::Kept(Kept {
        home: mallory.home,
        by: anna_is,
        result: Err(NotKept::LogFull),
    }));
    // Another's update: the site ends the connection.
    keep(&mallory, anna_is, Proof::none(), "office-log");
    mallory.edge.eventually_ends();
    // The log goes on, and Anna with it.
    let mut visit = Visit::open(&anna, "eventual".parse().unwrap(), &[&notes]).unwrap();
    visit.apply(&counter, Procedure::Add(1)).unwrap();
    visit.close().unwrap();
}

fn answer(intruder: &mut Intruder) -> Result<UpdateId, NotKept> {
    loop {
        if let Down::Kept(kept) = intruder.hear() {
            return kept.result.map(|kept| kept.id);
        }
    }
}
