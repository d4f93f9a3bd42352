//! As much of HTTP/1.1 as a small application behind a proxy needs: a thread for each connection.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// Connections at a time. One more is closed.
const CONNECTIONS_MAX: usize = 512;

/// Bytes of the head of a request.
const HEAD_BYTES_MAX: u64 = 16 << 10;

/// Bytes of its body.
const BODY_BYTES_MAX: usize = 4 << 10;

/// How long a connection may be silent.
const SILENT_FOR: Duration = Duration::from_secs(60);

/// A request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// As `GET`.
    pub method: String,
    /// With its query.
    pub path: String,
    /// As text.
    pub body: String,
}

/// An answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// As 200.
    pub status: u16,
    /// Its fields, without those of its body.
    pub fields: Vec<(&'static str, String)>,
    /// Its body.
    pub body: String,
}

impl Answer {
    /// An answer that is a page.
    pub fn html(body: &str) -> Self {
        Answer::of(200, "text/html; charset=utf-8", body)
    }

    /// An answer that is a line.
    pub fn plain(status: u16, body: &str) -> Self {
        Answer::of(status, "text/plain; charset=utf-8", body)
    }

    fn of(status: u16, kind: &str, body: &str) -> Self {
        Answer {
            status,
            fields: vec![("Content-Type", kind.to_owned())],
            body: body.to_owned(),
        }
    }
}

/// Serves until it is killed. Each connection gets something of its own that answers.
///
/// # Errors
///
/// The system accepts no connections.
pub fn serve<A>(listener: &TcpListener, begin: impl Fn() -> A) -> io::Result<()>
where
    A: FnMut(&Request) -> Answer + Send + 'static,
{
    let count = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming() {
        let stream = stream?;
        let place = Counted(Arc::clone(&count));
        if count.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS_MAX {
            continue;
        }
        let answer = begin();
        thread::spawn(move || {
            // A client that is gone wants nothing.
            let _ = attend(&stream, answer);
            drop(place);
        });
    }
    Ok(())
}

/// One connection of those that are counted.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn attend(stream: &TcpStream, mut answer: impl FnMut(&Request) -> Answer) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(SILENT_FOR))?;
    let (mut reader, mut writer) = (BufReader::new(stream), stream);
    while let Some(request) = read(&mut reader)? {
        let answer = answer(&request);
        let is_head = request.method == "HEAD";
        writer.write_all(&written(&answer, is_head))?;
    }
    Ok(())
}

/// The next request. None: there is none.
fn read(reader: &mut impl BufRead) -> io::Result<Option<Request>> {
    let mut head = reader.take(HEAD_BYTES_MAX);
    let mut line = String::new();
    if head.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_ascii_whitespace().map(str::to_owned);
    let (method, path) = (words.next(), words.next());
    let (Some(method), Some(path)) = (method, path) else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    let mut length = 0;
    loop {
        let mut line = String::new();
        if head.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        if name.eq_ignore_ascii_case("transfer-encoding") {
            return Err(io::ErrorKind::Unsupported.into());
        }
        if name.eq_ignore_ascii_case("content-length") {
            length = value
                .trim()
                .parse()
                .map_err(|_| io::ErrorKind::InvalidData)?;
        }
    }
    if length > BODY_BYTES_MAX {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let body = String::from_utf8(body).map_err(|_| io::ErrorKind::InvalidData)?;
    Ok(Some(Request { method, path, body }))
}

fn written(answer: &Answer, is_head: bool) -> Vec<u8> {
    let length = answer.body.len();
    let mut text = format!(
        "HTTP/1.1 {} -\r\nContent-Length: {length}\r\n",
        answer.status
    );
    for (name, value) in &answer.fields {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str("\r\n");
    if !is_head {
        text.push_str(&answer.body);
    }
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_follow_each_other_and_huge_ones_are_refused() {
        let mut bytes: &[u8] =
            b"POST /a HTTP/1.1\r\ncontent-length: 2\r\n\r\nokGET /b HTTP/1.1\r\n\r\n";
        let next =
            |bytes: &mut &[u8]| read(bytes).map(|request| request.map(|request| request.body));
        assert_eq!(next(&mut bytes).unwrap(), Some("ok".to_owned()));
        assert_eq!(next(&mut bytes).unwrap(), Some(String::new()));
        assert_eq!(next(&mut bytes).unwrap(), None);
        let long = format!("GET / HTTP/1.1\r\nx: {}", "y".repeat(1 << 20));
        assert!(read(&mut long.as_bytes()).is_err());
        for bad in [
            "GET\r\n\r\n",
            "GET / HTTP/1.1\r\ncontent-length: -1\r\n\r\n",
            "GET / HTTP/1.1\r\ncontent-length: 99999\r\n\r\n",
            "GET / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n",
            "GET / HTTP/1.1\r\n",
        ] {
            assert!(read(&mut bad.as_bytes()).is_err(), "{bad:?}");
        }
    }
}
