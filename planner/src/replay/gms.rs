use super::Village;
use super::aged::{Chooser, Node, State, Told};
use crate::{Invalid, fraction, positive};
use fastrand::Rng;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Epochs of GMS (thesis, section 2.1.3; Feeley and others, 1995): at the beginning of each the ages of all pages are gathered, and
/// all nodes are told which part of the M oldest each has. A page that has to go is sent to one that is drawn by these weights, or
/// is lost at once if it is itself one of the M oldest, or if its own node is drawn. An epoch ends after its time, or when M pages
/// were replaced; but not before there were as many requests as there are nodes, for to gather is as much work, and would be done
/// for each request where M is a page or the time next to nothing.
///
/// Frames in which nothing is yet are older than any page, and one as old as the other: where there are more than M, each node has
/// the part of the M that it has of all of them.
pub(super) struct Epochs {
    length_ms: f64,
    oldest_pages: usize,
    begun_ms: f64,
    replaced: usize,
    requests: usize,
    is_over: bool,
    weights: Vec<f64>,
    /// What was used last before this request is one of the M oldest.
    oldest_until: u32,
}

impl Epochs {
    /// Of so many milliseconds, and with that part of all pages as M.
    pub(super) fn new(
        village: &Village,
        length_ms: f64,
        oldest_part: f64,
    ) -> Result<Self, Invalid> {
        positive("epoch_ms", length_ms)?;
        positive("oldest", oldest_part)?;
        fraction("oldest", oldest_part)?;
        let pages: usize = village.pages_with_home().iter().sum();
        Ok(Epochs {
            length_ms,
            oldest_pages: ((pages as f64 * oldest_part) as usize).max(1),
            begun_ms: 0.0,
            replaced: 0,
            requests: 0,
            is_over: true,
            weights: vec![0.0; village.nodes() + 1],
            oldest_until: 0,
        })
    }

    /// Begins an epoch if it is time; true if it was.
    pub(super) fn begin_if_over(&mut self, state: &State) -> bool {
        if !std::mem::take(&mut self.is_over) {
            return false;
        }
        self.replaced = 0;
        self.requests = 0;
        self.gather(state);
        true
    }

    pub(super) fn length_ms(&self) -> f64 {
        self.length_ms
    }

    /// The share of the oldest pages that each node had.
    pub(super) fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// Whether a page is to be lost at once. One more is replaced then, in any case.
    pub(super) fn is_lost(&mut self, used: u32) -> bool {
        self.replaced += 1;
        used < self.oldest_until
    }

    pub(super) fn note(&mut self, told: &Told<'_>) {
        let now_ms = told.clock.mean_ms();
        self.requests += 1;
        let is_due = now_ms - self.begun_ms >= self.length_ms || self.replaced >= self.oldest_pages;
        if is_due && self.requests >= self.weights.len() {
            self.begun_ms = now_ms;
            self.is_over = true;
        }
    }

    /// Merges the nodes' pages from the oldest.
    fn gather(&mut self, state: &State) {
        let empty = || state.nodes.iter().map(Node::empty_frames);
        let all_empty: usize = empty().sum();
        let counted = all_empty.min(self.oldest_pages);
        let part = counted as f64 / all_empty.max(1) as f64;
        for (weight, empty) in self.weights.iter_mut().zip(empty()) {
            *weight = empty as f64 * part;
        }
        let mut left = self.oldest_pages - counted;
        let mut pages: Vec<_> = state.nodes.iter().map(|node| node.pages.iter()).collect();
        let firsts = pages.iter_mut().enumerate();
        let mut oldest: BinaryHeap<_> = firsts
            .filter_map(|(at, pages)| Some(Reverse((pages.next()?.0, at))))
            .collect();
        self.oldest_until = 0;
        while left > 0
            && let Some(Reverse((used, at))) = oldest.pop()
        {
            left -= 1;
            self.weights[at] += 1.0;
            self.oldest_until = used;
            oldest.extend(pages[at].next().map(|&(used, _)| Reverse((used, at))));
        }
        let sum: f64 = self.weights.iter().sum();
        self.weights
            .iter_mut()
            .for_each(|weight| *weight /= sum.max(1.0));
    }
}

/// The Global Memory Service: pages go to where the oldest were when it was last told.
pub(super) struct Gms {
    epochs: Epochs,
    random: Rng,
}

impl Gms {
    pub(super) fn new(village: &Village, epochs: Epochs) -> Self {
        Gms {
            epochs,
            random: Rng::with_seed(!village.seed),
        }
    }
}

impl Chooser for Gms {
    fn target(&mut self, _: usize, used: u32, state: &State) -> Option<usize> {
        self.epochs.begin_if_over(state);
        match self.epochs.is_lost(used) {
            true => None,
            false => drawn(self.epochs.weights(), &mut self.random),
        }
    }

    fn note(&mut self, told: &Told<'_>) {
        self.epochs.note(told);
    }
}

/// One of those with these frequencies; `None` for what is missing of 1.
pub(super) fn drawn(frequencies: &[f64], random: &mut Rng) -> Option<usize> {
    let mut left = random.f64();
    frequencies.iter().position(|frequency| {
        left -= frequency;
        left < 0.0
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Server, Times, aged::Clock};
    use super::*;
    use crate::evict;

    /// A client of 4 pages, servers of 8 and 8 and a home of 4, of all of which so many count as the oldest.
    fn epochs(oldest_pages: usize) -> (Village, Epochs) {
        let server = Server {
            pages: 8,
            busy_most: 1.0,
        };
        let village = Village {
            clients: 1,
            client_pages: 4,
            servers: vec![server; 2],
            home_pages: 4,
            footprint: 100,
            local: evict::Kind::Lru,
            times: Times::default(),
            seed: 3,
        };
        let epochs = Epochs::new(&village, 100.0, oldest_pages as f64 / 24.0);
        (village, epochs.expect("they can be"))
    }

    const YOUNG: &[u32] = &[90, 91, 92, 93];

    fn full() -> State {
        State::example(&[
            (4, YOUNG),
            (8, &[1, 2, 3, 10, 70, 71, 72, 73]),
            (8, &[4, 30, 31, 32, 33, 34, 35, 36]),
            (4, &[80, 81, 82, 83]),
        ])
    }

    #[test]
    fn weights_are_shares_of_the_oldest() {
        let (_, mut epochs) = epochs(5);
        assert!(epochs.begin_if_over(&full()));
        assert_eq!(epochs.weights(), [0.0, 0.8, 0.2, 0.0]);
        assert!(epochs.is_lost(9), "one of the five oldest");
        assert!(!epochs.is_lost(11));
        assert!(!epochs.begin_if_over(&full()), "the epoch lasts");
    }

    #[test]
    fn empty_frames_are_the_oldest_wherever_they_are() {
        // Twelve of them, in the proportion 1 to 2 to 1.
        let filling = State::example(&[(4, YOUNG), (8, &[1, 2, 3, 4, 5]), (8, &[6, 7]), (4, &[8])]);
        let (_, mut epochs) = epochs(6);
        epochs.begin_if_over(&filling);
        assert_eq!(epochs.weights(), [0.0, 0.25, 0.5, 0.25]);
        assert!(!epochs.is_lost(1), "no page is older than an empty frame");
    }

    #[test]
    fn pages_come_after_empty_frames() {
        let almost_full = State::example(&[
            (4, YOUNG),
            (8, &[1, 2, 70, 71, 72, 73, 74, 75]),
            (8, &[3, 30, 31, 32, 33, 34, 35]),
            (4, &[80, 81, 82]),
        ]);
        let (_, mut epochs) = epochs(4);
        epochs.begin_if_over(&almost_full);
        assert_eq!(epochs.weights(), [0.0, 0.5, 0.25, 0.25]);
        assert!(epochs.is_lost(1) && !epochs.is_lost(2));
    }

    #[test]
    fn servers_are_drawn_by_their_weights() {
        let (village, epochs) = epochs(5);
        let (mut gms, state) = (Gms::new(&village, epochs), full());
        let mut chosen = [0; 4];
        for _ in 0..5000 {
            chosen[gms.target(0, 90, &state).expect("nobody has room for all")] += 1;
        }
        assert_eq!((chosen[0], chosen[3]), (0, 0));
        assert!(
            (f64::from(chosen[1]) / 5000.0 - 0.8).abs() < 0.02,
            "{chosen:?}"
        );
    }

    #[test]
    fn an_epoch_ends_by_time_or_when_as_many_were_replaced() {
        let (_, mut epochs) = epochs(5);
        let note = |epochs: &mut Epochs, now_ms| {
            epochs.note(&Told {
                client: 0,
                asked: 0,
                clock: &Clock::example(now_ms),
                loads: &[],
            });
            epochs.begin_if_over(&full())
        };
        epochs.begin_if_over(&full());
        for _ in 0..3 {
            note(&mut epochs, 50.0);
        }
        assert!(!note(&mut epochs, 99.0) && note(&mut epochs, 100.0));
        for _ in 0..4 {
            epochs.is_lost(90);
        }
        for _ in 0..3 {
            assert!(!note(&mut epochs, 101.0));
        }
        assert!(!note(&mut epochs, 101.0));
        epochs.is_lost(90);
        assert!(note(&mut epochs, 102.0));
    }

    #[test]
    fn gathering_takes_no_more_than_a_step_for_each_request() {
        // Every request replaces more than M, and takes longer than an epoch may be.
        let (_, mut epochs) = epochs(1);
        let nodes = full().nodes.len();
        let gathered = (0..400).filter(|&at| {
            let begins = epochs.begin_if_over(&full());
            epochs.is_lost(90);
            epochs.is_lost(90);
            epochs.note(&Told {
                client: 0,
                asked: 0,
                clock: &Clock::example(f64::from(at) * 1000.0),
                loads: &[],
            });
            begins
        });
        assert_eq!(gathered.count() * nodes, 400);
    }
}
