//! Effects that are not messages, as a person reads them.

use super::text::lock;
use super::{names, rights};
use thorp_model::records;
use thorp_model::{Batch, Op, Outcome, PageId, Table};

/// What a batch writes.
pub(crate) fn batch(batch: &Batch) -> String {
    let ops: Vec<String> = batch.ops.iter().map(op).collect();
    ops.join(", ")
}

fn op(op: &Op) -> String {
    match op {
        Op::Put { table, key, .. } => record(*table, key),
        Op::Delete { table, key } => format!("no more {}", record(*table, key)),
    }
}

fn record(table: Table, key: &[u8]) -> String {
    let number = || <[u8; 8]>::try_from(key).map_or(0, u64::from_be_bytes);
    match table {
        Table::Log => format!("log {}", number()),
        Table::Pages => format!("page {}", names::page(PageId::from_key(number()))),
        Table::Outcomes => pair("outcome", key),
        Table::Staged => pair("staged value", key),
        Table::Meta if let Some(page) = records::quarantine_of(key) => {
            format!("what is aside of {}", names::page(page))
        }
        Table::Meta => match (records::segment_of(key), records::member_of(key)) {
            (Some(segment), _) => format!("segment {}", names::segment(segment)),
            (_, Some(registration)) => format!("member {registration}"),
            _ if let Some((registration, number)) = records::vote_of(key) => {
                format!("vote {number} of member {registration}")
            }
            _ if let Some(commit) = records::joint_of(key) => format!("joint {}", commit.sequence),
            _ if let Some(home) = records::receipt_of(key) => format!("receipt of {home}"),
            _ if let Some(registration) = records::carried_of(key) => {
                format!("who brought member {registration}")
            }
            _ if let Some(registration) = records::delegation_of(key) => {
                format!("delegation of member {registration}")
            }
            _ if let Some(segment) = records::usage_of(key) => {
                format!("what is used of {}", names::segment(segment))
            }
            _ if let Some(segment) = records::system_of(key) => {
                format!("how far system pages of {} go", names::segment(segment))
            }
            _ if let Some(name) = records::made_by(key) => {
                format!("segments made by {}", rights::name(name))
            }
            _ if let Some(segment) = records::rights_of(key) => {
                format!("rights of {}", names::segment(segment))
            }
            _ if let Some((_, segment)) = records::saved_of(key) => {
                format!("how far a log of {} is", names::segment(segment))
            }
            _ if let Some(segment) = records::lease_of(key) => {
                format!("that {} has leases", names::segment(segment))
            }
            _ if let Some(segment) = records::read_lease_of(key) => {
                format!("that {} has read leases", names::segment(segment))
            }
            _ if let Some(fence) = records::lock_of(key) => lock(fence),
            _ if key.starts_with(b"update/") => String::from("update"),
            _ if key == records::LEFT_KEY => String::from("what has left it"),
            _ => String::from_utf8_lossy(key).into_owned(),
        },
    }
}

fn pair(what: &str, key: &[u8]) -> String {
    match records::pair_of(key) {
        Some((registration, number)) => format!("{what} {number} of member {registration}"),
        None => String::from(what),
    }
}

/// A committed outcome's stamp.
pub(crate) fn stamp_of(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Committed { stamp, .. } => names::stamp(*stamp),
        Outcome::Refused(_) => String::from("none"),
    }
}
