//! The thread that carries packets between the devices.

use super::packet;
use super::router::Router;
use super::statistics::Statistics;
use super::tun::Tun;
use crate::system;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

/// The largest segment, and what is in front of it.
const FRAME_MAX: usize = packet::HEADER + 65_536;
/// So many frames are taken from one device before the others, and what is due, have their turn.
const TURN: usize = 64;
/// Above what measures (see [`crate::measure`]), below the kernel's own.
const PRIORITY: i32 = 5;

/// What the thread is told between two packets.
pub(super) enum Order {
    Do(Box<dyn FnOnce(&mut Carrier) + Send>),
    End,
}

pub(super) struct Carrier {
    pub(super) router: Router,
    tuns: Vec<Tun>,
    whole_segments: bool,
    orders: Receiver<Order>,
    bell: Arc<OwnedFd>,
}

/// The thread is to end.
struct Done;

impl Carrier {
    pub(super) fn new(
        router: Router,
        tuns: Vec<Tun>,
        orders: Receiver<Order>,
        bell: Arc<OwnedFd>,
    ) -> Self {
        Carrier {
            router,
            tuns,
            whole_segments: false,
            orders,
            bell,
        }
    }

    /// Offers large segments to the kernel, or takes the offer back, as the links are now.
    pub(super) fn fit_segments(&mut self) -> std::io::Result<()> {
        let whole = self.router.carries_whole_segments();
        if whole != self.whole_segments {
            self.tuns
                .iter()
                .try_for_each(|tun| tun.offer_whole_segments(whole))?;
            self.whole_segments = whole;
        }
        Ok(())
    }

    /// To be asked in its thread only, whose processor time it tells.
    pub(super) fn statistics(&self) -> Statistics {
        let cpu = clock_gettime(ClockId::ThreadCPUTime);
        Statistics {
            whole_segments: self.whole_segments,
            carrier_cpu_s: cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9,
            ..self.router.statistics()
        }
    }

    pub(super) fn run(mut self) {
        let mut buffer = vec![0; FRAME_MAX];
        loop {
            self.hand_over();
            let (ready, rung) = self.wait();
            for spoke in ready {
                self.take_turn(spoke, &mut buffer);
            }
            if rung && self.obey().is_err() {
                return;
            }
        }
    }

    fn hand_over(&mut self) {
        while let Some(crossing) = self.router.release(Instant::now()) {
            if !self.tuns[crossing.to].write(&crossing.frame) {
                self.router.refused += 1;
            }
        }
    }

    /// Until a device or the bell has something, or something is due; gives the devices, and whether the bell was rung.
    fn wait(&self) -> (Vec<usize>, bool) {
        let mut watched: Vec<_> = self
            .tuns
            .iter()
            .map(|tun| PollFd::new(tun, PollFlags::IN))
            .collect();
        watched.push(PollFd::new(&self.bell, PollFlags::IN));
        let left = self
            .router
            .next()
            .map(|due| due.saturating_duration_since(Instant::now()));
        match poll(&mut watched, left.map(timespec).as_ref()) {
            Ok(0) | Err(Errno::INTR) => return (Vec::new(), false),
            Ok(_) => {}
            Err(why) => panic!("the network's devices cannot be waited for: {why}"),
        }
        let mut ready: Vec<_> = (0..watched.len())
            .filter(|at| !watched[*at].revents().is_empty())
            .collect();
        let rung = ready.pop_if(|at| *at == self.tuns.len()).is_some();
        (ready, rung)
    }

    fn take_turn(&mut self, spoke: usize, buffer: &mut [u8]) {
        for _ in 0..TURN {
            let Some(length) = self.tuns[spoke].read(buffer) else {
                return;
            };
            let now = Instant::now();
            self.router.accept(now, spoke, &buffer[..length]);
            if self.router.next().is_some_and(|due| due <= now) {
                self.hand_over();
            }
        }
    }

    fn obey(&mut self) -> Result<(), Done> {
        let mut rings = [0; 8];
        // Nothing to read: somebody else's ring was heard with an earlier one.
        let _ = rustix::io::read(&self.bell, &mut rings);
        while let Ok(order) = self.orders.try_recv() {
            match order {
                Order::Do(work) => work(self),
                Order::End => return Err(Done),
            }
        }
        Ok(())
    }
}

/// What makes the calling thread punctual; what of it the machine refused.
pub(super) fn become_punctual(realtime: bool) -> Result<(), String> {
    // The kernel may wake a sleeper so much later, to do it together with others: 50 microseconds if nothing is said.
    rustix::thread::set_current_timer_slack(NonZeroU64::new(1))
        .map_err(|why| format!("timer slack: {why}"))?;
    if realtime {
        system::go_first(PRIORITY).map_err(|why| format!("no real-time scheduling: {why}"))?;
    }
    Ok(())
}

fn timespec(time: Duration) -> Timespec {
    Timespec {
        tv_sec: time.as_secs() as i64,
        tv_nsec: i64::from(time.subsec_nanos()),
    }
}
