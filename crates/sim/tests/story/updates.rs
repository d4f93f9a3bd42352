//! What a story says of updates (rules C3, C6 and C7): which of them a member keeps in its log, and what it shows of an object.

use super::disk::Disk;
use super::names::{self, Homes};
use super::program::Program;
use super::text::Pen;
use thorp_cache::ReadSet;
use thorp_model::records::{self, UpdateRecord};
use thorp_model::{
    CallRequest, Content, Generation, LockMode, ObjectId, PageWrites, Procedure, Publish, Reader,
    Scan, SegmentId, Table, WriteOp,
};
use thorp_protocol::{Request, Response};

/// What a member asks for: `updates S.x append=b within 500ms`, `follows s no more`, `pulls s within 500ms`,
/// `pulls s but 2` (it may miss so many answered changes).
pub(crate) fn request(homes: &Homes, verb: &str, what: &str) -> Request {
    let (what, patience) = what.split_once(" within ").unwrap_or((what, "0ms"));
    let patience_ms = patience.trim_end_matches("ms").parse();
    let patience_ms = patience_ms.expect("so many ms");
    match verb {
        "updates" => {
            let (target, op) = what.split_once(' ').expect("OBJECT PROCEDURE=VALUE");
            let (object, generation) = names::object_id(target).expect("an object");
            let writes = PageWrites {
                page: object.page,
                slots: vec![(object.slot, applied(generation, op))],
            };
            Request::Update {
                home: homes.of(object.page.segment),
                writes: vec![writes],
                patience_ms,
            }
        }
        "follows" => {
            let name = what.strip_suffix(" no more").unwrap_or(what);
            let segment = segment(name);
            Request::Follow {
                home: homes.of(segment),
                segment,
                on: name == what,
            }
        }
        _ => {
            let (name, mods) = what.split_once(" but ").unwrap_or((what, "0"));
            let segment = segment(name);
            Request::Pull {
                home: homes.of(segment),
                segments: vec![segment],
                patience_ms,
                mods: mods.parse().expect("so many changes"),
            }
        }
    }
}

/// The lock that a session asks for: `s s2 to read within 500ms`.
pub(crate) fn lock(what: &str) -> CallRequest {
    let (what, patience) = what.split_once(" within ").unwrap_or((what, "0ms"));
    let patience_ms = patience.trim_end_matches("ms").parse();
    let (names, mode) = match what.strip_suffix(" to read") {
        Some(names) => (names, LockMode::Read),
        None => (what, LockMode::Write),
    };
    CallRequest::Lock {
        segments: names.split_whitespace().map(segment).collect(),
        mode,
        patience_ms: patience_ms.expect("so many ms"),
    }
}

fn applied(generation: Generation, op: &str) -> WriteOp {
    let (procedure, value) = op.split_once('=').expect("PROCEDURE=VALUE");
    let bytes = names::bytes_of(value).into();
    let procedure = match procedure {
        "append" => Procedure::Append(bytes),
        "insert" => Procedure::Insert(bytes),
        other => panic!("no procedure is called {other}"),
    };
    WriteOp::Apply {
        generation,
        procedures: vec![procedure],
    }
}

fn segment(name: &str) -> SegmentId {
    names::segment_id(name).expect("a segment")
}

/// What is in the log of a member.
pub(crate) fn in_log(disk: &Disk) -> Vec<UpdateRecord> {
    let (from, to) = records::update_range();
    let mut all = Vec::new();
    let read = disk.scan(Table::Meta, &from, &to, &mut |key, value| {
        all.push(records::decode(Table::Meta, key, value).expect("a sound record"));
        Scan::Go
    });
    read.expect("the disk of a story can be read");
    all
}

/// What the program hears of an update, or of those of others; none: of something else.
pub(crate) fn response(pen: &Pen<'_>, response: &Response) -> Option<String> {
    match response {
        Response::Kept { id, is_leased } => {
            let lease = if *is_leased {
                "with a lease"
            } else {
                "without a lease"
            };
            Some(format!("{} is kept, {lease}", pen.update_id(*id)))
        }
        Response::NotKept(why) => Some(format!("the update is not kept: {why:?}")),
        Response::Following => Some(String::from("following")),
        _ => None,
    }
}

/// Which updates are shown from now on, and which no more.
pub(crate) fn shown(pen: &Pen<'_>, publish: &Publish) -> String {
    let mut said = String::new();
    for update in &publish.tentative.shown {
        let over = update.writes.iter().flat_map(|writes| {
            let page = writes.page;
            let slots = writes.slots.iter();
            slots.map(move |(slot, _)| names::object(ObjectId { page, slot: *slot }))
        });
        let over: Vec<String> = over.collect();
        said += &format!(", {} over {}", pen.update_id(update.id), over.join(" "));
    }
    for id in &publish.tentative.settled {
        said += &format!(", no more {}", pen.update_id(*id));
    }
    said
}

/// An object as a program sees it that reads tentatively: as committed, with the updates that are shown over it.
pub(crate) fn seen(program: &Program, name: &str) -> String {
    let (object, generation) = names::object_id(name).expect("an object");
    let place = program.homes.place(object.page);
    let committed = match ReadSet::new().read(&program.cache, place, object.slot) {
        Ok(read) => match read.content {
            Content::Value(bytes) => Some((generation, bytes.to_vec())),
            Content::Free => None,
            _ => return String::from("a hole"),
        },
        Err(_) => return String::from("nothing"),
    };
    let overlay = program
        .cache
        .updates_of(&[(place.home, object.page.segment)]);
    match overlay.over(place, object.slot, committed) {
        Some((_, bytes)) => names::value_of(object.page, object.slot, &bytes),
        None => String::from("no object"),
    }
}
