//! Each address: what answers there, and how far away it is.

use super::Check;
use crate::failure::Failure;
use crate::{http, text};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};
use thorp_client::Identity;
use thorp_net::driver::net_config;
use thorp_net::{Address, Config, Error, Role, Side, dial};
use tokio::net::{TcpStream, UnixStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// What was found at one place.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) check: Check,
    /// A node has let this one in there.
    pub(super) is_node: bool,
}

/// Calls all of them at the same time. A name may lead to several places, each of which is called.
pub(super) fn check(
    addresses: &[Address],
    identity: Option<&Identity>,
    deadline: Instant,
) -> Result<Vec<Found>, Failure> {
    let runtime = thorp_server::runtime()
        .map_err(|error| Failure::new(format!("the system gives no runtime: {error}"), ""))?;
    // What comes after it has as long: joining, and what the nodes tell.
    let within = deadline.saturating_duration_since(Instant::now()) / 2;
    let found = runtime.block_on(all(addresses, identity, Instant::now() + within));
    // A lookup that hangs is not waited for.
    runtime.shutdown_background();
    Ok(found)
}

async fn all(addresses: &[Address], identity: Option<&Identity>, deadline: Instant) -> Vec<Found> {
    let mut calls = JoinSet::new();
    for (number, address) in addresses.iter().cloned().enumerate() {
        let identity = identity.cloned();
        calls.spawn(async move { (number, one(&address, identity.as_ref(), deadline).await) });
    }
    let mut found: Vec<(usize, Vec<Found>)> = Vec::new();
    while let Some(ended) = calls.join_next().await {
        // A call neither panics nor is given up.
        found.extend(ended);
    }
    found.sort_by_key(|(number, _)| *number);
    found.into_iter().flat_map(|(_, found)| found).collect()
}

async fn one(address: &Address, identity: Option<&Identity>, deadline: Instant) -> Vec<Found> {
    let places = match resolve(address, deadline).await {
        Ok(places) => places,
        Err(error) => {
            let todo = "mend the name in --via, THORP_VIA or the context, or ask whoever runs the names of the network";
            let check = Check::problem(ADDRESS, format!("{address}: {error}"), todo);
            return vec![Found::nobody(check)];
        }
    };
    let mut found = Vec::new();
    let count = u32::try_from(places.len()).unwrap_or(u32::MAX).max(1);
    let share = deadline.saturating_duration_since(Instant::now()) / count;
    for place in places {
        let shown = match place == *address {
            true => address.to_string(),
            false => format!("{address} ({place})"),
        };
        found.push(match identity {
            Some(identity) => shake_hands(&shown, &place, identity, share).await,
            None => Found::nobody(connect(&shown, &place, share).await),
        });
    }
    found
}

/// The addresses to which a name leads.
async fn resolve(address: &Address, deadline: Instant) -> io::Result<Vec<Address>> {
    let Address::Tcp { host, port } = address else {
        return Ok(vec![address.clone()]);
    };
    if host.parse::<IpAddr>().is_ok() {
        return Ok(vec![address.clone()]);
    }
    let left = deadline.saturating_duration_since(Instant::now());
    let lookup = timeout(left, tokio::net::lookup_host((host.as_str(), *port))).await;
    let found = lookup.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    let mut places: Vec<Address> = found.map(at).collect();
    places.dedup();
    match places.is_empty() {
        true => Err(io::Error::other("the name leads to no address")),
        false => Ok(places),
    }
}

fn at(socket: SocketAddr) -> Address {
    Address::Tcp {
        host: socket.ip().to_string(),
        port: socket.port(),
    }
}

/// Greets as a program does that joins, and hangs up.
async fn shake_hands(shown: &str, place: &Address, identity: &Identity, within: Duration) -> Found {
    let mut config = net_config(identity.role().kind());
    config.limits.connect_timeout = within.min(config.limits.connect_timeout);
    config.limits.handshake_timeout = within.min(config.limits.handshake_timeout);
    let hello = match postcard::to_allocvec(&identity.greeting(u64::from(std::process::id()))) {
        Ok(hello) => hello,
        Err(error) => {
            let check = Check::problem(ADDRESS, format!("{shown}: no greeting: {error}"), "");
            return Found::nobody(check);
        }
    };
    let began = Instant::now();
    let places = std::slice::from_ref(place);
    let dialing = timeout(within, dial(places, identity, None, &hello, &config)).await;
    let took = began.elapsed();
    let refused = match dialing {
        Ok(Ok(connection)) => return Found::node(shown, &connection, &config, took),
        Ok(Err(error)) => error
            .attempts
            .into_iter()
            .next_back()
            .map(|(_, error)| error),
        Err(_) => None,
    };
    let error = refused.unwrap_or(Error::Timeout {
        during: "the handshake",
        after: within,
    });
    let check = Check::problem(
        ADDRESS,
        format!("{shown}: {}", words(&error)),
        advice(&error),
    );
    Found::nobody(match &error {
        Error::OtherVillage { .. } => check.or(
            "or choose the context of that village: `thorp context ls` shows all, --context NAME takes one",
        ),
        _ => check,
    })
}

/// Without a good certificate nobody says who is there: whether somebody listens, and whether that is HTTP.
async fn connect(shown: &str, place: &Address, within: Duration) -> Check {
    let connecting = async {
        match place {
            Address::Tcp { host, port } => {
                TcpStream::connect((host.as_str(), *port)).await.map(drop)
            }
            Address::Unix(path) => UnixStream::connect(path).await.map(drop),
        }
    };
    let during = "connecting";
    let connected = match timeout(within, connecting).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(source)) => Err(Error::Io { during, source }),
        Err(_) => Err(Error::Timeout {
            during,
            after: within,
        }),
    };
    let connected = match (connected, place) {
        (Ok(()), Address::Tcp { host, port }) => {
            let node = match host.contains(':') {
                true => format!("[{host}]:{port}"),
                false => format!("{host}:{port}"),
            };
            let within = within.min(HTTP_WITHIN);
            let asked = tokio::task::spawn_blocking(move || http::is_spoken(&node, within));
            match asked.await {
                Ok(true) => Err(Error::SpeaksHttp),
                _ => Ok(()),
            }
        }
        (connected, _) => connected,
    };
    match connected {
        Ok(()) => Check::ok(
            ADDRESS,
            format!(
                "{shown}: somebody listens there; without a good certificate it is not asked who"
            ),
        ),
        Err(error) => Check::problem(
            ADDRESS,
            format!("{shown}: {}", words(&error)),
            advice(&error),
        ),
    }
}

impl Found {
    fn nobody(check: Check) -> Self {
        Found {
            check,
            is_node: false,
        }
    }

    fn node(
        shown: &str,
        connection: &thorp_net::Connection,
        config: &Config,
        took: Duration,
    ) -> Self {
        let peer = connection.peer();
        let certified = &peer.certified;
        let version = config.version;
        let (is_node, role) = match peer.role {
            Role::HOME => (true, "home"),
            Role::SITE => (true, "site"),
            _ => (false, "no home and no site"),
        };
        let mut found = format!("{shown}: {certified} of this village, protocol {version}");
        if let Some(round_trip) = peer.round_trip {
            found += &format!(", round trip {}", text::time(round_trip));
        }
        found += &format!(", handshake {}", text::time(took));
        let mut check = match is_node {
            true => Check::ok(ADDRESS, found),
            false => Check::problem(
                ADDRESS,
                format!("{shown}: {certified} answers as {role}"),
                "give the address of a home or a site",
            ),
        };
        if let Some(round_trip) = peer.round_trip {
            check = check.with("round_trip_ms", ms(round_trip));
        }
        Found {
            check: check
                .with("handshake_ms", ms(took))
                .with("protocol_version", version),
            is_node,
        }
    }
}

/// Whether what goes there leaves this machine.
pub(super) fn is_far(address: &Address) -> bool {
    match address {
        Address::Unix(_) => false,
        Address::Tcp { host, .. } => match host.parse::<IpAddr>() {
            Ok(ip) => !ip.is_loopback(),
            Err(_) => host != "localhost",
        },
    }
}

/// What happened, in fewer words than a log has.
fn words(error: &Error) -> String {
    match error {
        Error::Io { source, .. } if source.kind() == io::ErrorKind::ConnectionRefused => {
            "nobody listens there".to_owned()
        }
        Error::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
            "there is no such socket".to_owned()
        }
        Error::Timeout { during, after } => {
            format!("nothing came within {}: {during}", text::time(*after))
        }
        error => error.to_string(),
    }
}

/// What to do about it.
fn advice(error: &Error) -> &'static str {
    match error {
        Error::Io { .. } => {
            "start the home or the site there, or give the address that it prints when it starts; `thorp status` on its machine tells \
             whether it runs"
        }
        Error::Timeout { .. } | Error::Lost | Error::Truncated { .. } | Error::Displaced => {
            "look whether a firewall drops what goes there, and whether its process hangs: `thorp status` on its machine"
        }
        Error::SpeaksHttp => {
            "take the other address that the home or the site prints when it starts: the one that it listens on"
        }
        Error::NotTls | Error::NotThorp { .. } | Error::BadAnswer { .. } => {
            "something else listens there: give the address that the home or the site prints when it starts"
        }
        Error::OtherVillage { .. } => {
            "give the address of a node of this village, or an --identity of that one"
        }
        Error::Version { ours, theirs, .. } if ours < theirs => "update this program",
        Error::Version { .. } => "update that node, or take this program in its version",
        Error::Expired {
            whose: Side::Theirs,
            ..
        } => "whoever runs that node renews its certificate; or set the clock of this machine",
        Error::Expired { .. } | Error::NotYetValid { .. } => {
            "compare the clocks of both machines, and set the one that is wrong"
        }
        Error::Revoked | Error::NoRole | Error::NoHomeId => {
            "whoever runs that node gets a new certificate for it with `thorp invite`"
        }
        Error::Rejected { .. } => {
            "mend what it says; if the certificate was revoked, ask for a new `thorp invite`, into a new directory"
        }
        _ => "its log tells more",
    }
}

fn ms(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

const ADDRESS: &str = "address";
/// How long an answer in HTTP is waited for.
const HTTP_WITHIN: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::thread;
    use thorp_net::{CertificateAuthority, NodeRole, issue};

    const PORTS: usize = 12;

    fn ports() -> [TcpListener; PORTS] {
        [(); PORTS].map(|()| TcpListener::bind("127.0.0.1:0").unwrap())
    }

    /// What is found at ports, as a member.
    fn found(ports: &[TcpListener], within: Duration) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        let (ca, anna) = (dir.path().join("ca"), dir.path().join("anna"));
        CertificateAuthority::init(&ca).unwrap();
        let anna = issue(&ca, &anna, NodeRole::Member, "anna").unwrap();
        let addresses = ports.iter().map(|port| at(port.local_addr().unwrap()));
        let addresses: Vec<Address> = addresses.collect();
        let runtime = thorp_server::runtime().unwrap();
        let found = runtime.block_on(all(&addresses, Some(&anna), Instant::now() + within));
        let lines = found.into_iter().map(|found| found.check.lines().remove(0));
        lines.collect()
    }

    /// Nobody answers before all were called: one call after the other would end only with its time.
    #[test]
    fn all_addresses_are_called_at_the_same_time() {
        let ports = ports();
        let called = ports.each_ref().map(|port| port.try_clone().unwrap());
        let hung_up = thread::spawn(move || called.map(|port| port.accept().unwrap()).len());
        let found = found(&ports, Duration::from_secs(60));
        assert_eq!(hung_up.join().unwrap(), PORTS);
        assert_eq!(found.len(), PORTS);
        let is_late = |line: &String| line.contains("nothing came within");
        assert!(!found.iter().any(is_late), "{found:#?}");
    }

    #[test]
    fn all_addresses_have_one_deadline() {
        let found = found(&ports(), Duration::ZERO);
        assert_eq!(found.len(), PORTS);
        for line in found {
            assert!(line.contains("nothing came within 0.0 ms"), "{line}");
        }
    }

    #[test]
    fn the_side_with_the_older_version_is_to_be_updated() {
        let version = |ours, theirs| Error::Version {
            ours,
            theirs,
            role: Role::HOME,
        };
        assert_eq!(advice(&version(3, 4)), "update this program");
        assert!(advice(&version(4, 3)).contains("update that node"));
    }

    #[test]
    fn what_stays_on_this_machine_is_near() {
        let far = |text: &str| is_far(&text.parse().unwrap());
        assert!(!far("unix:/a.sock") && !far("127.0.0.1:1") && !far("[::1]:1"));
        assert!(!far("localhost:1") && far("192.0.2.1:1") && far("alps.example.org:1"));
    }

    #[test]
    fn a_closed_port_and_a_silence_have_other_words() {
        let refused = Error::Io {
            during: "connecting",
            source: io::ErrorKind::ConnectionRefused.into(),
        };
        assert_eq!(words(&refused), "nobody listens there");
        let silent = Error::Timeout {
            during: "connecting",
            after: Duration::from_secs(2),
        };
        assert_eq!(words(&silent), "nothing came within 2.00 s: connecting");
        assert_ne!(advice(&refused), advice(&silent));
    }
}
