//! One sample of each record of a home's store, with its key, and of an image.

use crate::messages::{changes, commit, receipt, refused};
use crate::values::{commit_id, image, member, overflow, page, stamp};
use crate::{Sample, sample};
use thorp_model::records::*;
use thorp_model::{HomeId, NameId, Outcome, PageNo, Position, Registration, SegmentId};

/// Samples of all records and keys.
pub(crate) fn all() -> Vec<Sample> {
    let mut samples = vec![("image".to_owned(), image().bytes().to_vec())];
    samples.extend(keys());
    samples.extend(records());
    samples.extend(refused().into_iter().map(|refusal| {
        let outcome = Outcome::Refused(refusal);
        sample("record outcome", &OutcomeRecord { outcome })
    }));
    samples
}

fn keys() -> Vec<Sample> {
    let registration = Registration(130);
    let keys = [
        ("home", HOME_KEY.to_vec()),
        ("next", NEXT_KEY.to_vec()),
        ("clock", CLOCK_KEY.to_vec()),
        ("opened", OPENED_KEY.to_vec()),
        ("installed", INSTALLED_KEY.to_vec()),
        ("segment", segment_key(SegmentId(17))),
        ("member", member_key(registration)),
        ("aside", quarantine_key(page())),
        ("vote", vote_key(registration, 77)),
        ("joint", joint_key(commit_id())),
        ("joints", JOINTS_KEY.to_vec()),
        ("below", below_key(NameId(300))),
        ("receipt", receipt_key("dale")),
        ("usage", usage_key(SegmentId(17))),
        ("system", system_key(SegmentId(17))),
        ("made", made_key(NameId(300))),
        ("log", log_key(Position(5_000_000_000))),
        ("page", page_key(page())),
        ("pair", pair_key(registration, 77)),
    ];
    keys.map(|(name, key)| (format!("key {name}"), key)).into()
}

fn records() -> Vec<Sample> {
    let position = Position(5_000_000_000);
    let stamp = stamp();
    let home = HomeRecord {
        format: FORMAT_VERSION,
        home: HomeId(3),
        name: String::from("alps"),
    };
    let next = NextRecord {
        segment: SegmentId(17),
        registration: Registration(130),
        life: 300,
    };
    let segment = SegmentRecord {
        path: String::from("shop/stock"),
        granted: PageNo(320),
        extent: PageNo(300),
        overflow: PageNo(PageNo::OVERFLOW_FIRST.0 + 12),
        removing: true,
    };
    let log = LogRecord {
        position,
        stamp,
        commit: Some(commit_id()),
        changes: changes(),
    };
    let committed = Outcome::Committed { position, stamp };
    let vote = VoteRecord {
        request: commit(),
        stamp,
        ended: None,
    };
    let ended = VoteRecord {
        ended: Some(committed.clone()),
        ..vote.clone()
    };
    let staged = StagedRecord {
        segment: SegmentId(17),
        overflow: overflow(),
        have: 2,
    };
    let used = Used {
        pages: 130,
        granted: 320,
        overflow: 12,
    };
    let usage = UsageRecord {
        maker: Some(NameId(300)),
        names: vec![(NameId(300), used)],
        others: Used::default(),
    };
    let system = SystemRecord {
        end: PageNo(3).system(),
    };
    let made = MadeRecord {
        last: SegmentId(17),
        count: 3,
    };
    let modified = changes().into_iter().map(|change| Modified {
        position,
        stamp,
        change,
    });
    let aside = QuarantineRecord {
        changes: modified.collect(),
    };
    let joint = JointRecord {
        stamp,
        homes: vec![HomeId(3), HomeId(9)],
    };
    let own = LogRecord {
        commit: None,
        changes: Vec::new(),
        ..log.clone()
    };
    vec![
        sample("record home", &home),
        sample("record next", &next),
        sample("record segment", &segment),
        sample("record log", &log),
        sample("record log of the home itself", &own),
        sample("record outcome", &OutcomeRecord { outcome: committed }),
        sample("record vote", &vote),
        sample("record vote that ended", &ended),
        sample("record member", &MemberRecord { member: member() }),
        sample("record staged", &staged),
        sample("record usage", &usage),
        sample("record made", &made),
        sample("record system", &system),
        sample("record aside", &aside),
        sample("record joint", &joint),
        sample("record below", &BelowRecord { stamp }),
        sample("record receipt", &ReceiptRecord { receipt: receipt() }),
    ]
}
