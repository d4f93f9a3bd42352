//! What of a request chooses among the answers of one address: `Vary`, and fields that shape answers unasked.

use crate::proxy::fields::{joined, members};
use hyper::header::{self, HeaderMap, HeaderName};

/// An answer that varies by more fields is not stored.
const FIELDS_MAX: usize = 16;

/// Fields by which frameworks find out what the client asks for. Some answers show them and do not say so in `Vary`.
/// A client that could put such an answer before others would choose what they see.
const SHAPING: [&str; 8] = [
    "forwarded",
    "front-end-https",
    "x-host",
    "x-http-method",
    "x-proto",
    "x-rewrite-url",
    "x-scheme",
    "x-url-scheme",
];

/// So do names that begin so ...
const SHAPING_BEGINS: [&str; 2] = ["x-forwarded-", "x-original-"];

/// ... or end so.
const SHAPING_ENDS: [&str; 2] = ["-host", "-override"];

/// Each client has another one, behind a server that sets it. So it counts only if `Vary` names it.
const OF_CLIENTS: &str = "x-forwarded-for";

/// Whether a field counts unasked. Servers read `X_Forwarded_Host` as `X-Forwarded-Host`, so each name that is not of letters, digits and `-`
/// does.
fn is_shaping(name: &str) -> bool {
    let is_usual = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let is_of_kind = || {
        SHAPING.contains(&name)
            || SHAPING_BEGINS.iter().any(|begin| name.starts_with(begin))
            || SHAPING_ENDS.iter().any(|end| name.ends_with(end))
    };
    !name.bytes().all(is_usual) || name != OF_CLIENTS && is_of_kind()
}

/// The fields of a request on which its answer depends, as that request had them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Selecting {
    named: Vec<(HeaderName, Option<String>)>,
    shaping: Vec<(HeaderName, String)>,
}

impl Selecting {
    /// Looks at an answer and its request. None: no other request is sure to get the same answer.
    pub(super) fn of(answer: &HeaderMap, request: &HeaderMap) -> Option<Self> {
        let varies = joined(answer, &header::VARY).unwrap_or_default();
        let mut named = Vec::new();
        for word in members(&varies) {
            if word == "*" || named.len() == FIELDS_MAX {
                return None;
            }
            let name: HeaderName = word.parse().ok()?;
            let value = normal(request, &name);
            named.push((name, value));
        }
        let shaping = shaping(request);
        Some(Selecting { named, shaping })
    }

    /// Whether another request chooses the same answer.
    pub(super) fn is_for(&self, request: &HeaderMap) -> bool {
        let has = |(name, value): &(HeaderName, Option<String>)| normal(request, name) == *value;
        self.named.iter().all(has) && shaping(request) == self.shaping
    }

    /// About how many bytes of memory it takes.
    pub(super) fn bytes(&self) -> usize {
        let named = self.named.iter();
        let named = named.map(|(_, value)| 64 + value.as_ref().map_or(0, String::len));
        let shaping = self.shaping.iter().map(|(_, value)| 64 + value.len());
        named.chain(shaping).sum()
    }
}

/// A field without what has no meaning in it: how it is divided into lines, spaces beside commas, the case of languages.
fn normal(request: &HeaderMap, name: &HeaderName) -> Option<String> {
    let lines = request.get_all(name);
    if lines
        .iter()
        .any(|line| std::str::from_utf8(line.as_bytes()).is_err())
    {
        // No text: it stands for itself. No text has an end of a line in it.
        let lines = lines.iter().map(|line| line.as_bytes().escape_ascii());
        return Some(lines.map(|line| format!("{line}\n")).collect());
    }
    let text = joined(request, name)?;
    let words: Vec<&str> = members(&text).collect();
    let text = words.join(",");
    let has_no_case = [
        header::ACCEPT_LANGUAGE,
        header::ACCEPT_ENCODING,
        header::ACCEPT_CHARSET,
    ];
    Some(match has_no_case.contains(name) {
        true => text.to_ascii_lowercase(),
        false => text,
    })
}

fn shaping(request: &HeaderMap) -> Vec<(HeaderName, String)> {
    let names = request.keys().filter(|name| is_shaping(name.as_str()));
    let found = names.filter_map(|name| Some((name.clone(), normal(request, name)?)));
    let mut found: Vec<(HeaderName, String)> = found.collect();
    found.sort_unstable_by(|one, other| one.0.as_str().cmp(other.0.as_str()));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    fn headers(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    fn of(vary: &'static str, request: &[(&'static str, &'static str)]) -> Option<Selecting> {
        Selecting::of(&headers(&[("vary", vary)]), &headers(request))
    }

    #[test]
    fn the_named_fields_have_to_be_the_same() {
        let selecting = of("Foo, Accept-Language", &[("foo", "1, 2")]).expect("it can be stored");
        let is_for = |fields: &[(&'static str, &'static str)]| selecting.is_for(&headers(fields));
        assert!(is_for(&[("foo", "1"), ("foo", "2"), ("bar", "3")]));
        assert!(is_for(&[("foo", " 1,2 ")]));
        assert!(!is_for(&[("foo", "2, 1")]) && !is_for(&[]));
        assert!(!is_for(&[("foo", "1, 2"), ("accept-language", "en")]));
        let selecting = of("accept-language", &[("accept-language", "en, de")]).expect("stored");
        assert!(selecting.is_for(&headers(&[("accept-language", "eN,   De")])));
        assert!(!selecting.is_for(&headers(&[("accept-language", "de, en")])));
    }

    #[test]
    fn a_field_that_is_no_text_is_like_no_other() {
        let bytes = |bytes: &'static [u8]| {
            let value = HeaderValue::from_bytes(bytes).expect("a value");
            [(HeaderName::from_static("foo"), value)]
                .into_iter()
                .collect::<HeaderMap>()
        };
        let answer = headers(&[("vary", "foo")]);
        let selecting = Selecting::of(&answer, &bytes(b"\xff")).expect("it can be stored");
        assert!(selecting.is_for(&bytes(b"\xff")));
        assert!(!selecting.is_for(&bytes(b"\xfe")) && !selecting.is_for(&bytes(b"\\xff")));
    }

    #[test]
    fn what_varies_by_anything_is_for_nobody_else() {
        for vary in ["*", "foo, *", ", *", "f o o"] {
            assert_eq!(of(vary, &[]), None, "{vary}");
        }
        let many = (0..=FIELDS_MAX).map(|field| format!("x-{field}"));
        let many = many.collect::<Vec<_>>().join(", ");
        let many = headers(&[])
            .try_append("vary", many.parse().expect("a value"))
            .map(|_| many);
        let vary: HeaderMap = [(header::VARY, many.expect("room").parse().expect("a value"))]
            .into_iter()
            .collect();
        assert_eq!(Selecting::of(&vary, &HeaderMap::new()), None);
    }

    #[test]
    fn a_field_that_shapes_answers_is_keyed_unasked() {
        let poisoned = of("", &[("x-forwarded-host", "evil.example")]).expect("it can be stored");
        assert!(!poisoned.is_for(&headers(&[])));
        assert!(poisoned.is_for(&headers(&[("X-Forwarded-Host", "evil.example")])));
        let clean = of("", &[("x-other", "1")]).expect("it can be stored");
        assert!(clean.is_for(&headers(&[("x-other", "2")])));
        for name in [
            "x-original-url",
            "x_forwarded_host",
            "x.forwarded.host",
            "x-forwarded_host",
            "x-original-host",
            "x-http-host-override",
            "x-http-method-override",
            "x-forwarded-protocol",
            "x-real-host",
            "forwarded",
        ] {
            let evil = headers(&[(name, "evil")]);
            assert!(!clean.is_for(&evil), "{name}");
            let poisoned = of("", &[(name, "evil")]).expect("it can be stored");
            assert!(!poisoned.is_for(&headers(&[])), "{name}");
            assert!(poisoned.is_for(&evil), "{name}");
        }
        assert!(clean.is_for(&headers(&[("x-forwarded-for", "192.0.2.1")])));
    }

    #[test]
    fn the_order_of_fields_shapes_nothing() {
        let fields = [("x_a", "1"), ("x-forwarded-host", "b"), ("x_a", "2")];
        let selecting = of("", &fields).expect("it can be stored");
        let other = [fields[1], fields[0], fields[2]];
        assert!(selecting.is_for(&headers(&other)));
    }
}
