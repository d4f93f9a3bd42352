//! The only unsafe code of the lab: what the kernel offers and no crate has a safe word for.
#![allow(
    unsafe_code,
    reason = "two ioctls of TUN devices, a scheduling class, and a step between fork and exec"
)]

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Makes an opened `/dev/net/tun` a device of this name in the calling thread's namespace. It vanishes when the file is closed.
pub(crate) fn attach_tun(file: &File, name: &str) -> io::Result<()> {
    // SAFETY: all zeroes is a value of this plain C structure.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays zero: the name ends there.
    let room = request.ifr_name.len() - 1;
    for (to, from) in request.ifr_name[..room].iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags =
        (libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as libc::c_short;
    // SAFETY: TUNSETIFF reads and writes one `ifreq`, which lives until the call returns.
    let answer = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) };
    succeeded(answer)
}

/// Whether the kernel may hand over segments of up to 64 KiB. Checksums are never computed: nothing here damages a packet.
pub(crate) fn offer_whole_segments(file: &File, whole: bool) -> io::Result<()> {
    let segments = if whole { libc::TUN_F_TSO4 } else { 0 };
    let offer = libc::c_ulong::from(libc::TUN_F_CSUM | segments);
    // SAFETY: TUNSETOFFLOAD takes a number, and no memory of ours.
    let answer = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETOFFLOAD as _, offer) };
    succeeded(answer)
}

/// Lets the calling thread go before everything that is not of this class. It must sleep most of the time.
pub(crate) fn go_first(priority: i32) -> io::Result<()> {
    // SAFETY: all zeroes is a value of this plain C structure.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = priority;
    // Children do not inherit it: what an experiment starts is scheduled as it would be anywhere.
    let class = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the kernel reads one `sched_param`, which lives until the call returns.
    let answer = unsafe { libc::sched_setscheduler(0, class, &raw const parameters) };
    succeeded(answer)
}

/// Lets the command's process begin in this network namespace.
pub(crate) fn begin_in(command: &mut Command, namespace: OwnedFd) {
    let enter = move || {
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
        Ok(())
    };
    // SAFETY: between fork and exec it makes one system call and allocates nothing.
    unsafe { command.pre_exec(enter) };
}

fn succeeded(answer: libc::c_int) -> io::Result<()> {
    if answer < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
