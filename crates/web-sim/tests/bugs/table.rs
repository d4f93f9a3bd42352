//! A table between whose loads and stores a story does something.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;
use thorp_web_sim::{Cells, Writable};

type Act = Box<dyn FnOnce()>;

/// Cells in which a story can stop somebody.
#[derive(Clone, Default)]
pub(crate) struct Table(Rc<Inner>);

#[derive(Default)]
struct Inner {
    cells: RefCell<BTreeMap<usize, u64>>,
    held: RefCell<Option<(usize, Act)>>,
}

impl Table {
    /// Does this before the n-th load or store from now; 1 is the next one.
    pub(crate) fn hold_before(&self, number: usize, act: impl FnOnce() + 'static) {
        self.0.held.replace(Some((number, Box::new(act))));
    }

    fn pass(&self) {
        let held = self.0.held.take();
        match held {
            Some((1, act)) => act(),
            Some((number, act)) => {
                self.0.held.replace(Some((number - 1, act)));
            }
            None => {}
        }
    }
}

impl Cells for Table {
    fn load(&self, at: usize) -> u64 {
        self.pass();
        self.0.cells.borrow().get(&at).copied().unwrap_or_default()
    }
}

impl Writable for Table {
    fn store(&self, at: usize, bits: u64) {
        self.pass();
        self.0.cells.borrow_mut().insert(at, bits);
    }

    fn reset(&self, cells: Range<usize>, bits: u64) {
        let touched: Vec<usize> = {
            let now = self.0.cells.borrow();
            now.range(cells).map(|(at, _)| *at).collect()
        };
        touched.into_iter().for_each(|at| self.store(at, bits));
    }
}
