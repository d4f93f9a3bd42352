//! A network device whose other end is a file of ours.

use super::namespace::Namespace;
use super::plan::PREFIX;
use crate::{Outcome, system};
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

/// Every namespace has one, of this name.
const NAME: &str = "wan0";
/// Packets that wait in the device for the carrying thread. It is there at once or not at all; a burst of a fat link fits in.
const QUEUE: &str = "10000";

pub(super) struct Tun {
    file: File,
}

impl Tun {
    pub(super) fn create(namespace: &Namespace, address: Ipv4Addr, mtu: u16) -> Outcome<Self> {
        let tun = namespace.within(|| -> Outcome<Tun> {
            let mut options = OpenOptions::new();
            options
                .read(true)
                .write(true)
                .custom_flags(OFlags::NONBLOCK.bits() as i32);
            let opened = options.open("/dev/net/tun");
            let file = opened.map_err(|why| {
                format!("/dev/net/tun: {why}; is the kernel's module `tun` there (modprobe tun)?")
            })?;
            let attached = system::attach_tun(&file, NAME);
            attached.map_err(|why| format!("no device {NAME} in {}: {why}", namespace.name()))?;
            system::offer_whole_segments(&file, false)?;
            Ok(Tun { file })
        })??;
        namespace.ip(&["addr", "add", &format!("{address}/{PREFIX}"), "dev", NAME])?;
        namespace.ip(&[
            "link",
            "set",
            NAME,
            "mtu",
            &mtu.to_string(),
            "txqueuelen",
            QUEUE,
            "up",
        ])?;
        Ok(tun)
    }

    pub(super) fn offer_whole_segments(&self, whole: bool) -> io::Result<()> {
        system::offer_whole_segments(&self.file, whole)
    }

    /// The next frame that was sent there, if there is one.
    pub(super) fn read(&self, buffer: &mut [u8]) -> Option<usize> {
        (&self.file).read(buffer).ok().filter(|length| *length > 0)
    }

    /// Whether it took the frame.
    pub(super) fn write(&self, frame: &[u8]) -> bool {
        (&self.file).write(frame).is_ok()
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
