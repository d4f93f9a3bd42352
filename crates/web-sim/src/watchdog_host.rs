//! What there is on the machine of a watchdog.

use crate::cells::Who;
use crate::database::Xid;
use std::cell::RefCell;
use thorp_web::Patience;

/// Where a watchdog runs.
pub(crate) struct WatchdogHost {
    pub(crate) number: usize,
    pub(crate) patience: RefCell<Patience<Xid>>,
}

impl WatchdogHost {
    pub(crate) fn new(number: usize) -> Self {
        WatchdogHost {
            number,
            patience: RefCell::new(Patience::new()),
        }
    }

    pub(crate) fn who(&self) -> Who {
        Who::Watchdog(self.number)
    }
}
