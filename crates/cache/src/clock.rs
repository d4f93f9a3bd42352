//! Who is to go: second chance, the hand of a clock over the cached pages.

use thorp_model::Place;

/// One seat for each cached page. Only the writer touches it.
#[derive(Default)]
pub(crate) struct Clock {
    seats: Vec<Option<Place>>,
    free: Vec<u32>,
    hand: usize,
}

/// Where a page sits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Seat(u32);

/// What to do with the page under the hand.
pub(crate) enum Verdict {
    /// It stays, this time round.
    Spare,
    /// It goes.
    Take,
    /// It goes, and that is enough.
    TakeLast,
}

impl Clock {
    pub(crate) fn sit(&mut self, place: Place) -> Seat {
        if let Some(seat) = self.free.pop() {
            self.seats[seat as usize] = Some(place);
            return Seat(seat);
        }
        self.seats.push(Some(place));
        Seat((self.seats.len() - 1) as u32)
    }

    pub(crate) fn rise(&mut self, seat: Seat) {
        self.seats[seat.0 as usize] = None;
        self.free.push(seat.0);
    }

    pub(crate) fn seated(&self) -> usize {
        self.seats.len() - self.free.len()
    }

    /// Moves the hand on, at most twice round, until `judge` has had enough.
    /// Whoever was taken is not judged again.
    pub(crate) fn sweep(&mut self, mut judge: impl FnMut(Place) -> Verdict) -> Vec<Place> {
        let mut taken = Vec::new();
        let mut taken_seats = std::collections::HashSet::new();
        for _ in 0..2 * self.seats.len() {
            let seat = self.hand;
            self.hand = (seat + 1) % self.seats.len();
            let Some(place) = self.seats[seat] else {
                continue;
            };
            if taken_seats.contains(&seat) {
                continue;
            }
            let verdict = judge(place);
            if matches!(verdict, Verdict::Spare) {
                continue;
            }
            taken_seats.insert(seat);
            taken.push(place);
            if matches!(verdict, Verdict::TakeLast) {
                break;
            }
        }
        taken
    }
}
