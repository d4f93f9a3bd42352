//! What a request asks for, and whether the cache may answer it.

use super::entries::Weight;
use super::tally::Bypassed;
use crate::key_field::KeyField;
use crate::recipe::{Rests, Route};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request};
use thorp_versions::Place;

/// The fields by which a route lets its answers vary have at most so many bytes in a name. With more, a request is nobody
/// else's.
const VARIANT_BYTES_MAX: usize = 1_024;

/// The name of an answer in the cache.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Name {
    host: String,
    path_and_query: String,
    /// What the request has in the fields by which its route lets answers vary.
    variant: String,
}

impl Name {
    pub(crate) fn new(host: &str, path_and_query: &str) -> Self {
        Name {
            host: host.to_ascii_lowercase(),
            path_and_query: path_and_query.to_owned(),
            variant: String::new(),
        }
    }

    /// The name of one of several answers at an address. None: the fields are too large, or no text.
    fn with(mut self, headers: &HeaderMap, vary: &[HeaderName]) -> Option<Self> {
        for name in vary {
            // No field has a line's end in it, so no two requests read alike.
            for value in headers.get_all(name) {
                let value = value.to_str().ok()?;
                self.variant.push_str(&format!("{name}={value}\n"));
            }
        }
        (self.variant.len() <= VARIANT_BYTES_MAX).then_some(self)
    }

    /// The name of what a request asks for. None: it names no host.
    pub(crate) fn of<B>(request: &Request<B>) -> Option<Self> {
        let host = request.headers().get(header::HOST)?.to_str().ok()?;
        Some(Name::new(host, request.uri().path_and_query()?.as_str()))
    }

    pub(crate) fn variant(&self) -> &str {
        &self.variant
    }

    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    pub(crate) fn path_and_query(&self) -> &str {
        &self.path_and_query
    }
}

impl Weight for Name {
    fn bytes(&self) -> u64 {
        (self.host.len() + self.path_and_query.len() + self.variant.len()) as u64
    }
}

/// A request that the cache may answer.
#[derive(Clone, Debug)]
pub(crate) struct Coherent {
    pub(crate) name: Name,
    pub(crate) dependencies: Vec<Place>,
    /// The fields in which its answer names more of them.
    pub(crate) keys_from: Vec<KeyField>,
    /// The fields by which its answer may vary: they are in its name.
    pub(crate) vary: Vec<HeaderName>,
}

impl Coherent {
    /// Looks at a request to a route.
    ///
    /// # Errors
    ///
    /// It goes to the origin, and its answer is nobody else's: why.
    pub(crate) fn of<B>(
        request: &Request<B>,
        (route, rests): (&Route, Rests),
    ) -> Result<Self, Bypassed> {
        if request.method() != Method::GET && request.method() != Method::HEAD {
            return Err(Bypassed::Method);
        }
        let headers = request.headers();
        let asks_more = [header::AUTHORIZATION, header::UPGRADE];
        if asks_more.iter().any(|name| headers.contains_key(name)) {
            return Err(Bypassed::Credentials);
        }
        if !route.takes_query(request.uri().query().unwrap_or_default()) {
            return Err(Bypassed::Query);
        }
        if !cookies(headers).all(|name| route.ignores_cookie(name)) {
            return Err(Bypassed::Cookie);
        }
        let dependencies = match rests {
            Rests::OnEverything => Vec::from([Place::EVERYTHING]),
            Rests::On(keys) => keys.iter().map(|key| Place::of(key)).collect(),
        };
        let vary = route.vary().to_vec();
        let name = Name::of(request).and_then(|name| name.with(headers, &vary));
        Ok(Coherent {
            name: name.ok_or(Bypassed::Name)?,
            dependencies,
            keys_from: route.keys_from().to_vec(),
            vary,
        })
    }
}

/// The fields that go to the origin for an answer that others may have: the host, and what the route names. Any other field of a client
/// could shape the answer without being part of its name in the cache (trap W18).
pub(crate) fn shared_fields(headers: &HeaderMap, vary: &[HeaderName]) -> HeaderMap {
    let mut fields = HeaderMap::new();
    let more = vary.iter().filter(|name| **name != header::HOST);
    for name in [header::HOST].iter().chain(more) {
        for value in headers.get_all(name) {
            fields.append(name.clone(), value.clone());
        }
    }
    fields.insert(
        header::ACCEPT_ENCODING,
        HeaderValue::from_static("identity"),
    );
    fields
}

/// The names of the cookies. One that cannot be read has a name that nobody ignores.
fn cookies(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let values = headers.get_all(header::COOKIE).iter();
    let texts = values.map(|value| value.to_str().unwrap_or("?"));
    let cookies = texts.flat_map(|text| text.split(';')).map(str::trim);
    let cookies = cookies.filter(|cookie| !cookie.is_empty());
    cookies.map(|cookie| cookie.split_once('=').map_or(cookie, |(name, _)| name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::Recipe;

    const RECIPE: &str = r#"
        [[routes]]
        path = "/items/{id}"
        keys = ["item:{id}"]
        cookies = ["theme"]
        query = ["lang"]

        [[routes]]
        path = "/greeting"
        vary = ["accept-language", "x-region"]
    "#;

    fn request(uri: &str, fields: &[(&'static str, &str)]) -> Request<()> {
        let mut request = Request::new(());
        *request.uri_mut() = uri.parse().expect("an address");
        request
            .headers_mut()
            .insert("host", HeaderValue::from_static("Shop"));
        for (name, value) in fields {
            let value = HeaderValue::from_str(value).expect("a value");
            request.headers_mut().append(*name, value);
        }
        request
    }

    fn coherent(request: &Request<()>) -> Option<Coherent> {
        let recipe = Recipe::parse(RECIPE).expect("a recipe");
        Coherent::of(request, recipe.route(request.uri().path())?).ok()
    }

    #[test]
    fn a_request_that_names_all_it_rests_on_may_be_answered_from_the_cache() {
        let plain = coherent(&request("/items/7?lang=de", &[("cookie", "theme=dark")]));
        let plain = plain.expect("it is coherent");
        assert_eq!(plain.dependencies, [Place::of("item:7")]);
        let other = coherent(&request("/items/7", &[])).expect("it is coherent");
        assert_ne!(plain.name, other.name);
        for (uri, field) in [
            ("/items/7?with=8", ("x", "y")),
            ("/items", ("x", "y")),
            ("/items/7", ("cookie", "theme=dark; session=1")),
            ("/items/7", ("authorization", "Basic eA==")),
        ] {
            assert!(
                coherent(&request(uri, &[field])).is_none(),
                "{uri} {field:?}"
            );
        }
        // Its part is cut out of the whole answer.
        assert!(coherent(&request("/items/7", &[("range", "bytes=0-1")])).is_some());
        let mut post = request("/items/7", &[]);
        *post.method_mut() = Method::POST;
        assert!(coherent(&post).is_none());
    }

    #[test]
    fn what_an_answer_may_vary_by_is_in_its_name() {
        let name = |fields: &[(&'static str, &str)]| {
            coherent(&request("/greeting", fields)).map(|found| found.name)
        };
        let german = name(&[("accept-language", "de")]);
        assert!(german.is_some() && german == name(&[("accept-language", "de"), ("x", "y")]));
        assert_ne!(german, name(&[("accept-language", "en")]));
        assert_ne!(
            german,
            name(&[("accept-language", "de"), ("x-region", "1")])
        );
        assert_ne!(german, name(&[]));
        let large = "x".repeat(VARIANT_BYTES_MAX);
        assert_eq!(name(&[("x-region", &large)]), None);
        assert_eq!(name(&[("x-region", "\u{fc}")]), None);
        let asked = request("/greeting", &[("x-region", "1"), ("x-other", "2")]);
        let vary = coherent(&asked).expect("it is coherent").vary;
        let shared = shared_fields(asked.headers(), &vary);
        assert!(shared.contains_key("x-region") && !shared.contains_key("x-other"));
    }

    #[test]
    fn what_is_not_part_of_the_name_does_not_reach_the_origin() {
        let fields = [
            ("x-forwarded-host", "evil"),
            ("x-anything", "evil"),
            ("if-none-match", "*"),
            ("cookie", "theme=dark"),
            ("accept-encoding", "gzip"),
            ("accept", "text/html"),
            ("accept-language", "de"),
            ("user-agent", "<script>"),
        ];
        let shared = shared_fields(request("/items/7", &fields).headers(), &[]);
        let mut names: Vec<&str> = shared.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["accept-encoding", "host"]);
        assert_eq!(
            shared.get("accept-encoding").map(HeaderValue::as_bytes),
            Some(&b"identity"[..])
        );
    }
}
