//! At the keeper: the open updates of one proxy. It does no I/O and reads no clock.

use super::shown::{ShownKeys, ShownUpdate};
use std::collections::{BTreeMap, BTreeSet};
use thorp_versions::UpdateId;

/// The open updates of a proxy, by the proxy's numbers.
///
/// Invariant: an update is in here from its begin until its proxy ends it, or until nobody has been able to follow it for the longest life of
/// a request.
#[derive(Debug, Default)]
pub(super) struct Updates {
    of: BTreeMap<u64, Open>,
    /// Those that linger beyond what the proxy counts one by one: they are one, which may change anything.
    others: Option<Others>,
    /// While the proxy lists: what was open before, and is not listed yet.
    unlisted: Option<BTreeSet<u64>>,
}

#[derive(Clone, Debug)]
struct Open {
    id: UpdateId,
    keys: ShownKeys,
    begun_ms: u64,
    /// It ends then, whatever its proxy says. None: its proxy follows it.
    until_ms: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Others {
    id: UpdateId,
    begun_ms: u64,
    until_ms: u64,
}

/// An update that has ended by time or by hand: the keeper's name of it, and the proxy's number, if it has one.
pub(super) type Ended = (UpdateId, Option<u64>);

impl Updates {
    /// How many are open.
    pub(super) fn len(&self) -> usize {
        self.of.len() + usize::from(self.others.is_some())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn has(&self, update: u64) -> bool {
        self.of.contains_key(&update)
    }

    /// Whether the keeper has an open one of this name.
    pub(super) fn has_id(&self, id: UpdateId) -> bool {
        self.of.values().any(|open| open.id == id)
    }

    /// The proxy begins to list what is open.
    pub(super) fn lists(&mut self) {
        self.unlisted = Some(self.of.keys().copied().collect());
    }

    pub(super) fn is_listing(&self) -> bool {
        self.unlisted.is_some()
    }

    /// An update begins, or is listed. Its proxy follows it from now on. What the keeper calls it: this, unless it is open already.
    pub(super) fn begin(
        &mut self,
        (update, id): (u64, UpdateId),
        keys: Option<&[String]>,
        now_ms: u64,
    ) -> UpdateId {
        if let Some(unlisted) = &mut self.unlisted {
            unlisted.remove(&update);
        }
        let open = self.of.entry(update).or_insert_with(|| Open {
            id,
            keys: ShownKeys::of(keys),
            begun_ms: now_ms,
            until_ms: None,
        });
        open.until_ms = None;
        open.id
    }

    /// An update is over.
    pub(super) fn end(&mut self, update: u64) -> Option<UpdateId> {
        self.of.remove(&update).map(|open| open.id)
    }

    /// Nobody will learn when an update ends.
    pub(super) fn linger(&mut self, update: u64, until_ms: u64) {
        if let Some(open) = self.of.get_mut(&update) {
            open.until_ms = Some(until_ms);
        }
    }

    /// The others last until then. What the keeper calls them: this, unless they are open already.
    pub(super) fn fold(&mut self, id: UpdateId, (now_ms, until_ms): (u64, u64)) -> UpdateId {
        let others = self.others.get_or_insert(Others {
            id,
            begun_ms: now_ms,
            until_ms,
        });
        others.until_ms = until_ms;
        others.id
    }

    /// The proxy has listed all that is open. What it has not listed is over.
    pub(super) fn listed(&mut self) -> Vec<UpdateId> {
        let unlisted = self.unlisted.take().into_iter().flatten();
        unlisted.filter_map(|update| self.end(update)).collect()
    }

    /// Nobody follows them from now on.
    pub(super) fn lose(&mut self, until_ms: u64) {
        self.unlisted = None;
        for open in self.of.values_mut() {
            open.until_ms = open.until_ms.or(Some(until_ms));
        }
    }

    /// What has had its time.
    pub(super) fn pass_time(&mut self, now_ms: u64) -> Vec<Ended> {
        self.end_those(|_, until_ms| until_ms.is_some_and(|until_ms| now_ms >= until_ms))
    }

    /// Ends an update by hand. None: there is none, or its proxy follows it.
    pub(super) fn end_by_hand(&mut self, id: UpdateId) -> Option<Ended> {
        let ended = self.end_those(|open, until_ms| open == id && until_ms.is_some());
        ended.first().copied()
    }

    /// All of them are over.
    pub(super) fn into_ids(self) -> impl Iterator<Item = UpdateId> {
        let of = self.of.into_values().map(|open| open.id);
        of.chain(self.others.map(|others| others.id))
    }

    /// What a person sees of them, at a time.
    pub(super) fn shown(&self, process: u32, now_ms: u64) -> impl Iterator<Item = ShownUpdate> {
        let show = move |id: UpdateId, keys: ShownKeys, begun_ms: u64, until_ms: Option<u64>| {
            ShownUpdate {
                id: id.0,
                process: Some(process),
                keys,
                age_ms: now_ms.saturating_sub(begun_ms),
                left_ms: until_ms.map(|until_ms| until_ms.saturating_sub(now_ms)),
            }
        };
        let of = self.of.values();
        let of = of.map(move |open| show(open.id, open.keys.clone(), open.begun_ms, open.until_ms));
        let others = self.others.map(|others| {
            let until_ms = Some(others.until_ms);
            show(others.id, ShownKeys::of(None), others.begun_ms, until_ms)
        });
        of.chain(others)
    }

    fn end_those(&mut self, is_over: impl Fn(UpdateId, Option<u64>) -> bool) -> Vec<Ended> {
        let mut ended = Vec::new();
        self.of.retain(|update, open| {
            let ends = is_over(open.id, open.until_ms);
            if ends {
                ended.push((open.id, Some(*update)));
            }
            !ends
        });
        let others = self.others.filter(|of| is_over(of.id, Some(of.until_ms)));
        if let Some(others) = others {
            ended.push((others.id, None));
            self.others = None;
        }
        ended
    }
}
