//! The newest receipts of other homes (rule R9).

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use thorp_model::{Claim, HomeId, Op, Receipt, Table, records};

/// The newest receipt of each home that is configured, in memory and in the store.
///
/// Each name has one place: so a node that names many homes takes no more.
#[derive(Debug, Default)]
pub(in crate::home) struct OtherReceipts {
    newest: BTreeMap<String, Receipt>,
    /// Names whose receipt in the store is another one.
    unsaved: BTreeSet<String>,
}

impl OtherReceipts {
    /// Takes a receipt from the store. That of a home that is not configured any more goes.
    pub(in crate::home) fn recover(&mut self, name: &str, receipt: Receipt, is_configured: bool) {
        match is_configured {
            true => drop(self.newest.insert(name.to_string(), receipt)),
            false => drop(self.unsaved.insert(name.to_string())),
        }
    }

    /// The home of a name proves how far it is. A name that stands for another home now begins anew.
    pub(in crate::home) fn take(&mut self, name: &str, receipt: Receipt) {
        let is_news = |known: &Receipt| known.home != receipt.home || receipt.is_news_to(known);
        if self.newest.get(name).is_none_or(is_news) {
            self.newest.insert(name.to_string(), receipt);
            self.unsaved.insert(name.to_string());
        }
    }

    /// What this home knows of the others rests on these.
    pub(in crate::home) fn claims(&self) -> Vec<(HomeId, Claim)> {
        let claim = |receipt: &Receipt| Claim {
            receipt: *receipt,
            position: receipt.point.position,
            clock: receipt.point.clock,
        };
        let receipts = self.newest.values();
        receipts
            .map(|receipt| (receipt.home, claim(receipt)))
            .collect()
    }

    /// The operations that store what is new. They ride on a batch that is written anyway: with a vote, with its end, or
    /// with a reservation of the clock. So two idle homes do not write for ever because the other one has written.
    pub(in crate::home) fn save(&mut self) -> Vec<Op> {
        let unsaved = core::mem::take(&mut self.unsaved).into_iter();
        let ops = unsaved.map(|name| {
            let key = records::receipt_key(&name);
            match self.newest.get(&name) {
                Some(&receipt) => {
                    records::put(Table::Meta, key, &records::ReceiptRecord { receipt })
                }
                None => records::delete(Table::Meta, key),
            }
        });
        ops.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thorp_model::{Incarnation, LifeId, Mark, Point, Position, ReceiptKey};

    fn receipt(home: u32, mark: u64) -> Receipt {
        let point = Point {
            life: LifeId {
                counter: 1,
                random: 7,
            },
            mark: Mark(mark),
            position: Position(mark),
            clock: mark,
        };
        let key = ReceiptKey::new([3; 32]);
        Receipt::new(HomeId(home), Incarnation::default(), point, &key)
    }

    #[test]
    fn a_name_has_one_place_and_the_newest_stays() {
        let mut receipts = OtherReceipts::default();
        for mark in [5, 9, 7] {
            receipts.take("dale", receipt(2, mark));
        }
        assert_eq!(receipts.claims()[0].1.receipt, receipt(2, 9));
        receipts.take("dale", receipt(3, 1));
        assert_eq!(receipts.claims().len(), 1);
        assert_eq!(receipts.claims()[0].0, HomeId(3));
    }

    #[test]
    fn what_is_new_is_saved_once() {
        let mut receipts = OtherReceipts::default();
        receipts.take("dale", receipt(2, 5));
        receipts.take("dale", receipt(2, 6));
        assert_eq!(receipts.save().len(), 1);
        receipts.take("dale", receipt(2, 4));
        assert_eq!(receipts.save().len(), 0, "nothing is new");
    }

    #[test]
    fn that_of_a_home_that_is_not_configured_any_more_goes() {
        let mut receipts = OtherReceipts::default();
        receipts.recover("isle", receipt(3, 5), false);
        receipts.recover("dale", receipt(2, 5), true);
        assert_eq!(receipts.claims().len(), 1);
        let gone = records::delete(Table::Meta, records::receipt_key("isle"));
        assert_eq!(receipts.save(), [gone]);
    }
}
