//! Where a node listens: `tcp://host:port`, bare `host:port`, or `unix:/path.sock`.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Where a node listens.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Address {
    /// `tcp://host:port`, or bare `host:port`. The host is a name, an IPv4 address, or an IPv6 address (in brackets
    /// when written, without them here).
    Tcp {
        /// Name or IP address.
        host: String,
        /// Port; 0 lets the system choose when listening.
        port: u16,
    },
    /// `unix:/path.sock`: a Unix-domain socket, for processes of one host.
    Unix(PathBuf),
}

/// A text that is not an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressError {
    /// What was given.
    pub text: String,
    /// What is wrong with it.
    pub why: &'static str,
}

impl Address {
    /// Whether it stands for all addresses of the machine: others cannot call it.
    pub fn is_everywhere(&self) -> bool {
        match self {
            Self::Tcp { host, .. } => {
                let ip = host.parse::<std::net::IpAddr>();
                ip.is_ok_and(|ip| ip.is_unspecified())
            }
            Self::Unix(_) => false,
        }
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        parse(text).map_err(|why| AddressError {
            text: text.to_owned(),
            why,
        })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(f, "tcp://[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "tcp://{host}:{port}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl From<&Address> for String {
    fn from(address: &Address) -> Self {
        address.to_string()
    }
}

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is not an address: {} (write tcp://host:port, host:port or unix:/path.sock)",
            self.text, self.why
        )
    }
}

impl std::error::Error for AddressError {}

fn parse(text: &str) -> Result<Address, &'static str> {
    if let Some(path) = text.strip_prefix("unix:") {
        return parse_unix(path);
    }
    let rest = match text.split_once("://") {
        Some(("tcp", rest)) => rest,
        Some(_) => return Err("the scheme is not known"),
        None => text,
    };
    let (host, port) = split_port(rest)?;
    let port = parse_port(port)?;
    check_host(host)?;
    Ok(Address::Tcp {
        host: host.to_owned(),
        port,
    })
}

fn parse_unix(path: &str) -> Result<Address, &'static str> {
    // `unix:///path` is what people who think of URLs write.
    let path = path.strip_prefix("//").unwrap_or(path);
    if !path.starts_with('/') {
        return Err("the path of a socket must begin with /");
    }
    if path.len() > UNIX_PATH_BYTES_MAX {
        return Err("the path of a socket is too long for the system (107 bytes)");
    }
    if path.contains('\0') {
        return Err("the path contains a zero byte");
    }
    Ok(Address::Unix(PathBuf::from(path)))
}

fn split_port(rest: &str) -> Result<(&str, &str), &'static str> {
    if let Some(inner) = rest.strip_prefix('[') {
        let (host, after) = inner
            .split_once(']')
            .ok_or("the bracket of an IPv6 address is not closed")?;
        if host.parse::<std::net::Ipv6Addr>().is_err() {
            return Err("what is in brackets is not an IPv6 address");
        }
        return Ok((host, after.strip_prefix(':').ok_or("the port is missing")?));
    }
    let (host, port) = rest.rsplit_once(':').ok_or("the port is missing")?;
    if host.contains(':') {
        return Err("an IPv6 address goes in brackets");
    }
    Ok((host, port))
}

fn parse_port(port: &str) -> Result<u16, &'static str> {
    if port.is_empty() {
        return Err("the port is missing");
    }
    // `parse` alone would take a plus sign.
    if !port.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("the port is not a number");
    }
    port.parse().map_err(|_| "the port is above 65535")
}

fn check_host(host: &str) -> Result<(), &'static str> {
    if host.is_empty() {
        return Err("the host is missing");
    }
    if host.len() > HOST_BYTES_MAX {
        return Err("the host is longer than 253 bytes");
    }
    let allowed = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
    if !host.chars().all(allowed) {
        return Err("the host contains a character that no host name has");
    }
    Ok(())
}

/// What `sockaddr_un` holds on Linux, without the closing zero.
const UNIX_PATH_BYTES_MAX: usize = 107;
/// The longest name of the domain name system.
const HOST_BYTES_MAX: usize = 253;

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(host: &str, port: u16) -> Address {
        Address::Tcp {
            host: host.to_owned(),
            port,
        }
    }

    #[test]
    fn what_people_write_is_understood() {
        for (text, want) in [
            ("tcp://alps.example:7070", tcp("alps.example", 7070)),
            ("localhost:1", tcp("localhost", 1)),
            ("127.0.0.1:0", tcp("127.0.0.1", 0)),
            ("[::1]:65535", tcp("::1", 65535)),
            ("tcp://[fe80::1]:9", tcp("fe80::1", 9)),
            (
                "unix:/run/thorp.sock",
                Address::Unix("/run/thorp.sock".into()),
            ),
            (
                "unix:///run/thorp.sock",
                Address::Unix("/run/thorp.sock".into()),
            ),
        ] {
            let address: Address = text.parse().unwrap();
            assert_eq!(address, want, "{text}");
            assert_eq!(
                address.to_string().parse::<Address>().unwrap(),
                want,
                "{text} again"
            );
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, why) in [
            ("", "port is missing"),
            ("alps", "port is missing"),
            ("alps:", "port is missing"),
            ("alps:http", "not a number"),
            ("alps:+80", "not a number"),
            ("alps:65536", "above 65535"),
            (":80", "host is missing"),
            ("::1:80", "goes in brackets"),
            ("[::1:80", "not closed"),
            ("[alps]:80", "not an IPv6 address"),
            ("[::1]80", "port is missing"),
            ("http://alps:80", "scheme"),
            ("tcp://alps/x:80", "no host name has"),
            ("unix:relative", "begin with /"),
            ("unix:", "begin with /"),
        ] {
            let error = text.parse::<Address>().unwrap_err();
            assert!(error.why.contains(why), "{text:?}: {error}");
        }
        assert!(
            format!("unix:/{}", "x".repeat(107))
                .parse::<Address>()
                .is_err()
        );
    }
}
