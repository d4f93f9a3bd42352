//! What a network really does, with the kernel's own TCP and UDP, beside what was asked of it.

mod datagrams;
mod finding;
mod record;
mod round_trips;
mod sockets;
mod throughput;
mod trial;

pub use datagrams::Datagram;
pub use finding::Finding;
pub use record::Record;
pub use round_trips::RoundTrip;
pub use throughput::Interval;
pub use trial::{Effort, run};

use serde::Serialize;
use std::fmt;

/// What carried a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// The kernel's, with its retransmissions.
    Tcp,
    /// What is lost stays lost.
    Udp,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
        })
    }
}

/// Threads that answer at once and sleep else go before other programs: it is the network that is measured, not the machine's
/// other work. Below the thread that carries the packets.
const PRIORITY: i32 = 1;

fn go_first() {
    // Refused, the samples are later, and the table shows it.
    let _ = crate::system::go_first(PRIORITY);
}
