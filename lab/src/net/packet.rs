//! What the lab has to know of a packet: where it goes, and how many packets of a real wire it stands for.
//!
//! A device with offload hands over segments of up to 64 KiB, with a header in front (`struct virtio_net_hdr`) that tells how a
//! network card would have cut them.

use std::net::Ipv4Addr;

/// The header in front: flags, kind of segment, length of headers, size of a piece, where the checksum is; in native byte order.
pub(super) const HEADER: usize = 10;

const IPV4_HEADER_MIN: usize = 20;
const KIND: usize = 1;
const PIECE: usize = 4;
/// The kind without its mark for congestion notification.
const KIND_NONE: u8 = 0;
const KIND_MASK: u8 = 0x7f;
const PROTOCOL_TCP: u8 = 6;
const UDP_HEADER: usize = 8;

/// What something occupies of a real wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OnWire {
    pub(super) packets: u64,
    pub(super) bytes: u64,
}

/// Where it goes; `None` if it is no IPv4.
pub(super) fn destination(frame: &[u8]) -> Option<Ipv4Addr> {
    let packet = frame
        .get(HEADER..)
        .filter(|packet| packet.len() >= IPV4_HEADER_MIN)?;
    let address: [u8; 4] = packet[16..20].try_into().ok()?;
    (packet[0] >> 4 == 4).then(|| address.into())
}

/// As a card would have cut it. For a frame that has a [`destination`].
pub(super) fn on_wire(frame: &[u8]) -> OnWire {
    let packet = &frame[HEADER..];
    let (length, headers) = (packet.len() as u64, headers(packet) as u64);
    let piece = u64::from(u16::from_ne_bytes([frame[PIECE], frame[PIECE + 1]]));
    let whole = frame[KIND] & KIND_MASK == KIND_NONE || piece == 0 || length <= headers;
    if whole {
        return OnWire {
            packets: 1,
            bytes: length,
        };
    }
    let packets = (length - headers).div_ceil(piece);
    OnWire {
        packets,
        bytes: length + (packets - 1) * headers,
    }
}

/// The length of what every piece has in front. The header's own word for it is a hint only: the kernel writes there how much
/// of the segment lies in one piece of memory.
fn headers(packet: &[u8]) -> usize {
    let network = usize::from(packet[0] & 0x0f) * 4;
    let transport = match packet[9] {
        PROTOCOL_TCP => packet
            .get(network + 12)
            .map_or(0, |offset| usize::from(offset >> 4) * 4),
        _ => UDP_HEADER,
    };
    network + transport
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A TCP segment with so many bytes of content, cut into pieces of so many (0: not to be cut).
    pub(in crate::net) fn segment(to: Ipv4Addr, content: usize, piece: u16) -> Vec<u8> {
        let mut frame = vec![0; HEADER + 40 + content];
        frame[KIND] = u8::from(piece > 0);
        frame[PIECE..PIECE + 2].copy_from_slice(&piece.to_ne_bytes());
        frame[HEADER] = 0x45;
        frame[HEADER + 9] = PROTOCOL_TCP;
        frame[HEADER + 16..HEADER + 20].copy_from_slice(&to.octets());
        frame[HEADER + 20 + 12] = 5 << 4;
        frame
    }

    const TO: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);

    #[test]
    fn the_destination_is_found() {
        assert_eq!(destination(&segment(TO, 100, 0)), Some(TO));
    }

    #[test]
    fn what_is_no_ipv4_has_none() {
        let mut version_6 = segment(TO, 100, 0);
        version_6[HEADER] = 0x60;
        assert_eq!(destination(&version_6), None);
        assert_eq!(destination(&segment(TO, 0, 0)[..HEADER + 19]), None);
        assert_eq!(destination(&[]), None);
    }

    #[test]
    fn a_large_segment_counts_as_its_packets_each_with_headers() {
        let plain = on_wire(&segment(TO, 1460, 0));
        assert_eq!(
            plain,
            OnWire {
                packets: 1,
                bytes: 1500
            }
        );
        let large = on_wire(&segment(TO, 14_600, 1460));
        assert_eq!(
            large,
            OnWire {
                packets: 10,
                bytes: 15_000
            }
        );
        let uneven = on_wire(&segment(TO, 1461, 1460));
        assert_eq!(
            uneven,
            OnWire {
                packets: 2,
                bytes: 1461 + 80
            }
        );
    }

    #[test]
    fn a_cut_off_or_lying_header_counts_as_one_packet() {
        let mut frame = segment(TO, 0, 1460);
        assert_eq!(on_wire(&frame).packets, 1);
        frame[HEADER] = 0x4f;
        assert_eq!(on_wire(&frame).packets, 1);
    }
}
