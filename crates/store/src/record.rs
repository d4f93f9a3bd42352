//! A stored value: a checksum over table, key and value, then the value.
//!
//! The engine has checksums for its blocks. This one also catches what goes
//! wrong above them, a value under a wrong key for one, and names the record.

use thorp_model::Table;

/// Bytes of the checksum before each stored value.
pub(crate) const CHECKSUM_BYTES: usize = 4;

/// The stored form of a value.
pub(crate) fn seal(table: &str, key: &[u8], value: &[u8]) -> Vec<u8> {
    let mut stored = Vec::with_capacity(CHECKSUM_BYTES + value.len());
    stored.extend_from_slice(&checksum(table, key, value).to_le_bytes());
    stored.extend_from_slice(value);
    stored
}

/// The value in a stored form, or what is wrong with it.
pub(crate) fn open<'a>(table: &str, key: &[u8], stored: &'a [u8]) -> Result<&'a [u8], String> {
    let Some((sum, value)) = stored.split_first_chunk::<CHECKSUM_BYTES>() else {
        return Err(format!("{} bytes are too few for a record", stored.len()));
    };
    let (told, found) = (u32::from_le_bytes(*sum), checksum(table, key, value));
    if told != found {
        return Err(format!("checksum {found:08x} instead of {told:08x}"));
    }
    Ok(value)
}

/// What a record counts for in limits and usage, in bytes.
pub(crate) fn charge(key: &[u8], value_bytes: usize) -> u64 {
    (key.len() + CHECKSUM_BYTES + value_bytes) as u64
}

/// The place of a table in arrays, as in [`Table::ALL`].
pub(crate) fn place(table: Table) -> usize {
    match table {
        Table::Meta => 0,
        Table::Log => 1,
        Table::Pages => 2,
        Table::Outcomes => 3,
        Table::Staged => 4,
    }
}

fn checksum(table: &str, key: &[u8], value: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(table.as_bytes());
    // The key's length keeps its end and the value's beginning apart.
    hasher.update(&(key.len() as u32).to_le_bytes());
    hasher.update(key);
    hasher.update(value);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_opens_only_as_it_was_sealed() {
        let stored = seal("pages", b"key", b"value");
        assert_eq!(open("pages", b"key", &stored), Ok(&b"value"[..]));
        assert!(open("log", b"key", &stored).is_err());
        assert!(open("pages", b"kex", &stored).is_err());
        assert!(open("pages", b"key", &stored[..3]).is_err());
        for at in 0..stored.len() {
            let mut wrong = stored.clone();
            wrong[at] ^= 1;
            assert!(open("pages", b"key", &wrong).is_err());
        }
    }

    #[test]
    fn places_follow_the_list_of_tables() {
        for (at, table) in Table::ALL.into_iter().enumerate() {
            assert_eq!(place(table), at);
        }
    }
}
