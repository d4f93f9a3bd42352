//! What tests of several parts have in common.

use alloc::string::String;
use alloc::vec::Vec;
use thorp_model::{
    Epoch, HomeId, Incarnation, LifeId, Mark, Point, Position, Receipt, ReceiptKey, Stamp, Verdict,
    message,
};

/// A receipt of a home in its first life.
pub(crate) fn receipt(home: HomeId) -> Receipt {
    let life = LifeId {
        counter: 1,
        random: 0,
    };
    let point = Point {
        life,
        mark: Mark(0),
        position: Position(0),
        clock: 0,
    };
    let key = ReceiptKey::new([0; 32]);
    Receipt::new(home, Incarnation::default(), point, &key)
}

/// The beginning of a stream to a member.
pub(crate) fn begin(home: HomeId, name: &str, epoch: u64, position: u64) -> message::Begin {
    message::Begin {
        home,
        name: String::from(name),
        epoch: Epoch(epoch),
        position: Position(position),
        watermark: Stamp::default(),
        silent_ms: 0,
        readers: Vec::new(),
        sites: Vec::new(),
        receipt: receipt(home),
        verdict: Verdict::Known,
    }
}
