//! The followers of a keeper: tables on other hosts. A commit is acknowledged when all of them have stored its words (rule W7).

use crate::keeper::Keeper;
use crate::limits::BEAT_MS_MAX;
use crate::place::Place;
use crate::planted::{Bug, is_planted};
use crate::writer::Store;
use std::collections::BTreeMap;

/// A follower, as its keeper names it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct FollowerId(pub u64);

/// How often the keeper has changed its table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Step(pub u64);

/// What a keeper sends to a follower. A connection keeps the order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ToFollower {
    /// A generation begins with this sequence. Updates of these places are open.
    Begin(Step, u64, Vec<Place>),
    /// Store this.
    Store(Step, Store),
    /// The answer to the question of then: the beat of the keeper is so old. Both in milliseconds.
    Waits(u64, u64),
}

/// How long a follower's commits wait for it: then its lease has ended. In milliseconds.
const STRUCK_AFTER_MS: u64 = 2 * BEAT_MS_MAX;

/// Whom the keeper waits for before it acknowledges.
///
/// Invariant: a follower is answered *yes* only if it has stored everything. So when it has not for twice the life of a beat, it has no
/// young beat.
#[derive(Debug)]
pub struct Broadcast {
    last: Step,
    followers: BTreeMap<FollowerId, Following>,
    /// Followers of the keeper before may have young beats until then.
    from_ms: u64,
}

#[derive(Debug)]
struct Following {
    stored: Step,
    /// Its question that is not answered yet.
    asked_ms: Option<u64>,
    /// Since when it has not stored everything, or is away.
    late_ms: Option<u64>,
    is_away: bool,
}

impl Broadcast {
    /// A keeper starts. If it may have had followers before, it acknowledges nothing until their leases have ended.
    pub fn new(now_ms: u64, may_have_followers: bool) -> Self {
        let waits = may_have_followers && !is_planted(Bug::FollowersForgotten);
        Broadcast {
            last: Step::default(),
            followers: BTreeMap::new(),
            from_ms: if waits { now_ms + STRUCK_AFTER_MS } else { 0 },
        }
    }

    /// A follower has connected, perhaps again. What it had does not count.
    pub fn join(&mut self, id: FollowerId, keeper: &Keeper, now_ms: u64) -> ToFollower {
        let following = Following {
            stored: Step::default(),
            late_ms: Some(now_ms),
            is_away: false,
            asked_ms: None,
        };
        self.followers.insert(id, following);
        self.begin(keeper)
    }

    /// The keeper's table has begun a generation. What every follower is sent.
    pub fn restarted(&mut self, keeper: &Keeper, now_ms: u64) -> ToFollower {
        self.step(now_ms);
        self.begin(keeper)
    }

    /// The keeper has stored this. What every follower is sent.
    pub fn stored(&mut self, store: Store, now_ms: u64) -> ToFollower {
        self.step(now_ms);
        ToFollower::Store(self.last, store)
    }

    /// A follower has stored everything up to a step.
    pub fn acknowledged(&mut self, id: FollowerId, step: Step, now_ms: u64) {
        if let Some(following) = self.followers.get_mut(&id) {
            following.stored = step.max(following.stored);
            let is_late = following.stored < self.last || following.is_away;
            following.late_ms = is_late.then_some(now_ms);
        }
    }

    /// The connection to a follower is lost.
    pub fn lost(&mut self, id: FollowerId, now_ms: u64) {
        if let Some(following) = self.followers.get_mut(&id) {
            following.is_away = true;
            following.asked_ms = None;
            following.late_ms.get_or_insert(now_ms);
        }
    }

    /// A follower asks: do you still wait for me? [`Broadcast::answer`] answers.
    pub fn asked(&mut self, id: FollowerId, asked_ms: u64) {
        if let Some(following) = self.followers.get_mut(&id) {
            following.asked_ms = Some(asked_ms);
        }
    }

    /// The answer to a follower, once it has stored everything. The beat of the keeper is of then.
    pub fn answer(&mut self, id: FollowerId, beat_ms: u64, now_ms: u64) -> Option<ToFollower> {
        let following = self.followers.get_mut(&id)?;
        let is_late = following.late_ms.is_some() && !is_planted(Bug::YesToLateFollower);
        if is_late || beat_ms == 0 {
            return None;
        }
        let asked_ms = following.asked_ms.take()?;
        Some(ToFollower::Waits(asked_ms, now_ms.saturating_sub(beat_ms)))
    }

    /// Strikes those whose leases have ended. They have to connect again.
    pub fn strike(&mut self, now_ms: u64) -> Vec<FollowerId> {
        let patience = match is_planted(Bug::StruckAtOnce) {
            true => 0,
            false => STRUCK_AFTER_MS,
        };
        let is_struck = |following: &Following| {
            let late = following.late_ms.map(|since| now_ms.saturating_sub(since));
            late.is_some_and(|late| late >= patience)
        };
        let struck = self.followers.iter().filter(|(_, one)| is_struck(one));
        let struck: Vec<FollowerId> = struck.map(|(id, _)| *id).collect();
        for id in &struck {
            self.followers.remove(id);
        }
        struck
    }

    /// The last step.
    pub fn last(&self) -> Step {
        self.last
    }

    /// Whether no follower can serve a hit of before a step any more.
    pub fn is_everywhere(&self, step: Step, now_ms: u64) -> bool {
        let mut followers = self.followers.values();
        now_ms >= self.from_ms && followers.all(|following| following.stored >= step)
    }

    fn step(&mut self, now_ms: u64) {
        self.last.0 += 1;
        for following in self.followers.values_mut() {
            following.late_ms.get_or_insert(now_ms);
        }
    }

    fn begin(&self, keeper: &Keeper) -> ToFollower {
        ToFollower::Begin(self.last, keeper.sequence(), keeper.open_places())
    }
}

#[cfg(all(test, not(feature = "loom")))]
mod tests {
    use super::*;

    const ID: FollowerId = FollowerId(1);

    fn joined() -> Broadcast {
        let mut broadcast = Broadcast::new(0, false);
        broadcast.restarted(&Keeper::new(), 0);
        broadcast.join(ID, &Keeper::new(), 0);
        assert!(!broadcast.is_everywhere(Step(1), 0));
        broadcast.acknowledged(ID, Step(1), 10);
        broadcast
    }

    #[test]
    fn a_commit_is_acknowledged_when_all_followers_have_its_words() {
        let mut broadcast = joined();
        broadcast.stored(Store::default(), 20);
        assert!(!broadcast.is_everywhere(Step(2), 20));
        broadcast.acknowledged(ID, Step(2), 30);
        assert!(broadcast.is_everywhere(Step(2), 30));
    }

    #[test]
    fn a_follower_is_answered_when_it_has_everything() {
        let mut broadcast = joined();
        broadcast.stored(Store::default(), 20);
        broadcast.asked(ID, 7);
        assert_eq!(broadcast.answer(ID, 15, 25), None);
        broadcast.acknowledged(ID, Step(2), 30);
        assert_eq!(broadcast.answer(ID, 0, 40), None);
        assert_eq!(broadcast.answer(ID, 15, 40), Some(ToFollower::Waits(7, 25)));
        assert_eq!(broadcast.answer(ID, 15, 40), None);
    }

    #[test]
    fn a_follower_is_struck_when_its_lease_has_ended() {
        let mut broadcast = joined();
        broadcast.stored(Store::default(), 20);
        broadcast.stored(Store::default(), 500);
        assert_eq!(broadcast.strike(20 + STRUCK_AFTER_MS - 1), []);
        assert!(!broadcast.is_everywhere(Step(2), 4_000));
        assert_eq!(broadcast.strike(20 + STRUCK_AFTER_MS), [ID]);
        assert!(broadcast.is_everywhere(Step(3), 4_020));
        // One whose connection is lost, too.
        let mut broadcast = joined();
        broadcast.lost(ID, 100);
        assert_eq!(broadcast.strike(100 + STRUCK_AFTER_MS), [ID]);
    }

    #[test]
    fn a_keeper_that_starts_waits_for_the_followers_of_the_one_before() {
        let broadcast = Broadcast::new(5, true);
        assert!(!broadcast.is_everywhere(Step(0), STRUCK_AFTER_MS + 4));
        assert!(broadcast.is_everywhere(Step(0), STRUCK_AFTER_MS + 5));
    }
}
