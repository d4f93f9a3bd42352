//! Asking a node over HTTP: one GET, small answers, bounded in time and size.

use crate::failure::{Code, Failure};
use crate::text;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use thorp_net::{Identity, StatusStream, call_status_port};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::{Instant, timeout, timeout_at};

/// The body that `GET path` gives at a node: `HOST:PORT` or `http://HOST:PORT[/]`.
pub(crate) fn get(node: &str, path: &str, within: Duration) -> Result<String, Failure> {
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
    asked(node, path, within, None)
}

/// The same from a node that answers operators only: `HOST:PORT` or `https://HOST:PORT[/]`.
pub(crate) fn get_as(
    operator: &Identity,
    node: &str,
    path: &str,
    within: Duration,
) -> Result<String, Failure> {
    asked(node, path, within, Some(operator))
}

fn asked(
    node: &str,
    path: &str,
    within: Duration,
    operator: Option<&Identity>,
) -> Result<String, Failure> {
    let host = host_of(node);
    let answer = ask((host, path), within, operator);
    body_of(
        host,
        path,
        &answer.map_err(|error| unanswered((node, path), within, &error))?,
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

fn unanswered((node, path): (&str, &str), within: Duration, error: &io::Error) -> Failure {
    let host = host_of(node);
    if error.kind() == io::ErrorKind::FileTooLarge {
        let most = text::bytes(STATUS_BYTES_MAX);
        return Failure::new(
            format!("{host} answers more than {most} to {path}"),
            "check that this is the --http address of a home or a site",
        );
    }
    if error.kind() == io::ErrorKind::InvalidInput {
        return Failure::new(
            format!("{node:?} is no address: {error}"),
            "write HOST:PORT or http://HOST:PORT",
        )
        .with(Code::Usage);
    }
    let why = match error.kind() {
        io::ErrorKind::TimedOut => format!("no whole answer came within {}", text::time(within)),
        _ => error.to_string(),
    };
    let todo = "check that it runs there, and that it was not started with another --http, or with --http off";
    Failure::new(format!("{host} does not answer: {why}"), todo).with(Code::Unreachable)
}

/// Whether what answers there begins as HTTP does.
pub(crate) fn is_spoken(node: &str, within: Duration) -> bool {
    let asked = ask((host_of(node), "/"), within, None);
    asked.is_ok_and(|answer| answer.starts_with("HTTP/"))
}

/// Whether somebody listens there.
pub(crate) fn is_taken(node: &str) -> bool {
    let host = host_of(node);
    bounded(TAKEN_WITHIN, async |deadline| {
        connect(host, deadline, None).await.map(drop)
    })
    .is_ok()
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

/// The whole answer. The name, all its addresses, TLS and the answer have one deadline.
fn ask(
    (host, path): (&str, &str),
    within: Duration,
    operator: Option<&Identity>,
) -> io::Result<String> {
    bounded(within, async |deadline| {
        let stream = connect(host, deadline, operator).await?;
        timeout_at(deadline, exchange(stream, host, path)).await?
    })
}

/// Runs it with the moment at which it is to end.
fn bounded<T>(within: Duration, run: impl AsyncFnOnce(Instant) -> io::Result<T>) -> io::Result<T> {
    let runtime = thorp_server::runtime()?;
    let deadline = Instant::now() + within.min(WITHIN_MAX);
    let done = runtime.block_on(run(deadline));
    // A lookup that hangs is not waited for.
    runtime.shutdown_background();
    done
}

/// The first of a name's addresses that connects. Each has an equal share of the time that is left.
async fn connect(
    host: &str,
    deadline: Instant,
    operator: Option<&Identity>,
) -> io::Result<StatusStream> {
    let found = timeout_at(deadline, lookup_host(host)).await??;
    let addresses: Vec<SocketAddr> = found.collect();
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for (tried, address) in addresses.iter().enumerate() {
        let others = u32::try_from(addresses.len() - tried).unwrap_or(u32::MAX);
        let share = deadline.saturating_duration_since(Instant::now()) / others;
        match timeout(share, connect_to(*address, operator)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => last = error,
            Err(elapsed) => last = elapsed.into(),
        }
    }
    Err(last)
}

async fn connect_to(address: SocketAddr, operator: Option<&Identity>) -> io::Result<StatusStream> {
    match operator {
        Some(operator) => {
            let called = call_status_port(address, operator).await;
            called.map_err(|error| io::Error::other(error.to_string()))
        }
        None => Ok(Box::new(TcpStream::connect(address).await?)),
    }
}

async fn exchange(mut stream: StatusStream, host: &str, path: &str) -> io::Result<String> {
    // At once: who answers the first bytes and closes is understood, too.
    stream.write_all(request(host, path).as_bytes()).await?;
    let mut answer = Vec::new();
    let mut bounded = stream.take(STATUS_BYTES_MAX + 1);
    let read = bounded.read_to_end(&mut answer).await?;
    if read as u64 > STATUS_BYTES_MAX {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    // Whoever asked says it better if this is no text.
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

fn request(host: &str, path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
}

/// Far above any status, of however many children.
const STATUS_BYTES_MAX: u64 = 16 << 20;
/// The clock does not reach for ever.
const WITHIN_MAX: Duration = Duration::from_secs(24 * 60 * 60);

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::thread;

    /// A port that answers its first caller like this. It ends when the caller hangs up.
    fn port(answer: impl FnOnce(&mut TcpStream) -> io::Result<()> + Send + 'static) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut asked = [0; 1024];
            let _ = stream.read(&mut asked);
            let _ = answer(&mut stream);
        });
        address
    }

    #[test]
    fn a_whole_answer_is_given() {
        let node = port(|stream| stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nwell"));
        let within = Duration::from_secs(60);
        assert_eq!(get(&node, "/status", within).unwrap(), "well");
    }

    /// With a deadline for each read it would never end.
    #[test]
    fn a_port_that_drips_a_byte_a_second_is_given_up() {
        let node = port(|stream| {
            loop {
                stream.write_all(b"H")?;
                thread::sleep(Duration::from_secs(1));
            }
        });
        let failure = get(&node, "/status", Duration::from_secs(2)).unwrap_err();
        let words = "no whole answer came within 2.00 s";
        assert!(failure.what().contains(words), "{failure}");
    }

    #[test]
    fn an_answer_without_an_end_is_given_up() {
        let node = port(|stream| {
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
            loop {
                stream.write_all(&[b' '; 1 << 16])?;
            }
        });
        let failure = get(&node, "/status", Duration::from_secs(60)).unwrap_err();
        let words = "answers more than 16.0 MiB to /status";
        assert!(failure.what().contains(words), "{failure}");
    }
}
