//! Pairs of sockets, each end in its own namespace.

use crate::Outcome;
use crate::net::Namespace;
use rustix::net::sockopt;
use std::io;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

/// Several round trips of the longest road, and four lost packets: the kernel tries again after 1, 2, 4 and 8 seconds.
const CONNECT_MAX: Duration = Duration::from_secs(20);
/// Readers look so often whether they are still wanted.
pub(super) const GLANCE: Duration = Duration::from_millis(50);
/// Room for what arrives while its reader does not run.
const RECEIVE_BUFFER: usize = 8 << 20;

/// The connecting end, and the one that accepted it.
pub(super) fn tcp(from: &Namespace, to: &Namespace) -> Outcome<(TcpStream, TcpStream)> {
    let listener = to.within(|| TcpListener::bind((to.address(), 0)))??;
    let address = listener.local_addr()?;
    let connected = from.within(|| TcpStream::connect_timeout(&address, CONNECT_MAX))?;
    let told = |why| format!("{} does not reach {}: {why}", from.spoke(), to.spoke());
    let near = connected.map_err(told)?;
    let far = accept(&listener).map_err(told)?;
    for end in [&near, &far] {
        end.set_nodelay(true)?;
        // What is not yet sent when it is closed shall not disturb what is measured next.
        sockopt::set_socket_linger(end, Some(Duration::ZERO))?;
    }
    Ok((near, far))
}

/// The last packet of the handshake may be lost and come with the first of the content, which nobody sends before this.
fn accept(listener: &TcpListener) -> io::Result<TcpStream> {
    listener.set_nonblocking(true)?;
    let end = Instant::now() + CONNECT_MAX;
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false)?;
                return Ok(stream);
            }
            Err(why) if why.kind() == io::ErrorKind::WouldBlock && Instant::now() < end => {
                thread::sleep(Duration::from_millis(1))
            }
            Err(why) => return Err(why),
        }
    }
}

/// Two that talk to each other only.
pub(super) fn udp(from: &Namespace, to: &Namespace) -> Outcome<(UdpSocket, UdpSocket)> {
    let bind =
        |namespace: &Namespace| namespace.within(|| UdpSocket::bind((namespace.address(), 0)));
    let (near, far) = (bind(from)??, bind(to)??);
    near.connect(far.local_addr()?)?;
    far.connect(near.local_addr()?)?;
    for end in [&near, &far] {
        sockopt::set_socket_recv_buffer_size_force(end, RECEIVE_BUFFER)?;
    }
    Ok((near, far))
}

/// Whether nothing came in time, which is no error here.
pub(super) fn was_silence(why: &io::Error) -> bool {
    matches!(
        why.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}
