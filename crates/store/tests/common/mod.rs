//! What the tests of the store share.
#![allow(dead_code, unreachable_pub, reason = "each test file uses some of it")]

use std::path::Path;
use thorp_model::{Batch, Mark, Op, Purpose, Reader as _, Scan, Table};
use thorp_store::{Options, Store};

pub fn open(dir: &Path) -> Store {
    Store::open(dir, Options::default()).unwrap()
}

pub fn batch(mark: u64, ops: Vec<Op>) -> Batch {
    Batch {
        mark: Mark(mark),
        purpose: purpose(&ops),
        ops,
    }
}

/// The purpose that a home would give.
fn purpose(ops: &[Op]) -> Purpose {
    let brings = |op: &Op| {
        matches!(
            op,
            Op::Put {
                table: Table::Log | Table::Staged,
                ..
            }
        )
    };
    match ops.iter().any(brings) {
        true => Purpose::NewData,
        false if ops.iter().any(Op::is_put) => Purpose::Housekeeping,
        false => Purpose::Removal,
    }
}

pub fn put(table: Table, key: &str, value: &str) -> Op {
    Op::Put {
        table,
        key: key.into(),
        value: value.into(),
    }
}

pub fn delete(table: Table, key: &str) -> Op {
    Op::Delete {
        table,
        key: key.into(),
    }
}

pub fn get(store: &Store, table: Table, key: &str) -> Option<String> {
    let value = store.get(table, key.as_bytes()).unwrap()?;
    Some(String::from_utf8(value).unwrap())
}

pub fn scan(store: &Store, table: Table, from: &str, to: &str) -> Vec<String> {
    let mut keys = Vec::new();
    let mut visit = |key: &[u8], _: &[u8]| {
        keys.push(String::from_utf8(key.to_vec()).unwrap());
        Scan::Go
    };
    store
        .scan(table, from.as_bytes(), to.as_bytes(), &mut visit)
        .unwrap();
    keys
}
