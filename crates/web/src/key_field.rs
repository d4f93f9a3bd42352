//! Fields of answers in which an origin names the keys on which the answer rests.

use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use std::collections::BTreeSet;

/// Keys that the fields of one answer name. An answer with more rests on *everything*.
pub const KEYS_OF_ANSWER_MAX: usize = 1_024;

/// Bytes of the fields of one answer that name keys. An answer with more rests on *everything*.
pub const KEY_FIELD_BYTES_MAX: usize = 16 << 10;

/// A field that names keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyField {
    /// `Surrogate-Key`: keys with spaces between them.
    SurrogateKey,
    /// `xkey`: keys with spaces between them, or commas.
    Xkey,
    /// `Cache-Tag`: keys with commas between them.
    CacheTag,
    /// `Cache-Groups` (RFC 9875): a list of strings in quotes.
    CacheGroups,
}

impl KeyField {
    /// All of them.
    pub const ALL: [KeyField; 4] = [
        KeyField::SurrogateKey,
        KeyField::Xkey,
        KeyField::CacheTag,
        KeyField::CacheGroups,
    ];

    /// The field of a name, in any case. None: no such field names keys.
    pub fn of(name: &str) -> Option<Self> {
        let mut all = KeyField::ALL.into_iter();
        all.find(|field| name.eq_ignore_ascii_case(field.name().as_str()))
    }

    /// What it is called.
    pub(crate) fn name(self) -> HeaderName {
        HeaderName::from_static(match self {
            KeyField::SurrogateKey => "surrogate-key",
            KeyField::Xkey => "xkey",
            KeyField::CacheTag => "cache-tag",
            KeyField::CacheGroups => "cache-groups",
        })
    }

    /// The keys on which an answer rests, as these fields of its head and of its trailers name them. None: nobody can say, as no field is
    /// there, or one is empty, cannot be read, or is too large.
    pub(crate) fn keys_of(fields: &[KeyField], parts: [&HeaderMap; 2]) -> Option<BTreeSet<String>> {
        let mut keys = BTreeSet::new();
        let mut bytes = 0;
        for field in fields {
            let name = field.name();
            for value in parts.iter().flat_map(|part| part.get_all(&name)) {
                bytes += value.len();
                if bytes > KEY_FIELD_BYTES_MAX {
                    return None;
                }
                let found = field.keys(value)?;
                if found.is_empty() {
                    return None;
                }
                keys.extend(found);
            }
        }
        (!keys.is_empty() && keys.len() <= KEYS_OF_ANSWER_MAX).then_some(keys)
    }

    /// The keys in one line of the field. None: it cannot be read.
    fn keys(self, value: &HeaderValue) -> Option<Vec<String>> {
        let text = std::str::from_utf8(value.as_bytes()).ok()?;
        if text
            .chars()
            .any(|letter| letter.is_control() && letter != '\t')
        {
            return None;
        }
        let divided = |is_between: fn(char) -> bool| {
            let parts = text.split(is_between).map(str::trim);
            let parts = parts.filter(|part| !part.is_empty());
            parts.map(str::to_owned).collect::<Vec<_>>()
        };
        match self {
            KeyField::SurrogateKey => Some(divided(|letter| matches!(letter, ' ' | '\t'))),
            KeyField::Xkey => Some(divided(|letter| matches!(letter, ' ' | '\t' | ','))),
            KeyField::CacheTag => Some(divided(|letter| letter == ',')),
            KeyField::CacheGroups => strings(text),
        }
    }
}

/// A list of strings (RFC 9651, sections 4.2.1 and 4.2.5). Parameters of a string mean nothing. None: it is something else.
fn strings(text: &str) -> Option<Vec<String>> {
    let mut found = Vec::new();
    let mut rest = text.trim_matches([' ', '\t']);
    while !rest.is_empty() {
        let (string, behind) = string(rest.strip_prefix('"')?)?;
        found.push(string);
        rest = without_parameters(behind)?.trim_start_matches([' ', '\t']);
        if rest.is_empty() {
            break;
        }
        rest = rest.strip_prefix(',')?.trim_start_matches([' ', '\t']);
        if rest.is_empty() {
            return None;
        }
    }
    Some(found)
}

/// A string behind its first quote, and what follows its last one.
fn string(text: &str) -> Option<(String, &str)> {
    let mut string = String::new();
    let mut letters = text.char_indices();
    loop {
        match letters.next()? {
            (at, '"') => return Some((string, text.get(at + 1..)?)),
            (_, '\\') => match letters.next()? {
                (_, letter @ ('"' | '\\')) => string.push(letter),
                _ => return None,
            },
            (_, letter @ ' '..='~') => string.push(letter),
            _ => return None,
        }
    }
}

/// What follows the parameters of a string. One with a comma or a quote in it is none that can be left out blindly.
fn without_parameters(text: &str) -> Option<&str> {
    let end = text.find(',').unwrap_or(text.len());
    let (parameters, rest) = text.split_at(end);
    let parameters = parameters.trim_matches([' ', '\t']);
    let is_none = parameters.is_empty() || parameters.starts_with(';');
    (is_none && !parameters.contains('"')).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(lines: &[(KeyField, &[u8])]) -> Option<Vec<String>> {
        let mut headers = HeaderMap::new();
        for (field, value) in lines {
            let value = HeaderValue::from_bytes(value).expect("a value");
            headers.append(field.name(), value);
        }
        let found = KeyField::keys_of(&KeyField::ALL, [&headers, &HeaderMap::new()]);
        found.map(|keys| keys.into_iter().collect())
    }

    #[test]
    fn each_field_divides_its_keys_in_its_own_way() {
        use KeyField::{CacheGroups, CacheTag, SurrogateKey, Xkey};
        for (field, value, expected) in [
            (SurrogateKey, " b  a\tb", &["a", "b"][..]),
            (SurrogateKey, "a,b", &["a,b"]),
            (SurrogateKey, "page:0:Z\u{fc}rich", &["page:0:Z\u{fc}rich"]),
            (Xkey, "a b,c", &["a", "b", "c"]),
            (CacheTag, "a b, c ,,d", &["a b", "c", "d"]),
            (
                CacheGroups,
                r#""a", "b c";x=1 , "d\"\\""#,
                &["a", "b c", "d\"\\"],
            ),
        ] {
            let found = keys(&[(field, value.as_bytes())]);
            assert_eq!(
                found.as_deref(),
                Some(&expected.map_strings()[..]),
                "{value}"
            );
        }
        assert_eq!(
            keys(&[(SurrogateKey, b"a"), (CacheTag, b"b")]),
            Some(["a", "b"].map_strings())
        );
    }

    #[test]
    fn what_cannot_be_read_names_nothing_even_beside_what_can() {
        use KeyField::{CacheGroups, CacheTag, SurrogateKey};
        let huge = "x".repeat(KEY_FIELD_BYTES_MAX);
        let many: String = (0..=KEYS_OF_ANSWER_MAX)
            .map(|key| format!("{key} "))
            .collect();
        for (field, value) in [
            (SurrogateKey, &b"a\xff"[..]),
            (SurrogateKey, b" "),
            (CacheTag, b",,"),
            (CacheGroups, b"a"),
            (CacheGroups, b"\"a"),
            (CacheGroups, b"\"a\","),
            (CacheGroups, b"\"a\" \"b\""),
            (CacheGroups, b"\"a\\n\""),
            (CacheGroups, b"(\"a\")"),
            (CacheGroups, "\"\u{fc}\"".as_bytes()),
            (SurrogateKey, huge.as_bytes()),
            (SurrogateKey, many.as_bytes()),
        ] {
            assert_eq!(keys(&[(SurrogateKey, b"good"), (field, value)]), None);
        }
        assert_eq!(keys(&[]), None);
        let most = many
            .trim_end()
            .rsplit_once(' ')
            .map_or("", |(most, _)| most);
        let found = keys(&[(SurrogateKey, most.as_bytes())]);
        assert_eq!(found.map(|keys| keys.len()), Some(KEYS_OF_ANSWER_MAX));
    }

    trait Strings {
        fn map_strings(&self) -> Vec<String>;
    }

    impl<T: AsRef<[&'static str]> + ?Sized> Strings for T {
        fn map_strings(&self) -> Vec<String> {
            self.as_ref()
                .iter()
                .map(|text| (*text).to_owned())
                .collect()
        }
    }
}
