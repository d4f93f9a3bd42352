//! The greetings that go before frames.
//!
//! ```text
//! caller    "THORP"  role u8  version u16 | hello length u16  hello
//! listener  "THORP"  role u8  version u16 | verdict u8  length u16  hello or reason
//! ```
//!
//! Numbers are little-endian. What stands left of the bar (the *prologue*) is the same in every version for ever, and a
//! listener answers with its own prologue before it turns anybody away: so each side can say which of the two must be upgraded.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::config::{FAREWELL_BYTES_MAX, FAREWELL_TIME_MAX, HELLO_BYTES_MAX};
use crate::{Config, Error, Role};

const MAGIC: [u8; 5] = *b"THORP";
const PROLOGUE_BYTES: usize = 8;
const ACCEPTED: u8 = 1;
const REJECTED: u8 = 2;
/// Sent to who cannot understand more than the prologue.
const NO_COMMON_VERSION: u8 = 3;

/// What the other side said.
#[derive(Debug)]
pub(crate) struct Greeting {
    pub(crate) role: Role,
    pub(crate) hello: Vec<u8>,
}

/// The caller's side: greets and hears the answer.
pub(crate) async fn greet<S>(
    stream: &mut S,
    config: &Config,
    hello: &[u8],
) -> Result<Greeting, Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut greeting = prologue(config).to_vec();
    push_text(&mut greeting, hello)?;
    let sent = send(stream, &greeting).await;
    // Even if sending failed: the answer, or TLS's alert, says more than a broken pipe.
    match hear_answer(stream, config).await {
        Err(Error::Io { .. } | Error::Lost | Error::Truncated { .. }) if sent.is_err() => {
            sent.and(Err(Error::Lost))
        }
        answer => answer,
    }
}

async fn hear_answer<S: AsyncRead + Unpin>(
    stream: &mut S,
    config: &Config,
) -> Result<Greeting, Error> {
    let role = read_prologue(stream, config).await?;
    let [verdict] = read_array(stream).await?;
    let text = read_text(stream).await?;
    match verdict {
        ACCEPTED => Ok(Greeting { role, hello: text }),
        REJECTED => Err(Error::Rejected {
            reason: printable(&text),
        }),
        verdict => Err(Error::BadAnswer { verdict }),
    }
}

/// The listener's side: hears the greeting. On an error the caller has been told as far as it can understand.
pub(crate) async fn hear<S>(stream: &mut S, config: &Config) -> Result<Greeting, Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let heard = hear_greeting(stream, config).await;
    if let Err(Error::NotThorp { .. } | Error::Version { .. }) = &heard {
        // The error to report is the one at hand, whether or not the caller gets to hear it.
        let _ = send(stream, &answer_bytes(config, NO_COMMON_VERSION, &[])).await;
    }
    heard
}

async fn hear_greeting<S: AsyncRead + Unpin>(
    stream: &mut S,
    config: &Config,
) -> Result<Greeting, Error> {
    let role = read_prologue(stream, config).await?;
    let hello = read_text(stream).await?;
    Ok(Greeting { role, hello })
}

/// The answer that accepts a caller.
pub(crate) fn acceptance(config: &Config, hello: &[u8]) -> Result<Vec<u8>, Error> {
    check_length(hello)?;
    Ok(answer_bytes(config, ACCEPTED, hello))
}

/// The answer that rejects a caller; a reason that is too long is cut.
pub(crate) fn rejection(config: &Config, reason: &str) -> Vec<u8> {
    let reason = reason.as_bytes();
    answer_bytes(
        config,
        REJECTED,
        &reason[..reason.len().min(HELLO_BYTES_MAX)],
    )
}

/// Sends the last words and then reads on for a little while: a socket closed over unread bytes would be reset, and the reset
/// could reach the peer before the words do.
pub(crate) async fn farewell<S>(mut stream: S, words: &[u8])
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let goodbye = async {
        if send(&mut stream, words).await.is_ok() && stream.shutdown().await.is_ok() {
            let mut rest = (&mut stream).take(FAREWELL_BYTES_MAX as u64);
            // Whatever is read, and however reading ends, is of no interest.
            let _ = tokio::io::copy(&mut rest, &mut tokio::io::sink()).await;
        }
    };
    let _ = tokio::time::timeout(FAREWELL_TIME_MAX, goodbye).await;
}

/// Bounds a step of the handshake.
pub(crate) async fn within<T>(
    after: Duration,
    during: &'static str,
    step: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    tokio::time::timeout(after, step)
        .await
        .unwrap_or(Err(Error::Timeout { during, after }))
}

async fn send<S: AsyncWrite + Unpin>(stream: &mut S, bytes: &[u8]) -> Result<(), Error> {
    let failed = |error| Error::from_tls("sending the greeting", error);
    stream.write_all(bytes).await.map_err(failed)?;
    stream.flush().await.map_err(failed)
}

fn prologue(config: &Config) -> [u8; PROLOGUE_BYTES] {
    let [m0, m1, m2, m3, m4] = MAGIC;
    let [v0, v1] = config.version.to_le_bytes();
    [m0, m1, m2, m3, m4, config.role.0, v0, v1]
}

fn answer_bytes(config: &Config, verdict: u8, text: &[u8]) -> Vec<u8> {
    let mut answer = prologue(config).to_vec();
    answer.push(verdict);
    // Every caller has bounded the text.
    answer.extend_from_slice(&(text.len() as u16).to_le_bytes());
    answer.extend_from_slice(text);
    answer
}

fn push_text(greeting: &mut Vec<u8>, text: &[u8]) -> Result<(), Error> {
    check_length(text)?;
    greeting.extend_from_slice(&(text.len() as u16).to_le_bytes());
    greeting.extend_from_slice(text);
    Ok(())
}

fn check_length(text: &[u8]) -> Result<(), Error> {
    if text.len() > HELLO_BYTES_MAX {
        return Err(Error::HelloTooLong {
            bytes: text.len(),
            bytes_max: HELLO_BYTES_MAX,
        });
    }
    Ok(())
}

async fn read_prologue<S: AsyncRead + Unpin>(
    stream: &mut S,
    config: &Config,
) -> Result<Role, Error> {
    let [m0, m1, m2, m3, m4, role, v0, v1]: [u8; PROLOGUE_BYTES] = read_array(stream).await?;
    let found = [m0, m1, m2, m3, m4];
    if found != MAGIC {
        return Err(Error::NotThorp { found });
    }
    let (role, theirs) = (Role(role), u16::from_le_bytes([v0, v1]));
    if theirs != config.version {
        return Err(Error::Version {
            ours: config.version,
            theirs,
            role,
        });
    }
    Ok(role)
}

async fn read_text<S: AsyncRead + Unpin>(stream: &mut S) -> Result<Vec<u8>, Error> {
    let bytes = usize::from(u16::from_le_bytes(read_array(stream).await?));
    if bytes > HELLO_BYTES_MAX {
        return Err(Error::HelloTooLong {
            bytes,
            bytes_max: HELLO_BYTES_MAX,
        });
    }
    let mut text = vec![0; bytes];
    read_full(stream, &mut text).await?;
    Ok(text)
}

async fn read_array<const N: usize, S: AsyncRead + Unpin>(
    stream: &mut S,
) -> Result<[u8; N], Error> {
    let mut array = [0; N];
    read_full(stream, &mut array).await?;
    Ok(array)
}

async fn read_full<S: AsyncRead + Unpin>(stream: &mut S, buffer: &mut [u8]) -> Result<(), Error> {
    let mut bytes = 0;
    while bytes < buffer.len() {
        match stream.read(&mut buffer[bytes..]).await {
            Ok(0) => {
                return Err(Error::Truncated {
                    bytes,
                    bytes_due: buffer.len(),
                });
            }
            Ok(read) => bytes += read,
            Err(error) => return Err(Error::from_tls("reading the greeting", error)),
        }
    }
    Ok(())
}

/// A reason comes from another machine and ends on somebody's terminal.
fn printable(text: &[u8]) -> String {
    String::from_utf8_lossy(text)
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(version: u16, role: Role) -> Config {
        Config {
            version,
            ..Config::new(role)
        }
    }

    #[tokio::test]
    async fn both_sides_name_both_versions() {
        let (mut caller, mut listener) = tokio::io::duplex(1 << 10);
        let (member, home) = (config(1, Role::MEMBER), config(3, Role::HOME));
        let (answer, heard) = tokio::join!(
            greet(&mut caller, &member, b"hi"),
            hear(&mut listener, &home)
        );
        let answer = answer.unwrap_err();
        assert_eq!(
            answer.to_string(),
            "the home speaks protocol 3, this program speaks 1: upgrade this program"
        );
        let heard = heard.unwrap_err();
        assert_eq!(
            heard.to_string(),
            "the member speaks protocol 1, this program speaks 3: upgrade the peer"
        );
    }

    #[tokio::test]
    async fn the_bytes_of_a_greeting() {
        let (mut caller, mut listener) = tokio::io::duplex(1 << 10);
        let member = config(0x0102, Role::MEMBER);
        let mut bytes = [0; 12];
        let (_, read) = tokio::join!(
            tokio::time::timeout(
                Duration::from_millis(50),
                greet(&mut caller, &member, b"hi")
            ),
            listener.read_exact(&mut bytes)
        );
        read.unwrap();
        assert_eq!(&bytes, b"THORP\x03\x02\x01\x02\x00hi");
    }

    #[tokio::test]
    async fn a_stranger_is_told_apart_and_a_hello_is_bounded() {
        let (mut caller, mut listener) = tokio::io::duplex(1 << 10);
        let home = config(1, Role::HOME);
        caller.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
        let error = hear(&mut listener, &home).await.unwrap_err();
        assert!(
            matches!(
                error,
                Error::NotThorp {
                    found: [b'G', b'E', b'T', b' ', b'/']
                }
            ),
            "{error}"
        );

        let (mut caller, mut listener) = tokio::io::duplex(1 << 10);
        caller
            .write_all(b"THORP\x03\x01\x00\x01\x10")
            .await
            .unwrap();
        let error = hear(&mut listener, &home).await.unwrap_err();
        assert!(
            matches!(error, Error::HelloTooLong { bytes: 4097, .. }),
            "{error}"
        );
        let error = greet(&mut caller, &home, &[0; 4097]).await.unwrap_err();
        assert!(
            matches!(error, Error::HelloTooLong { bytes: 4097, .. }),
            "{error}"
        );
    }

    #[tokio::test]
    async fn an_answer_without_meaning_is_an_error() {
        let (mut caller, mut listener) = tokio::io::duplex(1 << 10);
        listener
            .write_all(b"THORP\x01\x01\x00\x09\x00\x00")
            .await
            .unwrap();
        let error = greet(&mut caller, &config(1, Role::MEMBER), b"")
            .await
            .unwrap_err();
        assert!(matches!(error, Error::BadAnswer { verdict: 9 }), "{error}");
    }

    #[test]
    fn reasons_are_fit_for_a_terminal() {
        assert_eq!(printable(b"no\x1b[2J room\xff"), "no [2J room\u{fffd}");
    }
}
