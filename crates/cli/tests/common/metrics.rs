//! What a node serves to Prometheus.

use std::io::{Read, Write};
use std::net::TcpStream;

/// The metrics of a node at its address.
pub(crate) fn of(http: &str) -> String {
    let mut socket = TcpStream::connect(http).unwrap();
    let request = b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    socket.write_all(request).unwrap();
    let mut text = String::new();
    socket.read_to_string(&mut text).unwrap();
    text
}
