//! Space for what arrives, counted for each name.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::shares::Shares;

/// The bytes of the frames of all edges that are arriving, or wait for the loop.
///
/// - A frame holds space for all its bytes before the first of them is read, until the loop has handled it. So half a frame
///   counts like a whole one, and a frame that has space never waits for more in its middle: no two frames block each
///   other.
/// - No name holds more than it leaves free (record 0009). A frame that may not have its space waits, and so does all
///   behind it on its socket. Frames of one name wait in the order in which they came; those of other names pass them.
/// - A frame counts as a quarter of all space at most. So the longest one passes beside others also where the space is
///   configured small.
pub(crate) struct Intake {
    /// What one frame counts at most.
    frame_bytes_max: usize,
    state: Mutex<State>,
}

struct State {
    shares: Shares<Arc<str>>,
    /// A line for each name of which frames wait, the first one first.
    lines: VecDeque<Line>,
}

/// The frames of one name that wait, in their order; never empty.
struct Line {
    name: Arc<str>,
    claims: VecDeque<Claim>,
}

struct Claim {
    bytes: usize,
    granted: oneshot::Sender<Held>,
}

/// One name's share of an intake.
#[derive(Clone)]
pub(crate) struct Quota {
    intake: Arc<Intake>,
    name: Arc<str>,
}

/// The space of one frame; given back when it is dropped.
pub(crate) struct Held {
    quota: Quota,
    bytes: usize,
}

/// What becomes of a claim.
pub(crate) enum Answer {
    Granted(Held),
    /// The space comes by this, in the claim's turn. Dropping it takes the claim back.
    Waits(oneshot::Receiver<Held>),
}

impl Intake {
    pub(crate) fn new(bytes_max: usize) -> Arc<Self> {
        let shares = Shares::new(bytes_max);
        let lines = VecDeque::new();
        Arc::new(Self {
            frame_bytes_max: (bytes_max / 4).max(1),
            state: Mutex::new(State { shares, lines }),
        })
    }

    /// The share of a name.
    pub(crate) fn quota(self: &Arc<Self>, name: &str) -> Quota {
        Quota {
            intake: Arc::clone(self),
            name: Arc::from(name),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics half-way through a change of it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Takes the claims out of the lines that have their space now.
    fn grant(&mut self) -> Vec<(Arc<str>, Claim)> {
        let mut granted = Vec::new();
        for line in &mut self.lines {
            while let Some(first) = line.claims.front() {
                let is_wanted = !first.granted.is_closed();
                if is_wanted && !self.shares.allows(&line.name, first.bytes) {
                    break;
                }
                let Some(first) = line.claims.pop_front().filter(|_| is_wanted) else {
                    continue;
                };
                self.shares.take(Arc::clone(&line.name), first.bytes);
                granted.push((Arc::clone(&line.name), first));
            }
        }
        self.lines.retain(|line| !line.claims.is_empty());
        granted
    }
}

impl Quota {
    /// Claims space for a frame of so many bytes.
    pub(crate) fn claim(&self, bytes: usize) -> Answer {
        let bytes = bytes.min(self.intake.frame_bytes_max);
        let mut state = self.intake.state();
        let line = state.lines.iter_mut().find(|line| line.name == self.name);
        if let Some(line) = line {
            let (granted, grant) = oneshot::channel();
            line.claims.push_back(Claim { bytes, granted });
            return Answer::Waits(grant);
        }
        if state.shares.allows(&self.name, bytes) {
            state.shares.take(Arc::clone(&self.name), bytes);
            return Answer::Granted(self.held(bytes));
        }
        let (granted, grant) = oneshot::channel();
        state.lines.push_back(Line {
            name: Arc::clone(&self.name),
            claims: VecDeque::from([Claim { bytes, granted }]),
        });
        Answer::Waits(grant)
    }

    fn held(&self, bytes: usize) -> Held {
        let quota = self.clone();
        Held { quota, bytes }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let Quota { intake, name } = &self.quota;
        let granted = {
            let mut state = intake.state();
            state.shares.give_back(name, self.bytes);
            state.grant()
        };
        for (name, claim) in granted {
            let intake = Arc::clone(intake);
            let held = Quota { intake, name }.held(claim.bytes);
            // Of a claim that has just been taken back, the space comes back, too: the state is not locked here.
            let _ = claim.granted.send(held);
        }
    }
}

impl fmt::Debug for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Quota").field(&self.name).finish()
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Held").field(&self.bytes).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: usize = 64;

    fn granted(answer: Answer) -> Held {
        match answer {
            Answer::Granted(held) => held,
            Answer::Waits(_) => panic!("it waits"),
        }
    }

    fn waits(answer: Answer) -> oneshot::Receiver<Held> {
        match answer {
            Answer::Granted(held) => panic!("{held:?}"),
            Answer::Waits(grant) => grant,
        }
    }

    #[test]
    fn long_frames_of_one_name_leave_half_to_the_others() {
        let intake = Intake::new(MAX);
        let [mallory, anna] = ["mallory", "anna"].map(|name| intake.quota(name));
        let halves = [0; 2].map(|_| granted(mallory.claim(16)));
        let mut third = waits(mallory.claim(16));
        let mut small = waits(mallory.claim(1));
        for _ in 0..100 {
            drop(granted(anna.claim(16)));
        }
        assert!(third.try_recv().is_err() && small.try_recv().is_err());
        drop(halves);
        let (third, small) = (third.try_recv().unwrap(), small.try_recv().unwrap());
        assert_eq!(intake.state().shares.of("mallory"), 17);
        drop((third, small));
        assert_eq!(intake.state().shares.of("mallory"), 0);
        assert!(intake.state().lines.is_empty());
    }

    #[test]
    fn a_name_waits_in_its_order_and_a_claim_that_is_taken_back_holds_nothing() {
        let intake = Intake::new(MAX);
        let anna = intake.quota("anna");
        let held = [0; 2].map(|_| granted(anna.claim(16)));
        let mut order = [16, 1, 16].map(|bytes| waits(anna.claim(bytes)));
        // The second has space, but not its turn.
        assert!(order[1].try_recv().is_err());
        let [first, mut second, third] = order;
        drop(first);
        // Granted, and taken back before anybody looked.
        let [one, two] = held;
        drop(one);
        assert!(second.try_recv().is_ok());
        drop((two, third));
        assert_eq!(intake.state().shares.of("anna"), 0);
        granted(anna.claim(16));
    }

    #[test]
    fn the_longest_frame_passes_beside_others_also_where_space_is_small() {
        let intake = Intake::new(MAX);
        let [anna, bert] = ["anna", "bert"].map(|name| intake.quota(name));
        let small = granted(anna.claim(8));
        let long = granted(bert.claim(10 * MAX));
        assert_eq!(intake.state().shares.of("bert"), MAX / 4);
        drop((small, long));
        // However little there is, frames without bytes pass, and others one after the other.
        let intake = Intake::new(1);
        let anna = intake.quota("anna");
        let long = granted(anna.claim(100));
        let mut next = waits(anna.claim(100));
        drop(long);
        next.try_recv().unwrap();
    }
}
