//! Reads the engine's journals before the engine does, because it cuts off
//! silently what it cannot read (see the crate's documentation).
//!
//! A journal is a row of batches, then zeros up to its length:
//!
//! ```text
//! batch = start item* end
//! start = 1, items: u32, sequence number: u64
//! item  = 2, kind: u8, compression: u8, keyspace: u64, key bytes: u16,
//!         value bytes: u32, stored bytes: u32, key, stored value
//! end   = 3, xxh3 of all items: u64, "FJL", 3
//! ```
//!
//! All numbers are little-endian. This is the format of version 3 of the engine,
//! which its own version file guards.
//!
//! The sum leaves the sequence number out, and the engine orders versions by it. So a batch is whole only if its
//! number is above that of the batch before. Nothing stands before the first batch of the oldest journal: a flipped bit
//! in its sequence number is not noticed.

use crate::usage::{self, Usage};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// What the journals of a store tell.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// All is there, as far as the journals go.
    Whole,
    /// The last write was cut short and never acknowledged.
    CutShort {
        /// The journal.
        file: PathBuf,
        /// Where the whole batches end, in bytes.
        at: u64,
    },
    /// An acknowledged group is missing or damaged; for a person.
    Lost(String),
}

/// Reads all journals in the engine's directory. `noted` is the number of the last
/// group that is known to have been acknowledged.
pub(crate) fn inspect(engine_dir: &Path, noted: u64) -> io::Result<Verdict> {
    let mut last_group = None;
    let mut last_sequence = None;
    let mut torn: Option<(PathBuf, Walk)> = None;
    for file in journals(engine_dir)? {
        let walk = walk(&fs::read(&file)?, last_sequence);
        last_sequence = walk.last_sequence;
        let goes_on = walk.last_group.is_some() || walk.torn.is_some();
        if let (Some((bad, _)), true) = (&torn, goes_on) {
            return Ok(lost(bad, "with later groups after it"));
        }
        last_group = last_group.max(walk.last_group);
        if walk.torn.is_some() {
            torn = Some((file, walk));
        }
    }
    Ok(match torn {
        Some((file, walk)) => judge_torn(file, &walk, last_group, noted),
        None if last_group.is_some_and(|last| last < noted) => Verdict::Lost(format!(
            "the journals end with group {}, group {noted} was acknowledged",
            last_group.unwrap_or_default()
        )),
        None => Verdict::Whole,
    })
}

/// Cuts a journal off after its whole batches, durably.
pub(crate) fn cut(file: &Path, at: u64) -> io::Result<()> {
    let file = OpenOptions::new().write(true).open(file)?;
    file.set_len(at)?;
    file.sync_all()
}

/// Empties the journals, durably, when all that they hold is in tables and no engine has them open. The last one stays, for
/// the engine takes its next sequence number from the tables only if there is one.
pub(crate) fn empty(engine_dir: &Path) -> io::Result<()> {
    let mut journals = journals(engine_dir)?;
    let last = journals.pop();
    for journal in journals {
        fs::remove_file(journal)?;
    }
    if let Some(last) = last {
        cut(&last, 0)?;
    }
    File::open(engine_dir)?.sync_all()
}

/// Bytes that the journals take on the volume: most of a new one is a hole.
pub(crate) fn bytes_taken(engine_dir: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for journal in journals(engine_dir)? {
        // The engine may have deleted it since.
        bytes += fs::metadata(journal).map_or(0, |found| found.blocks() * BLOCK_BYTES);
    }
    Ok(bytes)
}

/// The unit in which the system counts what a file takes.
const BLOCK_BYTES: u64 = 512;

/// How far journals can be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Reach {
    /// The last group before the first damage.
    pub(crate) last_group: Option<u64>,
    /// A group after it is known to have been there: the highest such.
    pub(crate) later_group: Option<u64>,
}

/// Leaves of all journals only what stands before the first damage.
pub(crate) fn keep_readable(engine_dir: &Path) -> io::Result<Reach> {
    let mut reach = Reach::default();
    let mut is_cut = false;
    let mut last_sequence = None;
    for file in journals(engine_dir)? {
        let walk = walk(&fs::read(&file)?, last_sequence);
        last_sequence = walk.last_sequence;
        let torn = walk.torn.as_ref();
        let later = torn.and_then(|torn| torn.group.max(torn.followed_by));
        if is_cut {
            reach.later_group = reach.later_group.max(walk.last_group).max(later);
            fs::remove_file(&file)?;
            continue;
        }
        reach.last_group = reach.last_group.max(walk.last_group);
        if torn.is_some() {
            cut(&file, walk.good_bytes as u64)?;
            reach.later_group = later;
            is_cut = true;
        }
    }
    Ok(reach)
}

/// The journals in a directory, oldest first.
pub(crate) fn journals(engine_dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(engine_dir)? {
        let file = entry?.path();
        if file.extension().is_none_or(|extension| extension != "jnl") {
            continue;
        }
        let number = file
            .file_stem()
            .and_then(|stem| stem.to_str()?.parse::<u64>().ok());
        found.extend(number.map(|number| (number, file)));
    }
    found.sort();
    Ok(found.into_iter().map(|(_, file)| file).collect())
}

/// How far a journal can be read.
struct Walk {
    /// Bytes of whole batches.
    good_bytes: usize,
    /// The highest group among them.
    last_group: Option<u64>,
    /// The sequence number of the last of them, or of the last in the journals before.
    last_sequence: Option<u64>,
    /// What follows, unless it is the end or zeros.
    torn: Option<Torn>,
}

/// A batch that is not whole.
struct Torn {
    /// Its group, if that much can be read.
    group: Option<u64>,
    /// The group of a whole batch after it. The engine writes a batch only
    /// when the one before is synced, so the torn one was acknowledged.
    followed_by: Option<u64>,
}

/// Reads a journal whose first batch comes after `last_sequence`.
fn walk(bytes: &[u8], last_sequence: Option<u64>) -> Walk {
    let mut walk = Walk {
        good_bytes: 0,
        last_group: None,
        last_sequence,
        torn: None,
    };
    loop {
        let rest = &bytes[walk.good_bytes..];
        let mut group = None;
        match batch(rest, &mut group) {
            Some(whole) if Some(whole.sequence) > walk.last_sequence => {
                walk.good_bytes += whole.length;
                walk.last_group = walk.last_group.max(group);
                walk.last_sequence = Some(whole.sequence);
            }
            None if is_zero(rest) => return walk,
            _ => {
                walk.torn = Some(Torn {
                    group,
                    followed_by: later_group(rest, walk.last_group),
                });
                return walk;
            }
        }
    }
}

/// By the block: most of a journal of 64 MiB may be zeros.
fn is_zero(bytes: &[u8]) -> bool {
    bytes
        .chunks(ZEROS.len())
        .all(|block| *block == ZEROS[..block.len()])
}

fn judge_torn(file: PathBuf, walk: &Walk, last_group: Option<u64>, noted: u64) -> Verdict {
    let Some(torn) = &walk.torn else {
        return Verdict::Whole;
    };
    if let Some(later) = torn.followed_by {
        return lost(&file, &format!("with group {later} after it"));
    }
    // The group after the last whole one, if its own number cannot be read.
    // Not known either in the first batch of a journal: then what the engine
    // has after opening is compared with the note.
    let group = torn.group.or(last_group.map(|last| last + 1));
    if group.is_some_and(|group| group <= noted) {
        return lost(&file, &format!("and group {noted} was acknowledged"));
    }
    Verdict::CutShort {
        file,
        at: walk.good_bytes as u64,
    }
}

fn lost(file: &Path, detail: &str) -> Verdict {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    Verdict::Lost(format!(
        "a group in journal {name} cannot be read, {detail}"
    ))
}

/// The group of the next whole batch in what follows a torn one.
fn later_group(bytes: &[u8], last_group: Option<u64>) -> Option<u64> {
    (1..bytes.len())
        .filter(|at| bytes[*at] == START)
        .find_map(|at| {
            let mut group = None;
            batch(&bytes[at..], &mut group)?;
            // Only a group of this store that comes later: a value may hold
            // the bytes of some journal.
            group.filter(|group| Some(*group) > last_group)
        })
}

/// A batch that can be read.
struct Whole {
    /// Its bytes.
    length: usize,
    /// What the engine orders its versions by.
    sequence: u64,
}

/// The whole batch that `bytes` begin with. Tells its group as
/// soon as it is read, also if the batch then turns out not to be whole.
fn batch(bytes: &[u8], group: &mut Option<u64>) -> Option<Whole> {
    let mut reader = Reader { bytes, at: 0 };
    if reader.number::<1>()? != u64::from(START) {
        return None;
    }
    let items = reader.number::<4>()?;
    let sequence = reader.number::<8>()?;
    if sequence >= SEQUENCE_END {
        return None;
    }
    let begin = reader.at;
    for _ in 0..items {
        let (key, value) = item(&mut reader)?;
        if key == usage::KEY && group.is_none() {
            *group = Usage::decode(value).ok().map(|usage| usage.groups);
        }
    }
    let sum = xxhash_rust::xxh3::xxh3_64(&bytes[begin..reader.at]);
    if reader.number::<1>()? != u64::from(END) || reader.number::<8>()? != sum {
        return None;
    }
    let length = reader.at + END_MAGIC.len();
    (reader.take(END_MAGIC.len())? == END_MAGIC).then_some(Whole { length, sequence })
}

fn item<'a>(reader: &mut Reader<'a>) -> Option<(&'a [u8], &'a [u8])> {
    if reader.number::<1>()? != u64::from(ITEM) {
        return None;
    }
    let (kind, compression) = (reader.number::<1>()?, reader.number::<1>()?);
    if kind > KIND_MAX || compression != 0 {
        return None;
    }
    let _keyspace = reader.number::<8>()?;
    let key_bytes = reader.number::<2>()?;
    let value_bytes = reader.number::<4>()?;
    if reader.number::<4>()? != value_bytes {
        return None;
    }
    let key = reader.take(usize::try_from(key_bytes).ok()?)?;
    Some((key, reader.take(usize::try_from(value_bytes).ok()?)?))
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let taken = self.bytes.get(self.at..self.at.checked_add(count)?)?;
        self.at += count;
        Some(taken)
    }

    fn number<const BYTES: usize>(&mut self) -> Option<u64> {
        let taken = self.take(BYTES)?;
        let mut bytes = [0; 8];
        bytes[..BYTES].copy_from_slice(taken);
        Some(u64::from_le_bytes(bytes))
    }
}

const ZEROS: [u8; 4096] = [0; 4096];

const START: u8 = 1;
const ITEM: u8 = 2;
const END: u8 = 3;
const END_MAGIC: &[u8] = &[b'F', b'J', b'L', 3];

/// The engine keeps the numbers from here on for itself.
const SEQUENCE_END: u64 = 1 << 63;

/// The highest kind of a change in a journal: value, removal, weak removal.
const KIND_MAX: u64 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(group: u64) -> Vec<u8> {
        let mut usage = Usage::default();
        usage.groups = group;
        let mut items = Vec::new();
        for (key, value) in [(usage::KEY, usage.encode()), (b"k", vec![7; 9000])] {
            items.extend([ITEM, 0, 0]);
            items.extend(1u64.to_le_bytes());
            items.extend((key.len() as u16).to_le_bytes());
            items.extend((value.len() as u32).to_le_bytes());
            items.extend((value.len() as u32).to_le_bytes());
            items.extend(key);
            items.extend(value);
        }
        let mut bytes = vec![START, 2, 0, 0, 0];
        bytes.extend(group.to_le_bytes());
        bytes.extend(&items);
        bytes.push(END);
        bytes.extend(xxhash_rust::xxh3::xxh3_64(&items).to_le_bytes());
        bytes.extend(END_MAGIC);
        bytes
    }

    fn judge(journals: &[Vec<u8>], noted: u64) -> Verdict {
        let dir = tempfile::tempdir().unwrap();
        for (number, bytes) in journals.iter().enumerate() {
            fs::write(dir.path().join(format!("{number}.jnl")), bytes).unwrap();
        }
        inspect(dir.path(), noted).unwrap()
    }

    #[test]
    fn zeros_after_whole_batches_are_the_end() {
        let journal = [whole(1), whole(2), vec![0; 999]].concat();
        assert_eq!(judge(&[journal], 2), Verdict::Whole);
        assert_eq!(judge(&[vec![0; 99]], 2), Verdict::Whole);
        assert_eq!(judge(&[], 2), Verdict::Whole);
    }

    #[test]
    fn what_was_never_acknowledged_is_cut() {
        let good = whole(1).len() as u64;
        for at in [0, 3, 200, 5000, 9100] {
            let mut torn = whole(2);
            torn[at] ^= 0x40;
            let verdict = judge(&[[whole(1), torn].concat()], 1);
            assert!(
                matches!(verdict, Verdict::CutShort { at, .. } if at == good),
                "{at}"
            );
        }
        let short = whole(2)[..5000].to_vec();
        let verdict = judge(&[[whole(1), short, vec![0; 99]].concat()], 1);
        assert!(matches!(verdict, Verdict::CutShort { at, .. } if at == good));
    }

    #[test]
    fn what_was_acknowledged_is_missed() {
        let mut torn = whole(2);
        torn[5000] ^= 1;
        let lost = |journals: &[Vec<u8>], noted| matches!(judge(journals, noted), Verdict::Lost(_));
        assert!(lost(&[[whole(1), torn.clone()].concat()], 2), "by the note");
        assert!(lost(&[whole(1)], 2), "by the note, cleanly cut");
        assert!(
            lost(&[[whole(1), torn.clone(), whole(3)].concat()], 1),
            "by what follows"
        );
        assert!(
            lost(&[[whole(1), torn].concat(), whole(3)], 1),
            "by the next journal"
        );
    }

    /// The sum of a batch does not cover its sequence number.
    #[test]
    fn a_sequence_number_that_does_not_rise_is_damage() {
        for (at, mask) in [(5, 1), (5, 2), (5, 4), (6, 1), (12, 0x40), (12, 0x80)] {
            let mut batches = [whole(4), whole(5), whole(6)];
            batches[1][at] ^= mask;
            let verdict = judge(&[batches.concat()], 6);
            assert!(matches!(verdict, Verdict::Lost(_)), "{at} {mask}");
            let [first, second, third] = batches;
            let verdict = judge(&[first, second, third], 6);
            assert!(matches!(verdict, Verdict::Lost(_)), "{at} {mask}");
        }
    }
}
