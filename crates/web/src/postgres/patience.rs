//! When commits go on without their keeper (rule W7). It does no I/O, so the simulator runs it, too.

use std::collections::BTreeMap;
use thorp_versions::{BEAT_MS_MAX, Bug, is_planted};

/// How long a commit may wait for a keeper, and how long a keeper may be gone. In milliseconds.
const WAITED_MS_MAX: u64 = BEAT_MS_MAX;

/// How long nobody beats any more before commits go on. Then no reader has a young beat. In milliseconds.
const GONE_FOR_MS: u64 = 2 * BEAT_MS_MAX;

/// For whom commits wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Names {
    /// The keeper.
    Keeper,
    /// Nobody who is there: a watchdog lets commits go on.
    Gone,
    /// Somebody else, or nobody.
    Others,
}

/// What a watchdog sees at one look. `W` names a commit that waits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Look<W> {
    /// For whom commits wait.
    pub names: Names,
    /// The commits that wait.
    pub waiting: Vec<W>,
    /// The keeper's stream is not connected.
    pub is_away: bool,
}

/// What a watchdog does after a look.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Deed {
    /// Nothing.
    Nothing,
    /// It lets commits wait for nobody who is there. The answer to *do you wait for me* is no from then on.
    End,
    /// It lets commits go on: why.
    LetGo(String),
}

impl Deed {
    /// Which names it may replace. The watchdog may have hung since its look (trap W38).
    pub fn replaces(&self) -> &'static [Names] {
        match self {
            Deed::Nothing => &[],
            Deed::End => &[Names::Keeper],
            Deed::LetGo(_) if is_planted(Bug::AnyNameLetGo) => &[Names::Keeper, Names::Gone],
            Deed::LetGo(_) => &[Names::Gone],
        }
    }
}

/// Since when commits wait, since when the keeper is away, and since when nobody beats.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Patience<W> {
    waiting: BTreeMap<W, u64>,
    away: Option<u64>,
    gone: Option<u64>,
    why: String,
}

impl<W: Ord> Patience<W> {
    /// The patience of a watchdog that has not looked yet.
    pub fn new() -> Self {
        Patience {
            waiting: BTreeMap::new(),
            away: None,
            gone: None,
            why: String::from("a watchdog had begun to"),
        }
    }

    /// What is to be done after a look. The clock is read after the database has answered.
    pub fn look(&mut self, look: Look<W>, now_ms: u64) -> Deed {
        match look.names {
            Names::Keeper => self.watch(look.waiting, look.is_away, now_ms),
            Names::Gone => self.let_go(now_ms),
            Names::Others => {
                *self = Patience::new();
                Deed::Nothing
            }
        }
    }

    fn watch(&mut self, waiting: Vec<W>, is_away: bool, now_ms: u64) -> Deed {
        self.gone = None;
        let mut before = std::mem::take(&mut self.waiting);
        let since = |commit: W| (before.remove(&commit).unwrap_or(now_ms), commit);
        let waiting = waiting.into_iter().map(since);
        self.waiting = waiting.map(|(since, commit)| (commit, since)).collect();
        self.away = is_away.then(|| self.away.unwrap_or(now_ms));
        let is_late = |since: &u64| now_ms.saturating_sub(*since) >= WAITED_MS_MAX;
        let late = self.waiting.values().filter(|since| is_late(since)).count();
        self.why = match self.away {
            _ if late > 0 => format!("{late} commits have waited for too long"),
            Some(since) if is_late(&since) => String::from("the keeper is gone"),
            _ => return Deed::Nothing,
        };
        Deed::End
    }

    /// First every beat grows old. Only then commits go on (trap W25).
    fn let_go(&mut self, now_ms: u64) -> Deed {
        let since = *self.gone.get_or_insert(now_ms);
        let is_over = now_ms.saturating_sub(since) >= GONE_FOR_MS;
        match is_over || is_planted(Bug::LetGoAtOnce) {
            true => Deed::LetGo(std::mem::take(self).why),
            false => Deed::Nothing,
        }
    }
}

impl<W: Ord> Default for Patience<W> {
    fn default() -> Self {
        Patience::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(names: Names, waiting: &[u8], is_away: bool) -> Look<u8> {
        Look {
            names,
            waiting: waiting.to_vec(),
            is_away,
        }
    }

    #[test]
    fn commits_go_on_when_one_has_waited_and_every_beat_is_old() {
        let mut patience = Patience::new();
        let waits = || look(Names::Keeper, &[1], false);
        assert_eq!(patience.look(waits(), 5_000), Deed::Nothing);
        assert_eq!(patience.look(waits(), 6_999), Deed::Nothing);
        assert_eq!(patience.look(waits(), 7_000), Deed::End);
        let gone = || look(Names::Gone, &[1], false);
        assert_eq!(patience.look(gone(), 7_100), Deed::Nothing);
        assert_eq!(patience.look(gone(), 11_099), Deed::Nothing);
        let why = String::from("1 commits have waited for too long");
        assert_eq!(patience.look(gone(), 11_100), Deed::LetGo(why));
        assert_eq!(patience, Patience::new());
    }

    #[test]
    fn other_commits_and_another_keeper_are_awaited_anew() {
        let mut patience = Patience::new();
        patience.look(look(Names::Keeper, &[1], true), 0);
        patience.look(look(Names::Keeper, &[2], false), 1_000);
        assert_eq!(
            patience.look(look(Names::Keeper, &[2], true), 2_500),
            Deed::Nothing
        );
        patience.look(look(Names::Others, &[], true), 2_600);
        assert_eq!(
            patience.look(look(Names::Keeper, &[2], true), 4_000),
            Deed::Nothing
        );
        assert_eq!(
            patience.look(look(Names::Keeper, &[], true), 6_000),
            Deed::End
        );
    }

    #[test]
    fn a_watchdog_that_starts_half_way_waits_for_the_whole_time() {
        let mut patience = Patience::new();
        let gone = || look(Names::Gone, &[], false);
        assert_eq!(patience.look(gone(), 100), Deed::Nothing);
        assert_eq!(patience.look(gone(), 4_099), Deed::Nothing);
        assert!(matches!(patience.look(gone(), 4_100), Deed::LetGo(_)));
    }
}
