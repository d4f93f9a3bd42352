//! The books at a Thorp home: an object for each lot, and one with the references to all of them.

use super::{Bid, Books, Lot, Read, Taken, first_lots, on_shelf};
use std::error::Error;
use thorp_client::{Member, Ref, Result as Thorp, Segment};

/// Books at a home.
#[derive(Clone)]
pub struct AtHome {
    member: Member,
    lots: Vec<Ref<Lot>>,
}

impl AtHome {
    /// The books in a segment. Whoever comes first makes the lots.
    ///
    /// # Errors
    ///
    /// As [`Member::transact`].
    pub fn open(member: &Member, segment: &Segment) -> Thorp<Self> {
        let lots = member.transact(|tx| {
            if let Some(all) = tx.root(segment, "lots")? {
                return tx.get(&Ref::new(all));
            }
            let made: Thorp<Vec<Ref<Lot>>> = first_lots()
                .map(|lot| tx.create_typed(segment, &lot))
                .collect();
            let made = made?;
            let all = tx.create_typed(segment, &made)?;
            tx.set_root(segment, "lots", Some(all.reference()))?;
            Ok(made)
        })?;
        Ok(AtHome {
            member: member.clone(),
            lots,
        })
    }

    fn find(&self, number: u32) -> Option<Ref<Lot>> {
        self.lots.get(number as usize).copied()
    }
}

impl Books for AtHome {
    fn lot(&mut self, number: u32) -> Result<Read<Option<Lot>>, Box<dyn Error>> {
        let Some(lot) = self.find(number) else {
            return Ok((None, None));
        };
        let (lot, basis) = self.member.answer(|tx| tx.get(&lot))?;
        Ok((Some(lot), basis.fields()))
    }

    fn shelf(&mut self, number: u32) -> Result<Read<Vec<Lot>>, Box<dyn Error>> {
        let lots: Vec<Ref<Lot>> = on_shelf(number).filter_map(|lot| self.find(lot)).collect();
        let (lots, basis) = self.member.answer(|tx| {
            lots.iter()
                .map(|lot| tx.get(lot))
                .collect::<Thorp<Vec<Lot>>>()
        })?;
        Ok((lots, basis.fields()))
    }

    fn bid(&mut self, number: u32, bid: &Bid) -> Result<Taken, Box<dyn Error>> {
        let Some(lot) = self.find(number) else {
            return Ok(Taken::NoLot);
        };
        let taken = self.member.transact(|tx| {
            let before = tx.get(&lot)?;
            if bid.cents <= before.price {
                return Ok(Taken::TooLow(before.price));
            }
            let after = Lot {
                price: bid.cents,
                bids: before.bids + 1,
                bidder: bid.bidder.clone(),
                ..before
            };
            tx.put(&lot, &after)?;
            Ok(Taken::Yes)
        })?;
        Ok(taken)
    }
}
