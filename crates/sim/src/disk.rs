//! A home's disk: it loses what was not synced.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use thorp_model::records::page_key;
use thorp_model::{
    Batch, Closed, Incarnation, LifeEnd, LifeId, Mark, Met, Op, PageId, Reader, Receipt,
    ReceiptKey, Scan, StorageError, Table, Xoshiro256, records,
};
use thorp_protocol::HomeHistory;

type Key = (Table, Vec<u8>);

/// The disk of one home. It outlives the home's restarts.
#[derive(Clone, Debug)]
pub struct Disk {
    durable: BTreeMap<Key, Vec<u8>>,
    /// Bits of stored values that have flipped since they were written.
    flipped: BTreeMap<Key, Vec<usize>>,
    pending: VecDeque<Batch>,
    /// Pending batches that reads see already.
    seen: usize,
    /// Whether a sync is under way.
    pub syncing: bool,
    /// Batches refused: there is no room.
    pub full: bool,
    /// Bytes that could still be brought; none: as many as anybody brings.
    left: Option<u64>,
    /// The last batch that is durable, in this life of the home.
    synced: Mark,
    /// What it knows of its own history (rule R9).
    history: HomeHistory,
    /// What has proven another history.
    met: Option<Receipt>,
    /// Milliseconds that a sync takes, at most.
    pub sync_ms_max: u64,
}

/// What a disk tells of its room when it has plenty.
const PLENTY_BYTES: u64 = 1 << 40;

impl Disk {
    /// An empty disk.
    pub fn new(sync_ms_max: u64, key: ReceiptKey) -> Self {
        Disk {
            durable: BTreeMap::new(),
            flipped: BTreeMap::new(),
            pending: VecDeque::new(),
            seen: 0,
            syncing: false,
            full: false,
            left: None,
            synced: Mark::default(),
            history: HomeHistory::first(0, key),
            met: None,
            sync_ms_max,
        }
    }

    /// What a home finds that starts on it; the life that begins has these random bits.
    pub fn history(&self, random: u64) -> HomeHistory {
        HomeHistory {
            random,
            ..self.history.clone()
        }
    }

    /// The home has met another history: it is closed.
    pub fn close(&mut self, met: Receipt) {
        let why = Closed::OtherHistory(Met {
            by: String::new(),
            incarnation: met.incarnation,
            point: met.point,
        });
        self.history.closed.get_or_insert(why);
        self.met.get_or_insert(met);
    }

    /// Whether its home lets in nobody but operators.
    pub fn is_closed(&self) -> bool {
        self.history.closed.is_some()
    }

    /// Its home starts without proof that it continues the newest history: it is closed.
    pub fn lose_proof(&mut self) {
        self.history.closed.get_or_insert(Closed::OtherOrigin);
    }

    /// An operator opens it as a copy for a test: what it proves, it proves to itself alone.
    pub fn open_apart(&mut self, key: ReceiptKey) -> Result<(), StorageError> {
        self.history.key = key;
        self.reopen()
    }

    /// An operator opens it, as one that goes on from an older state.
    pub fn reopen(&mut self) -> Result<(), StorageError> {
        let met = self.met.take();
        let above = met.map_or(Incarnation::default(), |met| met.incarnation);
        let next = self.history.incarnation.max(above).next();
        self.history.incarnation = next.unwrap_or(self.history.incarnation);
        self.history.closed = None;
        let clock = met.map_or(0, |met| met.point.clock);
        let ops = records::reopened(self, self.history.incarnation, clock)?;
        ops.iter().for_each(|op| apply(&mut self.durable, op));
        Ok(())
    }

    /// A life begins, at once durable. The one before has ended there.
    pub fn begin_life(&mut self, (life, end_of_last): (LifeId, LifeEnd)) {
        self.history.lives.begin(life, end_of_last);
        self.history.mark = Mark::default();
    }

    /// Takes a batch; it is not durable yet. False if there is no room.
    pub fn append(&mut self, batch: Batch) -> bool {
        let bytes = brought(&batch);
        if self.full || self.left.is_some_and(|left| bytes > left) {
            return false;
        }
        self.left = self.left.map(|left| left - bytes);
        self.pending.push_back(batch);
        true
    }

    /// So many more bytes can be brought, or as many as anybody brings.
    pub fn set_left(&mut self, left: Option<u64>) {
        self.left = left;
    }

    /// Whether it tells that there is little room.
    pub fn is_nearly_full(&self) -> bool {
        self.left.is_some()
    }

    /// How much it could take, as of the last batch that is durable.
    pub fn left(&self) -> (u64, Mark) {
        let pending: u64 = self.pending.iter().map(brought).sum();
        let free = self.left.map_or(PLENTY_BYTES, |left| left + pending);
        (free, self.synced)
    }

    /// Batches that are not durable.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// The pages that are durable, damaged or not.
    pub fn pages(&self) -> impl Iterator<Item = PageId> + '_ {
        let keys = self.durable.keys();
        let of_pages = keys.filter(|(table, _)| *table == Table::Pages);
        of_pages.filter_map(|(_, key)| {
            let number: [u8; 8] = key.as_slice().try_into().ok()?;
            Some(PageId::from_key(u64::from_be_bytes(number)))
        })
    }

    /// A bit of a stored page flips.
    pub fn flip(&mut self, page: PageId, bit: usize) -> bool {
        let key = (Table::Pages, page_key(page));
        let Some(value) = self.durable.get_mut(&key) else {
            return false;
        };
        let bit = bit % (value.len() * 8).max(1);
        let Some(byte) = value.get_mut(bit / 8) else {
            return false;
        };
        *byte ^= 1 << (bit % 8);
        self.flipped.entry(key).or_default().push(bit);
        true
    }

    /// What was damaged is put back from elsewhere.
    pub fn mend(&mut self) {
        for (key, bits) in std::mem::take(&mut self.flipped) {
            if let Some(value) = self.durable.get_mut(&key) {
                bits.iter().for_each(|bit| value[bit / 8] ^= 1 << (bit % 8));
            }
        }
    }

    /// Makes the first batches durable, and tells them in order.
    pub fn sync(&mut self, batches: usize) -> Vec<Batch> {
        let count = batches.min(self.pending.len());
        let synced: Vec<Batch> = self.pending.drain(..count).collect();
        self.seen = self.seen.saturating_sub(count);
        for batch in &synced {
            self.synced = batch.mark;
            // What changes nothing is in no group.
            if !batch.ops.is_empty() {
                self.history.mark = batch.mark;
            }
            for op in &batch.ops {
                let (Op::Put { table, key, .. } | Op::Delete { table, key }) = op;
                self.flipped.remove(&(*table, key.clone()));
                apply(&mut self.durable, op);
            }
        }
        synced
    }

    /// The power goes: some pending batches happen to be durable, the rest is lost.
    pub fn crash(&mut self, survive: usize) -> Vec<Batch> {
        let survivors = self.sync(survive);
        self.pending.clear();
        self.seen = 0;
        self.syncing = false;
        self.synced = Mark::default();
        survivors
    }

    /// The mark of the last of the first batches.
    pub fn mark_of(&self, batches: usize) -> Option<Mark> {
        let last = batches.min(self.pending.len()).checked_sub(1)?;
        self.pending.get(last).map(|batch| batch.mark)
    }

    /// Reads at a random moment: an engine may show batches before they are durable.
    /// A flipped bit is noticed: engines keep checksums.
    pub fn read(
        &mut self,
        prng: &mut Xoshiro256,
        table: Table,
        key: &[u8],
    ) -> Result<Option<Vec<u8>>, Flipped> {
        self.seen = prng.range(self.seen as u64, self.pending.len() as u64) as usize;
        let visible = self.pending.iter().take(self.seen).rev();
        let ops = visible.flat_map(|batch| batch.ops.iter().rev());
        for op in ops {
            match op {
                Op::Put {
                    table: t,
                    key: k,
                    value,
                } if *t == table && k == key => return Ok(Some(value.clone())),
                Op::Delete { table: t, key: k } if *t == table && k == key => return Ok(None),
                _ => {}
            }
        }
        let key = (table, key.to_vec());
        if self.flipped.contains_key(&key) {
            return Err(Flipped);
        }
        Ok(self.durable.get(&key).cloned())
    }
}

/// What was read is not what was written.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Flipped;

/// Bytes of what a batch brings: commits, and staged values. The home's own work goes in beyond that.
fn brought(batch: &Batch) -> u64 {
    let brings = |op: &Op| match op {
        Op::Put { table, value, .. } => match table {
            Table::Log => value.len() > PLACE_BYTES_MAX,
            Table::Staged => true,
            Table::Meta | Table::Pages | Table::Outcomes => false,
        },
        Op::Delete { .. } => false,
    };
    let new = batch.ops.iter().any(brings);
    if new { batch.bytes() as u64 } else { 0 }
}

/// A log record of more bytes changes pages.
const PLACE_BYTES_MAX: usize = 64;

fn apply(tables: &mut BTreeMap<Key, Vec<u8>>, op: &Op) {
    match op {
        Op::Put { table, key, value } => {
            tables.insert((*table, key.clone()), value.clone());
        }
        Op::Delete { table, key } => {
            tables.remove(&(*table, key.clone()));
        }
    }
}

/// What a home finds when it starts: everything that is durable.
impl Reader for Disk {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StorageError> {
        Ok(self.durable.get(&(table, key.to_vec())).cloned())
    }

    fn scan(
        &self,
        table: Table,
        from: &[u8],
        to: &[u8],
        visit: &mut dyn FnMut(&[u8], &[u8]) -> Scan,
    ) -> Result<(), StorageError> {
        let from = Bound::Included((table, from.to_vec()));
        let records = self.durable.range((from, Bound::Unbounded));
        for ((t, key), value) in records {
            let ended = *t != table || (!to.is_empty() && key.as_slice() >= to);
            if ended || visit(key, value) == Scan::Stop {
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thorp_model::Purpose;

    fn disk() -> Disk {
        Disk::new(0, ReceiptKey::new([0; 32]))
    }

    fn put(mark: u64, key: u8, value: u8) -> Batch {
        Batch {
            mark: Mark(mark),
            purpose: Purpose::NewData,
            ops: vec![Op::Put {
                table: Table::Log,
                key: vec![key],
                value: vec![value],
            }],
        }
    }

    #[test]
    fn what_was_not_synced_is_lost() {
        let mut disk = disk();
        assert!(disk.append(put(1, 1, 1)) && disk.append(put(2, 2, 2)));
        assert_eq!(disk.mark_of(9), Some(Mark(2)));
        assert_eq!(disk.crash(1).len(), 1);
        assert_eq!(disk.get(Table::Log, &[1]), Ok(Some(vec![1])));
        assert_eq!(disk.get(Table::Log, &[2]), Ok(None));
    }

    #[test]
    fn it_tells_how_much_more_fits_and_takes_no_more() {
        let commit = |mark| Batch {
            mark: Mark(mark),
            purpose: Purpose::NewData,
            ops: vec![Op::Put {
                table: Table::Log,
                key: vec![0; 8],
                value: vec![0; 92],
            }],
        };
        let mut disk = disk();
        assert_eq!(disk.left(), (PLENTY_BYTES, Mark(0)));
        disk.set_left(Some(250));
        assert!(disk.append(commit(1)) && disk.append(commit(2)));
        disk.sync(1);
        assert_eq!(disk.left(), (150, Mark(1)), "the second is not durable");
        disk.sync(1);
        assert_eq!(disk.left(), (50, Mark(2)));
        assert!(!disk.append(commit(3)));
        assert!(disk.append(put(3, 1, 1)), "that changes no page");
    }

    #[test]
    fn reads_never_go_back() {
        let mut prng = Xoshiro256::new(3);
        let mut disk = disk();
        for value in 1..20 {
            disk.append(put(u64::from(value), 1, value));
        }
        let mut last = Ok(None);
        for round in 0..50 {
            let read = disk.read(&mut prng, Table::Log, &[1]);
            assert!(read >= last);
            last = read;
            if round % 10 == 0 {
                disk.sync(3);
            }
        }
    }

    #[test]
    fn a_flipped_bit_is_noticed_until_it_is_put_back_or_written_over() {
        let mut prng = Xoshiro256::new(3);
        let mut disk = disk();
        let page = PageId::new(1, 1);
        let stored = |value: u8, mark| Batch {
            mark: Mark(mark),
            purpose: Purpose::Housekeeping,
            ops: vec![Op::Put {
                table: Table::Pages,
                key: page_key(page),
                value: vec![value],
            }],
        };
        let mut read = |disk: &mut Disk| disk.read(&mut prng, Table::Pages, &page_key(page));
        assert!(!disk.flip(page, 3), "nothing is stored");
        disk.append(stored(7, 1));
        disk.sync(1);
        assert!(disk.flip(page, 11));
        assert_eq!(read(&mut disk), Err(Flipped));
        disk.mend();
        assert_eq!(read(&mut disk), Ok(Some(vec![7])));
        assert!(disk.flip(page, 0));
        disk.append(stored(8, 2));
        disk.sync(1);
        assert_eq!(read(&mut disk), Ok(Some(vec![8])));
    }
}
