//! What a person sees of the open updates of a keeper.

use serde::{Deserialize, Serialize};

/// Updates that are shown one by one. The others are counted.
pub(super) const SHOWN_MAX: usize = 64;

/// Keys that are shown of an update ...
const KEYS_SHOWN_MAX: usize = 4;

/// ... and bytes of each of them.
const KEY_BYTES_SHOWN_MAX: usize = 100;

/// The open updates of a keeper.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ShownUpdates {
    /// How many updates are open.
    pub open: usize,
    /// Of those, the ones that nobody follows, and then the oldest: 64 at most.
    pub updates: Vec<ShownUpdate>,
}

/// An open update.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ShownUpdate {
    /// The keeper's number of it. 0: what proxies of before may have open, which have not come to this keeper.
    pub id: u64,
    /// The process of its proxy.
    pub process: Option<u32>,
    /// What it changes.
    #[serde(flatten)]
    pub keys: ShownKeys,
    /// How long the keeper has known it, in milliseconds.
    pub age_ms: u64,
    /// Nobody follows it, and it ends after so many milliseconds. None: its proxy follows it.
    pub left_ms: Option<u64>,
}

/// What an update changes, shortened: four keys at most, of 100 bytes each at most.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ShownKeys {
    /// The first keys. None: it may change anything.
    pub keys: Option<Vec<String>>,
    /// How many more there are.
    pub more_keys: usize,
}

impl ShownKeys {
    pub(super) fn of(keys: Option<&[String]>) -> Self {
        let shown = keys.map(|keys| keys.iter().take(KEYS_SHOWN_MAX));
        ShownKeys {
            keys: shown.map(|shown| shown.map(|key| shortened(key)).collect()),
            more_keys: keys.map_or(0, |keys| keys.len().saturating_sub(KEYS_SHOWN_MAX)),
        }
    }
}

fn shortened(key: &str) -> String {
    let mut end = key.len().min(KEY_BYTES_SHOWN_MAX);
    while !key.is_char_boundary(end) {
        end -= 1;
    }
    key.get(..end).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_short() {
        assert_eq!(ShownKeys::of(None).keys, None);
        let long = "\u{fc}".repeat(KEY_BYTES_SHOWN_MAX);
        let keys: Vec<String> = vec![format!("a{long}"); KEYS_SHOWN_MAX + 3];
        let shown = ShownKeys::of(Some(&keys));
        assert_eq!(shown.more_keys, 3);
        let first = shown.keys.expect("it has keys")[0].clone();
        assert_eq!(first.len(), KEY_BYTES_SHOWN_MAX - 1);
    }
}
