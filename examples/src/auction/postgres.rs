//! The same books in PostgreSQL: one table.

use super::{Bid, Books, LOTS_OF_SHELF, Lot, Read, Taken, first_lots, on_shelf};
use std::error::Error;
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::{Client, NoTls, Row};

/// Books in a database, by a connection of its own.
pub struct InPostgres {
    runtime: Runtime,
    client: Client,
}

impl InPostgres {
    /// Connects.
    ///
    /// # Errors
    ///
    /// The database does not answer.
    pub fn open(url: &str) -> Result<Self, Box<dyn Error>> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let client = runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
            // It ends with the client.
            tokio::spawn(connection);
            Ok::<_, tokio_postgres::Error>(client)
        })?;
        Ok(InPostgres { runtime, client })
    }

    /// Makes the table and its lots, if it is not there.
    ///
    /// # Errors
    ///
    /// The database refuses it.
    pub fn make(&mut self) -> Result<(), Box<dyn Error>> {
        let table = "CREATE TABLE IF NOT EXISTS lot (number int PRIMARY KEY, shelf int NOT NULL, title text NOT NULL, \
            price bigint NOT NULL, bids bigint NOT NULL, bidder text NOT NULL)";
        self.runtime.block_on(self.client.batch_execute(table))?;
        let insert = "INSERT INTO lot VALUES ($1, $2, $3, 0, 0, '') ON CONFLICT DO NOTHING";
        for lot in first_lots() {
            let (number, shelf) = (lot.number as i32, (lot.number / LOTS_OF_SHELF) as i32);
            let insert = async {
                self.client
                    .execute(insert, &[&number, &shelf, &lot.title])
                    .await
            };
            self.runtime.block_on(insert)?;
        }
        Ok(())
    }

    fn lots(&self, first: u32, end: u32) -> Result<Vec<Lot>, Box<dyn Error>> {
        let select = "SELECT number, title, price, bids, bidder FROM lot WHERE number >= $1 AND number < $2 ORDER BY number";
        let (first, end) = (i32::try_from(first)?, i32::try_from(end)?);
        let rows = async { self.client.query(select, &[&first, &end]).await };
        let rows = self.runtime.block_on(rows)?;
        rows.iter().map(lot).collect()
    }
}

impl Books for InPostgres {
    fn lot(&mut self, number: u32) -> Result<Read<Option<Lot>>, Box<dyn Error>> {
        let found = self.lots(number, number.saturating_add(1))?.pop();
        Ok((found, None))
    }

    fn shelf(&mut self, number: u32) -> Result<Read<Vec<Lot>>, Box<dyn Error>> {
        let lots = on_shelf(number);
        Ok((self.lots(lots.start, lots.end)?, None))
    }

    fn bid(&mut self, number: u32, bid: &Bid) -> Result<Taken, Box<dyn Error>> {
        let update = "UPDATE lot SET price = $1, bids = bids + 1, bidder = $2 WHERE number = $3 AND price < $1";
        let (cents, lot) = (i64::try_from(bid.cents)?, i32::try_from(number)?);
        let updated = async {
            self.client
                .execute(update, &[&cents, &bid.bidder, &lot])
                .await
        };
        if self.runtime.block_on(updated)? == 1 {
            return Ok(Taken::Yes);
        }
        let (found, _) = self.lot(number)?;
        Ok(found.map_or(Taken::NoLot, |lot| Taken::TooLow(lot.price)))
    }
}

fn lot(row: &Row) -> Result<Lot, Box<dyn Error>> {
    let (number, price, bids): (i32, i64, i64) =
        (row.try_get(0)?, row.try_get(2)?, row.try_get(3)?);
    Ok(Lot {
        number: u32::try_from(number)?,
        title: row.try_get(1)?,
        price: u64::try_from(price)?,
        bids: u64::try_from(bids)?,
        bidder: row.try_get(4)?,
    })
}
