//! Which host a request means: one, that cache and origin both see.

use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Method, Request, StatusCode, Version};

/// Why no origin gets a request, and what its client gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Refused(pub(crate) StatusCode, pub(crate) &'static str);

/// Sees that the field `Host` is the one host of a request. With two, the cache and the origin could mean different ones. The origin gets
/// it as it stands in names in the cache, in lower case: an origin could answer `SHOP` otherwise than `shop`.
pub(crate) fn settle<B>(request: &mut Request<B>) -> Result<(), Refused> {
    choose(request)?;
    if let Some(host) = request.headers_mut().get_mut(header::HOST)
        && let Ok(lower) = HeaderValue::from_bytes(&host.as_bytes().to_ascii_lowercase())
    {
        *host = lower;
    }
    Ok(())
}

fn choose<B>(request: &mut Request<B>) -> Result<(), Refused> {
    if [Method::CONNECT, Method::TRACE].contains(request.method()) {
        let words = "the proxy makes no tunnels and no traces";
        return Err(Refused(StatusCode::METHOD_NOT_ALLOWED, words));
    }
    join_cookies(request.headers_mut());
    let bad = |words| Err(Refused(StatusCode::BAD_REQUEST, words));
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let (host, more) = (hosts.next().cloned(), hosts.next());
    let authority = request
        .uri()
        .authority()
        .map(|authority| authority.as_str());
    match (host, authority) {
        _ if more.is_some() => bad("a request names one host"),
        (Some(host), Some(authority))
            if !host.as_bytes().eq_ignore_ascii_case(authority.as_bytes()) =>
        {
            bad("a request names one host, in its address and in the field Host")
        }
        (Some(_), _) => Ok(()),
        // So HTTP/2 says it.
        (None, Some(authority)) => match HeaderValue::from_str(authority) {
            Ok(host) => {
                request.headers_mut().insert(header::HOST, host);
                Ok(())
            }
            Err(_) => bad("a request names its host in text"),
        },
        (None, None) if request.version() < Version::HTTP_11 => Ok(()),
        (None, None) => bad("a request names its host"),
    }
}

/// HTTP/2 may divide the cookies into several fields. An origin of HTTP/1.1 reads one (RFC 9113, section 8.2.3).
fn join_cookies(headers: &mut HeaderMap) {
    let mut cookies = headers.get_all(header::COOKIE).iter();
    if cookies.next().is_none() || cookies.next().is_none() {
        return;
    }
    let cookies: Vec<&[u8]> = headers
        .get_all(header::COOKIE)
        .iter()
        .map(HeaderValue::as_bytes)
        .collect();
    if let Ok(joined) = HeaderValue::from_bytes(&cookies.join(&b"; "[..])) {
        headers.insert(header::COOKIE, joined);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(address: &str, hosts: &[&str], version: Version) -> Option<String> {
        let mut request = Request::builder().uri(address).version(version);
        for host in hosts {
            request = request.header("host", *host);
        }
        let mut request = request.body(()).expect("a request");
        settle(&mut request).ok()?;
        let host = request.headers().get("host");
        Some(String::from_utf8_lossy(host.map_or(b"", HeaderValue::as_bytes)).into_owned())
    }

    #[test]
    fn a_request_means_one_host() {
        let one = |host: &str| Some(host.to_owned());
        let version = Version::HTTP_11;
        assert_eq!(settled("/", &["a"], version), one("a"));
        assert_eq!(settled("http://a/", &["A"], version), one("a"));
        assert_eq!(settled("/", &["Shop:80"], version), one("shop:80"));
        assert_eq!(settled("https://A/", &[], Version::HTTP_2), one("a"));
        assert_eq!(settled("/", &[], Version::HTTP_10), one(""));
        assert_eq!(settled("/", &["a", "a"], version), None);
        assert_eq!(settled("http://b/", &["a"], version), None);
        assert_eq!(settled("/", &[], version), None);
        let mut trace = Request::builder()
            .method(Method::TRACE)
            .body(())
            .expect("a request");
        assert!(settle(&mut trace).is_err());
    }

    #[test]
    fn cookies_are_one_field() {
        let mut headers = HeaderMap::new();
        for cookie in ["a=1; b=2", "c=3"] {
            headers.append("cookie", HeaderValue::from_static(cookie));
        }
        join_cookies(&mut headers);
        let joined: Vec<&HeaderValue> = headers.get_all("cookie").iter().collect();
        assert_eq!(joined, ["a=1; b=2; c=3"]);
    }
}
