use super::aged::{Chooser, State, Told};
use super::gms::{Epochs, drawn};
use super::weights::frequencies;
use super::{Server, Village};
use crate::{Invalid, fraction};
use fastrand::Rng;

/// The family of section 3.6: as GMS, but a server is chosen by its share of the oldest pages *and* by its share of a balanced load
/// (equation 3.1), and no more often than leaves it within the part of its time that it may spend for others (equations 3.2 and
/// 3.3).
///
/// A client that asks more often than others may borrow what they leave (section 3.6.2): U_e / (N_g - 1) is added to U* / N_g.
/// The thesis adds it to the right side of equation 3.2 as it stands, which is a rate: it has to be divided by S, too.
///
/// The bounds are on where pages are sent, and take it that they are asked for at the same shares. A server that few pages are sent
/// to keeps them for longer, and is asked more often than that: it can be somewhat busier than U*.
pub(super) struct Balanced {
    epochs: Epochs,
    balance: f64,
    /// w: shares of a balanced load. Clients, which use their memory themselves, have G = 0.
    targets: Vec<f64>,
    /// U*: the part of its time that each node may spend for others.
    busy_most: Vec<f64>,
    service_ms: f64,
    clients: Vec<Client>,
    /// The part of its time that each node spent for others, recently.
    busy: Vec<f64>,
    loads_before: Vec<u64>,
    seen_ms: f64,
    random: Rng,
}

/// What a client knows.
#[derive(Clone, Default)]
struct Client {
    /// T: the recent average time between its requests to others; `None` before the second of them.
    between_ms: Option<f64>,
    asked_ms: Option<f64>,
    /// Worked out when it is needed, once in each epoch.
    frequencies: Option<Vec<f64>>,
}

impl Balanced {
    pub(super) fn new(village: &Village, epochs: Epochs, balance: f64) -> Result<Self, Invalid> {
        fraction("balance", balance)?;
        let home = Server {
            pages: village.home_pages,
            busy_most: 1.0,
        };
        let servers = village.servers.iter().chain([&home]);
        let pages: usize = servers.clone().map(|server| server.pages).sum();
        let share = servers
            .clone()
            .map(|server| server.pages as f64 / pages.max(1) as f64);
        let clients = village.clients;
        let nodes = village.nodes() + 1;
        Ok(Balanced {
            epochs,
            balance,
            targets: std::iter::repeat_n(0.0, clients).chain(share).collect(),
            busy_most: std::iter::repeat_n(1.0, clients)
                .chain(servers.map(|server| server.busy_most))
                .collect(),
            service_ms: village.times.service_ms,
            clients: vec![Client::default(); clients],
            busy: vec![0.0; nodes],
            loads_before: vec![0; village.nodes()],
            seen_ms: 0.0,
            random: Rng::with_seed(!village.seed),
        })
    }

    fn begin(&mut self) {
        self.clients
            .iter_mut()
            .for_each(|client| client.frequencies = None);
    }

    /// Equations 3.2 and 3.3, with what can be borrowed, solved for f.
    fn bounds(&self, between_ms: f64) -> Vec<f64> {
        let asking = self
            .clients
            .iter()
            .filter(|client| client.between_ms.is_some())
            .count();
        let asking = asking.max(1) as f64;
        let bound = |(most, busy): (&f64, &f64)| {
            let own = most / asking;
            let borrowed = if asking > 1.0 {
                (most - busy).max(0.0) / (asking - 1.0)
            } else {
                0.0
            };
            between_ms / self.service_ms * (own + borrowed)
        };
        self.busy_most.iter().zip(&self.busy).map(bound).collect()
    }

    fn frequencies(&self, client: usize) -> Vec<f64> {
        let bounds = match self.clients[client].between_ms {
            Some(between_ms) => self.bounds(between_ms),
            None => vec![f64::INFINITY; self.targets.len()],
        };
        frequencies(&self.targets, self.epochs.weights(), self.balance, &bounds)
    }

    /// How busy all were, looked at as often as an epoch may be long: epochs end sooner where much is replaced, and say little then.
    fn see(&mut self, now_ms: f64, loads: &[u64]) {
        let passed_ms = now_ms - self.seen_ms;
        if passed_ms < self.epochs.length_ms() {
            return;
        }
        let done = loads
            .iter()
            .zip(&self.loads_before)
            .map(|(now, before)| (now - before) as f64);
        // The home comes last and is not among those whose loads are told: in this simulation it is never busy.
        let busy = done.map(|done| done * self.service_ms / passed_ms);
        self.busy
            .iter_mut()
            .zip(busy)
            .for_each(|(before, now)| *before = now);
        self.seen_ms = now_ms;
        self.loads_before.copy_from_slice(loads);
    }
}

impl Chooser for Balanced {
    fn target(&mut self, from: usize, used: u32, state: &State) -> Option<usize> {
        if self.epochs.begin_if_over(state) {
            self.begin();
        }
        if self.epochs.is_lost(used) {
            return None;
        }
        if self.clients[from].frequencies.is_none() {
            self.clients[from].frequencies = Some(self.frequencies(from));
        }
        let frequencies = self.clients[from].frequencies.as_deref()?;
        drawn(frequencies, &mut self.random)
    }

    fn note(&mut self, told: &Told<'_>) {
        if told.asked > 0 {
            self.clients[told.client].ask(told.clock.by_client_ms[told.client], told.asked as f64);
        }
        self.epochs.note(told);
        self.see(told.clock.mean_ms(), told.loads);
    }
}

impl Client {
    fn ask(&mut self, now_ms: f64, times: f64) {
        if let Some(before_ms) = self.asked_ms.replace(now_ms) {
            let passed_ms = (now_ms - before_ms) / times;
            let mean_ms = self.between_ms.unwrap_or(passed_ms);
            self.between_ms = Some(mean_ms + (passed_ms - mean_ms) * RECENT * times);
        }
    }
}

/// How much the last time between two requests counts in the recent average.
const RECENT: f64 = 0.05;

#[cfg(test)]
mod tests {
    use super::super::{Times, evict};
    use super::*;

    /// Three clients that ask every 4 ms, and a server that may spend 0.3 of its time on requests of 0.5 ms.
    fn balanced(busy: f64) -> Balanced {
        let village = Village {
            clients: 3,
            client_pages: 10,
            servers: vec![Server {
                pages: 10,
                busy_most: 0.3,
            }],
            home_pages: 10,
            footprint: 100,
            local: evict::Kind::Lru,
            times: Times {
                service_ms: 0.5,
                ..Times::default()
            },
            seed: 1,
        };
        let epochs = Epochs::new(&village, 100.0, 0.1).expect("they can be");
        let mut balanced = Balanced::new(&village, epochs, 0.5).expect("it can be");
        for client in &mut balanced.clients {
            client.between_ms = Some(4.0);
        }
        balanced.busy[3] = busy;
        balanced
    }

    fn bound(balanced: &Balanced) -> f64 {
        balanced.bounds(4.0)[3]
    }

    #[track_caller]
    fn assert_close(is: f64, should: f64) {
        assert!((is - should).abs() < 1e-12, "{is}, not {should}");
    }

    #[test]
    fn who_asks_may_take_its_part_and_borrow_what_is_left() {
        // T / S = 8; a third of 0.3; and half of what others leave of it.
        assert_close(bound(&balanced(0.3)), 8.0 * 0.1);
        assert_close(bound(&balanced(0.06)), 8.0 * (0.1 + 0.12));
        assert_close(bound(&balanced(0.0)), 8.0 * (0.1 + 0.15));
    }

    #[test]
    fn nothing_is_owed_for_too_much_work() {
        assert_close(bound(&balanced(0.9)), 8.0 * 0.1);
    }

    #[test]
    fn who_never_asks_has_no_part_and_who_asks_alone_has_all() {
        let mut balanced = balanced(0.06);
        balanced.clients[2].between_ms = None;
        assert_close(bound(&balanced), 8.0 * (0.15 + 0.24));
        balanced.clients[1].between_ms = None;
        assert_close(bound(&balanced), 8.0 * 0.3);
    }

    #[test]
    fn how_busy_a_server_was_is_looked_at_once_in_an_epochs_time() {
        let mut balanced = balanced(0.0);
        balanced.see(50.0, &[0, 0, 0, 60]);
        assert_close(balanced.busy[3], 0.0);
        balanced.see(100.0, &[0, 0, 0, 60]);
        assert_close(balanced.busy[3], 0.3);
        balanced.see(300.0, &[0, 0, 0, 100]);
        assert_close(balanced.busy[3], 0.1);
        assert_close(balanced.busy[4], 0.0);
    }
}
