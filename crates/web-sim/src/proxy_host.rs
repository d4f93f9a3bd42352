//! What there is on the machine of a proxy. `W` is the world.

use crate::cells::{Seen, Who};
use crate::pages::{Answer, Page};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use thorp_versions::Reader;
use thorp_web::{Asked, Cache, Waiting};

/// Where a proxy runs.
pub(crate) struct ProxyHost<W> {
    pub(crate) number: usize,
    pub(crate) process: RefCell<Option<Rc<Process<W>>>>,
}

/// One process of a proxy.
pub(crate) struct Process<W> {
    pub(crate) number: usize,
    pub(crate) is_alive: Rc<Cell<bool>>,
    pub(crate) cache: Cache<Page, Answer, Reader<Seen>>,
    pub(crate) waiting: RefCell<Vec<(Request<W>, Waiting<Answer>)>>,
}

/// An answer and how it came; none if the connection breaks.
pub(crate) type Given = Option<(Arc<Answer>, &'static str)>;

/// What a client does with it.
pub(crate) type Then<W> = Box<dyn FnOnce(&Rc<W>, Given)>;

/// A client's request.
pub(crate) struct Request<W> {
    pub(crate) page: Page,
    pub(crate) asked: Option<Asked<Page>>,
    pub(crate) then: Then<W>,
}

impl<W> ProxyHost<W> {
    pub(crate) fn new(number: usize) -> Self {
        ProxyHost {
            number,
            process: RefCell::new(None),
        }
    }

    pub(crate) fn who(&self) -> Who {
        Who::Proxy(self.number)
    }
}

impl<W> Process<W> {
    pub(crate) fn who(&self) -> Who {
        Who::Proxy(self.number)
    }
}
