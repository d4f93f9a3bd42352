//! One process of a proxy. `W` is the world.

use super::keeper_process::Follows;
use crate::database::Row;
use crate::pages::{Answer, Page};
use std::collections::BTreeMap;
use std::sync::Arc;
use thorp_web::{Asked, Cache, OpenUpdates, Waiting};

/// No entry is evicted.
const BYTES: u64 = 1 << 20;

pub(super) struct ProxyProcess<W> {
    pub(super) life: u64,
    pub(super) open: OpenUpdates,
    pub(super) link: Option<u64>,
    /// The longest life of a request, as the keeper says.
    pub(super) life_ms: u64,
    pub(super) follows: Follows,
    pub(super) cache: Cache<Page, Answer, Follows>,
    pub(super) waiting: Vec<(Request<W>, Waiting<Answer>)>,
    pub(super) posts: BTreeMap<u64, Post>,
}

/// An answer and how it came; none if the connection breaks.
pub(super) type Given = Option<(Arc<Answer>, &'static str)>;

/// What a client does with it.
pub(super) type Then<W> = Box<dyn FnOnce(&mut W, Given)>;

/// A client's request for a page.
pub(super) struct Request<W> {
    pub(super) page: Page,
    pub(super) asked: Option<Asked<Page>>,
    pub(super) then: Then<W>,
}

/// An unsafe request.
#[derive(Clone, Debug)]
pub(super) struct Post {
    pub(super) rows: Vec<Row>,
    pub(super) value: u64,
    pub(super) begun_ms: u64,
    pub(super) is_forwarded: bool,
    /// Who writes again after it.
    pub(super) writer: Option<usize>,
}

impl<W> ProxyProcess<W> {
    pub(super) fn new(life: u64, life_ms: u64) -> Self {
        let follows = Follows::default();
        ProxyProcess {
            life,
            open: OpenUpdates::default(),
            link: None,
            life_ms,
            cache: Cache::new(follows.clone(), BYTES),
            follows,
            waiting: Vec::new(),
            posts: BTreeMap::new(),
        }
    }
}
