//! Asking a node over HTTP: one GET, small answers, bounded in time and size.

use crate::failure::{Code, Failure};
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;
use thorp_net::Identity;

/// The body that `GET path` gives at a node: `HOST:PORT` or `http://HOST:PORT[/]`.
pub(crate) fn get(node: &str, path: &str, timeout: Duration) -> Result<String, Failure> {
    if let Some((scheme, rest)) = node.split_once("://")
        && scheme != "http"
    {
        let what = format!("{node}: only plain http is read, not {scheme}");
        let todo = format!(
            "write HOST:PORT or http://HOST:PORT, as http://{}",
            host_of(rest)
        );
        return Err(Failure::new(what, todo).with(Code::Usage));
    }
    let host = host_of(node);
    let answer = ask(host, path, timeout);
    body_of(
        host,
        path,
        &answer.map_err(|error| unanswered(node, timeout, &error))?,
    )
}

/// The same from a node that answers operators only: `HOST:PORT` or `https://HOST:PORT[/]`.
pub(crate) fn get_as(
    operator: &Identity,
    node: &str,
    path: &str,
    timeout: Duration,
) -> Result<String, Failure> {
    let host = host_of(node);
    let answer = tls::ask(host, path, timeout, operator);
    body_of(
        host,
        path,
        &answer.map_err(|error| unanswered(node, timeout, &error))?,
    )
}

fn body_of(host: &str, path: &str, answer: &str) -> Result<String, Failure> {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((answer, ""));
    let mut words = head.split_whitespace();
    let is_http = words.next().is_some_and(|first| first.starts_with("HTTP/"));
    let status = words.next().filter(|_| is_http);
    let status = status.unwrap_or("with something else than HTTP");
    // A node that is not well says so in the body, with 503.
    if status == "200" || status == "503" {
        return Ok(body.to_owned());
    }
    if status == "403" {
        let what = format!("{host} does not answer this node: {}", body.trim_end());
        return Err(Failure::new(
            what,
            "give an operator's certificate with --identity",
        ));
    }
    let todo = "check that this is the --http address of a home or a site: the last line that it printed when it started; one that \
                answers operators only needs --identity";
    Err(Failure::new(
        format!("{host} answers {status} to {path}"),
        todo,
    ))
}

fn unanswered(node: &str, timeout: Duration, error: &io::Error) -> Failure {
    let host = host_of(node);
    if error.kind() == io::ErrorKind::InvalidInput {
        return Failure::new(
            format!("{node:?} is no address: {error}"),
            "write HOST:PORT or http://HOST:PORT",
        )
        .with(Code::Usage);
    }
    let why = match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            format!("nothing came within {} s", timeout.as_secs())
        }
        _ => error.to_string(),
    };
    let todo = "check that it runs there, and that it was not started with another --http, or with --http off";
    Failure::new(format!("{host} does not answer: {why}"), todo).with(Code::Unreachable)
}

/// Whether what answers there begins as HTTP does.
pub(crate) fn is_spoken(node: &str, timeout: Duration) -> bool {
    ask(host_of(node), "/", timeout).is_ok_and(|answer| answer.starts_with("HTTP/"))
}

/// Whether somebody listens there.
pub(crate) fn is_taken(node: &str) -> bool {
    let addresses = host_of(node).to_socket_addrs();
    let mut addresses = addresses.into_iter().flatten();
    addresses.any(|address| TcpStream::connect_timeout(&address, TAKEN_WITHIN).is_ok())
}

/// The system answers for a process that does not.
const TAKEN_WITHIN: Duration = Duration::from_secs(1);

/// The scheme of a node that answers operators only.
pub(crate) const HTTPS: &str = "https://";

fn host_of(node: &str) -> &str {
    let schemes = ["http://", HTTPS].into_iter();
    let rest = schemes
        .filter_map(|scheme| node.strip_prefix(scheme))
        .next();
    let rest = rest.unwrap_or(node);
    rest.split('/').next().unwrap_or(rest)
}

fn ask(host: &str, path: &str, timeout: Duration) -> io::Result<String> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in host.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, timeout) {
            Ok(stream) => return exchange(stream, host, path, timeout),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn exchange(
    mut stream: TcpStream,
    host: &str,
    path: &str,
    timeout: Duration,
) -> io::Result<String> {
    stream.set_read_timeout(Some(timeout))?;
    stream.set_write_timeout(Some(timeout))?;
    // At once: who answers the first bytes and closes is understood, too.
    stream.write_all(request(host, path).as_bytes())?;
    let mut answer = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer)?;
    // Whoever asked says it better if this is no text.
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

fn request(host: &str, path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
}

/// Far above any status; what is longer is not one.
const ANSWER_BYTES_MAX: u64 = 16 << 20;

/// Asking by TLS.
mod tls {
    use super::{ANSWER_BYTES_MAX, request};
    use std::io;
    use std::net::ToSocketAddrs;
    use std::time::Duration;
    use thorp_net::{Identity, call_status_port};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    pub(super) fn ask(
        host: &str,
        path: &str,
        timeout: Duration,
        identity: &Identity,
    ) -> io::Result<String> {
        let runtime = thorp_server::runtime()?;
        let asking = async { tokio::time::timeout(timeout, first(host, path, identity)).await };
        let asked = runtime.block_on(asking);
        asked.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    async fn first(host: &str, path: &str, identity: &Identity) -> io::Result<String> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for address in host.to_socket_addrs()? {
            match call_status_port(address, identity).await {
                Ok(mut stream) => {
                    stream.write_all(request(host, path).as_bytes()).await?;
                    let mut answer = Vec::new();
                    stream
                        .take(ANSWER_BYTES_MAX)
                        .read_to_end(&mut answer)
                        .await?;
                    return Ok(String::from_utf8_lossy(&answer).into_owned());
                }
                Err(error) => last = io::Error::other(error.to_string()),
            }
        }
        Err(last)
    }
}
