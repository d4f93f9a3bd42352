//! What a client gets of a whole answer: all of it, its head, a part, or the word that it has it already.

use super::conditions;
use super::fields::joined;
use super::origin::{Outgoing, whole};
use super::range::Wanted;
use bytes::Bytes;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Response, StatusCode};

/// Cuts an answer to what a request wants. Conditions and parts are for answers 200 only.
pub(crate) fn shape(
    (status, mut headers, body): (StatusCode, HeaderMap, Bytes),
    request: &HeaderMap,
    is_head: bool,
) -> Response<Outgoing> {
    if status != StatusCode::OK {
        return end((status, headers, body), is_head);
    }
    if conditions::wants_another(request, &headers) {
        headers.remove(header::CONTENT_LENGTH);
        return end(
            (StatusCode::PRECONDITION_FAILED, headers, Bytes::new()),
            is_head,
        );
    }
    if conditions::has_it(request, &headers) {
        headers.remove(header::CONTENT_LENGTH);
        return answer(StatusCode::NOT_MODIFIED, headers, Bytes::new());
    }
    if is_head || !conditions::wants_a_part(request, &headers) {
        return end((status, headers, body), is_head);
    }
    let field = joined(request, &header::RANGE);
    match Wanted::of(field.as_deref(), body.len()) {
        Wanted::Whole => answer(status, headers, body),
        Wanted::Part(part) => {
            let (first, last) = (part.start, part.end - 1);
            say_range(
                &mut headers,
                &format!("bytes {first}-{last}/{}", body.len()),
            );
            answer(StatusCode::PARTIAL_CONTENT, headers, body.slice(part))
        }
        Wanted::Beyond => {
            say_range(&mut headers, &format!("bytes */{}", body.len()));
            answer(StatusCode::RANGE_NOT_SATISFIABLE, headers, Bytes::new())
        }
    }
}

fn end(
    (status, mut headers, mut body): (StatusCode, HeaderMap, Bytes),
    is_head: bool,
) -> Response<Outgoing> {
    if is_head {
        // The length stays that of the whole answer.
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
        body = Bytes::new();
    }
    answer(status, headers, body)
}

fn answer(status: StatusCode, headers: HeaderMap, body: Bytes) -> Response<Outgoing> {
    let mut answer = Response::new(whole(body));
    *answer.status_mut() = status;
    *answer.headers_mut() = headers;
    answer
}

/// The length is that of the part, and the server says it.
fn say_range(headers: &mut HeaderMap, range: &str) {
    headers.remove(header::CONTENT_LENGTH);
    if let Ok(range) = HeaderValue::from_str(range) {
        headers.insert(header::CONTENT_RANGE, range);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shaped(status: u16, fields: &[(&'static str, &'static str)]) -> u16 {
        let mut request = HeaderMap::new();
        for (name, value) in fields {
            request.insert(*name, HeaderValue::from_static(value));
        }
        let headers = [(header::ETAG, HeaderValue::from_static("\"a\""))];
        let status = StatusCode::from_u16(status).expect("a status");
        let whole = (
            status,
            headers.into_iter().collect(),
            Bytes::from("0123456789"),
        );
        shape(whole, &request, false).status().as_u16()
    }

    #[test]
    fn conditions_go_before_parts() {
        let part = ("range", "bytes=0-1");
        assert_eq!(shaped(200, &[]), 200);
        assert_eq!(shaped(200, &[part]), 206);
        assert_eq!(shaped(200, &[part, ("if-none-match", "\"a\"")]), 304);
        assert_eq!(shaped(200, &[part, ("if-match", "\"a\"")]), 206);
        assert_eq!(shaped(200, &[part, ("if-match", "W/\"a\"")]), 412);
        assert_eq!(shaped(200, &[("if-match", "\"b\"")]), 412);
        assert_eq!(shaped(404, &[part, ("if-none-match", "\"a\"")]), 404);
    }
}
