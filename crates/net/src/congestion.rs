//! How TCP decides how fast it sends.

use std::fmt;
use std::io;
use std::str::FromStr;

use socket2::SockRef;
#[cfg(any(target_os = "linux", target_os = "android"))]
use socket2::{Domain, Socket, Type};
use tokio::net::TcpStream;

/// How TCP decides how fast it sends: the name of a congestion control, or whose choice it is. What stays on one machine has
/// the system's.
///
/// On a wide-area link much depends on it. Cubic, which most systems use, takes every loss for a queue that is full: with one
/// packet in a hundred lost at 40 ms it takes many times as long as without. And whatever begins again after a second
/// of silence begins slowly. BBR (Cardwell and others, 2016) measures what the link can do, and does neither.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Congestion {
    /// BBR, where the system lets programs choose it; else the system's.
    #[default]
    Best,
    /// The system's.
    System,
    /// This one.
    Named(String),
}

impl Congestion {
    /// Whether the system lets this program choose it.
    ///
    /// # Errors
    ///
    /// The system's, if it does not: it knows no such congestion control, or has it and reserves it.
    pub fn check(&self) -> io::Result<()> {
        match self {
            Self::Named(name) => probe(name),
            Self::Best | Self::System => Ok(()),
        }
    }

    pub(crate) fn apply(&self, stream: &TcpStream) -> io::Result<()> {
        if stream.peer_addr().is_ok_and(|peer| peer.ip().is_loopback()) {
            return Ok(());
        }
        let socket = SockRef::from(stream);
        match self {
            Self::System => Ok(()),
            Self::Named(name) => choose(&socket, name),
            // A system that does not have it, or reserves it, is as good as it was.
            Self::Best => choose(&socket, BEST).or(Ok(())),
        }
    }
}

/// Reads `best`, `system`, or a congestion control's name as the system has it (`bbr`, `cubic`).
impl FromStr for Congestion {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
        match text {
            "best" => Ok(Self::Best),
            "system" => Ok(Self::System),
            name if (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_name) => {
                Ok(Self::Named(name.to_owned()))
            }
            _ => Err(format!(
                "{text:?} is no congestion control: write \"best\", \"system\", or a name like \"bbr\""
            )),
        }
    }
}

impl fmt::Display for Congestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Best => "best",
            Self::System => "system",
            Self::Named(name) => name,
        })
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn probe(name: &str) -> io::Result<()> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    choose(&SockRef::from(&socket), name)
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn choose(socket: &SockRef<'_>, name: &str) -> io::Result<()> {
    socket.set_tcp_congestion(name.as_bytes())
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn probe(_: &str) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn choose(_: &SockRef<'_>, _: &str) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

const BEST: &str = "bbr";
/// As Linux has it.
const NAME_BYTES_MAX: usize = 15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_written_as_it_is_read() {
        for text in ["best", "system", "bbr", "cubic"] {
            assert_eq!(text.parse::<Congestion>().unwrap().to_string(), text);
        }
        for text in ["", "a b", "a-name-that-is-too-long", "../reno"] {
            assert!(text.parse::<Congestion>().is_err(), "{text}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_the_system_does_not_have_is_an_error_only_by_name() {
        let named = |name: &str| Congestion::Named(name.to_owned());
        // Every Linux has this one.
        named("reno").check().unwrap();
        assert!(named("carrier-pigeon").check().is_err());
        Congestion::Best.check().unwrap();
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        choose(&SockRef::from(&socket), "reno").unwrap();
        assert!(socket.tcp_congestion().unwrap().starts_with(b"reno"));
    }
}
