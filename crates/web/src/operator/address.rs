//! An address as a person writes it, and the part of a question behind `?`.

use hyper::Uri;
use std::fmt;

/// The host and the path of answers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Address {
    /// As in the field `Host`, in small letters. None: any host.
    pub host: Option<String>,
    /// The path, with the query.
    pub path_and_query: String,
}

impl Address {
    /// What a proxy is asked for at its operator's port, to say what it knows of an address. None: it is no address.
    pub fn question(text: &str) -> Option<String> {
        Address::parse(text)?;
        Some(format!("/why?url={}", encoded(text)))
    }

    /// Reads `http://host/path`, `https://host/path`, or a path alone. The part behind `#` is the browser's own. None: it is
    /// none of these.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.split('#').next().unwrap_or(text);
        if text.starts_with('/') {
            let uri: Uri = text.parse().ok()?;
            return Some(Address {
                host: None,
                path_and_query: uri.path_and_query()?.as_str().to_owned(),
            });
        }
        let uri: Uri = text.parse().ok()?;
        let usual = match uri.scheme_str()? {
            "http" => ":80",
            "https" => ":443",
            _ => return None,
        };
        let host = uri.authority()?.as_str().to_ascii_lowercase();
        // A browser leaves the usual port out.
        let host = host.strip_suffix(usual).unwrap_or(&host).to_owned();
        Some(Address {
            host: Some(host),
            path_and_query: uri.path_and_query()?.as_str().to_owned(),
        })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Some(host) => write!(f, "{host}{}", self.path_and_query),
            None => f.write_str(&self.path_and_query),
        }
    }
}

/// The value of a parameter, decoded. None: it is not there, or it is no text.
pub(super) fn parameter(query: &str, name: &str) -> Option<String> {
    let mut parts = query.split('&').filter_map(|part| part.split_once('='));
    let (_, value) = parts.find(|(found, _)| *found == name)?;
    decoded(value)
}

fn decoded(value: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                let (high, low) = (digit()?, digit()?);
                u8::try_from(high * 16 + low).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

/// A value as it stands behind `?`.
pub(super) fn encoded(value: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' | b':' => {
            char::from(byte).to_string()
        }
        byte => format!("%{byte:02X}"),
    };
    value.bytes().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<String> {
        Address::parse(text).map(|address| address.to_string())
    }

    #[test]
    fn an_address_is_read_as_a_browser_sends_it() {
        let one = |text: &str| Some(text.to_owned());
        assert_eq!(
            read("http://Shop:80/items/1?a=b#top"),
            one("shop/items/1?a=b")
        );
        assert_eq!(read("https://shop:443"), one("shop/"));
        assert_eq!(read("http://shop:8080/"), one("shop:8080/"));
        assert_eq!(read("/items/1"), one("/items/1"));
        for text in ["", "shop/items/1", "ftp://shop/", "http:///a", "//shop/a b"] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn a_value_is_the_same_behind_a_question_mark() {
        for value in ["a b&c=d", "ü%/?#", "\"<>'", ""] {
            let query = format!("x=y&find={}", encoded(value));
            assert_eq!(parameter(&query, "find").as_deref(), Some(value));
        }
        assert_eq!(parameter("find=a+b", "find").as_deref(), Some("a b"));
        for query in ["find=%4", "find=%zz", "find=%ff", "find", "other=a"] {
            assert_eq!(parameter(query, "find"), None, "{query}");
        }
    }
}
