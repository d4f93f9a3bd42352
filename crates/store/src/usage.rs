//! What a store holds, counted. The counts are the first record of every
//! group, so they are exact after every restart, and the number of the group
//! says how far the store has come. So does the mark, within one life of a home
//! (rule R9).

use crate::record;
use thorp_model::{Mark, Table};

/// What one table holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TableUsage {
    /// Records.
    pub records: u64,
    /// Bytes of keys, values and checksums.
    pub bytes: u64,
}

/// What a store holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    /// Groups committed since the store was made.
    pub groups: u64,
    /// The last batch in the last group, in the last life of the home. A batch that
    /// changed nothing is in no group.
    pub mark: Mark,
    tables: [TableUsage; Table::ALL.len()],
}

impl Usage {
    /// What one table holds.
    pub fn table(&self, table: Table) -> TableUsage {
        self.tables[record::place(table)]
    }

    /// Bytes of all tables together: what the limit is compared with.
    pub fn bytes(&self) -> u64 {
        self.tables.iter().map(|table| table.bytes).sum()
    }

    /// Counts a record in.
    pub(crate) fn add(&mut self, table: Table, charge: u64) {
        let counts = &mut self.tables[record::place(table)];
        counts.records += 1;
        counts.bytes += charge;
    }

    /// Counts a record out.
    pub(crate) fn remove(&mut self, table: Table, charge: u64) {
        let counts = &mut self.tables[record::place(table)];
        // Saturating: counts that are wrong by damage must not stop a home
        // that can still read its records. `check` compares them.
        counts.records = counts.records.saturating_sub(1);
        counts.bytes = counts.bytes.saturating_sub(charge);
    }

    /// The stored form, sealed.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut value = Vec::with_capacity(VALUE_BYTES);
        value.extend_from_slice(&self.groups.to_le_bytes());
        for table in &self.tables {
            value.extend_from_slice(&table.records.to_le_bytes());
            value.extend_from_slice(&table.bytes.to_le_bytes());
        }
        value.extend_from_slice(&self.mark.0.to_le_bytes());
        record::seal(KEYSPACE, KEY, &value)
    }

    /// The usage in a stored form, or what is wrong with it.
    pub(crate) fn decode(stored: &[u8]) -> Result<Usage, String> {
        let value = record::open(KEYSPACE, KEY, stored)?;
        if ![VALUE_BYTES, VALUE_BYTES_WITHOUT_MARK].contains(&value.len()) {
            return Err(format!("{} bytes instead of {VALUE_BYTES}", value.len()));
        }
        let (numbers, _) = value.as_chunks::<8>();
        let mut numbers = numbers.iter().map(|bytes| u64::from_le_bytes(*bytes));
        let mut usage = Usage {
            groups: numbers.next().unwrap_or_default(),
            ..Usage::default()
        };
        for table in &mut usage.tables {
            table.records = numbers.next().unwrap_or_default();
            table.bytes = numbers.next().unwrap_or_default();
        }
        usage.mark = Mark(numbers.next().unwrap_or_default());
        Ok(usage)
    }
}

/// The engine's keyspace for the store's own record.
pub(crate) const KEYSPACE: &str = "store";

/// The key of the usage record.
pub(crate) const KEY: &[u8] = b"usage";

/// A key under which there is never a record.
pub(crate) const NO_KEY: &[u8] = b"no";

/// As stores of format 1 have it.
const VALUE_BYTES_WITHOUT_MARK: usize = 8 + Table::ALL.len() * 16;

const VALUE_BYTES: usize = VALUE_BYTES_WITHOUT_MARK + 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_round_trips() {
        let mut usage = Usage {
            groups: 7,
            mark: Mark(3),
            ..Usage::default()
        };
        usage.add(Table::Log, 100);
        usage.add(Table::Log, 50);
        usage.remove(Table::Log, 100);
        usage.add(Table::Staged, 9);
        assert_eq!(Usage::decode(&usage.encode()), Ok(usage));
        assert_eq!(usage.bytes(), 59);
        assert_eq!(usage.table(Table::Log).records, 1);
    }

    #[test]
    fn the_usage_of_an_earlier_build_has_no_mark() {
        let usage = Usage {
            groups: 7,
            ..Usage::default()
        };
        let encoded = usage.encode();
        let value = record::open(KEYSPACE, KEY, &encoded).unwrap();
        let earlier = record::seal(KEYSPACE, KEY, &value[..VALUE_BYTES_WITHOUT_MARK]);
        assert_eq!(Usage::decode(&earlier), Ok(usage));
    }
}
