//! What is stored has memory of its own. A body and a field that come from the origin are parts of the buffer into which their connection
//! was read: whoever keeps one byte of that buffer keeps all of it.

use super::budget::Share;
use bytes::Bytes;
use hyper::header::{HeaderMap, HeaderValue};

/// A body in memory of its own, which counts as long as anybody has a part of it.
#[derive(Debug)]
struct Owned {
    bytes: Vec<u8>,
    _share: Share,
}

impl AsRef<[u8]> for Owned {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// A copy of a body, which counts in this share until its last part is gone.
pub(super) fn body(parts: &[Bytes], share: Share) -> Bytes {
    let bytes = parts.concat();
    share.grow(bytes.len() as u64);
    Bytes::from_owner(Owned {
        bytes,
        _share: share,
    })
}

/// A copy of fields.
pub(super) fn fields(headers: &HeaderMap) -> HeaderMap {
    let mut copied = HeaderMap::with_capacity(headers.keys_len());
    for (name, value) in headers {
        let copy = HeaderValue::from_bytes(value.as_bytes());
        copied.append(name, copy.unwrap_or_else(|_| value.clone()));
    }
    copied
}

#[cfg(test)]
mod tests {
    use super::super::budget::{BUILDING_BYTES_MAX, Budget};
    use super::*;

    /// A text within a large buffer.
    fn within_a_buffer(text: &'static [u8]) -> (Bytes, Bytes) {
        let buffer = Bytes::from([text, &[b'x'; 1 << 16]].concat());
        (buffer.slice(..text.len()), buffer)
    }

    fn is_within(part: &[u8], buffer: &[u8]) -> bool {
        buffer.as_ptr_range().contains(&part.as_ptr())
    }

    #[test]
    fn a_stored_body_keeps_no_buffer() {
        let (part, buffer) = within_a_buffer(b"body");
        assert!(is_within(&part, &buffer));
        let copy = body(&[part], Budget::default().share());
        assert_eq!(copy, "body");
        assert!(!is_within(&copy, &buffer));
    }

    #[test]
    fn stored_fields_keep_no_buffer() {
        let (part, buffer) = within_a_buffer(b"value");
        let mut headers = HeaderMap::new();
        let value = HeaderValue::from_maybe_shared(part).expect("a value");
        headers.append("x-a", value.clone());
        headers.append("x-a", HeaderValue::from_static("more"));
        headers.append("x-b", value);
        assert!(is_within(headers["x-b"].as_bytes(), &buffer));
        let copy = fields(&headers);
        assert_eq!(copy, headers);
        assert!(
            copy.values()
                .all(|value| !is_within(value.as_bytes(), &buffer))
        );
    }

    #[test]
    fn a_dropped_answer_counts_until_its_last_reader_has_it() {
        let budget = Budget::default();
        budget.allow(10);
        let room = budget.share();
        assert!(room.grow(BUILDING_BYTES_MAX));
        let stored = body(&[Bytes::from("0123456789")], room.another());
        assert!(room.has_room());
        let reader = stored.slice(2..);
        drop(stored);
        assert!(!room.grow(1));
        drop(reader);
        assert!(room.has_room());
    }
}
