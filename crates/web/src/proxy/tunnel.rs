//! WebSockets: a request that turns its connection into a tunnel to the origin (RFC 9110, section 7.8).

use super::answer::drop_fields_of_connection;
use super::fields::{joined, members};
use super::origin::{Origin, OriginError, Outgoing, passed, whole};
use bytes::Bytes;
use hyper::body::{Body, Incoming};
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request, Response, StatusCode, Version};
use hyper_util::rt::TokioIo;
use std::sync::Arc;
use tokio::io::copy_bidirectional;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Tunnels at a time. Each has two connections and 16 KiB.
const TUNNELS_MAX: usize = 1_024;

/// The only protocol for which there is a tunnel. Through another one (`h2c`), requests would pass that nobody looks at.
const PROTOCOL: &str = "websocket";

/// The open tunnels.
#[derive(Clone, Debug)]
pub(crate) struct Tunnels(Arc<Semaphore>);

impl Default for Tunnels {
    fn default() -> Self {
        Tunnels(Arc::new(Semaphore::new(TUNNELS_MAX)))
    }
}

/// Whether a client wants a tunnel.
pub(crate) fn is_wanted<B: Body>(request: &Request<B>) -> bool {
    request.method() == Method::GET
        && request.version() == Version::HTTP_11
        && request.body().is_end_stream()
        && is_for_next_node(request.headers())
        && is_to_protocol(request.headers())
}

/// Whether `Connection` has the word that goes with `Upgrade`.
fn is_for_next_node(headers: &HeaderMap) -> bool {
    let words = joined(headers, &header::CONNECTION).unwrap_or_default();
    members(&words).any(|word| word.eq_ignore_ascii_case("upgrade"))
}

impl Tunnels {
    /// Asks the origin for a tunnel. If it wants none, its answer is as any other.
    pub(crate) async fn open(
        &self,
        origin: &Origin,
        mut request: Request<Incoming>,
    ) -> Result<Response<Outgoing>, OriginError> {
        let Ok(place) = Arc::clone(&self.0).try_acquire_owned() else {
            let mut answer = Response::new(whole(Bytes::from("there are too many tunnels\n")));
            *answer.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            return Ok(answer);
        };
        let client = hyper::upgrade::on(&mut request);
        let path = request.uri().path_and_query().cloned();
        turn(request.headers_mut());
        let mut answer = origin.send(path.as_ref(), request.map(passed)).await?;
        let turns = answer.status() == StatusCode::SWITCHING_PROTOCOLS;
        if !turns {
            drop_fields_of_connection(answer.headers_mut());
            return Ok(answer.map(passed));
        }
        if !is_to_protocol(answer.headers()) {
            return Err(OriginError::Away(String::from(
                "it turns to another protocol",
            )));
        }
        turn(answer.headers_mut());
        let server = hyper::upgrade::on(&mut answer);
        tokio::spawn(carry(client, server, place));
        Ok(answer.map(|_| whole(Bytes::new())))
    }
}

/// Carries bytes both ways until both sides have ended.
async fn carry(client: OnUpgrade, server: OnUpgrade, place: OwnedSemaphorePermit) {
    let carried = async {
        let (client, server) = tokio::try_join!(client, server)?;
        let ends = (&mut TokioIo::new(client), &mut TokioIo::new(server));
        copy_bidirectional(ends.0, ends.1).await?;
        Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
    };
    if let Err(error) = carried.await {
        tracing::debug!("a tunnel: {error}");
    }
    drop(place);
}

fn is_to_protocol(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(header::UPGRADE).iter();
    let first = values.next().map(HeaderValue::as_bytes);
    values.next().is_none()
        && first.is_some_and(|value| value.eq_ignore_ascii_case(PROTOCOL.as_bytes()))
}

/// The fields for the next node are the proxy's own.
fn turn(headers: &mut HeaderMap) {
    drop_fields_of_connection(headers);
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static(PROTOCOL));
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::{Empty, Full};

    #[test]
    fn only_a_websocket_gets_a_tunnel() {
        let request = |protocol: &str| {
            let request = Request::builder().header("connection", "keep-alive, Upgrade");
            let request = request.header("upgrade", protocol);
            request.body(Empty::<Bytes>::new()).expect("a request")
        };
        assert!(is_wanted(&request("WebSocket")));
        assert!(!is_wanted(&request("h2c")) && !is_wanted(&request("websocket, h2c")));
        let mut post = request("websocket");
        *post.method_mut() = Method::POST;
        assert!(!is_wanted(&post));
        let body = Request::builder().header("upgrade", "websocket");
        assert!(!is_wanted(
            &body.body(Full::new(Bytes::from("x"))).expect("a request")
        ));
    }
}
