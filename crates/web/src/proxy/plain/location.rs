//! Addresses that an answer names, seen from the address of its request.

use crate::proxy::request::Name;
use hyper::Uri;

/// The name of an address in `Location` or `Content-Location`. None: it is of another host, or it is no address.
pub(super) fn resolve(base: &Name, reference: &str) -> Option<Name> {
    let reference = reference.split('#').next().unwrap_or_default().trim();
    let path = match reference.split_once("//") {
        Some((scheme, _)) if scheme.is_empty() || scheme.ends_with(':') => {
            let absolute = match scheme {
                "" => format!("http:{reference}"),
                _ => reference.to_owned(),
            };
            let uri = absolute.parse::<Uri>().ok()?;
            let is_here = uri.authority()?.as_str().eq_ignore_ascii_case(base.host());
            is_here.then(|| {
                uri.path_and_query()
                    .map_or("/", |path| path.as_str())
                    .to_owned()
            })?
        }
        _ => relative(base.path_and_query(), reference),
    };
    Some(Name::new(base.host(), &path))
}

fn relative(base: &str, reference: &str) -> String {
    let base_path = base.split('?').next().unwrap_or("/");
    if reference.is_empty() {
        return base.to_owned();
    }
    if let Some(query) = reference.strip_prefix('?') {
        return format!("{base_path}?{query}");
    }
    let (path, query) = match reference.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (reference, None),
    };
    let directory = match path.starts_with('/') {
        true => "",
        false => base_path
            .rsplit_once('/')
            .map_or("", |(directory, _)| directory),
    };
    let mut segments = Vec::new();
    for segment in directory.split('/').chain(path.split('/')) {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            segment => segments.push(segment),
        }
    }
    let end = match path.ends_with('/') && !segments.is_empty() {
        true => "/",
        false => "",
    };
    let query = query.map_or_else(String::new, |query| format!("?{query}"));
    format!("/{}{end}{query}", segments.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_seen_from_another() {
        let base = Name::new("shop.example:8080", "/a/b?c=d");
        for (reference, found) in [
            ("/x?y", Some("/x?y")),
            ("x", Some("/a/x")),
            ("../x/", Some("/x/")),
            ("./x#y", Some("/a/x")),
            ("?e", Some("/a/b?e")),
            ("", Some("/a/b?c=d")),
            ("http://SHOP.example:8080/x", Some("/x")),
            ("https://shop.example:8080", Some("/")),
            ("//shop.example:8080/x", Some("/x")),
            ("http://other.example/x", None),
            ("http://shop.example/x", None),
        ] {
            let expected = found.map(|path| Name::new("shop.example:8080", path));
            assert_eq!(resolve(&base, reference), expected, "{reference}");
        }
    }
}
