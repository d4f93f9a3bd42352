//! Where a transaction that only read stands, and who has to be asked for that (rule 5).

use super::Transaction;
use super::commit::nothing;
use crate::link::Told;
use crate::{Committed, Error, Result};
use std::time::{Duration, Instant};
use thorp_cache::Doomed;
use thorp_model::limits::WATERMARK_WAIT_MS;
use thorp_model::snapshot::{Lagging, ReadPoint};
use thorp_model::{CallRequest, Position, Stamp, snapshot};

/// What rule 5 says of what was read.
pub(super) enum Standing {
    /// It is committed.
    At(Committed),
    /// Homes have not promised enough.
    Lags(Lagging),
}

type Placed = (Option<Position>, Result<Stamp, Lagging>);

impl Transaction {
    /// Whether it may end without its homes' word on each read.
    pub(super) fn may_stand(&self) -> bool {
        self.writes.is_empty() && (!self.session.strict || self.homes.all().is_empty())
    }

    /// Commits what only read, if there is a stamp for it, as far as that is known here.
    pub(super) fn stand(&mut self) -> Result<Standing> {
        let (position, stamp) = self.place().map_err(|doomed| self.doomed(doomed))?;
        match stamp {
            Ok(stamp) => {
                self.check_all_staleness()?;
                if stamp > self.floor {
                    self.link.raise_floor(stamp);
                }
            }
            // At one home it goes on with what is there, whatever else is on its way.
            Err(_) if self.session.optimistic_reads && position.is_some() => {
                self.check_all_staleness()?;
            }
            Err(lagging) => return Ok(Standing::Lags(lagging)),
        }
        Ok(Standing::At(Committed {
            position,
            ..nothing()
        }))
    }

    /// Where the rule places it; the position at its home, if it is one.
    fn place(&mut self) -> Result<Placed, Doomed> {
        let (reads, cache) = (&mut self.reads, &self.link.cache);
        // No vector for the usual case.
        if let [home] = self.homes.all() {
            let read_point = reads.read_point(cache, *home)?;
            let stamp = snapshot::place(&[read_point], self.floor);
            return Ok((Some(read_point.position), stamp));
        }
        let homes = self.homes.all().iter();
        let sights = homes.map(|home| reads.read_point(cache, *home));
        let sights = sights.collect::<Result<Vec<ReadPoint>, Doomed>>()?;
        Ok((None, snapshot::place(&sights, self.floor)))
    }

    fn check_all_staleness(&self) -> Result<()> {
        let mut homes = self.homes.all().iter();
        homes.try_for_each(|home| self.check_staleness(*home))
    }

    /// Has the homes that lag promise more, and waits for that, but not long: none if it has to be validated.
    pub(super) async fn stand_when_promised(&mut self, due: Instant) -> Result<Option<Committed>> {
        let lagging = match self.stand()? {
            Standing::At(committed) => return Ok(Some(committed)),
            Standing::Lags(lagging) => lagging,
        };
        // Evidence that stands still hears of no promise.
        if lagging.homes.iter().any(|home| self.reads.is_frozen(*home)) {
            return self.to_be_validated();
        }
        let due = due.min(Instant::now() + WATERMARK_WAIT);
        let at_least = lagging.stamp;
        let asked = lagging.homes.into_iter().map(|home| {
            let request = CallRequest::Watermark { at_least };
            self.link.ask_call(home, request, due)
        });
        let Ok(asked) = asked.collect::<Result<Vec<_>>>() else {
            return self.to_be_validated();
        };
        for wait in asked {
            // What it promised came before the answer, like every promise.
            if let Told::Closed = wait.await {
                return Err(Error::closed());
            }
        }
        match self.stand()? {
            Standing::At(committed) => Ok(Some(committed)),
            Standing::Lags(_) => self.to_be_validated(),
        }
    }

    /// What has read on behind a change stands there or nowhere.
    fn to_be_validated(&self) -> Result<Option<Committed>> {
        match self.reads.behind() {
            Some(changed) => Err(self.doomed(Doomed::Changed(changed))),
            None => Ok(None),
        }
    }
}

const WATERMARK_WAIT: Duration = Duration::from_millis(WATERMARK_WAIT_MS);
