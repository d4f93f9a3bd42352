//! Conditions of clients, against what a cache has (RFC 9110, section 13).

use super::fields::{Dated, date, joined, members};
use hyper::header::{self, HeaderMap};

/// Whether a client has the answer already, so that 304 is enough.
pub(crate) fn has_it(request: &HeaderMap, answer: &HeaderMap) -> bool {
    if let Some(known) = joined(request, &header::IF_NONE_MATCH) {
        let own = joined(answer, &header::ETAG);
        let is_own = |tag: &str| own.as_deref().is_some_and(|own| opaque(own) == opaque(tag));
        return members(&known).any(|tag| tag == "*" || is_own(tag));
    }
    let seen = Dated::of(request, &header::IF_MODIFIED_SINCE).known();
    let changed = Dated::of(answer, &header::LAST_MODIFIED).known();
    // Without a word of when it changed, it is as old as it is.
    let changed = changed.or_else(|| Dated::of(answer, &header::DATE).known());
    matches!((seen, changed), (Some(seen), Some(changed)) if changed <= seen)
}

/// Whether a client wants another state than this one (`If-Match`).
pub(crate) fn wants_another(request: &HeaderMap, answer: &HeaderMap) -> bool {
    let Some(wanted) = joined(request, &header::IF_MATCH) else {
        return false;
    };
    let own = joined(answer, &header::ETAG);
    let own = own.as_deref().filter(|own| own.starts_with('"'));
    !members(&wanted).any(|tag| tag == "*" || own == Some(tag))
}

/// Whether a client that has a part wants another part of this answer (`If-Range`). Otherwise it wants all.
pub(crate) fn wants_a_part(request: &HeaderMap, answer: &HeaderMap) -> bool {
    let Some(condition) = joined(request, &header::IF_RANGE) else {
        return true;
    };
    match date(&condition) {
        Some(seen) => Dated::of(answer, &header::LAST_MODIFIED) == Dated::At(seen),
        None => {
            let is_strong = condition.starts_with('"');
            is_strong && joined(answer, &header::ETAG).is_some_and(|own| own == condition)
        }
    }
}

/// A tag without the mark that it is weak.
fn opaque(tag: &str) -> &str {
    tag.strip_prefix("W/").unwrap_or(tag)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    const BEFORE: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
    const CHANGED: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const CHANGED_850: &str = "Sunday, 06-Nov-94 08:49:37 GMT";

    fn headers(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn tags_go_before_dates() {
        let answer = headers(&[("etag", "\"a\""), ("last-modified", CHANGED)]);
        let has = |fields: &[(&'static str, &'static str)]| has_it(&headers(fields), &answer);
        assert!(has(&[("if-none-match", "\"b\", \"a\"")]) && has(&[("if-none-match", "*")]));
        assert!(has(&[("if-none-match", "W/\"a\"")]));
        assert!(!has(&[
            ("if-none-match", "\"b\""),
            ("if-modified-since", CHANGED)
        ]));
        assert!(
            has(&[("if-modified-since", CHANGED)]) && has(&[("if-modified-since", CHANGED_850)])
        );
        assert!(!has(&[("if-modified-since", BEFORE)]));
        assert!(!has(&[("if-modified-since", "yesterday")]) && !has(&[]));
    }

    #[test]
    fn a_part_is_for_who_has_the_rest_of_the_same() {
        let answer = headers(&[("etag", "\"a\""), ("last-modified", CHANGED)]);
        let wants = |condition| wants_a_part(&headers(&[("if-range", condition)]), &answer);
        assert!(wants("\"a\"") && wants(CHANGED));
        assert!(!wants("\"b\"") && !wants("W/\"a\"") && !wants(BEFORE));
        assert!(wants_a_part(&headers(&[]), &answer));
    }
}
